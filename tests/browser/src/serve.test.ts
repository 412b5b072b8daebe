// `plimsoll serve`: the history, its filter, reports, comparisons, and which requests get an answer.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser, textOf, Visit } from "./support/browser.js";
import { COMPARISON, type Json, RANKING, record, Scratch, SEARCH } from "./support/fixtures.js";
import { focused, tabTo } from "./support/focus.js";
import { count } from "./support/numbers.js";
import { artefact } from "./support/plimsoll.js";
import type { Bracket, Ranking } from "./support/records.js";
import { Serving } from "./support/serving.js";
import { assertSound } from "./support/soundness.js";

const scratch = new Scratch();
const results = join(scratch.path, "results");
let browser: Browser;
let serving: Serving;
/** What the search carries, as pages show it. */
let carried: string;

/** Changes fields of a record. */
const changed = (fields: Record<string, Json>) => (record: Json) => {
  const isObject = typeof record === "object" && record !== null && !Array.isArray(record);
  return isObject ? { ...record, ...fields } : record;
};
/** Changes a record's start to that day. */
const on = (day: string) => changed({ started_at: `${day}T01:02:03Z` });

before(async () => {
  scratch.copy(SEARCH, "results/before", on("2026-11-01"));
  scratch.copy(SEARCH, "results/after", on("2099-12-01"));
  scratch.copy(SEARCH, "results/half", changed({ vcpu: 0.5 }));
  carried = count(record<Bracket>(join(results, "before"), "bracket.json").confirmed);
  scratch.copy(RANKING, "results/ranking");
  scratch.copy(COMPARISON, "results/sorted/limit");
  browser = await startBrowser();
  serving = await Serving.start(results);
});
after(async () => {
  await browser?.close();
  await serving?.end();
  scratch.remove();
});

/** Runs a check on a page of the site in a fresh profile. */
async function onPage(path: string, check: (page: Page) => Promise<void>, expected?: RegExp): Promise<void> {
  const visit = await Visit.to(browser, serving.url(path));
  await check(visit.page);
  for (const url of visit.requests)
    assert.ok(url.startsWith(serving.url("/")), `asked somebody else: ${url}`);
  await visit.end(expected);
}

const listed = (page: Page) =>
  page
    .locator("[data-test=history] tr[data-folder]")
    .evaluateAll((rows) => rows.map((row) => (row as HTMLElement).dataset.folder));

/** Folders that hold records, by their names in the history. */
function folders(below: string, name = ""): string[] {
  const entries = readdirSync(below, { withFileTypes: true });
  const own = entries.some((entry) => entry.name.endsWith(".json")) ? [name] : [];
  const inner = entries.filter((entry) => entry.isDirectory());
  return [
    ...own,
    ...inner.flatMap((entry) =>
      folders(join(below, entry.name), [name, entry.name].filter(Boolean).join("/")),
    ),
  ];
}

test("the history lists every result once, the newest first, with the record's numbers", () =>
  onPage("/", async (page) => {
    const shown = await listed(page);
    assert.deepEqual(shown.toSorted(), folders(results).toSorted());
    assert.ok(shown.length >= 15);
    const times = await page.locator("[data-test=history] tbody tr > :nth-child(2)").allInnerTexts();
    assert.deepEqual(times, times.toSorted().reverse());
    for (const folder of ["before", "ranking/ts-node", "ranking/cpp-beast-plain"]) {
      const { confirmed, target, edge } = record<Bracket>(join(results, folder), "bracket.json");
      const row = await page.locator(`tr[data-folder="${folder}"]`).innerText();
      const words = [target.name, count(confirmed), count(Math.round(edge?.low ?? 0))];
      for (const word of words) assert.ok(row.includes(word), `${word} in ${row}`);
    }
    await page.screenshot({ path: artefact("serve-history.png") });
  }));

test("the filter narrows the list, keeps what was asked for, and All takes it back", () =>
  onPage("/", async (page) => {
    const all = await listed(page);
    await page.getByLabel("Target").fill("cpp-beast-plain");
    await page.getByLabel("Kind").selectOption("find");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/target=cpp-beast-plain/);
    assert.deepEqual(await listed(page), ["ranking/cpp-beast-plain"]);
    assert.equal(await page.getByLabel("Target").inputValue(), "cpp-beast-plain");
    assert.equal(await page.getByLabel("Kind").inputValue(), "find");
    await page.getByRole("link", { name: "All", exact: true }).click();
    await page.waitForURL((url) => url.search === "");
    assert.deepEqual(await listed(page), all);
    await page.getByLabel("Since").fill("2099-12-01");
    await page.getByLabel("Since").press("Enter");
    await page.waitForURL(/since=2099-12-01/);
    assert.deepEqual(await listed(page), ["after"]);
    await page.getByLabel("Target").fill("nobody");
    await page.getByLabel("Target").press("Enter");
    await page.locator("[data-test=no-result]").waitFor();
  }));

