// The view on a terminal, drawn by a real terminal emulator: xterm.js in the browser.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { startBrowser } from "./support/browser.js";
import { startEcho } from "./support/echo_server.js";
import { Scratch } from "./support/fixtures.js";
import { artefact, until } from "./support/plimsoll.js";
import { OnATerminal } from "./support/terminal.js";

const scratch = new Scratch();
let browser: Browser;
let echo: Awaited<ReturnType<typeof startEcho>>;
let command: OnATerminal | undefined;

before(async () => {
  echo = await startEcho(0);
  browser = await startBrowser();
});
after(async () => {
  command?.kill();
  await browser?.close();
  echo?.end();
  scratch.remove();
});

test("the view stands in its place, line by line, and is gone at the end", async () => {
  const server = ["--workload", "echo", "--url", `ws://127.0.0.1:${echo.port}/`, "--start", "40"];
  const phases = ["--ramp", "0.5", "--warm-up", "1", "--measured", "10", "--grace", "2"];
  const out = join(scratch.path, "on-a-terminal");
  command = await OnATerminal.start(browser, ["find", ...server, ...phases, "--out", out]);
  const terminal = command;
  let text = "";
  await until("some seconds of the second trial", async () => {
    text = await terminal.screen();
    return text.includes("trial 2:") && /measured +[5-9] s/.test(text);
  });
  await terminal.page.screenshot({ path: artefact("terminal.png") });
  // Redrawn in place, not printed again each second.
  assert.equal(text.match(/newest_p95_ms/g)?.length, 1, text);
  assert.match(text, /newest_p95_ms +!?[\d.,]+ of 50/);
  assert.match(text, /sessions \d+ of \d+ +errors 0 +lost 0/);
  assert.match(text, /CPU +target/);
  assert.match(text, /about \d+:\d\d left/);

  await terminal.interrupt();
  const left = await terminal.screen();
  assert.match(left, /result: /);
  assert.ok(!left.includes("━"), left);
});
