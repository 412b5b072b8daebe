//! The outcome of a search in words.

use std::collections::BTreeMap;

use super::bracket::Bracket;
use super::tally::Tally;
use super::{Ended, Settings, grid};

type Tallies = BTreeMap<u32, Tally>;

/// What is known and why the search ended, in one sentence.
pub(super) fn sentence(
    settings: &Settings,
    tallies: &Tallies,
    bracket: &Bracket,
    ended: Ended,
) -> String {
    let known = known(tallies, bracket);
    let main = match ended {
        Ended::Narrow => known,
        Ended::AtMaximum => format!(
            "{known}, and {} is the highest load that this search may try; raise its maximum to find the limit",
            settings.max
        ),
        Ended::OutOfReach => out_of_reach(tallies, bracket, &known),
        Ended::AtMinimum => format!(
            "{known}, and {} is the lowest load that this search may try; lower its minimum or give the target more",
            settings.min
        ),
        Ended::Unmeasurable => unmeasurable(tallies, bracket, &known),
        Ended::TrialBudget => format!(
            "ended by the limit of {} trials before the answer was as narrow and as sure as asked: {known}",
            settings.max_trials
        ),
        Ended::TimeBudget => format!(
            "ended by the time budget before the answer was as narrow and as sure as asked: {known}"
        ),
        Ended::Interrupted => {
            format!("interrupted before the answer was as narrow and as sure as asked: {known}")
        }
    };
    capitalised(&format!("{main}{}.", doubts(bracket)))
}

/// The two sides of the bracket, with the trials behind them.
fn known(tallies: &Tallies, bracket: &Bracket) -> String {
    let passes = |load: u32| {
        let tally = &tallies[&load];
        format!("{load} passes ({} of {} trials)", tally.pass, tally.valid())
    };
    let fails = |load: u32| {
        let tally = &tallies[&load];
        format!("{load} fails ({} of {} trials)", tally.fail, tally.valid())
    };
    match (bracket.confirmed, bracket.first_fail) {
        (Some(pass), Some(fail)) => format!(
            "{} and {}, so the load line is {pass}, with {:.1} % to the first fail",
            passes(pass),
            fails(fail),
            grid::width(pass, fail) * 100.0
        ),
        (Some(pass), None) => format!(
            "the load line is at least {pass}: {} and no load fails",
            passes(pass)
        ),
        (None, Some(fail)) => format!("no load passes: {}", fails(fail)),
        (None, None) if bracket.any_valid => "no load passes or fails for sure".to_owned(),
        (None, None) => {
            let trials: u32 = tallies.values().map(|tally| tally.invalid).sum();
            format!("nothing is known: none of {trials} trials was valid")
        }
    }
}

fn out_of_reach(tallies: &Tallies, bracket: &Bracket, known: &str) -> String {
    let Some(load) = bracket.out_of_reach else {
        return known.to_owned();
    };
    format!(
        "{known}, but at {load} the client or its machine ran out ({} invalid trials), so what the target carries beyond is not known; give the client more",
        tallies[&load].invalid
    )
}

fn unmeasurable(tallies: &Tallies, bracket: &Bracket, known: &str) -> String {
    let spent = tallies
        .iter()
        .filter(|(_, tally)| tally.spent())
        .map(|(load, _)| *load);
    // Only what stands between the answer and a better one.
    let spent: Vec<u32> = spent
        .filter(|load| bracket.confirmed.is_none_or(|low| *load > low))
        .filter(|load| bracket.first_fail.is_none_or(|high| *load < high))
        .collect();
    if !bracket.any_valid || spent.is_empty() {
        return known.to_owned();
    }
    format!("{known}, and trials at {} stayed invalid", listed(&spent))
}

/// What a reader should know besides.
fn doubts(bracket: &Bracket) -> String {
    let mut words = String::new();
    match bracket.borderline.as_slice() {
        [] => {}
        [load] => words += &format!("; trials at {load} disagree (borderline)"),
        loads => words += &format!("; trials at {} disagree (borderline)", listed(loads)),
    }
    if let Some(load) = bracket.pass_above_fail {
        words += &format!("; {load} passes although a lower load fails, so it does not count");
    }
    words
}

fn listed(loads: &[u32]) -> String {
    let words: Vec<String> = loads.iter().map(u32::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.join(""),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().collect::<String>() + chars.as_str(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_well() {
        assert_eq!(listed(&[1]), "1");
        assert_eq!(listed(&[1, 2, 3]), "1, 2 and 3");
    }

    #[test]
    fn sentences_begin_with_a_capital() {
        assert_eq!(capitalised("no load"), "No load");
        assert_eq!(capitalised(""), "");
    }
}
