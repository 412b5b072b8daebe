//! What workload `ws` adds: how far the load of a trial came, and trials of one test side by side.

use plimsoll_core::record::{Trial, WsRecord};

use super::{Blocks, Column, Detail, Fact, Section, Table};
use crate::facts::ws::table::{TestTable, tables};
use crate::facts::ws::{self, StepReached};
use crate::folder::StoredTrial;
use crate::words::capital;

/// What a trial says besides its ledger and its latencies; nothing for other workloads.
pub(super) fn of_trial(trial: &Trial) -> Option<Section> {
    let record = trial.ws.as_ref()?;
    let mut blocks = Blocks::default();
    let steps = ws::delivered(record).into_iter();
    let steps = steps.map(|StepReached { name, count, share }| [name.to_owned(), count, share]);
    let conditions = capital(&ws::conditions(record));
    let table = Table::new(conditions, ws::DELIVERED_COLUMNS).hooked("delivered");
    blocks.push(table.with_rows(steps));
    blocks.note(ws::steps(&record.test).proof);
    let outcomes = ws::outcomes(record);
    if !outcomes.is_empty() {
        blocks
            .push(Table::of_facts(ws::OUTCOMES.trim_end_matches(':'), outcomes).hooked("outcomes"));
    }
    if let Some(told) = ws::decode(record) {
        blocks.paragraph(told);
    }
    if let Some(rows) = ws::closed_loop(trial) {
        let caption = "What a closed loop says of the same server";
        let table = Table::new(caption, ws::CLOSED_LOOP_COLUMNS).hooked("closed-loop");
        blocks.push(table.with_rows(rows));
        blocks.note(ws::CLOSED_LOOP);
    }
    Some(Section::new("delivered", ws::HEADING, blocks))
}

/// The same in lines.
pub(super) fn in_lines(record: &WsRecord) -> Vec<Fact> {
    let mut lines = vec![
        Fact::new("tested", ws::conditions(record)),
        Fact::new("load", ws::delivered_in_a_line(record)),
    ];
    let outcomes = ws::outcomes_in_a_line(record);
    let outcomes = (!outcomes.is_empty()).then(|| Fact::new("not opened", outcomes));
    let format = ws::decode(record).map(|told| Fact::new("format", told));
    let closed = ws::closed_loop_in_a_line(record);
    let closed =
        closed.map(|told| Fact::new("closed loop", format!("{told} (only for comparison)")));
    lines.extend([outcomes, format, closed].into_iter().flatten());
    lines
}

/// Trials of one test side by side, one table for each test.
pub(crate) fn side_by_side(blocks: &mut Blocks, trials: &[&StoredTrial]) {
    for found in tables(trials) {
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
}
