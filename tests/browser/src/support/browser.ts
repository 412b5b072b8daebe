// The system's Chromium, and pages that are watched: their errors and warnings, and the addresses that they request.
import assert from "node:assert/strict";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { PATIENCE_MS } from "./plimsoll.js";

const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** One browser per test file. */
export async function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    // Chromium refuses to run as root with its sandbox on, and containers run everything as root. It only ever opens
    // pages that these tests made.
    chromiumSandbox: process.getuid?.() !== 0,
  });
}

/** A page in a fresh profile, with a log of what it did. */
export class Visit {
  /** Errors and warnings from the console, from scripts and from requests. */
  readonly problems: string[] = [];
  /** Every requested address. */
  readonly requests: string[] = [];

  private constructor(readonly page: Page) {
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.problems.push(`script: ${error.message}`));
    page.on("crash", () => this.problems.push("the page crashed"));
    page.on("request", (request) => this.requests.push(request.url()));
  }

  static async begin(browser: Browser, options: BrowserContextOptions = {}): Promise<Visit> {
    const context = await browser.newContext({
      reducedMotion: "reduce",
      viewport: { width: 1280, height: 900 },
      ...options,
    });
    return new Visit(await context.newPage());
  }

  /** Opens a page in a fresh profile. */
  static async to(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
    const visit = await Visit.begin(browser, options);
    await visit.page.goto(url);
    return visit;
  }

  /** Asserts that there were no problems, except the expected ones. */
  expectQuiet(expected?: RegExp): void {
    const problems = this.problems.filter((problem) => !expected?.test(problem));
    assert.deepEqual(problems, [], "errors or warnings on the page");
  }

  /** Closes the page, and asserts that it was quiet. */
  async end(expected?: RegExp): Promise<void> {
    await this.page.context().close();
    this.expectQuiet(expected);
  }
}

/** The text of the first element with that hook. */
export async function textOf(page: Page, hook: string): Promise<string> {
  return (await page.locator(`[data-test="${hook}"]`).first().innerText()).trim();
}

/** The rows of a table's body, cell by cell, as text. */
export async function bodyOf(page: Page, table: string): Promise<string[][]> {
  return page.locator(table).evaluate((found) => {
    const text = (cell: Element) => (cell.textContent ?? "").trim();
    return [...found.querySelectorAll("tbody tr")].map((row) => [...row.children].map(text));
  });
}

/** The cells of a table's head, as text. */
export async function headOf(page: Page, table: string): Promise<string[]> {
  const text = (cells: Element[]) => cells.map((cell) => (cell.textContent ?? "").trim());
  return page.locator(table).locator("thead th").evaluateAll(text);
}

/** The rows of a table, with cells keyed by column name. */
export async function rowsOf(page: Page, table: string): Promise<Map<string, string>[]> {
  const [head, body] = [await headOf(page, table), await bodyOf(page, table)];
  return body.map((cells) => new Map(head.map((name, index) => [name, cells[index] ?? ""])));
}
