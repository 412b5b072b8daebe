/** The configuration: environment variables, all checked before anything starts. */

/** Plain data, so that it can be handed to worker threads. */
export interface Config {
  readonly port: number;
  readonly workerThreads: number;
  readonly drainTimeoutMs: number;
  readonly bodyBytesMax: number;
}

/** A variable whose value cannot be used; the message is one line that names it. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Ten days. No duration here is sensibly longer, and a timer takes no more than 24. */
const MILLISECONDS_MAX = 10 * 24 * 3600 * 1000;

/** Throws a {@link ConfigError} on the first variable whose value cannot be used. */
export function readConfig(environment: Environment): Config {
  const whole = (name: string, fallback: number, max: number): number => {
    const text = environment[name] ?? String(fallback);
    const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= 1 && value <= max) return value;
    // Quoted as JSON, so that the line stays one line whatever the value is.
    throw new ConfigError(`${name}=${JSON.stringify(text)}: give a whole number from 1 to ${max}`);
  };
  return {
    port: whole("PORT", 3000, 65_535),
    workerThreads: whole("WORKER_THREADS", 1, 1024),
    drainTimeoutMs: whole("DRAIN_TIMEOUT_MS", 5000, MILLISECONDS_MAX),
    bodyBytesMax: whole("MAX_BODY_BYTES", 1_048_576, 2 ** 31 - 1),
  };
}
