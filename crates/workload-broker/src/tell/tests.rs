//! What a trial's record becomes in words, and trials of one test side by side.

use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Client, Environment, LoadUnit, Sections, Target, Trial, Verdict};
use plimsoll_document::{Blocks, Named, Span, Tell, Text};
use serde_json::json;

use crate::Broker;
use crate::guarantee::{Confirm, Guarantee, Kept, Times};
use crate::marks::{Delivery, Tally};
use crate::record::{BrokerRecord, SECTION};
use crate::word::{Judged, Word};
use crate::writer::Waits;

use super::{facts, repeats as by_load, table};

fn record() -> BrokerRecord {
    BrokerRecord {
        guarantee: Some(Guarantee {
            times: Times::AtLeastOnce,
            confirm: Confirm::Disk,
            deliver: Kept::Disk,
        }),
        writers: 2,
        readers: 2,
        offered_per_s: 1_000.0,
        published_per_s: 1_000.0,
        confirmed_per_s: 990.0,
        delivered_per_s: Some(800.0),
        delivered_per_reader_per_s: None,
        messages: Tally {
            offered: 5_000,
            published: 5_000,
            confirmed: 4_990,
            delivery: Some(Delivery {
                in_window: 4_000,
                drained: 993,
                missing: 7,
                lost: 5,
                ..Delivery::default()
            }),
            ..Tally::default()
        },
        waits: Waits {
            window_messages: 10,
            window_ns: 20_000_000,
            ..Waits::default()
        },
        backlog_slope: None,
        backlog: vec![0, 200, 7],
        depth_at_end: Some(1),
        storage: None,
        written_per_payload_byte: Some(1.08),
        flushes_per_1000: Some(250.0),
        judged: Judged {
            word: Word::Lost,
            invalid: false,
            storage_bound: Some(true),
            untried: Vec::new(),
        },
        closed_loop: None,
        faults: Vec::new(),
        compared: 78,
        replay: None,
    }
}

fn trial(load: u32, record: &BrokerRecord) -> Trial {
    serde_json::from_value(json!({
        "schema_version": 1, "verdict": Verdict::Fail, "gates": [], "caveats": [], "workload": "broker",
        "profile": "quick", "phases": Profile::quick(), "slo": "broker", "sessions": load,
        "load_unit": LoadUnit::MESSAGES_PER_SECOND,
        "parameters": { "test": "steady", "level": "durable", "message_bytes": 1_024, "confirm": 1_024 },
        "target": Target { name: "nats".to_owned(), ..Target::default() }, "vcpu": null,
        "environment": Environment::default(), "seed": 1, "started_at": "2026-01-02T03:04:05Z",
        "interrupted": false, "ledger": Ledger::default(),
        "latency": plimsoll_core::latency::Latency::default(),
        "client": Client::default(), "target_resources": null, "inference": null, "broker": record
    }))
    .expect("a record of a trial")
}

#[test]
fn a_trial_says_what_was_promised_and_what_became_of_the_messages() {
    let trial = trial(1_000, &record());
    let lines = Broker.in_lines(&trial);
    let told: Vec<String> = lines.iter().map(|fact| format!("{fact:?}")).collect();
    let told = told.join("\n");
    for text in [
        "durable: at least once, confirmed when on disk",
        "of 1,024 B from 2 writers to 2 readers, at most 1,024 of a writer unconfirmed",
        "1,000 offered, 1,000 published (100 %), 990 confirmed (99 %), 800 delivered (80 %) per second",
        "993 drained, 7 missing, 5 of them lost, 0 duplicated, 0 reordered",
        "the broker holds 1 message at the end",
        "lost, storage bound",
    ] {
        assert!(told.contains(text), "{text} in {told}");
    }
    assert!(Broker.trial(&trial).is_some());
}

#[test]
fn waits_say_how_many_and_how_long() {
    let rows = facts::backlog(&record());
    assert_eq!(rows[0].1, "10 messages, 2 ms on average");
    assert_eq!(rows[1].1, "none");
    assert_eq!(rows[3].1, "7");
}

