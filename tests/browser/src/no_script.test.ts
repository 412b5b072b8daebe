// The report with scripts off: only what needs a script is missing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { startBrowser, textOf, Visit } from "./support/browser.js";
import { record, reportUrl, Scratch, SEARCH } from "./support/fixtures.js";
import { count } from "./support/numbers.js";
import type { Bracket } from "./support/records.js";

const scratch = new Scratch();
let browser: Browser;
let folder: string;

before(async () => {
  folder = scratch.rendered(SEARCH);
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  scratch.remove();
});

test("without scripts headline, tables, charts and every timeline are there", async () => {
  const visit = await Visit.to(browser, reportUrl(folder), { javaScriptEnabled: false });
  const { page } = visit;
  const { confirmed, evidence } = record<Bracket>(folder, "bracket.json");
  assert.ok((await textOf(page, "claim")).includes(`carries ${count(confirmed)} sessions`));
  for (const chart of ["chart-latency", "chart-percentiles", "chart-cost"]) {
    assert.ok(await page.locator(`[data-test=${chart}] svg`).isVisible(), chart);
  }
  const rows = page.locator("[data-test=evidence] table").first().locator("tbody tr:visible");
  assert.equal(await rows.count(), evidence.length);
  for (const table of await page.locator("table").all()) assert.ok(await table.isVisible());

  const timelines = page.locator("details.timeline");
  assert.ok((await timelines.count()) > 1);
  for (const [index, timeline] of (await timelines.all()).entries()) {
    // The first is already open.
    if (index > 0) {
      assert.equal(await timeline.locator("svg").isVisible(), false);
      await timeline.locator("summary").click();
    }
    assert.ok(await timeline.locator("svg").isVisible());
  }
  await visit.end();
});

test("without scripts nothing is shown that only scripts can do", async () => {
  const visit = await Visit.to(browser, reportUrl(folder), { javaScriptEnabled: false });
  for (const hook of ["theme-toggle", "trial-picker"]) {
    assert.equal(await visit.page.locator(`[data-test=${hook}]`).isVisible(), false, hook);
  }
  assert.equal(await visit.page.locator("#raw-view").isVisible(), false);
  await visit.end();
});

test("without scripts the system's theme counts", async () => {
  const options = { javaScriptEnabled: false, colorScheme: "dark" } as const;
  const visit = await Visit.to(browser, reportUrl(folder), options);
  // Without scripts a page cannot be asked for its style, so this compares pictures of its corner.
  const corner = { x: 0, y: 0, width: 4, height: 4 };
  const dark = await visit.page.screenshot({ clip: corner });
  await visit.page.emulateMedia({ colorScheme: "light" });
  const light = await visit.page.screenshot({ clip: corner });
  assert.notDeepEqual(dark, light);
  await visit.end();
});
