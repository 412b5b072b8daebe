// The inference client: HTTP/2 over cleartext with prior knowledge, a few connections, taken in turns.

import { type ClientHttp2Session, connect, constants } from "node:http2";
import { connect as dial, type Socket } from "node:net";
import type { Config } from "./config.js";
import { answerFields } from "./json.js";
import { type Failure, statusFailure } from "./messages.js";

export type Outcome =
  | { answer: string; elapsedMs: number; failure: null }
  | { answer: null; elapsedMs: number; failure: Failure };

const MAX_ANSWER_BYTES = 64 * 1024;

export class InferenceClient {
  readonly #config: Config;
  readonly #path: string;
  readonly #connections: (ClientHttp2Session | null)[];
  #next = 0;

  constructor(config: Config) {
    this.#config = config;
    this.#path = `${config.inferenceUrl.pathname.replace(/\/+$/, "")}/infer`;
    this.#connections = new Array(config.inferenceClients).fill(null);
  }

  /** Sends one batch; `done` is called exactly once. */
  infer(frames: readonly Buffer[], done: (outcome: Outcome) => void): void {
    const sinceMs = performance.now();
    let settled = false;
    const settle = (answer: string | null, failure: Omit<Failure, "elapsedMs"> | null) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      const elapsedMs = performance.now() - sinceMs;
      if (answer !== null) done({ answer, elapsedMs, failure: null });
      else if (failure !== null) done({ answer: null, elapsedMs, failure: { ...failure, elapsedMs } });
    };
    const body = frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames);
    const stream = this.#connection().request({
      ":method": "POST",
      ":path": this.#path,
      "content-type": "application/octet-stream",
      "content-length": body.length,
      "x-cpu-passes": this.#config.cpuPasses,
    });
    const timer = setTimeout(() => {
      const message = `no answer in ${this.#config.inferenceTimeoutMs} ms`;
      settle(null, { stage: "inference_request", kind: "timeout", message, status: null });
      stream.close(constants.NGHTTP2_CANCEL);
    }, this.#config.inferenceTimeoutMs);

    let status: number | null = null;
    let text = "";
    stream.setEncoding("utf8");
    stream.on("response", (headers) => {
      status = headers[":status"] ?? 0;
      const named = statusFailure(status);
      if (named !== null) {
        settle(null, { ...named, message: `the inference server answered ${status}`, status });
        stream.resume();
      }
    });
    stream.on("data", (chunk: string) => {
      if (text.length <= MAX_ANSWER_BYTES) text += chunk;
    });
    stream.on("end", () => {
      // A stream that is torn also ends: only an end without a reset is an answer.
      if (status !== 200 || stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted) return;
      const answer = text.length <= MAX_ANSWER_BYTES ? answerFields(text) : null;
      const message = "the answer is not the strict JSON";
      settle(answer, { stage: "inference_response_parse", kind: "parse_error", message, status });
    });
    let reason = "connection closed";
    stream.on("error", (error) => {
      reason = error.message;
    });
    stream.on("close", () =>
      settle(null, { stage: "inference_request", kind: "connection_reset", message: reason, status: null }),
    );
    stream.end(body);
  }

  close(): void {
    for (const connection of this.#connections) connection?.destroy();
  }

  #connection(): ClientHttp2Session {
    const index = this.#next;
    this.#next = (index + 1) % this.#connections.length;
    const known = this.#connections[index];
    if (known && !known.closed && !known.destroyed) return known;
    // maxSessionMemory (MB): at the default of 10 a pile-up of requests in a slow spell would tear the connection.
    const connection = connect(this.#config.inferenceUrl.origin, {
      maxSessionMemory: 1024,
      createConnection: () => this.#dial(), // for TCP_NODELAY: node:http2 lets nobody set it afterwards
    });
    connection.on("error", () => {}); // its streams report it, each for its own batch
    const forget = () => {
      if (this.#connections[index] === connection) this.#connections[index] = null;
    };
    connection.on("goaway", forget);
    connection.on("close", forget);
    this.#connections[index] = connection;
    return connection;
  }

  #dial(): Socket {
    const { hostname, port } = this.#config.inferenceUrl;
    const host = hostname.replace(/^\[|\]$/g, "");
    return dial({ host, port: port === "" ? 80 : Number(port), noDelay: true });
  }
}
