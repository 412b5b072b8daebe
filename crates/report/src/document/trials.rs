//! Several trials without a search: what they have in common.

use plimsoll_core::record::LoadUnit;

use super::trial::{Charts, percentile_plot};
use super::{
    Answer, Blocks, Document, Figure, Section, Tellers, escalation, goals, search, side_by_side,
};
use crate::escalation::Escalated;
use crate::folder::StoredTrial;
use crate::words::count;
use crate::{loads, render};

pub(crate) fn document(trials: &[&StoredTrial], charts: Charts, tellers: Tellers) -> Document {
    let mut evidence = Blocks::default();
    if charts == Charts::OfThese {
        evidence.full(Figure {
            stem: render::CHART.to_owned(),
            hook: "chart-latency",
            alt: "Latency against the load".to_owned(),
            caption: "Latency from the schedule against the load. Each mark is a trial.".to_owned(),
        });
        evidence.full(percentile_plot());
    }
    if charts == Charts::OfThese
        && let Some(escalated) = Escalated::of_trials(trials)
    {
        evidence.push(escalation::of_trials(&escalated));
    }
    let mut tables = Blocks::default();
    // Cells of a matrix have the same load and differ in something else.
    if loads::differ_by_load_only(trials) {
        let unit = trials
            .first()
            .map_or_else(LoadUnit::default, |first| first.trial.load_unit);
        tables.full(search::loads_table(&loads::of_trials(trials), unit));
    }
    side_by_side(&mut tables, trials.iter().copied(), tellers);
    evidence.push(Section::new("evidence", "Trials side by side", tables).unlisted());
    evidence.push(goals::of_trials(trials.iter().copied()));
    let claim = format!("{} trials without a search", count(trials.len() as u64));
    Document {
        id: "trials".to_owned(),
        entry: "Trials".to_owned(),
        answer: Answer {
            title: "Trials".to_owned(),
            verdict: None,
            claim,
            bounds: String::new(),
            blocks: Blocks::default(),
            figure: None,
        },
        evidence,
    }
}
