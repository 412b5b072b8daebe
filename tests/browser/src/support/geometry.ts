// Where things are in a drawing, and which values that means on its axes.
import assert from "node:assert/strict";
import type { Locator } from "playwright-core";

export type Point = readonly [x: number, y: number];

export interface Shape {
  name: string;
  /** The centre of a circle, the ends of a line, the corners of a polygon, the points of a curve. */
  points: Point[];
  attributes: Record<string, string>;
}

interface Label {
  text: string;
  x: number;
  y: number;
  anchor: string;
}

/** The plot of most drawings, within its axes. */
export const PLOT = { left: 78, right: 660, top: 142, bottom: 442 };

/** All shapes of a drawing, in order. */
export async function shapesOf(svg: Locator): Promise<Shape[]> {
  return svg.evaluate((drawing) => {
    const shapes = [...drawing.querySelectorAll("circle, line, polyline, polygon")];
    return shapes.map((shape) => {
      const of = (name: string) => Number(shape.getAttribute(name));
      const points = (shape.getAttribute("points") ?? "").trim();
      const attributes = [...shape.attributes].map(({ name, value }) => [name, value]);
      const listed = points.split(/\s+/).map((point) => point.split(",").map(Number));
      const own: number[][] =
        shape.tagName === "circle"
          ? [[of("cx"), of("cy")]]
          : [
              [of("x1"), of("y1")],
              [of("x2"), of("y2")],
            ];
      return {
        name: shape.tagName,
        points: (points === "" ? own : listed).map(([x = Number.NaN, y = Number.NaN]) => [x, y] as const),
        attributes: Object.fromEntries(attributes) as Record<string, string>,
      };
    });
  });
}

async function labelsOf(svg: Locator): Promise<Label[]> {
  return svg.locator("text").evaluateAll((texts) =>
    texts.map((text) => ({
      text: text.textContent ?? "",
      x: Number(text.getAttribute("x")),
      y: Number(text.getAttribute("y")),
      anchor: text.getAttribute("text-anchor") ?? "",
    })),
  );
}

/** Whether a point is within the plot, including its edges. */
export function isInPlot([x, y]: Point): boolean {
  return x >= PLOT.left && x <= PLOT.right && y >= PLOT.top && y <= PLOT.bottom;
}

/** An axis that converts values to positions, from two of its ticks. */
export class Axis {
  private constructor(
    private readonly ticks: readonly (readonly [value: number, px: number])[],
    private readonly logarithmic: boolean,
  ) {}

  /** Both axes, read from the labels of their ticks. */
  static async of(svg: Locator): Promise<{ x: Axis; y: Axis }> {
    const labels = await labelsOf(svg);
    const value = (label: Label) => Number(label.text.replaceAll(",", ""));
    const ticks = (isTick: (label: Label) => boolean, px: (label: Label) => number) =>
      labels
        .filter((label) => isTick(label) && Number.isFinite(value(label)))
        .map((label) => [value(label), px(label)] as const);
    const below = ticks(
      ({ y, anchor }) => y > PLOT.bottom && y < PLOT.bottom + 25 && anchor === "middle",
      ({ x }) => x,
    );
    const beside = ticks(
      ({ x, anchor }) => x < PLOT.left && anchor === "end",
      ({ y }) => y - 4,
    );
    assert.ok(below.length > 1 && beside.length > 1, "ticks on both axes");
    const logarithmic = labels.some(({ text, x }) => x < PLOT.left && text.includes("logarithmic"));
    return { x: new Axis(below, false), y: new Axis(beside, logarithmic) };
  }

  /** The position of a value. */
  px(value: number): number {
    const [first, last] = [this.ticks[0], this.ticks[this.ticks.length - 1]];
    assert.ok(first && last);
    const on = (of: number) => (this.logarithmic ? Math.log(of) : of);
    const share = (on(value) - on(first[0])) / (on(last[0]) - on(first[0]));
    return first[1] + share * (last[1] - first[1]);
  }
}

/** Asserts that each of these places has its own mark, and each mark its place. */
export function assertMarksAt(marks: readonly Point[], places: readonly Point[], what: string): void {
  assert.equal(marks.length, places.length, `${what}: one mark each`);
  const left = [...marks];
  for (const [x, y] of places) {
    const found = left.findIndex(([mx, my]) => Math.abs(mx - x) <= 1 && Math.abs(my - y) <= 1);
    assert.ok(found >= 0, `${what}: no mark at ${x.toFixed(1)}, ${y.toFixed(1)} among ${left.join("; ")}`);
    left.splice(found, 1);
  }
}
