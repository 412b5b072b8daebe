//! What a trial's record becomes in words, and trials of one test side by side.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Client, Environment, Target, Trial, Verdict};
use plimsoll_document::{Block, Blocks, Detail, Named, Shown, Span, Table, Tell, Tellers, Text};
use serde_json::{Value, json};

use crate::Http;
use crate::plan::REQUESTS_PER_SECOND;
use crate::record::{HttpClosedLoop, HttpConnections, HttpOutcome, HttpRecord};

use super::{facts, table};

/// A trial at a load, with as little as a record can have.
fn trial(load: u32, record: &HttpRecord, parameters: &Value) -> Trial {
    serde_json::from_value(json!({
        "schema_version": 1, "verdict": Verdict::Pass, "gates": [], "caveats": [], "workload": "http",
        "profile": "quick", "phases": Profile::quick(), "slo": "http-strict", "sessions": load,
        "load_unit": REQUESTS_PER_SECOND, "parameters": parameters,
        "target": Target { name: "nginx".to_owned(), ..Target::default() }, "vcpu": null,
        "environment": Environment::default(), "seed": 1, "started_at": "2026-01-02T03:04:05Z",
        "interrupted": false, "ledger": Ledger { frames_due: 10_000, frames_answered: 9_900, frames_lost: 100, ..Ledger::default() },
        "latency": plimsoll_core::latency::Latency::default(),
        "client": Client::default(), "target_resources": null, "inference": null, "http": record
    }))
    .expect("a record of a trial")
}

fn record() -> HttpRecord {
    HttpRecord {
        request: "GET /".to_owned(),
        offered_per_s: 1_000.0,
        achieved_per_s: 1_000.0,
        completed_per_s: 999.999,
        ..HttpRecord::default()
    }
}

fn parameters(more: &Value) -> Value {
    let mut all = json!({
        "test": "rate", "protocol": "h1", "connections": 100, "headers": "minimal", "dispatch": "pool",
        "body_bytes": 2
    });
    let more = more.as_object().into_iter().flatten();
    for (name, value) in more {
        all[name] = value.clone();
    }
    all
}

fn usual() -> Trial {
    trial(1_000, &record(), &parameters(&json!({})))
}

/// The cells of a series of sizes, not in display order.
fn sizes() -> Vec<Trial> {
    let cell = |bytes: u64| {
        let record = HttpRecord {
            request: format!("GET /bytes/{bytes}"),
            ..record()
        };
        trial(1_000, &record, &parameters(&json!({ "body_bytes": bytes })))
    };
    [64, 65_536, 1_024].map(cell).into()
}

fn named(trials: &[Trial]) -> Vec<Named<'_>> {
    let stem = "trial-001";
    trials.iter().map(|trial| Named { stem, trial }).collect()
}

fn table_of(trials: &[Trial]) -> Table {
    let named = named(trials);
    let groups = table::groups(&named);
    assert_eq!(groups.len(), 1);
    table::table(&groups[0])
}

/// A text without its marks.
fn plain(text: &Text) -> String {
    text.0.iter().map(Span::text).collect()
}

/// The column with that name, and whether a terminal shows it.
#[track_caller]
fn column(table: &Table, name: &str) -> (Vec<String>, bool) {
    let numbers = name.starts_with('>');
    let at = table.columns.iter().position(|column| {
        column.name == name.trim_start_matches('>') && column.is_number == numbers
    });
    let at = at.unwrap_or_else(|| panic!("no {name} in {:?}", table.columns));
    let cells = table.rows.iter().map(|row| plain(&row[at]));
    (cells.collect(), table.columns[at].detail != Detail::Full)
}

/// All blocks that several trials make, for a page.
fn shown(trials: &[Trial]) -> Vec<Block> {
    let mut blocks = Blocks::default();
    Tellers::new(&[&Http]).side_by_side(&mut blocks, &named(trials));
    let by = Shown {
        detail: Detail::Full,
        has_figure: &|_| false,
        timelines: false,
    };
    blocks.shown(by).cloned().collect()
}

#[test]
fn what_was_not_answered_never_rounds_away() {
    let [offered, achieved, completed] = facts::rates(&record());
    assert_eq!(offered, ["offered", "1,000", ""]);
    assert_eq!(achieved, ["achieved", "1,000", "100 %"]);
    assert_eq!(completed[2], "99.999 %");
    assert_eq!(
        facts::rates_in_a_line(&record()),
        "1,000 offered, 1,000 achieved (100 %), 1,000 completed (99.999 %) per second"
    );
    let nothing = HttpRecord::default();
    assert_eq!(facts::rates(&nothing)[2][2], "–");
}

