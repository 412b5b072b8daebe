//! What a trial's record becomes in words, and trials of one test side by side.

use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Client, Environment, LoadUnit, Target, Trial, Verdict};
use plimsoll_document::{Blocks, Named, Tell};
use serde_json::json;

use crate::Broker;
use crate::guarantee::{Confirm, Guarantee, Kept, Times};
use crate::marks::{Delivery, Tally};
use crate::record::BrokerRecord;
use crate::word::{Judged, Word};
use crate::writer::Waits;

use super::{facts, table};

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
