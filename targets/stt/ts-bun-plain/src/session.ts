/** A session's core: schedule, buffer, ledger, overflow. No socket and no timer; the clock is passed in. */

import type { OverflowPolicy } from "./config.ts";
import type { Span } from "./messages.ts";

export interface SessionOptions {
  readonly startMs: number;
  readonly jitterMs: number;
  readonly flushIntervalMs: number;
  readonly maxBufferFrames: number;
  readonly overflowPolicy: OverflowPolicy;
}

export type Offer = "kept" | "dropped" | "close";
export type Deferral = "inflight" | "jobs" | "outbox";

export interface Batch extends Span {
  readonly frames: readonly Uint8Array[];
}

/** What a tick asks its caller to do, in this order. */
export interface Tick {
  readonly deferred: Deferral | null;
  /** Dropped frames to be named now. */
  readonly dropped: Span | null;
  /** There is audio, and no request in flight: flush() may be called. */
  readonly ready: boolean;
}

interface Frame {
  readonly pcm: Uint8Array;
  readonly atMs: number;
}

/** Frames that were dropped, and not named yet. */
type Dropped = Omit<Span, "latenessMs">;

export class Session {
  readonly #options: SessionOptions;
  #ticks = 1;
  #tickDueMs = 0;
  #lastSeq = 0;
  #buffer: Frame[] = [];
  // Dropped frames older than the buffer, and newer ones (drop_newest). Each is one range, because nothing is kept
  // between two drops on the same side.
  #before: Dropped | null = null;
  #behind: Dropped | null = null;
  #isInflight = false;

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

  get isInflight(): boolean {
    return this.#isInflight;
  }

  /** Takes the next frame, and the number that goes with it. */
  offer(pcm: Uint8Array, atMs: number): Offer {
    const { maxBufferFrames, overflowPolicy } = this.#options;
    const isFull = this.#buffer.length >= maxBufferFrames;
    if (isFull && overflowPolicy === "close") return "close";
    this.#lastSeq += 1;
    if (isFull && overflowPolicy === "drop_newest") {
      this.#behind = extended(this.#behind, this.#lastSeq, atMs);
      return "dropped";
    }
    this.#buffer.push({ pcm, atMs });
    if (!isFull) return "kept";
    const oldestAtMs = this.#buffer.shift()?.atMs ?? atMs;
    this.#before = extended(this.#before, this.#lastSeq - this.#buffer.length, oldestAtMs);
    return "dropped";
  }

  /** Runs the tick that is due. `outboxRoom` is how many messages may be sent before the outbox is full. */
  tick(nowMs: number, outboxRoom: number): Tick {
    this.#tickDueMs = this.nextTickMs;
    const { startMs, jitterMs, flushIntervalMs } = this.#options;
    // Ticks that were missed are passed over; the later ones stay where they are.
    const passed = Math.floor((nowMs - startMs - jitterMs) / flushIntervalMs);
    this.#ticks = Math.max(this.#ticks, passed) + 1;

    const hasAudio = this.#buffer.length > 0;
    const before = this.#before;
    // A tick that finds no audio does not count as deferred.
    if (this.#isInflight) return { deferred: hasAudio ? "inflight" : null, dropped: null, ready: false };
    if (outboxRoom <= 0) return { deferred: hasAudio ? "outbox" : null, dropped: null, ready: false };
    this.#before = null;
    const dropped = before === null ? null : { ...before, latenessMs: this.#latenessMs(nowMs) };
    const isFull = dropped !== null && outboxRoom === 1;
    return { deferred: isFull && hasAudio ? "outbox" : null, dropped, ready: hasAudio && !isFull };
  }

  /** The whole buffer as one batch, which is in flight from now until answered(). */
  flush(nowMs: number): Batch {
    const [oldest, newest] = [this.#buffer[0], this.#buffer.at(-1)];
    if (this.#isInflight || oldest === undefined || newest === undefined)
      throw new Error("flush() without a ready tick");
    const frames = this.#buffer.map((frame) => frame.pcm);
    const newestSeq = this.#behind === null ? this.#lastSeq : this.#behind.oldestSeq - 1;
    this.#isInflight = true;
    this.#buffer = [];
    this.#before = this.#behind;
    this.#behind = null;
    return {
      oldestSeq: newestSeq - frames.length + 1,
      newestSeq,
      oldestAtMs: oldest.atMs,
      newestAtMs: newest.atMs,
      latenessMs: this.#latenessMs(nowMs),
      frames,
    };
  }

  answered(): void {
    this.#isInflight = false;
  }

  #latenessMs(nowMs: number): number {
    return Math.max(0, nowMs - this.#tickDueMs);
  }
}

function extended(range: Dropped | null, seq: number, atMs: number): Dropped {
  if (range === null) return { oldestSeq: seq, newestSeq: seq, oldestAtMs: atMs, newestAtMs: atMs };
  return { ...range, newestSeq: seq, newestAtMs: atMs };
}
