/** The synthetic audio, and the reference computation of the inference server. */

import { FRAME_BYTES } from "../../src/messages.ts";

const SAMPLES_PER_FRAME = 320;

const WORDS = (
  "the quick brown fox jumps over lazy dog hello world yes no okay right left stop go wait ready done again now " +
  "later never"
).split(" ");

/** What the inference server answers, but for the form of its numbers. */
export interface ReferenceAnswer {
  readonly rms: number;
  readonly zero_crossings: number;
  readonly checksum: number;
  readonly samples: number;
  readonly transcript: string;
  readonly audio_bytes: number;
}

/** Frame `seq` of session `session`. */
export function syntheticFrame(session: number, seq: number): Buffer {
  const frame = Buffer.alloc(FRAME_BYTES);
  for (let i = 0; i < SAMPLES_PER_FRAME; i++) {
    const sample = (((seq * SAMPLES_PER_FRAME + session + i) * 17) % 20_000) - 10_000;
    frame.writeInt16LE(sample, i * 2);
  }
  return frame;
}

export function syntheticBatch(session: number, firstSeq: number, frames: number): Buffer {
  return Buffer.concat(Array.from({ length: frames }, (_, place) => syntheticFrame(session, firstSeq + place)));
}

export function referenceAnswer(pcm: Uint8Array, passes: number): ReferenceAnswer {
  const bytes = Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  let checksum = 2_166_136_261;
  let crossings = 0;
  let squares = 0;
  let samples = 0;
  let wasNegative: boolean | undefined;
  for (let pass = 0; pass < passes; pass++) {
    for (let offset = 0; offset < bytes.length; offset += 2) {
      const sample = bytes.readInt16LE(offset);
      checksum = Math.imul(checksum ^ ((sample + 32_768 + pass) & 0xffff), 16_777_619) >>> 0;
      const isNegative = sample < 0;
      if (wasNegative !== undefined && wasNegative !== isNegative) crossings++;
      wasNegative = isNegative;
      squares += sample * sample;
      samples++;
    }
  }
  return {
    rms: samples === 0 ? 0 : Math.sqrt(squares / samples),
    zero_crossings: crossings,
    checksum,
    samples,
    transcript: WORDS[checksum % WORDS.length] ?? "",
    audio_bytes: bytes.length,
  };
}
