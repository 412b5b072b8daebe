/** The way to the inference server: HTTP/2 with prior knowledge over a few long-lived connections. */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { badAnswer, badStatus, connectionLost, type Failure } from "./failure.ts";
import { type Inference, parseInference } from "./messages.ts";
import type { Request } from "./session/slot.ts";
import type { SharedLimit } from "./shared.ts";
import { Turns } from "./turns.ts";

/** Longest answer that is read; a good one has some 150 bytes. */
const ANSWER_BYTES_MAX = 64 * 1024;

/** A connection is asked for a sign of life this often… */
const KEEP_ALIVE_MS = 10_000;

/**
 * …and is lost after this long without any, be it a pong or an answer. Much longer, since under overload a ping queues
 * behind megabytes of audio, and a gateway too busy to read must not take its own silence for the server's.
 */
const SILENCE_MS_MAX = 40_000;

/**
 * Requests whose audio is on its way over one connection at the same time; the others wait, first come, first served. All at
 * once they would be through all at once, and when the gateway is behind that is after their time-out, with hundreds of
 * megabytes in the connection's queue.
 */
const UPLOADS_MAX = 64;

/** Strict UTF-8; a byte order mark stays what it is, and is then no JSON. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type OnAnswer = (request: InferenceRequest, answer: Inference | Failure) => void;

/** One request. Holds one of the gateway's jobs from its making to its answer, or until it is cancelled. */
export class InferenceRequest implements Request {
  readonly #jobs: SharedLimit;
  readonly #onAnswer: OnAnswer;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #stream: ClientHttp2Stream | undefined;
  #status = 0;
  #wasRefused = false;
  #over = false;

  constructor(jobs: SharedLimit, onAnswer: OnAnswer) {
    this.#jobs = jobs;
    this.#onAnswer = onAnswer;
  }

