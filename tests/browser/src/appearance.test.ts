// How the report looks: light, dark, on paper, on a narrow screen.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser, Visit } from "./support/browser.js";
import { below, contrastsOf, lightness } from "./support/contrast.js";
import { COMPARISON, RANKING, reportUrl, Scratch, SEARCH } from "./support/fixtures.js";
import { artefact } from "./support/plimsoll.js";

const scratch = new Scratch();
let browser: Browser;
const folders = new Map<string, string>();

before(async () => {
  for (const result of [SEARCH, RANKING, COMPARISON]) {
    folders.set(result, scratch.rendered(result, result));
  }
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  scratch.remove();
});

const url = (result: string) => reportUrl(folders.get(result) ?? "");

/** Opens everything that folds. */
async function unfold(page: Page): Promise<void> {
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
}

async function assertLight(page: Page, light: boolean): Promise<void> {
  const { paper, ink } = await lightness(page);
  assert.ok(light ? paper > 0.9 && ink < 0.2 : paper < 0.15 && ink > 0.7, `paper ${paper}, ink ${ink}`);
}

/** WCAG 2, level AA: 4.5 for text. */
async function assertReadable(page: Page): Promise<void> {
  const { texts } = await contrastsOf(page);
  assert.ok(texts.length > 100, `${texts.length} texts`);
  assert.deepEqual(below(4.5, texts), []);
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const result of [SEARCH, RANKING, COMPARISON]) {
    test(`${result} in ${colorScheme}: text is readable`, async () => {
      const visit = await Visit.to(browser, url(result), { colorScheme });
      await assertLight(visit.page, colorScheme === "light");
      const picture = { [SEARCH]: "report", [RANKING]: "ranking", [COMPARISON]: "comparison" }[result];
      await visit.page.screenshot({ path: artefact(`${picture}-${colorScheme}.png`) });
      await unfold(visit.page);
      await assertReadable(visit.page);
      await visit.end();
    });

    // WCAG 2, level AA: 3 for what readers must see to understand a drawing.
    test(`${result} in ${colorScheme}: what carries data stands out`, async () => {
      const visit = await Visit.to(browser, url(result), { colorScheme });
      await unfold(visit.page);
      const { marks } = await contrastsOf(visit.page);
      assert.ok(marks.length > 20, `${marks.length} marks`);
      assert.deepEqual(below(3, marks), []);
      await visit.end();
    });
  }
}

test("the toggle goes from the system's theme to light, to dark and back, and is remembered", async () => {
  const visit = await Visit.to(browser, url(SEARCH), { colorScheme: "dark" });
  const toggle = visit.page.locator("[data-test=theme-toggle]");
  for (const [theme, light] of [
    ["auto", false],
    ["light", true],
    ["dark", false],
    ["auto", false],
    ["light", true],
  ] as const) {
    assert.equal(await toggle.innerText(), `Theme: ${theme}`);
    await assertLight(visit.page, light);
    if (theme !== "auto") await assertReadable(visit.page);
    await toggle.click();
  }
  await visit.page.reload();
  assert.equal(await toggle.innerText(), "Theme: dark");
  await visit.page.emulateMedia({ colorScheme: "light" });
  await assertLight(visit.page, false);
  await visit.end();
});

test("paper is light, has everything but the raw JSON unfolded, and nothing to click", async () => {
  const visit = await Visit.to(browser, url(SEARCH), { colorScheme: "dark" });
  const { page } = visit;
  await page.locator("[data-test=theme-toggle]").click({ clickCount: 2 });
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  await page.emulateMedia({ media: "print" });
  await assertLight(page, true);
  for (const hidden of ["nav", "button", ".picker", ".skip"]) {
    assert.equal(await page.locator(`${hidden}:visible`).count(), 0, hidden);
  }
  for (const timeline of await page.locator("details.timeline svg").all())
    assert.ok(await timeline.isVisible());
  await assertReadable(page);
  await page.emulateMedia({ media: "screen" });

  const opened = await page.evaluate(() => {
    const seen: boolean[][] = [];
    const states = () =>
      [...document.querySelectorAll("details")].map((details) => details.open || details.id === "raw");
    window.addEventListener("beforeprint", () => seen.push(states()));
    window.addEventListener("afterprint", () => seen.push(states()));
    Object.assign(window, { seen });
    return states();
  });
  const paper = await page.pdf({ format: "A4", printBackground: true });
  assert.equal(paper.subarray(0, 5).toString(), "%PDF-");
  const pages = paper.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? [];
  assert.ok(pages.length >= 5, `${pages.length} pages`);
  const [during, afterwards] = await page.evaluate(() => (window as unknown as { seen: boolean[][] }).seen);
  assert.ok(
    during?.every((open) => open),
    "all are open on paper",
  );
  assert.deepEqual(afterwards, opened, "and as they were afterwards");
  await visit.end();
});

for (const result of [SEARCH, RANKING, COMPARISON]) {
  test(`${result} on a screen of 360 px: only what is made to scroll scrolls`, async () => {
    const visit = await Visit.to(browser, url(result), { viewport: { width: 360, height: 740 } });
    await unfold(visit.page);
    const wide = await visit.page.evaluate(() => {
      const room = document.documentElement.clientWidth;
      const sticksOut = (element: Element) => element.getBoundingClientRect().right > room + 1;
      const told = [...document.querySelectorAll("body *")].filter(
        (element) => sticksOut(element) && !element.closest(".scroll > *, figure > *, pre > *, .skip"),
      );
      return [
        document.documentElement.scrollWidth - room,
        ...told.map((element) => element.outerHTML.slice(0, 80)),
      ];
    });
    assert.deepEqual(wide, [0]);
    await visit.end();
  });
}
