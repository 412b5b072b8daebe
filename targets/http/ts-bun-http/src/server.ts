/** One worker: `Bun.serve` with the routes of the contract, and the end. */

import type { BunRequest } from "bun";
import type { Config } from "./config.ts";
import { CONTENT_TYPE, Counters } from "./counters.ts";

const BYTES_MAX = 1_048_576;

/** The first N bytes of it are the answer to `/bytes/N`. */
const PATTERN = Buffer.alloc(BYTES_MAX, "0123456789abcdef");

const TEXT = "text/plain;charset=utf-8";
const BINARY = "application/octet-stream";
const JSON_TYPE = "application/json;charset=utf-8";

/** Longer than the minute that the contract asks for. */
const IDLE_TIMEOUT_S = 75;

/** What a worker does for its owner. */
export interface HttpWorker {
  /** Accepts nothing more, and resolves when what was in flight is answered. */
  drain(): Promise<void>;
}

export class HttpServer implements HttpWorker {
  readonly #counters: Counters;
  readonly #server: Bun.Server<undefined>;
  #isDraining = false;

  /** Listens. Throws when the port cannot be had. */
  constructor(config: Config, memory: SharedArrayBuffer, number: number) {
    this.#counters = new Counters(memory, number);
    this.#server = Bun.serve({
      hostname: "0.0.0.0",
      port: config.port,
      reusePort: config.workerThreads > 1,
      // A connection that begins with HTTP/2's preface is HTTP/2.
      http2: true,
      idleTimeout: IDLE_TIMEOUT_S,
      maxRequestBodySize: config.bodyBytesMax,
      development: false,
      routes: {
        "/": { GET: () => this.#text("ok"), HEAD: () => this.#head(TEXT, 2) },
        "/bytes/:size": { GET: (request) => this.#bytes(request), HEAD: (request) => this.#bytesHead(request) },
        "/json/:number": { GET: (request) => this.#json(request), HEAD: (request) => this.#jsonHead(request) },
        "/sum": { POST: (request) => this.#sum(request) },
        "/healthz": { GET: () => this.#text("ok"), HEAD: () => this.#head(TEXT, 2) },
        "/metrics": { GET: () => this.#metrics() },
      },
      fetch: () => this.#notFound(),
      error: (error) => {
        // A fault of ours ends one request, not the server with every connection on it.
        console.error(error);
        return new Response("internal server error\n", { status: 500 });
      },
    });
  }

  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.#server.stop();
  }

  #text(body: string): Response {
    this.#counters.countRequest();
    return new Response(body);
  }

  #notFound(): Response {
    this.#counters.countRequest();
    return new Response("not found\n", { status: 404 });
  }

  /** Bun writes the length of an answer to HEAD by itself, but neither its type nor the date. */
  #head(type: string, length: number): Response {
    this.#counters.countRequest();
    const headers = { "content-type": type, "content-length": String(length), date: new Date().toUTCString() };
    return new Response(null, { headers });
  }

  #bytes({ params }: BunRequest<"/bytes/:size">): Response {
    const size = wholeNumber(params.size, 1, BYTES_MAX);
    if (size === undefined) return this.#notFound();
    this.#counters.countRequest();
    return new Response(PATTERN.subarray(0, size), { headers: { "content-type": BINARY } });
  }

  #bytesHead({ params }: BunRequest<"/bytes/:size">): Response {
    const size = wholeNumber(params.size, 1, BYTES_MAX);
    return size === undefined ? this.#notFound() : this.#head(BINARY, size);
  }

  #json({ params }: BunRequest<"/json/:number">): Response {
    const number = wholeNumber(params.number, 0, Number.MAX_SAFE_INTEGER);
    if (number === undefined) return this.#notFound();
    this.#counters.countRequest();
    return Response.json(itemOf(number));
  }

  #jsonHead({ params }: BunRequest<"/json/:number">): Response {
    const number = wholeNumber(params.number, 0, Number.MAX_SAFE_INTEGER);
    if (number === undefined) return this.#notFound();
    return this.#head(JSON_TYPE, Buffer.byteLength(JSON.stringify(itemOf(number))));
  }

  async #sum(request: Request): Promise<Response> {
    const body = await request.bytes();
    this.#counters.countRequest();
    const sum = Bun.hash.crc32(body).toString(16).padStart(8, "0");
    // The one answer that may still be in the making when the end begins.
    const headers = this.#isDraining ? { connection: "close" } : undefined;
    return new Response(`${sum} ${body.length}`, headers === undefined ? undefined : { headers });
  }

  #metrics(): Response {
    this.#counters.countRequest();
    return new Response(this.#counters.render(), { headers: { "content-type": CONTENT_TYPE } });
  }
}

function itemOf(number: number): { id: number; name: string; even: boolean } {
  return { id: number, name: `item ${number}`, even: number % 2 === 0 };
}

/** The number that a part of a path is; nothing where it has leading zeros, signs or other characters. */
function wholeNumber(text: string, min: number, max: number): number | undefined {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  const value = Number(text);
  return value >= min && value <= max ? value : undefined;
}
