/** Counters in memory that all threads share, and their Prometheus text. */

const METRICS = [
  ["ws_connections_open", "gauge"],
  ["ws_connections_accepted_total", "counter"],
  ["ws_connections_refused_total", "counter"],
  ["ws_messages_received_total", "counter"],
  ["ws_bytes_received_total", "counter"],
  ["ws_messages_sent_total", "counter"],
  ["ws_messages_dropped_total", "counter"],
] as const;

/** The places of a row, in the order of the metrics. */
export const COUNTER = {
  open: 0,
  accepted: 1,
  refused: 2,
  received: 3,
  receivedBytes: 4,
  sent: 5,
  dropped: 6,
} as const;

export type Counter = (typeof COUNTER)[keyof typeof COUNTER];

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * One worker's counters, written by nobody else. So they need no atomic addition, which is slow in JavaScript; a thread
 * that reads them sees whole numbers, since an aligned `f64` is stored at once on every machine that Bun runs on.
 */
export class Row {
  readonly #cells: Float64Array;

  constructor(cells: Float64Array) {
    this.#cells = cells;
  }

  add(counter: Counter, count: number): void {
    this.#cells[counter] = (this.#cells[counter] ?? 0) + count;
  }
}

export class Counters {
  readonly #cells: Float64Array;

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Float64Array(memory);
  }

  static allocate(workers: number): SharedArrayBuffer {
    return new SharedArrayBuffer(workers * METRICS.length * Float64Array.BYTES_PER_ELEMENT);
  }

  row(worker: number): Row {
    return new Row(this.#cells.subarray(worker * METRICS.length, (worker + 1) * METRICS.length));
  }

  total(counter: Counter): number {
    let total = 0;
    for (let cell: number = counter; cell < this.#cells.length; cell += METRICS.length) total += this.#cells[cell] ?? 0;
    return total;
  }

  /** Sums over all workers, in the Prometheus text format, version 0.0.4. */
  render(): string {
    return METRICS.map(
      ([name, type], counter) => `# TYPE ${name} ${type}\n${name} ${this.total(counter as Counter)}\n`,
    ).join("");
  }
}
