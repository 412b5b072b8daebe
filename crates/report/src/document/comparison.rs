//! A comparison: the conclusion with its numbers, then its evidence.

use plimsoll_core::record::{Comparison, Conclusion, CostAccount, Side, Target};
use plimsoll_document::Tellers;

use super::{
    Answer, Block, Blocks, Column, Detail, Document, Figure, List, Section, Table, Text, Tone,
    belief, trial,
};
use crate::facts::repeat::flags;
use crate::folder::StoredTrial;
use crate::render;
use crate::words::{self, UNKNOWN, comparison as say, count, maybe, us};

pub(crate) fn document(
    comparison: &Comparison,
    trials: &[StoredTrial],
    tellers: Tellers,
) -> Document {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    let tone = match comparison.conclusion {
        Conclusion::Better => Tone::Good,
        Conclusion::Worse => Tone::Bad,
        Conclusion::NoDifferenceShown => Tone::Open,
    };
    let answer = Answer {
        title: format!("{b} against {a}"),
        verdict: Some((say::conclusion(comparison.conclusion).to_owned(), tone)),
        claim: comparison.explanation.trim_end_matches('.').to_owned(),
        bounds: format!(
            "A is {}, B is {}",
            say::target(&comparison.a),
            say::target(&comparison.b)
        ),
        blocks: answer(comparison),
        figure: Some(Figure {
            stem: render::RATIOS.to_owned(),
            hook: "chart-ratios",
            alt: "Ratios B / A".to_owned(),
            caption: "Ratios B / A: each pair, then all pairs and the load lines with their intervals. An interval without 1 shows a difference.".to_owned(),
        }),
    };
    let mut evidence = Blocks::default();
    evidence.push(sides(comparison));
    let mut targets: Vec<&Target> = trials.iter().map(|stored| &stored.trial.target).collect();
    targets.sort_by_key(|target| &target.name);
    targets.dedup_by_key(|target| &target.name);
    let settings = targets.into_iter().map(belief::settings);
    settings.for_each(|told| evidence.full(told));
    if !trials.is_empty() {
        evidence.full(trial::timelines(trials));
    }
    let mut behind = Blocks::default();
    if !comparison.pairs.is_empty() {
        behind.push(pairs(comparison));
    }
    if !comparison.loads.is_empty() {
        behind.push(loads(comparison));
    }
    if !behind.is_empty() {
        evidence.push(Section::new("evidence", "Evidence", behind));
    }
    let parameters = trials.first().map(|stored| flags(&stored.trial, tellers));
    let command = Block::Command(say::command(comparison, parameters.as_deref()));
    evidence.full(Section::of("repeat", "How to repeat", command).unlisted());
    let started = format!("Started at {}.", comparison.started_at);
    evidence.full(Block::Note(started.into()));
    Document {
        id: "comparison".to_owned(),
        entry: "Comparison".to_owned(),
        answer,
        evidence,
    }
}

fn answer(comparison: &Comparison) -> Blocks {
    let mut blocks = Blocks::default();
    if comparison.interrupted {
        blocks.paragraph(say::INTERRUPTED);
    }
    let caption = format!(
        "Ratios that hold together with a confidence of {}",
        words::percent(comparison.confidence)
    );
    let mut table = Table::new(caption, ["B / A", ">ratio", ">interval", "shows"]);
    let cost = say::cost(comparison);
    for (name, ratio, less_is_better) in [
        (cost.as_str(), comparison.cost_ratio, true),
        ("load line", comparison.load_line_ratio, false),
    ] {
        table.row([
            name.to_owned(),
            maybe(ratio.map(|ratio| ratio.value), say::ratio),
            ratio.map_or_else(|| UNKNOWN.to_owned(), say::interval),
            say::shows(ratio, less_is_better).to_owned(),
        ]);
    }
    blocks.push(table);
    if let Some(carried) = &comparison.carried {
        blocks.paragraph(format!("{}.", say::carried(carried, comparison.load_unit)));
    }
    blocks.push(List::of(comparison.notes.iter().map(String::as_str)).hooked("caveats"));
    blocks
}

