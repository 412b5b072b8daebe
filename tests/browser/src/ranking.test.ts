// The report of several targets: its rows, its bars and its links.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsOf, textOf, Visit } from "./support/browser.js";
import { RANKING, record, reportUrl } from "./support/fixtures.js";
import { shapesOf } from "./support/geometry.js";
import { assertShows, BYTES, MICROSECONDS, PLAIN } from "./support/numbers.js";
import { assertOpensAlone, openReport } from "./support/opened.js";
import type { Ranking } from "./support/records.js";
import { assertSound } from "./support/soundness.js";

const opened = await openReport(RANKING);
const { browser, folder, visit } = opened;
const ranking = record<Ranking>(folder, "ranking.json");

test("it opens from the disk, asks for nothing else, complains of nothing, and is sound", async () => {
  await assertOpensAlone(opened);
  assert.match(
    await textOf(visit.page, "claim"),
    new RegExp(`${ranking.rows.length} targets on ${ranking.vcpu} vCPU`),
  );
});

test("a row per target, in the record's order, with the record's numbers", async () => {
  const measured = await rowsOf(visit.page, "[data-test=evidence] table");
  const described = await rowsOf(visit.page, "[data-test=targets] table");
  assert.equal(measured.length, ranking.rows.length);
  assert.equal(described.length, ranking.rows.length);
  for (const [index, { bracket, at_common_load: cost, ...target }] of ranking.rows.entries()) {
    const row = new Map([...(measured[index] ?? []), ...(described[index] ?? [])]);
    const cell = (name: string) => row.get(name);
    const { edge } = bracket;
    assert.equal(cell("target"), bracket.target.name);
    assert.equal(cell("tier"), bracket.target.tier);
    assert.equal(cell("broke first"), bracket.failing_gate ?? "–");
    assert.equal(cell("what it is"), `${target.language}, ${target.description}`);
    assertShows(cell("load line"), PLAIN, bracket.confirmed);
    assertShows(cell("per vCPU"), PLAIN, bracket.sessions_per_vcpu && Math.round(bracket.sessions_per_vcpu));
    assertShows(cell("lines of code"), PLAIN, target.lines_of_code);
    assertShows(cell("memory per session"), BYTES, cost?.rss_bytes_per_session ?? null);
    for (const name of ["load line", "per vCPU"]) {
      const lower = bracket.lower_bound_only && bracket.confirmed !== null;
      assert.equal((cell(name) ?? "").startsWith("at least "), lower, `${bracket.target.name}: ${name}`);
    }
    if (edge) {
      const ends = edge.high === null ? [edge.low] : [edge.value, edge.low, edge.high];
      assertShows(cell("edge"), PLAIN, ...ends.map(Math.round), edge.confidence * 100);
    }
    // `310 µs (302–318), 690 µs of its cores, 1 left out`
    const told = cell(`CPU per session-second at ${ranking.common_load}`) ?? "";
    const [, mean, range, cores] =
      /^([^,(]+?)(?: \((.+?)\))?(?:, ([^,]+) of its cores)?(?:, \d+ left out)?$/.exec(told) ?? [];
    assertShows(mean, MICROSECONDS, cost?.cpu_us_per_session_second ?? null);
    if (cost && cost.trials.length > 1)
      assertShows(range, PLAIN, Math.round(cost.low), Math.round(cost.high));
    if (cost) assertShows(cores, MICROSECONDS, cost.core_us_per_session_second);
  }
});

test("bars are as long as load lines and costs are high", async () => {
  const shapes = await shapesOf(visit.page.locator("[data-test=chart-ranking] svg"));
  const bars = shapes.filter(({ name, attributes }) => name === "polygon" && "fill-opacity" in attributes);
  const lengths = (left: number) =>
    bars
      .map(({ points }) => points.map(([x]) => x))
      .filter((xs) => Math.min(...xs) === left)
      .map((xs) => Math.max(...xs) - left);
  for (const [left, values] of [
    [170, ranking.rows.flatMap(({ bracket }) => bracket.confirmed ?? [])],
    [630, ranking.rows.flatMap(({ at_common_load: cost }) => cost?.core_us_per_session_second ?? [])],
  ] as const) {
    const found = lengths(left);
    assert.equal(found.length, values.length);
    const scale = (found[0] ?? 0) / (values[0] ?? 1);
    // The scale comes from the first bar, which is drawn to a tenth of a pixel.
    for (const [index, value] of values.entries()) {
      const length = found[index] ?? Number.NaN;
      assert.ok(Math.abs(length - value * scale) <= 0.1 + value * (0.06 / (values[0] ?? 1)), `bar ${index}`);
    }
  }
});

test("the overlay has a line per target in both panels, and each target's name", async () => {
  const svg = visit.page.locator("[data-test=chart-overlay] svg");
  const curves = (await shapesOf(svg)).filter(({ name }) => name === "polyline");
  const upper = curves.filter(({ points: [at] }) => at && at[1] < 330);
  const searched = ranking.rows.filter(
    ({ bracket }) => new Set(bracket.trials.map((trial) => trial.sessions)).size > 1,
  );
  const costed = ranking.rows.filter(({ bracket }) => bracket.cost_curve.length > 1);
  assert.equal(upper.length, searched.length);
  assert.equal(curves.length - upper.length, costed.length);
  const texts = await svg.locator("text").allTextContents();
  for (const { bracket } of ranking.rows) assert.ok(texts.includes(bracket.target.name), bracket.target.name);
});

test("a target's name leads to its own report", async () => {
  const links = visit.page.locator("[data-test=evidence] tbody th a");
  assert.equal(await links.count(), ranking.rows.length);
  for (const [index, { bracket, folder: own }] of ranking.rows.entries()) {
    const page = await Visit.to(browser, reportUrl(folder));
    await page.page.locator("[data-test=evidence] tbody th a").nth(index).click();
    await page.page.waitForURL((url) => url.pathname.endsWith(`/${own}/report.html`));
    assert.ok((await textOf(page.page, "claim")).startsWith(bracket.target.name), own);
    await assertSound(page.page);
    await page.end();
  }
});
