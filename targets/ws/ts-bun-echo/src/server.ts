/** One worker: `Bun.serve`, the echo, the hub, the end. */

import type { ServerWebSocket, WebSocketHandler } from "bun";
import type { Config } from "./config.ts";
import { CONTENT_TYPE, COUNTER, Counters, type Row } from "./counters.ts";

const FANOUT_PATH = "/fanout";

/** With more unsent than this, a client is not read from. */
const ECHO_QUEUE_BYTES_MAX = 64 * 1024;

/** A receiver with more unsent than this loses messages of the hub. */
const FANOUT_QUEUE_BYTES_MAX = 16 * 1024 * 1024;

/** More than one read of a socket brings. */
const READ_BYTES_MAX = 1024 * 1024;

/** The share of the drain's time after which a client that has not read what it was sent is closed all the same. */
const DRAIN_SHARE = 0.6;

const DRAIN_POLL_MS = 5;

/** How long a drain stays when all are closed: an exit with a client's data unread would reset it. Bun does not tell when it is gone. */
const LINGER_MS = 500;

/** The share of the drain's time that this may take at most; the rest is for the exit. */
const LINGER_SHARE = 0.2;

/** What a worker knows of a connection. */
interface Connection {
  readonly isFanout: boolean;
}

type Socket = ServerWebSocket<Connection>;

/** What a worker does for its owner. */
export interface EchoWorker {
  /** Closes every connection once it has been sent what it was owed, and waits a little for the clients. */
  drain(): Promise<void>;
}

export class EchoServer implements EchoWorker {
  readonly #config: Config;
  readonly #counters: Counters;
  readonly #row: Row;
  readonly #open = new Set<Socket>();
  readonly #hub = new Set<Socket>();
  readonly #server: Bun.Server<Connection>;
  #isDraining = false;

  /** Listens. Throws when the port cannot be had. */
  constructor(config: Config, memory: SharedArrayBuffer, number: number) {
    this.#config = config;
    this.#counters = new Counters(memory);
    this.#row = this.#counters.row(number);
    this.#server = Bun.serve<Connection, string>({
      hostname: "0.0.0.0",
      port: config.port,
      reusePort: config.workerThreads > 1,
      development: false,
      routes: {
        "/healthz": { GET: (request) => this.#health(request) },
        "/metrics": { GET: (request) => this.#metrics(request) },
      },
      fetch: (request, server) => this.#upgrade(request, server),
      websocket: this.#handlers(),
    });
  }

  async drain(): Promise<void> {
    this.#isDraining = true;
    const { drainTimeoutMs } = this.#config;
    const wasUsed = this.#open.size > 0;
    // Without an argument it lets connections be.
    void this.#server.stop();
    for (const socket of this.#open) closeIfSent(socket);
    const untilMs = performance.now() + drainTimeoutMs * DRAIN_SHARE;
    while (this.#open.size > 0 && performance.now() < untilMs) await Bun.sleep(DRAIN_POLL_MS);
    for (const socket of this.#open) close(socket);
    if (wasUsed) await Bun.sleep(Math.min(LINGER_MS, drainTimeoutMs * LINGER_SHARE));
  }

  #health(request: Request): Response {
    this.#countIfRefused(request);
    return this.#isDraining ? new Response(null, { status: 503 }) : new Response("ok");
  }

  #metrics(request: Request): Response {
    this.#countIfRefused(request);
    return new Response(this.#counters.render(), { headers: { "content-type": CONTENT_TYPE } });
  }

  #upgrade(request: Request, server: Bun.Server<Connection>): Response | undefined {
    const isFanout = new URL(request.url).pathname === FANOUT_PATH;
    const refusal = this.#refusalOf(request, isFanout);
    if (refusal === undefined && server.upgrade(request, { data: { isFanout } })) return undefined;
    this.#countIfRefused(request);
    return refusal ?? new Response(null, { status: 400 });
  }

  /** What RFC 6455, section 4.2.1, asks for and Bun does not look at; and who is not let in. */
  #refusalOf({ headers }: Request, isFanout: boolean): Response | undefined {
    if (!isForWebSocket(headers) || headers.get("sec-websocket-version") !== "13") {
      return new Response(null, { status: 426, headers: { upgrade: "websocket", "sec-websocket-version": "13" } });
    }
    // The hub of one worker would not reach the connections of the others.
    const isUnavailable = this.#isDraining || (isFanout && this.#config.workerThreads > 1);
    return isUnavailable ? new Response(null, { status: 503 }) : undefined;
  }

