/** A session under a simulated clock, and the world around it. */

import type { SessionSettings } from "../../src/config.ts";
import type { Failure } from "../../src/failure.ts";
import { FRAME_BYTES, parseInference } from "../../src/messages.ts";
import { type CloseCode, Session } from "../../src/session/session.ts";
import type { Request } from "../../src/session/slot.ts";
import { StorePool } from "../../src/session/store-pool.ts";

export const SETTINGS: SessionSettings = {
  flushIntervalMs: 1000,
  startTimeoutMs: 10_000,
  inferenceTimeoutMs: 2500,
  bufferFramesMax: 500,
  overflowPolicy: "drop_oldest",
  outboxMessagesMax: 4,
  cpuPasses: 4,
};

export const JITTER_MS = 300;

const ANSWER = parseInference(
  '{"rms":1.5,"zero_crossings":2,"checksum":3,"samples":4,"transcript":"word","audio_bytes":5}',
);

/** A request that the world has not answered. */
export class SimulatedRequest implements Request {
  isCancelled = false;
  readonly pcm: Uint8Array;
  /** The numbers of the frames when it was sent. */
  readonly frames: readonly number[];

  constructor(pcm: Uint8Array) {
    this.pcm = pcm;
    this.frames = Simulation.numbersIn(pcm);
  }

  cancel(): void {
    this.isCancelled = true;
  }
}

/** What the client was told about a range of frames. */
export interface Named {
  readonly type: string;
  readonly kind: string;
  readonly oldest: number;
  readonly newest: number;
}

export type Message = Readonly<Record<string, unknown>>;

export class Simulation {
  nowMs = 5_000_000.25;
  areJobsFree = true;
  doesClientRead = true;
  framesSent = 0;
  readonly startMs = this.nowMs;
  readonly requests: SimulatedRequest[] = [];
  readonly received: Message[] = [];
  readonly session: Session<SimulatedRequest>;
  readonly pool: StorePool;
  #inSocket: string | undefined;

  constructor(changes: Partial<SessionSettings> = {}, { isStarted = true } = {}) {
    const settings = { ...SETTINGS, ...changes };
    // Smaller than many buffers here, so that growing and wrapping occur.
    this.pool = new StorePool(Math.min(8, settings.bufferFramesMax), 4);
    const port = {
      inFlight: 0,
      reserve: () => this.areJobsFree,
      send: (pcm: Uint8Array) => {
        const request = new SimulatedRequest(pcm);
        this.requests.push(request);
        return request;
      },
    };
    this.session = new Session(settings, this.pool, port, JITTER_MS, this.nowMs);
    if (isStarted && this.session.onText(this.nowMs, '{"type":"start"}') !== undefined) throw new Error("not started");
  }

  /** Sends frames whose samples tell their number; stops at a close code, and returns it. */
  send(frames: number): CloseCode | undefined {
    for (let count = 0; count < frames; count++) {
      const frame = Buffer.alloc(FRAME_BYTES);
      frame.writeUInt32LE(this.framesSent + 1);
      frame.writeUInt32LE(this.framesSent + 1, FRAME_BYTES - 4);
      const close = this.session.onBinary(this.nowMs, frame);
      if (close !== undefined) return close;
      this.framesSent++;
    }
    return undefined;
  }

  /** Lets time pass until `ms` after the start, waking the session whenever it wants to be woken. */
  runUntil(ms: number): CloseCode | undefined {
    const endMs = this.startMs + ms;
    while (this.session.wakeAtMs <= endMs) {
      this.nowMs = Math.max(this.nowMs, this.session.wakeAtMs);
      const close = this.session.onWake(this.nowMs);
      this.read();
      if (close !== undefined) return close;
    }
    this.nowMs = Math.max(this.nowMs, endMs);
    return undefined;
  }

  /** The request in flight, if any; that there is at most one is checked here, for every test. */
  get inFlight(): SimulatedRequest | undefined {
    const open = this.requests.filter((request) => !request.isCancelled);
    if (open.length > 1) throw new Error(`${open.length} requests in flight`);
    return open[0];
  }

  /** Ends the request in flight; false if there is none. */
  answer(failure?: Failure): boolean {
    const request = this.inFlight;
    if (request === undefined) return false;
    this.requests.splice(this.requests.indexOf(request), 1);
    // Its memory was nobody else's meanwhile.
    if (!Bun.deepEquals(Simulation.numbersIn(request.pcm), request.frames)) throw new Error("the samples have changed");
    this.session.onAnswer(this.nowMs, request, failure ?? ANSWER);
    this.read();
    return true;
  }

  /** The socket takes a message, and the client reads it, if it does; otherwise it stays in the socket. */
  read(): void {
    const { outbox } = this.session;
    for (;;) {
      this.#inSocket ??= outbox.next();
      if (this.#inSocket === undefined || !this.doesClientRead) return;
      this.received.push(JSON.parse(this.#inSocket) as Message);
      this.#inSocket = undefined;
      outbox.sent();
    }
  }

  /** The numbers that the frames of a batch carry in their first and last samples. */
  static numbersIn(pcm: Uint8Array): number[] {
    const view = Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    return Array.from({ length: pcm.length / FRAME_BYTES }, (_, place) => {
      const first = view.readUInt32LE(place * FRAME_BYTES);
      const last = view.readUInt32LE((place + 1) * FRAME_BYTES - 4);
      if (first !== last) throw new Error(`a frame of ${first} and ${last}`);
      return first;
    });
  }

  get named(): Named[] {
    return this.received.map((message) => ({
      type: String(message["type"]),
      kind: String(message["kind"] ?? ""),
      oldest: Number(message["oldest_frame_seq"]),
      newest: Number(message["newest_frame_seq"]),
    }));
  }

  /** The same, to be compared with a literal. */
  get story(): string[] {
    return this.named.map(({ type, kind, oldest, newest }) => `${kind || type} ${oldest}-${newest}`);
  }
}
