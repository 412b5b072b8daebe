/** The whole gateway, with two workers, over real sockets. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Http2Server } from "node:http2";
import { FRAME_BYTES } from "../src/messages.ts";
import { type Gateway, spawnGateway, startGateway, startInference } from "./support/gateway.ts";
import { encodeFrame, OPCODE, type RawFrame, RawSocket } from "./support/raw-socket.ts";
import { referenceAnswer, syntheticBatch, syntheticFrame } from "./support/reference.ts";
import { vectors } from "./support/vectors.ts";

const START: RawFrame = { opcode: OPCODE.text, payload: Buffer.from('{"type":"start"}') };

let inference: Http2Server;
const gateways: Gateway[] = [];

beforeAll(async () => {
  inference = await startInference(20);
});

afterEach(() => {
  for (const gateway of gateways.splice(0)) gateway.process.kill("SIGKILL");
});

afterAll(() => {
  inference.close();
});

async function start(environment: Readonly<Record<string, string>> = {}): Promise<Gateway> {
  const fast = { FLUSH_INTERVAL_MS: "50", FLUSH_PHASE_JITTER_MS: "20" };
  const gateway = await startGateway(inference, { ...fast, ...environment });
  gateways.push(gateway);
  return gateway;
}

async function openSession(gateway: Gateway): Promise<RawSocket> {
  const [socket, head] = await RawSocket.upgrade(gateway.port);
  expect(head).toStartWith("HTTP/1.1 101 ");
  socket.send(START);
  return socket;
}

/** The next message, past pongs; it is JSON. */
async function message(socket: RawSocket): Promise<Record<string, unknown>> {
  let [opcode, payload] = (await socket.next()) ?? [];
  while (opcode === OPCODE.pong) [opcode, payload] = (await socket.next()) ?? [];
  expect(opcode).toBe(OPCODE.text);
  return JSON.parse(String(payload)) as Record<string, unknown>;
}

/** Reads partials until frame `newest` is named; checks their content and that they follow each other. */
async function readThrough(socket: RawSocket, session: number, newest: number): Promise<void> {
  for (let next = 1; next <= newest; ) {
    const { oldest_frame_seq: oldest, frames, rms, zero_crossings, checksum, transcript } = await message(socket);
    expect(oldest).toBe(next);
    const expected = referenceAnswer(syntheticBatch(session, next, Number(frames)), 4);
    expect<object>({ rms, zero_crossings, checksum, transcript }).toEqual({
      rms: expected.rms,
      zero_crossings: expected.zero_crossings,
      checksum: expected.checksum,
      transcript: expected.transcript,
    });
    next += Number(frames);
  }
}

function audio(session: number, first: number, frames: number): RawFrame[] {
  return Array.from({ length: frames }, (_, place) => ({
    opcode: OPCODE.binary,
    payload: syntheticFrame(session, first + place),
  }));
}

test("sessions on all workers are answered right and counted in one place", async () => {
  const gateway = await start();
  const sockets = await Promise.all(Array.from({ length: 12 }, () => openSession(gateway)));
  expect(await gateway.metric("stt_sessions")).toBe(12);
  for (const [session, socket] of sockets.entries()) socket.send(...audio(session, 1, 30));
  await Promise.all(sockets.map((socket, session) => readThrough(socket, session, 30)));
  for (const socket of sockets) socket.send({ opcode: OPCODE.close, payload: Buffer.from([0x03, 0xe8]) });
  for (const socket of sockets) expect(await socket.closeCode()).toBe(1000);
  expect(await gateway.metric("stt_frames_total")).toBe(12 * 30);
  expect(await gateway.metric("stt_buffer_frames_sum")).toBe(12 * 30);
  expect(await gateway.metric("stt_sessions")).toBe(0);
  expect(await gateway.metric("stt_sessions_total")).toBe(12);
});

