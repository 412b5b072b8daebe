//! Result folders with fixed content, for golden files and for the schema. The numbers are made up, but have the shape
//! of real runs.
#![allow(dead_code, reason = "every test file uses its own part of this")]
#![allow(
    clippy::needless_update,
    reason = "records that get another field later break nothing here"
)]

pub(crate) mod calibrations;
pub(crate) mod evidence;
pub(crate) mod fleet;
pub(crate) mod http;
pub(crate) mod many;
mod targets;
pub(crate) mod ws;

use std::collections::BTreeMap;

use plimsoll_core::caveat::{Caveat, Doubt};
use plimsoll_core::latency::{Dual, LagQuantiles, Latency, LatencySet, Quantiles, Series};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::{Length, NS_PER_MS, Profile};
use plimsoll_core::record::{
    Bracket, Client, CompanionWindow, Edge, Environment, LoadUnit, Network, NetworkEnd,
    NetworkMode, NetworkReceive, Phase, Probe, Probes, SCHEMA_VERSION, Second, Target,
    TargetResources, Trial, TrialSummary, Verdict,
};
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_document::Tellers;
use plimsoll_report::IntervalHistograms;
use plimsoll_workload_broker::Broker;
use plimsoll_workload_http::Http;
use plimsoll_workload_stt::Stt;
use plimsoll_workload_voice::Voice;
use plimsoll_workload_ws::Ws;

pub(crate) use targets::ranking;

/// Who tells the workloads of these examples.
pub(crate) const TELLERS: Tellers = Tellers::new(&[&Stt, &Ws, &Http, &Broker, &Voice]);

/// The gates of a workload of speech.
fn slo() -> Slo {
    Slo::from_gates(
        "stt",
        &[
            (Metric::Newest(Percentile::P50), 200.0),
            (Metric::Newest(Percentile::P95), 350.0),
            (Metric::Oldest(Percentile::P50), 1200.0),
            (Metric::Oldest(Percentile::P95), 1650.0),
            (Metric::ErrorRate, 1e-5),
        ],
    )
}

/// A trial whose verdict follows from its latencies and caveats, as in a real trial.
pub(crate) fn trial(sessions: u32, latency: Latency, doubts: &[Doubt]) -> Trial {
    let ledger = ledger(sessions);
    let gates = slo().judge(&ledger, &latency);
    let caveats: Vec<Caveat> = doubts.iter().map(Caveat::from).collect();
    Trial {
        schema_version: SCHEMA_VERSION,
        verdict: Verdict::of(&gates, &caveats),
        gates,
        caveats,
        workload: "stt".to_owned(),
        parameters: plimsoll_core::record::Parameters::new(),
        profile: "quick".to_owned(),
        phases: Profile::quick(),
        slo: "stt".to_owned(),
        sessions,
        load_unit: LoadUnit::SESSIONS,
        target: target(),
        start_ms: None,
        vcpu: Some(1.0),
        environment: environment(),
        baseline: None,
        seed: 42,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        interrupted: false,
        ledger,
        latency,
        client: client(sessions),
        target_resources: Some(resources(sessions)),
        companion: Some(CompanionWindow {
            requests: u64::from(sessions) * 10,
            busy_share: f64::from(sessions) / 6_000.0,
            cpu_us_per_request: Some(160.0),
            cpu_us_per_session_second: None,
            queue_wait: lag(1.0, 3.0, 9.0, 40.0),
            answer_lateness: lag(60.0, 240.0, 410.0, 900.0),
            request_bytes: Some(u64::from(sessions) * 10 * 32_000),
            resources: None,
        }),
        length: Length::Full,
        bottleneck: None,
        sanity: Vec::new(),
        sections: plimsoll_core::record::Sections::default(),
        drift: None,
        goals: None,
        further_slos: Vec::new(),
        goodput: None,
    }
}

/// Latencies with these medians and p95s, in milliseconds.
pub(crate) fn latency(newest: (f64, f64), oldest: (f64, f64)) -> Latency {
    let dual = |(p50, p95): (f64, f64)| Dual {
        from_schedule: quantiles(p50, p95),
        from_write: quantiles(p50 - 0.2, p95 - 0.4),
    };
    Latency {
        newest: dual(newest),
        oldest: dual(oldest),
        confirm: None,
        worst_second_p99_ms: None,
    }
}

