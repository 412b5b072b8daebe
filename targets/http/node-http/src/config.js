// The environment variables of the contract. A bad value is a ConfigError whose message is one line that names the variable.

/**
 * @typedef {object} Config
 * @property {number} port
 * @property {number | undefined} h2Port without it there is no HTTP/2
 * @property {number} workers
 * @property {number} drainTimeoutMs
 * @property {number} maxBodyBytes
 */

/** A variable whose value cannot be used. */
export class ConfigError extends Error {}

/** The longest delay that a Node timer takes; anything longer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const MAX_BODY_BYTES = 2 ** 31 - 1;

/**
 * @param {Record<string, string | undefined>} env
 * @returns {Config}
 */
export function readConfig(env) {
  return {
    port: integer(env, "PORT", 3000, 65_535),
    h2Port: env.H2_PORT === undefined ? undefined : integer(env, "H2_PORT", 0, 65_535),
    workers: integer(env, "WORKER_THREADS", 1, 1024),
    drainTimeoutMs: integer(env, "DRAIN_TIMEOUT_MS", 5000, MAX_TIMER_MS),
    maxBodyBytes: integer(env, "MAX_BODY_BYTES", 1_048_576, MAX_BODY_BYTES),
  };
}

/**
 * @param {Record<string, string | undefined>} env
 * @param {string} name
 * @param {number} fallback
 * @param {number} max
 */
function integer(env, name, fallback, max) {
  const text = env[name];
  if (text === undefined) return fallback;
  const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= max) return value;
  // Quoted as JSON, so that the line stays one line whatever the value is.
  throw new ConfigError(`${name}=${JSON.stringify(text)}: give a whole number from 1 to ${max}`);
}
