//! The escalation: what the target does at each load, and the three loads that matter.

use plimsoll_core::record::Verdict;

use super::{Blocks, Figure, Section, Table, Text, Tone};
use crate::escalation::{Escalated, Rung};
use crate::render;
use crate::words::{self, UNKNOWN, count, maybe, ms, number, percent};

const MEANING: &str = "Offered: what was due each second. Goodput: what of it was done, right and in time. Failed: the share that was not complete. Latencies from the schedule. Where a load has several trials, medians of the valid ones; a load without any decides nothing.";

/// That of a search, whose answer names the three loads.
pub(crate) fn of_search(escalated: &Escalated) -> Section {
    section(evidence(escalated))
}

/// That of trials without a search, with the three loads.
pub(crate) fn of_trials(escalated: &Escalated) -> Section {
    let mut blocks = evidence(escalated);
    let facts = marks(escalated).map(|(name, value)| (name.to_owned(), value));
    blocks.push(Table::of_facts("The three loads that matter", facts).hooked("marks"));
    section(blocks)
}

fn section(mut blocks: Blocks) -> Section {
    blocks.note(MEANING);
    Section::new("escalation", "Escalation", blocks)
}

fn evidence(escalated: &Escalated) -> Blocks {
    let mut blocks = Blocks::default();
    if escalated.rungs.len() > 1 {
        blocks.full(Figure {
            stem: render::ESCALATION.to_owned(),
            hook: "chart-escalation",
            alt: format!(
                "Latency, goodput and failures against {}",
                escalated.unit.name()
            ),
            caption: "Latency, goodput and the share that failed, over the load.".to_owned(),
        });
    }
    blocks.push(table(escalated));
    blocks
}

fn table(escalated: &Escalated) -> Table {
    let load = format!(">{}", escalated.unit.name());
    let columns = [
        load.as_str(),
        "verdict",
        ">offered /s",
        ">goodput /s",
        ">failed",
        ">p50",
        ">p99",
        "broke first",
    ];
    let row = |rung: &Rung| -> Vec<Text> {
        let goodput = &rung.goodput;
        vec![
            count(rung.load.into()).into(),
            verdicts(rung),
            number(goodput.due_per_s).into(),
            number(goodput.good_per_s).into(),
            percent(goodput.failed_share).into(),
            maybe(rung.p50_ms, ms).into(),
            maybe(rung.p99_ms, ms).into(),
            words::plain(rung.first_broken.as_deref().unwrap_or_default()).into(),
        ]
    };
    let table = Table::new("What the target did at each load", columns).hooked("escalation");
    table.with_rows(escalated.rungs.iter().map(row))
}

/// Each verdict once, in order of appearance.
fn verdicts(rung: &Rung) -> Text {
    let mut each: Vec<Verdict> = Vec::new();
    for verdict in &rung.verdicts {
        if !each.contains(verdict) {
            each.push(*verdict);
        }
    }
    let tone = match each.as_slice() {
        [Verdict::Pass] => Tone::Good,
        [Verdict::Fail] => Tone::Bad,
        _ => Tone::Open,
    };
    let words: Vec<&str> = each.iter().map(|verdict| verdict.word()).collect();
    Text::toned(words.join(", "), tone)
}

/// The three loads, each in words.
fn marks(escalated: &Escalated) -> [(&'static str, String); 3] {
    let unit = escalated.unit;
    let beyond = escalated.beyond.as_ref();
    let limit = escalated.slo_limit.map(|load| words::load(load, unit));
    let knee = beyond.and_then(|beyond| beyond.knee.as_ref());
    let knee = knee.map(|knee| words::knee(knee, unit));
    let collapse = beyond.and_then(|beyond| words::collapse(beyond, unit));
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    [
        ("SLO limit", known(limit)),
        ("knee", known(knee)),
        ("collapse", known(collapse)),
    ]
}
