/** The inference client: `fetch` with keep-alive. */

import type { Config } from "./config.ts";
import { answerFields } from "./json.ts";
import { type Failure, statusFailure } from "./messages.ts";

export interface Outcome {
  readonly elapsedMs: number;
  /** What answerFields() made of a good answer, or why there is none. */
  readonly result: string | Failure;
}

export class InferenceClient {
  readonly #url: string;
  readonly #timeoutMs: number;
  readonly #headers: Readonly<Record<string, string>>;
  /** Places for requests, and those that wait for one. */
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(config: Pick<Config, "inferenceUrl" | "inferenceTimeoutMs" | "inferenceClients" | "cpuPasses">) {
    this.#url = `${config.inferenceUrl}/infer`;
    this.#timeoutMs = config.inferenceTimeoutMs;
    this.#headers = { "content-type": "application/octet-stream", "x-cpu-passes": String(config.cpuPasses) };
    this.#free = config.inferenceClients === 0 ? Number.POSITIVE_INFINITY : config.inferenceClients;
  }

  /** Sends one batch. Never rejects. */
  async infer(frames: readonly Uint8Array[]): Promise<Outcome> {
    const sinceMs = performance.now();
    const signal = AbortSignal.timeout(this.#timeoutMs);
    await this.#turn();
    const found = await this.#ask(frames, signal);
    this.#release();
    const elapsedMs = performance.now() - sinceMs;
    return { elapsedMs, result: typeof found === "string" ? found : { ...found, elapsedMs } };
  }

  async #ask(frames: readonly Uint8Array[], signal: AbortSignal): Promise<string | Omit<Failure, "elapsedMs">> {
    try {
      const body = Buffer.concat(frames);
      const response = await fetch(this.#url, {
        method: "POST",
        headers: this.#headers,
        body,
        signal,
        redirect: "manual",
      });
      const { status } = response;
      // The body is read in any case: a connection is free for the next request only then.
      const text = await response.text();
      const kind = statusFailure(status);
      if (kind !== null) return { kind, message: `the inference server answered ${status}`, status };
      const answer = answerFields(text);
      return answer ?? { kind: "parse_error", message: "the answer is not the strict JSON", status };
    } catch (error) {
      if (signal.aborted) return { kind: "timeout", message: `no answer in ${this.#timeoutMs} ms`, status: null };
      return { kind: "connection_reset", message: String(error), status: null };
    }
  }

  async #turn(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
