// What a worker counts, and the Prometheus text of the sums over all workers.

/**
 * @typedef {object} Counts
 * @property {number} open
 * @property {number} accepted
 * @property {number} refused
 * @property {number} received
 * @property {number} receivedBytes
 * @property {number} sent
 * @property {number} dropped
 */

/** @type {readonly (readonly [keyof Counts, string, string])[]} */
const METRICS = [
  ["open", "ws_connections_open", "gauge"],
  ["accepted", "ws_connections_accepted_total", "counter"],
  ["refused", "ws_connections_refused_total", "counter"],
  ["received", "ws_messages_received_total", "counter"],
  ["receivedBytes", "ws_bytes_received_total", "counter"],
  ["sent", "ws_messages_sent_total", "counter"],
  ["dropped", "ws_messages_dropped_total", "counter"],
];

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** @returns {Counts} */
export function newCounts() {
  return { open: 0, accepted: 0, refused: 0, received: 0, receivedBytes: 0, sent: 0, dropped: 0 };
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
