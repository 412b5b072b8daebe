//! A comparison: the conclusion with its numbers, then its evidence.

use plimsoll_core::record::{Comparison, Conclusion, Side};

use crate::folder::StoredTrial;
use crate::html::Page;
use crate::html::parts::{self, Cell, Contents, Levels, part};
use crate::html::write::Html;
use crate::render;
use crate::words::{self, comparison as say, count, maybe, us};

/// Which two are compared, and the conclusion.
pub(in crate::html) fn title(comparison: &Comparison) -> String {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    format!("{b} against {a}: {}", comparison.conclusion.word())
}

pub(in crate::html) fn write(
    html: &mut Html,
    contents: &mut Contents,
    page: &Page<'_>,
    comparison: &Comparison,
    level: Levels,
) {
    html.inside("article", &[("aria-labelledby", "comparison")], |html| {
        contents.push("comparison", "Comparison");
        html.inside("div", &[("class", "answer")], |html| {
            html.inside("div", &[], |html| answer(html, comparison, level));
            if let Some(svg) = page.chart(render::RATIOS) {
                let caption = "Ratios B / A: each pair, then all pairs and the load lines with their intervals. An interval without 1 shows a difference.";
                parts::figure(html, "chart-ratios", svg, caption);
            }
        });
        let title = ("comparison-sides", "The two sides", level.part);
        part(html, contents, title, |html| sides(html, comparison));
        let trials: Vec<&StoredTrial> = page.results.trials.iter().collect();
        if !trials.is_empty() {
            let title = ("comparison-timeline", "Second by second", level.part);
            part(html, contents, title, |html| page.timelines.write(html, &trials));
        }
        html.inside("div", &[("data-test", "evidence")], |html| {
            if !comparison.pairs.is_empty() {
                let title = ("comparison-pairs", "Pairs", level.part);
                part(html, contents, title, |html| pairs(html, comparison));
            }
            if !comparison.loads.is_empty() {
                let title = ("comparison-loads", "Loads in common", level.part);
                part(html, contents, title, |html| loads(html, comparison));
            }
        });
        let title = ("comparison-repeat", "How to repeat", level.part);
        parts::unlisted_part(html, title, |html| {
            let ws = say::ws(&page.results.trials);
            parts::command(html, &say::command(comparison, ws));
        });
        parts::note(html, &format!("Started at {}.", comparison.started_at));
    });
}

fn answer(html: &mut Html, comparison: &Comparison, level: Levels) {
    let good = match comparison.conclusion {
        Conclusion::Better => Some(true),
        Conclusion::Worse => Some(false),
        Conclusion::NoDifferenceShown => None,
    };
    parts::pill(html, good, say::conclusion(comparison.conclusion));
    let heading = [("id", "comparison"), ("data-test", "claim")];
    html.element(level.result, &heading, &title(comparison));
    let explanation = comparison.explanation.trim_end_matches('.');
    parts::paragraph(html, &format!("{explanation}."));
    if comparison.interrupted {
        parts::paragraph(html, say::INTERRUPTED);
    }
    let cost = say::cost(comparison);
    let rows = [
        (cost.as_str(), comparison.cost_ratio, true),
        ("load line", comparison.load_line_ratio, false),
    ]
    .map(|(name, ratio, less_is_better)| {
        vec![
            Cell::from(name),
            Cell::Text(maybe(ratio.map(|ratio| ratio.value), say::ratio)),
            Cell::Text(ratio.map_or_else(|| words::UNKNOWN.to_owned(), say::interval)),
            Cell::from(say::shows(ratio, less_is_better)),
        ]
    });
    let caption = format!(
        "Ratios that hold together with a confidence of {}",
        words::percent(comparison.confidence)
    );
    parts::table(
        html,
        &caption,
        &["B / A", ">ratio", ">interval", "shows"],
        rows,
    );
    if let Some(carried) = &comparison.carried {
        parts::paragraph(
            html,
            &format!("{}.", say::carried(carried, comparison.load_unit)),
        );
    }
    parts::list(html, &[("data-test", "caveats")], &comparison.notes);
}

fn sides(html: &mut Html, comparison: &Comparison) {
    let load = |load: Option<u32>| {
        load.map_or_else(|| words::UNKNOWN.to_owned(), |load| count(load.into()))
    };
    let row = |(letter, side): (&str, &Side)| {
        [
            letter.to_owned(),
            side.name.clone(),
            load(side.confirmed),
            load(side.first_fail),
            say::edge(side),
            maybe(side.cpu_us_per_session_second, us),
            maybe(side.core_us_per_session_second, us),
            count(side.trials.len() as u64),
            side.folder
                .clone()
                .unwrap_or_else(|| "this folder".to_owned()),
        ]
        .map(Cell::Text)
        .into()
    };
    let cost = format!(">{}", words::cpu_cost(comparison.load_unit));
    let columns = [
        "side",
        "target",
        ">load line",
        ">first fail",
        ">edge",
        &cost,
        ">of its cores",
        ">trials",
        "from",
    ];
    let rows = [("A", &comparison.a), ("B", &comparison.b)].map(row);
    parts::table(html, "A is the baseline", &columns, rows);
    parts::list(html, &[], &say::search_ends(comparison));
}

fn pairs(html: &mut Html, comparison: &Comparison) {
    let account = comparison.cost_account;
    let rows = comparison.pairs.iter().enumerate().map(|(index, pair)| {
        let files = [&pair.a_file, &pair.b_file].into_iter();
        let files: Vec<_> = files.filter(|file| !file.is_empty()).cloned().collect();
        let [of_a, of_b] = say::costs_of_pair(pair, account);
        [
            count(index as u64 + 1),
            count(pair.sessions.into()),
            if pair.b_first { "B, A" } else { "A, B" }.to_owned(),
            of_a,
            of_b,
            maybe(say::of_pair(pair, account), say::ratio),
            files.join(", "),
            pair.left_out.clone().unwrap_or_default(),
        ]
        .map(Cell::Text)
        .into()
    });
    let head = format!(">{}", comparison.load_unit.name());
    let columns = [
        ">pair",
        &head,
        "order",
        ">A",
        ">B",
        ">B / A",
        "files",
        "left out because",
    ];
    let caption = format!(
        "{} of trials of both at the same load with the same seed, one right after the other",
        say::cost(comparison)
    );
    parts::table(html, &caption, &columns, rows);
}

fn loads(html: &mut Html, comparison: &Comparison) {
    let rows = comparison.loads.iter().map(|load| {
        let [of_a, of_b] = say::costs_of_load(load, comparison.cost_account);
        [
            count(load.sessions.into()),
            say::length(load.length).to_owned(),
            of_a,
            of_b,
        ]
        .map(Cell::Text)
        .into()
    });
    let caption = format!(
        "{} of trials that pass, of equal length",
        say::cost(comparison)
    );
    let head = format!(">{}", comparison.load_unit.name());
    parts::table(html, &caption, &[&head, "length", ">A", ">B"], rows);
}
