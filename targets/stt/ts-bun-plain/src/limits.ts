/** MAX_SESSIONS and MAX_INFLIGHT_JOBS: counters in shared memory, exact for all workers together. */

import type { Config } from "./config.ts";

const SESSIONS = 0;
const JOBS = 1;

export class Limit {
  readonly #cells: Int32Array;
  readonly #cell: number;
  readonly #max: number;

  /** A `max` of 0 is no limit. */
  constructor(cells: Int32Array, cell: number, max: number) {
    this.#cells = cells;
    this.#cell = cell;
    this.#max = max === 0 ? Number.POSITIVE_INFINITY : max;
  }

  /** Takes a place, unless all are taken. To be given back with {@link give}. */
  take(): boolean {
    for (;;) {
      const taken = Atomics.load(this.#cells, this.#cell);
      if (taken >= this.#max) return false;
      if (Atomics.compareExchange(this.#cells, this.#cell, taken, taken + 1) === taken) return true;
    }
  }

  give(): void {
    Atomics.sub(this.#cells, this.#cell, 1);
  }
}

export interface Limits {
  readonly sessions: Limit;
  readonly jobs: Limit;
}

export function limitsMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
}

export function limitsOf(memory: SharedArrayBuffer, config: Pick<Config, "maxSessions" | "maxInflightJobs">): Limits {
  const cells = new Int32Array(memory);
  return {
    sessions: new Limit(cells, SESSIONS, config.maxSessions),
    jobs: new Limit(cells, JOBS, config.maxInflightJobs),
  };
}
