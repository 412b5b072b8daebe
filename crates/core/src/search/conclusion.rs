//! The outcome of a search in words.

use std::collections::BTreeMap;

use super::knowledge::Knowledge;
use super::tally::Tally;
use super::{Ended, Settings};
use crate::words::listed;

type Tallies = BTreeMap<u32, Tally>;

/// What is known and why the search ended, in one sentence.
pub(super) fn sentence(
    settings: &Settings,
    tallies: &Tallies,
    known: &Knowledge,
    ended: Ended,
) -> String {
    let words = known_in_words(settings, tallies, known);
    let main = match ended {
        Ended::Narrow => words,
        Ended::AtMaximum => format!(
            "{words}, and {} is the highest load that this search may try; raise its maximum to find the limit",
            settings.max
        ),
        Ended::OutOfReach => out_of_reach(tallies, known, &words),
        Ended::AtMinimum => at_minimum(settings, &words),
        Ended::Unmeasurable => unmeasurable(tallies, known, &words),
        Ended::TrialBudget => format!(
            "ended by the limit of {} trials before the answer reached the requested width and confidence: {words}",
            settings.max_trials
        ),
        Ended::TimeBudget => format!(
            "ended by the time budget before the answer reached the requested width and confidence: {words}"
        ),
        Ended::Interrupted => format!(
            "interrupted before the answer reached the requested width and confidence: {words}"
        ),
    };
    capitalised(&format!("{main}{}.", doubts(known)))
}

/// The two sides of the bracket with the trials behind them, and the interval.
fn known_in_words(settings: &Settings, tallies: &Tallies, known: &Knowledge) -> String {
    let passes = |load: u32| {
        let tally = &tallies[&load];
        let full = tally.passed + tally.failed;
        format!("{load} passes ({} of {full} full trials)", tally.passed)
    };
    let fails = |load: u32| {
        let tally = &tallies[&load];
        match tally.passed + tally.failed {
            0 => format!(
                "{load} fails ({} of {} short trials)",
                tally.short_failed,
                tally.short_passed + tally.short_failed
            ),
            full => format!("{load} fails ({} of {full} full trials)", tally.failed),
        }
    };
    let sides = match (known.confirmed, known.first_fail) {
        (Some(pass), Some(fail)) => format!(
            "{} and {}, so the load line is {pass}",
            passes(pass),
            fails(fail)
        ),
        (Some(pass), None) => format!(
            "the load line is at least {pass}: {} and no load surely fails",
            passes(pass)
        ),
        (None, Some(fail)) if known.highest_pass.is_none() => {
            format!("no load passes: {}", fails(fail))
        }
        (None, Some(fail)) if !known.any_full_pass => {
            format!("no full trial passed: {}", fails(fail))
        }
        (None, Some(fail)) => format!("no load surely passes: {}", fails(fail)),
        (None, None) if known.valid_loads.is_some() => "no load surely passes or fails".to_owned(),
        (None, None) => {
            return nothing_known(tallies);
        }
    };
    let interval = known
        .edge
        .and_then(|edge| Some((edge.low, edge.high?)))
        .map(|(low, high)| {
            format!(
                "; the edge lies between {low:.0} and {high:.0} ({:.0} % confidence)",
                settings.confidence * 100.0
            )
        });
    sides + &interval.unwrap_or_default()
}

fn nothing_known(tallies: &Tallies) -> String {
    let invalid: u32 = tallies.values().map(|tally| tally.invalid).sum();
    let valid: u32 = tallies.values().map(Tally::valid).sum();
    if valid == 0 {
        format!("nothing is known: none of {invalid} trials was valid")
    } else {
        format!(
            "nothing is known: {invalid} of {} trials were invalid, and where the client ran out, the failures of the other trials may be the client's own",
            invalid + valid
        )
    }
}

/// Nothing lower can be tried, because there is no lower load or because no trial could give a verdict there.
fn at_minimum(settings: &Settings, words: &str) -> String {
    match settings.min {
        1 => format!("{words}, and no load is lower; give the target more vCPU"),
        least => format!(
            "{words}, and {least} is the least load at which this profile can give a verdict; measure longer to try lower loads (--profile standard, or --measured), or give the target more vCPU"
        ),
    }
}

fn out_of_reach(tallies: &Tallies, known: &Knowledge, words: &str) -> String {
    let Some(load) = known.out_of_reach else {
        return words.to_owned();
    };
    format!(
        "{words}, but at {load} the client or its machine ran out ({} invalid trials), so what the target carries above that is unknown; give the client more cores (--client-cpus) or use a larger machine",
        tallies[&load].invalid
    )
}

fn unmeasurable(tallies: &Tallies, known: &Knowledge, words: &str) -> String {
    // Only loads between the answer and a better one.
    let between = |load: u32| {
        known.confirmed.is_none_or(|low| load > low)
            && known.first_fail.is_none_or(|high| load < high)
    };
    let spent: Vec<u32> = tallies
        .iter()
        .filter(|(load, tally)| tally.spent(known.ran_out_surplus) && between(**load))
        .map(|(load, _)| *load)
        .collect();
    if known.valid_loads.is_none() || spent.is_empty() {
        return words.to_owned();
    }
    format!("{words}, and trials at {} stayed invalid", listed(&spent))
}

/// What else the reader should know.
fn doubts(known: &Knowledge) -> String {
    let mut words = String::new();
    match known.borderline.as_slice() {
        [] => {}
        [load] => words += &format!("; trials at {load} disagree (borderline)"),
        loads => words += &format!("; trials at {} disagree (borderline)", listed(loads)),
    }
    if let Some(load) = known.pass_above_fail {
        words += &format!("; {load} passes although a lower load fails, so it does not count");
    }
    words
}

pub(super) fn capitalised(text: &str) -> String {
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
