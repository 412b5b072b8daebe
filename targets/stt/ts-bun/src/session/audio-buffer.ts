/** The audio that waits for the next flush, and what becomes of it when it is too much. */

import { FRAME_BYTES, type Span } from "../messages.ts";
import type { FrameStore, StorePool } from "./store-pool.ts";

/** What to do with a frame when the buffer is full: drop the oldest buffered one, drop this one, or end the session. */
export type OverflowPolicy = "drop_oldest" | "drop_newest" | "close";

/** What became of a frame: kept; one was dropped and will be reported; not accepted, the session shall be closed. */
export type Pushed = "kept" | "dropped" | "refused";

/** A buffer's whole content, on its way out. */
export interface Batch {
  readonly span: Span;
  /** The samples, one frame after the other. */
  readonly pcm: Uint8Array;
  /** Where `pcm` lies. To be released when nobody reads it any more. */
  readonly store: FrameStore;
}

/**
 * Numbers the frames of a session and holds those that wait, in a ring.
 *
 * Frames leave in the order of their numbers, in up to three contiguous ranges: dropped before the buffer, buffered,
 * dropped after it. `drop_oldest` makes only drops of the first kind. Those of `drop_newest` first fall behind the
 * buffer, and are before it once it has been taken.
 */
export class AudioBuffer {
  readonly #policy: OverflowPolicy;
  readonly #framesMax: number;
  readonly #pool: StorePool;
  /** None while nothing is buffered: a session that is silent holds no audio buffer. */
  #store: FrameStore | undefined;
  /** Place of the oldest frame in the ring. */
  #head = 0;
  #frames = 0;
  #nextSeq = 1;
  #droppedBefore: Span | undefined;
  #droppedAfter: Span | undefined;

  constructor(policy: OverflowPolicy, framesMax: number, pool: StorePool) {
    this.#policy = policy;
    this.#framesMax = framesMax;
    this.#pool = pool;
  }

  /** Frames that wait. */
  get frames(): number {
    return this.#frames;
  }

  /** Whether a tick would find anything to send or to report. */
  get isWaiting(): boolean {
    return this.#frames > 0 || this.#droppedBefore !== undefined;
  }

  /** Takes in the next frame. Its bytes are copied. */
  push(nowMs: number, frame: Uint8Array): Pushed {
    const full = this.#frames === this.#framesMax;
    if (full) {
      if (this.#policy === "close") return "refused";
      if (this.#policy === "drop_newest") {
        this.#droppedAfter = extended(this.#droppedAfter, this.#nextSeq, nowMs);
        this.#nextSeq++;
        return "dropped";
      }
      this.#dropOldest();
    }
    const store = this.#storeWithRoom();
    let place = this.#head + this.#frames;
    if (place >= store.capacity) place -= store.capacity;
    store.pcm.set(frame, place * FRAME_BYTES);
    store.arrivalsMs[place] = nowMs;
    this.#frames++;
    this.#nextSeq++;
    return full ? "dropped" : "kept";
  }

  /** The dropped frames that come before the buffered ones. They are reported before {@link take}. */
  takeDropped(): Span | undefined {
    const dropped = this.#droppedBefore;
    this.#droppedBefore = undefined;
    return dropped;
  }

  /** Takes the whole buffer, which must hold something, and whose older drops must have been taken. */
  take(): Batch {
    const store = this.#store;
    if (store === undefined || this.#droppedBefore !== undefined) throw new Error("nothing to take yet");
    const frames = this.#frames;
    const oldestSeq = this.#oldestSeq();
    const span: Span = {
      oldestSeq,
      newestSeq: oldestSeq + frames - 1,
      oldestAtMs: store.arrivalsMs[this.#head] ?? 0,
      newestAtMs: store.arrivalsMs[(this.#head + frames - 1) % store.capacity] ?? 0,
    };
    const pcm = store.read(this.#head, frames);
    this.#store = undefined;
    this.#head = 0;
    this.#frames = 0;
    this.#droppedBefore = this.#droppedAfter;
    this.#droppedAfter = undefined;
    return { span, pcm, store };
  }

  /** Gives up what waits: the session has ended. */
  discard(): void {
    if (this.#store !== undefined) this.#pool.release(this.#store);
    this.#store = undefined;
    this.#head = 0;
    this.#frames = 0;
  }

  #oldestSeq(): number {
    const after = this.#droppedAfter;
    return (after === undefined ? this.#nextSeq : after.oldestSeq) - this.#frames;
  }

  #dropOldest(): void {
    const receivedMs = this.#store?.arrivalsMs[this.#head] ?? 0;
    this.#droppedBefore = extended(this.#droppedBefore, this.#oldestSeq(), receivedMs);
    this.#head = (this.#head + 1) % (this.#store?.capacity ?? 1);
    this.#frames--;
  }

  /** The store, made or made larger where there is no room for one more frame. */
  #storeWithRoom(): FrameStore {
    const store = this.#store;
    if (store === undefined) {
      this.#store = this.#pool.acquire(this.#framesMax);
      return this.#store;
    }
    if (this.#frames < store.capacity) return store;
    const larger = this.#pool.grow(store, this.#head, this.#framesMax);
    this.#head = 0;
    this.#store = larger;
    return larger;
  }
}

/** A range of dropped frames, longer by the one that follows it. */
function extended(dropped: Span | undefined, seq: number, receivedMs: number): Span {
  if (dropped === undefined) return { oldestSeq: seq, newestSeq: seq, oldestAtMs: receivedMs, newestAtMs: receivedMs };
  return { ...dropped, newestSeq: seq, newestAtMs: receivedMs };
}
