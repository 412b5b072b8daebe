// The real command, and where things are.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The project's root. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
/** Results that are checked in. */
export const RESULTS = join(ROOT, "docs/results");
/** What the tests leave to be looked at. */
export const ARTEFACTS = join(ROOT, "tests/browser/artefacts");
/** The command. */
export const BINARY = resolve(process.env.PLIMSOLL ?? join(ROOT, "target/debug/plimsoll"));

/** How long anything is waited for: this is no measurement, and the machine may have other work. */
export const PATIENCE_MS = 60_000;

/** Where a picture goes. */
export function artefact(name: string): string {
  mkdirSync(ARTEFACTS, { recursive: true });
  return join(ARTEFACTS, name);
}

/** Runs the command to its end; throws with what it said when that is not 0. */
export function plimsoll(...words: string[]): string {
  return execFileSync(BINARY, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Looks again and again until that is so. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await setTimeout(100);
  }
}

/** The command at work. */
export class Running {
  readonly stdout: Interface;
  private readonly child: ChildProcess;
  private readonly over: Promise<unknown>;
  private stderr = "";

  /** Starts it in a process group of its own, as a shell does. */
  constructor(words: readonly string[]) {
    const env = { ...process.env, PLIMSOLL_ROOT: ROOT };
    const child = spawn(BINARY, words, { detached: true, env, stdio: ["ignore", "pipe", "pipe"] });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.stdout = createInterface(child.stdout);
    this.over = once(child, "exit");
    this.child = child;
    // Nothing that was started outlives the tests.
    process.once("exit", () => this.signal("SIGKILL"));
  }

  /** The first line that it prints. */
  async firstLine(): Promise<string> {
    for await (const line of this.stdout) return line;
    throw new Error(`it ended without a line: ${this.stderr}`);
  }

  /** Sends a signal to the whole group; nothing when it is over. */
  signal(signal: NodeJS.Signals): void {
    const { pid, exitCode, signalCode } = this.child;
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
  }

  /** Waits for the end: the exit code, `null` after a signal, and what was said. */
  async end(): Promise<{ code: number | null; stderr: string }> {
    await this.over;
    return { code: this.child.exitCode, stderr: this.stderr };
  }

  /** Ends it, if it still runs. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.over;
  }
}
