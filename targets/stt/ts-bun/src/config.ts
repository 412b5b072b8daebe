/** The configuration: environment variables, all checked before anything starts. */

import type { OverflowPolicy } from "./session/audio-buffer.ts";

/** What the core of a session needs. */
export interface SessionSettings {
  readonly flushIntervalMs: number;
  readonly startTimeoutMs: number;
  readonly inferenceTimeoutMs: number;
  readonly bufferFramesMax: number;
  readonly overflowPolicy: OverflowPolicy;
  readonly outboxMessagesMax: number;
  readonly cpuPasses: number;
}

/** Plain data, so that it can be handed to worker threads. */
export interface Config {
  readonly port: number;
  readonly workerThreads: number;
  /** `http://host[:port][/path]` without a slash at its end. */
  readonly inferenceUrl: string;
  /** HTTP/2 connections of each worker. */
  readonly inferenceConnections: number;
  readonly flushPhaseJitterMs: number;
  /** 0 is no limit; so for `jobsMax`. */
  readonly sessionsMax: number;
  readonly jobsMax: number;
  readonly drainTimeoutMs: number;
  /** Empty: everybody may come in. */
  readonly authToken: string;
  /** 0: sockets are read whenever they have something. */
  readonly readPaceMs: number;
  readonly session: SessionSettings;
}

/** A variable whose value cannot be used; the message is one line that names it. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Ten days. No duration here is sensibly longer, and a timer takes no more than 24. */
const MILLISECONDS_MAX = 10 * 24 * 3600 * 1000;

/** Violations are answered within 500 ms, so a read must not wait for longer than half of that. */
const READ_PACE_MS_MAX = 250;

const OVERFLOW_POLICIES: readonly OverflowPolicy[] = ["drop_oldest", "drop_newest", "close"];

/** Throws a {@link ConfigError} on the first variable whose value cannot be used. */
export function readConfig(environment: Environment, cores: number): Config {
  const whole = (name: string, fallback: number, min: number, max: number): number =>
    wholeNumber(name, environment[name] ?? String(fallback), min, max);
  const milliseconds = (name: string, fallback: number, min: number): number =>
    whole(name, fallback, min, MILLISECONDS_MAX);
  return {
    port: whole("PORT", 3000, 1, 65_535),
    workerThreads: whole("WORKER_THREADS", cores, 1, 1024),
    inferenceUrl: inferenceUrl(environment["INFERENCE_URL"] ?? "http://127.0.0.1:9000"),
    inferenceConnections: whole("INFERENCE_HTTP_CLIENTS", 1, 1, 4096),
    flushPhaseJitterMs: milliseconds("FLUSH_PHASE_JITTER_MS", 1000, 0),
    sessionsMax: whole("MAX_SESSIONS", 0, 0, Number.MAX_SAFE_INTEGER),
    jobsMax: whole("MAX_INFLIGHT_JOBS", 0, 0, Number.MAX_SAFE_INTEGER),
    drainTimeoutMs: milliseconds("DRAIN_TIMEOUT_MS", 5000, 0),
    authToken: environment["AUTH_TOKEN"] ?? "",
    readPaceMs: whole("READ_PACE_MS", 0, 0, READ_PACE_MS_MAX),
    session: {
      flushIntervalMs: milliseconds("FLUSH_INTERVAL_MS", 1000, 1),
      startTimeoutMs: milliseconds("START_TIMEOUT_MS", 10_000, 1),
      inferenceTimeoutMs: milliseconds("INFERENCE_TIMEOUT_MS", 5000, 1),
      bufferFramesMax: whole("MAX_BUFFER_FRAMES", 500, 1, 1_000_000),
      overflowPolicy: overflowPolicy(environment["OVERFLOW_POLICY"] ?? "drop_oldest"),
      outboxMessagesMax: whole("OUTBOX_MESSAGES", 4, 1, 1_000_000),
      cpuPasses: whole("CPU_PASSES", 4, 1, 2 ** 32 - 1),
    },
  };
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw bad(name, text, `give a whole number from ${min} to ${max}`);
}

function inferenceUrl(text: string): string {
  const url = URL.parse(text);
  const plain = url?.protocol === "http:" && url.search === "" && url.hash === "" && url.username === "";
  if (url === null || !plain) throw bad("INFERENCE_URL", text, "give http://host:port");
  return url.href.replace(/\/+$/, "");
}

function overflowPolicy(text: string): OverflowPolicy {
  const policy = OVERFLOW_POLICIES.find((known) => known === text);
  if (policy === undefined) throw bad("OVERFLOW_POLICY", text, `give one of ${OVERFLOW_POLICIES.join(", ")}`);
  return policy;
}

function bad(name: string, value: string, wanted: string): ConfigError {
  // Quoted as JSON, so that the line stays one line whatever the value is.
  return new ConfigError(`${name}=${JSON.stringify(value)}: ${wanted}`);
}