  /** Sends the request over a connection, when it is its turn. */
  sendOver(connection: Connection, headers: Record<string, string>, pcm: Uint8Array): void {
    connection.uploads.take((done) => {
      if (this.#over) done();
      else this.#send(connection, headers, pcm, done);
    });
  }

  #send(connection: Connection, headers: Record<string, string>, pcm: Uint8Array, done: () => void): void {
    let stream: ClientHttp2Stream;
    try {
      stream = connection.session().request(headers, { endStream: false });
    } catch (error) {
      // A session that ended between two looks at it. Told later, for the caller does not know this request yet.
      setImmediate(() => this.#finish(connectionLost(describe(error))));
      done();
      return;
    }
    this.#stream = stream;
    stream.on("response", (fields) => {
      this.#status = fields[":status"] ?? 0;
      connection.heard();
    });
    stream.on("data", (chunk: Buffer) => this.#onData(chunk));
    stream.on("end", () => this.#onEnd());
    stream.on("error", (error) => {
      if (!this.#mayTryAgain(stream)) this.#finish(connectionLost(describe(error)));
      else this.sendOver(connection, headers, pcm);
    });
    // However a stream ends, this comes last; if nothing was heard before, the connection was lost.
    stream.on("close", () => {
      done();
      if (stream === this.#stream) this.#finish(connectionLost("closed before the answer was whole"));
    });
    // Called when the connection has taken the last byte.
    stream.end(pcm, done);
  }

  /**
   * Whether the server refused the stream, which says that it did nothing with it: it has more streams than it allows,
   * and had not told the limit yet, or it is about to go. Once.
   */
  #mayTryAgain(stream: ClientHttp2Stream): boolean {
    if (this.#over || this.#wasRefused || stream.rstCode !== constants.NGHTTP2_REFUSED_STREAM) return false;
    this.#wasRefused = true;
    return true;
  }

  cancel(): void {
    if (this.#over) return;
    this.#release();
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  }

  #onData(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= ANSWER_BYTES_MAX) {
      this.#chunks.push(chunk);
      return;
    }
    const stream = this.#stream;
    this.#finish(this.#status === 200 ? badAnswer("longer than 64 KiB") : badStatus(this.#status));
    stream?.close(constants.NGHTTP2_CANCEL);
  }

  #onEnd(): void {
    // A stream that was torn ends, too, though not with code 0; its error or close follows, and tells.
    const isWhole = (this.#stream?.rstCode ?? constants.NGHTTP2_NO_ERROR) === constants.NGHTTP2_NO_ERROR;
    if (this.#over || !isWhole || this.#status === 0) return;
    this.#finish(this.#status === 200 ? this.#parse() : badStatus(this.#status));
  }

  #parse(): Inference | Failure {
    const [first] = this.#chunks;
    const body = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    try {
      return parseInference(UTF8.decode(body));
    } catch {
      return badAnswer("not UTF-8");
    }
  }

  #finish(answer: Inference | Failure): void {
    if (this.#over) return;
    this.#release();
    this.#onAnswer(this, answer);
  }

  #release(): void {
    this.#over = true;
    this.#jobs.release();
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A place for an HTTP/2 session, which is made on first use and made anew when it was lost. */
class Connection {
  readonly #origin: URL;
  #session: ClientHttp2Session | undefined;
  #heardAtMs = 0;
  readonly uploads = new Turns(UPLOADS_MAX);

  constructor(origin: URL) {
    this.#origin = origin;
  }

  /** The server has given a sign of life. */
  heard(): void {
    this.#heardAtMs = performance.now();
  }

  session(): ClientHttp2Session {
    const session = this.#session;
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    this.#session = this.#open();
    return this.#session;
  }

  #open(): ClientHttp2Session {
    const host = this.#origin.hostname.replace(/^\[|\]$/g, "");
    const port = Number(this.#origin.port || 80);
    const session = connect(this.#origin.origin, {
      createConnection: () => connectTcp({ host, port, noDelay: true }),
      settings: { enablePush: false },
    });
    // Each request hears of it by its own stream.
    session.on("error", () => session.destroy());
    session.on("goaway", () => session.close());
    this.#keepAlive(session);
    return session;
  }

  /** Destroys a session whose peer is silent, instead of letting its requests time out until TCP gives up. */
  #keepAlive(session: ClientHttp2Session): void {
    this.heard();
    const timer = setInterval(() => {
      if (session.connecting || session.destroyed) return;
      if (performance.now() - this.#heardAtMs > SILENCE_MS_MAX) session.destroy();
      else session.ping(() => this.heard());
    }, KEEP_ALIVE_MS);
    timer.unref();
    session.on("close", () => clearInterval(timer));
  }
}

/** Sends batches, round-robin over a fixed set of connections. */
export class InferenceClient {
  readonly #connections: readonly Connection[];
  readonly #headers: Record<string, string>;
  readonly #jobs: SharedLimit;
  #next = 0;

  constructor(url: string, connections: number, cpuPasses: number, jobs: SharedLimit) {
    const base = new URL(url);
    this.#connections = Array.from({ length: connections }, () => new Connection(base));
    this.#jobs = jobs;
    this.#headers = {
      ":method": "POST",
      ":path": `${base.pathname.replace(/\/+$/, "")}/infer`,
      "content-type": "application/octet-stream",
      "x-cpu-passes": String(cpuPasses),
    };
  }

  /** Requests in flight in the whole gateway. */
  get inFlight(): number {
    return this.#jobs.inUse;
  }

  /** Takes one of the gateway's jobs, for {@link send}. */
  reserve(): boolean {
    return this.#jobs.tryAcquire();
  }

  /** Sends a batch in a reserved job. Has no timeout of its own: the session times its request, and cancels it. */
  send(pcm: Uint8Array, onAnswer: OnAnswer): InferenceRequest {
    const request = new InferenceRequest(this.#jobs, onAnswer);
    const connection = this.#connections[this.#next];
    this.#next = (this.#next + 1) % this.#connections.length;
    if (connection === undefined) throw new Error("a client has one connection at least");
    request.sendOver(connection, this.#headers, pcm);
    return request;
  }
}
