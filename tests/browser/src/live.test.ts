// The live page shows real commands while they progress, end, crash, and are served again.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { startBrowser, textOf, Visit } from "./support/browser.js";
import { startEcho } from "./support/echo_server.js";
import { Scratch } from "./support/fixtures.js";
import { artefact, Running, until } from "./support/plimsoll.js";
import { Serving } from "./support/serving.js";
import { assertSound, faultsOfDrawings, markupFrom } from "./support/soundness.js";

const scratch = new Scratch();
const results = join(scratch.path, "results");
const PHASES = ["--ramp", "0.5", "--warm-up", "1", "--grace", "2"];
let browser: Browser;
let serving: Serving;
let echo: Awaited<ReturnType<typeof startEcho>>;
const started: Running[] = [];

before(async () => {
  mkdirSync(results);
  echo = await startEcho(0);
  browser = await startBrowser();
  serving = await Serving.start(results);
});
afterEach(async () => {
  for (const command of started.splice(0)) await command.kill();
});
after(async () => {
  await browser?.close();
  await serving?.end();
  echo?.end();
  scratch.remove();
});

/** Measures an echo server, with this folder for the results. */
function measure(folder: string, ...words: string[]): Running {
  const server = ["--url", `ws://127.0.0.1:${echo.port}/`];
  const command = new Running([
    ...words,
    "--workload",
    "echo",
    ...server,
    ...PHASES,
    "--out",
    join(results, folder),
  ]);
  started.push(command);
  return command;
}

const state = (page: Page, wanted: string) =>
  page.locator(`main[data-state="${wanted}"]`).waitFor({ state: "attached" });

/** How many seconds of the trial the curve of open sessions shows. */
const seconds = (page: Page) =>
  page.locator("[data-series=sessions]").evaluate((svg) => {
    const points = svg.querySelector("polyline")?.getAttribute("points") ?? "";
    return points === "" ? svg.querySelectorAll("circle").length : points.trim().split(" ").length;
  });

/** Waits until more than `count` seconds are drawn, and returns their number. */
async function moreSecondsThan(page: Page, count: number): Promise<number> {
  await until(`more than ${count} seconds`, async () => (await seconds(page)) > count);
  return seconds(page);
}

/** Opens the live page of a folder through the link in the history. */
async function watch(page: Page, folder: string): Promise<void> {
  await page.goto(serving.url("/"));
  while ((await page.locator(`[data-test=live-list] a[href="/live/${folder}"]`).count()) === 0)
    await page.reload();
  await page.locator(`[data-test=live-list] a[href="/live/${folder}"]`).click();
  await state(page, "live");
}

test("a trial is seen to move until it ends, and then there is its report", async () => {
  const command = measure("run", "run", "--sessions", "20", "--measured", "10");
  const visit = await Visit.begin(browser);
  const { page } = visit;
  await watch(page, "run");
  assert.match(await textOf(page, "live-what"), /^run ws:/);
  const first = await moreSecondsThan(page, 1);
  const updated = await page.locator("main").getAttribute("data-updated");
  const second = await moreSecondsThan(page, first);
  assert.ok(second > first);
  assert.notEqual(await page.locator("main").getAttribute("data-updated"), updated);
  assert.match(await textOf(page, "live-trial"), /Trial 1 of ws:.*: 20 sessions, .*second \d+/);
  assert.ok((await textOf(page, "live-gates")).includes("newest_p95_ms"));
  assert.equal(await page.locator("[data-test=live-sparkline]").count(), 10);
  assert.deepEqual([...(await markupFrom(page)), ...(await faultsOfDrawings(page))], []);
  assert.equal(await page.locator("[data-test=result-link]").isVisible(), false);

  await state(page, "ended");
  assert.match(await textOf(page, "live-state"), /has ended/);
  const { code, stderr } = await command.end();
  // What the trial found depends on how busy this machine is. That it measured does not.
  assert.ok(code !== null && code !== 2, stderr);
  await page.locator("[data-test=result-link]").click();
  await page.waitForURL("**/result/run/report.html");
  assert.match(await textOf(page, "claim"), /20 sessions/);
  await assertSound(page);
  await page.goto(serving.url("/"));
  assert.equal(await page.locator("[data-test=live-list]").count(), 0);
  assert.equal(await page.locator('tr[data-folder="run"]').count(), 1);
  await visit.end();
});

