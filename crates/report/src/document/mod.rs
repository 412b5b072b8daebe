//! A result tells itself once, as a [`Document`]: a heading with its answer, then blocks of text, facts, tables and
//! figures. The writers (page, summary, step summary, terminal) know blocks only, so they all say the same.
//!
//! A block has a [`Detail`]: the terminal and the step summary show what is brief, the summary and the page what is
//! full.
//!
//! - `blocks`: what a document is made of;
//! - one module per kind of result: `trial`, `search`, `comparison`, `ranking`, `check`, `calibration`;
//! - `escalation`: what a target does at each load, in a search and without one;
//! - `goals`: what became of the goals that were set before;
//! - `account`: the accounts of a trial in lines;
//! - `belief`: whether you can believe a trial or a search.
//!
//! What only one workload has, its [`Tell`](plimsoll_document::Tell) says.

mod account;
mod belief;
pub(crate) mod calibration;
pub(crate) mod check;
pub(crate) mod comparison;
pub(crate) mod escalation;
pub(crate) mod goals;
pub(crate) mod ranking;
pub(crate) mod search;
pub(crate) mod trial;
pub(crate) mod trials;

pub(crate) use plimsoll_document::{
    Answer, Block, Blocks, Column, Detail, Document, Fact, Figure, List, Section, Shown, Span,
    Table, Tellers, Text, Tone,
};

use plimsoll_document::Named;

use crate::folder::{Results, StoredTrial};

/// A document of a folder.
pub(crate) enum Part {
    /// A result.
    Result(Document),
    /// A trial among several outside of searches. A page may have no room for all of them.
    OneOfSeveral(Document),
}

impl Part {
    pub(crate) fn document(&self) -> &Document {
        match self {
            Self::Result(document) | Self::OneOfSeveral(document) => document,
        }
    }
}

/// All results of a folder, the most conclusive first.
pub(crate) fn of(results: &Results) -> Vec<Part> {
    let tellers = results.tellers;
    let mut parts = Vec::new();
    let ranking = results.ranking.as_ref().map(ranking::document);
    let comparison = results.comparison.as_ref();
    let comparison = comparison.map(|found| comparison::document(found, &results.trials, tellers));
    parts.extend(ranking.into_iter().chain(comparison).map(Part::Result));
    let searches = results.searches();
    for (number, view) in searches.iter().enumerate() {
        parts.push(Part::Result(search::document(view, number, tellers)));
    }
    let others: Vec<_> = results.other_trials().collect();
    let charts = if searches.is_empty() {
        trial::Charts::OfThese
    } else {
        trial::Charts::OfOthers
    };
    match others.as_slice() {
        [] => {}
        [only] => parts.push(Part::Result(trial::document(only, charts, tellers))),
        several => {
            parts.push(Part::Result(trials::document(several, charts, tellers)));
            parts.extend(several.iter().map(|stored| {
                Part::OneOfSeveral(trial::document(stored, trial::Charts::OfOthers, tellers))
            }));
        }
    }
    let check = results.check.as_ref().map(check::document);
    let calibration = results.calibration.as_ref().map(calibration::document);
    let costs = results.client_costs.iter();
    let costs = costs.map(calibration::client_costs);
    let fleet = results.fleet.as_ref().map(calibration::of_fleet);
    let inference = results.inference.as_ref().map(calibration::of_inference);
    parts.extend(
        check
            .into_iter()
            .chain(calibration)
            .chain(costs)
            .chain(fleet)
            .chain(inference)
            .map(Part::Result),
    );
    parts
}

/// What their workloads say of these trials side by side.
pub(crate) fn side_by_side<'a>(
    blocks: &mut Blocks,
    trials: impl IntoIterator<Item = &'a StoredTrial>,
    tellers: Tellers,
) {
    let named = |stored: &'a StoredTrial| Named {
        stem: &stored.stem,
        trial: &stored.trial,
    };
    let trials: Vec<_> = trials.into_iter().map(named).collect();
    tellers.side_by_side(blocks, &trials);
}
