// One worker's servers: HTTP/1.1, and HTTP/2 on a port of its own; the counts, the drain.

import { createServer, STATUS_CODES } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { CONTENT_TYPE, render } from "./counts.js";
import { answer, notAllowed, sum } from "./routes.js";

/** @import { IncomingMessage, Server, ServerResponse } from "node:http" */
/** @import { Http2Server, Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from "node:http2" */
/** @import { Socket } from "node:net" */
/** @import { Duplex } from "node:stream" */
/** @import { Config } from "./config.js" */
/** @import { Counts } from "./counts.js" */
/** @import { Answer } from "./routes.js" */

const BACKLOG = 4096;

/** Node's own is 5 s; the contract asks for a minute. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;

/** The share of the drain's time after which what is still open is cut off; the rest is for the exit. */
const DRAIN_SHARE = 0.8;

export class WebServer {
  /** @type {Config} */
  #config;
  /** @type {Counts} */
  #counts;
  /** @type {() => Promise<Counts>} */
  #total;
  /** @type {Server} */
  #http;
  /** @type {Http2Server | undefined} */
  #http2;
  /** @type {Set<ServerHttp2Session>} */
  #sessions = new Set();
  #isDraining = false;

  /**
   * @param {Config} config
   * @param {Counts} counts of this worker
   * @param {() => Promise<Counts>} total over all workers
   */
  constructor(config, counts, total) {
    this.#config = config;
    this.#counts = counts;
    this.#total = total;
    this.#http = createServer({ keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS }, (request, response) => {
      this.#serve(request, response);
    });
    this.#http.on("connection", (socket) => this.#countConnection(socket));
    this.#http.on("clientError", refuse);
    if (config.h2Port !== undefined) this.#http2 = this.#newHttp2();
  }

  /** Returns when both listen. Readiness is asked for by HTTP/1.1, so that comes last. */
  async listen() {
    const { port, h2Port } = this.#config;
    if (this.#http2 !== undefined && h2Port !== undefined) await listenOn(this.#http2, h2Port);
    await listenOn(this.#http, port);
  }

  /** Accepts nothing more and closes what is idle; returns when what was in flight is answered, or the time is over. */
  async drain() {
    this.#isDraining = true;
    const closed = [this.#http, this.#http2].map((server) => server && new Promise((done) => server.close(done)));
    // GOAWAY; its streams are still answered.
    for (const session of this.#sessions) session.close();
    const timeout = new Promise((resolve) => {
      setTimeout(resolve, this.#config.drainTimeoutMs * DRAIN_SHARE);
    });
    await Promise.race([Promise.all(closed), timeout]);
  }

  #newHttp2() {
    const server = createHttp2Server((request, response) => {
      this.#serve(request, response);
    });
    server.on("connection", (/** @type {Socket} */ socket) => this.#countConnection(socket));
    server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
    });
    return server;
  }

  /** @param {Socket} socket */
  #countConnection(socket) {
    this.#counts.accepted++;
    this.#counts.open++;
    socket.on("close", () => {
      this.#counts.open--;
    });
  }

  /**
   * @param {IncomingMessage | Http2ServerRequest} request
   * @param {ServerResponse | Http2ServerResponse} response
   */
  #serve(request, response) {
    this.#counts.requests++;
    const { method } = request;
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const isRead = method === "GET" || method === "HEAD";
    if (path === "/sum" && method === "POST") {
      sum(request, this.#config.maxBodyBytes, (result) => this.#send(response, result));
    } else if (path === "/sum") {
      this.#send(response, notAllowed());
    } else if (path === "/metrics" && isRead) {
      this.#sendMetrics(response);
    } else {
      this.#send(response, answer(path, isRead));
    }
  }

  /** @param {ServerResponse | Http2ServerResponse} response */
  async #sendMetrics(response) {
    this.#send(response, { status: 200, type: CONTENT_TYPE, body: render(await this.#total()) });
  }

  /**
   * @param {ServerResponse | Http2ServerResponse} response
   * @param {Answer} answer
   */
  #send(response, { status, type, body, isLast = false }) {
    // HTTP/2 has other means, and refuses the field.
    if ((isLast || this.#isDraining) && !("stream" in response)) response.setHeader("connection", "close");
    response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
    response.end(body);
  }
}

/** What Node answers by itself to some errors; 400 to the others. */
const STATUSES = new Map([
  ["HPE_HEADER_OVERFLOW", 431],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", 413],
  ["ERR_HTTP_REQUEST_TIMEOUT", 408],
]);

/**
 * As Node does without it, but for one case: what comes behind a request with `Connection: close` is nobody's, and Node
 * would throw away answers to the requests before it.
 *
 * @param {NodeJS.ErrnoException} error
 * @param {Duplex} socket
 */
function refuse(error, socket) {
  if (error.code === "HPE_CLOSED_CONNECTION") return;
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = STATUSES.get(error.code ?? "") ?? 400;
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
}

/**
 * @param {Server | Http2Server} server
 * @param {number} port
 * @returns {Promise<void>}
 */
function listenOn(server, port) {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: "0.0.0.0", backlog: BACKLOG }, () => resolve());
  });
}