  #countIfRefused({ headers }: Request): void {
    if (isForWebSocket(headers)) this.#row.add(COUNTER.refused, 1);
  }

  #handlers(): WebSocketHandler<Connection> {
    return {
      maxPayloadLength: this.#config.messageBytesMax,
      // Bun drops a message beyond this without a word; the limits above are reached first, whatever one read brings.
      backpressureLimit: FANOUT_QUEUE_BYTES_MAX + this.#config.messageBytesMax + READ_BYTES_MAX,
      closeOnBackpressureLimit: false,
      perMessageDeflate: false,
      // Nothing is sent that was not asked for, and who says nothing stays.
      idleTimeout: 0,
      sendPings: false,
      open: (ws) => {
        this.#open.add(ws);
        if (ws.data.isFanout) this.#hub.add(ws);
        this.#row.add(COUNTER.accepted, 1);
        this.#row.add(COUNTER.open, 1);
      },
      message: (ws, message) => {
        this.#row.add(COUNTER.received, 1);
        this.#row.add(COUNTER.receivedBytes, typeof message === "string" ? Buffer.byteLength(message) : message.length);
        if (this.#isDraining) return;
        if (ws.data.isFanout) this.#fanOut(message);
        else this.#echo(ws, message);
      },
      // Bun has answered it.
      ping: holdIfFull,
      drain: (ws) => {
        if (this.#isDraining) closeIfSent(ws);
        else if (ws.isPaused && ws.getBufferedAmount() <= ECHO_QUEUE_BYTES_MAX) ws.resume();
      },
      close: (ws) => {
        this.#open.delete(ws);
        this.#hub.delete(ws);
        this.#row.add(COUNTER.open, -1);
      },
      error: (error, ws) => {
        // A fault of ours ends one connection, not the server with every connection on it.
        console.error(error);
        ws.terminate();
      },
    };
  }

  #echo(ws: Socket, message: string | Buffer<ArrayBuffer>): void {
    if (ws.readyState !== WebSocket.OPEN) return;
    ws.send(message);
    this.#row.add(COUNTER.sent, 1);
    holdIfFull(ws);
  }

  #fanOut(message: string | Buffer<ArrayBuffer>): void {
    for (const receiver of this.#hub) {
      if (receiver.readyState !== WebSocket.OPEN) continue;
      if (receiver.getBufferedAmount() > FANOUT_QUEUE_BYTES_MAX) {
        this.#row.add(COUNTER.dropped, 1);
      } else {
        receiver.send(message);
        this.#row.add(COUNTER.sent, 1);
      }
    }
  }
}

/** Leaves what comes next to the kernel, where the client feels it, until what is unsent has become less. */
function holdIfFull(ws: Socket): void {
  if (ws.getBufferedAmount() > ECHO_QUEUE_BYTES_MAX && !ws.isPaused) ws.pause();
}

function closeIfSent(ws: Socket): void {
  if (ws.getBufferedAmount() === 0) close(ws);
}

function close(ws: Socket): void {
  // The answer of a client that was not read from must be read.
  if (ws.isPaused) ws.resume();
  ws.close(1001, "going away");
}

function isForWebSocket(headers: Headers): boolean {
  return headers.get("upgrade")?.toLowerCase() === "websocket";
}
