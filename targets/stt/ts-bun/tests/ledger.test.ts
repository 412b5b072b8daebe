/** Random histories of a session: every frame that was accepted is named exactly once, in order. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { badAnswer, badStatus, connectionLost } from "../src/failure.ts";
import { SETTINGS, Simulation } from "./support/simulation.ts";

const FAILURES = [undefined, badStatus(503), badAnswer("garbage"), connectionLost("reset")];

/** Something that happens to a session. */
type Happening =
  | { readonly frames: number }
  | { readonly passesMs: number }
  | { readonly answers: (typeof FAILURES)[number] }
  | { readonly areJobsFree: boolean }
  | { readonly doesClientRead: boolean };

const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ frames: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 4, arbitrary: fc.record({ passesMs: fc.integer({ min: 0, max: 1500 }) }) },
  { weight: 3, arbitrary: fc.record({ answers: fc.constantFrom(...FAILURES) }) },
  { weight: 1, arbitrary: fc.record({ areJobsFree: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ doesClientRead: fc.boolean() }) },
);

function apply(simulation: Simulation, it: Happening): void {
  if ("frames" in it) simulation.send(it.frames);
  else if ("passesMs" in it) simulation.runUntil(simulation.nowMs - simulation.startMs + it.passesMs);
  else if ("answers" in it) simulation.answer(it.answers);
  else Object.assign(simulation, it);
  simulation.read();
}

const changes = fc.record({
  bufferFramesMax: fc.integer({ min: 1, max: 60 }),
  outboxMessagesMax: fc.integer({ min: 1, max: 4 }),
  overflowPolicy: fc.constantFrom("drop_oldest" as const, "drop_newest" as const),
});

/** Lets everything through that still waits. */
function settle(simulation: Simulation): void {
  simulation.areJobsFree = true;
  simulation.doesClientRead = true;
  for (let flush = 0; flush < 4; flush++) {
    simulation.read();
    simulation.runUntil(simulation.nowMs - simulation.startMs + 2 * SETTINGS.flushIntervalMs);
    simulation.answer();
  }
}

/** Checks that messages name frames 1 to `frames`, each once, in order; tells how many of them as dropped. */
function expectNamedInOrder(simulation: Simulation, frames: number): number {
  let next = 1;
  let overflowed = 0;
  for (const { kind, oldest, newest } of simulation.named) {
    expect(oldest).toBe(next);
    expect(newest).toBeGreaterThanOrEqual(oldest);
    next = newest + 1;
    if (kind === "overflow") overflowed += newest - oldest + 1;
  }
  expect(next).toBe(frames + 1);
  return overflowed;
}

test("every accepted frame is named exactly once, in order, and sent with its own samples", () => {
  const property = fc.property(fc.array(happening, { maxLength: 120 }), changes, (history, settings) => {
    const simulation = new Simulation(settings);
    const { session } = simulation;
    const sent: number[] = [];
    let dropped = 0;
    for (const event of history) {
      const before = simulation.inFlight;
      apply(simulation, event);
      const { inFlight } = simulation;
      if (inFlight !== undefined && inFlight !== before) sent.push(...inFlight.frames);
      dropped += session.tally.framesDropped;
      session.tally.clear();
      expect(session.bufferFrames).toBeLessThanOrEqual(settings.bufferFramesMax);
      // An error for what was dropped may come on top, and the answer to what is in flight.
      expect(session.outbox.unsent).toBeLessThanOrEqual(settings.outboxMessagesMax + 1);
    }
    settle(simulation);
    expect(expectNamedInOrder(simulation, simulation.framesSent)).toBe(dropped);
    expect(sent).toEqual([...new Set(sent)].sort((one, other) => one - other));
  });
  fc.assert(property, { numRuns: 300 });
});
