// One checked-in result, rendered and opened from disk, for all tests in a file.
import assert from "node:assert/strict";
import { after } from "node:test";
import type { Browser } from "playwright-core";
import { startBrowser, Visit } from "./browser.js";
import { reportUrl, Scratch } from "./fixtures.js";
import { assertSound } from "./soundness.js";

export interface Opened {
  readonly browser: Browser;
  readonly folder: string;
  readonly visit: Visit;
}

/** Renders a result and opens its report. Both are removed when the file's tests have ended. */
export async function openReport(result: string): Promise<Opened> {
  const scratch = new Scratch();
  after(() => scratch.remove());
  const folder = scratch.rendered(result);
  const browser = await startBrowser();
  after(() => browser.close());
  return { browser, folder, visit: await Visit.to(browser, reportUrl(folder)) };
}

/** Asserts that the report opens from disk, requests nothing else, has no problems, and is sound. */
export async function assertOpensAlone({ folder, visit }: Opened): Promise<void> {
  await visit.page.waitForLoadState("networkidle");
  assert.deepEqual(visit.requests, [reportUrl(folder)]);
  await assertSound(visit.page);
  visit.expectQuiet();
}
