//! Trials of workload `ws`: one with everything that it can say, a matrix, formats, and a search by arrivals per
//! second.

use plimsoll_core::caveat::{Caveat, Doubt};
use plimsoll_core::record::{
    Bracket, CostPoint, Edge, LoadClass, LoadEvidence, LoadUnit, Trial, TrialSummary, Verdict,
};
use plimsoll_document::Tell as _;
use plimsoll_workload_ws::record::{
    ClosedLoopRecord, DecodeRecord, Delivered, SECTION, WsOutcome, WsRecord,
};
use plimsoll_workload_ws::{Test, Ws};

use super::{Find, bracket, latency};

/// A trial of a test whose verdict follows from its latencies, as in a real trial: newest p50 and p95 in ms.
pub(crate) fn trial(test: &str, unit: LoadUnit, load: u32, newest: (f64, f64)) -> Trial {
    let oldest = (newest.0 + 50.0, newest.1 + 60.0);
    let mut trial = super::trial(load, latency(newest, oldest), &[]);
    "node-ws".clone_into(&mut trial.target.name);
    "ws".clone_into(&mut trial.workload);
    trial.load_unit = unit;
    trial.companion = None;
    trial.client.cpu_share = 0.41;
    let ledger = &mut trial.ledger;
    if unit.is_rate() {
        // Ten seconds at this rate.
        let frames = u64::from(load) * 10;
        ledger.frames_due = frames;
        ledger.frames_sent = frames;
        ledger.frames_answered = frames;
        ledger.frames_sent_in_all = 2 * frames;
        ledger.sessions_started = 100;
    }
    let offered = ledger.frames_due;
    ledger.frames_answered_in_all = 2 * offered;
    let ws = WsRecord {
        test: test.to_owned(),
        dialect: "wse".to_owned(),
        delivered: Delivered {
            offered,
            written: offered,
            read: offered,
            processed: None,
            written_in_all: 2 * offered,
        },
        ..WsRecord::default()
    };
    set(&mut trial, &ws);
    judge(&mut trial, &[]);
    trial
}

fn judge(trial: &mut Trial, doubts: &[Doubt]) {
    let test = Test::by_name(&record(trial).test).unwrap();
    let slo = test.slo();
    trial.caveats = doubts.iter().map(Caveat::from).collect();
    trial.gates = slo.judge(&trial.ledger, &trial.latency);
    trial.slo = slo.name;
    trial.verdict = Verdict::of(&trial.gates, &trial.caveats);
}

/// What the trial says about workload `ws`.
pub(crate) fn record(trial: &Trial) -> WsRecord {
    trial.sections.get(SECTION).unwrap()
}

pub(crate) fn set(trial: &mut Trial, ws: &WsRecord) {
    trial.sections.set(SECTION, ws);
    trial.parameters = Ws.earlier_parameters(trial);
}

/// Messages at a rate, read but not processed, with a closed loop beside it.
pub(crate) fn throughput() -> Trial {
    let mut trial = trial(
        "throughput",
        LoadUnit::MESSAGES_PER_SECOND,
        20_000,
        (0.31, 1.94),
    );
    let mut ws = record(&trial);
    ws.connections = Some(100);
    ws.message_bytes = Some(175);
    ws.format = Some("json".to_owned());
    ws.delivered.read -= 10;
    ws.delivered.processed = Some(0);
    ws.decode = Some(DecodeRecord {
        asked: 100,
        answered: 100,
        proven: true,
    });
    ws.closed_loop = Some(ClosedLoopRecord {
        pings_answered: 4_997,
        pings_given_up: 3,
        p50_ms: Some(0.12),
        p95_ms: Some(0.2),
        p99_ms: Some(0.26),
        max_ms: Some(31.0),
        messages_per_second: Some(412_000.0),
    });
    let read = ws.delivered.read;
    set(&mut trial, &ws);
    trial.ledger.frames_answered = read;
    trial.ledger.frames_lost = 10;
    let unprocessed = Doubt::Unprocessed {
        read: 2 * read,
        processed: 0,
    };
    judge(&mut trial, &[unprocessed]);
    trial
}

/// One trial for each of three sizes. The largest does not pass.
pub(crate) fn matrix() -> Vec<Trial> {
    let cell = |(bytes, p95): (u64, f64)| {
        let newest = (p95 / 4.0, p95);
        let mut trial = trial("matrix", LoadUnit::MESSAGES_PER_SECOND, 10_000, newest);
        let mut ws = record(&trial);
        "echo".clone_into(&mut ws.dialect);
        ws.connections = Some(100);
        ws.message_bytes = Some(bytes);
        ws.delivered.processed = Some(ws.delivered.written_in_all);
        set(&mut trial, &ws);
        trial
    };
    // Not in display order.
    [(64, 1.2), (65_536, 410.0), (1_024, 1.5)].map(cell).into()
}

