//! Workload `ws`: how far the load of a trial came, and trials of one test side by side.

use plimsoll_core::record::{Trial, WsRecord};

use crate::facts::ws::table::{TestTable, tables};
use crate::facts::ws::{self, Step};
use crate::folder::StoredTrial;
use crate::html::parts::{self, Cell};
use crate::html::write::Html;
use crate::words::capital;

/// What a trial says besides its ledger and its latencies, as a part of its section; nothing for other workloads.
pub(super) fn of_trial(trial: &Trial, part: &mut impl FnMut(&str, &str, &dyn Fn(&mut Html))) {
    if let Some(record) = &trial.ws {
        part("delivered", ws::HEADING, &|html| told(html, trial, record));
    }
}

fn told(html: &mut Html, trial: &Trial, record: &WsRecord) {
    let conditions = capital(&ws::conditions(record));
    let rows = ws::delivered(record).into_iter().map(|step| {
        let Step { name, count, share } = step;
        vec![Cell::from(name), Cell::Text(count), Cell::Text(share)]
    });
    html.inside("div", &[("data-test", "delivered")], |html| {
        parts::table(html, &conditions, &ws::DELIVERED_COLUMNS, rows);
    });
    parts::note(html, ws::steps(&record.test).proof);
    let outcomes = ws::outcomes(record);
    if !outcomes.is_empty() {
        html.inside("div", &[("data-test", "outcomes")], |html| {
            parts::facts(html, ws::OUTCOMES, &outcomes);
        });
    }
    if let Some(told) = ws::decode(record) {
        parts::paragraph(html, &told);
    }
    if let Some(rows) = ws::closed_loop(trial) {
        let rows = rows.into_iter().map(|row| row.map(Cell::Text).into());
        html.inside("div", &[("data-test", "closed-loop")], |html| {
            let caption = "What a closed loop says of the same server";
            parts::table(html, caption, &ws::CLOSED_LOOP_COLUMNS, rows);
        });
        parts::note(html, ws::CLOSED_LOOP);
    }
}

/// Trials of one test side by side, one table for each test.
pub(super) fn side_by_side(html: &mut Html, trials: &[&StoredTrial]) {
    for found in tables(trials) {
        let TestTable {
            title,
            columns,
            rows,
            note,
            ..
        } = found;
        let rows = rows
            .into_iter()
            .map(|row| row.into_iter().map(Cell::Text).collect());
        html.inside("div", &[("data-test", "test-table")], |html| {
            parts::table(html, &title, &columns, rows);
            parts::note(html, &note);
        });
    }
}
