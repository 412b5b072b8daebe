/**
 * What all workers of the gateway share: memory, and nothing but.
 *
 * Limits hold, and metrics add up, for the whole gateway without a message between threads, so a session can be admitted
 * or refused at once.
 */

/** Where the gateway is in its life. */
export type Stage = "starting" | "serving" | "draining";

const STAGES: readonly Stage[] = ["starting", "serving", "draining"];

const STAGE_CELL = 0;
const SESSIONS_CELL = 1;
const JOBS_CELL = 2;
const CELLS = 3;

/** The most that a cell counts to; a limit above it is none. */
const CELL_MAX = 2 ** 31 - 1;

/** A counter with a ceiling, exact across threads. */
export class SharedLimit {
  readonly #cells: Int32Array;
  readonly #cell: number;
  readonly #max: number;

  /** A `max` of 0 is no limit. */
  constructor(cells: Int32Array, cell: number, max: number) {
    this.#cells = cells;
    this.#cell = cell;
    this.#max = max === 0 ? CELL_MAX : Math.min(max, CELL_MAX);
  }

  get inUse(): number {
    return Atomics.load(this.#cells, this.#cell);
  }

  /** Takes a unit, unless all are taken. To be given back with {@link release}. */
  tryAcquire(): boolean {
    // Not "add, look, subtract": a refused thread would for a moment stand in the way of one that has room.
    for (;;) {
      const inUse = this.inUse;
      if (inUse >= this.#max) return false;
      if (Atomics.compareExchange(this.#cells, this.#cell, inUse, inUse + 1) === inUse) return true;
    }
  }

  release(): void {
    Atomics.sub(this.#cells, this.#cell, 1);
  }
}

/** The memory itself, as it is handed to a worker. */
export interface SharedMemory {
  readonly cells: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
}

export function allocateShared(counters: number): SharedMemory {
  return {
    cells: new SharedArrayBuffer(CELLS * Int32Array.BYTES_PER_ELEMENT),
    counters: new SharedArrayBuffer(counters * BigInt64Array.BYTES_PER_ELEMENT),
  };
}

/** One thread's view of the shared memory. */
export class Shared {
  readonly sessions: SharedLimit;
  readonly jobs: SharedLimit;
  readonly counters: BigInt64Array;
  readonly #cells: Int32Array;

  constructor(memory: SharedMemory, limits: { readonly sessionsMax: number; readonly jobsMax: number }) {
    this.#cells = new Int32Array(memory.cells);
    this.counters = new BigInt64Array(memory.counters);
    this.sessions = new SharedLimit(this.#cells, SESSIONS_CELL, limits.sessionsMax);
    this.jobs = new SharedLimit(this.#cells, JOBS_CELL, limits.jobsMax);
  }

  get stage(): Stage {
    return STAGES[Atomics.load(this.#cells, STAGE_CELL)] ?? "draining";
  }

  set stage(stage: Stage) {
    Atomics.store(this.#cells, STAGE_CELL, STAGES.indexOf(stage));
  }
}
