/** One client: the session's core tied to its WebSocket, its timer and the inference client. */

import type { ServerWebSocket } from "bun";
import type { Config } from "./config.ts";
import type { InferenceClient, Outcome } from "./inference.ts";
import { isStart } from "./json.ts";
import type { Limits } from "./limits.ts";
import { errorMessage, type Failure, FRAME_BYTES, partialMessage, type Span } from "./messages.ts";
import type { Metrics } from "./metrics.ts";
import { type Batch, Session } from "./session.ts";

/** What the connections of one worker have in common. */
export interface Shared {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly limits: Limits;
  readonly inference: InferenceClient;
}

/** Lies in `ws.data`, from where Bun's handlers call it. */
export class Connection {
  readonly #shared: Shared;
  #ws: ServerWebSocket<Connection> | null = null;
  #session: Session | null = null;
  #timer: Timer | undefined;
  /** Messages that the kernel has not taken yet. */
  #unsent = 0;
  #isDraining = false;

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  opened(ws: ServerWebSocket<Connection>): void {
    this.#ws = ws;
    this.#timer = setTimeout(() => this.close(1002, "no start"), this.#shared.config.startTimeoutMs);
  }

  message(data: string | Uint8Array): void {
    if (this.#ws === null) return;
    if (this.#session === null) {
      if (typeof data === "string" && isStart(data)) this.#start();
      else this.close(1002, "expected start");
    } else if (typeof data === "string") {
      this.close(1002, "unexpected text");
    } else if (data.length !== FRAME_BYTES) {
      this.close(1003, `a frame has ${FRAME_BYTES} bytes`);
    } else {
      this.#frame(this.#session, data);
    }
  }

  /** The kernel takes bytes again. */
  drained(): void {
    if (this.#ws?.getBufferedAmount() === 0) this.#unsent = 0;
  }

  /** Closed, by whichever side, or gone. */
  closed(): void {
    this.#ws = null;
    clearTimeout(this.#timer);
  }

  close(code: number, reason: string): void {
    const ws = this.#ws;
    this.closed();
    ws?.close(code, reason);
  }

  /** Closes with 1001, after the answer to what is in flight. */
  drain(): void {
    this.#isDraining = true;
    if (this.#session?.isInflight !== true) this.close(1001, "going away");
  }

  #frame(session: Session, pcm: Uint8Array): void {
    const { metrics } = this.#shared;
    const offer = session.offer(pcm, performance.now());
    if (offer === "close") {
      this.close(1013, "input buffer full");
      return;
    }
    metrics.add("stt_frames_total");
    if (offer === "dropped") metrics.add("stt_frames_dropped_total");
  }

  #start(): void {
    clearTimeout(this.#timer);
    const { config } = this.#shared;
    this.#session = new Session({
      startMs: performance.now(),
      jitterMs: Math.random() * config.flushPhaseJitterMs,
      flushIntervalMs: config.flushIntervalMs,
      maxBufferFrames: config.maxBufferFrames,
      overflowPolicy: config.overflowPolicy,
    });
    this.#arm(this.#session);
  }

  #arm(session: Session): void {
    // Rounded up: timers count whole milliseconds, and one that is early would only have to be set again.
    const delayMs = Math.max(0, Math.ceil(session.nextTickMs - performance.now()));
    this.#timer = setTimeout(() => {
      if (performance.now() >= session.nextTickMs) this.#tick(session);
      if (this.#ws !== null) this.#arm(session);
    }, delayMs);
  }

  #tick(session: Session): void {
    const { config, metrics, limits } = this.#shared;
    const nowMs = performance.now();
    const { deferred, dropped, ready } = session.tick(nowMs, config.outboxMessages - this.#unsent);
    if (deferred !== null) metrics.deferred(deferred);
    if (dropped !== null) this.#nameDropped(session, dropped);
    // A draining session flushes no more.
    if (!ready || this.#isDraining) return;
    if (limits.jobs.take()) void this.#flush(session, nowMs);
    else metrics.deferred("jobs");
  }

  async #flush(session: Session, nowMs: number): Promise<void> {
    const { metrics, limits, inference } = this.#shared;
    const batch = session.flush(nowMs);
    metrics.observe("stt_buffer_frames", batch.frames.length);
    metrics.observe("stt_flush_lateness_seconds", batch.latenessMs / 1000);
    metrics.add("stt_jobs_inflight");
    const outcome = await inference.infer(batch.frames);
    metrics.add("stt_jobs_inflight", -1);
    limits.jobs.give();
    metrics.observe("stt_inference_seconds", outcome.elapsedMs / 1000);
    session.answered();
    this.#answer(session, batch, outcome);
  }

  #answer(session: Session, batch: Batch, { result }: Outcome): void {
    if (this.#ws === null) return;
    if (typeof result === "string") {
      this.#shared.metrics.add("stt_partials_total");
      this.#send(partialMessage(batch, result, this.#shared.config.cpuPasses));
    } else {
      this.#fail(session, batch, result);
    }
    if (this.#isDraining) this.close(1001, "going away");
  }

  #nameDropped(session: Session, span: Span): void {
    const message = "the input buffer was full";
    this.#fail(session, span, { kind: "overflow", message, elapsedMs: null, status: null });
  }

  #fail(session: Session, span: Span, failure: Failure): void {
    const { metrics } = this.#shared;
    metrics.error(failure.kind);
    const around = {
      nowMs: performance.now(),
      inflightBatches: metrics.total("stt_jobs_inflight"),
      bufferFrames: session.bufferFrames,
    };
    this.#send(errorMessage(span, failure, around));
  }

  #send(text: string): void {
    // -1: Bun holds a part of it, or all. It counts against OUTBOX_MESSAGES until nothing is held any more.
    if (this.#ws?.sendText(text) === -1) this.#unsent += 1;
  }
}
