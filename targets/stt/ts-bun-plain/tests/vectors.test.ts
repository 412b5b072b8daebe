/** The golden vectors that all gateways share, as far as they concern what a gateway computes. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { answerFields, isStart } from "../src/json.ts";
import { errorMessage, FAILURES, type Kind, partialMessage, statusFailure } from "../src/messages.ts";

function cases<T>(file: string): readonly (T & { readonly id: string })[] {
  const text = readFileSync(new URL(`../../vectors/${file}`, import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly cases: readonly (T & { readonly id: string })[] }).cases;
}

for (const { id, text, ok } of cases<{ text: string; ok: boolean }>("start.json")) {
  test(`start: ${id}`, () => expect(isStart(text)).toBe(ok));
}

for (const { id, body, ok } of cases<{ body: string; ok: boolean }>("inference_answers.json")) {
  test(`inference answer: ${id}`, () => expect(answerFields(body) !== null).toBe(ok));
}

interface FailureCase {
  readonly status: number | null;
  readonly stage: string;
  readonly kind: Kind;
  readonly retryable: boolean;
}
for (const { id, status, stage, kind, retryable } of cases<FailureCase>("inference_failures.json")) {
  test(`failure: ${id}`, () => {
    if (status !== null) expect(statusFailure(status)).toBe(kind);
    expect<object>(FAILURES[kind]).toEqual({ stage, retryable });
  });
}

interface PartialCase {
  readonly inference: object;
  readonly batch: {
    readonly oldest_frame_seq: number;
    readonly newest_frame_seq: number;
    readonly flush_lateness_ms: number;
  };
  readonly config: { readonly cpu_passes: number };
  readonly expect: object;
}
for (const { id, inference, batch, config, expect: expected } of cases<PartialCase>("partials.json")) {
  test(`partial: ${id}`, () => {
    const span = {
      oldestSeq: batch.oldest_frame_seq,
      newestSeq: batch.newest_frame_seq,
      oldestAtMs: 0,
      newestAtMs: 0,
      latenessMs: batch.flush_lateness_ms,
    };
    const answer = answerFields(JSON.stringify(inference)) ?? "";
    expect(JSON.parse(partialMessage(span, answer, config.cpu_passes))).toEqual(expected);
  });
}

interface ErrorCase {
  readonly input: {
    readonly kind: Kind;
    readonly message: string;
    readonly batch: {
      readonly oldest_frame_seq: number;
      readonly newest_frame_seq: number;
      readonly oldest_age_ms: number;
      readonly newest_age_ms: number;
      readonly flush_lateness_ms: number;
    };
    readonly inference_elapsed_ms: number | null;
    readonly inflight_gateway_batches: number;
    readonly gateway_buffer_frames: number;
    readonly inference_status: number | null;
  };
  readonly expect: object;
}
for (const { id, input, expect: expected } of cases<ErrorCase>("errors.json")) {
  test(`error: ${id}`, () => {
    const { batch, kind, message } = input;
    const span = {
      oldestSeq: batch.oldest_frame_seq,
      newestSeq: batch.newest_frame_seq,
      oldestAtMs: -batch.oldest_age_ms,
      newestAtMs: -batch.newest_age_ms,
      latenessMs: batch.flush_lateness_ms,
    };
    const failure = { kind, message, elapsedMs: input.inference_elapsed_ms, status: input.inference_status };
    const around = {
      nowMs: 0,
      inflightBatches: input.inflight_gateway_batches,
      bufferFrames: input.gateway_buffer_frames,
    };
    expect(JSON.parse(errorMessage(span, failure, around))).toEqual(expected);
  });
}
