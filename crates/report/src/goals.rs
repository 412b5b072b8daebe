//! The goals that results were measured with.

use plimsoll_core::record::{Bracket, Goals, Trial};

use crate::folder::Results;
use crate::words;

/// What became of the goals in one answer of a result folder: a search, or a trial that stands for itself.
#[derive(Debug, Clone)]
pub struct GoalsOf<'a> {
    /// The target.
    pub target: String,
    /// The workload, and its test if it has several.
    pub scenario: String,
    /// `None` if no goals were set.
    pub goals: Option<&'a Goals>,
}

/// The answers of a result folder: its searches, otherwise its trials.
#[must_use]
pub fn answers(results: &Results) -> Vec<GoalsOf<'_>> {
    let ranked = results.ranking.iter().flat_map(|ranking| &ranking.rows);
    let ranked = ranked.map(|row| &row.bracket);
    let brackets = ranked
        .chain(&results.bracket)
        .chain(&results.further_brackets);
    let found: Vec<_> = brackets
        .map(|bracket| of_search(bracket, results))
        .collect();
    if !found.is_empty() {
        return found;
    }
    let trials = results.other_trials();
    trials.map(|stored| of_trial(&stored.trial)).collect()
}

fn of_search<'a>(bracket: &'a Bracket, results: &Results) -> GoalsOf<'a> {
    let mut trials = results.trials.iter();
    let trial = trials.find(|stored| words::is_of_search(bracket, stored));
    let test = trial.and_then(|stored| stored.trial.word_parameter("test"));
    GoalsOf {
        target: words::target(&bracket.target),
        scenario: scenario(&bracket.workload, test),
        goals: bracket.goals.as_ref(),
    }
}

fn of_trial(trial: &Trial) -> GoalsOf<'_> {
    GoalsOf {
        target: words::target(&trial.target),
        scenario: scenario(&trial.workload, trial.word_parameter("test")),
        goals: trial.goals.as_ref(),
    }
}

fn scenario(workload: &str, test: Option<&str>) -> String {
    match test {
        Some(test) => format!("{workload} {test}"),
        None => workload.to_owned(),
    }
}

/// Every record of a result folder that may have goals, by the name of its file or target, with the SHA-256 of its goals
/// file; `None` if it was measured without one.
#[must_use]
pub fn hashes(results: &Results) -> Vec<(String, Option<&str>)> {
    fn hash(goals: &Option<Goals>) -> Option<&str> {
        goals.as_ref().map(|goals| goals.sha256.as_str())
    }
    let trials = results.trials.iter();
    let trials = trials.map(|stored| (format!("{}.json", stored.stem), hash(&stored.trial.goals)));
    let brackets = results.bracket.iter().chain(&results.further_brackets);
    let brackets = brackets.map(|bracket| {
        (
            format!("the search by {}", bracket.slo),
            hash(&bracket.goals),
        )
    });
    let ranked = results.ranking.iter().flat_map(|ranking| &ranking.rows);
    let ranked = ranked.map(|row| (row.folder.clone(), hash(&row.bracket.goals)));
    trials.chain(brackets).chain(ranked).collect()
}
