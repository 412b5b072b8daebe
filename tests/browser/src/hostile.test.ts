// Text from outside stays text: in reports, and on the pages of `serve`.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser, textOf, Visit } from "./support/browser.js";
import { COMPARISON, RANKING, record, reportUrl, Scratch, SEARCH } from "./support/fixtures.js";
import { HOSTILE, hostile } from "./support/hostile.js";
import { liveRecord, MadeUp } from "./support/live.js";
import type { Bracket } from "./support/records.js";
import { Serving } from "./support/serving.js";
import { assertSound, faultsOfDrawings, markupFrom } from "./support/soundness.js";

/** A folder name that tries the same, as far as a name can. */
const FOLDER = "<img src=x onerror=window.injected=1>\"'&";

const scratch = new Scratch();
const results = join(scratch.path, "results");
let browser: Browser;

before(async () => {
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  scratch.remove();
});

/** The text appears exactly as it was given. */
async function assertRead(page: Page, selector: string): Promise<void> {
  const text = await page.locator(selector).first().textContent();
  assert.ok(text?.includes(HOSTILE), `${selector}: ${text}`);
}

for (const [result, places] of [
  [
    SEARCH,
    [
      "h1",
      "[data-test=broke-first]",
      "[data-test=bottleneck]",
      "[data-test=caveats]",
      "[data-test=environment]",
    ],
  ],
  [RANKING, ["h1", "[data-test=evidence] th a", "[data-test=targets] td:last-child"]],
  [COMPARISON, ["h1", "#comparison-sides td:nth-child(2)", ".answer h1 + p"]],
] as const) {
  test(`the report of ${result} with hostile records`, async () => {
    const folder = scratch.rendered(result, join("reports", result), hostile);
    const visit = await Visit.to(browser, reportUrl(folder));
    const { page } = visit;
    assert.ok((await page.title()).includes("<img"), await page.title());
    for (const place of places) await assertRead(page, place);
    // This includes what folds and what the script fills in.
    for (const summary of await page.locator("summary:visible").all()) await summary.click();
    await page.locator("#raw-view").waitFor({ state: "visible" });
    await assertSound(page);
    assert.equal(await page.locator("script").count(), 2);
    const embedded = JSON.parse(await page.locator("script#raw-json").innerHTML()) as Record<string, Bracket>;
    const bracket = embedded["bracket.json"];
    if (bracket) assert.equal(bracket.target.name, record<Bracket>(folder, "bracket.json").target.name);
    // Neither text nor a drawing makes the page wider than the window.
    const room = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.equal(room, 0);
    assert.deepEqual(visit.requests, [reportUrl(folder)]);
    await visit.end();
  });
}

test("the pages of serve with hostile records and folders", async () => {
  for (const name of [FOLDER, "other"]) scratch.copy(SEARCH, join("results", name), hostile);
  mkdirSync(join(results, "broken"));
  writeFileSync(join(results, "broken", "bracket.json"), `{"${HOSTILE}`);
  const serving = await Serving.start(results);
  try {
    const visit = await Visit.to(browser, serving.url("/"));
    const { page } = visit;
    await assertRead(page, "[data-test=history] tbody tr > :nth-child(4)");
    assert.deepEqual(await markupFrom(page), []);
    assert.ok((await page.locator("tr[data-folder]").count()) === 2);
    await page.locator(`tr[data-folder=${JSON.stringify(FOLDER)}] a`).click();
    await page.waitForURL(/\/result\//); // and until all of it is there
    await assertRead(page, "h1");
    await assertSound(page);

    await page.goto(serving.url("/"));
    for (const box of await page.locator("input[name=r]").all()) await box.check();
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator("[data-test=side-by-side]").waitFor();
    assert.ok((await textOf(page, "side-by-side")).includes(FOLDER));
    assert.deepEqual([...(await markupFrom(page)), ...(await faultsOfDrawings(page))], []);

    for (const path of [
      `/?target=${encodeURIComponent(HOSTILE)}`,
      `/result/${encodeURIComponent(HOSTILE)}`,
    ]) {
      await page.goto(serving.url(path));
      assert.deepEqual(await markupFrom(page), [], path);
    }
    await page.goto(serving.url(`/?since=${encodeURIComponent(HOSTILE)}`));
    assert.ok((await textOf(page, "problem")).includes(HOSTILE));
    assert.deepEqual(await markupFrom(page), []);
    await visit.end(/status of (400|404)/);
  } finally {
    await serving.end();
  }
});

test("the live page with hostile events", async () => {
  const live = new MadeUp(join(results, `live ${FOLDER}`), (second) => hostile(liveRecord(second)));
  const serving = await Serving.start(results);
  try {
    const visit = await Visit.to(browser, serving.url("/"));
    const { page } = visit;
    await assertRead(page, "[data-test=live-list]");
    await page.locator("[data-test=live-list] a").click();
    await page.locator("main[data-state=live]").waitFor();
    await assertRead(page, "[data-test=live-what]");
    for (const part of ["state", "trial", "gates", "trials"])
      await assertRead(page, `[data-test=live-${part}]`);
    const before = await page.locator("main").getAttribute("data-updated");
    await page.waitForFunction((old) => document.querySelector("main")?.dataset.updated !== old, before);
    assert.deepEqual([...(await markupFrom(page)), ...(await faultsOfDrawings(page))], []);
    await visit.end();
  } finally {
    live.end();
    await serving.end();
  }
});
