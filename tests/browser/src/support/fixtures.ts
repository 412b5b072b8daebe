// Result folders to render: copies of checked-in results, so that the tests never change those.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { plimsoll, RESULTS } from "./plimsoll.js";
import type { Bracket } from "./records.js";

/** A search with histograms and rows per second of some trials. */
export const SEARCH = "ranking-one-vcpu/go-nethttp-plain";
/** Eleven targets. */
export const RANKING = "ranking-one-vcpu";
/** Two targets, five pairs. */
export const COMPARISON = "findings/limit";

// Records are read as any script would read them. `records.ts` has the types of what the tests use.
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** Changes a record: returns a changed copy, or the record itself. */
export type Change = (record: Json, file: string) => Json;

/** A scratch folder. */
export class Scratch {
  readonly path = mkdtempSync(join(tmpdir(), "plimsoll-browser-"));

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  /** Copies the records of a checked-in result, without its renderings. */
  copy(result: string, to: string, change: Change = (record) => record): string {
    const folder = join(this.path, to);
    copyRecords(join(RESULTS, result), folder, change);
    if (result === SEARCH) asASearchByItself(folder);
    return folder;
  }

  /** Copies, renders and returns the folder. For a ranking, this also renders the pages of its targets. */
  rendered(result: string, to = "result", change?: Change): string {
    const folder = this.copy(result, to, change);
    plimsoll("report", folder);
    return folder;
  }
}

/** The address of the report in a folder. */
export function reportUrl(folder: string): string {
  return pathToFileURL(join(folder, "report.html")).href;
}

/** A record on disk. */
export function record<T>(folder: string, name: string): T {
  return JSON.parse(readFileSync(join(folder, name), "utf8")) as T;
}

/** The names of a folder's records. */
export function recordNames(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith(".json"));
}

/** Takes away what its ranking added: the plan, and the trials at the common load. */
function asASearchByItself(folder: string): void {
  const { trials } = record<Bracket>(folder, "bracket.json");
  const own = new Set(trials.map(({ file }) => file));
  for (const name of recordNames(folder)) {
    if (name !== "bracket.json" && !own.has(name)) rmSync(join(folder, name));
  }
}

/** Checked-in records are packed. Here they are loose, so that tests can change them. */
function copyRecords(from: string, to: string, change: Change): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const path = join(from, entry.name);
    if (entry.isDirectory()) copyRecords(path, join(to, entry.name), change);
    else if (entry.name === "records.tar.gz") execFileSync("tar", ["-xzf", path, "-C", to]);
  }
  for (const name of recordNames(to)) {
    const file = join(to, name);
    const changed = change(JSON.parse(readFileSync(file, "utf8")) as Json, name);
    writeFileSync(file, JSON.stringify(changed));
  }
}
