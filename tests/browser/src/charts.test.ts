// The charts of a search's report: every mark is where the chart's own axes place the records' numbers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { record, SEARCH } from "./support/fixtures.js";
import { Axis, assertMarksAt, isInPlot, type Point, type Shape, shapesOf } from "./support/geometry.js";
import { count } from "./support/numbers.js";
import { openReport } from "./support/opened.js";
import type { Bracket, Trial, TrialSummary } from "./support/records.js";

const { folder, visit } = await openReport(SEARCH);
const bracket = record<Bracket>(folder, "bracket.json");

const drawing = (hook: string): Locator => visit.page.locator(`[data-test=${hook}] svg`).first();

const NEWEST = "#0072b2";
const OLDEST = "#d55e00";

/**
 * Centres of the marks of one colour, by shape: a dot passes, a cross fails, a diamond is borderline, a triangle is
 * invalid.
 */
function marksOf(shapes: Shape[], color: string): Record<string, Point[]> {
  const middle = (points: readonly Point[]): Point => [
    points.reduce((sum, [x]) => sum + x, 0) / points.length,
    points.reduce((sum, [, y]) => sum + y, 0) / points.length,
  ];
  const inside = shapes.filter(({ points }) => isInPlot(middle(points)));
  const of = (name: string, holds: (shape: Shape) => boolean) =>
    inside.filter((shape) => shape.name === name && holds(shape)).map(({ points }) => middle(points));
  const hollow = (corners: number) => (shape: Shape) =>
    shape.points.length === corners && shape.attributes.stroke === color;
  const strokes = of(
    "line",
    ({ attributes }) => attributes.stroke === color && attributes["stroke-linecap"] === "round",
  );
  return {
    pass: of(
      "circle",
      ({ attributes }) => attributes.fill === color && attributes["fill-opacity"] === undefined,
    ),
    // A cross is two strokes.
    fail: strokes.filter((_, index) => index % 2 === 0),
    borderline: of("polygon", hollow(4)),
    invalid: of("polygon", hollow(3)),
  };
}

function markOf(trial: TrialSummary): string {
  if (trial.verdict === "invalid") return "invalid";
  return bracket.borderline.includes(trial.sessions) ? "borderline" : trial.verdict;
}

for (const [side, color, value] of [
  ["newest", NEWEST, (trial: TrialSummary) => trial.newest_p95_ms],
  ["oldest", OLDEST, (trial: TrialSummary) => trial.oldest_p95_ms],
] as const) {
  test(`sessions against latency: every trial has its mark, ${side} frame`, async () => {
    const svg = drawing("chart-latency");
    const [marks, axes] = [marksOf(await shapesOf(svg), color), await Axis.of(svg)];
    const all = Object.values(marks).flat().length;
    assert.equal(all, bracket.trials.length);
    const places = new Map<string, Point[]>();
    for (const trial of bracket.trials) {
      const ms = value(trial);
      assert.ok(ms !== null);
      const place: Point = [axes.x.px(trial.sessions), axes.y.px(ms)];
      places.set(markOf(trial), [...(places.get(markOf(trial)) ?? []), place]);
    }
    for (const mark of ["pass", "fail", "borderline"]) {
      assertMarksAt(marks[mark] ?? [], places.get(mark) ?? [], `${side}, ${mark}`);
    }
    // The centre of a triangle's corners lies a sixth of its height above the point that it marks. Comparing the number
    // of marks is enough.
    assert.equal(marks.invalid?.length, places.get("invalid")?.length);
  });
}

test("sessions against latency: gates, load line and the edge's interval", async () => {
  const svg = drawing("chart-latency");
  const [shapes, axes] = [await shapesOf(svg), await Axis.of(svg)];
  const across = shapes.filter(({ name, attributes, points: [from, to] }) => {
    const dashed = attributes["stroke-dasharray"] !== undefined;
    return name === "line" && dashed && from?.[0] === 78 && to?.[0] === 660;
  });
  const [trial] = bracket.trials;
  const { gates } = record<Trial>(folder, trial?.file ?? "");
  const drawn = gates.filter(({ name }) => /^(newest|oldest)_p(50|95)_ms$/.test(name));
  const heights = across.map(({ points }) => points[0]?.[1] ?? Number.NaN).sort((a, b) => a - b);
  const wanted = drawn.map(({ threshold }) => axes.y.px(threshold)).sort((a, b) => a - b);
  assert.equal(heights.length, wanted.length);
  for (const [index, at] of wanted.entries()) assert.ok(Math.abs(at - (heights[index] ?? 0)) <= 1);

  const { edge, confirmed } = bracket;
  assert.ok(edge?.high && confirmed);
  const band = shapes.find(
    ({ attributes, points }) => attributes.fill === "#e8e4d4" && points[0]?.[1] === 142,
  );
  const [left, right] = [band?.points[0]?.[0] ?? 0, band?.points[1]?.[0] ?? 0];
  assert.ok(Math.abs(left - axes.x.px(edge.low)) <= 1 && Math.abs(right - axes.x.px(edge.high)) <= 1);
  const label = svg.locator("text", { hasText: `load line: ${count(confirmed)}` });
  assert.ok(Math.abs(Number(await label.getAttribute("x")) - axes.x.px(confirmed)) <= 1);
});

