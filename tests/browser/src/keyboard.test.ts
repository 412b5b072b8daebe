// The report, used with the keyboard alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser, Visit } from "./support/browser.js";
import { reportUrl, Scratch, SEARCH } from "./support/fixtures.js";
import { focused, tabTo } from "./support/focus.js";

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

/** Runs a check on the report in its own page. */
async function onReport(check: (page: Page) => Promise<void>): Promise<void> {
  const visit = await Visit.to(browser, reportUrl(folder));
  await check(visit.page);
  await visit.end();
}

test("Tab goes through the page in reading order, and one always sees where it is", () =>
  onReport(async (page) => {
    const stops: string[] = [];
    const places: number[] = [];
    for (let press = 0; press < 200; press += 1) {
      await page.keyboard.press("Tab");
      const at = await focused(page);
      if (at.tag === "body" || stops.includes(at.told)) break;
      assert.ok(at.outlined, `no focus to be seen on ${at.told}`);
      assert.ok(at.visible, `focus is on what cannot be seen: ${at.told}`);
      stops.push(at.told);
      places.push(at.order);
    }
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
    const kinds = stops.map((stop) => stop.split(" ")[0]);
    const links = await page.locator("nav a").count();
    assert.equal(stops[0], "a Skip to the result");
    assert.deepEqual(kinds.slice(1, links + 1), Array(links).fill("a"), "the parts of the page");
    assert.equal(stops[links + 1], "button Theme: auto");
    // The keyboard reaches everything that you can operate: what folds, the choice of a trial, what scrolls.
    assert.equal(
      kinds.filter((kind) => kind === "summary").length,
      await page.locator("summary:visible").count(),
    );
    assert.equal(kinds.filter((kind) => kind === "select").length, 1);
    const scrolls = await page.locator(".scroll:visible").count();
    assert.equal(kinds.filter((kind) => kind === "div").length, scrolls);
  }));

test("the skip link leads past the navigation", () =>
  onReport(async (page) => {
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.closest("main") !== null), true);
  }));

test("a link of the navigation leads to its part", () =>
  onReport(async (page) => {
    await tabTo(page, "a Evidence");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => {
      const top = document.querySelector(location.hash)?.getBoundingClientRect().top ?? Number.NaN;
      return top >= -1 && top < window.innerHeight;
    });
  }));

test("Enter and Space fold and unfold", () =>
  onReport(async (page) => {
    await tabTo(page, "summary What was checked");
    const checked = page.locator("details", { hasText: "What was checked" });
    for (const [key, open] of [
      ["Enter", true],
      ["Space", false],
      ["Space", true],
    ] as const) {
      await page.keyboard.press(key);
      assert.equal(await checked.evaluate((details: HTMLDetailsElement) => details.open), open, key);
    }
    assert.ok(await checked.locator("li").first().isVisible());
  }));

test("arrow keys choose the timeline that is open, one at a time, and back from the timeline's own line", () =>
  onReport(async (page) => {
    const picker = page.locator("[data-test=trial-picker]");
    const options = await picker
      .locator("option")
      .evaluateAll((all) => all.map((one) => (one as HTMLOptionElement).value));
    const open = () => page.locator("details.timeline[open]").evaluateAll((all) => all.map((one) => one.id));
    assert.deepEqual(await open(), [options[0]]);
    await tabTo(page, "select");
    await page.keyboard.press("ArrowDown");
    assert.deepEqual(await open(), [options[1]]);
    await page.keyboard.press("End");
    assert.deepEqual(await open(), [options.at(-1)]);
    await page.keyboard.press("ArrowUp");
    assert.deepEqual(await open(), [options.at(-2)]);
    assert.ok(await page.locator("details.timeline[open] svg").isVisible());
    // Opening another timeline by its own line updates the list.
    await page.locator("details.timeline summary").first().focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      (wanted) => document.querySelector<HTMLSelectElement>("[data-test=trial-picker]")?.value === wanted,
      options[0],
    );
  }));
