/** The JSON that crosses the WebSocket, and the answer of the inference server; strict in what is accepted. */

import type { SessionSettings } from "./config.ts";
import { badAnswer, type Failure, rowOf } from "./failure.ts";
import { isDouble, isWholeNumber, readFlatObject, unquote } from "./strict-json.ts";

/** One frame: 20 ms of 16 kHz, mono, 16-bit PCM. */
export const FRAME_BYTES = 640;

const U32_MAX = 2n ** 32n - 1n;
const U64_MAX = 2n ** 64n - 1n;

/** Whether `text` is the start message, however it is spaced or escaped. */
export function isStart(text: string): boolean {
  if (text === '{"type":"start"}') return true;
  const members = readFlatObject(text);
  const type = members?.get("type");
  return members?.size === 1 && type !== undefined && unquote(type) === "start";
}

/**
 * What the inference server says about a batch.
 *
 * Numbers stay the JSON text that they came as: they are passed on to the client, to the last bit, and are no business of
 * the gateway's.
 */
export interface Inference {
  readonly rms: string;
  readonly zeroCrossings: string;
  readonly checksum: string;
  readonly samples: string;
  readonly transcript: string;
  readonly audioBytes: string;
}

const INFERENCE_FIELDS = 6;

/** Reads the body of a 200: exactly the six fields, each once and of its type. */
export function parseInference(text: string): Inference | Failure {
  const members = readFlatObject(text);
  if (members === undefined) return badAnswer("not a flat JSON object with distinct names");
  const rms = members.get("rms");
  if (rms === undefined || !isDouble(rms)) return badAnswer("rms is missing or no double");
  const zeroCrossings = members.get("zero_crossings");
  if (zeroCrossings === undefined || !isWholeNumber(zeroCrossings, U64_MAX)) return notWhole("zero_crossings");
  const checksum = members.get("checksum");
  if (checksum === undefined || !isWholeNumber(checksum, U32_MAX)) return notWhole("checksum");
  const samples = members.get("samples");
  if (samples === undefined || !isWholeNumber(samples, U64_MAX)) return notWhole("samples");
  const audioBytes = members.get("audio_bytes");
  if (audioBytes === undefined || !isWholeNumber(audioBytes, U64_MAX)) return notWhole("audio_bytes");
  const transcript = unquote(members.get("transcript") ?? "");
  if (transcript === undefined) return badAnswer("transcript is missing or no string");
  if (members.size !== INFERENCE_FIELDS) return badAnswer("a field too many");
  return { rms, zeroCrossings, checksum, samples, transcript, audioBytes };
}

function notWhole(field: string): Failure {
  return badAnswer(`${field} is missing or no whole number of its size`);
}

export function isFailure(answer: Inference | Failure): answer is Failure {
  return "kind" in answer;
}

/** A contiguous range of frames: their numbers, and when the gateway received the first and the last. */
export interface Span {
  readonly oldestSeq: number;
  readonly newestSeq: number;
  readonly oldestAtMs: number;
  readonly newestAtMs: number;
}

export function framesOf(span: Span): number {
  return span.newestSeq - span.oldestSeq + 1;
}

/** The configured value that every `partial` repeats. */
export type Echo = Pick<SessionSettings, "cpuPasses">;

/** The `partial` for an answered batch. */
export function partialMessage(span: Span, inference: Inference, echo: Echo, flushLatenessMs: number): string {
  // Written out: a template makes no object for each answer and takes the numbers as they came.
  return (
    `{"type":"partial","oldest_frame_seq":${span.oldestSeq},"newest_frame_seq":${span.newestSeq},` +
    `"frames":${framesOf(span)},"rms":${inference.rms},"zero_crossings":${inference.zeroCrossings},` +
    `"checksum":${inference.checksum},"samples":${inference.samples},` +
    `"transcript":${JSON.stringify(inference.transcript)},"audio_bytes":${inference.audioBytes},` +
    `"cpu_passes":${echo.cpuPasses},"flush_lateness_ms":${flushLatenessMs}}`
  );
}

/** What an `error` says beside the failure itself. */
export interface ErrorContext {
  readonly span: Span;
  /** When the failure was found; ages count to here. */
  readonly nowMs: number;
  readonly flushLatenessMs: number;
  /** Null for dropped frames: no request was made. */
  readonly inferenceElapsedMs: number | null;
  readonly inflightBatches: number;
  readonly bufferFrames: number;
}

/** The `error` for a range of frames. */
export function errorMessage(failure: Failure, context: ErrorContext): string {
  const { span, nowMs } = context;
  const row = rowOf(failure.kind);
  return JSON.stringify({
    type: "error",
    stage: row.stage,
    kind: failure.kind,
    message: failure.message,
    oldest_frame_seq: span.oldestSeq,
    newest_frame_seq: span.newestSeq,
    frames: framesOf(span),
    audio_bytes: framesOf(span) * FRAME_BYTES,
    oldest_age_ms: Math.max(0, nowMs - span.oldestAtMs),
    newest_age_ms: Math.max(0, nowMs - span.newestAtMs),
    flush_lateness_ms: context.flushLatenessMs,
    inference_elapsed_ms: context.inferenceElapsedMs,
    inflight_gateway_batches: context.inflightBatches,
    gateway_buffer_frames: context.bufferFrames,
    inference_status: failure.status,
    retryable: row.retryable,
  });
}
