//! The outcome of the search beyond the load line in words.

use super::{Ended, Escalator, Known, sign};
use crate::search::conclusion::capitalised;
use crate::words::listed;

/// What is known and why the search ended, in one sentence.
pub(super) fn conclusion(search: &Escalator, known: &Known, ended: &Ended) -> String {
    let words = known_in_words(search, known);
    let main = match ended {
        Ended::Narrow => words,
        Ended::AtMaximum => format!(
            "{words}, the highest load that this search may try; raise its maximum (--max) to go on"
        ),
        Ended::Invalid(load, why) => format!(
            "{words}; trials at {load} stayed invalid ({why}), so what the target does there is unknown"
        ),
        Ended::TrialBudget => format!(
            "ended by the limit of {} trials: {words}",
            search.settings.max_trials
        ),
        Ended::TimeBudget => {
            format!("ended by the time budget, give more (--time-budget): {words}")
        }
        Ended::Interrupted => format!("interrupted: {words}"),
    };
    capitalised(&format!("{main}{}.", disagreements(search, known)))
}

fn known_in_words(search: &Escalator, known: &Known) -> String {
    match (known.collapse, known.highest_without, known.highest) {
        (Some((load, sign)), Some(without), _) => format!(
            "{load} is a collapse because {} ({}), and {without} is none ({})",
            sign.words(),
            of_trials(search, known, load),
            of_trials(search, known, without)
        ),
        (Some((load, sign)), None, _) => format!(
            "{load}, the lowest load known, is a collapse already because {}",
            sign.words()
        ),
        (None, _, Some(highest)) => format!("no collapse was found up to {highest}"),
        (None, _, None) => "nothing is known".to_owned(),
    }
}

/// `2 of 3 trials show one`.
fn of_trials(search: &Escalator, known: &Known, load: u32) -> String {
    let (with_sign, all) = signs(search, known, load);
    format!("{with_sign} of {all} trials show one")
}

/// How many of the trials at a load show a collapse, each taken alone, and how many there are.
fn signs(search: &Escalator, known: &Known, load: u32) -> (usize, usize) {
    let done = &search.loads[&load];
    let alone = |done: &&super::Done| sign(load, &[**done], known.knee).is_some();
    (done.iter().filter(alone).count(), done.len())
}

/// Loads at the edge whose trials disagree.
fn disagreements(search: &Escalator, known: &Known) -> String {
    let edges = known.highest_without.into_iter();
    let edges = edges.chain(known.collapse.map(|(load, _)| load));
    let disagree = |load: &u32| {
        let (with_sign, all) = signs(search, known, *load);
        with_sign > 0 && with_sign < all
    };
    let loads: Vec<u32> = edges.filter(disagree).collect();
    match loads.as_slice() {
        [] => String::new(),
        loads => format!(
            "; trials at {} disagree, so their median decides",
            listed(loads)
        ),
    }
}
