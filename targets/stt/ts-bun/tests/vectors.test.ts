/** The golden vectors, but for those of frames, which need a socket (gateway.test.ts). */

import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { badStatus, connectionLost, type FailureKind, rowOf, timedOut } from "../src/failure.ts";
import { errorMessage, isFailure, isStart, parseInference, partialMessage } from "../src/messages.ts";
import { type ReferenceAnswer, referenceAnswer, syntheticBatch, syntheticFrame } from "./support/reference.ts";
import { vectors } from "./support/vectors.ts";

describe("start.json", () => {
  for (const { id, text, ok } of vectors<{ id: string; text: string; ok: boolean }>("start")) {
    test(id, () => expect(isStart(text)).toBe(ok));
  }
});

describe("synthetic.json", () => {
  interface Case {
    readonly id: string;
    readonly session: number;
    readonly seq: number;
    readonly first_samples: readonly number[];
    readonly last_samples: readonly number[];
    readonly pcm_sha256: string;
  }
  for (const vector of vectors<Case>("synthetic")) {
    test(vector.id, () => {
      const frame = syntheticFrame(vector.session, vector.seq);
      const samples = Array.from({ length: frame.length / 2 }, (_, place) => frame.readInt16LE(place * 2));
      expect(samples.slice(0, vector.first_samples.length)).toEqual([...vector.first_samples]);
      expect(samples.slice(-vector.last_samples.length)).toEqual([...vector.last_samples]);
      expect(createHash("sha256").update(frame).digest("hex")).toBe(vector.pcm_sha256);
    });
  }
});

describe("reference.json", () => {
  interface Case {
    readonly id: string;
    readonly passes: number;
    readonly pcm?: string;
    readonly pcm_from?: { readonly session: number; readonly first_seq: number; readonly frames: number };
    readonly expect: ReferenceAnswer;
  }
  for (const vector of vectors<Case>("reference")) {
    test(vector.id, () => {
      const from = vector.pcm_from;
      const pcm =
        from === undefined
          ? Buffer.from(vector.pcm ?? "", "hex")
          : syntheticBatch(from.session, from.first_seq, from.frames);
      const { rms, ...exact } = referenceAnswer(pcm, vector.passes);
      const { rms: expectedRms, ...expected } = vector.expect;
      expect(exact).toEqual(expected);
      expect(Math.abs(rms - expectedRms)).toBeLessThanOrEqual(expectedRms * 1e-9);
    });
  }
});

describe("inference_answers.json", () => {
  interface Case {
    readonly id: string;
    readonly body: string;
    readonly ok: boolean;
    readonly kind: FailureKind | null;
  }
  for (const { id, body, ok, kind } of vectors<Case>("inference_answers")) {
    test(id, () => {
      const answer = parseInference(body);
      expect(isFailure(answer)).toBe(!ok);
      expect(isFailure(answer) ? answer.kind : null).toBe(kind);
    });
  }
});

describe("inference_failures.json", () => {
  interface Case {
    readonly id: string;
    readonly status: number | null;
    readonly transport: string | null;
    readonly stage: string;
    readonly kind: string;
    readonly retryable: boolean;
  }
  for (const { id, status, transport, ...expected } of vectors<Case>("inference_failures")) {
    test(id, () => {
      const ofTransport = transport === "timeout" ? timedOut() : connectionLost("reset");
      const failure = status === null ? ofTransport : badStatus(status);
      expect<object>({ kind: failure.kind, ...rowOf(failure.kind) }).toEqual(expected);
      expect(failure.status).toBe(status);
    });
  }
});

describe("partials.json", () => {
  interface Case {
    readonly id: string;
    readonly inference: object;
    readonly batch: {
      readonly oldest_frame_seq: number;
      readonly newest_frame_seq: number;
      readonly flush_lateness_ms: number;
    };
    readonly config: { readonly cpu_passes: number };
    readonly expect: object;
  }
  for (const { id, inference, batch, config, expect: expected } of vectors<Case>("partials")) {
    test(id, () => {
      const answer = parseInference(JSON.stringify(inference));
      if (isFailure(answer)) throw new Error(answer.message);
      const span = {
        oldestSeq: batch.oldest_frame_seq,
        newestSeq: batch.newest_frame_seq,
        oldestAtMs: 0,
        newestAtMs: 0,
      };
      const echo = { cpuPasses: config.cpu_passes };
      expect(JSON.parse(partialMessage(span, answer, echo, batch.flush_lateness_ms))).toEqual(expected);
    });
  }
});

describe("errors.json", () => {
  interface Case {
    readonly id: string;
    readonly input: {
      readonly kind: FailureKind;
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
  for (const { id, input, expect: expected } of vectors<Case>("errors")) {
    test(id, () => {
      const { batch } = input;
      const failure = { kind: input.kind, message: input.message, status: input.inference_status };
      const message = errorMessage(failure, {
        span: {
          oldestSeq: batch.oldest_frame_seq,
          newestSeq: batch.newest_frame_seq,
          oldestAtMs: -batch.oldest_age_ms,
          newestAtMs: -batch.newest_age_ms,
        },
        nowMs: 0,
        flushLatenessMs: batch.flush_lateness_ms,
        inferenceElapsedMs: input.inference_elapsed_ms,
        inflightBatches: input.inflight_gateway_batches,
        bufferFrames: input.gateway_buffer_frames,
      });
      expect(JSON.parse(message)).toEqual(expected);
    });
  }
});