fn quantiles(p50: f64, p95: f64) -> Quantiles {
    let beyond = |factor: f64| Some(p95 + (p95 - p50) * factor);
    Quantiles {
        p50_ms: Some(p50),
        p90_ms: beyond(-0.2),
        p95_ms: Some(p95),
        p99_ms: beyond(0.4),
        p999_ms: beyond(0.9),
        max_ms: beyond(1.5),
        count: 16_500,
        censored: 0,
    }
}

fn ledger(sessions: u32) -> Ledger {
    let frames = u64::from(sessions) * 500;
    Ledger {
        frames_due: frames,
        frames_sent: frames,
        frames_answered: frames,
        sessions_started: u64::from(sessions),
        partials: u64::from(sessions) * 10,
        content_checked: 1_000,
        frames_sent_in_all: frames * 2,
        bytes_sent: frames * 2 * 648,
        bytes_received: u64::from(sessions) * 20 * 310,
        ..Ledger::default()
    }
}

fn target() -> Target {
    let versions = [("runtime", "rustc 1.90.0"), ("axum", "0.8.4")];
    Target {
        name: "rust-axum".to_owned(),
        tier: "idiomatic".to_owned(),
        versions: owned(&versions),
        ..Target::default()
    }
}

fn environment() -> Environment {
    let machine = [
        ("cores", "4"),
        ("cpu_model", "Example CPU @ 2.0 GHz"),
        ("kernel", "6.1.0"),
        ("os", "Debian 12"),
    ];
    Environment {
        machine: owned(&machine),
        client_cpus: vec![2, 3],
        target_cpus: vec![0],
        isolation: "cgroup v2".to_owned(),
        plimsoll_version: "0.1.0".to_owned(),
        engine_backend: "epoll".to_owned(),
        engine_tick_us: 500,
        quota_period_ms: Some(10.0),
        nodelay: true,
        network: Some(network()),
        tls: None,
        probes: Some(probes()),
        ..Environment::default()
    }
}

fn network() -> Network {
    let end = |address: &str, cpus: &[u32]| NetworkEnd {
        address: address.to_owned(),
        receive_cpus: cpus.to_vec(),
        offloads: vec!["tcp-segmentation-offload".to_owned()],
        ..NetworkEnd::default()
    };
    let mut target = end("198.18.7.2", &[0]);
    target.receive = NetworkReceive::Thread;
    target.receive_delay_us = Some(100);
    Network {
        mode: NetworkMode::Own,
        why: None,
        mtu_bytes: Some(1_500),
        client: Some(end("198.18.7.1", &[2, 3])),
        target: Some(target),
    }
}

fn probes() -> Probes {
    let before = Probe {
        arithmetic_ns: 1.31,
        memory_ns: 22.4,
        system_call_ns: 98.0,
        wake_up_us: 51.7,
        timer_late_us: 61.2,
        timer_cpu_us: 14.9,
    };
    let after = Probe {
        wake_up_us: 58.3,
        ..before
    };
    Probes {
        before,
        after: Some(after),
    }
}

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn client(sessions: u32) -> Client {
    Client {
        cpu_us_per_frame: Some(4.2),
        cpu_share: f64::from(sessions) / 4_300.0,
        send_lag: lag(12.0, 85.0, 310.0, 1_240.0),
        send_wait: lag(0.0, 0.0, 0.0, 2_100.0),
        steal_share: Some(0.001),
        ..Client::default()
    }
}

fn resources(sessions: u32) -> TargetResources {
    TargetResources {
        cpu_us_per_session_second: Some(560.0 + 20.0 * (f64::from(sessions) / 1_000.0)),
        core_us_per_session_second: Some(690.0),
        others_cpu_share: Some(0.01),
        cpu_share: (f64::from(sessions) * 6e-4).min(1.0),
        cpu_user_us: 4_100_000,
        cpu_system_us: 5_300_000,
        rss_peak_bytes: 90_000_000,
        rss_bytes_per_session: Some(48_200.0),
        throttled_share: Some(0.02),
        run_queue_wait_share: Some(0.31),
        source: "cgroup v2".to_owned(),
        ..TargetResources::default()
    }
}

fn lag(p50: f64, p99: f64, p999: f64, max: f64) -> LagQuantiles {
    LagQuantiles {
        p50_us: Some(p50),
        p99_us: Some(p99),
        p999_us: Some(p999),
        max_us: Some(max),
    }
}

/// A search and its trials.
pub(crate) struct Find {
    pub(crate) bracket: Bracket,
    pub(crate) trials: Vec<Trial>,
}

