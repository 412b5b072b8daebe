/** What the gateway says: `partial` and `error`. */

export const FRAME_BYTES = 640;

/** Every kind of failure with its stage, and whether it is worth another try. */
export const FAILURES = {
  timeout: { stage: "inference_request", retryable: true },
  connection_reset: { stage: "inference_request", retryable: true },
  http_429: { stage: "inference_request", retryable: true },
  http_5xx: { stage: "inference_request", retryable: true },
  http_4xx: { stage: "inference_request", retryable: false },
  parse_error: { stage: "inference_response_parse", retryable: false },
  overflow: { stage: "input_buffer", retryable: false },
} as const;

export type Kind = keyof typeof FAILURES;

/** A range of frames that one message names. */
export interface Span {
  readonly oldestSeq: number;
  readonly newestSeq: number;
  readonly oldestAtMs: number;
  readonly newestAtMs: number;
  readonly latenessMs: number;
}

export interface Failure {
  readonly kind: Kind;
  /** For people. */
  readonly message: string;
  /** Null where no request was made. */
  readonly elapsedMs: number | null;
  /** Null where no answer came. */
  readonly status: number | null;
}

/** What an `error` says of the gateway around it. */
export interface Surroundings {
  readonly nowMs: number;
  readonly inflightBatches: number;
  readonly bufferFrames: number;
}

/** The failure that an HTTP status stands for; null for 200. */
export function statusFailure(status: number): Kind | null {
  if (status === 200) return null;
  if (status === 429) return "http_429";
  if (status >= 500 && status <= 599) return "http_5xx";
  if (status >= 400 && status <= 499) return "http_4xx";
  // Whatever it is, it is not the strict answer.
  return "parse_error";
}

/** `answer` is what answerFields() made: six fields and a comma. */
export function partialMessage(span: Span, answer: string, cpuPasses: number): string {
  const frames = span.newestSeq - span.oldestSeq + 1;
  return (
    `{"type":"partial","oldest_frame_seq":${span.oldestSeq},"newest_frame_seq":${span.newestSeq},` +
    `"frames":${frames},${answer}"cpu_passes":${cpuPasses},"flush_lateness_ms":${span.latenessMs}}`
  );
}

export function errorMessage(span: Span, failure: Failure, around: Surroundings): string {
  const frames = span.newestSeq - span.oldestSeq + 1;
  const { stage, retryable } = FAILURES[failure.kind];
  return JSON.stringify({
    type: "error",
    stage,
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
    retryable,
  });
}
