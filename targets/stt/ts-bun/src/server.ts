/** One worker: `Bun.serve`, who is let in, and the end. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Config } from "./config.ts";
import { Connection, type WorkerContext } from "./connection.ts";
import { InferenceClient } from "./inference.ts";
import { FRAME_BYTES } from "./messages.ts";
import { Metrics } from "./metrics.ts";
import { Pulse } from "./pulse.ts";
import { StorePool } from "./session/store-pool.ts";
import { Shared, type SharedMemory } from "./shared.ts";

/** Most that a message may declare as its length. */
const MESSAGE_BYTES_MAX = 64 * 1024;

/** Pongs that a client does not take are dropped beyond this; messages never, for they wait until nothing is buffered. */
const BACKPRESSURE_BYTES_MAX = 64 * 1024;

/** A client that is silent this long is asked by a ping whether it is still there, and closed if it does not say so. */
const IDLE_TIMEOUT_S = 120;

const FRAME_MS = 20;

/** A few frames more than one flush interval brings, for frames come in bursts. */
const SPARE_FRAMES = 4;

/** What the idle stores of a worker may hold at most, in bytes; the collector gets the rest. */
const IDLE_STORES_BYTES_MAX = 32 * 1024 * 1024;

/** How long a drain waits for clients that were sent a close: an exit with their data unread would reset them. */
const LINGER_MS = 1000;

/** What a worker does for its owner. */
export interface GatewayWorker {
  /** Answers what is in flight, within most of `timeoutMs`, closes all sessions, and waits a little for their clients. */
  drain(timeoutMs: number): Promise<void>;
}

/** Listens. Throws when the port cannot be had. */
export function startWorker(config: Config, memory: SharedMemory): GatewayWorker {
  const shared = new Shared(memory, config);
  const context = workerContext(config, shared);
  const isAllowed = tokenCheck(config.authToken);
  const connections = new Set<Connection>();

  function openSession(request: Request, server: Bun.Server<Connection>): Response | undefined {
    if (!isUpgrade(request.headers)) return upgradeRequired();
    if (!isAllowed(request.headers.get("authorization"))) return new Response(null, { status: 401 });
    if (shared.stage !== "serving") return new Response(null, { status: 503 });
    if (!shared.sessions.tryAcquire()) {
      context.metrics.sessionRejected();
      return new Response(null, { status: 503, headers: { "retry-after": "1" } });
    }
    const connection = new Connection(context);
    if (!server.upgrade(request, { data: connection })) {
      shared.sessions.release();
      return upgradeRequired();
    }
    return undefined;
  }

  const server = Bun.serve<Connection, string>({
    port: config.port,
    reusePort: config.workerThreads > 1,
    development: false,
    routes: {
      "/health": { GET: () => new Response(null, { status: shared.stage === "serving" ? 200 : 503 }) },
      "/metrics": {
        GET: () =>
          new Response(context.metrics.render(shared.sessions.inUse, shared.jobs.inUse), {
            headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
          }),
      },
      "/ws/stt": { GET: openSession },
    },
    fetch: () => new Response(null, { status: 404 }),
    websocket: {
      maxPayloadLength: MESSAGE_BYTES_MAX,
      backpressureLimit: BACKPRESSURE_BYTES_MAX,
      closeOnBackpressureLimit: false,
      perMessageDeflate: false,
      idleTimeout: IDLE_TIMEOUT_S,
      sendPings: true,
      open(ws) {
        connections.add(ws.data);
        context.metrics.sessionOpened();
        ws.data.onOpen(ws);
      },
      message: (ws, message) => ws.data.onMessage(message),
      drain: (ws) => ws.data.onDrain(),
      close(ws) {
        connections.delete(ws.data);
        shared.sessions.release();
        ws.data.onClose();
      },
      error(error, ws) {
        // A fault of ours ends one session, not the gateway with every session on it.
        console.error(error);
        ws.data.abort();
      },
    },
  });

  return {
    async drain(timeoutMs) {
      // What is in flight gets four fifths of the time, so that a session which gives up can still say so.
      const untilMs = performance.now() + timeoutMs * 0.8;
      for (const connection of connections) connection.drain(untilMs);
      while (connections.size > 0) await Bun.sleep(5);
      await Promise.race([server.stop(), Bun.sleep(LINGER_MS)]);
    },
  };
}

function workerContext(config: Config, shared: Shared): WorkerContext {
  const framesPerFlush = Math.ceil(config.session.flushIntervalMs / FRAME_MS) + SPARE_FRAMES;
  const storeFrames = Math.min(framesPerFlush, config.session.bufferFramesMax);
  return {
    config,
    metrics: new Metrics(shared.counters),
    inference: new InferenceClient(
      config.inferenceUrl,
      config.inferenceConnections,
      config.session.cpuPasses,
      shared.jobs,
    ),
    pulse: new Pulse(),
    framesHeldAt: framesPerFlush,
    pool: new StorePool(storeFrames, Math.ceil(IDLE_STORES_BYTES_MAX / (storeFrames * FRAME_BYTES))),
  };
}

/** RFC 6455, section 4.2.1, as far as Bun does not look at it itself. */
function isUpgrade(headers: Headers): boolean {
  const upgrade = headers.get("upgrade")?.toLowerCase();
  return upgrade === "websocket" && headers.get("sec-websocket-version") === "13" && headers.has("sec-websocket-key");
}

function upgradeRequired(): Response {
  return new Response(null, { status: 426, headers: { upgrade: "websocket", "sec-websocket-version": "13" } });
}

/** Whether an `Authorization` header carries the token, in a time that does not tell how much of it is right. */
function tokenCheck(token: string): (authorization: string | null) => boolean {
  if (token === "") return () => true;
  // Digests, since the comparison takes equal lengths, and the token's is a secret, too.
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const expected = digest(token);
  return (authorization) => {
    // The scheme is no secret, and its case does not matter (RFC 9110, section 11.1).
    const given = /^bearer (.*)$/is.exec(authorization ?? "")?.[1];
    return given !== undefined && timingSafeEqual(digest(given), expected);
  };
}
