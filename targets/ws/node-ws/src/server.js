// One worker's server: HTTP, the upgrade, the echo, the hub, the drain.

import { createServer, STATUS_CODES } from "node:http";
import { WebSocket, WebSocketServer } from "ws";
import { CONTENT_TYPE, render } from "./counts.js";

/** @import { IncomingMessage, Server } from "node:http" */
/** @import { Duplex } from "node:stream" */
/** @import { Config } from "./config.js" */
/** @import { Counts } from "./counts.js" */

const HEALTH_PATH = "/healthz";
const METRICS_PATH = "/metrics";
const FANOUT_PATH = "/fanout";

const BACKLOG = 4096;

/** With more unsent than this, a client is not read from. More than a socket's high-water mark, so that `drain` will tell. */
const ECHO_QUEUE_MAX_BYTES = 64 * 1024;

/** A receiver with more unsent than this loses messages of the hub. */
const FANOUT_QUEUE_MAX_BYTES = 16 * 1024 * 1024;

/** The share of the drain's time that clients have to answer their close; the rest is for the exit. */
const DRAIN_SHARE = 0.8;

export class EchoServer {
  /** @type {Config} */
  #config;
  /** @type {Counts} */
  #counts;
  /** @type {() => Promise<Counts>} */
  #total;
  /** @type {Server} */
  #http;
  /** @type {WebSocketServer} */
  #webSockets;
  /** @type {Set<WebSocket>} */
  #open = new Set();
  /** @type {Set<WebSocket>} */
  #hub = new Set();
  #isDraining = false;
  /** @type {() => void} */
  #onEmpty = () => {};

