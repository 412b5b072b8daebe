//! What a trial of workload `http` tells: the three rates, how requests ended, and trials side by side.
//!
//! - `facts`: the same in words;
//! - `table`: trials of one test side by side.

mod facts;
mod table;
#[cfg(test)]
mod tests;

use plimsoll_core::record::{Parameters, Trial};
use plimsoll_document::words::capital;
use plimsoll_document::{Blocks, Fact, Named, Nouns, Section, Table, Tell};
use plimsoll_workload::parameter::that_can_be_given;
use schemars::{Schema, SchemaGenerator};

use crate::Http;
use crate::parameters::PARAMETERS;
use crate::record::{HttpRecord, SECTION};

impl Tell for Http {
    fn workload(&self) -> &'static str {
        "http"
    }

    fn nouns(&self, _trial: &Trial) -> Nouns {
        Nouns {
            frames: "requests",
            answers: "right answers",
            messages: "right answers",
        }
    }

    fn beside_the_load(&self, trial: &Trial) -> String {
        let told = record(trial).map(|http| facts::asked(trial, &http));
        told.map_or_else(String::new, |told| format!(" of {told}"))
    }

    fn repeated_with<'a>(&self, parameters: &'a Parameters, started: bool) -> Vec<&'a str> {
        that_can_be_given(&PARAMETERS, parameters, started)
    }

    fn trial(&self, trial: &Trial) -> Option<Section> {
        record(trial).map(|http| section(trial, &http))
    }

    fn in_lines(&self, trial: &Trial) -> Vec<Fact> {
        record(trial).map_or_else(Vec::new, |http| in_lines(trial, &http))
    }

    fn properties(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let told = record(trial).map(|http| {
            [
                ("request", facts::asked(trial, &http)),
                ("rates", facts::rates_in_a_line(&http)),
            ]
        });
        told.into_iter().flatten().collect()
    }

    fn side_by_side(&self, blocks: &mut Blocks, trials: &[Named<'_>]) {
        table::side_by_side(blocks, trials);
    }

    fn schemas(&self, generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        let mut schema = generator.subschema_for::<Option<HttpRecord>>();
        let meaning = "Further results of workload `http`; `null` for other workloads.";
        schema.insert("description".to_owned(), meaning.into());
        vec![(SECTION, schema)]
    }
}

fn record(trial: &Trial) -> Option<HttpRecord> {
    trial.sections.get(SECTION)
}

/// What a trial says besides its ledger and its latencies.
fn section(trial: &Trial, record: &HttpRecord) -> Section {
    let mut blocks = Blocks::default();
    let caption = capital(&facts::conditions(trial, record));
    let rates = Table::new(caption, facts::RATE_COLUMNS).hooked("rates");
    blocks.push(rates.with_rows(facts::rates(record)));
    blocks.note(facts::RATES);
    let outcomes = facts::outcomes(record);
    if !outcomes.is_empty() {
        blocks.push(Table::of_facts(facts::OUTCOMES, outcomes).hooked("outcomes"));
    }
    let connections = facts::connections(trial, record);
    blocks.push(Table::of_facts("Connections and bytes", connections).hooked("connections"));
    if let Some(rows) = facts::closed_loop(trial, record) {
        let table = Table::new(facts::CLOSED_LOOP, facts::CLOSED_LOOP_COLUMNS);
        blocks.push(table.hooked("closed-loop").with_rows(rows));
        blocks.note(facts::CLOSED_LOOP_NOTE);
    }
    Section::new("rates", "Requests per second", blocks)
}

/// The same in lines.
fn in_lines(trial: &Trial, record: &HttpRecord) -> Vec<Fact> {
    let mut lines = vec![
        Fact::new("asked", facts::conditions(trial, record)),
        Fact::new("rates", facts::rates_in_a_line(record)),
    ];
    let busy = facts::all_busy_in_a_line(trial, record).map(|told| Fact::new("all busy", told));
    let outcomes = facts::outcomes_in_a_line(record).map(|told| Fact::new("failed", told));
    let connections = Fact::new("connections", facts::connections_in_a_line(record));
    let closed = facts::closed_loop_in_a_line(record);
    let closed = closed.map(|told| {
        let told = format!("{told} (closed loop, as wrk would say; only for comparison)");
        Fact::new("closed loop", told)
    });
    lines.extend(
        [busy, outcomes, Some(connections), closed]
            .into_iter()
            .flatten(),
    );
    lines
}
