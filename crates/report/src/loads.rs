//! Groups trials by load: one row of evidence per load, however often it was tried.

use plimsoll_core::record::{Bracket, LoadClass, LoadEvidence, Tail, TrialSummary, Verdict};

use crate::folder::StoredTrial;
use crate::words;

/// One load and every trial at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The load.
    pub sessions: u32,
    /// Whether the trials of the load disagree, according to the search.
    pub borderline: bool,
    /// The class that the search gave the load; `None` in results without classes.
    pub class: Option<LoadClass>,
    /// The trials in the order in which they ran.
    pub trials: Vec<TrialSummary>,
}

/// The least and the greatest value over the trials of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
}

impl Load {
    /// The range of a value over the trials that observed it; `None` when none did.
    #[must_use]
    pub fn range(&self, value: impl Fn(&TrialSummary) -> Option<f64>) -> Option<Range> {
        self.trials
            .iter()
            .filter_map(value)
            .fold(None, |range: Option<Range>, value| {
                let range = range.unwrap_or(Range {
                    low: value,
                    high: value,
                });
                Some(Range {
                    low: range.low.min(value),
                    high: range.high.max(value),
                })
            })
    }

    /// The median of a value over the valid trials that observed it. Invalid trials show nothing about the target.
    #[must_use]
    pub fn median(&self, value: impl Fn(&TrialSummary) -> Option<f64>) -> Option<f64> {
        let counting = self.trials.iter().filter(|t| t.verdict != Verdict::Invalid);
        let mut values: Vec<f64> = counting.filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len() % 2 == 1 {
            values.get(middle).copied()
        } else {
            let below = values.get(middle.checked_sub(1)?)?;
            Some(f64::midpoint(*below, *values.get(middle)?))
        }
    }

    /// The verdicts in words, in the order in which the trials ran: `pass, fail`; `pass ×3` for several equal ones in a
    /// row; `short pass` for a trial shorter than the profile. The class of the load follows where it is not obvious.
    #[must_use]
    pub fn verdicts(&self) -> String {
        let mut runs: Vec<(String, usize)> = Vec::new();
        for trial in &self.trials {
            let word = format!("{}{}", words::length(trial.length), trial.verdict.word());
            match runs.last_mut() {
                Some((last, times)) if *last == word => *times += 1,
                _ => runs.push((word, 1)),
            }
        }
        let words: Vec<_> = runs
            .into_iter()
            .map(|(word, times)| match times {
                1 => word,
                times => format!("{word} ×{times}"),
            })
            .collect();
        let mut text = words.join(", ");
        if let Some(class) = self.class_worth_saying() {
            text.push_str(&format!(" ({})", class.word()));
        }
        text
    }

    /// The class of the load, unless all valid trials say the same.
    fn class_worth_saying(&self) -> Option<LoadClass> {
        let verdicts = || {
            let verdicts = self.trials.iter().map(|trial| trial.verdict);
            verdicts.filter(|verdict| *verdict != Verdict::Invalid)
        };
        let all = |wanted| verdicts().next().is_some() && verdicts().all(|v| v == wanted);
        let class = self.class.unwrap_or(LoadClass::Borderline);
        match class {
            LoadClass::Passing if all(Verdict::Pass) => None,
            LoadClass::Failing if all(Verdict::Fail) => None,
            LoadClass::Borderline if self.class.is_none() && !self.borderline => None,
            class => Some(class),
        }
    }

    /// What spoke against the load, each name once, in order of appearance: failed gates of failed trials, and caveats
    /// of invalid ones.
    #[must_use]
    pub fn what_failed(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for trial in &self.trials {
            let reasons = match trial.verdict {
                Verdict::Pass => &[][..],
                Verdict::Fail => &trial.failed_gates[..],
                Verdict::Invalid => &trial.caveats[..],
            };
            for reason in reasons {
                if !names.contains(reason) {
                    names.push(reason.clone());
                }
            }
        }
        names
    }
}

/// Groups trials by load, lowest first, each load with the class that the search gave it.
#[must_use]
pub fn by_load(
    trials: &[TrialSummary],
    borderline: &[u32],
    evidence: &[LoadEvidence],
) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for trial in trials {
        if let Some(load) = loads.iter_mut().find(|l| l.sessions == trial.sessions) {
            load.trials.push(trial.clone());
        } else {
            let of_load = |known: &&LoadEvidence| known.sessions == trial.sessions;
            loads.push(Load {
                sessions: trial.sessions,
                borderline: borderline.contains(&trial.sessions),
                class: evidence.iter().find(of_load).map(|known| known.class),
                trials: vec![trial.clone()],
            });
        }
    }
    loads.sort_by_key(|load| load.sessions);
    loads
}

/// The loads of a search.
#[must_use]
pub fn of_bracket(bracket: &Bracket) -> Vec<Load> {
    by_load(&bracket.trials, &bracket.borderline, &bracket.evidence)
}

/// The loads of trials without a search.
#[must_use]
pub fn of_trials(trials: &[&StoredTrial]) -> Vec<Load> {
    let summary =
        |stored: &&StoredTrial| TrialSummary::of(&stored.trial, &format!("{}.json", stored.stem));
    let trials: Vec<_> = trials.iter().map(summary).collect();
    by_load(&trials, &[], &[])
}

