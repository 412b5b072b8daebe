//! The section of a comparison.

use plimsoll_core::record::{Comparison, WsRecord};

use super::{Page, Table, code, escape};
use crate::words::{self, comparison as say, count, maybe, us};

/// The conclusion with its numbers, then the evidence, then how to repeat it.
pub(super) fn section(page: &mut Page, comparison: &Comparison, ws: Option<&WsRecord>) {
    let (a, b) = (&comparison.a, &comparison.b);
    page.heading(
        1,
        &format!("{} against {}", escape(&b.name), escape(&a.name)),
    );
    let conclusion = say::conclusion(comparison.conclusion);
    let interrupted = if comparison.interrupted {
        format!(" {}", say::INTERRUPTED)
    } else {
        String::new()
    };
    page.paragraph(&format!(
        "**{conclusion}.** {}.{interrupted}",
        escape(comparison.explanation.trim_end_matches('.'))
    ));
    ratios(page, comparison);
    if let Some(carried) = &comparison.carried {
        page.paragraph(&format!("{}.", say::carried(carried, comparison.load_unit)));
    }
    page.list(
        &comparison
            .notes
            .iter()
            .map(|note| escape(note))
            .collect::<Vec<_>>(),
    );
    page.heading(2, "The two sides");
    sides(page, comparison);
    if !comparison.pairs.is_empty() {
        page.heading(2, "Pairs");
        pairs(page, comparison);
    }
    if !comparison.loads.is_empty() {
        page.heading(2, "Loads in common");
        loads(page, comparison);
    }
    page.heading(2, "How to repeat");
    repeat(page, comparison, ws);
}

fn ratios(page: &mut Page, comparison: &Comparison) {
    let mut table = Table::new(&["B / A", ">ratio", ">interval", "shows"]);
    for (name, ratio, less_is_better) in [
        (say::cost(comparison).as_str(), comparison.cost_ratio, true),
        ("load line", comparison.load_line_ratio, false),
    ] {
        table.row([
            name,
            &maybe(ratio.map(|ratio| ratio.value), say::ratio),
            &ratio.map_or_else(|| words::UNKNOWN.to_owned(), say::interval),
            say::shows(ratio, less_is_better),
        ]);
    }
    page.table(&table);
    page.paragraph(&format!(
        "A is {}, B is {}. The intervals hold together with a confidence of {}; an interval without 1 shows a difference.",
        escape(&comparison.a.name),
        escape(&comparison.b.name),
        words::percent(comparison.confidence)
    ));
}

fn sides(page: &mut Page, comparison: &Comparison) {
    let mut table = Table::new(&[
        "",
        "target",
        ">load line",
        ">first fail",
        ">edge",
        &format!(">{}", words::cpu_cost_in_brief(comparison.load_unit)),
        ">of its cores",
        ">trials",
        "from",
    ]);
    let load = |load: Option<u32>| {
        load.map_or_else(|| words::UNKNOWN.to_owned(), |load| count(load.into()))
    };
    for (letter, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let from = side.folder.as_ref().map_or_else(
            || "this folder".to_owned(),
            |folder| format!("`{}`", code(folder)),
        );
        table.row([
            letter.to_owned(),
            escape(&side.name),
            load(side.confirmed),
            load(side.first_fail),
            say::edge(side),
            maybe(side.cpu_us_per_session_second, us),
            maybe(side.core_us_per_session_second, us),
            count(side.trials.len() as u64),
            from,
        ]);
    }
    page.table(&table);
    let ends: Vec<String> = say::search_ends(comparison)
        .iter()
        .map(|end| escape(end))
        .collect();
    page.list(&ends);
}

fn pairs(page: &mut Page, comparison: &Comparison) {
    let account = comparison.cost_account;
    page.paragraph(&format!(
        "Trials of both at the same load with the same seed, one right after the other; {}.",
        say::cost(comparison)
    ));
    let mut table = Table::new(&[
        ">pair",
        &format!(">{}", comparison.load_unit.name()),
        "order",
        ">A",
        ">B",
        ">B / A",
        "files",
        "left out because",
    ]);
    for (index, pair) in comparison.pairs.iter().enumerate() {
        let files: Vec<String> = [&pair.a_file, &pair.b_file]
            .into_iter()
            .filter(|file| !file.is_empty())
            .map(|file| format!("`{}`", code(file)))
            .collect();
        let [of_a, of_b] = say::costs_of_pair(pair, account);
        table.row([
            count(index as u64 + 1),
            count(pair.sessions.into()),
            if pair.b_first { "B, A" } else { "A, B" }.to_owned(),
            of_a,
            of_b,
            maybe(say::of_pair(pair, account), say::ratio),
            files.join(", "),
            pair.left_out.as_deref().map(escape).unwrap_or_default(),
        ]);
    }
    page.table(&table);
}

fn loads(page: &mut Page, comparison: &Comparison) {
    page.paragraph(&format!(
        "Trials that pass, of equal length; {}.",
        say::cost(comparison)
    ));
    let head = format!(">{}", comparison.load_unit.name());
    let mut table = Table::new(&[&head, "length", ">A", ">B"]);
    for load in &comparison.loads {
        let [of_a, of_b] = say::costs_of_load(load, comparison.cost_account);
        table.row([
            count(load.sessions.into()),
            say::length(load.length).to_owned(),
            of_a,
            of_b,
        ]);
    }
    page.table(&table);
}

fn repeat(page: &mut Page, comparison: &Comparison, ws: Option<&WsRecord>) {
    page.code_block(&say::command(comparison, ws));
    page.paragraph(&format!("Started at {}.", escape(&comparison.started_at)));
}