test("a search is watched from trial to trial, and Ctrl-C is seen as its end", async () => {
  // Plimsoll starts this target, so it has CPU time and memory to show.
  const manifest = join(scratch.path, "target.toml");
  const server = fileURLToPath(new URL("support/echo_server.js", import.meta.url));
  const lines = [
    ...["name", "workload", "tier", "language", "description"].map(
      (name, index) => `${name} = "${["node-echo", "echo", "test", "js", "echo server of a test"][index]}"`,
    ),
    "[run]",
    `command = ["node", ${JSON.stringify(server)}]`,
  ];
  writeFileSync(manifest, lines.join("\n"));
  const words = ["find", "--manifest", manifest, "--workload", "echo", "--start", "40", "--measured", "12"];
  const command = new Running([...words, ...PHASES, "--out", join(results, "find")]);
  started.push(command);

  const visit = await Visit.begin(browser);
  const { page } = visit;
  await watch(page, "find");
  await page.locator("[data-test=live-trials] tbody tr").first().waitFor();
  assert.match(await textOf(page, "live-trials"), /node-echo/);
  await page.waitForFunction(() =>
    /Trial 2 of .*measured/.test(document.querySelector("#trial")?.textContent ?? ""),
  );
  await moreSecondsThan(page, 4);
  // All in one evaluation, because the next second redraws everything.
  await until("a curve of everything that is measured", () =>
    page.evaluate(() => {
      const known = ["newest-p95", "sessions", "target-cpu", "client-cpu", "rss"];
      return known.every(
        (series) => document.querySelector(`[data-series=${series}] :is(polyline, .dot)`) !== null,
      );
    }),
  );
  await page.locator("[data-test=live-bracket] svg .now").waitFor();
  assert.deepEqual([...(await markupFrom(page)), ...(await faultsOfDrawings(page))], []);
  await page.screenshot({ path: artefact("live-page.png"), fullPage: true });

  command.signal("SIGINT");
  await state(page, "ended");
  assert.equal((await command.end()).code, 130);
  await page.locator("[data-test=result-link]").click();
  await page.waitForURL("**/result/find/report.html");
  assert.match(await textOf(page, "claim"), /node-echo/);
  await visit.end();
});

test("a crash is told, and the site goes on", async () => {
  const command = measure("crash", "run", "--sessions", "20", "--measured", "60");
  const visit = await Visit.begin(browser);
  const { page } = visit;
  await watch(page, "crash");
  await moreSecondsThan(page, 2);
  await command.kill();
  await state(page, "silent");
  assert.match(await textOf(page, "live-state"), /crashed/);
  assert.ok(existsSync(join(results, "crash/live.json")), "it is what the crash left behind");
  await page.goto(serving.url("/"));
  await page.locator("h1").waitFor();
  assert.equal(await page.locator("[data-test=live-list]").count(), 0);
  await visit.end();
});

test("a page that lost the site finds it again", async () => {
  const other = await Serving.start(results);
  const command = measure("again", "run", "--sessions", "20", "--measured", "60");
  const visit = await Visit.begin(browser);
  const { page } = visit;
  await until("a live.json", async () => existsSync(join(results, "again/live.json")));
  await page.goto(other.url("/live/again"));
  await state(page, "live");
  await other.kill();
  await state(page, "lost");
  assert.match(await textOf(page, "live-state"), /connection is lost/);
  const back = await Serving.start(results, "--listen", other.host);
  try {
    await state(page, "live");
    await command.kill();
    await visit.end(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|net::ERR/);
  } finally {
    await back.end();
  }
});
