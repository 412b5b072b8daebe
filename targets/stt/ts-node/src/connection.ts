// One client: the session's core tied to its WebSocket, its timers and the inference client.

import type { WebSocket } from "ws";
import type { Config } from "./config.js";
import type { InferenceClient, Outcome } from "./inference.js";
import { isStart } from "./json.js";
import type { Limits } from "./limits.js";
import { errorMessage, type Failure, FRAME_BYTES, partialMessage, type Span } from "./messages.js";
import type { Metrics } from "./metrics.js";
import { type Batch, Session } from "./session.js";

export interface Shared {
  config: Config;
  metrics: Metrics;
  limits: Limits;
  inference: InferenceClient;
}

export class Connection {
  readonly #ws: WebSocket;
  readonly #shared: Shared;
  #session: Session | null = null;
  #timer: NodeJS.Timeout;
  #unsent = 0;
  #ended = false;
  #draining = false;
  readonly #sent = () => {
    this.#unsent -= 1;
  };

  constructor(ws: WebSocket, shared: Shared, onClosed: () => void) {
    this.#ws = ws;
    this.#shared = shared;
    this.#timer = setTimeout(() => this.close(1002, "no start"), shared.config.startTimeoutMs);
    ws.on("message", (data, isBinary) => this.#message(data as Buffer, isBinary));
    // A protocol violation: ws has closed the session by now, with a code of its own.
    ws.on("error", () => this.#end());
    ws.on("close", () => {
      this.#end();
      onClosed();
    });
  }

  close(code: number, reason: string): void {
    if (this.#ended) return;
    this.#ws.close(code, reason);
    this.#end();
  }

  /** Closes with 1001, after the answer to what is in flight. */
  drain(): void {
    this.#draining = true;
    if (!this.#session?.busy) this.close(1001, "going away");
  }

  #end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  #message(data: Buffer, isBinary: boolean): void {
    if (this.#ended) return;
    if (this.#session === null) {
      if (isBinary || !isStart(data.toString())) this.close(1002, "expected start");
      else this.#start();
      return;
    }
    if (!isBinary) this.close(1002, "unexpected text");
    else if (data.length !== FRAME_BYTES) this.close(1003, `a frame has ${FRAME_BYTES} bytes`);
    else this.#frame(this.#session, data);
  }

  #frame(session: Session, pcm: Buffer): void {
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
    // Rounded up, for Node cuts the fraction off and would fire before the tick is due.
    const delayMs = Math.max(0, Math.ceil(session.nextTickMs - performance.now()));
    this.#timer = setTimeout(() => {
      if (performance.now() >= session.nextTickMs) this.#tick(session);
      if (!this.#ended) this.#arm(session);
    }, delayMs);
  }

  #tick(session: Session): void {
    const { config, metrics, limits } = this.#shared;
    const tick = session.tick(performance.now(), config.outboxMessages - this.#unsent);
    if (tick.deferred !== null) metrics.deferred(tick.deferred);
    if (tick.dropped !== null) this.#nameDropped(session, tick.dropped);
    if (!tick.ready) return;
    limits.take("job", (granted) => {
      if (granted && !this.#ended) return this.#flush(session);
      if (granted) limits.give("job");
      else metrics.deferred("jobs");
      session.decline();
      if (this.#draining) this.close(1001, "going away");
    });
  }

  #flush(session: Session): void {
    const { metrics, limits, inference } = this.#shared;
    const batch = session.flush(performance.now());
    if (batch.dropped !== null) this.#nameDropped(session, batch.dropped);
    metrics.observe("stt_buffer_frames", batch.frames.length);
    metrics.observe("stt_flush_lateness_seconds", batch.latenessMs / 1000);
    metrics.add("stt_jobs_inflight");
    inference.infer(batch.frames, (outcome) => {
      metrics.add("stt_jobs_inflight", -1);
      limits.give("job");
      metrics.observe("stt_inference_seconds", outcome.elapsedMs / 1000);
      session.answered();
      this.#answer(session, batch, outcome);
    });
  }

  #answer(session: Session, batch: Batch, outcome: Outcome): void {
    if (this.#ended) return;
    if (outcome.failure === null) {
      this.#shared.metrics.add("stt_partials_total");
      this.#send(partialMessage(batch, outcome.answer, this.#shared.config));
    } else {
      this.#fail(session, batch, outcome.failure);
    }
    if (this.#draining) this.close(1001, "going away");
  }

  #nameDropped(session: Session, span: Span): void {
    const message = "the input buffer was full";
    this.#fail(session, span, {
      stage: "input_buffer",
      kind: "overflow",
      message,
      elapsedMs: null,
      status: null,
    });
  }

  #fail(session: Session, span: Span, failure: Failure): void {
    const { metrics } = this.#shared;
    metrics.error(failure.stage, failure.kind);
    const around = {
      nowMs: performance.now(),
      inflightBatches: metrics.jobsInflight,
      bufferFrames: session.bufferFrames,
    };
    this.#send(errorMessage(span, failure, around));
  }

  #send(text: string): void {
    // ws calls back when the kernel has taken the message: until then it counts against OUTBOX_MESSAGES.
    this.#unsent += 1;
    this.#ws.send(text, this.#sent);
  }
}
