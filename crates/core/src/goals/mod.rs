//! Goals that a user sets before a measurement: read from a file, and compared with what was measured.
//!
//! A gate decides whether a trial passes. A goal decides nothing: it says what somebody wants of a target, and the record
//! says what became of it. The record has the hash of the file, so nobody can make the goals fit the results afterwards.

mod reading;

use serde::Deserialize;

use crate::profile::Length;
use crate::record::{Bound, Bracket, Finding, Goal, Goals, Outcome, Trial, Verdict};
use crate::slo::OwnMetric;
use reading::Reading;

/// The most goals of a file.
const GOALS_MAX: usize = 100;

/// The goals of a file.
#[derive(Debug, Clone)]
pub struct GoalsFile {
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    goals: Vec<(Goal, Reading)>,
}

/// Why a goals file was rejected: one line that names the problem and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum GoalsError {
    /// The file is not TOML of the expected form.
    #[error("cannot read the goals: {0}")]
    Syntax(String),
    /// There is no metric of that name.
    #[error("goal {number} names an unknown metric `{name}`; known metrics: {known}")]
    UnknownMetric {
        /// Which goal, from 1.
        number: usize,
        /// The name in the file.
        name: String,
        /// All names that exist.
        known: String,
    },
    /// The workload has no test of that name.
    #[error("goal {number} is for an unknown test `{name}`; {known}")]
    UnknownTest {
        /// Which goal, from 1.
        number: usize,
        /// The name in the file.
        name: String,
        /// All names that exist, as the end of a sentence.
        known: String,
    },
    /// It has no value, or a value that makes no sense.
    #[error(
        "goal {number}, `{metric}`: give either `at_most` or `at_least`, a number of at least 0"
    )]
    Value {
        /// Which goal, from 1.
        number: usize,
        /// Its metric.
        metric: String,
    },
    /// It is waived for no reason.
    #[error(
        "goal {number}, `{metric}`: say in `why_waived` why nobody insists on it, or leave it out"
    )]
    Waived {
        /// Which goal, from 1.
        number: usize,
        /// Its metric.
        metric: String,
    },
    /// No goals, or too many.
    #[error(
        "the file has {0} goals; give 1 to {GOALS_MAX}, for example `metric = \"load_line\"` and `at_least = 400` under [[goal]]"
    )]
    Count(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    goal: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    metric: String,
    test: Option<String>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    why_waived: Option<String>,
}

impl GoalsFile {
    /// Reads a goals file: TOML with a table `[[goal]]` for each goal. `sha256` is that of the file, `own` are the metrics
    /// that only the workload has, `tests` its tests.
    ///
    /// # Errors
    /// If the text does not have that form, has no goals, or names a metric or a test that does not exist.
    pub fn parse(
        text: &str,
        sha256: String,
        own: &[OwnMetric],
        tests: &[&str],
    ) -> Result<Self, GoalsError> {
        let file: File =
            toml::from_str(text).map_err(|error| GoalsError::Syntax(error.message().to_owned()))?;
        if !(1..=GOALS_MAX).contains(&file.goal.len()) {
            return Err(GoalsError::Count(file.goal.len()));
        }
        let goals = (1..).zip(file.goal);
        let goals = goals.map(|(number, row)| checked(number, row, own, tests));
        Ok(Self {
            sha256,
            goals: goals.collect::<Result<_, _>>()?,
        })
    }

    /// What became of the goals in a trial. `decides_nothing` says how the trial was asked for if it is a closed loop,
    /// which shows nothing of what a target carries.
    #[must_use]
    pub fn in_trial(&self, trial: &Trial, decides_nothing: Option<&str>) -> Goals {
        let silent = decides_nothing
            .map(|asked_by| format!("{asked_by} is a closed loop, which decides nothing"))
            .or_else(|| why_silent(trial));
        self.found(
            trial.word_parameter("test"),
            |goal, reading| match &silent {
                Some(why) => Err(why.clone()),
                None if reading.is_of_search() => {
                    Err("one trial shows no load line; use `plimsoll find`".to_owned())
                }
                None => reading.in_trial(trial, &goal.metric).map(exact),
            },
        )
    }

    /// What became of the goals in a search, whose `trials` the SLO of the bracket has judged. A load line is that of the
    /// search. Every other metric is the worst of the full trials that passed at the load line.
    #[must_use]
    pub fn in_search(&self, bracket: &Bracket, trials: &[Trial]) -> Goals {
        let test = trials
            .first()
            .and_then(|trial| trial.word_parameter("test"));
        let at_line: Vec<&Trial> = trials
            .iter()
            .filter(|trial| bracket.confirmed == Some(trial.sessions))
            .filter(|trial| trial.verdict == Verdict::Pass && !trial.interrupted)
            // A short trial may have too few samples, and decides no load line.
            .filter(|trial| trial.length == Length::Full)
            .collect();
        self.found(test, |goal, reading| {
            if reading.is_of_search() {
                return reading.in_search(bracket);
            }
            let values = at_line.iter();
            let values: Vec<f64> = values
                .map(|trial| reading.in_trial(trial, &goal.metric))
                .collect::<Result<_, _>>()?;
            let worse = if goal.at_least.is_some() {
                f64::min
            } else {
                f64::max
            };
            let worst = values.into_iter().reduce(worse);
            let none = "no trial passed at a load line, where it would be read";
            worst.map(exact).ok_or_else(|| none.to_owned())
        })
    }