#[test]
fn what_was_asked_is_one_line() {
    let conditions = |more: &Value, request: &str| {
        let record = HttpRecord {
            request: request.to_owned(),
            ..record()
        };
        facts::conditions(&trial(1_000, &record, &parameters(more)), &record)
    };
    assert_eq!(conditions(&json!({}), "GET /"), "GET / on 100 connections");
    let many = json!({ "headers": "browser", "poisson": true, "dispatch": "fixed", "warm_up_rate": 50, "connections": 1 });
    assert_eq!(
        conditions(&many, "GET /a\nb"),
        "GET /a b on 1 connection, a browser's header fields, request k on connection k mod N, Poisson arrivals, 50 requests a second in the warm-up"
    );
    assert_eq!(
        conditions(&json!({ "protocol": "h2c", "streams": 10 }), "GET /"),
        "GET / on 100 connections of h2c with 10 streams at once"
    );
    assert_eq!(
        conditions(&json!({ "test": "connect" }), "GET /"),
        "GET /, a connection for each, at most 100 connections at once"
    );
    assert_eq!(
        conditions(&json!({ "test": "post", "body_bytes": 1_024 }), "POST /sum"),
        "POST /sum on 100 connections, bodies of 1,024 B"
    );
    assert_eq!(
        Http.beside_the_load(&usual()),
        " of GET / on 100 connections"
    );
}

#[test]
fn outcomes_and_connections_are_told_with_what_happened() {
    let outcome = |name: &str, count| HttpOutcome {
        name: name.to_owned(),
        count,
    };
    let mut record = record();
    assert_eq!(facts::outcomes_in_a_line(&record), None);
    assert_eq!(facts::all_busy_in_a_line(&usual(), &record), None);
    record.outcomes = vec![outcome("timeout", 3_000), outcome("a\nb", 1)];
    let told = facts::outcomes_in_a_line(&record);
    assert_eq!(told.as_deref(), Some("3,000 × timeout, 1 × a b"));
    record.found_all_busy = 2_500;
    let told = facts::all_busy_in_a_line(&usual(), &record);
    let expected = "2,500 requests (25 %) waited in the client for a free connection";
    assert_eq!(told.as_deref(), Some(expected));
    record.connections = HttpConnections {
        opened: 101,
        closed_idle: 1,
        asked_again: 1,
        ..HttpConnections::default()
    };
    record.bytes_per_answer = Some(141.0);
    assert_eq!(
        facts::connections_in_a_line(&record),
        "101 opened, 1 closed while idle, 1 request asked once more; 141 B an answer"
    );
    let rows = facts::connections(&usual(), &record);
    assert_eq!(rows[0].1, "2,500 requests (25 %)");
    assert_eq!(rows.last().expect("rows").1, "141 B");
}

#[test]
fn the_closed_loop_stands_beside_and_decides_nothing() {
    assert_eq!(facts::closed_loop(&usual(), &record()), None);
    let mut record = record();
    record.closed_loop = Some(HttpClosedLoop {
        completed_per_s: 52_300.0,
        p50_ms: Some(1.9),
        p99_ms: Some(2.4),
        max_ms: None,
    });
    let mut trial = trial(1_000, &record, &parameters(&json!({ "closed_loop": true })));
    trial.latency.newest.from_schedule.p50_ms = Some(0.085);
    let rows = facts::closed_loop(&trial, &record).expect("a closed loop");
    assert_eq!(rows[0], ["answers per second", "1,000", "52,300"]);
    assert_eq!(rows[1], ["p50 in ms", "0.085", "1.9"]);
    assert_eq!(rows[3], ["max in ms", "–", "–"]);
    let lines = Http.in_lines(&trial);
    let line = lines.last().expect("lines");
    assert_eq!(line.term, "closed loop");
    let told = plain(&line.value);
    assert!(
        told.contains("closed loop, as wrk would say; only for comparison"),
        "{told}"
    );
}

