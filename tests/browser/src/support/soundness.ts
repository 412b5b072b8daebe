// What must hold for every page, whatever its content.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";

/** Everything that is wrong with the page, one sentence each. */
export async function faultsOf(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const faults: string[] = [];
    const all = (selector: string, within: ParentNode = document) => [
      ...within.querySelectorAll<HTMLElement>(selector),
    ];
    const told = (element: Element) => element.outerHTML.slice(0, 120);
    const text = (element: Element | null | undefined) => (element?.textContent ?? "").trim();
    const require = (holds: boolean, fault: string) => {
      if (!holds) faults.push(fault);
    };

    require(document.documentElement.lang === "en", "no language");
    require(document.title.trim() !== "", "no title");
    require(all("main").length === 1, "not one main part");
    require(document.compatMode === "CSS1Compat", "quirks mode");

    const levels = all("h1, h2, h3, h4, h5, h6").map((heading) => Number(heading.tagName[1]));
    require(levels.filter((level) => level === 1).length === 1 &&
      levels[0] === 1, `first headings: ${levels}`);
    for (const [index, level] of levels.entries()) {
      require(index === 0 || level <= (levels[index - 1] ?? 0) + 1, `a level is left out: ${levels}`);
    }
    for (const heading of all("h1, h2, h3")) require(text(heading) !== "", `empty: ${told(heading)}`);

    const ids = all("[id]").map((element) => element.id);
    require(new Set(ids).size === ids.length, `ids twice: ${ids.filter((id, at) => ids.indexOf(id) !== at)}`);
    for (const link of all("a[href]")) {
      const to = link.getAttribute("href") ?? "";
      require(text(link) !== "", `a link without text: ${told(link)}`);
      require(!to.startsWith("#") || ids.includes(to.slice(1)), `leads nowhere: ${told(link)}`);
    }
    for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
      for (const element of all(`[${attribute}]`)) {
        const named = (element.getAttribute(attribute) ?? "").split(" ");
        require(named.every((id) => text(document.getElementById(id)) !== ""), `no name: ${told(element)}`);
      }
    }

    for (const figure of all("figure")) {
      const name =
        text(figure.querySelector("figcaption")) || text(figure.closest("details")?.querySelector("summary"));
      require(name !== "", `a figure without a name: ${told(figure)}`);
      require(all("svg", figure).length === 1, `not one drawing: ${told(figure)}`);
    }
    for (const svg of all("svg")) {
      const name = svg.getAttribute("aria-label") ?? text(svg.querySelector(":scope > title"));
      require(svg.getAttribute("role") === "img" &&
        name.trim() !== "", `a drawing without a name: ${told(svg)}`);
    }

    for (const table of all("table")) {
      const labelled = document.getElementById(table.getAttribute("aria-labelledby") ?? "");
      const name = text(table.querySelector("caption")) || table.getAttribute("aria-label") || text(labelled);
      require(name !== "", `a table without a name: ${told(table)}`);
      for (const head of all("th", table)) {
        const scope = head.closest("thead") ? "col" : "row";
        require(head.getAttribute("scope") === scope, `no scope: ${told(head)}`);
      }
      const columns = all("thead th", table).length;
      for (const row of all("tbody tr", table)) {
        require(row.children.length === columns, `${row.children.length} cells: ${told(row)}`);
        require(row.querySelector("th[scope=row]") !== null, `a row without a head: ${told(row)}`);
      }
    }

    for (const field of all("input:not([type=hidden]), select, textarea")) {
      const labels = (field as HTMLInputElement).labels ?? [];
      const name = field.getAttribute("aria-label") ?? [...labels].map(text).join(" ");
      require(name.trim() !== "", `a field without a label: ${told(field)}`);
    }
    for (const button of all("button"))
      require(text(button) !== "", `a button without text: ${told(button)}`);
    for (const details of all("details")) {
      require(text(details.querySelector(":scope > summary")) !== "", `no summary: ${told(details)}`);
    }
    return faults;
  });
}

/** Attributes of drawings that no browser can draw, and drawings without content. */
export async function faultsOfDrawings(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const faults: string[] = [];
    const finite = /^-?\d+(\.\d+)?$/;
    const numbers = new Set("x y x1 y1 x2 y2 cx cy r width height font-size stroke-width".split(" "));
    for (const svg of document.querySelectorAll("svg")) {
      for (const element of [svg, ...svg.querySelectorAll<SVGElement>("*")]) {
        const told = element.outerHTML.slice(0, 120);
        for (const { name, value } of element.attributes) {
          // A name may contain any word.
          if (name === "aria-label") continue;
          if (/NaN|undefined|null|Infinity|\binf\b/.test(value)) faults.push(`${name}: ${told}`);
          if (numbers.has(name) && !finite.test(value)) faults.push(`${name} is no number: ${told}`);
        }
        if (element.matches("polyline, polygon")) {
          const points = (element.getAttribute("points") ?? "").trim().split(/\s+/);
          const least = element.matches("polyline") ? 2 : 3;
          const sound = points.every((point) => /^-?[\d.]+,-?[\d.]+$/.test(point));
          if (points.length < least || !sound) faults.push(`points: ${told}`);
        }
        if (element.matches("path") && !/^M[\d.]/.test(element.getAttribute("d") ?? "")) faults.push(told);
        if (element.matches("text") && (element.textContent ?? "").trim() === "")
          faults.push(`empty: ${told}`);
      }
      if (svg.querySelector("circle, polyline, polygon, path, line") === null) {
        faults.push(`nothing in it: ${svg.outerHTML.slice(0, 120)}`);
      }
    }
    return faults;
  });
}

/** Elements and attributes that would appear if text from outside had become markup. */
export async function markupFrom(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const foreign = [
      ...document.querySelectorAll("img, iframe, object, embed, base, link[rel=import], style style"),
    ];
    const told = foreign.map((element) => element.outerHTML.slice(0, 120));
    for (const element of document.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        const runs = name.startsWith("on") || /^\s*(javascript|data|vbscript):/i.test(value);
        const icon = element.matches('link[rel="icon"][href="data:,"]');
        if (runs && !icon) told.push(`${name}=${value.slice(0, 60)}`);
      }
    }
    if ("injected" in window) told.push("a script from outside ran");
    return told;
  });
}

/** Asserts all of the above. */
export async function assertSound(page: Page): Promise<void> {
  assert.deepEqual(await faultsOf(page), []);
  assert.deepEqual(await faultsOfDrawings(page), []);
  assert.deepEqual(await markupFrom(page), []);
}
