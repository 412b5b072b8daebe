/** Counters and histograms in shared memory, and their Prometheus text. */

import { FAILURE_KINDS, rowOf } from "./failure.ts";
import { DEFERRALS, type Tally } from "./session/tally.ts";

/** Inclusive upper bounds, in frames and in seconds. */
const FRAME_BOUNDS = [1, 5, 10, 20, 30, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500];
const LATENESS_BOUNDS_S = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const INFERENCE_BOUNDS_S = [0.01, 0.02, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.3, 0.5, 1, 2, 5];

const MICROSECONDS_PER_MS = 1000;
const MICROSECONDS_PER_S = 1_000_000;

/** Cells of the counters, in the order in which they are laid out. */
const SESSIONS = 0;
const SESSIONS_REJECTED = 1;
const FRAMES = 2;
const FRAMES_DROPPED = 3;
const PARTIALS = 4;
const ERRORS = 5;
const DEFERRED = ERRORS + FAILURE_KINDS.length;
const HISTOGRAMS = DEFERRED + DEFERRALS.length;

/** A histogram over whole units (frames, microseconds), told in frames or seconds. */
class Histogram {
  readonly #cells: BigInt64Array;
  readonly #first: number;
  readonly #bounds: readonly number[];
  readonly #unitsPerTold: number;

  /** From cell `first` on: a count for each bound, one for what is above the last, and the sum. */
  constructor(cells: BigInt64Array, first: number, bounds: readonly number[], unitsPerTold: number) {
    this.#cells = cells;
    this.#first = first;
    this.#bounds = bounds;
    this.#unitsPerTold = unitsPerTold;
  }

  static cellsFor(bounds: readonly number[]): number {
    return bounds.length + 2;
  }

  observe(units: number): void {
    const told = units / this.#unitsPerTold;
    let bucket = 0;
    while (bucket < this.#bounds.length && told > (this.#bounds[bucket] ?? 0)) bucket++;
    Atomics.add(this.#cells, this.#first + bucket, 1n);
    Atomics.add(this.#cells, this.#first + this.#bounds.length + 1, BigInt(units));
  }

  render(name: string): string {
    let count = 0n;
    let text = `# TYPE ${name} histogram\n`;
    for (const [place, bound] of [...this.#bounds, "+Inf"].entries()) {
      count += Atomics.load(this.#cells, this.#first + place);
      text += `${name}_bucket{le="${bound}"} ${count}\n`;
    }
    const sum = Number(Atomics.load(this.#cells, this.#first + this.#bounds.length + 1)) / this.#unitsPerTold;
    return `${text}${name}_sum ${sum}\n${name}_count ${count}\n`;
  }
}

const BUFFER_FRAMES = HISTOGRAMS;
const FLUSH_LATENESS = BUFFER_FRAMES + Histogram.cellsFor(FRAME_BOUNDS);
const INFERENCE = FLUSH_LATENESS + Histogram.cellsFor(LATENESS_BOUNDS_S);

/** How many cells {@link Metrics} needs. */
export const COUNTERS = INFERENCE + Histogram.cellsFor(INFERENCE_BOUNDS_S);

/** One thread's view of the counters that all share. Touched at flushes, answers and ends, never for a mere frame. */
export class Metrics {
  readonly #cells: BigInt64Array;
  readonly #bufferFrames: Histogram;
  readonly #flushLateness: Histogram;
  readonly #inference: Histogram;

  constructor(cells: BigInt64Array) {
    this.#cells = cells;
    this.#bufferFrames = new Histogram(cells, BUFFER_FRAMES, FRAME_BOUNDS, 1);
    this.#flushLateness = new Histogram(cells, FLUSH_LATENESS, LATENESS_BOUNDS_S, MICROSECONDS_PER_S);
    this.#inference = new Histogram(cells, INFERENCE, INFERENCE_BOUNDS_S, MICROSECONDS_PER_S);
  }

  sessionOpened(): void {
    this.#add(SESSIONS, 1);
  }

  sessionRejected(): void {
    this.#add(SESSIONS_REJECTED, 1);
  }

  /** Adds what a session has counted, and clears its tally. */
  fold(tally: Tally): void {
    this.#add(FRAMES, tally.frames);
    this.#add(FRAMES_DROPPED, tally.framesDropped);
    this.#add(PARTIALS, tally.partials);
    if (tally.errorsInAll > 0) {
      for (const [place, count] of tally.errors.entries()) this.#add(ERRORS + place, count);
    }
    if (tally.deferral !== undefined) this.#add(DEFERRED + DEFERRALS.indexOf(tally.deferral), 1);
    if (tally.flushFrames > 0) {
      this.#bufferFrames.observe(tally.flushFrames);
      this.#flushLateness.observe(Math.round(tally.flushLatenessMs * MICROSECONDS_PER_MS));
    }
    if (tally.inferenceMs !== undefined) this.#inference.observe(Math.round(tally.inferenceMs * MICROSECONDS_PER_MS));
    tally.clear();
  }

  /** The Prometheus text format, version 0.0.4. */
  render(sessionsOpen: number, jobsInFlight: number): string {
    const text = [
      plain("stt_sessions", "gauge", sessionsOpen),
      plain("stt_sessions_total", "counter", this.#get(SESSIONS)),
      plain("stt_sessions_rejected_total", "counter", this.#get(SESSIONS_REJECTED)),
      plain("stt_frames_total", "counter", this.#get(FRAMES)),
      plain("stt_frames_dropped_total", "counter", this.#get(FRAMES_DROPPED)),
      plain("stt_partials_total", "counter", this.#get(PARTIALS)),
      "# TYPE stt_errors_total counter\n",
    ];
    for (const [place, kind] of FAILURE_KINDS.entries()) {
      const labels = `stage="${rowOf(kind).stage}",kind="${kind}"`;
      text.push(`stt_errors_total{${labels}} ${this.#get(ERRORS + place)}\n`);
    }
    text.push(plain("stt_jobs_inflight", "gauge", jobsInFlight), "# TYPE stt_ticks_deferred_total counter\n");
    for (const [place, reason] of DEFERRALS.entries()) {
      text.push(`stt_ticks_deferred_total{reason="${reason}"} ${this.#get(DEFERRED + place)}\n`);
    }
    text.push(
      this.#bufferFrames.render("stt_buffer_frames"),
      this.#flushLateness.render("stt_flush_lateness_seconds"),
      this.#inference.render("stt_inference_seconds"),
    );
    return text.join("");
  }

  #add(cell: number, count: number): void {
    if (count > 0) Atomics.add(this.#cells, cell, BigInt(count));
  }

  #get(cell: number): bigint {
    return Atomics.load(this.#cells, cell);
  }
}

function plain(name: string, type: "counter" | "gauge", value: number | bigint): string {
  return `# TYPE ${name} ${type}\n${name} ${value}\n`;
}
