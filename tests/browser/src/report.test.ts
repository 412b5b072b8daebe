// A search's report, opened from disk: it is complete and quiet, loads nothing else, and says what the records say.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { startBrowser, textOf, Visit } from "./support/browser.js";
import { record, recordNames, reportUrl, Scratch, SEARCH } from "./support/fixtures.js";
import { assertShows, count, PLAIN } from "./support/numbers.js";
import { artefact } from "./support/plimsoll.js";
import type { Bracket, Trial } from "./support/records.js";
import { assertSound } from "./support/soundness.js";

const scratch = new Scratch();
let browser: Browser;
let folder: string;
let visit: Visit;

before(async () => {
  folder = scratch.rendered(SEARCH);
  browser = await startBrowser();
  visit = await Visit.to(browser, reportUrl(folder));
});
after(async () => {
  await browser?.close();
  scratch.remove();
});

test("it opens from the disk, asks for nothing else and complains of nothing", async () => {
  await visit.page.waitForLoadState("networkidle");
  assert.deepEqual(visit.requests, [reportUrl(folder)]);
  visit.expectQuiet();
});

test("it is under 1 MB, and its policy lets in nothing from outside", async () => {
  assert.ok(statSync(join(folder, "report.html")).size < 1_000_000);
  const policy = await visit.page
    .locator('meta[http-equiv="Content-Security-Policy"]')
    .getAttribute("content");
  assert.match(policy ?? "", /^default-src 'none';/);
  assert.match(policy ?? "", /script-src 'sha256-[A-Za-z0-9+/]{43}='/);
  // The policy holds: an injected script does not run, and the browser reports it.
  const other = await Visit.to(browser, reportUrl(folder));
  await other.page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.injected = 1";
    document.body.append(script);
  });
  assert.equal(await other.page.evaluate(() => "injected" in window), false);
  await other.end(/Content Security Policy/);
});

test("it is sound: headings, names of figures and tables, links, drawings", async () => {
  await assertSound(visit.page);
  assert.equal(await visit.page.title(), await textOf(visit.page, "claim"));
});

test("the answer is the record's", async () => {
  const bracket = record<Bracket>(folder, "bracket.json");
  const { edge } = bracket;
  assert.ok(edge);
  assertShows(await textOf(visit.page, "load-line"), PLAIN, bracket.confirmed);
  assertShows(await textOf(visit.page, "per-vcpu"), PLAIN, bracket.sessions_per_vcpu);
  assertShows(
    await textOf(visit.page, "edge"),
    PLAIN,
    Math.round(edge.value),
    Math.round(edge.low),
    edge.high && Math.round(edge.high),
    edge.confidence * 100,
  );
  assert.equal(await textOf(visit.page, "broke-first"), bracket.failing_gate);
  assert.equal(await textOf(visit.page, "verdict"), "load line found");
  const claim = await textOf(visit.page, "claim");
  assert.match(claim, new RegExp(`^${bracket.target.name} carries ${count(bracket.confirmed)} sessions`));
  const bounds = await visit.page.locator("[data-test=claim] + p").innerText();
  assert.match(bounds, new RegExp(`^first fail ${count(bracket.first_fail)}: ${bracket.failing_gate} `));
});

test("every caveat of the trials is told with its remedy, and how often it was raised", async () => {
  const raised = new Map<string, number>();
  const trials = recordNames(folder).filter((name) => name.startsWith("trial-"));
  for (const name of trials) {
    for (const { id } of record<Trial>(folder, name).caveats) raised.set(id, (raised.get(id) ?? 0) + 1);
  }
  assert.ok(raised.size > 0);
  const told = await visit.page.locator("[data-test=caveats] li").allInnerTexts();
  assert.equal(told.length, raised.size);
  for (const [id, times] of raised) {
    const of = told.find((text) => text.startsWith(id));
    assert.match(of ?? "", new RegExp(`\\b${times} of ${trials.length} trials`), id);
    assert.match(of ?? "", /;/, "what was seen; the remedy");
  }
});

test("the records are in the page, as they are on the disk", async () => {
  const embedded = JSON.parse(await visit.page.locator("script#raw-json").innerHTML()) as Record<
    string,
    unknown
  >;
  assert.deepEqual(Object.keys(embedded).sort(), recordNames(folder).sort());
  for (const [name, value] of Object.entries(embedded)) {
    assert.deepEqual(known(value), known(record(folder, name)), name);
  }
  await visit.page.locator("[data-test=raw-json] summary").click();
  const view = visit.page.locator("#raw-view");
  await view.waitFor({ state: "visible" });
  assert.deepEqual(JSON.parse(await view.innerText()), embedded);
});

test("the first screen has the answer and the chart", async () => {
  const screen = await Visit.to(browser, reportUrl(folder), { viewport: { width: 1280, height: 800 } });
  for (const hook of ["verdict", "claim", "load-line", "edge", "chart-latency"]) {
    const box = await screen.page.locator(`[data-test=${hook}]`).first().boundingBox();
    assert.ok(box && box.y >= 0 && box.y + box.height <= 800, `${hook}: ${JSON.stringify(box)}`);
  }
  await screen.page.screenshot({ path: artefact("report-whole.png"), fullPage: true });
  await screen.end();
});

/** Removes unknown values: an older record leaves them out, a newer one says `null`. */
function known(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(known);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).filter(([, of]) => of !== null);
  return Object.fromEntries(entries.map(([key, of]) => [key, known(of)]));
}
