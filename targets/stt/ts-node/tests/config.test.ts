import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readConfig } from "../src/config.js";
import { Ledger, RemoteLimits, type ToPrimary } from "../src/limits.js";
import { Metrics, render } from "../src/metrics.js";

test("the defaults are the contract's", () => {
  const {
    port,
    inferenceClients,
    flushIntervalMs,
    flushPhaseJitterMs,
    maxBufferFrames,
    overflowPolicy,
    outboxMessages,
  } = readConfig({});
  assert.deepEqual(
    {
      port,
      inferenceClients,
      flushIntervalMs,
      flushPhaseJitterMs,
      maxBufferFrames,
      overflowPolicy,
      outboxMessages,
    },
    {
      port: 3000,
      inferenceClients: 1,
      flushIntervalMs: 1000,
      flushPhaseJitterMs: 1000,
      maxBufferFrames: 500,
      overflowPolicy: "drop_oldest",
      outboxMessages: 4,
    },
  );
});

for (const [name, value] of [
  ["PORT", "65536"],
  ["PORT", ""],
  ["WORKER_THREADS", "0"],
  ["INFERENCE_URL", "https://x"],
  ["INFERENCE_URL", "nonsense"],
  ["FLUSH_INTERVAL_MS", "1.5"],
  ["MAX_SESSIONS", "-1"],
  ["OVERFLOW_POLICY", "drop"],
] as const) {
  test(`a bad ${name} (${value}) is refused by name`, () => {
    assert.throws(
      () => readConfig({ [name]: value }),
      (error) => error instanceof ConfigError && error.message.startsWith(name),
    );
  });
}

test("a limit is exact, and 0 is none", () => {
  const ledger = new Ledger(2, 0);
  assert.deepEqual(
    [ledger.take("session"), ledger.take("session"), ledger.take("session")],
    [true, true, false],
  );
  ledger.give("session");
  assert.equal(ledger.take("session"), true);
  assert.equal(ledger.take("job"), true);
});

test("a worker asks only where there is a limit", () => {
  const sent: ToPrimary[] = [];
  const limits = new RemoteLimits(new Ledger(1, 0), (message) => sent.push(message));
  const granted: boolean[] = [];
  limits.take("job", (yes) => granted.push(yes));
  limits.take("session", (yes) => granted.push(yes));
  assert.deepEqual(granted, [true]);
  limits.answered(1, false);
  assert.deepEqual(granted, [true, false]);
  assert.equal(sent.length, 1);
});

test("metrics are sums over workers, and complete from the start", () => {
  const [one, other] = [new Metrics(), new Metrics()];
  one.add("stt_frames_total", 3);
  other.add("stt_frames_total", 4);
  other.observe("stt_buffer_frames", 50);
  const text = render([one.snapshot(), other.snapshot()]);
  assert.match(text, /^stt_frames_total 7$/m);
  assert.match(text, /^stt_buffer_frames_bucket\{le="50"\} 1$/m);
  assert.match(text, /^stt_errors_total\{stage="input_buffer",kind="overflow"\} 0$/m);
  assert.equal(text.match(/# TYPE stt_buffer_frames histogram/g)?.length, 1);
});
