/** Counters and histograms, and their sum over all workers as Prometheus text. */

import { FAILURES, type Kind } from "./messages.ts";
import type { Deferral } from "./session.ts";

const FRAMES = [1, 2, 5, 10, 20, 50, 75, 100, 150, 200, 300, 500];
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5];
const HISTOGRAMS = {
  stt_buffer_frames: FRAMES,
  stt_flush_lateness_seconds: SECONDS,
  stt_inference_seconds: SECONDS,
} as const;
const GAUGES = ["stt_sessions", "stt_jobs_inflight"] as const;
const COUNTERS = [
  "stt_sessions_total",
  "stt_sessions_rejected_total",
  "stt_frames_total",
  "stt_frames_dropped_total",
  "stt_partials_total",
] as const;
const DEFERRALS: readonly Deferral[] = ["inflight", "jobs", "outbox"];

type Plain = (typeof GAUGES)[number] | (typeof COUNTERS)[number];
type Histogram = keyof typeof HISTOGRAMS;

const errorSeries = (kind: Kind): string => `stt_errors_total{stage="${FAILURES[kind].stage}",kind="${kind}"}`;
const deferredSeries = (reason: Deferral): string => `stt_ticks_deferred_total{reason="${reason}"}`;
const bucketSeries = (name: Histogram, bound: number | "+Inf"): string => `${name}_bucket{le="${bound}"}`;

/** Each family with its type and its samples. All are there from the start, so that a rate can be taken of the first event. */
const FAMILIES: readonly (readonly [name: string, type: string, series: readonly string[]])[] = [
  ...GAUGES.map((name) => [name, "gauge", [name]] as const),
  ...COUNTERS.map((name) => [name, "counter", [name]] as const),
  ["stt_errors_total", "counter", (Object.keys(FAILURES) as Kind[]).map(errorSeries)],
  ["stt_ticks_deferred_total", "counter", DEFERRALS.map(deferredSeries)],
  ...(Object.keys(HISTOGRAMS) as Histogram[]).map((name) => {
    const buckets = [...HISTOGRAMS[name], "+Inf" as const].map((bound) => bucketSeries(name, bound));
    return [name, "histogram", [...buckets, `${name}_sum`, `${name}_count`]] as const;
  }),
];

const SERIES = FAMILIES.flatMap(([, , series]) => series);
const PLACES: ReadonlyMap<string, number> = new Map(SERIES.map((series, place) => [series, place]));

export function metricsMemory(workers: number): SharedArrayBuffer {
  return new SharedArrayBuffer(workers * SERIES.length * Float64Array.BYTES_PER_ELEMENT);
}

/** Each worker writes to a row of its own in the shared memory; a reader adds the rows up. */
export class Metrics {
  readonly #rows: Float64Array;
  readonly #own: Float64Array;

  constructor(memory: SharedArrayBuffer, worker: number) {
    this.#rows = new Float64Array(memory);
    this.#own = this.#rows.subarray(worker * SERIES.length, (worker + 1) * SERIES.length);
  }

  add(name: Plain, by = 1): void {
    this.#add(name, by);
  }

  error(kind: Kind): void {
    this.#add(errorSeries(kind), 1);
  }

  deferred(reason: Deferral): void {
    this.#add(deferredSeries(reason), 1);
  }

  /** Once per batch, not per frame. */
  observe(name: Histogram, value: number): void {
    for (const bound of HISTOGRAMS[name]) if (value <= bound) this.#add(bucketSeries(name, bound), 1);
    this.#add(bucketSeries(name, "+Inf"), 1);
    this.#add(`${name}_sum`, value);
    this.#add(`${name}_count`, 1);
  }

  /** The value for the whole gateway. */
  total(series: string): number {
    let sum = 0;
    for (let place = PLACES.get(series) ?? Number.NaN; place < this.#rows.length; place += SERIES.length) {
      sum += this.#rows[place] ?? 0;
    }
    return sum;
  }

  /** The Prometheus text format, version 0.0.4. */
  render(): string {
    let text = "";
    for (const [name, type, series] of FAMILIES) {
      text += `# TYPE ${name} ${type}\n`;
      for (const sample of series) text += `${sample} ${this.total(sample)}\n`;
    }
    return text;
  }

  #add(series: string, by: number): void {
    const place = PLACES.get(series) ?? Number.NaN;
    this.#own[place] = (this.#own[place] ?? 0) + by;
  }
}
