/** The place for a session's one request. */

import type { Span } from "../messages.ts";
import type { Batch } from "./audio-buffer.ts";

/** A request that was sent. */
export interface Request {
  /** Gives it up: no answer will come, and the gateway's job is free again. Harmless once it was answered. */
  cancel(): void;
}

/** The way to the inference server. */
export interface InferencePort<R extends Request> {
  /** Requests in flight in the whole gateway. */
  readonly inFlight: number;
  /** Takes one of the gateway's jobs. False at the cap. */
  reserve(): boolean;
  /** Sends a batch in a job that was reserved; the answer goes to the session with the request that this returns. */
  send(pcm: Uint8Array): R;
}

/** A request in flight and the batch that it carries; whoever holds the one holds the other. */
export interface InFlight<R extends Request> {
  readonly request: R;
  readonly batch: Batch;
  readonly span: Span;
  readonly sentAtMs: number;
  readonly deadlineMs: number;
  readonly flushLatenessMs: number;
}

/**
 * Empty, or holding the request in flight.
 *
 * A session has no way to the inference server but this one: the port is private to the slot, the slot has one place,
 * and a request can only be made by filling it. "At most one in flight" is therefore not a rule that the session obeys,
 * but all that it can do.
 */
export class Slot<R extends Request> {
  readonly #port: InferencePort<R>;
  #inFlight: InFlight<R> | undefined;

  constructor(port: InferencePort<R>) {
    this.#port = port;
  }

  get inFlight(): Readonly<InFlight<R>> | undefined {
    return this.#inFlight;
  }

  /** Requests in flight in the whole gateway. */
  get inFlightInGateway(): number {
    return this.#port.inFlight;
  }

  /**
   * Sends the batch that `takeBatch` gives, if the slot is empty and the gateway has a job to spare; otherwise says what
   * is in the way, and `takeBatch` is not called.
   */
  begin(
    takeBatch: () => Batch,
    sentAtMs: number,
    deadlineMs: number,
    flushLatenessMs: number,
  ): "begun" | "inflight" | "jobs" {
    if (this.#inFlight !== undefined) return "inflight";
    if (!this.#port.reserve()) return "jobs";
    const batch = takeBatch();
    const request = this.#port.send(batch.pcm);
    this.#inFlight = { request, batch, span: batch.span, sentAtMs, deadlineMs, flushLatenessMs };
    return "begun";
  }

  /**
   * Empties the slot, if it is `request` that it holds. A request that was given up finds another in its place, or none.
   */
  settle(request: R): InFlight<R> | undefined {
    const inFlight = this.#inFlight;
    if (inFlight?.request !== request) return undefined;
    this.#inFlight = undefined;
    return inFlight;
  }
}
