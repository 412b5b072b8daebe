// One checked-in result, rendered and opened from the disk, for all tests of a file.
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

/** Renders a result and opens its report; both are gone when the file's tests are over. */
export async function openReport(result: string): Promise<Opened> {
  const scratch = new Scratch();
  after(() => scratch.remove());
  const folder = scratch.rendered(result);
  const browser = await startBrowser();
  after(() => browser.close());
  return { browser, folder, visit: await Visit.to(browser, reportUrl(folder)) };
}

/** It opens from the disk, asks for nothing else, complains of nothing, and is sound. */
export async function assertOpensAlone({ folder, visit }: Opened): Promise<void> {
  await visit.page.waitForLoadState("networkidle");
  assert.deepEqual(visit.requests, [reportUrl(folder)]);
  await assertSound(visit.page);
  visit.expectQuiet();
}
