// Compares the tables of a search's report with the records, cell by cell.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, headOf, rowsOf } from "./support/browser.js";
import { record, SEARCH } from "./support/fixtures.js";
import {
  assertShows,
  assertShowsRange,
  BYTES,
  MICROSECONDS,
  MILLISECONDS,
  PLAIN,
  SHARE,
} from "./support/numbers.js";
import { openReport } from "./support/opened.js";
import type { Bracket, Trial, TrialSummary } from "./support/records.js";

const { folder, visit } = await openReport(SEARCH);
const bracket = record<Bracket>(folder, "bracket.json");

test("evidence: how often each load passed and failed", async () => {
  const rows = await bodyOf(visit.page, "[data-test=evidence] table >> nth=0");
  assert.equal(rows.length, bracket.evidence.length);
  for (const [index, load] of bracket.evidence.entries()) {
    const { sessions, passed, failed, short_passed, short_failed, invalid } = load;
    const cells = rows[index] ?? [];
    for (const [column, value] of [sessions, passed, failed, short_passed, short_failed, invalid].entries()) {
      assertShows(cells[column], PLAIN, value);
    }
    assert.equal(cells[6], load.class);
  }
});

test("evidence: what was measured at each load", async () => {
  const rows = await rowsOf(visit.page, "[data-test=evidence] table >> nth=1");
  const loads = new Map<number, TrialSummary[]>();
  for (const trial of bracket.trials) {
    loads.set(trial.sessions, [...(loads.get(trial.sessions) ?? []), trial]);
  }
  const ascending = [...loads].sort(([one], [other]) => one - other);
  assert.equal(rows.length, ascending.length);
  for (const [index, [sessions, trials]] of ascending.entries()) {
    const row = rows[index] ?? new Map<string, string>();
    const range = (
      column: string,
      units: Record<string, number>,
      of: (trial: TrialSummary) => number | null,
    ) => {
      assertShowsRange(row.get(column), units, trials.map(of));
    };
    assertShows(row.get("sessions"), PLAIN, sessions);
    range("newest p50", MILLISECONDS, (trial) => trial.newest_p50_ms);
    range("newest p95", MILLISECONDS, (trial) => trial.newest_p95_ms);
    range("oldest p50", MILLISECONDS, (trial) => trial.oldest_p50_ms);
    range("oldest p95", MILLISECONDS, (trial) => trial.oldest_p95_ms);
    range("CPU per session-second", MICROSECONDS, (trial) => trial.cpu_us_per_session_second);
    range("target CPU", SHARE, (trial) => trial.target_cpu_share);
    range("client CPU", SHARE, (trial) => trial.client_cpu_share);
    range("send lag p99.9", MICROSECONDS, (trial) => trial.send_lag_p999_us);
    const verdicts = [...(row.get("verdict") ?? "").matchAll(/\b(pass|fail|invalid)(?: ×(\d+))?/g)];
    const told = verdicts.flatMap(([, verdict, times]) => Array(Number(times ?? 1)).fill(verdict));
    assert.deepEqual(
      told,
      trials.map((trial) => trial.verdict),
      `verdicts at ${sessions}: ${row.get("verdict")}`,
    );
  }
});

test("ledger: every count of every trial that it shows", async () => {
  const selector = "[data-test=ledger] table";
  const [head, rows] = [await headOf(visit.page, selector), await bodyOf(visit.page, selector)];
  const names: Record<string, string> = {
    "frames due in the measured window": "frames_due",
    "answers recomputed": "content_checked",
    "answers wrong": "content_wrong",
    "frames sent in the whole trial": "frames_sent_in_all",
    "bytes sent in the whole trial": "bytes_sent",
    "bytes received in the whole trial": "bytes_received",
  };
  const shown = head.slice(1).map((title) => /^(trial-\d+) at ([\d,]+) \((\w+)\)$/.exec(title));
  assert.ok(shown.length > 1);
  for (const [index, found] of shown.entries()) {
    const [, stem, load, verdict] = found ?? [];
    const trial = record<Trial>(folder, `${stem}.json`);
    assertShows(load, PLAIN, trial.sessions);
    assert.equal(verdict, trial.verdict);
    for (const cells of rows) {
      const what = cells[0] ?? "";
      const counted = trial.ledger[names[what] ?? what.replaceAll(" ", "_")];
      assert.ok(counted !== undefined, what);
      assertShows(cells[index + 1], PLAIN, counted);
    }
  }
  // The account that the caption promises: every due frame is in exactly one of the three.
  const of = (what: string, column: number) => {
    const cell = rows.find((cells) => cells[0] === what)?.[column];
    return Number((cell ?? "").replaceAll(",", ""));
  };
  for (const column of shown.keys()) {
    const parts = ["frames answered", "frames errored", "frames lost"].map((what) => of(what, column + 1));
    const due = of("frames due in the measured window", column + 1);
    assert.equal(
      parts.reduce((sum, part) => sum + part, 0),
      due,
    );
  }
});

test("cost: what a session costs at each load", async () => {
  const rows = await rowsOf(visit.page, "section[id$=-cost] table");
  assert.equal(rows.length, bracket.cost_curve.length);
  for (const [index, point] of bracket.cost_curve.entries()) {
    const row = rows[index] ?? new Map<string, string>();
    assertShows(row.get("sessions"), PLAIN, point.sessions);
    assertShows(row.get("CPU per session-second"), MICROSECONDS, point.cpu_us_per_session_second);
    assertShows(row.get("least"), MICROSECONDS, point.low);
    assertShows(row.get("greatest"), MICROSECONDS, point.high);
    assertShows(row.get("RSS per session"), BYTES, point.rss_bytes_per_session);
    assertShows(row.get("trials"), PLAIN, point.trials);
  }
});

test("environment: every fact of the machine", async () => {
  const rows = new Map(
    (await bodyOf(visit.page, "[data-test=environment] table")).map(([name, value]) => [name, value]),
  );
  const { environment } = record<Trial>(folder, bracket.trials[0]?.file ?? "");
  for (const [name, value] of Object.entries(environment.machine)) {
    // These change while a machine runs.
    if (["load_average", "steal_share"].includes(name)) assert.ok(rows.has(name), name);
    else assert.equal(rows.get(name), value, name);
  }
});
