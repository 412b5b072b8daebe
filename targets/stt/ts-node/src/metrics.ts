// Counters of one worker, and their sum over all workers as Prometheus text (section 8).

import { FAILURES, type Kind, type Stage } from "./messages.js";
import type { Deferral } from "./session.js";

const FRAMES = [1, 2, 5, 10, 20, 50, 75, 100, 150, 200, 300, 500];
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5];
const HISTOGRAMS = {
  stt_buffer_frames: FRAMES,
  stt_flush_lateness_seconds: SECONDS,
  stt_inference_seconds: SECONDS,
};
type HistogramName = keyof typeof HISTOGRAMS;
export type SeriesName =
  | "stt_sessions"
  | "stt_sessions_total"
  | "stt_sessions_rejected_total"
  | "stt_frames_total"
  | "stt_frames_dropped_total"
  | "stt_partials_total"
  | "stt_jobs_inflight";

const GAUGES: ReadonlySet<string> = new Set(["stt_sessions", "stt_jobs_inflight"]);
const PLAIN: readonly SeriesName[] = [
  "stt_sessions",
  "stt_sessions_total",
  "stt_sessions_rejected_total",
  "stt_frames_total",
  "stt_frames_dropped_total",
  "stt_partials_total",
  "stt_jobs_inflight",
];
const REASONS: readonly Deferral[] = ["inflight", "jobs", "outbox"];

/** Values by series, labels included; what workers send to each other. */
export type Snapshot = Record<string, number>;

const errorSeries = (stage: Stage, kind: Kind) => `stt_errors_total{stage="${stage}",kind="${kind}"}`;
const deferredSeries = (reason: Deferral) => `stt_ticks_deferred_total{reason="${reason}"}`;

export class Metrics {
  // Every series is there from the start, so that a rate can be taken of the first event.
  readonly #values: Snapshot = {};

  constructor() {
    for (const name of PLAIN) this.#values[name] = 0;
    for (const [stage, kind] of FAILURES) this.#values[errorSeries(stage, kind)] = 0;
    for (const reason of REASONS) this.#values[deferredSeries(reason)] = 0;
    for (const [name, bounds] of Object.entries(HISTOGRAMS)) {
      for (const bound of bounds) this.#values[`${name}_bucket{le="${bound}"}`] = 0;
      this.#values[`${name}_bucket{le="+Inf"}`] = 0;
      this.#values[`${name}_sum`] = 0;
      this.#values[`${name}_count`] = 0;
    }
  }

  get jobsInflight(): number {
    return this.#values.stt_jobs_inflight ?? 0;
  }

  add(name: SeriesName, by = 1): void {
    this.#add(name, by);
  }

  error(stage: Stage, kind: Kind): void {
    this.#add(errorSeries(stage, kind), 1);
  }

  deferred(reason: Deferral): void {
    this.#add(deferredSeries(reason), 1);
  }

  observe(name: HistogramName, value: number): void {
    // Once per batch, not per frame: the plain loop is cheap enough.
    for (const bound of HISTOGRAMS[name]) if (value <= bound) this.#add(`${name}_bucket{le="${bound}"}`, 1);
    this.#add(`${name}_bucket{le="+Inf"}`, 1);
    this.#add(`${name}_sum`, value);
    this.#add(`${name}_count`, 1);
  }

  snapshot(): Snapshot {
    return { ...this.#values };
  }

  #add(series: string, by: number): void {
    this.#values[series] = (this.#values[series] ?? 0) + by;
  }
}

export function render(snapshots: readonly Snapshot[]): string {
  const sums: Snapshot = new Metrics().snapshot();
  for (const snapshot of snapshots) {
    for (const [series, value] of Object.entries(snapshot)) sums[series] = (sums[series] ?? 0) + value;
  }
  let text = "";
  let family = "";
  for (const [series, value] of Object.entries(sums)) {
    const name = series.replace(/\{.*$/, "").replace(/_(bucket|sum|count)$/, "");
    if (name !== family) {
      family = name;
      const type = name in HISTOGRAMS ? "histogram" : GAUGES.has(name) ? "gauge" : "counter";
      text += `# TYPE ${name} ${type}\n`;
    }
    text += `${series} ${value}\n`;
  }
  return text;
}