fn sides(comparison: &Comparison) -> Section {
    let load =
        |load: Option<u32>| load.map_or_else(|| UNKNOWN.to_owned(), |load| count(load.into()));
    let row = |(letter, side): (&str, &Side)| {
        let here = "this folder".to_owned();
        [
            letter.to_owned(),
            say::target(side),
            load(side.confirmed),
            load(side.first_fail),
            say::edge(side),
            maybe(side.cpu_us_per_session_second, us),
            maybe(side.core_us_per_session_second, us),
            count(side.trials.len() as u64),
            side.folder.clone().unwrap_or(here),
        ]
    };
    let unit = comparison.load_unit;
    let columns = ["side", "target", ">load line", ">first fail", ">edge"].map(Column::new);
    let cost = Column::new(&format!(">{}", words::cpu_cost(unit)));
    let further = [
        cost.short(words::cpu_cost_in_brief(unit)),
        Column::new(">of its cores"),
        Column::new(">trials"),
        Column::new("from").only(Detail::Full),
    ];
    let table = Table {
        caption: "A is the baseline".to_owned(),
        columns: columns.into_iter().chain(further).collect(),
        ..Table::default()
    };
    let rows = [("A", &comparison.a), ("B", &comparison.b)].map(row);
    let mut blocks = Blocks::default();
    blocks.push(table.with_rows(rows));
    blocks.full(List::of(say::search_ends(comparison)));
    Section::new("sides", "The two sides", blocks)
}

fn pairs(comparison: &Comparison) -> Table {
    let account = comparison.cost_account;
    let rows = comparison.pairs.iter().enumerate().map(|(index, pair)| {
        let files = [&pair.a_file, &pair.b_file].into_iter();
        let files = files.filter(|file| !file.is_empty()).map(String::as_str);
        let [of_a, of_b] = say::costs_of_pair(pair, account);
        [
            count(index as u64 + 1).into(),
            count(pair.sessions.into()).into(),
            if pair.b_first { "B, A" } else { "A, B" }.into(),
            of_a.into(),
            of_b.into(),
            maybe(say::of_pair(pair, account), say::ratio).into(),
            Text::codes(files),
            pair.left_out.clone().unwrap_or_default().into(),
        ]
    });
    let [a, b] = heads(account);
    let further = ["order", &a, &b, ">B / A"].map(Column::new);
    let columns = [
        Column::new(">pair"),
        Column::new(&format!(">{}", comparison.load_unit.name())),
    ];
    let last = [
        Column::new("files").only(Detail::Full),
        Column::new("left out because"),
    ];
    let table = Table {
        caption: format!(
            "{} of trials of both at the same load with the same seed, one right after the other",
            say::cost(comparison)
        ),
        columns: columns.into_iter().chain(further).chain(last).collect(),
        ..Table::default()
    };
    table.with_rows(rows)
}

fn loads(comparison: &Comparison) -> Table {
    let account = comparison.cost_account;
    let head = format!(">{}", comparison.load_unit.name());
    let [a, b] = heads(account);
    let caption = format!(
        "{} of trials that pass, of equal length",
        say::cost(comparison)
    );
    let rows = comparison.loads.iter().map(|load| {
        let [of_a, of_b] = say::costs_of_load(load, account);
        [
            count(load.sessions.into()),
            say::length(load.length).to_owned(),
            of_a,
            of_b,
        ]
    });
    Table::new(caption, [&head, "length", &a, &b]).with_rows(rows)
}

/// The heads of the cost columns. Those for the core account say so.
fn heads(account: CostAccount) -> [String; 2] {
    ["A", "B"].map(|side| match account {
        CostAccount::Charged => format!(">{side}"),
        CostAccount::Core => format!(">cores of {side}"),
    })
}
