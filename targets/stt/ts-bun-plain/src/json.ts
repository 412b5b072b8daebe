/**
 * Strict JSON for the two messages that the gateway reads.
 *
 * `JSON.parse` alone forgets repeated fields and how a number was written (7.0 is no u64), so the flat objects of the
 * contract are scanned field by field; `JSON.parse` reads each name and value.
 */

const FIELD =
  /[ \t\n\r]*("(?:[^"\\]|\\.)*")[ \t\n\r]*:[ \t\n\r]*("(?:[^"\\]|\\.)*"|[^ \t\n\r",}[\]{]+)[ \t\n\r]*([,}])/y;
const OPENING = /^[ \t\n\r]*\{/;
const ONLY_SPACE = /^[ \t\n\r]*$/;

/** The fields of one flat JSON object as they were written, by unescaped name; null for anything else. */
export function flatObject(text: string): Map<string, string> | null {
  const opening = OPENING.exec(text);
  if (opening === null) return null;
  const fields = new Map<string, string>();
  FIELD.lastIndex = opening[0].length;
  for (;;) {
    const [whole, name, value, after] = FIELD.exec(text) ?? [];
    if (whole === undefined || name === undefined || value === undefined) return null;
    try {
      const unescaped = JSON.parse(name) as string;
      JSON.parse(value);
      if (fields.has(unescaped)) return null;
      fields.set(unescaped, value);
    } catch {
      return null;
    }
    if (after === "}") return ONLY_SPACE.test(text.slice(FIELD.lastIndex)) ? fields : null;
  }
}

export function isStart(text: string): boolean {
  const fields = flatObject(text);
  const type = fields?.get("type");
  return fields?.size === 1 && type?.startsWith('"') === true && JSON.parse(type) === "start";
}

const U64_MAX = 2n ** 64n - 1n;
const U32_MAX = 2n ** 32n - 1n;

function isUnsigned(raw: string, max: bigint): boolean {
  return /^(?:0|[1-9][0-9]{0,19})$/.test(raw) && BigInt(raw) <= max;
}

const ANSWER_FIELDS: readonly (readonly [name: string, isGood: (raw: string) => boolean])[] = [
  ["rms", (raw) => /^[-0-9]/.test(raw) && Number.isFinite(Number(raw))],
  ["zero_crossings", (raw) => isUnsigned(raw, U64_MAX)],
  ["checksum", (raw) => isUnsigned(raw, U32_MAX)],
  ["samples", (raw) => isUnsigned(raw, U64_MAX)],
  ["transcript", (raw) => raw.startsWith('"')],
  ["audio_bytes", (raw) => isUnsigned(raw, U64_MAX)],
];

/**
 * The six fields of a good answer, ready to stand in a `partial`; null for a parse error. They are passed on as they
 * were written: a double cannot hold every u64.
 */
export function answerFields(body: string): string | null {
  const fields = flatObject(body);
  if (fields?.size !== ANSWER_FIELDS.length) return null;
  let text = "";
  for (const [name, isGood] of ANSWER_FIELDS) {
    const raw = fields.get(name);
    if (raw === undefined || !isGood(raw)) return null;
    text += `"${name}":${raw},`;
  }
  return text;
}
