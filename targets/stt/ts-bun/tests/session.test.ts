/** The rules of a session, one by one, under a simulated clock. */

import { describe, expect, test } from "bun:test";
import { badStatus } from "../src/failure.ts";
import { FRAME_BYTES } from "../src/messages.ts";
import { CLOSE } from "../src/session/session.ts";
import { JITTER_MS, Simulation } from "./support/simulation.ts";

describe("the start", () => {
  test("nothing else opens a session", () => {
    const fresh = () => new Simulation({}, { isStarted: false });
    const { session, nowMs } = fresh();
    expect(session.onText(nowMs, "{}")).toBe(CLOSE.protocol);
    expect(fresh().session.onBinary(nowMs, new Uint8Array(FRAME_BYTES))).toBe(CLOSE.protocol);
  });

  test("is waited for until START_TIMEOUT_MS", () => {
    const late = new Simulation({ startTimeoutMs: 700 }, { isStarted: false });
    expect(late.runUntil(699)).toBeUndefined();
    expect(late.runUntil(700)).toBe(CLOSE.protocol);
  });

  test("comes once, and only frames are welcome after it", () => {
    const { session, nowMs } = new Simulation();
    expect(session.onText(nowMs, '{"type":"start"}')).toBe(CLOSE.protocol);
    for (const bytes of [0, 1, 639, 641, 1280]) {
      expect(session.onBinary(nowMs, new Uint8Array(bytes))).toBe(CLOSE.frameSize);
    }
    expect(session.onBinary(nowMs, new Uint8Array(FRAME_BYTES))).toBeUndefined();
  });
});

describe("the flush", () => {
  test("keeps its absolute schedule, and tells its lateness", () => {
    const simulation = new Simulation();
    const { session, startMs } = simulation;
    simulation.send(3);
    expect(session.wakeAtMs).toBe(startMs + 1000 + JITTER_MS);
    simulation.nowMs = startMs + 1307;
    session.onWake(simulation.nowMs);
    expect(simulation.answer()).toBe(true);
    expect(simulation.received[0]).toMatchObject({ flush_lateness_ms: 7, frames: 3 });
    expect(session.wakeAtMs).toBe(startMs + 2000 + JITTER_MS);
  });

  test("takes the whole buffer as one batch", () => {
    const simulation = new Simulation();
    simulation.send(50);
    simulation.runUntil(1300);
    expect(Simulation.numbersIn(simulation.inFlight?.pcm ?? new Uint8Array())).toEqual(
      Array.from({ length: 50 }, (_, place) => place + 1),
    );
  });

  test("of an empty buffer does nothing", () => {
    const simulation = new Simulation();
    simulation.runUntil(5000);
    expect(simulation.inFlight).toBeUndefined();
    expect(simulation.received).toEqual([]);
  });

  test("waits for the tick after the answer, never for the answer", () => {
    const simulation = new Simulation();
    simulation.send(1);
    simulation.runUntil(1300);
    simulation.send(2);
    simulation.runUntil(2300);
    expect(simulation.session.tally.deferral).toBe("inflight");
    simulation.answer();
    expect(simulation.inFlight).toBeUndefined();
    simulation.runUntil(3300);
    simulation.answer();
    expect(simulation.story).toEqual(["partial 1-1", "partial 2-3"]);
  });

  test("defers at the cap of the gateway", () => {
    const simulation = new Simulation();
    simulation.areJobsFree = false;
    simulation.send(1);
    simulation.runUntil(2300);
    expect(simulation.session.tally.deferral).toBe("jobs");
    simulation.areJobsFree = true;
    simulation.runUntil(3300);
    expect(simulation.answer()).toBe(true);
    expect(simulation.story).toEqual(["partial 1-1"]);
  });
});