#[test]
fn the_rows_of_a_series_ascend_and_show_what_differs() {
    let table = table_of(&sizes());
    assert_eq!(table.caption, "Test rate of nginx, h1 on 100 connections");
    let requests = ["GET /bytes/64", "GET /bytes/1024", "GET /bytes/65536"];
    assert_eq!(
        column(&table, "request"),
        (requests.map(str::to_owned).into(), true)
    );
    let (connections, brief) = column(&table, ">connections");
    assert_eq!((connections[0].as_str(), brief), ("100", false));
    assert_eq!(column(&table, ">shortfall").0, ["1 %"; 3]);
    assert_eq!(column(&table, "against it").0, [""; 3]);

    let on = |number: u32| {
        trial(
            1_000,
            &record(),
            &parameters(&json!({ "connections": number })),
        )
    };
    let table = table_of(&[1_000, 10].map(on));
    let connections = ["10", "1,000"].map(str::to_owned).to_vec();
    assert_eq!(column(&table, ">connections"), (connections, true));
    assert_eq!(table.caption, "Test rate of nginx, h1: GET /");
    assert!(!column(&table, "request").1);
}

#[test]
fn the_peak_is_of_a_valid_trial_whatever_its_gates_say() {
    let at = |load: u32, verdict: Verdict| {
        let record = HttpRecord {
            offered_per_s: load.into(),
            completed_per_s: f64::from(load) * 0.9,
            ..record()
        };
        let mut trial = trial(load, &record, &parameters(&json!({})));
        trial.latency.newest.from_schedule.p99_ms = Some(30.26);
        trial.verdict = verdict;
        trial
    };
    let peak = |trials: &[Trial]| {
        let blocks = shown(trials).into_iter();
        let told = blocks.filter_map(|block| match block {
            Block::Paragraph(text) => Some(plain(&text)),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let trials = [
        at(4_000, Verdict::Invalid),
        at(1_000, Verdict::Pass),
        at(2_000, Verdict::Fail),
    ];
    let told = peak(&trials);
    let expected = "Peak: 1,800 completed per second, the most of a valid trial whatever its gates say, when 2,000 were offered: p99 30.3 ms, 100 requests failed or lost, verdict fail.";
    assert_eq!(told, [expected]);
    // Of a single load, it says nothing new.
    assert!(peak(&sizes()).is_empty());
    assert!(peak(&trials[1..2]).is_empty());
    assert!(peak(&[at(1_000, Verdict::Invalid), at(2_000, Verdict::Invalid)]).is_empty());
}

#[test]
fn what_stands_against_a_trial_is_in_its_row() {
    let mut unchecked = usual();
    unchecked.caveats = vec![Caveat {
        id: "content-unchecked".to_owned(),
        blocking: false,
        text: String::new(),
    }];
    let table = table_of(&[unchecked]);
    assert_eq!(column(&table, "against it").0, ["content-unchecked"]);
    assert_eq!(column(&table, "verdict").0, ["pass"]);
}

#[test]
fn two_tests_are_two_tables_and_trials_of_other_workloads_are_in_none() {
    let mut trials = sizes();
    trials.push(trial(
        1_000,
        &record(),
        &parameters(&json!({ "test": "json" })),
    ));
    let mut other = usual();
    "another".clone_into(&mut other.workload);
    trials.push(other);
    let blocks = shown(&trials).into_iter();
    let rows = blocks.filter_map(|block| match block {
        Block::Table(table) => Some(table.rows.len()),
        _ => None,
    });
    assert_eq!(rows.collect::<Vec<_>>(), [3, 1]);
}

/// A command repeats a trial with the flags of its test, in the order of the help.
#[test]
fn a_trial_is_repeated_with_the_flags_of_its_test() {
    let trial = trial(
        1_000,
        &record(),
        &parameters(&json!({ "poisson": true, "closed_loop": true, "streams": 10 })),
    );
    let names = Http.repeated_with(&trial.parameters, true);
    // Streams are for HTTP/2.
    assert_eq!(
        names,
        [
            "test",
            "protocol",
            "connections",
            "body_bytes",
            "headers",
            "dispatch",
            "poisson",
            "closed_loop"
        ]
    );
}

#[test]
fn every_text_of_a_section_is_there() {
    let mut record = record();
    record.closed_loop = Some(HttpClosedLoop::default());
    record.outcomes = vec![HttpOutcome {
        name: "timeout".to_owned(),
        count: 1,
    }];
    let trial = trial(1_000, &record, &parameters(&json!({})));
    let section = Http.trial(&trial).expect("a section");
    let by = Shown {
        detail: Detail::Both,
        has_figure: &|_| false,
        timelines: false,
    };
    let hooks = section.blocks.shown(by).filter_map(|block| match block {
        Block::Table(table) => Some(table.hook),
        _ => None,
    });
    let hooks: Vec<_> = hooks.collect();
    assert_eq!(hooks, ["rates", "outcomes", "connections", "closed-loop"]);
    let names: Vec<_> = Http
        .properties(&trial)
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(names, ["request", "rates"]);
}