#[test]
fn a_durability_on_tmpfs_is_none() {
    let mut trial = trial(1_000, &record());
    assert!(!facts::guarantee(&trial, &record()).contains("tmpfs"));
    trial.environment.data_file_system = Some("tmpfs".to_owned());
    assert!(facts::guarantee(&trial, &record()).ends_with("on tmpfs: not a durability number"));
}

#[test]
fn trials_of_one_test_stand_in_one_table() {
    let trials = [2_000, 1_000].map(|load| trial(load, &record()));
    let named: Vec<Named<'_>> = trials
        .iter()
        .map(|trial| Named {
            stem: "trial-001",
            trial,
        })
        .collect();
    let groups = table::groups(&named);
    assert_eq!(groups.len(), 1);
    let table = table::table(&groups[0]);
    assert_eq!(table.caption, "Test steady of nats, durable");
    assert_eq!(table.rows.len(), 2);
    let mut blocks = Blocks::default();
    Broker.side_by_side(&mut blocks, &named);
}

/// A trial that is clean, with this p99 of delivery.
fn clean(load: u32, deliver_p99_ms: f64) -> Trial {
    let mut record = record();
    record.judged.word = Word::Clean;
    record.judged.storage_bound = None;
    record.delivered_per_s = Some(f64::from(load));
    let mut trial = trial(load, &record);
    trial.verdict = Verdict::Pass;
    trial.latency.newest.from_schedule.p99_ms = Some(deliver_p99_ms);
    trial
}

/// The table of these trials, one row for each load.
fn repeats(trials: &[Trial]) -> Option<Vec<Vec<String>>> {
    let named: Vec<Named<'_>> = trials
        .iter()
        .map(|trial| Named {
            stem: "trial-001",
            trial,
        })
        .collect();
    let groups = table::groups(&named);
    let table = by_load::table(&groups[0])?;
    let plain = |cell: &Text| match cell.0.as_slice() {
        [Span::Plain(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let cells = |row: &Vec<Text>| row.iter().map(plain).collect();
    Some(table.rows.iter().map(cells).collect())
}

#[test]
fn repeats_of_a_load_are_one_row_with_median_and_range() {
    let mut invalid = clean(1_000, 900.0);
    invalid.verdict = Verdict::Invalid;
    let mut worse = clean(1_000, 4.0);
    let mut backlog = record();
    backlog.judged.word = Word::Backlog;
    worse.sections = Sections::of(SECTION, &backlog);
    worse.verdict = Verdict::Fail;
    let trials = [clean(1_000, 3.0), invalid, worse, clean(1_000, 2.0)];
    let rows = repeats(&trials).expect("a load was repeated");
    assert_eq!(rows.len(), 1);
    let row = rows[0].join(" | ");
    for cell in ["| 4 (3 valid) |", "| 3 (2–4) |", "| 1,000 (800–1,000) |"] {
        assert!(row.contains(cell), "{cell} in {row}");
    }
    assert!(row.ends_with("| backlog, storage bound | fail"), "{row}");
    // Nothing was repeated.
    assert_eq!(repeats(&[clean(1_000, 1.0), clean(2_000, 1.0)]), None);
}

#[test]
fn a_knee_is_found_by_the_lowest_rate_of_the_same_messages() {
    let mut larger = clean(5_000, 90.0);
    let size = larger.parameters.get_mut("message_bytes");
    *size.expect("a size") = json!(65_536);
    let mut trials = vec![larger];
    for p99_ms in [1.0, 9.0, 2.0] {
        trials.push(clean(1_000, p99_ms));
        trials.push(clean(5_000, 3.0 * p99_ms));
    }
    let rows = repeats(&trials).expect("a load was repeated");
    let words: Vec<&str> = rows.iter().map(|row| row[11].as_str()).collect();
    // The median of the lowest rate is 2 ms; one trial of 5,000 took 27 ms. Other messages have no lower rate.
    assert_eq!(words, ["clean", "knee", "clean"]);
    // Each trial has its own word.
    let named = trials.iter().map(|trial| Named { stem: "t", trial });
    let named: Vec<_> = named.collect();
    let groups = table::groups(&named);
    let knees = groups[0].iter().filter(|row| row.word == Word::Knee);
    assert_eq!(knees.count(), 1);
}
