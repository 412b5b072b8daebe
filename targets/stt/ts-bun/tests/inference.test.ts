/** The HTTP/2 client against a server that behaves and misbehaves. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { once } from "node:events";
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { Failure } from "../src/failure.ts";
import { InferenceClient, type InferenceRequest } from "../src/inference.ts";
import { type Inference, isFailure } from "../src/messages.ts";
import { allocateShared, Shared, type SharedLimit } from "../src/shared.ts";

const GOOD = '{"rms":0.1,"zero_crossings":2,"checksum":3,"samples":4,"transcript":"now","audio_bytes":5}';

type Behaviour = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, body: Buffer) => void;

const answerGood: Behaviour = (stream) => {
  stream.respond({ ":status": 200 });
  stream.end(GOOD);
};

let server: Http2Server;
/** The server's connections. */
const sockets: Socket[] = [];
let behave: Behaviour = answerGood;
let jobs: SharedLimit;
let client: InferenceClient;

beforeAll(async () => {
  server = createServer({ settings: { maxConcurrentStreams: 20 } });
  server.on("connection", (socket: Socket) => sockets.push(socket));
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on("error", () => stream.destroy());
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => behave(stream, headers, Buffer.concat(chunks)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

beforeEach(() => {
  jobs = new Shared(allocateShared(0), { sessionsMax: 0, jobsMax: 0 }).jobs;
  const { port } = server.address() as AddressInfo;
  client = new InferenceClient(`http://127.0.0.1:${port}/base`, 1, 3, jobs);
  behave = answerGood;
});

afterAll(() => {
  server.close();
});

function infer(pcm: Uint8Array = new Uint8Array(640)): Promise<Inference | Failure> {
  if (!client.reserve()) throw new Error("no job");
  return new Promise((resolve) => {
    client.send(pcm, (_, answer) => resolve(answer));
  });
}

async function failureOf(behaviour: Behaviour): Promise<Partial<Failure>> {
  behave = behaviour;
  const answer = await infer();
  expect(jobs.inUse).toBe(0);
  if (!isFailure(answer)) throw new Error("no failure");
  return { kind: answer.kind, status: answer.status };
}

test("a request has the contract's path, headers and body, and its answer is read", async () => {
  const seen: [IncomingHttpHeaders, Buffer][] = [];
  behave = (stream, headers, body) => {
    seen.push([headers, body]);
    answerGood(stream, headers, body);
  };
  const pcm = Buffer.alloc(32_000, 7);
  expect(await infer(pcm)).toMatchObject({ rms: "0.1", checksum: "3", transcript: "now" });
  const [headers, body] = seen[0] ?? [];
  expect(headers).toMatchObject({
    ":method": "POST",
    ":path": "/base/infer",
    "content-type": "application/octet-stream",
    "x-cpu-passes": "3",
  });
  expect(body?.equals(pcm)).toBe(true);
  expect(jobs.inUse).toBe(0);
});

test("more requests than may be uploaded at a time are all answered; one that was given up while it waited is not sent", async () => {
  await infer();
  const seen: number[] = [];
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  behave = (stream, headers, body) => {
    seen.push(body.readUInt32LE(0));
    released.then(() => answerGood(stream, headers, body));
  };
  const answers: Promise<Inference | Failure>[] = [];
  const requests: InferenceRequest[] = [];
  for (let number = 0; number < 150; number++) {
    // Long enough for a window to run out, so that uploads do wait.
    const pcm = Buffer.alloc(100_000);
    pcm.writeUInt32LE(number);
    expect(client.reserve()).toBe(true);
    answers.push(new Promise((resolve) => requests.push(client.send(pcm, (_, answer) => resolve(answer)))));
  }
  requests[140]?.cancel();
  release();
  const others = answers.filter((_, number) => number !== 140);
  for (const answer of await Promise.all(others)) expect(isFailure(answer)).toBe(false);
  expect(seen).toHaveLength(149);
  expect(seen).not.toContain(140);
  expect(jobs.inUse).toBe(0);
});

describe("failures", () => {
  test("statuses", async () => {
    for (const [status, kind] of [
      [429, "http_429"],
      [404, "http_4xx"],
      [503, "http_5xx"],
      [204, "parse_error"],
    ] as const) {
      const seen = await failureOf((stream) => stream.respond({ ":status": status }, { endStream: true }));
      expect(seen).toEqual({ kind, status });
    }
  });

  test("an answer that is not the strict JSON, not UTF-8, or too long", async () => {
    const bodies = ["upstream is busy", Buffer.from([0x22, 0xc3, 0x28, 0x22]), " ".repeat(70_000) + GOOD];
    for (const body of bodies) {
      const seen = await failureOf((stream) => {
        stream.respond({ ":status": 200 });
        stream.end(body);
      });
      expect(seen).toEqual({ kind: "parse_error", status: 200 });
    }
  });

  test("a reset, before and within the answer, ends only its own request", async () => {
    const reset = { kind: "connection_reset", status: null } as const;
    expect(await failureOf((stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR))).toEqual(reset);
    const halfway = await failureOf((stream) => {
      stream.respond({ ":status": 200 });
      // Not `close`, which would end the stream in order first.
      stream.write(GOOD.slice(0, 20), () => stream.destroy(new Error("a fault")));
    });
    expect(halfway).toEqual(reset);
    const torn = await failureOf((stream) => {
      stream.respond({ ":status": 200 });
      // Not `session.destroy`, which ends the streams in order first.
      stream.write(GOOD.slice(0, 20), () => {
        for (const socket of sockets.splice(0)) socket.destroy();
      });
    });
    expect(torn).toEqual(reset);
    behave = answerGood;
    expect(await infer()).toMatchObject({ checksum: "3" });
  });

  test("a lost connection fails its requests, and is made anew", async () => {
    const lost = await failureOf((stream) => stream.session?.destroy());
    expect(lost).toEqual({ kind: "connection_reset", status: null });
    behave = answerGood;
    expect(await infer()).toMatchObject({ checksum: "3" });
  });

  test("a server that is not there", async () => {
    client = new InferenceClient("http://127.0.0.1:1", 1, 4, jobs);
    expect(await failureOf(answerGood)).toEqual({ kind: "connection_reset", status: null });
  });
});

test("more requests at once than the server allows, before it has said so, are all answered", async () => {
  behave = (stream, headers, body) => setTimeout(() => answerGood(stream, headers, body), 20);
  const answers = await Promise.all(Array.from({ length: 60 }, () => infer()));
  expect(answers.filter(isFailure)).toEqual([]);
  expect(jobs.inUse).toBe(0);
});

test("a cancelled request frees its job at once, tells nobody, and is taken back from the server", async () => {
  const closed = Promise.withResolvers<number>();
  const arrived = Promise.withResolvers<undefined>();
  behave = (stream) => {
    stream.on("close", () => closed.resolve(stream.rstCode ?? -1));
    arrived.resolve(undefined);
  };
  const told: InferenceRequest[] = [];
  expect(client.reserve()).toBe(true);
  const request = client.send(new Uint8Array(640), (it) => told.push(it));
  await arrived.promise;
  expect(jobs.inUse).toBe(1);
  request.cancel();
  request.cancel();
  expect(jobs.inUse).toBe(0);
  expect(await closed.promise).toBe(constants.NGHTTP2_CANCEL);
  expect(told).toEqual([]);
});
