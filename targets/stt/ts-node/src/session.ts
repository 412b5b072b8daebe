// The session's core: schedule, buffer, ledger, overflow. Pure: no socket, no timer, the clock is passed in.

import type { OverflowPolicy } from "./config.js";
import type { Span } from "./messages.js";

export interface SessionOptions {
  startMs: number;
  jitterMs: number;
  flushIntervalMs: number;
  maxBufferFrames: number;
  overflowPolicy: OverflowPolicy;
}

export type Offer = "kept" | "dropped" | "close";
export type Deferral = "inflight" | "jobs" | "outbox";

export interface Batch extends Span {
  frames: Buffer[];
  /** Dropped since the tick, while permission was asked for: to be named before the batch. */
  dropped: Span | null;
}

/** What a tick asks its caller to do, in this order. */
export interface Tick {
  deferred: Deferral | null;
  /** Dropped frames to be named now. */
  dropped: Span | null;
  /** A batch is ready: call flush() or decline(). */
  ready: boolean;
}

interface Frame {
  pcm: Buffer;
  atMs: number;
}

export class Session {
  readonly #options: SessionOptions;
  #ticks = 1;
  #tickDueMs = 0;
  #lastSeq = 0;
  #buffer: Frame[] = [];
  // Frames dropped and not named yet: those older than the buffer, and those newer (drop_newest). Each is one
  // range, for nothing is kept between two drops on the same side.
  #before: Span | null = null;
  #behind: Span | null = null;
  // The one place for a request, from the tick that asks to its answer. No second request can stand here.
  #slot: "free" | "asking" | "inflight" = "free";

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get nextTickMs(): number {
    const { startMs, jitterMs, flushIntervalMs } = this.#options;
    return startMs + jitterMs + this.#ticks * flushIntervalMs;
  }

  get bufferFrames(): number {
    return this.#buffer.length;
  }

  get busy(): boolean {
    return this.#slot !== "free";
  }

  /** Takes the next frame, and the number that goes with it. */
  offer(pcm: Buffer, atMs: number): Offer {
    const { maxBufferFrames, overflowPolicy } = this.#options;
    const full = this.#buffer.length >= maxBufferFrames;
    if (full && overflowPolicy === "close") return "close";
    this.#lastSeq += 1;
    if (full && overflowPolicy === "drop_newest") {
      this.#behind = extended(this.#behind, this.#lastSeq, atMs);
      return "dropped";
    }
    this.#buffer.push({ pcm, atMs });
    if (!full) return "kept";
    const oldest = this.#buffer.shift() as Frame;
    this.#before = extended(this.#before, this.#lastSeq - this.#buffer.length, oldest.atMs);
    return "dropped";
  }

  /** Runs the tick that is due. `outboxRoom` is how many messages may be sent before the outbox is full. */
  tick(nowMs: number, outboxRoom: number): Tick {
    this.#tickDueMs = this.nextTickMs;
    const { startMs, jitterMs, flushIntervalMs } = this.#options;
    // Ticks that were missed are passed over; the later ones stay where they are.
    const passed = Math.floor((nowMs - startMs - jitterMs) / flushIntervalMs);
    this.#ticks = Math.max(this.#ticks, passed) + 1;

    const tick: Tick = { deferred: null, dropped: null, ready: false };
    const hasAudio = this.#buffer.length > 0;
    if (!hasAudio && this.#before === null) return tick;
    if (this.busy) return { ...tick, deferred: hasAudio ? "inflight" : null };
    let room = outboxRoom;
    if (this.#before !== null && room > 0) {
      tick.dropped = this.#takeBefore(nowMs);
      room -= 1;
    }
    if (!hasAudio) return tick;
    if (room <= 0) return { ...tick, deferred: "outbox" };
    this.#slot = "asking";
    tick.ready = true;
    return tick;
  }

  /** The whole buffer as one batch, which is in flight from now until answered(). */
  flush(nowMs: number): Batch {
    if (this.#slot !== "asking") throw new Error("flush() without a tick that was ready");
    const buffer = this.#buffer;
    this.#buffer = [];
    this.#slot = "inflight";
    const newestSeq = this.#behind === null ? this.#lastSeq : this.#behind.oldestSeq - 1;
    const dropped = this.#takeBefore(nowMs);
    this.#before = this.#behind;
    this.#behind = null;
    return {
      oldestSeq: newestSeq - buffer.length + 1,
      newestSeq,
      oldestAtMs: (buffer[0] as Frame).atMs,
      newestAtMs: (buffer.at(-1) as Frame).atMs,
      latenessMs: this.#latenessMs(nowMs),
      frames: buffer.map((frame) => frame.pcm),
      dropped,
    };
  }

  /** No request may start now: the audio waits for the next tick. */
  decline(): void {
    this.#slot = "free";
  }

  answered(): void {
    this.#slot = "free";
  }

  #latenessMs(nowMs: number): number {
    return Math.max(0, nowMs - this.#tickDueMs);
  }

  #takeBefore(nowMs: number): Span | null {
    const span = this.#before;
    if (span !== null) span.latenessMs = this.#latenessMs(nowMs);
    this.#before = null;
    return span;
  }
}

function extended(span: Span | null, seq: number, atMs: number): Span {
  if (span === null)
    return { oldestSeq: seq, newestSeq: seq, oldestAtMs: atMs, newestAtMs: atMs, latenessMs: 0 };
  span.newestSeq = seq;
  span.newestAtMs = atMs;
  return span;
}