  /**
   * @param {Config} config
   * @param {Counts} counts of this worker
   * @param {() => Promise<Counts>} total over all workers
   */
  constructor(config, counts, total) {
    this.#config = config;
    this.#counts = counts;
    this.#total = total;
    this.#webSockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: config.maxMessageBytes,
      // Pongs are sent here, for a client that pings and does not read is to be held like any other.
      autoPong: false,
    });
    this.#http = createServer(async (request, response) => {
      request.resume();
      const { status, type = "text/plain", body = "" } = await this.#answer(request);
      response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) }).end(body);
    });
    this.#http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** @returns {Promise<void>} */
  listen() {
    return new Promise((resolve, reject) => {
      this.#http.once("error", reject);
      this.#http.listen({ port: this.#config.port, host: "0.0.0.0", backlog: BACKLOG }, () => resolve());
    });
  }

  /** Accepts nobody any more and closes every connection; returns when all have answered or the time is over. */
  async drain() {
    this.#isDraining = true;
    this.#http.close();
    const empty = new Promise((resolve) => {
      this.#onEmpty = () => resolve(undefined);
    });
    const timeout = new Promise((resolve) => {
      setTimeout(resolve, this.#config.drainTimeoutMs * DRAIN_SHARE);
    });
    for (const ws of this.#open) {
      ws.close(1001, "going away");
      // The answer of a client that was not read from must be read.
      ws.resume();
    }
    if (this.#open.size > 0) await Promise.race([empty, timeout]);
    for (const ws of this.#open) ws.terminate();
  }

  /**
   * @param {IncomingMessage} request
   * @returns {Promise<{ status: number, type?: string, body?: string }>}
   */
  async #answer(request) {
    const path = pathOf(request);
    if (request.method === "GET" && path === HEALTH_PATH) {
      return this.#isDraining ? { status: 503 } : { status: 200, body: "ok" };
    }
    if (request.method === "GET" && path === METRICS_PATH) {
      return { status: 200, type: CONTENT_TYPE, body: render(await this.#total()) };
    }
    return { status: 426 };
  }

  /**
   * Node brings every request with an upgrade here, whatever its path.
   *
   * @param {IncomingMessage} request
   * @param {Duplex} socket
   * @param {Buffer} head
   */
  #upgrade(request, socket, head) {
    socket.on("error", () => {});
    const path = pathOf(request);
    const isFanout = path === FANOUT_PATH;
    let isAccepted = false;
    if (path === HEALTH_PATH || path === METRICS_PATH) {
      refuse(socket, 400);
    } else if (this.#isDraining || (isFanout && this.#config.workers > 1)) {
      // The hub of one process would not reach the connections of the others.
      refuse(socket, 503);
    } else {
      // Calls back at once, or answers 4xx itself and never calls back.
      this.#webSockets.handleUpgrade(request, socket, head, (ws) => {
        isAccepted = true;
        this.#serve(ws, socket, isFanout);
      });
    }
    if (!isAccepted) this.#counts.refused++;
  }

  /**
   * @param {WebSocket} ws
   * @param {Duplex} socket
   * @param {boolean} isFanout
   */
  #serve(ws, socket, isFanout) {
    const counts = this.#counts;
    counts.accepted++;
    counts.open++;
    this.#open.add(ws);
    if (isFanout) this.#hub.add(ws);
    ws.on("message", (data, isBinary) => {
      // A Buffer, texts too, since nobody has asked for another binaryType.
      const message = /** @type {Buffer} */ (data);
      counts.received++;
      counts.receivedBytes += message.length;
      if (isFanout) this.#fanOut(message, isBinary);
      else this.#echo(ws, socket, message, isBinary);
    });
    ws.on("ping", (data) => {
      if (ws.readyState !== WebSocket.OPEN) return;
      gather(ws, socket);
      ws.pong(data);
    });
    socket.on("drain", () => {
      if (ws.isPaused) ws.resume();
    });
    // A violation: ws has sent the close with its code (1002, 1007, 1009) by now.
    ws.on("error", () => {});
    ws.on("close", () => {
      counts.open--;
      this.#open.delete(ws);
      this.#hub.delete(ws);
      if (this.#open.size === 0) this.#onEmpty();
    });
  }

  /**
   * @param {WebSocket} ws
   * @param {Duplex} socket
   * @param {Buffer} message
   * @param {boolean} isBinary
   */
  #echo(ws, socket, message, isBinary) {
    if (ws.readyState !== WebSocket.OPEN) return;
    gather(ws, socket);
    ws.send(message, { binary: isBinary });
    this.#counts.sent++;
  }

  /**
   * @param {Buffer} message
   * @param {boolean} isBinary
   */
  #fanOut(message, isBinary) {
    const options = { binary: isBinary };
    for (const receiver of this.#hub) {
      if (receiver.readyState !== WebSocket.OPEN) continue;
      if (receiver.bufferedAmount > FANOUT_QUEUE_MAX_BYTES) {
        this.#counts.dropped++;
      } else {
        receiver.send(message, options);
        this.#counts.sent++;
      }
    }
  }
}

/**
 * Gathers the answers to all that one read brings into one write: ws hands out its messages in one turn, before the tick.
 *
 * @param {WebSocket} ws
 * @param {Duplex} socket
 */
function gather(ws, socket) {
  if (socket.writableCorked > 0) return;
  socket.cork();
  process.nextTick(flush, ws, socket);
}

/**
 * What the kernel does not take is a client that does not read: it is not read from until all is sent.
 *
 * @param {WebSocket} ws
 * @param {Duplex} socket
 */
function flush(ws, socket) {
  socket.uncork();
  if (ws.bufferedAmount > ECHO_QUEUE_MAX_BYTES && ws.readyState === WebSocket.OPEN) ws.pause();
}

/** @param {IncomingMessage} request */
function pathOf(request) {
  return (request.url ?? "").split("?", 1)[0];
}

/**
 * An answer on a socket that Node has taken out of its HTTP parser.
 *
 * @param {Duplex} socket
 * @param {number} status
 */
function refuse(socket, status) {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, "Connection: close", "Content-Length: 0"];
  socket.resume();
  socket.end(`${lines.join("\r\n")}\r\n\r\n`, () => socket.destroy());
}
