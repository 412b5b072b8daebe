//! The block for a comparison.

use plimsoll_core::record::{Comparison, Conclusion, CostAccount, Verdict};

use super::table::{Align, Table};
use super::{Paint, join};
use crate::words::{self, comparison as say, count, maybe, plain, us};

/// The block for a comparison: the conclusion, the ratios with their intervals, and the pairs or loads behind them.
#[must_use]
pub fn comparison(comparison: &Comparison, color: bool) -> String {
    let paint = Paint { color };
    let word = comparison.conclusion.word().to_uppercase();
    let painted = match comparison.conclusion {
        Conclusion::Better => paint.verdict(Verdict::Pass, &word),
        Conclusion::Worse => paint.verdict(Verdict::Fail, &word),
        Conclusion::NoDifferenceShown => paint.bold(&word),
    };
    let mut lines = vec![
        format!("{painted}  {}", paint.bold(&plain(&comparison.explanation))),
        format!(
            "A is {}, B is {}; the intervals hold together with a confidence of {}",
            plain(&comparison.a.name),
            plain(&comparison.b.name),
            words::percent(comparison.confidence)
        ),
    ];
    let unit = comparison.load_unit;
    let carried = comparison.carried.as_ref();
    lines.extend(carried.map(|carried| say::carried(carried, unit)));
    if comparison.interrupted {
        lines.push("interrupted: this is the state at that point".to_owned());
    }
    for note in &comparison.notes {
        lines.push(plain(note));
    }
    lines.push(String::new());
    lines.extend(sides(comparison).lines());
    if !comparison.pairs.is_empty() {
        lines.push(String::new());
        lines.extend(pairs(comparison).lines());
    }
    if !comparison.loads.is_empty() {
        lines.push(String::new());
        lines.extend(loads(comparison).lines());
    }
    join(&lines)
}

fn sides(comparison: &Comparison) -> Table {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("target", Align::Left),
        ("load line", Align::Right),
        ("first fail", Align::Right),
        ("edge", Align::Right),
        (words::cpu_cost_in_brief(comparison.load_unit), Align::Right),
        ("its cores", Align::Right),
        ("trials", Align::Right),
    ]);
    let load = |load: Option<u32>| {
        load.map_or_else(|| words::UNKNOWN.to_owned(), |load| count(load.into()))
    };
    for (letter, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        table.row(vec![
            letter.into(),
            plain(&side.name).into(),
            load(side.confirmed).into(),
            load(side.first_fail).into(),
            say::edge(side).into(),
            maybe(side.cpu_us_per_session_second, us).into(),
            maybe(side.core_us_per_session_second, us).into(),
            count(side.trials.len() as u64).into(),
        ]);
    }
    table
}

fn pairs(comparison: &Comparison) -> Table {
    let account = comparison.cost_account;
    let [a, b] = heads(account);
    let mut table = Table::new(&[
        ("pair", Align::Right),
        (comparison.load_unit.name(), Align::Right),
        ("order", Align::Left),
        (&a, Align::Right),
        (&b, Align::Right),
        ("B / A", Align::Right),
        ("left out because", Align::Left),
    ]);
    for (index, pair) in comparison.pairs.iter().enumerate() {
        let [of_a, of_b] = say::costs_of_pair(pair, account);
        table.row(vec![
            count(index as u64 + 1).into(),
            count(pair.sessions.into()).into(),
            if pair.b_first { "B, A" } else { "A, B" }.into(),
            of_a.into(),
            of_b.into(),
            maybe(say::of_pair(pair, account), say::ratio).into(),
            pair.left_out
                .as_deref()
                .map(plain)
                .unwrap_or_default()
                .into(),
        ]);
    }
    table
}

fn loads(comparison: &Comparison) -> Table {
    let account = comparison.cost_account;
    let [a, b] = heads(account);
    let mut table = Table::new(&[
        (comparison.load_unit.name(), Align::Right),
        ("length", Align::Left),
        (&a, Align::Left),
        (&b, Align::Left),
    ]);
    for load in &comparison.loads {
        let [of_a, of_b] = say::costs_of_load(load, account);
        table.row(vec![
            count(load.sessions.into()).into(),
            say::length(load.length).into(),
            of_a.into(),
            of_b.into(),
        ]);
    }
    table
}

/// The heads of the cost columns. Those for the core account say so.
fn heads(account: CostAccount) -> [String; 2] {
    ["A", "B"].map(|side| match account {
        CostAccount::Charged => side.to_owned(),
        CostAccount::Core => format!("cores of {side}"),
    })
}
