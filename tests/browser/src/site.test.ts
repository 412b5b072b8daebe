// The structure and appearance of the pages of `plimsoll serve`. Also: the live page's numbers are those of
// `live.json`.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { bodyOf, startBrowser, textOf, Visit } from "./support/browser.js";
import { below, contrastsOf, lightness } from "./support/contrast.js";
import { RANKING, Scratch, SEARCH } from "./support/fixtures.js";
import { liveRecord, MadeUp } from "./support/live.js";
import { assertShows, MICROSECONDS, MILLISECONDS, PLAIN } from "./support/numbers.js";
import { Serving } from "./support/serving.js";
import { assertSound } from "./support/soundness.js";

const scratch = new Scratch();
const results = join(scratch.path, "results");
let browser: Browser;
let serving: Serving;
let live: MadeUp;

before(async () => {
  for (const name of [
    "before",
    "after",
    "a-folder-with-a-name-that-is-much-longer-than-a-narrow-screen-is-wide",
  ]) {
    scratch.copy(SEARCH, join("results", name));
  }
  scratch.copy(RANKING, "results/ranking");
  live = new MadeUp(join(results, "live"), liveRecord);
  browser = await startBrowser();
  serving = await Serving.start(results);
});
after(async () => {
  await browser?.close();
  live?.end();
  await serving?.end();
  scratch.remove();
});

const PAGES = {
  history: "/",
  "two results": "/compare?a=before&b=after",
  "four results": `/compare?${["before", "after", "ranking/ts-bun-plain", "ranking/ts-node"].map((name) => `r=${name}`).join("&")}`,
  live: "/live/live",
  problem: "/nothing",
};

/** Runs a check on a page of the site, once the page has its data. */
async function onPage(
  path: string,
  options: Parameters<typeof Visit.to>[2],
  check: (page: Page) => Promise<void>,
): Promise<void> {
  const visit = await Visit.to(browser, serving.url(path), options);
  if (path.startsWith("/live/")) await visit.page.locator("main[data-state=live]").waitFor();
  await check(visit.page);
  await visit.end(path === PAGES.problem ? /status of 404/ : undefined);
}

for (const [name, path] of Object.entries(PAGES)) {
  test(`${name}: headings, tables, fields and drawings have what they need`, () =>
    onPage(path, {}, assertSound));

  for (const colorScheme of ["light", "dark"] as const) {
    test(`${name} in ${colorScheme}: text is readable and marks stand out`, () =>
      onPage(path, { colorScheme }, async (page) => {
        const { paper } = await lightness(page);
        assert.ok(colorScheme === "light" ? paper > 0.9 : paper < 0.15);
        const { texts, marks } = await contrastsOf(page);
        assert.ok(texts.length > 2);
        assert.deepEqual(below(4.5, texts), []);
        assert.deepEqual(below(3, marks), []);
      }));
  }

  test(`${name} on a screen of 360 px: the page does not scroll sideways`, () =>
    onPage(path, { viewport: { width: 360, height: 740 } }, async (page) => {
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.equal(wide, 0);
    }));
}

test("no word and no number of a table is broken where the window has room", () =>
  onPage(PAGES.history, {}, async (page) => {
    const broken = await page.evaluate(() => {
      const found: string[] = [];
      const walker = document.createTreeWalker(
        document.querySelector("table") ?? document.body,
        NodeFilter.SHOW_TEXT,
      );
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const { index, 0: word } of (node.textContent ?? "").matchAll(/[\w.,/]+/g)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
          if (lines.size > 1) found.push(word);
        }
      }
      return found;
    });
    assert.deepEqual(broken, []);
  }));

test("the live page shows the numbers of live.json", () =>
  onPage(PAGES.live, {}, async (page) => {
    const gates = await bodyOf(page, "[data-test=live-gates] table");
    const expected = [
      ["newest_p95_ms", 350, 120.5, "holds"],
      ["oldest_p95_ms", 1650, 1702.4, "does not hold"],
      ["error_rate", 1e-5, 2e-5, "does not hold"],
      ["frames_lost", 0, null, "not known yet"],
    ] as const;
    assert.equal(gates.length, expected.length);
    for (const [index, [name, threshold, observed, word]] of expected.entries()) {
      const [shownName, atMost = "", now = "", shownWord] = gates[index] ?? [];
      assert.deepEqual([shownName, shownWord], [name, word]);
      // A threshold other than 0 does not look like 0.
      assert.ok(
        Math.abs(Number(atMost.replaceAll(",", "")) - threshold) <= threshold * 0.01,
        `${name}: ${atMost}`,
      );
      if (observed === null) assert.equal(now, "–");
      else
        assert.ok(Math.abs(Number(now.replaceAll(",", "")) - observed) <= observed * 0.01, `${name}: ${now}`);
    }
    const [last, first] = await bodyOf(page, "[data-test=live-trials] table");
    assert.deepEqual([last?.[0], last?.[1], last?.[3]], ["2", "server", "fail"]);
    assertShows(last?.[2], PLAIN, 1600);
    assertShows(last?.[4], MILLISECONDS, 210.4);
    assertShows(last?.[5], MILLISECONDS, 4321);
    assertShows(last?.[6], MICROSECONDS, null);
    assertShows(first?.[6], MICROSECONDS, 500);
    assert.match(await textOf(page, "live-bracket"), /passed up to 400, failed from 1,600/);
    // All in one evaluation, because the next second redraws everything.
    const across = await page.locator("[data-test=live-bracket] svg").evaluate((svg) => {
      const marks = [".passed", ".now", ".failed"].map((mark) => svg.querySelector(mark));
      return marks.map((mark) => mark?.getBoundingClientRect().x ?? Number.NaN);
    });
    assert.ok(across.every(Number.isFinite));
    assert.deepEqual(
      across,
      across.toSorted((a, b) => a - b),
      "passed below, failed above",
    );
    const caption = page.locator("figure", { has: page.locator("[data-series=client-cpu]") }).locator("b");
    assert.equal(await caption.innerText(), "30 %");
  }));