/// The percentile that stands for the tail of these loads.
#[must_use]
pub fn tail(loads: &[Load]) -> Tail {
    Tail::of_trials(loads.iter().flat_map(|load| &load.trials))
}

/// Whether an answer ever covered several frames. Where each frame has an answer of its own, the oldest frame of an
/// answer is also its newest, and one latency says all.
#[must_use]
pub fn answers_cover_several(loads: &[Load]) -> bool {
    let mut trials = loads.iter().flat_map(|load| &load.trials);
    trials.any(|trial| {
        trial.oldest_p50_ms != trial.newest_p50_ms
            || trial.oldest_tail_ms() != trial.newest_tail_ms()
    })
}

/// Whether frames were confirmed besides being answered.
#[must_use]
pub fn frames_are_confirmed(loads: &[Load]) -> bool {
    let mut trials = loads.iter().flat_map(|load| &load.trials);
    trials.any(|trial| trial.confirm_p50_ms.is_some())
}

/// Whether all of these trials are of one kind: none differs from the others in a parameter, as the rows of a series do.
#[must_use]
pub fn differ_by_load_only(trials: &[&StoredTrial]) -> bool {
    let alike = |a: &StoredTrial, b: &StoredTrial| a.trial.parameters == b.trial.parameters;
    trials.windows(2).all(|pair| alike(pair[0], pair[1]))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::profile::Length;

    use super::*;

    fn trial(sessions: u32, verdict: Verdict, newest_p95_ms: Option<f64>) -> TrialSummary {
        TrialSummary {
            newest_p95_ms,
            failed_gates: vec!["newest_p95_ms".to_owned()],
            caveats: vec!["send-lag".to_owned()],
            verdict,
            ..crate::words::tests::summary(sessions)
        }
    }

    #[test]
    fn an_oldest_frame_is_shown_where_it_is_another_than_the_newest() {
        let one = trial(100, Verdict::Pass, Some(100.0));
        let alike = TrialSummary {
            oldest_p95_ms: Some(100.0),
            ..one.clone()
        };
        let covers = |of: TrialSummary| answers_cover_several(&by_load(&[of], &[], &[]));
        assert!(covers(one));
        assert!(!covers(alike.clone()));
        let apart = TrialSummary {
            tail: Some(Tail::P99),
            newest_p99_ms: Some(110.0),
            ..alike
        };
        assert_eq!(
            tail(&by_load(std::slice::from_ref(&apart), &[], &[])),
            Tail::P99
        );
        assert!(covers(apart));
    }

    #[test]
    fn one_row_per_load_lowest_first() {
        let trials = [
            trial(200, Verdict::Fail, Some(400.0)),
            trial(100, Verdict::Pass, Some(100.0)),
            trial(200, Verdict::Pass, Some(300.0)),
            trial(200, Verdict::Invalid, Some(900.0)),
        ];
        let loads = by_load(&trials, &[200], &[]);
        assert_eq!(loads.len(), 2);
        assert_eq!(loads[0].sessions, 100);
        assert_eq!(loads[0].verdicts(), "pass");
        assert!(loads[0].what_failed().is_empty());
        let twice = &loads[1];
        assert_eq!(twice.verdicts(), "fail, pass, invalid (borderline)");
        assert_eq!(twice.what_failed(), ["newest_p95_ms", "send-lag"]);
        let range = twice.range(|t| t.newest_p95_ms).unwrap();
        assert_eq!((range.low, range.high), (300.0, 900.0));
        assert_eq!(twice.median(|t| t.newest_p95_ms), Some(350.0));
    }

    #[test]
    fn a_class_is_told_where_the_trials_do_not_tell_it() {
        let load = |class, trials: &[(Length, Verdict)]| Load {
            sessions: 100,
            borderline: class == LoadClass::Borderline,
            class: Some(class),
            trials: trials
                .iter()
                .map(|(length, verdict)| TrialSummary {
                    length: *length,
                    ..trial(100, *verdict, None)
                })
                .collect(),
        };
        let (full, short) = (Length::Full, Length::Short);
        let (pass, fail) = (Verdict::Pass, Verdict::Fail);
        let passing = load(
            LoadClass::Passing,
            &[(short, pass), (full, pass), (full, pass)],
        );
        assert_eq!(passing.verdicts(), "short pass, pass ×2");
        let despite = load(
            LoadClass::Passing,
            &[(full, fail), (full, pass), (full, pass)],
        );
        assert_eq!(despite.verdicts(), "fail, pass ×2 (passing)");
        let unknown = load(LoadClass::Undecided, &[(full, pass)]);
        assert_eq!(unknown.verdicts(), "pass (undecided)");
        let torn = load(LoadClass::Borderline, &[(full, pass), (full, fail)]);
        assert_eq!(torn.verdicts(), "pass, fail (borderline)");
        let nothing_counts = load(LoadClass::Failing, &[(full, Verdict::Invalid)]);
        assert_eq!(nothing_counts.verdicts(), "invalid (failing)");
    }

    #[test]
    fn what_was_never_observed_has_no_range_and_no_median() {
        let loads = by_load(&[trial(1, Verdict::Fail, None)], &[], &[]);
        assert_eq!(loads[0].range(|t| t.newest_p95_ms), None);
        assert_eq!(loads[0].median(|t| t.newest_p95_ms), None);
    }
}