test("percentiles: two curves for each load around the edge, at the record's p99", async () => {
  const svg = drawing("chart-percentiles");
  const shapes = await shapesOf(svg);
  const curves = shapes.filter(({ name }) => name === "polyline");
  const loads = await visit.page.locator("[data-test=ledger] thead th").allInnerTexts();
  assert.equal(curves.length, 2 * (loads.length - 1));
  const axes = await Axis.of(svg);
  const p99 = Number(await svg.locator("text", { hasText: /^99$/ }).getAttribute("x"));
  for (const [index, title] of loads.slice(1).entries()) {
    const [stem] = title.split(" ");
    const ms = record<Trial>(folder, `${stem}.json`).latency.newest.from_schedule.p99_ms;
    const curve = curves.filter(({ attributes }) => attributes["stroke-dasharray"] === undefined)[index];
    const near = curve?.points.toSorted(([a], [b]) => Math.abs(a - p99) - Math.abs(b - p99))[0];
    assert.ok(ms !== null && near);
    assert.ok(Math.abs(near[1] - axes.y.px(ms)) <= 3, `${title}: p99 at ${near}, not ${axes.y.px(ms)}`);
  }
});

test("timelines: as many points as seconds have values", async () => {
  const timelines = visit.page.locator("details.timeline");
  assert.ok((await timelines.count()) > 1);
  for (const timeline of await timelines.all()) {
    const stem = ((await timeline.getAttribute("id")) ?? "").replace("timeline-", "");
    const [head = "", ...rows] = readFileSync(join(folder, `${stem}.csv`), "utf8")
      .trim()
      .split("\n");
    const column = head.split(",").indexOf("newest_p95_ms");
    const known = rows.filter((row) => (row.split(",")[column] ?? "") !== "").length;
    const shapes = await shapesOf(timeline.locator("svg"));
    // The first panel's curve of the newest p95: lines, and dots for single seconds.
    const [of] = shapes.filter(({ attributes }) => attributes.stroke === NEWEST);
    const top = of?.points[0]?.[1] ?? Number.NaN;
    assert.ok(top > 116 && top < 220, `${stem}: it begins in the first panel`);
    const first = shapes.filter(({ name, points, attributes }) => {
      const inPanel = points.every(([x, y]) => x <= 660 && y >= 110 && y <= 221);
      const line = name === "polyline" && attributes.stroke === NEWEST && attributes["stroke-width"] === "2";
      return inPanel && (line || (name === "circle" && attributes.fill === NEWEST));
    });
    const points = first.reduce((sum, shape) => sum + shape.points.length, 0);
    assert.equal(points, known, `${stem}: ${known} seconds with a value`);
    assert.ok(shapes.filter(({ name }) => name === "polyline").length >= 4, `${stem}: more than one curve`);
  }
});

test("cost: a point for each load, at its mean", async () => {
  const svg = drawing("chart-cost");
  const axes = await Axis.of(svg);
  const circles = (await shapesOf(svg)).filter(
    ({ name, points: [at] }) => name === "circle" && at && isInPlot(at),
  );
  const places = bracket.cost_curve.map(
    (point): Point => [axes.x.px(point.sessions), axes.y.px(point.cpu_us_per_session_second)],
  );
  assertMarksAt(
    circles.flatMap(({ points }) => points),
    places,
    "costs",
  );
});

test("no label covers another or leaves its drawing", async () => {
  await visit.page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  const faults = await visit.page.evaluate(() => {
    const told: string[] = [];
    for (const svg of document.querySelectorAll("svg")) {
      const { width, height } = svg.viewBox.baseVal;
      const texts = [...svg.querySelectorAll("text")].filter((text) => !text.hasAttribute("transform"));
      const boxes = texts.map((text) => ({ text: text.textContent, box: text.getBBox() }));
      for (const [index, { text, box }] of boxes.entries()) {
        const inside = box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height;
        if (!inside) told.push(`sticks out: ${text}`);
        for (const other of boxes.slice(0, index)) {
          const shared = (at: "x" | "y", size: "width" | "height") =>
            Math.min(box[at] + box[size], other.box[at] + other.box[size]) - Math.max(box[at], other.box[at]);
          // Boxes have space above and below the letters.
          if (shared("x", "width") > 1 && shared("y", "height") > 4)
            told.push(`${text} covers ${other.text}`);
        }
      }
    }
    return told;
  });
  assert.deepEqual(faults, []);
});
