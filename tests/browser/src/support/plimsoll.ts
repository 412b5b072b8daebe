// The real command, and the paths that tests need.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The project's root. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
/** The checked-in results. */
export const RESULTS = join(ROOT, "docs/results");
/** What the tests leave for people to look at. */
export const ARTEFACTS = join(ROOT, "tests/browser/artefacts");
/** The command. */
export const BINARY = resolve(process.env.PLIMSOLL ?? join(ROOT, "target/debug/plimsoll"));

/** The longest wait for anything. This is not a measurement, and the machine may have other work. */
export const PATIENCE_MS = 60_000;

/** The path for a picture. */
export function artefact(name: string): string {
  mkdirSync(ARTEFACTS, { recursive: true });
  return join(ARTEFACTS, name);
}

/** Runs the command to its end. Throws with its output if the exit code is not 0. */
export function plimsoll(...words: string[]): string {
  return execFileSync(BINARY, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Polls until the condition holds. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await setTimeout(100);
  }
}

/** The running command. */
export class Running {
  readonly stdout: Interface;
  private readonly child: ChildProcess;
  private readonly over: Promise<unknown>;
  private stderr = "";

  /** Starts the command in its own process group, as a shell does. */
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

  /** The first line of output. */
  async firstLine(): Promise<string> {
    for await (const line of this.stdout) return line;
    throw new Error(`it ended without a line: ${this.stderr}`);
  }

  /** Sends a signal to the whole group, or nothing if the command has ended. */
  signal(signal: NodeJS.Signals): void {
    const { pid, exitCode, signalCode } = this.child;
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
  }

  /** Waits for the end. Returns the exit code, `null` after a signal, and the standard error output. */
  async end(): Promise<{ code: number | null; stderr: string }> {
    await this.over;
    return { code: this.child.exitCode, stderr: this.stderr };
  }

  /** Ends the command if it is still running. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.over;
  }
}
