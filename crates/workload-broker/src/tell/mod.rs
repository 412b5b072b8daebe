//! What a trial of workload `broker` tells: what was promised, the rates, what became of the messages, and trials side by
//! side.
//!
//! - `facts`: the same in words;
//! - `table`: trials of one test side by side;
//! - `repeats`: the trials of each load as one row;
//! - `crash`: what the crash of test `replay` did.

mod crash;
mod facts;
mod repeats;
mod table;
#[cfg(test)]
mod tests;

use plimsoll_core::record::{Parameters, Trial};
use plimsoll_document::words::capital;
use plimsoll_document::{Blocks, Fact, Named, Nouns, Section, Table, Tell};
use plimsoll_workload::parameter::that_can_be_given;
use schemars::{Schema, SchemaGenerator};

use crate::Broker;
use crate::parameters::PARAMETERS;
use crate::record::{BrokerRecord, SECTION};

impl Tell for Broker {
    fn workload(&self) -> &'static str {
        "broker"
    }

    fn nouns(&self, trial: &Trial) -> Nouns {
        let without_readers = record(trial).is_some_and(|broker| broker.readers == 0);
        let answers = if without_readers {
            "confirmations"
        } else {
            "deliveries"
        };
        Nouns {
            frames: "messages",
            answers,
            messages: answers,
        }
    }

    fn beside_the_load(&self, trial: &Trial) -> String {
        let told = record(trial).map(|broker| facts::sent(trial, &broker));
        told.map_or_else(String::new, |told| format!(" {told}"))
    }

    fn repeated_with<'a>(&self, parameters: &'a Parameters, started: bool) -> Vec<&'a str> {
        that_can_be_given(&PARAMETERS, parameters, started)
    }

    fn trial(&self, trial: &Trial) -> Option<Section> {
        record(trial).map(|broker| section(trial, &broker))
    }

    fn in_lines(&self, trial: &Trial) -> Vec<Fact> {
        record(trial).map_or_else(Vec::new, |broker| in_lines(trial, &broker))
    }

    fn properties(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let told = record(trial).map(|broker| {
            [
                ("guarantee", facts::guarantee(trial, &broker)),
                ("rates", facts::rates_in_a_line(&broker)),
                ("word", facts::word(&broker)),
            ]
        });
        told.into_iter().flatten().collect()
    }

    fn side_by_side(&self, blocks: &mut Blocks, trials: &[Named<'_>]) {
        table::side_by_side(blocks, trials);
    }

    fn schemas(&self, generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        let mut schema = generator.subschema_for::<Option<BrokerRecord>>();
        let meaning = "Further results of workload `broker`; `null` for other workloads.";
        schema.insert("description".to_owned(), meaning.into());
        vec![(SECTION, schema)]
    }
}

fn record(trial: &Trial) -> Option<BrokerRecord> {
    trial.sections.get(SECTION)
}

/// What a trial says besides its ledger and its latencies.
fn section(trial: &Trial, record: &BrokerRecord) -> Section {
    let mut blocks = Blocks::default();
    let promised = capital(&facts::guarantee(trial, record));
    blocks.paragraph(format!("{promised}. In a word: {}.", facts::word(record)));
    let caption = capital(&facts::sent(trial, record));
    if record.closed_loop.is_some() {
        let shown = facts::closed_loop(trial, record);
        blocks.push(Table::of_facts(&caption, shown).hooked("closed-loop"));
        blocks.note(facts::CLOSED_LOOP);
    } else {
        let rates = Table::new(caption, facts::RATE_COLUMNS).hooked("rates");
        blocks.push(rates.with_rows(facts::rates(record)));
        blocks.note(facts::RATES);
    }
    let messages = facts::messages(record);
    blocks.push(Table::of_facts(facts::MESSAGES, messages).hooked("messages"));
    let backlog = facts::backlog(record);
    blocks.push(Table::of_facts("Waits and backlog", backlog).hooked("backlog"));
    if let Some(replay) = &record.replay {
        blocks.push(Table::of_facts(crash::CAPTION, crash::facts(replay)).hooked("crash"));
        blocks.note(crash::NOTE);
        if replay.is_lower_bound {
            blocks.note(crash::LOWER_BOUND);
        }
    }
    Section::new("messages", "Messages", blocks)
}

/// The same in lines.
fn in_lines(trial: &Trial, record: &BrokerRecord) -> Vec<Fact> {
    let rates = if record.closed_loop.is_some() {
        let shown = facts::closed_loop(trial, record).into_iter();
        let shown: Vec<String> = shown
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        Fact::new("closed loop", shown.join("; "))
    } else {
        Fact::new("rates", facts::rates_in_a_line(record))
    };
    let mut lines = vec![
        Fact::new("promised", facts::guarantee(trial, record)),
        Fact::new("sent", facts::sent(trial, record)),
        rates,
        Fact::new("messages", facts::messages_in_a_line(record)),
        Fact::new("backlog", facts::backlog_in_a_line(record)),
        Fact::new("in a word", facts::word(record)),
    ];
    let crash = crash::in_a_line(record);
    lines.extend(crash.map(|told| Fact::new("crash", told)));
    lines
}