test("READ_PACE_MS: the same answers, and violations are answered in time", async () => {
  const gateway = await start({ READ_PACE_MS: "250", FLUSH_INTERVAL_MS: "300" });
  const socket = await openSession(gateway);
  for (let seq = 1; seq <= 60; seq++) {
    socket.send(...audio(7, seq, 1));
    await Bun.sleep(10);
  }
  await readThrough(socket, 7, 60);
  const beganMs = performance.now();
  socket.send({ opcode: OPCODE.text, payload: Buffer.from("{}") });
  expect(await socket.closeCode()).toBe(1002);
  expect(performance.now() - beganMs).toBeLessThan(500);
});

describe("violations", () => {
  const half = new Uint8Array(FRAME_BYTES / 2);
  const zeros = new Uint8Array(FRAME_BYTES);
  interface Vector {
    readonly id: string;
    readonly opcode: string;
    readonly length: number;
    readonly close: number | null;
  }
  const byLength = vectors<Vector>("frames").map(
    ({ id, opcode, length, close }): [string, number | null, RawFrame[]] => {
      const payload = new Uint8Array(length > 65_536 ? 0 : length);
      return [
        id,
        close,
        [{ opcode: opcode === "text" ? OPCODE.text : OPCODE.binary, payload, declaredLength: length }],
      ];
    },
  );
  const cases: readonly [string, number | null, RawFrame[]][] = [
    ...byLength,
    ["unmasked", 1002, [{ opcode: OPCODE.binary, payload: zeros, isMasked: false }]],
    ...[1, 2, 4].map((reservedBits): [string, number, RawFrame[]] => [
      `reserved bits ${reservedBits}`,
      1002,
      [{ opcode: OPCODE.binary, payload: zeros, reservedBits }],
    ]),
    ...[3, 7, 11, 15].map((opcode): [string, number, RawFrame[]] => [`opcode ${opcode}`, 1002, [{ opcode }]]),
    ["a fragmented ping", 1002, [{ opcode: OPCODE.ping, isFinal: false }]],
    ["a long ping", 1002, [{ opcode: OPCODE.ping, payload: new Uint8Array(126) }]],
    ["a continuation of nothing", 1002, [{ opcode: OPCODE.continuation, payload: zeros }]],
    [
      "a message within a message",
      1002,
      [
        { opcode: OPCODE.binary, payload: half, isFinal: false },
        { opcode: OPCODE.binary, payload: zeros },
      ],
    ],
    [
      "fragments over 64 KiB",
      1009,
      [0, 1, 2, 3, 4].map((place) => ({
        opcode: place === 0 ? OPCODE.binary : OPCODE.continuation,
        payload: new Uint8Array(16_384),
        isFinal: false,
      })),
    ],
    ["a text that is not UTF-8", 1007, [{ opcode: OPCODE.text, payload: Buffer.from([0xc3, 0x28]) }]],
  ];

  test("each closes with its code within 500 ms, also under a stream of frames that nobody reads any more", async () => {
    const gateway = await start();
    for (const [name, close, frames] of cases) {
      const socket = await openSession(gateway);
      const beganMs = performance.now();
      socket.send(...frames);
      if (close !== null) {
        // Unread bytes at the gateway's close would reset the connection, and the code would be lost.
        if (frames[0]?.declaredLength === undefined) socket.send(...audio(0, 1, 100));
        expect([name, await socket.closeCode()]).toEqual([name, close]);
        expect(performance.now() - beganMs).toBeLessThan(500);
        expect(await socket.next()).toBeUndefined();
      } else {
        await message(socket);
      }
      socket.end();
    }
  });
});

test("fragments are one frame, and a ping between them is answered", async () => {
  const gateway = await start();
  const socket = await openSession(gateway);
  const frame = syntheticFrame(0, 1);
  socket.send(
    { opcode: OPCODE.binary, payload: frame.subarray(0, 200), isFinal: false },
    { opcode: OPCODE.ping, payload: Buffer.from("hello") },
    { opcode: OPCODE.continuation, payload: frame.subarray(200) },
  );
  expect(await socket.next()).toEqual([OPCODE.pong, Buffer.from("hello")]);
  await readThrough(socket, 0, 1);
  socket.end();
});

