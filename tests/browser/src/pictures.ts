// Creates the pictures of the documentation in docs/pictures, from checked-in results and from a search that it runs.
// Run it with `npm run pictures`. It takes some minutes, and needs the machine to itself.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { startBrowser, Visit } from "./support/browser.js";
import { COMPARISON, RANKING, reportUrl, Scratch, SEARCH } from "./support/fixtures.js";
import { PATIENCE_MS, ROOT, until } from "./support/plimsoll.js";
import { Serving } from "./support/serving.js";
import { OnATerminal } from "./support/terminal.js";

const FOLDER = join(ROOT, "docs/pictures");
const scratch = new Scratch();
const picture = (name: string) => join(FOLDER, `${name}.png`);

/** The first screen of a result's page. */
async function firstScreen(browser: Browser, folder: string, name: string, height: number): Promise<void> {
  const rendered = scratch.rendered(folder, name);
  const viewport = { width: 1200, height };
  const visit = await Visit.to(browser, reportUrl(rendered), { viewport });
  await visit.page.screenshot({ path: picture(name) });
  await visit.end();
}

/** A search in its sixth trial, on a terminal and in the browser. */
async function search(browser: Browser): Promise<void> {
  const results = join(scratch.path, "live");
  mkdirSync(results);
  const words = ["find", "rust-axum", "--vcpu", "0.25", "--start", "500", "--out", join(results, "find")];
  const terminal = await OnATerminal.start(browser, words);
  const serving = await Serving.start(results);
  const begun = Date.now();
  let screen = "";
  // A single trial takes as long as the tests' longest wait.
  while (!(/trial 6:/.test(screen) && /measured +[4-9] s/.test(screen))) {
    if (Date.now() - begun > 10 * PATIENCE_MS) throw new Error(`no sixth trial: ${screen}`);
    await until("news on the terminal", async () => {
      const before = screen;
      screen = await terminal.screen();
      return screen !== before;
    });
  }
  await terminal.page.screenshot({ path: picture("terminal") });
  const visit = await Visit.to(browser, serving.url("/live/find"), {
    viewport: { width: 1200, height: 1000 },
  });
  await visit.page.locator('main[data-state="live"]').waitFor({ state: "attached" });
  await visit.page.locator("[data-series=sessions] polyline").waitFor();
  await visit.page.screenshot({ path: picture("live"), fullPage: true });
  await terminal.interrupt();
  await serving.end();
}

mkdirSync(FOLDER, { recursive: true });
const browser = await startBrowser();
try {
  await firstScreen(browser, SEARCH, "report", 900);
  await firstScreen(browser, COMPARISON, "comparison", 640);
  await firstScreen(browser, RANKING, "ranking", 1000);
  await search(browser);
} finally {
  await browser.close();
  scratch.remove();
}
