//! Whether you can believe a result: caveats with their remedies, and what was checked.

use plimsoll_core::record::{Bracket, Target, Trial};

use super::{Block, Blocks, List, Section, Table, Tellers, Text};
use crate::facts;
use crate::facts::belief::{self, RaisedCaveat};
use crate::folder::StoredTrial;
use crate::words::{self, count, number};

const TITLE: &str = "Can it be believed?";
const CAVEATS: &str = "Caveats, each with its remedy:";

/// Of one trial.
pub(super) fn of_trial(trial: &Trial, tellers: Tellers) -> Section {
    let mut blocks = Blocks::default();
    let broken = broken_accounts(trial, tellers);
    if trial.caveats.is_empty() && broken.is_empty() {
        blocks.paragraph("No caveats: nothing casts doubt on the result.");
    }
    let caveats = trial.caveats.iter().map(|caveat| {
        let blocking = if caveat.blocking { " (blocking)" } else { "" };
        Text::strong(&caveat.id).then_plain(format!("{blocking}: {}", caveat.text))
    });
    caveats_and_broken(&mut blocks, caveats.collect(), broken);
    blocks.push(deviations(&trial.target));
    if !trial.sanity.is_empty() {
        let mut checked = Blocks::default();
        checked.push(accounts(trial));
        blocks.full(Block::Folded(
            "Cross-checks of two accounts".to_owned(),
            checked,
        ));
    }
    Section::new("belief", TITLE, blocks).unlisted()
}

/// Of a search.
pub(super) fn of_search(bracket: &Bracket, trials: &[&StoredTrial], tellers: Tellers) -> Section {
    let mut blocks = Blocks::default();
    let raised = belief::caveats(trials);
    if raised.is_empty() {
        blocks.paragraph(belief::no_caveat(trials.len()));
    }
    let caveat = |raised: &RaisedCaveat<'_>| {
        Text::strong(raised.id).then_plain(format!(" ({}): {}", raised.raised(), raised.text))
    };
    let broken: Vec<Text> = trials
        .iter()
        .flat_map(|stored| {
            let of_trial = broken_accounts(&stored.trial, tellers).into_iter();
            of_trial.map(|told| Text::from(format!("{}: ", stored.stem)).joined(told))
        })
        .collect();
    let all_agree = broken.is_empty();
    caveats_and_broken(&mut blocks, raised.iter().map(caveat).collect(), broken);
    blocks.push(deviations(&bracket.target));
    if let Some(lower_bound) = belief::lower_bound(bracket) {
        blocks.full(Block::Paragraph(lower_bound.into()));
    }
    let mut checked = Blocks::default();
    checked.push(List::of(what_was_checked(bracket, trials, all_agree)));
    blocks.full(Block::Folded("What was checked".to_owned(), checked));
    Section::new("belief", TITLE, blocks).unlisted()
}

fn caveats_and_broken(blocks: &mut Blocks, caveats: Vec<Text>, broken: Vec<Text>) {
    if !caveats.is_empty() {
        blocks.full(Block::Paragraph(CAVEATS.into()));
        blocks.push(List::of(caveats).hooked("caveats"));
    }
    blocks.push(List {
        bad: true,
        ..List::of(broken)
    });
}

/// Where the target leaves its contract by its own account: a server that does less may carry more.
pub(super) fn deviations(target: &Target) -> List {
    let told = target.deviations.iter().map(|(case, reason)| {
        Text::from(format!(
            "{} deviates from its contract: ",
            words::target(target)
        ))
        .joined(Text::code(case))
        .then_plain(format!(": {reason}"))
    });
    List::of(told)
}

/// What a target does not leave at its defaults: whoever compares two variants must see it.
pub(super) fn settings(target: &Target) -> List {
    let told = target.settings.iter().map(|setting| {
        Text::from(format!("{} is set up with: ", words::target(target))).then_plain(setting)
    });
    List::of(told)
}

/// The accounts of a trial that do not agree, and a ledger that does not add up.
fn broken_accounts(trial: &Trial, tellers: Tellers) -> Vec<Text> {
    let disagreeing = facts::disagreeing(trial).map(|check| {
        Text::code(&check.name).then_plain(format!(" does not agree: {}", facts::sanity(check)))
    });
    let gap = words::ledger_gap(trial, tellers).map(Text::strong);
    disagreeing.chain(gap).collect()
}

/// Quantities known from two parties or by two formulas.
fn accounts(trial: &Trial) -> Table {
    let mut table = Table::new(
        "Quantities known from two accounts",
        ["account", ">observed", ">consistent from", ">to", "agrees"],
    );
    for check in &trial.sanity {
        table.row([
            Text::code(&check.name),
            number(check.observed).into(),
            number(check.low).into(),
            number(check.high).into(),
            Text::yes_or_no(check.holds),
        ]);
    }
    table
}

fn what_was_checked(bracket: &Bracket, trials: &[&StoredTrial], all_agree: bool) -> Vec<Text> {
    let accounts = belief::accounts(trials).map(|accounts| {
        let outcome = if all_agree {
            "all agree"
        } else {
            "see above for those that do not agree"
        };
        Text::from("Cross-checks of two accounts (")
            .joined(Text::codes(accounts.names))
            .then_plain(format!(
                "): {} comparisons, {outcome}.",
                count(accounts.compared)
            ))
    });
    belief::client_room(trials)
        .into_iter()
        .chain(belief::audit(trials))
        .chain(belief::both_clocks(bracket, trials))
        .map(Text::from)
        .chain(accounts)
        .collect()
}
