/** Whether the event loop keeps up with what comes in. */

/** How often the pulse is taken. */
const BEAT_MS = 50;

/**
 * A loop that is this late is behind. Bun reads every socket that has something before any timer runs, so when frames come
 * faster than they can be read one turn of the loop takes seconds, and flushes, answers and time-outs wait for its end.
 */
const BEHIND_MS = 100;

/** A timer whose lateness is the loop's. */
export class Pulse {
  #dueMs = performance.now() + BEAT_MS;

  constructor() {
    const timer = setInterval(() => {
      this.#dueMs = performance.now() + BEAT_MS;
    }, BEAT_MS);
    timer.unref();
  }

  /** To be asked within a turn of the loop: whether that is already too long. */
  isBehind(nowMs: number): boolean {
    return nowMs - this.#dueMs > BEHIND_MS;
  }
}
