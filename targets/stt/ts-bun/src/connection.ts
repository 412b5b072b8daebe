/** The rim around a session: moves messages, answers and time between it and one WebSocket. */

import type { ServerWebSocket } from "bun";
import type { Config } from "./config.ts";
import type { Failure } from "./failure.ts";
import type { InferenceClient, InferenceRequest } from "./inference.ts";
import type { Inference } from "./messages.ts";
import type { Metrics } from "./metrics.ts";
import type { Pulse } from "./pulse.ts";
import { CLOSE, type CloseCode, Session } from "./session/session.ts";
import type { StorePool } from "./session/store-pool.ts";

/** What the sessions of one worker have in common. */
export interface WorkerContext {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly inference: InferenceClient;
  readonly pool: StorePool;
  readonly pulse: Pulse;
  /** Frames from which on a session is not read any further while the loop is behind. */
  readonly framesHeldAt: number;
}

export type Socket = ServerWebSocket<Connection>;

/** One client. Lies in `ws.data`, from where Bun's handlers call it. */
export class Connection {
  readonly #context: WorkerContext;
  readonly #session: Session<InferenceRequest>;
  #socket: Socket | undefined;
  /** The session's one timer: start timeout, ticks, request timeout, end of the drain. */
  #timer: Timer | undefined;
  #armedForMs = Number.NaN;
  #paceTimer: Timer | undefined;
  /** Whether the socket is left alone until the next flush, because the loop is behind. */
  #isHeld = false;
  #over = false;

  constructor(context: WorkerContext) {
    const { config, inference, pool } = context;
    const port = {
      get inFlight(): number {
        return inference.inFlight;
      },
      reserve: () => inference.reserve(),
      send: (pcm: Uint8Array) => inference.send(pcm, this.#onAnswer),
    };
    this.#context = context;
    this.#session = new Session(
      config.session,
      pool,
      port,
      Math.random() * config.flushPhaseJitterMs,
      performance.now(),
    );
  }

  onOpen(socket: Socket): void {
    this.#socket = socket;
    this.#arm();
  }

  /** The hot path: fifty times a second for each session. */
  onMessage(message: string | Uint8Array): void {
    if (this.#over) return;
    const nowMs = performance.now();
    if (typeof message === "string") {
      this.#closeWith(this.#session.onText(nowMs, message));
      this.#arm();
    } else {
      const close = this.#session.onBinary(nowMs, message);
      if (close !== undefined) this.#closeWith(close);
      else if (this.#session.bufferFrames >= this.#context.framesHeldAt) this.#holdIfBehind(nowMs);
    }
    if (this.#context.config.readPaceMs > 0) this.#pause();
  }

  /** The kernel has taken what it had refused before. */
  onDrain(): void {
    this.#send();
    this.#closeIfDrained();
  }

  /** The WebSocket is closed, by whichever side, or gone. */
  onClose(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#paceTimer);
    this.#session.end();
    this.#fold();
  }

  /** Answers what is in flight, but waits for it no longer than until `untilMs`, then closes. */
  drain(untilMs: number): void {
    if (this.#over) return;
    this.#session.drain(untilMs);
    this.#closeIfDrained();
    this.#arm();
  }

  /** Ends the session for a fault of the gateway's own. */
  abort(): void {
    this.#closeWith(CLOSE.internal);
  }

  readonly #onAnswer = (request: InferenceRequest, answer: Inference | Failure): void => {
    this.#session.onAnswer(performance.now(), request, answer);
    this.#fold();
    this.#send();
    this.#closeIfDrained();
  };

  readonly #onTimer = (): void => {
    this.#armedForMs = Number.NaN;
    if (this.#socket?.isPaused === true && !this.#isHeld) {
      // The flush must see what has arrived: read first, and flush a turn of the event loop later.
      this.#resume();
      this.#timer = setTimeout(this.#wake, 1);
    } else {
      this.#wake();
    }
  };

  readonly #wake = (): void => {
    this.#closeWith(this.#session.onWake(performance.now()));
    if (this.#isHeld && this.#session.bufferFrames === 0) {
      this.#isHeld = false;
      this.#resume();
    }
    this.#fold();
    this.#send();
    this.#arm();
  };

  /** Sets the timer for what comes next. */
  #arm(): void {
    const wakeAtMs = this.#session.wakeAtMs;
    if (this.#over || wakeAtMs === this.#armedForMs) return;
    this.#armedForMs = wakeAtMs;
    clearTimeout(this.#timer);
    // Timers count whole milliseconds, and one that is early would only have to be set again.
    this.#timer = setTimeout(this.#onTimer, Math.max(0, Math.ceil(wakeAtMs - performance.now())));
  }

  /** Writes messages for as long as the kernel takes them whole. */
  #send(): void {
    const outbox = this.#session.outbox;
    const socket = this.#socket;
    // What is buffered may be a pong as well; a message is begun only when nothing is left of what came before it.
    if (this.#over || socket === undefined || outbox.unsent === 0 || socket.getBufferedAmount() > 0) return;
    outbox.sent();
    for (let message = outbox.next(); message !== undefined; message = outbox.next()) {
      const status = socket.sendText(message);
      // -1: it lies in Bun's buffer and counts as unsent until `drain` says that the kernel has it. (0, dropped, is only
      // said of a socket that is closed: nothing is buffered here.)
      if (status < 0) return;
      outbox.sent();
    }
  }

  #closeIfDrained(): void {
    if (this.#session.isDrained) this.#closeWith(CLOSE.goingAway);
  }

  #closeWith(code: CloseCode | undefined): void {
    if (code === undefined || this.#over) return;
    this.#over = true;
    // Bun sends the close frame, shuts the socket for writing, and reads it empty until the client closes, too.
    this.#socket?.close(code);
    this.#resume();
  }

  #fold(): void {
    this.#context.metrics.fold(this.#session.tally);
  }

  /**
   * While the loop is behind, a session that has enough for a flush leaves the rest to the kernel, where the client
   * feels it: read as well, it would only make this turn of the loop longer, and the next batch too large to get through.
   */
  #holdIfBehind(nowMs: number): void {
    const socket = this.#socket;
    if (this.#over || socket === undefined || socket.isPaused || !this.#context.pulse.isBehind(nowMs)) return;
    this.#isHeld = true;
    socket.pause();
  }

  /** With READ_PACE_MS: leaves what comes next to the kernel for a while, so that one read takes many frames. */
  #pause(): void {
    const socket = this.#socket;
    if (this.#over || socket === undefined || socket.isPaused) return;
    socket.pause();
    this.#paceTimer = setTimeout(this.#resume, this.#context.config.readPaceMs);
  }

  readonly #resume = (): void => {
    clearTimeout(this.#paceTimer);
    if (this.#socket?.isPaused === true) this.#socket.resume();
  };
}