describe("a request", () => {
  test("without an answer times out, is cancelled, and a late answer finds nothing", () => {
    const simulation = new Simulation();
    simulation.send(50);
    simulation.runUntil(1300 + 2499);
    expect(simulation.received).toEqual([]);
    const request = simulation.inFlight;
    simulation.runUntil(1300 + 2500);
    expect(simulation.received[0]).toMatchObject({
      kind: "timeout",
      retryable: true,
      inference_elapsed_ms: 2500,
      oldest_age_ms: 3800,
      inference_status: null,
    });
    expect(request?.isCancelled).toBe(true);
    expect(simulation.answer()).toBe(false);
  });

  test("that failed is named, and the session goes on", () => {
    const simulation = new Simulation();
    simulation.send(2);
    simulation.runUntil(1300);
    simulation.send(1);
    simulation.answer(badStatus(503));
    simulation.runUntil(2300);
    simulation.answer();
    expect(simulation.story).toEqual(["http_5xx 1-2", "partial 3-3"]);
    expect(simulation.received[0]).toMatchObject({
      gateway_buffer_frames: 1,
      inference_status: 503,
      audio_bytes: 1280,
    });
  });

  test("is given up when the session ends, and its memory is not used again", () => {
    const simulation = new Simulation();
    simulation.send(2);
    simulation.runUntil(1300);
    const request = simulation.inFlight;
    simulation.send(2);
    simulation.session.end();
    expect(request?.isCancelled).toBe(true);
    // Of the two stores only the one that was still being filled.
    expect(simulation.pool.idle).toBe(1);
  });
});

describe("overflow", () => {
  test("drop_oldest: drops are named after the batch before them", () => {
    const simulation = new Simulation({ bufferFramesMax: 5 });
    simulation.send(5);
    simulation.runUntil(1300);
    simulation.send(8);
    simulation.runUntil(2300);
    expect(simulation.received).toEqual([]);
    simulation.answer();
    simulation.runUntil(3300);
    simulation.answer();
    expect(simulation.story).toEqual(["partial 1-5", "overflow 6-8", "partial 9-13"]);
    const expected = {
      inference_elapsed_ms: null,
      inference_status: null,
      audio_bytes: 1920,
      gateway_buffer_frames: 5,
    };
    expect(simulation.received[1]).toMatchObject(expected);
  });

  test("drop_newest: what did not fit is named one flush later", () => {
    const simulation = new Simulation({ bufferFramesMax: 5, overflowPolicy: "drop_newest" });
    simulation.send(8);
    simulation.runUntil(1300);
    simulation.answer();
    simulation.send(1);
    simulation.runUntil(2300);
    simulation.answer();
    expect(simulation.story).toEqual(["partial 1-5", "overflow 6-8", "partial 9-9"]);
  });

  test("close: the frame too many closes, the last that fits does not", () => {
    const simulation = new Simulation({ bufferFramesMax: 5, overflowPolicy: "close" });
    expect(simulation.send(5)).toBeUndefined();
    expect(simulation.send(1)).toBe(CLOSE.overflow);
  });

  test("a client that does not read is left to the policy", () => {
    const simulation = new Simulation({ bufferFramesMax: 10, outboxMessagesMax: 2 });
    simulation.doesClientRead = false;
    for (const second of [1, 2, 3]) {
      simulation.send(1);
      simulation.runUntil(second * 1000 + JITTER_MS);
      simulation.answer();
    }
    expect(simulation.session.tally.deferral).toBe("outbox");
    simulation.send(12);
    expect(simulation.session.tally.framesDropped).toBe(3);
    simulation.doesClientRead = true;
    simulation.read();
    simulation.runUntil(4300);
    simulation.answer();
    expect(simulation.story).toEqual(["partial 1-1", "partial 2-2", "overflow 3-5", "partial 6-15"]);
  });
});

describe("a drain", () => {
  test("answers what is in flight, and no more", () => {
    const simulation = new Simulation();
    const { session } = simulation;
    simulation.send(2);
    simulation.runUntil(1300);
    simulation.send(2);
    session.drain(simulation.nowMs + 4000);
    expect(session.isDrained).toBe(false);
    expect(simulation.send(1)).toBeUndefined();
    simulation.doesClientRead = false;
    simulation.answer();
    expect(session.isDrained).toBe(false);
    simulation.doesClientRead = true;
    simulation.read();
    expect(session.isDrained).toBe(true);
    expect(simulation.story).toEqual(["partial 1-2"]);
  });

  test("does not wait for ever", () => {
    const simulation = new Simulation();
    simulation.send(2);
    simulation.runUntil(1300);
    simulation.session.drain(simulation.startMs + 2000);
    expect(simulation.runUntil(1999)).toBeUndefined();
    expect(simulation.runUntil(2000)).toBe(CLOSE.goingAway);
  });
});
