/**
 * JSON objects of strings and numbers, read strictly.
 *
 * `JSON.parse` is not enough for this contract: it takes the last of two members with the same name, and once it has
 * turned `7.0` into the number 7, or rounded a 64-bit integer, nobody can tell any more.
 */

const SPACE = String.raw`[ \t\n\r]*`;
// Runs of plain characters in one step each: a group for every character would be backtracked through one by one.
const PLAIN = String.raw`[^"\\\u0000-\u001f]*`;
const STRING = String.raw`"${PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})${PLAIN})*"`;
const NUMBER = String.raw`-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`;

const OPENING = new RegExp(`${SPACE}\\{`, "y");
/** One member, and what follows it: a comma, or the object's end and then nothing. */
const MEMBER = new RegExp(`${SPACE}(${STRING})${SPACE}:${SPACE}(${STRING}|${NUMBER})${SPACE}(,|\\}${SPACE}$)`, "y");

/**
 * The members of the object that `text` is, by name: each value as the JSON text that stood there.
 *
 * Undefined when `text` is anything else, names a member twice, or has a value that is neither string nor number.
 */
export function readFlatObject(text: string): ReadonlyMap<string, string> | undefined {
  OPENING.lastIndex = 0;
  if (!OPENING.test(text)) return undefined;
  MEMBER.lastIndex = OPENING.lastIndex;
  const members = new Map<string, string>();
  for (;;) {
    const [, quotedName, value, next] = MEMBER.exec(text) ?? [];
    if (quotedName === undefined || value === undefined || next === undefined) return undefined;
    const name = unquote(quotedName);
    if (name === undefined || members.has(name)) return undefined;
    members.set(name, value);
    if (next !== ",") return members;
  }
}

/** The string that a JSON text stands for; undefined when it stands for something else, or for no Unicode text. */
export function unquote(json: string): string | undefined {
  if (!json.startsWith('"')) return undefined;
  if (!json.includes("\\")) return json.slice(1, -1);
  const text: unknown = JSON.parse(json);
  return typeof text === "string" && text.isWellFormed() ? text : undefined;
}

/** Whether a JSON text is a whole number from 0 to `max`, written as one. */
export function isWholeNumber(json: string, max: bigint): boolean {
  // 16 digits are not beyond what every `max` of the contract allows but 32 bits, and need no bigint to see that.
  return /^(?:0|[1-9][0-9]{0,19})$/.test(json) && (json.length < 10 || BigInt(json) <= max);
}

/** Whether a JSON text is a number that a double can hold. */
export function isDouble(json: string): boolean {
  return !json.startsWith('"') && Number.isFinite(Number(json));
}
