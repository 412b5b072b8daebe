//! Workload `ws`: how far the load of a trial came, and trials of one test side by side.

use plimsoll_core::record::Trial;

use super::{Page, Table, escape};
use crate::facts::ws::table::{TestTable, tables};
use crate::facts::ws::{self, Step};
use crate::folder::StoredTrial;
use crate::words::capital;

/// What a trial says besides its ledger and its latencies.
pub(super) fn section(page: &mut Page, trial: &Trial) {
    let Some(record) = &trial.ws else {
        return;
    };
    page.heading(2, ws::HEADING);
    page.paragraph(&format!("{}.", capital(&escape(&ws::conditions(record)))));
    let mut table = Table::new(&ws::DELIVERED_COLUMNS);
    for Step { name, count, share } in ws::delivered(record) {
        table.row([name, &count, &share]);
    }
    page.table(&table);
    page.paragraph(ws::steps(&record.test).proof);
    let outcomes: Vec<String> = ws::outcomes(record)
        .iter()
        .map(|(name, times)| format!("{times} × {}", escape(name)))
        .collect();
    if !outcomes.is_empty() {
        page.paragraph(ws::OUTCOMES);
        page.list(&outcomes);
    }
    if let Some(told) = ws::decode(record) {
        page.paragraph(&told);
    }
    if let Some(rows) = ws::closed_loop(trial) {
        let mut table = Table::new(&ws::CLOSED_LOOP_COLUMNS);
        for row in rows {
            table.row(row);
        }
        page.table(&table);
        page.paragraph(ws::CLOSED_LOOP);
    }
}

/// Trials of one test side by side, one table for each test.
pub(crate) fn side_by_side(page: &mut Page, trials: &[&StoredTrial]) {
    for found in tables(trials) {
        let TestTable {
            title,
            columns,
            rows,
            note,
            ..
        } = found;
        page.paragraph(&format!("{}:", escape(&title)));
        let mut table = Table::new(&columns);
        for row in rows {
            table.row(row.iter().map(|cell| escape(cell)));
        }
        page.table(&table);
        page.paragraph(&note);
    }
}
