/** One worker: the HTTP surface, who is let in, and the drain. */

import { createHash, timingSafeEqual } from "node:crypto";
import { Connection, type Shared } from "./connection.ts";

/** Longest message that is taken: Bun refuses a larger declared length from the header alone. */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** A client that sends pings and does not read is closed beyond this. Messages never come near it: OUTBOX_MESSAGES. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** Time for close frames to reach the clients before the process ends. */
const LINGER_MS = 300;

export interface Gateway {
  /** Answers what is in flight and closes every session; ends at DRAIN_TIMEOUT_MS, whatever is left. */
  drain(): Promise<void>;
}

/** Listens. Throws when the port cannot be had. */
export function startGateway(shared: Shared): Gateway {
  const { config, metrics, limits } = shared;
  const isAllowed = tokenCheck(config.authToken);
  const connections = new Set<Connection>();
  const allClosed = Promise.withResolvers<void>();
  let isDraining = false;

  function openSession(request: Request, server: Bun.Server<Connection>): Response | undefined {
    if (!isUpgrade(request.headers)) return status(426, { upgrade: "websocket", "sec-websocket-version": "13" });
    if (!isAllowed(request.headers.get("authorization"))) return status(401, { "www-authenticate": "Bearer" });
    if (isDraining) return status(503);
    if (!limits.sessions.take()) {
      metrics.add("stt_sessions_rejected_total");
      return status(503, { "retry-after": "1" });
    }
    if (server.upgrade(request, { data: new Connection(shared) })) return undefined;
    limits.sessions.give();
    return status(400);
  }

  const server = Bun.serve<Connection, string>({
    port: config.port,
    reusePort: config.workers > 1,
    development: false,
    routes: {
      "/health": { GET: () => status(isDraining ? 503 : 200) },
      "/metrics": {
        GET: () =>
          new Response(metrics.render(), { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } }),
      },
      "/ws/stt": { GET: openSession },
    },
    fetch: () => status(404),
    websocket: {
      maxPayloadLength: MAX_MESSAGE_BYTES,
      backpressureLimit: MAX_UNSENT_BYTES,
      closeOnBackpressureLimit: true,
      open(ws) {
        connections.add(ws.data);
        metrics.add("stt_sessions");
        metrics.add("stt_sessions_total");
        ws.data.opened(ws);
      },
      message: (ws, message) => ws.data.message(message),
      drain: (ws) => ws.data.drained(),
      close(ws) {
        ws.data.closed();
        connections.delete(ws.data);
        metrics.add("stt_sessions", -1);
        limits.sessions.give();
        if (isDraining && connections.size === 0) allClosed.resolve();
      },
    },
  });

  return {
    async drain() {
      isDraining = true;
      for (const connection of connections) connection.drain();
      if (connections.size > 0) await Promise.race([allClosed.promise, Bun.sleep(config.drainTimeoutMs)]);
      for (const connection of connections) connection.close(1001, "going away");
      await Promise.race([server.stop(), Bun.sleep(LINGER_MS)]);
    },
  };
}

function status(code: number, headers: Record<string, string> = {}): Response {
  return new Response(null, { status: code, headers });
}

/** Whether a request asks for a WebSocket, as far as Bun does not look at it itself. */
function isUpgrade(headers: Headers): boolean {
  const upgrade = headers.get("upgrade")?.toLowerCase();
  return upgrade === "websocket" && headers.get("sec-websocket-version") === "13" && headers.has("sec-websocket-key");
}

/** Compares hashes, which are of one length, so that the time tells nothing about the token. */
function tokenCheck(token: string): (authorization: string | null) => boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  const expected = hash(`Bearer ${token}`);
  return (authorization) => token === "" || timingSafeEqual(hash(authorization ?? ""), expected);
}