    fn found(
        &self,
        test: Option<&str>,
        measured: impl Fn(&Goal, &Reading) -> Result<(f64, Bound), String>,
    ) -> Goals {
        let finding = |(goal, reading): &(Goal, Reading)| {
            let other = goal.test.as_deref().filter(|other| test != Some(other));
            let value = match other {
                Some(other) => Err(format!(
                    "it is for test {other}; this is test {}",
                    test.unwrap_or("unknown")
                )),
                None => measured(goal, reading),
            };
            Finding {
                is_of_another_test: other.is_some(),
                ..finding(goal.clone(), reading.is_of_search(), value)
            }
        };
        Goals {
            sha256: self.sha256.clone(),
            findings: self.goals.iter().map(finding).collect(),
        }
    }
}

fn exact(value: f64) -> (f64, Bound) {
    (value, Bound::Exact)
}

fn checked(
    number: usize,
    row: Row,
    own: &[OwnMetric],
    tests: &[&str],
) -> Result<(Goal, Reading), GoalsError> {
    let Row {
        metric,
        test,
        at_most,
        at_least,
        why_waived,
    } = row;
    let Some(reading) = Reading::named(&metric, own) else {
        return Err(GoalsError::UnknownMetric {
            number,
            name: metric,
            known: Reading::names(own).join(", "),
        });
    };
    if let Some(name) = test.clone().filter(|test| !tests.contains(&test.as_str())) {
        let known = if tests.is_empty() {
            "this workload has no tests, so leave it out".to_owned()
        } else {
            format!("known tests: {}", tests.join(", "))
        };
        return Err(GoalsError::UnknownTest {
            number,
            name,
            known,
        });
    }
    let is_good = |value: f64| value.is_finite() && value >= 0.0;
    match (at_most, at_least) {
        (Some(value), None) | (None, Some(value)) if is_good(value) => {}
        _ => return Err(GoalsError::Value { number, metric }),
    }
    if why_waived.as_ref().is_some_and(|why| why.trim().is_empty()) {
        return Err(GoalsError::Waived { number, metric });
    }
    let goal = Goal {
        metric,
        test,
        at_most,
        at_least,
        why_waived,
    };
    Ok((goal, reading))
}

/// Why a trial says nothing about any goal; `None` if it does.
fn why_silent(trial: &Trial) -> Option<String> {
    if trial.interrupted {
        return Some("the trial was interrupted".to_owned());
    }
    if trial.verdict != Verdict::Invalid {
        return None;
    }
    Some(format!("the trial is invalid ({})", trial.blocking_names()))
}

/// What became of a goal whose metric has this value, or was not measured for this reason.
fn finding(goal: Goal, is_load_line: bool, value: Result<(f64, Bound), String>) -> Finding {
    let (result, bound) = match &value {
        Ok((value, bound)) => (Some(*value), *bound),
        Err(_) => (None, Bound::Exact),
    };
    let met = value.and_then(|(value, bound)| is_met(&goal, value, bound));
    let (outcome, why) = match (goal.why_waived.clone(), met) {
        (Some(why), _) => (Outcome::Waived, Some(why)),
        (None, Ok(true)) => (Outcome::Met, None),
        (None, Ok(false)) => (Outcome::Missed, None),
        (None, Err(why)) => (Outcome::NotMeasured, Some(why)),
    };
    let needed = goal.at_least.filter(|needed| is_load_line && *needed > 0.0);
    let capacity = result.filter(|_| bound != Bound::Below);
    Finding {
        margin: capacity
            .zip(needed)
            .map(|(capacity, needed)| capacity / needed - 1.0),
        goal,
        result,
        bound,
        outcome,
        is_of_another_test: false,
        why,
    }
}

/// Whether a value meets a goal. A bound may leave that open, and then the error says so.
fn is_met(goal: &Goal, value: f64, bound: Bound) -> Result<bool, String> {
    let (limit, is_least) = match (goal.at_least, goal.at_most) {
        (Some(least), _) => (least, true),
        (None, most) => (most.unwrap_or(f64::INFINITY), false),
    };
    match bound {
        Bound::Exact if is_least => Ok(value >= limit),
        Bound::Exact => Ok(value <= limit),
        Bound::AtLeast if is_least && value >= limit => Ok(true),
        Bound::AtLeast if !is_least && value > limit => Ok(false),
        Bound::AtLeast => Err("only a lower bound is known".to_owned()),
        // The value is less than the result.
        Bound::Below if value <= limit => Ok(!is_least),
        Bound::Below => Err("no load passed, and lower ones were not tried".to_owned()),
    }
}

#[cfg(test)]
mod tests;