test("a result leads to its report, which is as sound as on the disk and asks nobody", () =>
  onPage("/", async (page) => {
    await page.locator('tr[data-folder="before"] a').click();
    await page.waitForURL("**/result/before/report.html");
    assert.ok((await textOf(page, "claim")).includes(`carries ${carried} sessions`));
    await assertSound(page);
    const toggle = page.locator("[data-test=theme-toggle]");
    await toggle.click();
    assert.equal(await toggle.innerText(), "Theme: light");
    assert.equal(existsSync(join(results, "before/report.html")), false, "looking changes nothing");
  }));

test("from a ranking one comes to each target's report", () =>
  onPage("/result/ranking/report.html", async (page) => {
    const { rows } = record<Ranking>(join(results, "ranking"), "ranking.json");
    for (const { folder, bracket } of rows) {
      await page
        .locator("[data-test=evidence] th a", { hasText: new RegExp(`^${bracket.target.name}$`) })
        .click();
      await page.waitForURL(`**/result/ranking/${folder}/report.html`);
      assert.ok((await textOf(page, "claim")).startsWith(bracket.target.name));
      await page.goBack();
    }
  }));

test("two results are put side by side by keyboard alone", () =>
  onPage("/", async (page) => {
    for (const folder of ["after", "before"]) {
      await tabTo(page, `input compare ${folder}`);
      assert.ok((await focused(page)).outlined);
      await page.keyboard.press("Space");
    }
    await tabTo(page, "button Compare selected", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL(/compare\?/);
    assert.match(await textOf(page, "conclusion"), /B is: no difference shown/);
    const links = await page.locator("[data-test=side-by-side] a").allInnerTexts();
    assert.deepEqual(links, ["after", "before"]);
    assert.equal(await page.locator("[data-test=load-lines] circle").count(), 2);
    await page.screenshot({ path: artefact("serve-compare.png") });
    await tabTo(page, "a before");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/result/before/report.html");
  }));

test("results of different conditions are not compared, and what differs is marked", () =>
  onPage("/compare?a=before&b=half", async (page) => {
    assert.match(await textOf(page, "conclusion"), /No conclusion/);
    assert.ok((await page.locator("[data-test=conditions] .differs").count()) > 0);
  }));

for (const [path, status, words] of [
  ["/result/nothing/report.html", 404, /knows no such folder/],
  ["/result/..%2f..%2fetc/passwd", 404, /knows no such folder/],
  ["/live/nothing", 404, /knows no such folder/],
  ["/nothing", 404, /no such page/],
  ["/compare?a=before", 400, /two to four/],
  ["/?since=someday", 400, /since someday/],
] as const) {
  test(`${path} is a page that says why not`, () =>
    onPage(
      "/",
      async (page) => {
        const response = await page.goto(serving.url(path));
        assert.equal(response?.status(), status);
        assert.match(await textOf(page, "problem"), words);
        await page.locator("a.home").click();
        await page.locator("[data-test=history]").waitFor();
      },
      new RegExp(`status of ${status}`),
    ));
}

test("whoever comes from another machine must show the token, once", async () => {
  const others = await Serving.start(results, "--listen", "0.0.0.0:0");
  try {
    const token = new URL(others.printed).searchParams.get("token");
    assert.match(token ?? "", /^[0-9a-f]{32}$/);
    const visit = await Visit.begin(browser);
    for (const path of ["/", "/result/before/report.html", "/assets/live.js", `/?token=${"0".repeat(32)}`]) {
      assert.equal((await visit.page.goto(others.url(path)))?.status(), 401, path);
      assert.ok(!(await visit.page.content()).includes(carried), path);
    }
    await visit.page.goto(others.printed);
    await visit.page.locator("[data-test=history]").waitFor();
    assert.equal(visit.page.url(), others.url("/"), "the token does not stay in the address");
    const [cookie] = await visit.page.context().cookies();
    assert.ok(cookie?.httpOnly && cookie.sameSite === "Strict");
    await visit.page.locator('tr[data-folder="ranking"] a').click();
    await visit.page.locator("[data-test=evidence] th a").first().click();
    await visit.page.waitForURL("**/result/ranking/*/report.html");
    assert.ok((await textOf(visit.page, "claim")).length > 0);
    await visit.end(/status of 401/);
  } finally {
    await others.end();
  }
});
