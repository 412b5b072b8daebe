//! Workload `ws`: how far the load of a trial came, and trials of one test side by side.

use plimsoll_core::record::Trial;

use super::table::{Align, Table};
use super::{head, join};
use crate::facts::ws;
use crate::facts::ws::table::{TestTable, tables};
use crate::folder::StoredTrial;

/// What a trial says besides its ledger and its latencies.
pub(super) fn lines(trial: &Trial) -> Vec<String> {
    let Some(record) = &trial.ws else {
        return Vec::new();
    };
    let line = |head: &str, text: String| format!("  {head:<10} {text}");
    let mut lines = vec![
        line("tested", ws::conditions(record)),
        line("load", ws::delivered_in_a_line(record)),
    ];
    let outcomes = ws::outcomes_in_a_line(record);
    if !outcomes.is_empty() {
        lines.push(line("not opened", outcomes));
    }
    lines.extend(ws::decode(record).map(|told| line("format", told)));
    let closed = ws::closed_loop_in_a_line(record);
    let closed = closed.map(|told| format!("{told} (only for comparison)"));
    lines.extend(closed.map(|told| line("closed", told)));
    lines
}

/// The block for trials of workload `ws`, one table for each test; empty where there are no such trials.
#[must_use]
pub fn side_by_side(trials: &[StoredTrial]) -> String {
    let trials: Vec<&StoredTrial> = trials.iter().collect();
    let mut lines = Vec::new();
    for found in tables(&trials) {
        let TestTable {
            title,
            columns,
            rows,
            note,
            ..
        } = found.in_brief();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(title);
        lines.push(String::new());
        let heads: Vec<(&str, Align)> = columns.into_iter().map(head).collect();
        let mut table = Table::new(&heads);
        for row in rows {
            table.row(row.into_iter().map(Into::into).collect());
        }
        lines.extend(table.lines());
        lines.push(format!("  ({note})"));
    }
    join(&lines)
}
