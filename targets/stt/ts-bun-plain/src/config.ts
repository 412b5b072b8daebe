/** The environment variables of the contract. A bad value is a {@link ConfigError} whose message names the variable. */

import { availableParallelism } from "node:os";

export type OverflowPolicy = "drop_oldest" | "drop_newest" | "close";

/** Plain data, so that it can be handed to worker threads. */
export interface Config {
  readonly port: number;
  readonly workers: number;
  /** `http://host[:port][/path]` without a slash at its end. */
  readonly inferenceUrl: string;
  /** The most requests that a worker has at once; 0 is as many as there are. */
  readonly inferenceClients: number;
  readonly inferenceTimeoutMs: number;
  readonly flushIntervalMs: number;
  readonly flushPhaseJitterMs: number;
  readonly cpuPasses: number;
  readonly maxSessions: number;
  readonly maxBufferFrames: number;
  readonly overflowPolicy: OverflowPolicy;
  readonly maxInflightJobs: number;
  readonly outboxMessages: number;
  readonly startTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly authToken: string;
}

export class ConfigError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>;

/** The longest delay that a timer takes; anything longer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const MAX_COUNT = 2 ** 31 - 1;
const U32_MAX = 2 ** 32 - 1;

const OVERFLOW_POLICIES: readonly OverflowPolicy[] = ["drop_oldest", "drop_newest", "close"];

function integer(env: Environment, name: string, fallback: number, min: number, max: number): number {
  const text = env[name] ?? String(fallback);
  const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new ConfigError(`${name}: ${JSON.stringify(text)} is not an integer from ${min} to ${max}`);
}

function policy(env: Environment): OverflowPolicy {
  const text = env["OVERFLOW_POLICY"] ?? "drop_oldest";
  const known = OVERFLOW_POLICIES.find((name) => name === text);
  if (known !== undefined) return known;
  throw new ConfigError(`OVERFLOW_POLICY: ${JSON.stringify(text)} is not one of ${OVERFLOW_POLICIES.join(", ")}`);
}

function baseUrl(env: Environment): string {
  const text = env["INFERENCE_URL"] ?? "http://127.0.0.1:9000";
  const url = URL.parse(text);
  if (url?.protocol === "http:" && url.search === "" && url.hash === "") return url.href.replace(/\/+$/, "");
  throw new ConfigError(`INFERENCE_URL: ${JSON.stringify(text)} is not an http:// base URL`);
}

export function readConfig(env: Environment): Config {
  return {
    port: integer(env, "PORT", 3000, 1, 65_535),
    workers: integer(env, "WORKER_THREADS", availableParallelism(), 1, 1024),
    inferenceUrl: baseUrl(env),
    inferenceClients: integer(env, "INFERENCE_HTTP_CLIENTS", 0, 0, MAX_COUNT),
    inferenceTimeoutMs: integer(env, "INFERENCE_TIMEOUT_MS", 5000, 1, MAX_TIMER_MS),
    flushIntervalMs: integer(env, "FLUSH_INTERVAL_MS", 1000, 1, MAX_TIMER_MS),
    flushPhaseJitterMs: integer(env, "FLUSH_PHASE_JITTER_MS", 1000, 0, MAX_TIMER_MS),
    cpuPasses: integer(env, "CPU_PASSES", 4, 1, U32_MAX),
    maxSessions: integer(env, "MAX_SESSIONS", 0, 0, MAX_COUNT),
    maxBufferFrames: integer(env, "MAX_BUFFER_FRAMES", 500, 1, 1_000_000),
    overflowPolicy: policy(env),
    maxInflightJobs: integer(env, "MAX_INFLIGHT_JOBS", 0, 0, MAX_COUNT),
    outboxMessages: integer(env, "OUTBOX_MESSAGES", 4, 1, 1_000_000),
    startTimeoutMs: integer(env, "START_TIMEOUT_MS", 10_000, 1, MAX_TIMER_MS),
    drainTimeoutMs: integer(env, "DRAIN_TIMEOUT_MS", 5000, 1, MAX_TIMER_MS),
    authToken: env["AUTH_TOKEN"] ?? "",
  };
}
