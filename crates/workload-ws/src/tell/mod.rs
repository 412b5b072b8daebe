//! What a trial of workload `ws` tells: how far its load came, and trials of one test side by side.
//!
//! - `facts`: the same in words;
//! - `table`: the columns of each test.

mod facts;
mod table;
#[cfg(test)]
mod tests;

use plimsoll_core::record::{Parameters, Trial};
use plimsoll_document::words::{capital, count, plain};
use plimsoll_document::{Blocks, Column, Detail, Fact, Named, Nouns, Section, Table, Tell};
use plimsoll_workload::parameter::that_can_be_given;
use schemars::{Schema, SchemaGenerator};

use crate::Ws;
use crate::parameters::PARAMETERS;
use crate::record::{SECTION, WsRecord};
use facts::StepReached;
use table::{TestTable, tables};

impl Tell for Ws {
    fn workload(&self) -> &'static str {
        "ws"
    }

    fn nouns(&self, trial: &Trial) -> Nouns {
        let test = record(trial).map(|ws| ws.test);
        Nouns {
            frames: match test.as_deref() {
                Some("ping" | "hold" | "limit") => "pings",
                Some("throughput" | "matrix" | "formats") => "messages",
                Some("storm") => "arrivals",
                Some("fanout") => "deliveries",
                _ => "frames",
            },
            ..Nouns::default()
        }
    }

    fn beside_the_load(&self, trial: &Trial) -> String {
        let Some(ws) = record(trial) else {
            return String::new();
        };
        match (ws.test.as_str(), ws.message_bytes, &ws.format) {
            ("matrix", Some(bytes), _) => format!(" of {} B", count(bytes)),
            ("formats", _, Some(format)) => format!(" in {}", plain(format)),
            _ => String::new(),
        }
    }

    fn earlier_parameters(&self, trial: &Trial) -> Parameters {
        record(trial).map_or_else(Parameters::new, |ws| ws.parameters())
    }

    fn repeated_with<'a>(&self, parameters: &'a Parameters, started: bool) -> Vec<&'a str> {
        that_can_be_given(&PARAMETERS, parameters, started)
    }

    fn trial(&self, trial: &Trial) -> Option<Section> {
        record(trial).map(|ws| section(trial, &ws))
    }

    fn in_lines(&self, trial: &Trial) -> Vec<Fact> {
        record(trial).map(|ws| in_lines(&ws)).unwrap_or_default()
    }

    fn properties(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let told = record(trial).map(|ws| {
            [
                ("test", plain(&ws.test)),
                ("delivered", facts::delivered_in_a_line(&ws)),
            ]
        });
        told.into_iter().flatten().collect()
    }

    fn side_by_side(&self, blocks: &mut Blocks, trials: &[Named<'_>]) {
        for found in tables(trials) {
            test_table(blocks, found);
        }
    }

    fn schemas(&self, generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        let mut schema = generator.subschema_for::<Option<WsRecord>>();
        let meaning = "Further results of workload `ws`; `null` for other workloads.";
        schema.insert("description".to_owned(), meaning.into());
        vec![(SECTION, schema)]
    }
}

fn record(trial: &Trial) -> Option<WsRecord> {
    trial.sections.get(SECTION)
}

/// What a trial says besides its ledger and its latencies.
fn section(trial: &Trial, record: &WsRecord) -> Section {
    let mut blocks = Blocks::default();
    let steps = facts::delivered(record).into_iter();
    let steps = steps.map(|StepReached { name, count, share }| [name.to_owned(), count, share]);
    let conditions = capital(&facts::conditions(record));
    let table = Table::new(conditions, facts::DELIVERED_COLUMNS).hooked("delivered");
    blocks.push(table.with_rows(steps));
    blocks.note(facts::steps(&record.test).proof);
    let outcomes = facts::outcomes(record);
    if !outcomes.is_empty() {
        blocks.push(
            Table::of_facts(facts::OUTCOMES.trim_end_matches(':'), outcomes).hooked("outcomes"),
        );
    }
    if let Some(told) = facts::decode(record) {
        blocks.paragraph(told);
    }
    if let Some(rows) = facts::closed_loop(trial, record) {
        let caption = "What a closed loop says of the same server";
        let table = Table::new(caption, facts::CLOSED_LOOP_COLUMNS).hooked("closed-loop");
        blocks.push(table.with_rows(rows));
        blocks.note(facts::CLOSED_LOOP);
    }
    Section::new("delivered", facts::HEADING, blocks)
}

/// The same in lines.
fn in_lines(record: &WsRecord) -> Vec<Fact> {
    let mut lines = vec![
        Fact::new("tested", facts::conditions(record)),
        Fact::new("load", facts::delivered_in_a_line(record)),
    ];
    let outcomes = facts::outcomes_in_a_line(record);
    let outcomes = (!outcomes.is_empty()).then(|| Fact::new("not opened", outcomes));
    let format = facts::decode(record).map(|told| Fact::new("format", told));
    let closed = facts::closed_loop_in_a_line(record);
    let closed =
        closed.map(|told| Fact::new("closed loop", format!("{told} (only for comparison)")));
    lines.extend([outcomes, format, closed].into_iter().flatten());
    lines
}

/// Trials of one test, one row each.
fn test_table(blocks: &mut Blocks, found: TestTable) {
    let TestTable {
        title,
        columns,
        brief,
        rows,
        note,
    } = found;
    let columns = columns.iter().zip(brief).map(|(name, brief)| {
        let column = Column::new(name);
        if brief {
            column
        } else {
            column.only(Detail::Full)
        }
    });
    let table = Table {
        caption: title,
        hook: "test-table",
        columns: columns.collect(),
        ..Table::default()
    };
    blocks.push(table.with_rows(rows));
    blocks.note(note);
}