/// A search with a load line, a borderline load and a first fail.
pub(crate) fn find() -> Find {
    let passing = |n| {
        (
            n,
            96.0 + f64::from(n) * 0.012,
            150.0 + f64::from(n) * 0.05,
            1_320.0 + f64::from(n) * 0.12,
        )
    };
    let loads = [
        passing(250),
        passing(500),
        passing(1_000),
        (2_000, 420.0, 880.0, 2_410.0),
        passing(1_500),
        (1_750, 171.0, 322.0, 1_702.3),
        passing(1_600),
        passing(1_600),
        (1_700, 146.0, 262.0, 1_668.2),
        (1_700, 140.0, 251.0, 1_611.0),
        (1_750, 176.0, 331.0, 1_714.0),
        (1_650, 126.0, 238.0, 1_549.0),
        (1_650, 128.0, 244.0, 1_571.0),
    ];
    let trials: Vec<_> = loads
        .into_iter()
        .map(|(sessions, newest_p50, newest_p95, oldest_p95)| {
            let oldest = (newest_p50 + 520.0, oldest_p95);
            trial(sessions, latency((newest_p50, newest_p95), oldest), &[])
        })
        .collect();
    let bracket = Bracket {
        confirmed: Some(1_650),
        borderline: vec![1_700],
        first_fail: Some(1_750),
        failing_gate: Some("oldest_p95_ms".to_owned()),
        bottleneck: Some("CPU of the target (99 % of 1 vCPU)".to_owned()),
        sessions_per_vcpu: Some(1_650.0),
        conclusion: "the bracket is as narrow as asked for".to_owned(),
        ..bracket(&trials)
    };
    Find { bracket, trials }
}

/// A search in which the client ran out first.
pub(crate) fn lower_bound() -> Find {
    let lag = Doubt::SendLag {
        p999_us: 9_300.0,
        limit_us: 5_000.0,
        others: Vec::new(),
    };
    let no_quota = Doubt::NoQuota {
        vcpu: 1.0,
        why: "read-only file system".to_owned(),
    };
    let trials = vec![
        trial(
            1_000,
            latency((99.0, 141.0), (611.0, 1_120.0)),
            std::slice::from_ref(&no_quota),
        ),
        trial(
            2_000,
            latency((101.0, 150.0), (612.0, 1_130.0)),
            std::slice::from_ref(&no_quota),
        ),
        trial(
            4_000,
            latency((103.0, 171.0), (640.0, 1_180.0)),
            std::slice::from_ref(&no_quota),
        ),
        trial(
            6_000,
            latency((230.0, 620.0), (900.0, 2_050.0)),
            &[lag, no_quota],
        ),
    ];
    let bracket = Bracket {
        confirmed: Some(4_000),
        sessions_per_vcpu: Some(4_000.0),
        lower_bound_only: true,
        edge: Some(Edge {
            value: 5_210.0,
            low: 4_011.0,
            high: None,
            confidence: 0.95,
        }),
        conclusion: "the client wrote frames late at 6,000 sessions".to_owned(),
        ..bracket(&trials)
    };
    Find { bracket, trials }
}

/// A search in which no load passed and some trials had no answers. The target's name is long and contains markup, and
/// a signal ended the search.
pub(crate) fn nothing_passed() -> Find {
    let name = "ws://gateway.a-very-long-host-name-of-somebody.example:3000/ws/stt?tenant=<b>&model=\"x\"|y";
    let mut trials = vec![
        trial(8, latency((40.0, 61.0), (3_900.0, 7_800.0)), &[]),
        trial(
            64,
            latency((55.0, 96.0), (4_100.0, 8_900.0)),
            &[Doubt::NoResources],
        ),
        trial(128, Latency::default(), &[Doubt::NoResources]),
    ];
    for trial in &mut trials {
        name.clone_into(&mut trial.target.name);
        "url".clone_into(&mut trial.target.tier);
        trial.target.versions.clear();
        trial.vcpu = None;
        trial.target_resources = None;
        trial.environment.target_cpus.clear();
    }
    let bracket = Bracket {
        target: trials[0].target.clone(),
        vcpu: None,
        first_fail: Some(8),
        failing_gate: Some("oldest_p50_ms".to_owned()),
        interrupted: true,
        conclusion: "interrupted".to_owned(),
        ..bracket(&trials)
    };
    Find { bracket, trials }
}

