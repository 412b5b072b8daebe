// What a worker counts, and the Prometheus text of the sums over all workers.

/**
 * @typedef {object} Counts
 * @property {number} requests
 * @property {number} accepted
 * @property {number} open
 */

/** @type {readonly (readonly [keyof Counts, string, string])[]} */
const METRICS = [
  ["requests", "http_requests_total", "counter"],
  ["accepted", "http_connections_accepted_total", "counter"],
  ["open", "http_connections_open", "gauge"],
];

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** @returns {Counts} */
export function newCounts() {
  return { requests: 0, accepted: 0, open: 0 };
}

/**
 * @param {Iterable<Counts>} all
 * @returns {Counts}
 */
export function sum(all) {
  const total = newCounts();
  for (const counts of all) {
    for (const [key] of METRICS) total[key] += counts[key];
  }
  return total;
}

/** @param {Counts} counts */
export function render(counts) {
  return METRICS.map(([key, name, type]) => `# TYPE ${name} ${type}\n${name} ${counts[key]}\n`).join("");
}
