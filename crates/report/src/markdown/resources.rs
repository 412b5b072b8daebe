//! The resources that client, target and simulator used.

use std::collections::BTreeMap;

use plimsoll_core::record::{Inference, Trial};

use super::{Page, Table, escape};
use crate::facts;
use crate::facts::trial::Fact;
use crate::words::count;

/// The load engine: whether it was on time, and what that cost.
pub(super) fn client(page: &mut Page, trial: &Trial) {
    page.table(&table(&facts::trial::client(&trial.client)));
    page.paragraph("Send lag is the client's own lateness; send wait is the time that due frames waited for a full socket, the target's back-pressure.");
    reasons(
        page,
        "Faults of the client's own machine:",
        &trial.client.faults,
    );
}

/// The target.
pub(super) fn target(page: &mut Page, trial: &Trial) {
    let Some(resources) = &trial.target_resources else {
        page.paragraph("Not measured.");
        return;
    };
    page.table(&table(&facts::trial::target(trial, resources)));
    page.paragraph(&format!("Source: {}.", escape(&resources.source)));
}

/// The inference simulator.
pub(super) fn inference(page: &mut Page, inference: &Inference) {
    page.table(&table(&facts::trial::inference(inference)));
}

/// What happened, how often and why.
pub(super) fn reasons(page: &mut Page, title: &str, reasons: &BTreeMap<String, u64>) {
    if !reasons.is_empty() {
        page.paragraph(title);
        let item =
            |(reason, times): (&String, &u64)| format!("{} × {}", count(*times), escape(reason));
        let items: Vec<_> = reasons.iter().map(item).collect();
        page.list(&items);
    }
}

/// Nothing in these rows is from outside.
fn table(rows: &[Fact]) -> Table {
    let mut table = Table::new(&["what", ">value"]);
    for (name, value) in rows {
        table.row([name, value]);
    }
    table
}
