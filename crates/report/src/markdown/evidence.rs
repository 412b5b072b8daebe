//! The evidence of a search: caveats, checks of the measurement, one row per load, the machine, the command.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Bracket, GateResult, LoadUnit, Trial};

use super::{Page, Table, code, escape};
use crate::facts;
use crate::facts::belief::{self, RaisedCaveat};
use crate::facts::repeat::Repeat;
use crate::folder::StoredTrial;
use crate::loads::Load;
use crate::words::{self, count, number};

/// Whether you can believe the answer: caveats with their remedies, and what was checked.
pub(super) fn belief_section(page: &mut Page, bracket: &Bracket, trials: &[&StoredTrial]) {
    page.heading(2, "Can it be believed?");
    let caveats = caveats(trials);
    if caveats.is_empty() {
        page.paragraph(&belief::no_caveat(trials.len()));
    } else {
        page.paragraph("Caveats, each with its remedy:");
        page.list(&caveats);
    }
    if let Some(lower_bound) = belief::lower_bound(bracket) {
        page.paragraph(&lower_bound);
    }
    let mut checked = Vec::new();
    checked.extend(belief::client_room(trials));
    checked.extend(belief::audit(trials));
    checked.extend(belief::both_clocks(bracket, trials));
    checked.extend(sanity(trials));
    checked.extend(trials.iter().filter_map(|stored| {
        words::ledger_gap(&stored.trial).map(|gap| format!("**{}: {gap}.**", stored.stem))
    }));
    if !checked.is_empty() {
        page.paragraph("What was checked:");
        page.list(&checked);
    }
}

/// Every caveat once, with its remedy.
pub(crate) fn caveats(trials: &[&StoredTrial]) -> Vec<String> {
    let told = |caveat: RaisedCaveat<'_>| {
        format!(
            "**{}** ({}): {}",
            escape(caveat.id),
            caveat.raised(),
            escape(caveat.text)
        )
    };
    belief::caveats(trials).into_iter().map(told).collect()
}

/// The accounts kept twice.
fn sanity(trials: &[&StoredTrial]) -> Option<String> {
    let accounts = belief::accounts(trials)?;
    let broken: Vec<_> = trials
        .iter()
        .flat_map(|stored| {
            let broken = disagreeing(&stored.trial);
            broken.map(|what| format!("{} {what}", stored.stem))
        })
        .collect();
    let names: Vec<_> = accounts
        .names
        .iter()
        .map(|name| format!("`{}`", code(name)))
        .collect();
    let outcome = if broken.is_empty() {
        "all agree".to_owned()
    } else {
        format!("**some do not agree**: {}", broken.join("; "))
    };
    Some(format!(
        "Cross-checks of two accounts ({}): {} comparisons, {outcome}.",
        names.join(", "),
        count(accounts.compared)
    ))
}

/// The accounts of a trial that do not agree, each with its numbers.
pub(crate) fn disagreeing(trial: &Trial) -> impl Iterator<Item = String> {
    facts::disagreeing(trial).map(|check| {
        let name = code(&check.name);
        format!("**`{name}` does not agree**: {}", facts::sanity(check))
    })
}

/// What the verdicts mean: every gate with its threshold.
pub(super) fn gates(page: &mut Page, trial: &Trial) {
    let gate = |gate: &GateResult| format!("`{}` ≤ {}", code(&gate.name), number(gate.threshold));
    let gates: Vec<_> = trial.gates.iter().map(gate).collect();
    page.paragraph(&format!(
        "A trial passes when every gate holds: {}.",
        gates.join(", ")
    ));
}

/// One row per load.
pub(super) fn table(page: &mut Page, loads: &[Load], unit: LoadUnit) {
    let columns = Load::columns(unit);
    let mut table = Table::new(&columns.each_ref().map(String::as_str));
    for load in loads {
        let against: Vec<_> = load.what_failed().iter().map(|name| escape(name)).collect();
        table.row(load.measured().into_iter().chain([against.join(", ")]));
    }
    page.table(&table);
}

/// The machine, the placement, the versions.
pub(super) fn environment(page: &mut Page, trial: &Trial) {
    let mut table = Table::new(&["what", "value"]);
    for (name, value) in facts::trial::environment(trial) {
        table.row([&escape(&name), &escape(&value)]);
    }
    page.table(&table);
}

/// The trial that shows the conditions of a search: one that ran the whole profile, if there is one.
pub(crate) fn exemplar<'a>(trials: &[&'a StoredTrial]) -> Option<&'a Trial> {
    let whole = trials.iter().find(|s| s.trial.length == Length::Full);
    whole.or(trials.first()).map(|stored| &stored.trial)
}

/// The command that repeats the measurement, and what it needs besides.
pub(super) fn repeat(page: &mut Page, trial: &Trial, verb: &str, sessions: Option<u32>, seed: u64) {
    let repeat = Repeat::of(trial, verb, sessions, seed);
    page.code_block(&repeat.command);
    if let Some(changed) = &repeat.changed_profile {
        page.paragraph(changed);
    }
    if !repeat.own_gates.is_empty() {
        let gates: Vec<_> = repeat
            .own_gates
            .iter()
            .map(|(name, threshold)| format!("`{} = {threshold}`", code(name)))
            .collect();
        page.paragraph(&format!(
            "with `--slo` and a file that has under `[gates]`: {}.",
            gates.join(", ")
        ));
    }
}
