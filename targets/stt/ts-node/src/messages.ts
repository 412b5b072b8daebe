// What the gateway says: `partial` (section 6) and `error` (section 7).

export type Stage = "inference_request" | "inference_response_parse" | "input_buffer";
export type Kind =
  | "timeout"
  | "connection_reset"
  | "http_429"
  | "http_5xx"
  | "http_4xx"
  | "parse_error"
  | "overflow";

/** Every pair of the contract, for the metrics, which show all of them from the start. */
export const FAILURES: readonly (readonly [Stage, Kind])[] = [
  ["inference_request", "timeout"],
  ["inference_request", "connection_reset"],
  ["inference_request", "http_429"],
  ["inference_request", "http_5xx"],
  ["inference_request", "http_4xx"],
  ["inference_response_parse", "parse_error"],
  ["input_buffer", "overflow"],
];

const RETRYABLE: ReadonlySet<Kind> = new Set(["timeout", "connection_reset", "http_429", "http_5xx"]);

/** A range of frames that one message names. */
export interface Span {
  oldestSeq: number;
  newestSeq: number;
  oldestAtMs: number;
  newestAtMs: number;
  latenessMs: number;
}

export interface Failure {
  stage: Stage;
  kind: Kind;
  message: string;
  elapsedMs: number | null;
  status: number | null;
}

export interface Surroundings {
  nowMs: number;
  inflightBatches: number;
  bufferFrames: number;
}

export const FRAME_BYTES = 640;

/** The failure that an HTTP status stands for; null for 200. */
export function statusFailure(status: number): { stage: Stage; kind: Kind } | null {
  if (status === 200) return null;
  if (status === 429) return { stage: "inference_request", kind: "http_429" };
  if (status >= 500) return { stage: "inference_request", kind: "http_5xx" };
  if (status >= 400) return { stage: "inference_request", kind: "http_4xx" };
  // The contract names no other status; whatever it is, it is not the strict answer.
  return { stage: "inference_response_parse", kind: "parse_error" };
}

/** `answer` is what answerFields() made: six fields and a comma. */
export function partialMessage(span: Span, answer: string, config: { cpuPasses: number }): string {
  const frames = span.newestSeq - span.oldestSeq + 1;
  return (
    `{"type":"partial","oldest_frame_seq":${span.oldestSeq},"newest_frame_seq":${span.newestSeq},` +
    `"frames":${frames},${answer}"cpu_passes":${config.cpuPasses},"flush_lateness_ms":${span.latenessMs}}`
  );
}

export function errorMessage(span: Span, failure: Failure, around: Surroundings): string {
  const frames = span.newestSeq - span.oldestSeq + 1;
  return JSON.stringify({
    type: "error",
    stage: failure.stage,
    kind: failure.kind,
    message: failure.message,
    oldest_frame_seq: span.oldestSeq,
    newest_frame_seq: span.newestSeq,
    frames,
    audio_bytes: frames * FRAME_BYTES,
    oldest_age_ms: around.nowMs - span.oldestAtMs,
    newest_age_ms: around.nowMs - span.newestAtMs,
    flush_lateness_ms: span.latenessMs,
    inference_elapsed_ms: failure.elapsedMs,
    inflight_gateway_batches: around.inflightBatches,
    gateway_buffer_frames: around.bufferFrames,
    inference_status: failure.status,
    retryable: RETRYABLE.has(failure.kind),
  });
}
