// MAX_SESSIONS and MAX_INFLIGHT_JOBS hold for the whole gateway. With one worker they are two counters; with
// more, the primary process counts and a worker asks it. A limit of 0 asks nobody.

export type Permit = "session" | "job";

/** Counts what was given out; the only place where a limit is decided. */
export class Ledger {
  readonly #max: Record<Permit, number>;
  readonly #given: Record<Permit, number> = { session: 0, job: 0 };

  constructor(maxSessions: number, maxJobs: number) {
    this.#max = { session: maxSessions, job: maxJobs };
  }

  take(permit: Permit): boolean {
    const max = this.#max[permit];
    if (max !== 0 && this.#given[permit] >= max) return false;
    this.#given[permit] += 1;
    return true;
  }

  give(permit: Permit): void {
    this.#given[permit] -= 1;
  }

  limits(permit: Permit): boolean {
    return this.#max[permit] !== 0;
  }
}

export interface Limits {
  /** Answers at once where it can, later where it must ask. */
  take(permit: Permit, done: (granted: boolean) => void): void;
  give(permit: Permit): void;
}

export function localLimits(ledger: Ledger): Limits {
  return { take: (permit, done) => done(ledger.take(permit)), give: (permit) => ledger.give(permit) };
}

export type ToPrimary =
  | { type: "take"; permit: Permit; id: number }
  | { type: "give"; permit: Permit }
  | { type: "scrape"; id: number }
  | { type: "snapshot"; id: number; snapshot: Record<string, number> };

export type ToWorker =
  | { type: "granted"; id: number; granted: boolean }
  | { type: "scrape"; id: number }
  | { type: "scraped"; id: number; snapshots: Record<string, number>[] }
  | { type: "drain" };

/** The worker's side: `ledger` only tells whether there is a limit at all. */
export class RemoteLimits implements Limits {
  readonly #ledger: Ledger;
  readonly #send: (message: ToPrimary) => void;
  readonly #asked = new Map<number, (granted: boolean) => void>();
  #id = 0;

  constructor(ledger: Ledger, send: (message: ToPrimary) => void) {
    this.#ledger = ledger;
    this.#send = send;
  }

  take(permit: Permit, done: (granted: boolean) => void): void {
    if (!this.#ledger.limits(permit)) {
      done(true);
      return;
    }
    this.#id += 1;
    this.#asked.set(this.#id, done);
    this.#send({ type: "take", permit, id: this.#id });
  }

  give(permit: Permit): void {
    if (this.#ledger.limits(permit)) this.#send({ type: "give", permit });
  }

  answered(id: number, granted: boolean): void {
    const done = this.#asked.get(id);
    this.#asked.delete(id);
    done?.(granted);
  }
}
