//! Trials of one test side by side.

use plimsoll_core::caveat::{Caveat, Doubt};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{
    Client, Environment, LoadUnit, Target, TargetResources, Trial, Verdict,
};
use plimsoll_document::{Block, Blocks, Detail, Named, Shown, Tell, Tellers};
use serde_json::json;

use crate::Ws;
use crate::record::{DecodeRecord, Delivered, WsRecord};

use super::table::{TestTable, tables};

/// A trial of a test, with as little as a record can have.
fn trial(unit: LoadUnit, load: u32, record: &WsRecord) -> Trial {
    serde_json::from_value(json!({
        "schema_version": 1, "verdict": Verdict::Pass, "gates": [], "caveats": [], "workload": "ws",
        "profile": "quick", "phases": Profile::quick(), "slo": "ws", "sessions": load, "load_unit": unit,
        "target": Target { name: "node-ws".to_owned(), ..Target::default() }, "vcpu": null,
        "environment": Environment::default(), "seed": 1, "started_at": "2026-01-02T03:04:05Z",
        "interrupted": false, "ledger": Ledger::default(), "latency": plimsoll_core::latency::Latency::default(),
        "client": Client::default(), "target_resources": null, "inference": null, "ws": record
    }))
    .expect("a record of a trial")
}

fn record(test: &str) -> WsRecord {
    WsRecord {
        test: test.to_owned(),
        dialect: "echo".to_owned(),
        delivered: Delivered {
            offered: 1_000,
            written: 1_000,
            read: 1_000,
            processed: None,
            written_in_all: 2_000,
        },
        ..WsRecord::default()
    }
}

/// The same rate in three formats. The server does not decode one of them.
fn formats() -> Vec<Trial> {
    let rows = [
        ("json", 20.0, true),
        ("msgpack", 15.0, true),
        ("zlib", 15.0, false),
    ];
    let row = |(format, cost_us, proven): (&str, f64, bool)| {
        let record = WsRecord {
            connections: Some(100),
            message_bytes: Some(150),
            format: Some(format.to_owned()),
            decode: Some(DecodeRecord {
                asked: 100,
                answered: if proven { 100 } else { 0 },
                proven,
            }),
            ..record("formats")
        };
        let mut trial = trial(LoadUnit::MESSAGES_PER_SECOND, 10_000, &record);
        trial.target_resources = Some(TargetResources {
            cpu_us_per_session_second: Some(cost_us),
            ..TargetResources::default()
        });
        let opaque = Doubt::FormatOpaque {
            format: format.to_owned(),
        };
        if !proven {
            trial.caveats = vec![Caveat::from(&opaque)];
        }
        trial
    };
    rows.map(row).into()
}

/// The cells of a matrix, not in display order. The largest does not pass.
fn matrix() -> Vec<Trial> {
    let cell = |bytes: u64| {
        let mut record = record("matrix");
        record.message_bytes = Some(bytes);
        record.delivered.processed = Some(record.delivered.written_in_all);
        let mut trial = trial(LoadUnit::MESSAGES_PER_SECOND, 10_000, &record);
        if bytes > 60_000 {
            trial.verdict = Verdict::Fail;
        }
        trial
    };
    [64, 65_536, 1_024].map(cell).into()
}

fn named(trials: &[Trial]) -> Vec<Named<'_>> {
    let stem = "trial-001";
    trials.iter().map(|trial| Named { stem, trial }).collect()
}

fn table_of(trials: &[Trial]) -> TestTable {
    let mut tables = tables(&named(trials));
    assert_eq!(tables.len(), 1);
    tables.remove(0)
}

/// The column with that name.
#[track_caller]
fn column<'a>(table: &'a TestTable, name: &str) -> Vec<&'a str> {
    let at = table.columns.iter().position(|column| *column == name);
    let at = at.unwrap_or_else(|| panic!("no {name} in {:?}", table.columns));
    table.rows.iter().map(|row| row[at].as_str()).collect()
}

#[test]
fn the_cells_of_a_matrix_ascend_and_have_their_verdicts() {
    let table = table_of(&matrix());
    assert_eq!(table.title, "Test matrix of node-ws, dialect echo");
    assert_eq!(column(&table, ">message bytes"), ["64", "1,024", "65,536"]);
    assert_eq!(column(&table, ">processed"), ["100 %"; 3]);
    assert_eq!(column(&table, "verdict"), ["pass", "pass", "fail"]);
    assert_eq!(table.brief.len(), table.columns.len());
}

#[test]
fn a_format_that_is_not_decoded_is_opaque_and_costs_are_compared_with_json() {
    let table = table_of(&formats());
    assert_eq!(column(&table, "format"), ["json", "msgpack", "zlib"]);
    let decoded = column(&table, "decoded");
    assert_eq!(decoded, ["decoded", "decoded", "opaque"]);
    assert_eq!(column(&table, ">CPU vs JSON"), ["100 %", "75 %", "75 %"]);
    assert_eq!(column(&table, "against it"), ["", "", "format-opaque"]);
    assert_eq!(column(&table, ">processed"), ["unknown"; 3]);
}

#[test]
fn every_test_has_its_columns_and_every_row_a_cell_for_each() {
    for (test, unit, own) in [
        ("storm", LoadUnit::CONNECTIONS_PER_SECOND, ">failed"),
        ("ping", LoadUnit::CONNECTIONS, ">unanswered"),
        ("throughput", LoadUnit::MESSAGES_PER_SECOND, ">MB/s"),
        ("matrix", LoadUnit::MESSAGES_PER_SECOND, ">message bytes"),
        ("formats", LoadUnit::MESSAGES_PER_SECOND, "decoded"),
        ("hold", LoadUnit::CONNECTIONS, ">survival"),
        ("limit", LoadUnit::CONNECTIONS, ">RSS/connection"),
        ("fanout", LoadUnit::RECEIVERS, ">lost"),
    ] {
        let table = table_of(&[trial(unit, 100, &record(test))]);
        assert_eq!(table.rows[0].len(), table.columns.len(), "{test}");
        for name in [
            own,
            ">offered",
            ">p99",
            ">client CPU",
            "verdict",
            "against it",
        ] {
            assert_eq!(column(&table, name).len(), 1);
        }
    }
}

#[test]
fn trials_of_two_tests_are_two_tables_and_those_of_other_workloads_are_in_none() {
    let mut trials = formats();
    trials.push(trial(LoadUnit::CONNECTIONS, 10, &record("ping")));
    let mut other = trial(LoadUnit::CONNECTIONS, 10, &record("ping"));
    "another".clone_into(&mut other.workload);
    trials.push(other);
    let mut blocks = Blocks::default();
    Tellers::new(&[&Ws]).side_by_side(&mut blocks, &named(&trials));
    let shown = Shown {
        detail: Detail::Full,
        has_figure: &|_| false,
        timelines: false,
    };
    let rows = blocks.shown(shown).filter_map(|block| match block {
        Block::Table(table) => Some(table.rows.len()),
        _ => None,
    });
    assert_eq!(rows.collect::<Vec<_>>(), [3, 1]);
}

#[test]
fn the_rows_of_one_load_have_names_of_their_own() {
    let beside = |trials: Vec<Trial>| Ws.beside_the_load(&trials[1]);
    assert_eq!(beside(matrix()), " of 65,536 B");
    assert_eq!(beside(formats()), " in msgpack");
    let ping = trial(LoadUnit::CONNECTIONS, 10, &record("ping"));
    assert_eq!(Ws.beside_the_load(&ping), "");
}
