/** The small parts on their own. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ConfigError, readConfig } from "../src/config.ts";
import { FAILURE_KINDS } from "../src/failure.ts";
import { COUNTERS, Metrics } from "../src/metrics.ts";
import { Pulse } from "../src/pulse.ts";
import { Schedule } from "../src/session/schedule.ts";
import { Tally } from "../src/session/tally.ts";
import { allocateShared, Shared } from "../src/shared.ts";
import { isWholeNumber, readFlatObject } from "../src/strict-json.ts";
import { Turns } from "../src/turns.ts";
import { startLine } from "../src/versions.ts";

test("a loop is behind when its timer is late, as seen from within the turn that makes it late", () => {
  const pulse = new Pulse();
  expect(pulse.isBehind(performance.now())).toBe(false);
  expect(pulse.isBehind(performance.now() + 1000)).toBe(true);
});

test("turns are taken in order, and a place is given back once", () => {
  const turns = new Turns(2);
  const log: string[] = [];
  const dones = new Map<string, () => void>();
  for (const name of ["a", "b", "c", "d", "e"]) {
    turns.take((done) => {
      log.push(name);
      if (name === "d") done();
      else dones.set(name, done);
    });
  }
  expect(log).toEqual(["a", "b"]);
  dones.get("b")?.();
  dones.get("b")?.();
  expect(log).toEqual(["a", "b", "c"]);
  // d needs its place for no longer than its start.
  dones.get("a")?.();
  expect(log).toEqual(["a", "b", "c", "d", "e"]);
});

describe("Schedule", () => {
  test("a late tick moves no other", () => {
    const schedule = new Schedule(5000, 1000);
    expect(schedule.takeDue(5999)).toBeUndefined();
    expect(schedule.takeDue(6700)).toBe(6000);
    expect(schedule.nextMs).toBe(7000);
    expect(schedule.takeDue(7000)).toBe(7000);
    expect(schedule.takeDue(10_500)).toBe(8000);
    expect(schedule.nextMs).toBe(11_000);
  });

  test("is always ahead, and on the grid", () => {
    const delays = fc.array(fc.integer({ min: 0, max: 5000 }));
    const property = fc.property(delays, fc.integer({ min: 1, max: 1500 }), (steps, intervalMs) => {
      const schedule = new Schedule(0.5, intervalMs);
      let nowMs = 0;
      for (const step of steps) {
        nowMs += step;
        schedule.takeDue(nowMs);
        expect(schedule.nextMs).toBeGreaterThan(nowMs);
        expect((schedule.nextMs - 0.5) % intervalMs).toBe(0);
      }
    });
    fc.assert(property);
  });
});

describe("readFlatObject", () => {
  const flat = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true })));

  test("reads what JSON.stringify writes", () => {
    const property = fc.property(flat, (object) => {
      fc.pre(Object.keys(object).length > 0);
      const members = readFlatObject(JSON.stringify(object, null, 1)) ?? new Map<string, string>();
      const values = [...members].map(([name, json]) => [name, JSON.parse(json) as unknown] as const);
      expect(Object.fromEntries(values)).toEqual(JSON.parse(JSON.stringify(object)));
    });
    fc.assert(property);
  });

  test("takes nothing that JSON.parse refuses", () => {
    const pieces = fc.constantFrom(
      "{",
      "}",
      '"a"',
      '"b"',
      ":",
      ",",
      "1",
      "-0",
      "1e5",
      "01",
      ".5",
      " ",
      "[",
      "true",
      '"\\x"',
    );
    const property = fc.property(fc.array(pieces, { maxLength: 9 }), (texts) => {
      const text = texts.join("");
      if (readFlatObject(text) !== undefined) expect(() => JSON.parse(text) as unknown).not.toThrow();
    });
    fc.assert(property, { numRuns: 5000 });
  });

  test("takes no time over what is long", () => {
    const beganMs = performance.now();
    for (const text of [`{"a":"${"x".repeat(65_000)}`, `{"${'\\"'.repeat(30_000)}`, `{"a"${" ".repeat(65_000)}`]) {
      expect(readFlatObject(text)).toBeUndefined();
    }
    expect(performance.now() - beganMs).toBeLessThan(100);
  });

  test("whole numbers have a size and one spelling", () => {
    const max = 2n ** 64n - 1n;
    for (const good of ["0", "7", "18446744073709551615"]) expect(isWholeNumber(good, max)).toBe(true);
    for (const bad of ["18446744073709551616", "-0", "7.0", "1e3", "07", '"7"', ""])
      expect(isWholeNumber(bad, max)).toBe(false);
  });
});

describe("readConfig", () => {
  test("an empty environment is the contract's defaults", () => {
    const config = readConfig({}, 3);
    expect(config).toMatchObject({
      port: 3000,
      workerThreads: 3,
      inferenceUrl: "http://127.0.0.1:9000",
      authToken: "",
    });
    expect(config).toMatchObject({ sessionsMax: 0, jobsMax: 0, drainTimeoutMs: 5000, flushPhaseJitterMs: 1000 });
    expect(config.session).toEqual({
      flushIntervalMs: 1000,
      startTimeoutMs: 10_000,
      inferenceTimeoutMs: 5000,
      bufferFramesMax: 500,
      overflowPolicy: "drop_oldest",
      outboxMessagesMax: 4,
      cpuPasses: 4,
    });
  });

  const bad = [
    ["PORT", "70000"],
    ["WORKER_THREADS", "0"],
    ["INFERENCE_URL", "https://localhost:9000"],
    ["INFERENCE_URL", "not a url"],
    ["FLUSH_INTERVAL_MS", "1.5"],
    ["MAX_SESSIONS", "-1"],
    ["OVERFLOW_POLICY", "Drop_Oldest"],
    ["CPU_PASSES", ""],
    ["OUTBOX_MESSAGES", "0x4"],
    ["READ_PACE_MS", "251"],
    ["DRAIN_TIMEOUT_MS", "5\nseconds"],
  ] as const;
  test.each(bad)("%s=%j is refused by one line that names it", (name, value) => {
    expect(() => readConfig({ [name]: value }, 1)).toThrow(ConfigError);
    expect(() => readConfig({ [name]: value }, 1)).toThrow(new RegExp(`^${name}=[^\\n]*$`));
  });

  test("the inference URL may have a path, and an IPv6 host", () => {
    expect(readConfig({ INFERENCE_URL: "http://[::1]:9000/v1/" }, 1).inferenceUrl).toBe("http://[::1]:9000/v1");
  });
});

describe("SharedLimit", () => {
  const limits = (sessionsMax: number) => new Shared(allocateShared(0), { sessionsMax, jobsMax: 0 });

  test("gives out its units and takes them back", () => {
    const { sessions } = limits(2);
    expect([sessions.tryAcquire(), sessions.tryAcquire(), sessions.tryAcquire()]).toEqual([true, true, false]);
    sessions.release();
    expect(sessions.inUse).toBe(1);
    expect(sessions.tryAcquire()).toBe(true);
  });

  test("0 is no limit", () => {
    const { sessions, jobs } = limits(0);
    for (let count = 0; count < 1000; count++) expect(sessions.tryAcquire() && jobs.tryAcquire()).toBe(true);
  });
});

test("metrics tell what was folded, by whichever thread", () => {
  const memory = allocateShared(COUNTERS);
  const threads = [1, 2].map(() => new Metrics(new Shared(memory, { sessionsMax: 0, jobsMax: 0 }).counters));
  for (const metrics of threads) {
    const tally = new Tally();
    Object.assign(tally, { frames: 51, partials: 1, deferral: "jobs", flushFrames: 51, flushLatenessMs: 0.7 });
    tally.inferenceMs = 9000;
    tally.countError("http_5xx");
    metrics.fold(tally);
    expect(tally).toEqual(new Tally());
  }
  const lines = threads[0]?.render(4, 5).split("\n");
  for (const line of [
    "stt_sessions 4",
    "stt_jobs_inflight 5",
    "stt_frames_total 102",
    "stt_partials_total 2",
    'stt_errors_total{stage="inference_request",kind="http_5xx"} 2',
    'stt_errors_total{stage="input_buffer",kind="overflow"} 0',
    'stt_ticks_deferred_total{reason="jobs"} 2',
    'stt_ticks_deferred_total{reason="outbox"} 0',
    'stt_buffer_frames_bucket{le="50"} 0',
    'stt_buffer_frames_bucket{le="55"} 2',
    "stt_buffer_frames_sum 102",
    'stt_flush_lateness_seconds_bucket{le="0.0005"} 0',
    'stt_flush_lateness_seconds_bucket{le="0.001"} 2',
    "stt_flush_lateness_seconds_sum 0.0014",
    'stt_inference_seconds_bucket{le="5"} 0',
    'stt_inference_seconds_bucket{le="+Inf"} 2',
    "stt_inference_seconds_count 2",
  ]) {
    expect(lines).toContain(line);
  }
  expect(lines?.filter((line) => line.startsWith("stt_errors_total"))).toHaveLength(FAILURE_KINDS.length);
});

test("the start line is one JSON object with versions", () => {
  const line = startLine(3000, 2);
  expect(line).not.toContain("unknown");
  expect(JSON.parse(line)).toMatchObject({ gateway: "ts-bun", runtime: `bun ${Bun.version}` });
});
