/** Configuration, limits, metrics, and the inference client against a server that misbehaves. */

import { afterEach, expect, test } from "bun:test";
import { createServer } from "node:net";
import { ConfigError, readConfig } from "../src/config.ts";
import { InferenceClient } from "../src/inference.ts";
import { limitsMemory, limitsOf } from "../src/limits.ts";
import { Metrics, metricsMemory } from "../src/metrics.ts";

test("the defaults are the contract's", () => {
  expect(readConfig({ WORKER_THREADS: "3" })).toEqual({
    port: 3000,
    workers: 3,
    inferenceUrl: "http://127.0.0.1:9000",
    inferenceClients: 0,
    inferenceTimeoutMs: 5000,
    flushIntervalMs: 1000,
    flushPhaseJitterMs: 1000,
    cpuPasses: 4,
    maxSessions: 0,
    maxBufferFrames: 500,
    overflowPolicy: "drop_oldest",
    maxInflightJobs: 0,
    outboxMessages: 4,
    startTimeoutMs: 10_000,
    drainTimeoutMs: 5000,
    authToken: "",
  });
});

test.each([
  ["PORT", "65536"],
  ["PORT", ""],
  ["WORKER_THREADS", "0"],
  ["INFERENCE_URL", "https://x"],
  ["INFERENCE_URL", "not a url"],
  ["INFERENCE_HTTP_CLIENTS", "few"],
  ["FLUSH_INTERVAL_MS", "1.5"],
  ["MAX_SESSIONS", "-1"],
  ["OVERFLOW_POLICY", "Drop_Oldest"],
  ["DRAIN_TIMEOUT_MS", "5\ns"],
] as const)("%s=%j is refused by one line that names it", (name, value) => {
  expect(() => readConfig({ [name]: value })).toThrow(ConfigError);
  expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name}: [^\\n]*$`));
});

test("a limit is exact over workers, and 0 is none", () => {
  const memory = limitsMemory();
  const [one, other] = [1, 2].map(() => limitsOf(memory, { maxSessions: 2, maxInflightJobs: 0 }));
  expect([one, other, one].map((it) => it?.sessions.take())).toEqual([true, true, false]);
  other?.sessions.give();
  expect(one?.sessions.take()).toBe(true);
  for (let count = 0; count < 100; count += 1) expect(one?.jobs.take()).toBe(true);
});

test("metrics are sums over workers, and complete from the start", () => {
  const memory = metricsMemory(2);
  const [one, other] = [new Metrics(memory, 0), new Metrics(memory, 1)];
  one.add("stt_frames_total", 3);
  other.add("stt_frames_total", 4);
  other.observe("stt_buffer_frames", 50);
  other.error("http_5xx");
  const text = one.render();
  expect(text).toMatch(/^stt_frames_total 7$/m);
  expect(text).toMatch(/^stt_buffer_frames_bucket\{le="50"\} 1$/m);
  expect(text).toMatch(/^stt_buffer_frames_bucket\{le="20"\} 0$/m);
  expect(text).toMatch(/^stt_buffer_frames_sum 50$/m);
  expect(text).toMatch(/^stt_errors_total\{stage="inference_request",kind="http_5xx"\} 1$/m);
  expect(text).toMatch(/^stt_ticks_deferred_total\{reason="jobs"\} 0$/m);
  expect(text.match(/# TYPE stt_buffer_frames histogram/g)).toHaveLength(1);
});

const GOOD = '{"rms":0.1,"zero_crossings":2,"checksum":3,"samples":4,"transcript":"now","audio_bytes":5}';
const stops: (() => unknown)[] = [];

afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function client(inferenceUrl: string, inferenceClients = 0): InferenceClient {
  return new InferenceClient({ inferenceUrl, inferenceTimeoutMs: 100, inferenceClients, cpuPasses: 3 });
}

function serve(answer: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ port: 0, fetch: answer });
  stops.push(() => server.stop(true));
  return `http://127.0.0.1:${server.port}/base`;
}

test("a request has the contract's path, headers and body", async () => {
  let seen: unknown;
  const url = serve(async (request) => {
    const { headers, method } = request;
    const body = await request.bytes();
    seen = [method, new URL(request.url).pathname, headers.get("content-type"), headers.get("x-cpu-passes"), body];
    return new Response(GOOD);
  });
  const { result } = await client(url).infer([Uint8Array.of(1, 2), Uint8Array.of(3)]);
  expect(result).toBeString();
  expect(seen).toEqual(["POST", "/base/infer", "application/octet-stream", "3", Uint8Array.of(1, 2, 3)]);
});

test.each([
  [200, "parse_error"],
  [302, "parse_error"],
  [429, "http_429"],
  [404, "http_4xx"],
  [503, "http_5xx"],
] as const)("status %d without the strict answer is %s", async (status, kind) => {
  const url = serve(() => new Response("upstream is busy", { status, headers: { location: "/" } }));
  expect((await client(url).infer([])).result).toMatchObject({ kind, status });
});

test("no answer is a timeout", async () => {
  const url = serve(() => new Promise(() => {}));
  const { result, elapsedMs } = await client(url).infer([]);
  expect(result).toMatchObject({ kind: "timeout", status: null, elapsedMs });
  expect(elapsedMs).toBeGreaterThan(95);
});

test("a torn connection, or none, is a reset", async () => {
  const server = createServer((socket) => socket.on("data", () => socket.destroy()));
  server.listen(0, "127.0.0.1");
  stops.push(() => server.close());
  const { port } = server.address() as { port: number };
  for (const url of [`http://127.0.0.1:${port}`, "http://127.0.0.1:1"]) {
    expect((await client(url).infer([])).result).toMatchObject({ kind: "connection_reset", status: null });
  }
});

test("INFERENCE_HTTP_CLIENTS bounds the requests at once, and all are answered", async () => {
  let [now, most] = [0, 0];
  const url = serve(async () => {
    now += 1;
    most = Math.max(most, now);
    await Bun.sleep(2);
    now -= 1;
    return new Response(GOOD);
  });
  const subject = client(url, 2);
  const outcomes = await Promise.all(Array.from({ length: 9 }, () => subject.infer([])));
  for (const { result } of outcomes) expect(result).toBeString();
  expect(most).toBe(2);
});
