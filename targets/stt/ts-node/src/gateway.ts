// One worker's server: the HTTP surface (section 2), the upgrade, the drain.

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { Connection, type Shared } from "./connection.js";
import type { Snapshot } from "./metrics.js";
import { render } from "./metrics.js";

interface Answer {
  status: number;
  body?: string;
  headers?: Record<string, string>;
}

/** Longest message that is taken: ws refuses a larger declared length from the header alone. */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** How long a client has to answer the gateway's close before ws tears the socket. */
const CLOSE_TIMEOUT_MS = 1000;
// A constant, because @types/ws does not know `closeTimeout` yet and refuses it in a literal.
const WS_OPTIONS = {
  noServer: true,
  maxPayload: MAX_MESSAGE_BYTES,
  closeTimeout: CLOSE_TIMEOUT_MS,
  clientTracking: false,
};
const BACKLOG = 4096;
/** Time for close frames to reach the clients before the process ends. */
const LINGER_MS = 300;
const WS_PATH = "/ws/stt";

export class Gateway {
  readonly #shared: Shared;
  readonly #scrape: () => Promise<Snapshot[]>;
  readonly #tokenHash: Buffer | null;
  readonly #connections = new Set<Connection>();
  readonly #server: Server;
  readonly #wss = new WebSocketServer(WS_OPTIONS);
  #draining = false;
  #drained: (() => void) | null = null;

  /** `scrape` gathers the metrics of all workers. */
  constructor(shared: Shared, scrape: () => Promise<Snapshot[]>) {
    this.#shared = shared;
    this.#scrape = scrape;
    const { authToken } = shared.config;
    this.#tokenHash = authToken === "" ? null : sha256(`Bearer ${authToken}`);
    this.#server = createServer((request, response) => {
      request.resume();
      void this.#route(request).then(({ status, body = "", headers = {} }) => {
        response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(body);
      });
    });
    this.#server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port: this.#shared.config.port, backlog: BACKLOG }, () => resolve());
    });
  }

  /** Answers what is in flight and closes every session; ends at DRAIN_TIMEOUT_MS, whatever is left. */
  async drain(): Promise<void> {
    this.#draining = true;
    const done = new Promise<void>((resolve) => {
      this.#drained = resolve;
      if (this.#connections.size === 0) resolve();
      else setTimeout(resolve, this.#shared.config.drainTimeoutMs);
    });
    for (const connection of this.#connections) connection.drain();
    await done;
    for (const connection of this.#connections) connection.close(1001, "going away");
    if (this.#connections.size > 0) await new Promise((resolve) => setTimeout(resolve, LINGER_MS));
  }

  async #route(request: IncomingMessage): Promise<Answer> {
    const path = pathOf(request);
    if (request.method !== "GET") return { status: 404 };
    if (path === "/health") return this.#draining ? { status: 503 } : { status: 200, body: "ok\n" };
    if (path === WS_PATH) {
      return { status: 426, headers: { connection: "Upgrade", upgrade: "websocket" } };
    }
    if (path !== "/metrics") return { status: 404 };
    const body = render(await this.#scrape());
    return { status: 200, body, headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } };
  }

  /** Node brings every request with an upgrade here, whatever its path. */
  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => {});
    if (pathOf(request) !== WS_PATH || !isWebSocket(request)) {
      void this.#route(request).then((answer) => refuse(socket, answer));
    } else if (!this.#authorized(request)) {
      refuse(socket, { status: 401, headers: { "www-authenticate": "Bearer" } });
    } else if (this.#draining) {
      refuse(socket, { status: 503 });
    } else {
      this.#shared.limits.take("session", (granted) => this.#admit(granted, request, socket, head));
    }
  }

  #admit(granted: boolean, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { limits, metrics } = this.#shared;
    if (!granted) {
      metrics.add("stt_sessions_rejected_total");
      refuse(socket, { status: 503, headers: { "retry-after": "1" } });
      return;
    }
    if (socket.destroyed || !socket.writable || this.#draining) {
      limits.give("session");
      refuse(socket, { status: 503 });
      return;
    }
    let accepted = false;
    // Calls back at once, or answers 400 itself (a malformed subprotocol list) and never calls back.
    this.#wss.handleUpgrade(request, socket, head, (ws) => {
      accepted = true;
      metrics.add("stt_sessions");
      metrics.add("stt_sessions_total");
      const connection = new Connection(ws, this.#shared, () => {
        metrics.add("stt_sessions", -1);
        limits.give("session");
        this.#connections.delete(connection);
        if (this.#connections.size === 0) this.#drained?.();
      });
      this.#connections.add(connection);
    });
    if (!accepted) limits.give("session");
  }

  /** Compares hashes, which are of one length, so that the time tells nothing about the token. */
  #authorized(request: IncomingMessage): boolean {
    if (this.#tokenHash === null) return true;
    return timingSafeEqual(sha256(request.headers.authorization ?? ""), this.#tokenHash);
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

function isWebSocket(request: IncomingMessage): boolean {
  const { headers } = request;
  return (
    request.method === "GET" &&
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["sec-websocket-version"] === "13" &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "")
  );
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** An answer on a socket that Node has taken out of its HTTP parser. */
function refuse(socket: Duplex, { status, body = "", headers = {} }: Answer): void {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, `Content-Length: ${Buffer.byteLength(body)}`];
  const all = { connection: "close", ...headers };
  for (const [name, value] of Object.entries(all)) lines.push(`${name}: ${value}`);
  socket.resume();
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