describe("admission", () => {
  test("needs an upgrade, the token, and room, in this order", async () => {
    const gateway = await start({ MAX_SESSIONS: "3", AUTH_TOKEN: "secret" });
    expect((await gateway.get("/ws/stt")).status).toBe(426);
    expect((await gateway.get("/ws/stt/more")).status).toBe(404);
    for (const authorization of ["", "Bearer", "Bearer secret2", "Basic secret", "secret"]) {
      const [, head] = await RawSocket.upgrade(gateway.port, { authorization });
      expect(head).toStartWith("HTTP/1.1 401 ");
    }
    const right = { authorization: "bearer secret" };
    // At once, over two workers: no more than three may find room.
    const tries = await Promise.all(Array.from({ length: 20 }, () => RawSocket.upgrade(gateway.port, right)));
    const heads = tries.map(([, head]) => head);
    expect(heads.filter((head) => head.startsWith("HTTP/1.1 101 "))).toHaveLength(3);
    const refused = heads.filter((head) => head.startsWith("HTTP/1.1 503 "));
    expect(refused).toHaveLength(17);
    for (const head of refused) expect(head.toLowerCase()).toContain("\r\nretry-after: 1\r\n");
    expect(await gateway.metric("stt_sessions_rejected_total")).toBe(17);
  });

  test("a version other than 13 is no upgrade", async () => {
    const gateway = await start();
    const [, head] = await RawSocket.upgrade(gateway.port, { "sec-websocket-version": "8" });
    expect(head).toStartWith("HTTP/1.1 426 ");
  });
});

test("a client that does not read defers its ticks; when it reads again, nothing that it was owed is lost", async () => {
  const gateway = await start({ FLUSH_INTERVAL_MS: "10", FLUSH_PHASE_JITTER_MS: "0", OUTBOX_MESSAGES: "2" });
  const socket = await openSession(gateway);
  socket.pause();
  // The quickest way to fill the kernel's buffers, and Bun's: pongs.
  const ping = encodeFrame({ opcode: OPCODE.ping, payload: new Uint8Array(125) });
  socket.write(Buffer.concat(Array.from({ length: 80_000 }, () => ping)));
  let sent = 0;
  while ((await gateway.metric('stt_ticks_deferred_total{reason="outbox"}')) < 3) {
    socket.send(...audio(0, ++sent, 1));
    await Bun.sleep(10);
  }
  const kilobytes = await residentKilobytes(gateway.process.pid);
  expect(kilobytes).toBeLessThan(250 * 1024);
  socket.resume();
  await readThrough(socket, 0, sent);
  socket.end();
}, 20_000);

async function residentKilobytes(pid: number): Promise<number> {
  const status = await Bun.file(`/proc/${pid}/status`).text();
  return Number(/VmRSS:\s+([0-9]+)/.exec(status)?.[1]);
}

describe("the end", () => {
  test("SIGTERM: what is in flight is answered, sessions close with 1001, the process exits with 0", async () => {
    const slow = await startInference(300);
    const gateway = await startGateway(slow, { FLUSH_INTERVAL_MS: "50", FLUSH_PHASE_JITTER_MS: "0" });
    gateways.push(gateway);
    const sockets = await Promise.all(Array.from({ length: 6 }, () => openSession(gateway)));
    for (const socket of sockets) socket.send(...audio(0, 1, 2));
    while ((await gateway.metric("stt_jobs_inflight")) < 6) await Bun.sleep(5);
    gateway.process.kill("SIGTERM");
    while ((await gateway.get("/health")).status === 200) await Bun.sleep(5);
    for (const socket of sockets) {
      await readThrough(socket, 0, 2);
      expect(await socket.closeCode()).toBe(1001);
      socket.end();
    }
    expect(await gateway.process.exited).toBe(0);
    slow.close();
  });

  test("a bad value: exit code 2, one line", async () => {
    const child = spawnGateway({ FLUSH_INTERVAL_MS: "1s" });
    expect(await child.exited).toBe(2);
    expect(await child.stderr.text()).toMatch(/^FLUSH_INTERVAL_MS=.*\n$/);
    expect(await child.stdout.text()).toBe("");
  });
});
