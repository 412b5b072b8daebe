// How well text and marks stand out, from the colours that the browser computed.
import type { Page } from "playwright-core";

export interface Seen {
  /** A description for messages. */
  what: string;
  /** Contrast with the background, as WCAG 2 defines it: 1 to 21. */
  contrast: number;
}

interface Contrasts {
  /** Every visible text, including that in drawings. */
  texts: Seen[];
  /** Lines, curves, bars and points of drawings: the marks that carry data, not grids and shades. */
  marks: Seen[];
}

/** Contrasts of everything that is currently visible. */
export async function contrastsOf(page: Page): Promise<Contrasts> {
  return page.evaluate(() => {
    type Color = [number, number, number, number];
    const parse = (css: string): Color => {
      const [red = 0, green = 0, blue = 0, alpha = 1] = (css.match(/[\d.]+/g) ?? []).map(Number);
      return css === "none" ? [0, 0, 0, 0] : [red, green, blue, alpha];
    };
    const over = (top: Color, below: Color): Color => {
      const mix = (index: 0 | 1 | 2) => top[index] * top[3] + below[index] * (1 - top[3]);
      return [mix(0), mix(1), mix(2), 1];
    };
    const luminance = (color: Color) => {
      const linear = (channel: number) => {
        const share = channel / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      };
      return 0.2126 * linear(color[0]) + 0.7152 * linear(color[1]) + 0.0722 * linear(color[2]);
    };
    const contrast = (color: Color, behind: Color) => {
      const [one, other] = [luminance(over(color, behind)), luminance(behind)];
      return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    };
    const faded = (css: string, opacity: string): Color => {
      const color = parse(css);
      return [color[0], color[1], color[2], color[3] * Number(opacity)];
    };

    /** Background of an element of the page, with its ancestors' backgrounds below its own. */
    const backdrop = (element: Element): Color => {
      const layers: Color[] = [];
      for (let at: Element | null = element; at; at = at.parentElement) {
        layers.push(parse(getComputedStyle(at).backgroundColor));
      }
      return layers.reduceRight<Color>((below, layer) => over(layer, below), [255, 255, 255, 1]);
    };

    /** The colour drawn below the centre of a shape before the shape. */
    const drawnBelow = (shape: SVGGraphicsElement): Color => {
      const svg = shape.ownerSVGElement as SVGSVGElement;
      const box = shape.getBBox();
      const middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
      const matrix = shape.transform.baseVal.consolidate()?.matrix;
      const at = matrix ? middle.matrixTransform(matrix) : middle;
      let color = backdrop(svg.parentElement ?? svg);
      for (const below of svg.querySelectorAll<SVGGeometryElement>("rect, polygon, circle, path")) {
        if (!(below.compareDocumentPosition(shape) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
        const { fill, fillOpacity } = getComputedStyle(below);
        if (fill !== "none" && below.isPointInFill(at)) color = over(faded(fill, fillOpacity), color);
      }
      return color;
    };

    const texts: Seen[] = [];
    const marks: Seen[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = (node.textContent ?? "").trim();
      const parent = node.parentElement;
      if (text === "" || !parent?.checkVisibility() || parent.closest("svg, script, style, noscript"))
        continue;
      const color = parse(getComputedStyle(parent).color);
      texts.push({ what: text.slice(0, 40), contrast: contrast(color, backdrop(parent)) });
    }

    // What is behind the data, and therefore drawn lightly.
    const behind = ["#e6e6e6", "#e8e4d4", "#f2f2f2", "#ffffff"];
    for (const svg of document.querySelectorAll("svg")) {
      if (!svg.checkVisibility()) continue;
      for (const text of svg.querySelectorAll<SVGTextElement>("text")) {
        const { fill, fillOpacity } = getComputedStyle(text);
        const what = `svg: ${(text.textContent ?? "").slice(0, 40)}`;
        texts.push({ what, contrast: contrast(faded(fill, fillOpacity), drawnBelow(text)) });
      }
      const paper = svg.querySelector<SVGGraphicsElement>(":scope > rect");
      const onto = paper ? over(parse(getComputedStyle(paper).fill), [255, 255, 255, 1]) : backdrop(svg);
      for (const mark of svg.querySelectorAll("circle, line, polyline, polygon, path")) {
        const style = getComputedStyle(mark);
        const stroked = style.stroke !== "none";
        const named = mark.getAttribute(stroked ? "stroke" : "fill");
        if (named !== null && behind.includes(named)) continue;
        const color = stroked
          ? faded(style.stroke, style.strokeOpacity)
          : faded(style.fill, style.fillOpacity);
        const what = mark.outerHTML.replace(/ (points|d)="[^"]*"/, "").slice(0, 160);
        marks.push({ what, contrast: contrast(color, onto) });
      }
    }
    return { texts, marks };
  });
}

/** The elements with a contrast below `least`, each listed once. */
export function below(least: number, seen: readonly Seen[]): string[] {
  const told = seen.filter(({ contrast }) => contrast < least);
  return [...new Set(told.map(({ what, contrast }) => `${contrast.toFixed(2)} ${what}`))];
}

/** Luminance of the page's background and of its text, 0 to 1. */
export async function lightness(page: Page): Promise<{ paper: number; ink: number }> {
  return page.evaluate(() => {
    const of = (css: string) => {
      const [red = 0, green = 0, blue = 0] = (css.match(/[\d.]+/g) ?? []).map(Number);
      return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
    };
    const style = getComputedStyle(document.body);
    return { paper: of(style.backgroundColor), ink: of(style.color) };
  });
}
