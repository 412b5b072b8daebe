/** What a session counted since it was last asked. */

import { FAILURE_KINDS, type FailureKind } from "../failure.ts";

/** Why a tick did nothing although audio was waiting. */
export const DEFERRALS = ["inflight", "jobs", "outbox"] as const;

export type Deferral = (typeof DEFERRALS)[number];

/** Folded into the metrics after every event but a frame, so each kind of measurement occurs at most once. */
export class Tally {
  frames = 0;
  framesDropped = 0;
  partials = 0;
  /** By place in {@link FAILURE_KINDS}. */
  readonly errors: number[] = FAILURE_KINDS.map(() => 0);
  errorsInAll = 0;
  deferral: Deferral | undefined;
  /** Of the flush that took place. */
  flushFrames = 0;
  flushLatenessMs = 0;
  /** Of the request that ended. */
  inferenceMs: number | undefined;

  countError(kind: FailureKind): void {
    const place = FAILURE_KINDS.indexOf(kind);
    this.errors[place] = (this.errors[place] ?? 0) + 1;
    this.errorsInAll++;
  }

  clear(): void {
    this.frames = 0;
    this.framesDropped = 0;
    this.partials = 0;
    if (this.errorsInAll > 0) this.errors.fill(0);
    this.errorsInAll = 0;
    this.deferral = undefined;
    this.flushFrames = 0;
    this.flushLatenessMs = 0;
    this.inferenceMs = undefined;
  }
}
