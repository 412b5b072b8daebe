// A terminal: `script` (util-linux) creates one for the command, and xterm.js draws its output.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import type { Terminal } from "@xterm/xterm";
import type { Browser, Page } from "playwright-core";
import { BINARY, ROOT } from "./plimsoll.js";

const COLUMNS = 100;
const ROWS = 24;
const { resolve } = createRequire(import.meta.url);

/** The command on its own terminal. */
export class OnATerminal {
  private readonly child: ChildProcess;
  private readonly over: Promise<unknown>;
  private readonly chunks: Buffer[] = [];

  private constructor(
    words: readonly string[],
    readonly page: Page,
  ) {
    const line = `stty cols ${COLUMNS} rows ${ROWS}; exec ${[BINARY, ...words].join(" ")}`;
    const env = {
      ...process.env,
      PLIMSOLL_ROOT: ROOT,
      TERM: "xterm-256color",
      SHELL: "/bin/sh",
      NO_COLOR: "",
    };
    this.child = spawn("script", ["-q", "-e", "-c", line, "/dev/null"], {
      env,
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.child.stdout?.on("data", (chunk: Buffer) => this.chunks.push(chunk));
    this.over = once(this.child, "exit");
  }

  static async start(browser: Browser, words: readonly string[]): Promise<OnATerminal> {
    return new OnATerminal(words, await emulator(browser));
  }

  /** What the screen shows now. */
  screen(): Promise<string> {
    return shown(this.page, Buffer.concat(this.chunks.splice(0)));
  }

  /** Presses Ctrl-C and waits for the end. */
  async interrupt(): Promise<void> {
    this.child.stdin?.write("\x03");
    await this.over;
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }
}

/** The emulator's page, in which the emulator is called `terminal`. */
async function emulator(browser: Browser): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 980, height: 520 } });
  await page.setContent("<!doctype html><body style='margin:0;background:#14171a'><div id=screen></div>");
  await page.addStyleTag({ path: resolve("@xterm/xterm/css/xterm.css") });
  await page.addScriptTag({ path: resolve("@xterm/xterm") });
  await page.evaluate(
    ([cols, rows]) => {
      const theme = { background: "#14171a", foreground: "#e8e8e8" };
      const fontFamily = "DejaVu Sans Mono, monospace";
      const scope = window as unknown as { Terminal: typeof Terminal; terminal: Terminal };
      scope.terminal = new scope.Terminal({ cols, rows, theme, fontFamily, fontSize: 15 });
      scope.terminal.open(document.querySelector("#screen") as HTMLElement);
    },
    [COLUMNS, ROWS] as const,
  );
  return page;
}

/** Writes these bytes to the emulator, and returns what the screen then shows. */
function shown(page: Page, bytes: Buffer): Promise<string> {
  return page.evaluate(
    async (all) => {
      const { terminal } = window as unknown as { terminal: Terminal };
      await new Promise<void>((done) => terminal.write(new Uint8Array(all), done));
      const { active } = terminal.buffer;
      const line = (row: number) => active.getLine(active.viewportY + row)?.translateToString(true) ?? "";
      return Array.from({ length: terminal.rows }, (_, row) => line(row)).join("\n");
    },
    [...bytes],
  );
}
