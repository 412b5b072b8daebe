/** The absolute schedule of a session's flushes: `origin + k * interval`, k = 1, 2, … */
export class Schedule {
  readonly #originMs: number;
  readonly #intervalMs: number;
  #k = 1;

  /** `originMs` is the session's start plus its jitter. */
  constructor(originMs: number, intervalMs: number) {
    this.#originMs = originMs;
    this.#intervalMs = intervalMs;
  }

  /** When the next tick is due. Computed from the origin, so a late tick moves no other. */
  get nextMs(): number {
    return this.#originMs + this.#k * this.#intervalMs;
  }

  /**
   * The time of the tick that is due, if one is, and on to the next. Ticks that `nowMs` is past as well are skipped: one
   * flush takes everything that they could have taken.
   */
  takeDue(nowMs: number): number | undefined {
    const dueMs = this.nextMs;
    if (nowMs < dueMs) return undefined;
    this.#k = Math.max(this.#k, Math.floor((nowMs - this.#originMs) / this.#intervalMs)) + 1;
    return dueMs;
  }
}
