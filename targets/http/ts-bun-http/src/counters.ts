/** The count of requests in memory that all threads share, and its Prometheus text. */

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * A cell per worker, written by nobody else. So it needs no atomic addition, which is slow in JavaScript; a thread that
 * reads it sees a whole number, since an aligned `f64` is stored at once on every machine that Bun runs on.
 */
export class Counters {
  readonly #cells: Float64Array;
  readonly #worker: number;

  constructor(memory: SharedArrayBuffer, worker: number) {
    this.#cells = new Float64Array(memory);
    this.#worker = worker;
  }

  static allocate(workers: number): SharedArrayBuffer {
    return new SharedArrayBuffer(workers * Float64Array.BYTES_PER_ELEMENT);
  }

  countRequest(): void {
    this.#cells[this.#worker] = (this.#cells[this.#worker] ?? 0) + 1;
  }

  /** The sum over all workers, in the Prometheus text format, version 0.0.4. */
  render(): string {
    const total = this.#cells.reduce((sum, count) => sum + count, 0);
    return `# TYPE http_requests_total counter\nhttp_requests_total ${total}\n`;
  }
}
