/**
 * A session without I/O: frames, times and answers go in, requests and messages come out.
 *
 * It has no clock, no socket and no timer of its own, so every rule of the contract can be tested with a simulated
 * clock. The gateway's end of it is `connection.ts`.
 */

import type { SessionSettings } from "../config.ts";
import { type Failure, overflowed, timedOut } from "../failure.ts";
import {
  errorMessage,
  FRAME_BYTES,
  type Inference,
  isFailure,
  isStart,
  partialMessage,
  type Span,
} from "../messages.ts";
import { AudioBuffer } from "./audio-buffer.ts";
import { Outbox } from "./outbox.ts";
import { Schedule } from "./schedule.ts";
import { type InFlight, type InferencePort, type Request, Slot } from "./slot.ts";
import type { StorePool } from "./store-pool.ts";
import { Tally } from "./tally.ts";

/** Why the gateway ends a session, as WebSocket close codes. */
export const CLOSE = { goingAway: 1001, protocol: 1002, frameSize: 1003, internal: 1011, overflow: 1013 } as const;

export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE];

type Phase =
  | { readonly name: "awaiting-start"; readonly untilMs: number }
  | { readonly name: "streaming"; readonly schedule: Schedule }
  /** No more flushes and no more frames; only what is in flight is still owed, and that not for ever. */
  | { readonly name: "draining"; readonly untilMs: number };

/** One session. Where a method returns a close code, the session is over and is to be closed with it. */
export class Session<R extends Request> {
  readonly outbox = new Outbox();
  readonly tally = new Tally();
  readonly #settings: SessionSettings;
  readonly #pool: StorePool;
  readonly #jitterMs: number;
  readonly #audio: AudioBuffer;
  readonly #slot: Slot<R>;
  #phase: Phase;

  constructor(settings: SessionSettings, pool: StorePool, port: InferencePort<R>, jitterMs: number, nowMs: number) {
    this.#settings = settings;
    this.#pool = pool;
    this.#jitterMs = jitterMs;
    this.#audio = new AudioBuffer(settings.overflowPolicy, settings.bufferFramesMax, pool);
    this.#slot = new Slot(port);
    this.#phase = { name: "awaiting-start", untilMs: nowMs + settings.startTimeoutMs };
  }

  /** Frames that wait for the next flush. */
  get bufferFrames(): number {
    return this.#audio.frames;
  }

  /** A text message: the start, once. */
  onText(nowMs: number, text: string): CloseCode | undefined {
    if (this.#phase.name === "draining") return undefined;
    if (this.#phase.name === "streaming" || !isStart(text)) return CLOSE.protocol;
    this.#phase = { name: "streaming", schedule: new Schedule(nowMs + this.#jitterMs, this.#settings.flushIntervalMs) };
    return undefined;
  }

  /** A binary message: a frame, after the start. */
  onBinary(nowMs: number, payload: Uint8Array): CloseCode | undefined {
    if (this.#phase.name !== "streaming") return this.#phase.name === "draining" ? undefined : CLOSE.protocol;
    if (payload.length !== FRAME_BYTES) return CLOSE.frameSize;
    const pushed = this.#audio.push(nowMs, payload);
    if (pushed === "refused") return CLOSE.overflow;
    if (pushed === "dropped") this.tally.framesDropped++;
    this.tally.frames++;
    return undefined;
  }

  /** When {@link onWake} is due. */
  get wakeAtMs(): number {
    const phaseMs = this.#phase.name === "streaming" ? this.#phase.schedule.nextMs : this.#phase.untilMs;
    return Math.min(phaseMs, this.#slot.inFlight?.deadlineMs ?? Number.POSITIVE_INFINITY);
  }

  /** Does what is due: gives up the request, ends the wait for the start or the drain, ticks. */
  onWake(nowMs: number): CloseCode | undefined {
    const inFlight = this.#slot.inFlight;
    if (inFlight !== undefined && inFlight.deadlineMs <= nowMs) {
      inFlight.request.cancel();
      this.onAnswer(nowMs, inFlight.request, timedOut());
    }
    const phase = this.#phase;
    if (phase.name === "streaming") {
      const dueMs = phase.schedule.takeDue(nowMs);
      if (dueMs !== undefined) this.#tick(nowMs, nowMs - dueMs);
      return undefined;
    }
    if (nowMs < phase.untilMs) return undefined;
    return phase.name === "draining" ? CLOSE.goingAway : CLOSE.protocol;
  }

  /** A request has ended. Heard only if it is the one in flight. */
  onAnswer(nowMs: number, request: R, answer: Inference | Failure): void {
    const inFlight = this.#slot.settle(request);
    if (inFlight === undefined) return;
    const elapsedMs = nowMs - inFlight.sentAtMs;
    this.tally.inferenceMs = elapsedMs;
    if (isFailure(answer)) {
      // The transport may still hold the samples of a request that failed, so their store is not used again.
      this.#report(nowMs, answer, inFlight.span, inFlight.flushLatenessMs, elapsedMs);
      return;
    }
    this.#pool.release(inFlight.batch.store);
    this.tally.partials++;
    this.outbox.push(partialMessage(inFlight.span, answer, this.#settings, inFlight.flushLatenessMs));
  }

  /** The gateway shuts down: from now on only the request in flight is answered, if that comes before `untilMs`. */
  drain(untilMs: number): void {
    this.#phase = { name: "draining", untilMs };
  }

  /** Whether a draining session owes nothing any more. */
  get isDrained(): boolean {
    return this.#phase.name === "draining" && this.#slot.inFlight === undefined && this.outbox.unsent === 0;
  }

  /** The client is gone, or will be: gives up the request and the audio. */
  end(): void {
    const inFlight: InFlight<R> | undefined = this.#slot.inFlight;
    if (inFlight !== undefined) {
      inFlight.request.cancel();
      this.#slot.settle(inFlight.request);
    }
    this.#audio.discard();
  }

  /** Names the dropped frames, then makes one request of the whole buffer, unless something is in the way. */
  #tick(nowMs: number, latenessMs: number): void {
    const audio = this.#audio;
    if (!audio.isWaiting) return;
    if (this.#slot.inFlight !== undefined) {
      this.tally.deferral = "inflight";
      return;
    }
    if (this.outbox.unsent >= this.#settings.outboxMessagesMax) {
      this.tally.deferral = "outbox";
      return;
    }
    // Older than the buffer and newer than the last batch, so this is their place in the order.
    const dropped = audio.takeDropped();
    if (dropped !== undefined) this.#report(nowMs, overflowed(), dropped, latenessMs, null);
    if (audio.frames === 0) return;
    const frames = audio.frames;
    const deadlineMs = nowMs + this.#settings.inferenceTimeoutMs;
    const begun = this.#slot.begin(() => audio.take(), nowMs, deadlineMs, latenessMs);
    if (begun === "begun") {
      this.tally.flushFrames = frames;
      this.tally.flushLatenessMs = latenessMs;
    } else {
      this.tally.deferral = begun;
    }
  }

  /** Names frames that will have no transcript; only ever while nothing older is in flight. */
  #report(
    nowMs: number,
    failure: Failure,
    span: Span,
    flushLatenessMs: number,
    inferenceElapsedMs: number | null,
  ): void {
    this.tally.countError(failure.kind);
    const inflightBatches = this.#slot.inFlightInGateway;
    const bufferFrames = this.#audio.frames;
    this.outbox.push(
      errorMessage(failure, { span, nowMs, flushLatenessMs, inferenceElapsedMs, inflightBatches, bufferFrames }),
    );
  }
}
