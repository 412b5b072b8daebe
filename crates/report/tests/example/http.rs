//! Trials of workload `http`: one with everything that it can say, and a series on several numbers of connections.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::record::{LoadUnit, MemoryAt, TargetMemory, Trial, Verdict};
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_workload_http::record::{
    HttpClosedLoop, HttpConnections, HttpOutcome, HttpRecord, SECTION,
};
use serde_json::json;

use super::latency;

/// A trial at a rate on so many connections whose verdict follows from its latencies, as in a real trial: newest p50 and
/// p95 in ms.
pub(crate) fn trial(rate: u32, connections: u64, newest: (f64, f64)) -> Trial {
    // An answer names one request, which is the newest and the oldest.
    let mut trial = super::trial(rate, latency(newest, newest), &[]);
    "rust-hyper".clone_into(&mut trial.target.name);
    "http".clone_into(&mut trial.workload);
    trial.load_unit = LoadUnit::named("requests_per_second").unwrap();
    trial.companion = None;
    trial.start_ms = Some(41.7);
    trial.client.cpu_share = 0.41;
    trial.latency.newest.from_write = trial.latency.newest.from_schedule.clone();
    trial.latency.oldest.from_write = trial.latency.oldest.from_schedule.clone();
    if let Some(used) = &mut trial.target_resources {
        used.cpu_us_per_session_second = Some(21.4);
        used.core_us_per_session_second = Some(24.0);
        let at = |rss_bytes, pss_bytes| {
            Some(MemoryAt {
                rss_bytes,
                pss_bytes,
            })
        };
        used.memory = Some(TargetMemory {
            idle: at(4_300_000, Some(2_900_000)),
            loaded: at(9_100_000, Some(7_600_000)),
            // Another user's process may not be looked into.
            after: at(8_800_000, None),
        });
    }
    let parameters = json!({
        "test": "rate", "protocol": "h1", "connections": connections, "headers": "minimal",
        "dispatch": "pool", "body_bytes": 64
    });
    trial.parameters = serde_json::from_value(parameters).unwrap();
    // Ten seconds at this rate.
    let requests = u64::from(rate) * 10;
    let ledger = &mut trial.ledger;
    ledger.frames_due = requests;
    ledger.frames_sent = requests;
    ledger.frames_answered = requests;
    ledger.partials = requests;
    ledger.frames_sent_in_all = 2 * requests;
    ledger.frames_answered_in_all = 2 * requests;
    ledger.content_checked = 2 * requests;
    ledger.sessions_started = connections;
    let http = HttpRecord {
        request: "GET /bytes/64".to_owned(),
        offered_per_s: rate.into(),
        achieved_per_s: rate.into(),
        completed_per_s: rate.into(),
        connections: HttpConnections {
            opened: connections,
            ..HttpConnections::default()
        },
        bytes_per_answer: Some(183.0),
        ..HttpRecord::default()
    };
    set(&mut trial, &http);
    judge(&mut trial);
    trial
}

fn judge(trial: &mut Trial) {
    let gates = [
        (Metric::Newest(Percentile::P99), 10.0),
        (Metric::ErrorRate, 0.001),
        (Metric::ContentWrong, 0.0),
        (Metric::Shortfall, 0.01),
    ];
    let slo = Slo::of("http-strict", &gates);
    trial.gates = slo.judge(&trial.ledger, &trial.latency);
    trial.slo = slo.name;
    trial.verdict = Verdict::of(&trial.gates, &trial.caveats);
}

pub(crate) fn record(trial: &Trial) -> HttpRecord {
    trial.sections.get(SECTION).unwrap()
}

pub(crate) fn set(trial: &mut Trial, http: &HttpRecord) {
    trial.sections.set(SECTION, http);
}

/// Answers in less than a millisecond; some failed, some waited for a connection; and a closed loop beside.
pub(crate) fn rate() -> Trial {
    let mut trial = trial(20_000, 100, (0.085, 1.27));
    let ledger = &mut trial.ledger;
    ledger.frames_answered -= 250;
    ledger.partials -= 250;
    ledger.frames_errored = 200;
    ledger.frames_lost = 50;
    ledger.errors = 250;
    ledger.sessions_started = 151;
    ledger.sessions_failed = 2;
    let outcome = |name: &str, count| HttpOutcome {
        name: name.to_owned(),
        count,
    };
    let mut http = record(&trial);
    http.completed_per_s -= 25.0;
    http.found_all_busy = 1_200;
    http.outcomes = vec![outcome("http_status 503", 200), outcome("timeout", 50)];
    http.connections = HttpConnections {
        opened: 151,
        failed: 2,
        closed_announced: 40,
        closed_idle: 8,
        asked_again: 3,
        left_open: 0,
    };
    http.closed_loop = Some(HttpClosedLoop {
        completed_per_s: 61_200.0,
        p50_ms: Some(1.61),
        p99_ms: Some(2.94),
        max_ms: Some(212.0),
    });
    set(&mut trial, &http);
    trial.target.variant = Some("tuned".to_owned());
    let settings = ["one listening socket per worker", "no limit on requests"];
    trial.target.settings = settings.map(str::to_owned).into();
    trial.caveats = vec![Caveat {
        id: "content-unchecked".to_owned(),
        blocking: false,
        text: "status, length and framing of the answers were checked, but not their bodies"
            .to_owned(),
    }];
    judge(&mut trial);
    trial
}

/// The same rate on 10, 100 and 1,000 connections, not in display order. On the most, it does not pass.
pub(crate) fn connections() -> Vec<Trial> {
    let rows = [
        (100, (0.085, 1.27)),
        (1_000, (0.97, 31.0)),
        (10, (0.079, 1.1)),
    ];
    rows.map(|(connections, newest)| trial(10_000, connections, newest))
        .into()
}
