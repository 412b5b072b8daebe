// Compares numbers on pages with numbers in records. A page chooses how many digits it shows. What it shows must be the
// record's number rounded to that many digits.
import assert from "node:assert/strict";

/** Units of a quantity, each with its size in the record's unit. */
export type Units = Record<string, number>;
export const PLAIN: Units = { "": 1, sessions: 1 };
export const MICROSECONDS: Units = { µs: 1, ms: 1_000, s: 1_000_000 };
export const MILLISECONDS: Units = { ms: 1 };
export const SHARE: Units = { "%": 0.01 };
export const BYTES: Units = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** A count as pages show it, with commas. */
export function count(of: number | null): string {
  return of === null ? "–" : of.toLocaleString("en");
}

interface Shown {
  value: number;
  /** Half of the last digit's place value. */
  half: number;
}

/** The numbers in a text, in the record's unit. In a range with one unit, both ends have that unit. */
function shownIn(text: string, units: Units): Shown[] {
  const found = [...text.matchAll(/(-?\d[\d,]*(?:\.(\d+))?)\s*([^\s\d–(),]*)/g)];
  let unit = "";
  const shown = found.reverse().map(([, digits = "", decimals = "", named = ""]) => {
    unit = named in units ? named : unit;
    const scale = units[unit];
    assert.ok(scale !== undefined, `unit ${JSON.stringify(named)} in ${JSON.stringify(text)}`);
    return { value: Number(digits.replaceAll(",", "")) * scale, half: (scale * 10 ** -decimals.length) / 2 };
  });
  return shown.reverse();
}

/** Asserts that the text shows exactly these numbers. A dash is `null`. */
export function assertShows(text: string | undefined, units: Units, ...expected: (number | null)[]): void {
  assert.ok(text !== undefined, "there is no such cell");
  if (expected.every((value) => value === null)) {
    assert.equal(text, "–");
    return;
  }
  const shown = shownIn(text, units);
  const told = `${JSON.stringify(text)} for ${expected.join(", ")}`;
  assert.equal(shown.length, expected.length, told);
  for (const [index, { value, half }] of shown.entries()) {
    const wanted = expected[index] ?? Number.NaN;
    // Slightly more than half of the last digit, for numbers exactly in the middle.
    assert.ok(Math.abs(value - wanted) <= half * 1.000_001 + Number.EPSILON * Math.abs(wanted), told);
  }
}

/** Asserts that the text shows the least and the greatest of these, or one number where the two look the same. */
export function assertShowsRange(
  text: string | undefined,
  units: Units,
  values: readonly (number | null)[],
): void {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) {
    assertShows(text, units, null);
    return;
  }
  const [least, greatest] = [Math.min(...known), Math.max(...known)];
  if (text?.includes("–")) assertShows(text, units, least, greatest);
  else for (const end of [least, greatest]) assertShows(text, units, end);
}
