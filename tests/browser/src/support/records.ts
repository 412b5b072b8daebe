// The parts of the records that the tests read. The JSON Schemas have everything.

export interface Edge {
  value: number;
  low: number;
  high: number | null;
  confidence: number;
}

export interface TrialSummary {
  file: string;
  sessions: number;
  length: "full" | "short";
  verdict: "pass" | "fail" | "invalid";
  newest_p50_ms: number | null;
  newest_p95_ms: number | null;
  oldest_p50_ms: number | null;
  oldest_p95_ms: number | null;
  cpu_us_per_session_second: number | null;
  target_cpu_share: number | null;
  client_cpu_share: number;
  send_lag_p999_us: number | null;
}

export interface Evidence {
  sessions: number;
  passed: number;
  failed: number;
  short_passed: number;
  short_failed: number;
  invalid: number;
  class: string;
}

export interface CostPoint {
  sessions: number;
  cpu_us_per_session_second: number;
  low: number;
  high: number;
  rss_bytes_per_session: number | null;
  trials: number;
}

export interface Bracket {
  target: { name: string; tier: string };
  confirmed: number | null;
  borderline: number[];
  first_fail: number | null;
  failing_gate: string | null;
  sessions_per_vcpu: number | null;
  lower_bound_only: boolean;
  edge: Edge | null;
  evidence: Evidence[];
  cost_curve: CostPoint[];
  trials: TrialSummary[];
}

export interface Trial {
  verdict: string;
  sessions: number;
  vcpu: number | null;
  caveats: { id: string; blocking: boolean; text: string }[];
  gates: { name: string; threshold: number; observed: number | null; pass: boolean }[];
  ledger: Record<string, number>;
  latency: { newest: { from_schedule: { p99_ms: number | null } } };
  environment: { machine: Record<string, string> };
}

export interface Ranking {
  vcpu: number;
  common_load: number | null;
  rows: {
    folder: string;
    language: string;
    description: string;
    lines_of_code: number | null;
    bracket: Bracket;
    at_common_load: {
      cpu_us_per_session_second: number;
      core_us_per_session_second: number;
      low: number;
      high: number;
      rss_bytes_per_session: number | null;
      trials: unknown[];
    } | null;
  }[];
}

export interface Ratio {
  value: number;
  low: number;
  high: number;
}

export interface Comparison {
  cost_account?: "charged" | "core";
  a: {
    name: string;
    cpu_us_per_session_second: number | null;
    core_us_per_session_second?: number | null;
    trials: unknown[];
  };
  b: {
    name: string;
    cpu_us_per_session_second: number | null;
    core_us_per_session_second?: number | null;
    trials: unknown[];
  };
  conclusion: string;
  explanation: string;
  cost_ratio: Ratio | null;
  load_line_ratio: Ratio | null;
  pairs: {
    sessions: number;
    b_first: boolean;
    a_file: string;
    b_file: string;
    a_cpu_us_per_session_second: number | null;
    b_cpu_us_per_session_second: number | null;
    a_core_us_per_session_second?: number | null;
    b_core_us_per_session_second?: number | null;
    left_out: string | null;
  }[];
}
