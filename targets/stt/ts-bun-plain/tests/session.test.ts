/** The session's core with a simulated clock and no socket. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import type { OverflowPolicy } from "../src/config.ts";
import { Session, type Tick } from "../src/session.ts";

const PCM = new Uint8Array(640);
const ROOM = 4;

function session(overflowPolicy: OverflowPolicy = "drop_oldest", maxBufferFrames = 3): Session {
  return new Session({ startMs: 1000, jitterMs: 7, flushIntervalMs: 100, maxBufferFrames, overflowPolicy });
}

function offer(subject: Session, count: number, atMs = 1000): void {
  for (let index = 0; index < count; index += 1) subject.offer(PCM, atMs);
}

type Range = { readonly oldestSeq: number; readonly newestSeq: number };
const range = (span: Range | null): number[] | null => span && [span.oldestSeq, span.newestSeq];

test("the schedule is absolute: a late tick does not move the later ones", () => {
  const subject = session();
  expect(subject.nextTickMs).toBe(1107);
  subject.tick(1163, ROOM);
  expect(subject.nextTickMs).toBe(1207);
});

test("ticks that were missed are passed over", () => {
  const subject = session();
  subject.tick(1450, ROOM);
  expect(subject.nextTickMs).toBe(1507);
});

test("lateness is counted from the tick that was due", () => {
  const subject = session();
  offer(subject, 2);
  expect(subject.tick(1110, ROOM).ready).toBe(true);
  expect(subject.flush(1112.5).latenessMs).toBe(5.5);
});

test("a tick with nothing to say does nothing", () => {
  const subject = session();
  const nothing: Tick = { deferred: null, dropped: null, ready: false };
  expect(subject.tick(1107, 0)).toEqual(nothing);
});

test("one request is in flight: ticks defer until it is answered", () => {
  const subject = session();
  offer(subject, 1);
  expect(subject.tick(1107, ROOM).ready).toBe(true);
  subject.flush(1107);
  // Without audio there is nothing to defer.
  expect(subject.tick(1207, ROOM).deferred).toBeNull();
  offer(subject, 1);
  expect(subject.tick(1307, ROOM)).toEqual({ deferred: "inflight", dropped: null, ready: false });
  expect(() => subject.flush(1307)).toThrow();
  subject.answered();
  expect(subject.tick(1407, ROOM).ready).toBe(true);
  expect(range(subject.flush(1407))).toEqual([2, 2]);
});

test("a full outbox defers, and the audio waits", () => {
  const subject = session();
  offer(subject, 2);
  expect(subject.tick(1107, 0)).toEqual({ deferred: "outbox", dropped: null, ready: false });
  expect(subject.bufferFrames).toBe(2);
});

test("an outbox with room for one takes the drop, and defers the audio", () => {
  const subject = session();
  offer(subject, 5);
  const tick = subject.tick(1107, 1);
  expect([tick.deferred, range(tick.dropped), tick.ready]).toEqual(["outbox", [1, 2], false]);
});

test("drop_oldest names what it dropped before the batch", () => {
  const subject = session("drop_oldest");
  offer(subject, 5);
  expect(range(subject.tick(1107, ROOM).dropped)).toEqual([1, 2]);
  expect(range(subject.flush(1107))).toEqual([3, 5]);
});

test("drop_newest names what it dropped after the batch", () => {
  const subject = session("drop_newest");
  offer(subject, 5);
  expect(subject.tick(1107, ROOM).dropped).toBeNull();
  expect(range(subject.flush(1107))).toEqual([1, 3]);
  subject.answered();
  expect(range(subject.tick(1207, ROOM).dropped)).toEqual([4, 5]);
});

test("close refuses the frame that does not fit", () => {
  const subject = session("close");
  offer(subject, 3);
  expect(subject.offer(PCM, 1000)).toBe("close");
});

type Step =
  | { readonly offers: number }
  /** `isDeclined`: no job is free. `isLate`: the request stays in flight over this tick. */
  | { readonly room: number; readonly isDeclined: boolean; readonly isLate: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ offers: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ room: fc.integer({ min: 0, max: 3 }), isDeclined: fc.boolean(), isLate: fc.boolean() }),
);

/** Plays a history, lets the rest through, and returns the frames that were accepted and those named, in order. */
function play(subject: Session, steps: readonly Step[]): { accepted: number; named: number[] } {
  const named: number[] = [];
  let accepted = 0;
  let inflight: Range | null = null;
  const name = (span: Range | null): void => {
    for (let seq = span?.oldestSeq ?? 1; seq <= (span?.newestSeq ?? 0); seq += 1) named.push(seq);
  };
  const answer = (): void => {
    if (inflight === null) return;
    name(inflight);
    inflight = null;
    subject.answered();
  };
  const tick = (room: number, isDeclined: boolean): void => {
    const nowMs = subject.nextTickMs + (room % 2);
    const made = subject.tick(nowMs, room);
    expect(made.ready && inflight !== null).toBe(false);
    name(made.dropped);
    if (made.ready && !isDeclined) inflight = subject.flush(nowMs);
  };
  for (const made of steps) {
    if ("offers" in made) {
      for (let n = 0; n < made.offers; n += 1)
        accepted += subject.offer(PCM, subject.nextTickMs - 1) === "close" ? 0 : 1;
    } else {
      if (!made.isLate) answer();
      tick(made.room, made.isDeclined);
    }
  }
  for (let n = 0; n < 3; n += 1) {
    answer();
    tick(ROOM, false);
  }
  return { accepted, named };
}

test.each(["drop_oldest", "drop_newest", "close"] as const)(
  "ledger, %s: every accepted frame is named once, in order",
  (policy) => {
    const property = fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), (steps, size) => {
      const { accepted, named } = play(session(policy, size), steps);
      expect(named).toEqual(Array.from({ length: accepted }, (_, index) => index + 1));
    });
    fc.assert(property, { numRuns: 500, seed: 4 });
  },
);
