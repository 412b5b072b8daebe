// The environment variables of section 8. A bad value is a ConfigError whose message names the variable.

import { availableParallelism } from "node:os";

export type OverflowPolicy = "drop_oldest" | "drop_newest" | "close";

export interface Config {
  port: number;
  workers: number;
  inferenceUrl: URL;
  /** HTTP/2 connections of each worker. */
  inferenceClients: number;
  inferenceTimeoutMs: number;
  flushIntervalMs: number;
  flushPhaseJitterMs: number;
  cpuPasses: number;
  maxSessions: number;
  maxBufferFrames: number;
  overflowPolicy: OverflowPolicy;
  maxInflightJobs: number;
  outboxMessages: number;
  startTimeoutMs: number;
  drainTimeoutMs: number;
  authToken: string;
}

export class ConfigError extends Error {}

type Env = Record<string, string | undefined>;

/** The longest delay that a Node timer takes; anything longer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const U32_MAX = 2 ** 32 - 1;

function integer(env: Env, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (text === undefined) return fallback;
  const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) {
    throw new ConfigError(`${name}: ${JSON.stringify(text)} is not an integer from ${min} to ${max}`);
  }
  return value;
}

function policy(env: Env): OverflowPolicy {
  const text = env.OVERFLOW_POLICY ?? "drop_oldest";
  if (text === "drop_oldest" || text === "drop_newest" || text === "close") return text;
  throw new ConfigError(
    `OVERFLOW_POLICY: ${JSON.stringify(text)} is not one of drop_oldest, drop_newest, close`,
  );
}

function baseUrl(env: Env): URL {
  const text = env.INFERENCE_URL ?? "http://127.0.0.1:9000";
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.protocol !== "http:" || url.hostname === "" || url.search || url.hash) {
    throw new ConfigError(`INFERENCE_URL: ${JSON.stringify(text)} is not an http:// base URL`);
  }
  return url;
}

export function readConfig(env: Env): Config {
  return {
    port: integer(env, "PORT", 3000, 1, 65535),
    workers: integer(env, "WORKER_THREADS", availableParallelism(), 1, 1024),
    inferenceUrl: baseUrl(env),
    inferenceClients: integer(env, "INFERENCE_HTTP_CLIENTS", 1, 1, 1024),
    inferenceTimeoutMs: integer(env, "INFERENCE_TIMEOUT_MS", 5000, 1, MAX_TIMER_MS),
    flushIntervalMs: integer(env, "FLUSH_INTERVAL_MS", 1000, 1, MAX_TIMER_MS),
    flushPhaseJitterMs: integer(env, "FLUSH_PHASE_JITTER_MS", 1000, 0, MAX_TIMER_MS),
    cpuPasses: integer(env, "CPU_PASSES", 4, 1, U32_MAX),
    maxSessions: integer(env, "MAX_SESSIONS", 0, 0, U32_MAX),
    maxBufferFrames: integer(env, "MAX_BUFFER_FRAMES", 500, 1, 1_000_000),
    overflowPolicy: policy(env),
    maxInflightJobs: integer(env, "MAX_INFLIGHT_JOBS", 0, 0, U32_MAX),
    outboxMessages: integer(env, "OUTBOX_MESSAGES", 4, 1, 1_000_000),
    startTimeoutMs: integer(env, "START_TIMEOUT_MS", 10000, 1, MAX_TIMER_MS),
    drainTimeoutMs: integer(env, "DRAIN_TIMEOUT_MS", 5000, 1, MAX_TIMER_MS),
    authToken: env.AUTH_TOKEN ?? "",
  };
}