fn bracket(trials: &[Trial]) -> Bracket {
    let summary = |(index, trial)| TrialSummary::of(trial, &format!("trial-{:03}.json", index + 1));
    Bracket {
        build: plimsoll_core::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        target: target(),
        workload: "stt".to_owned(),
        profile: "quick".to_owned(),
        slo: "stt".to_owned(),
        vcpu: Some(1.0),
        load_unit: LoadUnit::SESSIONS,
        confirmed: None,
        borderline: Vec::new(),
        first_fail: None,
        failing_gate: None,
        bottleneck: None,
        sessions_per_vcpu: None,
        lower_bound_only: false,
        interrupted: false,
        conclusion: String::new(),
        edge: None,
        evidence: Vec::new(),
        cost_curve: Vec::new(),
        escalation: None,
        baseline: None,
        goals: None,
        seed: 42,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        trials: trials.iter().enumerate().map(summary).collect(),
    }
}

/// One trial that failed in several ways, with text from outside that must not become markup.
pub(crate) fn failed_run() -> Trial {
    let mut run = trial(1_600, latency((171.0, 322.0), (1_100.0, 1_650.04)), &[]);
    run.profile = "custom".to_owned();
    run.phases = Profile {
        name: "custom".to_owned(),
        measured_s: 20.0,
        ..Profile::quick()
    };
    run.slo = "strict".to_owned();
    let ledger = &mut run.ledger;
    ledger.frames_lost = 50;
    ledger.frames_answered -= 50;
    ledger.sessions_died = 1;
    ledger.protocol_faults = 1;
    ledger.because("connection reset");
    ledger.because("not JSON: <script>|`x`\u{1b}[31m");
    run.client.faults = BTreeMap::from([("ECONNABORTED".to_owned(), 2)]);
    run.latency.newest.from_schedule.censored = 50;
    let quota = Doubt::NoQuota {
        vcpu: 1.0,
        why: "read-only file system".to_owned(),
    };
    run.caveats = vec![Caveat::from(&quota)];
    run.target.ships_bytes = Some(4_200_000);
    run.target.runtime_bytes = Some(310_000_000);
    run.target.deviations = owned(&[("close-order", "the library closes <first>")]);
    run.gates = slo().judge(&run.ledger, &run.latency);
    run.verdict = Verdict::of(&run.gates, &run.caveats);
    run
}

/// A check with cases that the target's manifest lists, and one that it should pass; one case failed, one that was disturbed, and one that passed when it was repeated.
pub(crate) fn check() -> serde_json::Value {
    serde_json::json!({
        "target": "rust-axum",
        "cases": [
            {"id": "health", "title": "GET /health", "pass": true, "expected": "200", "seen": "200"},
            {"id": "drain", "title": "SIGTERM drains", "pass": false, "expected": "close 1001", "seen": "", "skipped": "Plimsoll did not start it"},
            {"id": "cadence", "title": "flushes keep their schedule", "pass": false, "expected": "no drift over 60 ms", "seen": "drift 90 ms",
             "disturbed": "within 200 ms the gateway was kept from its core for 88 ms", "attempts": 4},
            {"id": "ping", "title": "a ping is answered", "pass": true, "expected": "a pong", "seen": "a pong", "attempts": 2},
            {"id": "size", "title": "a binary message of 639 bytes", "pass": false, "expected": "close 1003", "seen": "close 1002 | \"bad\""},
            {"id": "idle", "title": "an idle connection stays open", "level": "should", "pass": false, "expected": "open after 10 s", "seen": "closed after 5 s"},
            {"id": "order", "title": "answers keep their order", "pass": false, "expected": "1, 2, 3", "seen": "2, 1, 3", "deviation": "the library answers from a pool"},
            {"id": "twice", "title": "a field given twice is refused", "pass": true, "expected": "400", "seen": "400", "deviation": "the library took the last"},
        ],
        "passed": 3,
        "failed": 1,
        "failed_should": 1,
        "deviations": 1,
        "skipped": 1,
        "disturbed": 1,
    })
}

/// Three seconds of a trial.
pub(crate) fn seconds() -> Vec<Second> {
    (1..=3)
        .map(|at_s| Second {
            at_s,
            phase: Phase::Measured,
            sessions_open: 1_600,
            frames_sent: 80_000,
            newest_p95_ms: Some(322.5),
            ..Second::default()
        })
        .collect()
}

/// Histograms of two seconds.
pub(crate) fn intervals() -> Vec<IntervalHistograms> {
    [6.0, 7.0]
        .map(|start_s| {
            let mut set = LatencySet::new();
            set.record_ns(Series::NewestFromSchedule, 120 * NS_PER_MS);
            IntervalHistograms {
                start_s,
                duration_s: 1.0,
                set,
            }
        })
        .into()
}
