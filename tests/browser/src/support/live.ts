// A simulated command at work, for records that no real command would write.
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "./fixtures.js";

/** Writes a `live.json` once a second, as a command does, until it is ended. */
export class MadeUp {
  private second = 0;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly folder: string,
    private readonly record: (second: number) => Json,
  ) {
    mkdirSync(folder, { recursive: true });
    this.write();
    this.timer = setInterval(() => this.write(), 1000);
  }

  private write(): void {
    this.second += 1;
    const [written, live] = [join(this.folder, ".live"), join(this.folder, "live.json")];
    writeFileSync(written, JSON.stringify(this.record(this.second)));
    renameSync(written, live);
  }

  end(): void {
    clearInterval(this.timer);
  }
}

/** A search in its third trial, at that second, written now. */
export function liveRecord(second: number): Json {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  return {
    schema_version: 1,
    command: "find",
    target: "server",
    targets: ["server"],
    slo: "slo",
    profile: "quick",
    started_at: now,
    updated_at: now,
    pid: 1,
    vcpu: 0.25,
    phases: { ramp_s: 3, warm_up_s: 3, measured_s: 10, grace_s: 2 },
    trial: {
      number: 2,
      sessions: 800,
      why: "probe",
      phase: "measured",
      at_s: second,
      errors: 0,
      sessions_lost: 0,
    },
    gates: [
      { name: "newest_p95_ms", threshold: 350, observed: 120.5 },
      { name: "oldest_p95_ms", threshold: 1650, observed: 1702.4 },
      { name: "error_rate", threshold: 1e-5, observed: 2e-5 },
      { name: "frames_lost", threshold: 0, observed: null },
    ],
    seconds: Array.from({ length: second }, (_, index) => secondRecord(index + 1)),
    trials: [
      {
        number: 1,
        target: "server",
        sessions: 400,
        verdict: "pass",
        newest_p50_ms: 90,
        newest_p95_ms: 125,
        cpu_us_per_session_second: 500,
      },
      {
        number: 2,
        target: "server",
        sessions: 1600,
        verdict: "fail",
        newest_p50_ms: 210.4,
        newest_p95_ms: 4321,
        cpu_us_per_session_second: null,
      },
    ],
    bracket: { highest_pass: 400, lowest_fail: 1600 },
    trials_left: 7,
    time_left_s: 120,
    ended: false,
  };
}

function secondRecord(at: number): Json {
  return {
    at_s: at,
    phase: "measured",
    sessions_open: 800,
    frames_sent: 40_000,
    partials: 800,
    errors: 0,
    protocol_faults: 0,
    sessions_lost: 0,
    newest_p50_ms: 90,
    newest_p95_ms: 100 + at,
    newest_max_ms: 200,
    oldest_p50_ms: 900,
    oldest_p95_ms: 1000,
    send_lag_p99_us: 300,
    send_wait_p99_us: 0,
    client_cpu_share: 0.3,
    target_cpu_cores: 0.2,
    target_rss_bytes: 50_000_000,
    target_throttled_share: null,
    target_run_queue_wait_share: null,
    target_fds: null,
    inference_cpu_cores: null,
  };
}
