// The report of a comparison of two targets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, textOf } from "./support/browser.js";
import { COMPARISON, record } from "./support/fixtures.js";
import { Axis, assertMarksAt, isInPlot, type Point, shapesOf } from "./support/geometry.js";
import { assertShows, MICROSECONDS, PLAIN } from "./support/numbers.js";
import { assertOpensAlone, openReport } from "./support/opened.js";
import type { Comparison } from "./support/records.js";

const opened = await openReport(COMPARISON);
const { folder, visit } = opened;
const comparison = record<Comparison>(folder, "comparison.json");

test("it opens from the disk, asks for nothing else, complains of nothing, and is sound", async () => {
  await assertOpensAlone(opened);
});

test("the conclusion and its numbers are the record's", async () => {
  const { a, b, conclusion } = comparison;
  assert.equal(await textOf(visit.page, "claim"), comparison.explanation.replace(/\.$/, ""));
  const words: Record<string, string> = { better: "B is better", worse: "B is worse" };
  assert.equal(await textOf(visit.page, "verdict"), words[conclusion] ?? "No difference shown");
  const sides = await visit.page.locator(".answer h1 + p").innerText();
  assert.equal(sides, `A is ${a.name}, B is ${b.name}.`);
  const rows = await bodyOf(visit.page, ".answer table");
  for (const [index, ratio] of [comparison.cost_ratio, comparison.load_line_ratio].entries()) {
    const [, value, interval] = rows[index] ?? [];
    assertShows(value, PLAIN, ratio?.value ?? null);
    assertShows(interval, PLAIN, ...(ratio ? [ratio.low, ratio.high] : [null]));
  }
});

test("both sides and every pair are there, with the record's numbers", async () => {
  const sides = await bodyOf(visit.page, "#comparison-sides table");
  for (const [index, side] of [comparison.a, comparison.b].entries()) {
    const [letter, name, , , , cost, core, trials] = sides[index] ?? [];
    assert.deepEqual([letter, name], [index === 0 ? "A" : "B", side.name]);
    assertShows(cost, MICROSECONDS, side.cpu_us_per_session_second);
    assertShows(core, MICROSECONDS, side.core_us_per_session_second ?? null);
    assertShows(trials, PLAIN, side.trials.length);
  }
  const pairs = await bodyOf(visit.page, "#comparison-evidence table");
  assert.equal(pairs.length, comparison.pairs.length);
  for (const [index, pair] of comparison.pairs.entries()) {
    const [number, sessions, order, a, b, ratio, files, leftOut] = pairs[index] ?? [];
    assertShows(number, PLAIN, index + 1);
    assertShows(sessions, PLAIN, pair.sessions);
    assert.equal(order, pair.b_first ? "B, A" : "A, B");
    const [costOfA, costOfB] = costsOf(pair);
    assertShows(a, MICROSECONDS, costOfA);
    assertShows(b, MICROSECONDS, costOfB);
    assertShows(ratio, PLAIN, ratioOf(pair));
    assert.equal(files, `${pair.a_file}, ${pair.b_file}`);
    assert.equal(leftOut, pair.left_out ?? "");
  }
});

test("the plot has every pair's ratio where it is, and the mean with its interval", async () => {
  const svg = visit.page.locator("[data-test=chart-ratios] svg");
  const [shapes, axes] = [await shapesOf(svg), await Axis.of(svg)];
  const dots = shapes.filter(({ name, points: [at] }) => name === "circle" && at && isInPlot(at));
  const { cost_ratio: mean } = comparison;
  assert.ok(mean);
  const places = comparison.pairs.map(
    (pair, index): Point => [axes.x.px(index + 1), axes.y.px(ratioOf(pair) ?? 0)],
  );
  const [meanAt] = dots.filter(({ attributes }) => attributes.r !== "4.5");
  assertMarksAt(
    dots.filter((dot) => dot !== meanAt).flatMap(({ points }) => points),
    places,
    "pairs",
  );
  const x = meanAt?.points[0]?.[0] ?? Number.NaN;
  assert.ok(Math.abs((meanAt?.points[0]?.[1] ?? Number.NaN) - axes.y.px(mean.value)) <= 1);
  const upright = (points: readonly Point[]) => points.every((at) => at[0] === x && isInPlot(at));
  const interval = shapes.find(({ name, points }) => name === "line" && upright(points));
  const ends = interval?.points.map(([, y]) => y) ?? [];
  for (const [index, value] of [mean.low, mean.high].entries()) {
    assert.ok(Math.abs((ends[index] ?? Number.NaN) - axes.y.px(value)) <= 1, `${value} at ${ends[index]}`);
  }
});

/**
 * The costs of a pair, by the account that the comparison uses. Records from before there were two accounts have the
 * charged costs.
 */
function costsOf(pair: Comparison["pairs"][number]): [number | null, number | null] {
  return comparison.cost_account === "core"
    ? [pair.a_core_us_per_session_second ?? null, pair.b_core_us_per_session_second ?? null]
    : [pair.a_cpu_us_per_session_second, pair.b_cpu_us_per_session_second];
}

function ratioOf(pair: Comparison["pairs"][number]): number | null {
  const [a, b] = costsOf(pair);
  return a === null || b === null ? null : b / a;
}