/// The same rate in three formats. The server does not decode one of them.
pub(crate) fn formats() -> Vec<Trial> {
    let cell = |(format, bytes, proven): (&str, u64, bool)| {
        let mut trial = trial("formats", LoadUnit::MESSAGES_PER_SECOND, 10_000, (0.3, 1.1));
        let mut ws = record(&trial);
        ws.connections = Some(100);
        ws.message_bytes = Some(bytes);
        ws.format = Some(format.to_owned());
        ws.decode = Some(DecodeRecord {
            asked: 100,
            answered: if proven { 100 } else { 0 },
            proven,
        });
        set(&mut trial, &ws);
        if let Some(used) = &mut trial.target_resources {
            let cost = if format == "json" { 20.0 } else { 15.0 };
            used.cpu_us_per_session_second = Some(cost);
        }
        let opaque = Doubt::FormatOpaque {
            format: format.to_owned(),
        };
        judge(
            &mut trial,
            if proven {
                &[]
            } else {
                std::slice::from_ref(&opaque)
            },
        );
        trial
    };
    [
        ("json", 175, true),
        ("msgpack", 145, true),
        ("zlib", 152, false),
    ]
    .map(cell)
    .into()
}

/// A search by arrivals per second, with every kind of outcome at the loads that fail.
pub(crate) fn storm() -> Find {
    let at = |(load, p95, refused): (u32, f64, u64)| {
        let mut trial = trial(
            "storm",
            LoadUnit::CONNECTIONS_PER_SECOND,
            load,
            (p95 / 5.0, p95),
        );
        let outcome = |name: &str, count: u64| WsOutcome {
            name: name.to_owned(),
            count,
        };
        if refused > 0 {
            let mut ws = record(&trial);
            ws.delivered.read -= refused + 2;
            ws.outcomes = vec![
                outcome("tcp_refused", refused),
                outcome("http_status 503", 1),
                outcome("local_<EMFILE>|", 1),
            ];
            set(&mut trial, &ws);
            trial.ledger.frames_answered -= refused + 2;
            trial.ledger.frames_errored = refused + 2;
            judge(&mut trial, &[]);
        }
        trial
    };
    let loads = [
        (200, 4.0, 0),
        (400, 6.0, 0),
        (800, 610.0, 900),
        (600, 60.0, 0),
        (700, 330.0, 12),
        (600, 62.0, 0),
    ];
    let trials: Vec<Trial> = loads.map(at).into();
    let bracket = bracket_of_storm(&trials);
    Find { bracket, trials }
}

fn bracket_of_storm(trials: &[Trial]) -> Bracket {
    let load = |sessions, passed, failed, class| LoadEvidence {
        sessions,
        passed,
        failed,
        short_passed: 0,
        short_failed: 0,
        invalid: 0,
        class,
    };
    let summary = |(index, trial)| TrialSummary::of(trial, &format!("trial-{:03}.json", index + 1));
    Bracket {
        target: trials[0].target.clone(),
        workload: "ws".to_owned(),
        slo: trials[0].slo.clone(),
        load_unit: LoadUnit::CONNECTIONS_PER_SECOND,
        confirmed: Some(600),
        first_fail: Some(700),
        failing_gate: Some("newest_p99_ms".to_owned()),
        sessions_per_vcpu: Some(600.0),
        conclusion: "the bracket is as narrow as asked for".to_owned(),
        edge: Some(Edge {
            value: 651.0,
            low: 602.0,
            high: Some(698.0),
            confidence: 0.95,
        }),
        evidence: vec![
            load(600, 2, 0, LoadClass::Passing),
            load(700, 0, 1, LoadClass::Failing),
        ],
        cost_curve: [(200, 640.0), (600, 612.0)]
            .map(|(sessions, cost)| CostPoint {
                sessions,
                cpu_us_per_session_second: cost,
                core_us_per_session_second: None,
                low: cost - 9.0,
                high: cost + 14.0,
                trials: 2,
                rss_bytes_per_session: None,
            })
            .to_vec(),
        trials: trials.iter().enumerate().map(summary).collect(),
        ..bracket(trials)
    }
}
