// The golden vectors that all gateways share, as far as they concern what a gateway computes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { answerFields, isStart } from "../src/json.js";
import { errorMessage, type Kind, partialMessage, type Stage, statusFailure } from "../src/messages.js";

function cases<T>(file: string): ({ id: string } & T)[] {
  const url = new URL(`../../../vectors/${file}`, import.meta.url);
  return JSON.parse(readFileSync(url, "utf8")).cases;
}

for (const { id, text, ok } of cases<{ text: string; ok: boolean }>("start.json")) {
  test(`start: ${id}`, () => assert.equal(isStart(text), ok));
}

for (const { id, body, ok } of cases<{ body: string; ok: boolean }>("inference_answers.json")) {
  test(`inference answer: ${id}`, () => assert.equal(answerFields(body) !== null, ok));
}

interface FailureCase {
  status: number | null;
  stage: Stage;
  kind: Kind;
}
for (const { id, status, stage, kind } of cases<FailureCase>("inference_failures.json")) {
  if (status !== null) test(`failure: ${id}`, () => assert.deepEqual(statusFailure(status), { stage, kind }));
}

interface PartialCase {
  inference: object;
  batch: { oldest_frame_seq: number; newest_frame_seq: number; flush_lateness_ms: number };
  config: { cpu_passes: number };
  expect: object;
}
for (const { id, inference, batch, config, expect } of cases<PartialCase>("partials.json")) {
  test(`partial: ${id}`, () => {
    const span = {
      oldestSeq: batch.oldest_frame_seq,
      newestSeq: batch.newest_frame_seq,
      oldestAtMs: 0,
      newestAtMs: 0,
      latenessMs: batch.flush_lateness_ms,
    };
    const answer = answerFields(JSON.stringify(inference));
    assert.ok(answer !== null);
    const text = partialMessage(span, answer, { cpuPasses: config.cpu_passes });
    assert.deepEqual(JSON.parse(text), expect);
  });
}

interface ErrorCase {
  input: {
    stage: Stage;
    kind: Kind;
    message: string;
    batch: {
      oldest_frame_seq: number;
      newest_frame_seq: number;
      oldest_age_ms: number;
      newest_age_ms: number;
      flush_lateness_ms: number;
    };
    inference_elapsed_ms: number | null;
    inflight_gateway_batches: number;
    gateway_buffer_frames: number;
    inference_status: number | null;
  };
  expect: object;
}
for (const { id, input, expect } of cases<ErrorCase>("errors.json")) {
  test(`error: ${id}`, () => {
    const { batch } = input;
    const span = {
      oldestSeq: batch.oldest_frame_seq,
      newestSeq: batch.newest_frame_seq,
      oldestAtMs: -batch.oldest_age_ms,
      newestAtMs: -batch.newest_age_ms,
      latenessMs: batch.flush_lateness_ms,
    };
    const failure = { ...input, elapsedMs: input.inference_elapsed_ms, status: input.inference_status };
    const around = {
      nowMs: 0,
      inflightBatches: input.inflight_gateway_batches,
      bufferFrames: input.gateway_buffer_frames,
    };
    assert.deepEqual(JSON.parse(errorMessage(span, failure, around)), expect);
  });
}
