// The session's core with a simulated clock and no socket.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { OverflowPolicy } from "../src/config.js";
import type { Span } from "../src/messages.js";
import { Session } from "../src/session.js";

const PCM = Buffer.alloc(640);
const ROOM = 4;

function session(overflowPolicy: OverflowPolicy = "drop_oldest", maxBufferFrames = 3): Session {
  return new Session({ startMs: 1000, jitterMs: 7, flushIntervalMs: 100, maxBufferFrames, overflowPolicy });
}

function offer(subject: Session, count: number, atMs = 1000): void {
  for (let index = 0; index < count; index += 1) subject.offer(PCM, atMs);
}

const range = (span: Span) => [span.oldestSeq, span.newestSeq];

test("the schedule is absolute: a late tick does not move the later ones", () => {
  const subject = session();
  assert.equal(subject.nextTickMs, 1107);
  subject.tick(1163, ROOM);
  assert.equal(subject.nextTickMs, 1207);
});

test("ticks that were missed are passed over", () => {
  const subject = session();
  subject.tick(1450, ROOM);
  assert.equal(subject.nextTickMs, 1507);
});

test("lateness is counted from the tick that was due", () => {
  const subject = session();
  offer(subject, 2);
  assert.equal(subject.tick(1110, ROOM).ready, true);
  assert.equal(subject.flush(1112.5).latenessMs, 5.5);
});

test("a tick with nothing to say does nothing", () => {
  const subject = session();
  assert.deepEqual(subject.tick(1107, 0), { deferred: null, dropped: null, ready: false });
});

test("one request is in flight: ticks defer until it is answered", () => {
  const subject = session();
  offer(subject, 1);
  assert.equal(subject.tick(1107, ROOM).ready, true);
  subject.flush(1107);
  assert.equal(subject.tick(1157, ROOM).deferred, null, "without audio there is nothing to defer");
  offer(subject, 1);
  assert.equal(subject.tick(1207, ROOM).deferred, "inflight");
  assert.throws(() => subject.flush(1207));
  subject.answered();
  assert.equal(subject.tick(1307, ROOM).ready, true);
  assert.deepEqual(range(subject.flush(1307)), [2, 2]);
});

test("a full outbox defers, and the audio waits", () => {
  const subject = session();
  offer(subject, 2);
  assert.equal(subject.tick(1107, 0).deferred, "outbox");
  assert.equal(subject.bufferFrames, 2);
});

test("a tick that is declined leaves the audio for the next one", () => {
  const subject = session();
  offer(subject, 2);
  assert.equal(subject.tick(1107, ROOM).ready, true);
  subject.decline();
  assert.equal(subject.tick(1207, ROOM).ready, true);
  assert.deepEqual(range(subject.flush(1207)), [1, 2]);
});

test("drop_oldest names what it dropped before the batch", () => {
  const subject = session("drop_oldest");
  offer(subject, 5);
  const tick = subject.tick(1107, ROOM);
  assert.deepEqual(tick.dropped && range(tick.dropped), [1, 2]);
  assert.deepEqual(range(subject.flush(1107)), [3, 5]);
});

test("drop_newest names what it dropped after the batch", () => {
  const subject = session("drop_newest");
  offer(subject, 5);
  assert.equal(subject.tick(1107, ROOM).dropped, null);
  assert.deepEqual(range(subject.flush(1107)), [1, 3]);
  subject.answered();
  const tick = subject.tick(1207, ROOM);
  assert.deepEqual(tick.dropped && range(tick.dropped), [4, 5]);
});

test("frames dropped while permission is asked for are named before the batch", () => {
  const subject = session("drop_oldest");
  offer(subject, 3);
  assert.equal(subject.tick(1107, ROOM).ready, true);
  offer(subject, 1);
  const batch = subject.flush(1108);
  assert.deepEqual(batch.dropped && range(batch.dropped), [1, 1]);
  assert.deepEqual(range(batch), [2, 4]);
});

test("close refuses the frame that does not fit", () => {
  const subject = session("close");
  offer(subject, 3);
  assert.equal(subject.offer(PCM, 1000), "close");
});

type Step =
  | { do: "offer"; count: number }
  | { do: "tick"; room: number; answer: "grant" | "decline" | "late" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("offer" as const), count: fc.integer({ min: 1, max: 9 }) }),
  fc.record({
    do: fc.constant("tick" as const),
    room: fc.integer({ min: 0, max: 3 }),
    answer: fc.constantFrom("grant" as const, "decline" as const, "late" as const),
  }),
);

/** Plays a history and returns how often each frame was named, in the order of the messages. */
function play(subject: Session, steps: readonly Step[]): { accepted: number; named: number[] } {
  const named: number[] = [];
  const name = (span: Span | null) => {
    for (let seq = span?.oldestSeq ?? 1; seq <= (span?.newestSeq ?? 0); seq += 1) named.push(seq);
  };
  let accepted = 0;
  let inflight: Span | null = null;
  let nowMs = 1000;
  const tick = (room: number, answer: "grant" | "decline" | "late") => {
    nowMs = subject.nextTickMs + (room % 2);
    // "late": the request stays in flight over this tick.
    if (inflight !== null && answer !== "late") {
      name(inflight);
      inflight = null;
      subject.answered();
    }
    const made = subject.tick(nowMs, room);
    assert.ok(!(made.ready && inflight !== null), "a second request");
    name(made.dropped);
    if (!made.ready) return;
    if (answer === "decline") return subject.decline();
    accepted += subject.offer(PCM, nowMs) === "close" ? 0 : 1; // while permission is asked for
    const batch = subject.flush(nowMs);
    name(batch.dropped);
    inflight = batch;
  };
  for (const made of steps) {
    if (made.do === "tick") tick(made.room, made.answer);
    else for (let n = 0; n < made.count; n += 1) accepted += subject.offer(PCM, nowMs) === "close" ? 0 : 1;
  }
  // What is in flight is answered; two flushes with room name the buffer, and what was dropped behind it.
  if (inflight !== null) {
    name(inflight);
    subject.answered();
  }
  for (let n = 0; n < 2; n += 1) {
    const made = subject.tick(subject.nextTickMs, ROOM);
    name(made.dropped);
    if (!made.ready) continue;
    name(subject.flush(nowMs));
    subject.answered();
  }
  return { accepted, named };
}

for (const policy of ["drop_oldest", "drop_newest", "close"] as const) {
  test(`ledger, ${policy}: every accepted frame is named once, in order`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), (steps, size) => {
        const { accepted, named } = play(session(policy, size), steps);
        assert.deepEqual(
          named,
          Array.from({ length: accepted }, (_, index) => index + 1),
        );
      }),
      { numRuns: 500, seed: 4 },
    );
  });
}
