//! The section of one trial.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{GateResult, Trial};

use super::{Page, Table, code, escape, evidence, resources, ws};
use crate::facts::{
    self,
    trial::{LATENCY_COLUMNS, latency_cells},
};
use crate::folder::StoredTrial;
use crate::words::{self, count, number};

/// Everything about one trial: the verdict in words, whether you can believe it, gates, ledger, latencies, costs, how
/// to repeat it.
pub(super) fn section(page: &mut Page, stored: &StoredTrial) {
    let trial = &stored.trial;
    page.heading(
        1,
        &format!(
            "{} at {}: {}",
            escape(&trial.target.name),
            words::load_of(trial),
            trial.verdict.word()
        ),
    );
    page.paragraph(&format!(
        "**{}**: {}.",
        trial.verdict.word(),
        escape(&words::outcome(trial))
    ));
    if trial.interrupted {
        page.paragraph("The trial was interrupted: these are the measurements up to that point.");
    }
    if trial.length == Length::Short {
        page.paragraph(&format!(
            "A short trial of a search: measured for {} s, not for the whole profile.",
            number(trial.phases.measured_s)
        ));
    }
    if let Some(bottleneck) = &trial.bottleneck {
        let bottleneck = escape(bottleneck.trim_end_matches('.'));
        page.paragraph(&format!("Bottleneck: {bottleneck}."));
    }
    page.heading(2, "Can it be believed?");
    caveats(page, trial);
    sanity(page, trial);
    page.heading(2, "Gates");
    gates(page, &trial.gates);
    for further in &trial.further_slos {
        page.heading(
            2,
            &format!(
                "Gates of the SLO {}: {}",
                escape(&further.slo),
                further.verdict.word()
            ),
        );
        gates(page, &further.gates);
    }
    ws::section(page, trial);
    drift(page, trial);
    page.heading(2, "Ledger");
    ledger(page, trial);
    page.heading(2, "Latency");
    latency(page, trial);
    page.heading(2, "Client");
    resources::client(page, trial);
    page.heading(2, "Resources of the target");
    resources::target(page, trial);
    if let Some(inference) = &trial.inference {
        page.heading(2, "Inference simulator");
        resources::inference(page, inference);
    }
    page.heading(2, "Environment");
    evidence::environment(page, trial);
    page.heading(2, "How to repeat");
    evidence::repeat(page, trial, "run", Some(trial.sessions), trial.seed);
    page.paragraph(&format!(
        "Measured at {}; every second in `{stem}.csv`, histograms in `{stem}.hlog`.",
        escape(&trial.started_at),
        stem = code(&stored.stem)
    ));
}

fn caveats(page: &mut Page, trial: &Trial) {
    let caveat = |caveat: &plimsoll_core::caveat::Caveat| {
        let blocking = if caveat.blocking { " (blocking)" } else { "" };
        format!(
            "**{}**{blocking}: {}",
            escape(&caveat.id),
            escape(&caveat.text)
        )
    };
    let mut items: Vec<_> = trial.caveats.iter().map(caveat).collect();
    items.extend(evidence::disagreeing(trial));
    items.extend(words::ledger_gap(trial).map(|gap| format!("**ledger**: {gap}")));
    if items.is_empty() {
        page.paragraph("No caveats: nothing casts doubt on the result.");
    } else {
        page.paragraph("Caveats, each with its remedy:");
        page.list(&items);
    }
}

/// Accounts kept twice, by two parties or by two formulas.
fn sanity(page: &mut Page, trial: &Trial) {
    if trial.sanity.is_empty() {
        return;
    }
    page.paragraph("Cross-checks: quantities known from two accounts.");
    let mut table = Table::new(&["account", ">observed", ">consistent from", ">to", "agrees"]);
    for check in &trial.sanity {
        let agrees = if check.holds { "yes" } else { "**no**" };
        table.row([
            &format!("`{}`", code(&check.name)),
            &number(check.observed),
            &number(check.low),
            &number(check.high),
            agrees,
        ]);
    }
    page.table(&table);
}

/// How latency and memory changed over the window.
fn drift(page: &mut Page, trial: &Trial) {
    let rows = facts::drift_of(trial);
    let mut table = Table::new(&["what", ">change", ">interval", "reading"]);
    let mut any = false;
    for row in rows {
        table.row([row.name, &row.slope, &row.interval, row.reading]);
        any = true;
    }
    if any {
        page.heading(2, "Drift over the window");
        page.table(&table);
    }
}

fn gates(page: &mut Page, gates: &[GateResult]) {
    let mut table = Table::new(&["gate", ">observed", ">at most", "held"]);
    for gate in gates {
        let held = if gate.pass { "yes" } else { "**no**" };
        let name = format!("`{}`", code(&gate.name));
        table.row([&name, &words::observed(gate), &number(gate.threshold), held]);
    }
    page.table(&table);
}

fn ledger(page: &mut Page, trial: &Trial) {
    let mut table = Table::new(&["what", ">count"]);
    for (name, value) in facts::trial::ledger(trial) {
        table.row([name, count(value)]);
    }
    page.table(&table);
    resources::reasons(
        page,
        "Why sessions failed or died, and what the protocol faults were:",
        &trial.ledger.reasons,
    );
}

fn latency(page: &mut Page, trial: &Trial) {
    let mut table = Table::new(&LATENCY_COLUMNS);
    for (name, quantiles) in words::latency_rows(&trial.latency) {
        table.row(latency_cells(name, quantiles));
    }
    page.table(&table);
    page.paragraph("Gates look at the latency from the schedule. An unanswered frame counts with the time we waited, a lower bound.");
}
