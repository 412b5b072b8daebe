/** Memory for audio, used again and again: nothing is allocated for a flush, so the collector has nothing to do. */

import { FRAME_BYTES } from "../messages.ts";

/** Room for frames and for the times of their arrival. */
export class FrameStore {
  readonly capacity: number;
  readonly pcm: Uint8Array;
  readonly arrivalsMs: Float64Array;

  /** Not cleared: what is read was written before. */
  constructor(capacity: number) {
    this.capacity = capacity;
    this.pcm = Buffer.allocUnsafeSlow(capacity * FRAME_BYTES);
    this.arrivalsMs = new Float64Array(capacity);
  }

  /** `frames` frames from place `head` on, around the ring's end; a view where they lie in one piece, else a copy. */
  read(head: number, frames: number): Uint8Array {
    const start = head * FRAME_BYTES;
    const bytes = frames * FRAME_BYTES;
    if (head + frames <= this.capacity) return this.pcm.subarray(start, start + bytes);
    const tail = this.pcm.subarray(start);
    return Buffer.concat([tail, this.pcm.subarray(0, bytes - tail.length)], bytes);
  }

  /** Copies a ring that is full, beginning at place `head`, to the front of this store. */
  fillFrom(full: FrameStore, head: number): void {
    this.pcm.set(full.read(head, full.capacity));
    this.arrivalsMs.set(full.arrivalsMs.subarray(head));
    this.arrivalsMs.set(full.arrivalsMs.subarray(0, head), full.capacity - head);
  }
}

/**
 * The stores of a worker that nobody uses, all of the capacity that one flush interval fills. Larger ones, of sessions
 * whose flush was deferred, are left to the collector.
 */
export class StorePool {
  readonly #capacity: number;
  readonly #idleMax: number;
  readonly #idle: FrameStore[] = [];

  constructor(capacity: number, idleMax: number) {
    this.#capacity = capacity;
    this.#idleMax = idleMax;
  }

  get idle(): number {
    return this.#idle.length;
  }

  /** A store for a session that may buffer up to `framesMax` frames. */
  acquire(framesMax: number): FrameStore {
    const capacity = Math.min(this.#capacity, framesMax);
    return (capacity === this.#capacity ? this.#idle.pop() : undefined) ?? new FrameStore(capacity);
  }

  /** A store twice as large with the content of one that is full, whose oldest frame is at `head`. */
  grow(full: FrameStore, head: number, framesMax: number): FrameStore {
    const larger = new FrameStore(Math.min(full.capacity * 2, framesMax));
    larger.fillFrom(full, head);
    this.release(full);
    return larger;
  }

  /** Takes back a store that nobody reads any more. */
  release(store: FrameStore): void {
    if (store.capacity === this.#capacity && this.#idle.length < this.#idleMax) this.#idle.push(store);
  }
}
