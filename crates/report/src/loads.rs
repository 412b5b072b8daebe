//! Trials grouped by their load: one row of evidence per load, however often it was tried.

use plimsoll_core::record::{TrialSummary, Verdict};

use crate::folder::Results;

/// One load and every trial at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The load.
    pub sessions: u32,
    /// Whether the search found it to disagree with itself.
    pub borderline: bool,
    /// Its trials in the order in which they ran.
    pub trials: Vec<TrialSummary>,
}

/// The least and the greatest of a value over the trials of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The greatest.
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

    /// The median of a value over the trials that observed it and count: what an invalid trial shows says nothing about the target.
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

    /// The verdicts in words, in the order in which the trials ran: `pass, fail`; `pass ×3` where they agree; and whether that makes the load
    /// borderline.
    #[must_use]
    pub fn verdicts(&self) -> String {
        let words: Vec<_> = self.trials.iter().map(|t| t.verdict.word()).collect();
        let all_alike = words.windows(2).all(|pair| pair[0] == pair[1]);
        let mut text = match words.as_slice() {
            [first, _, ..] if all_alike => format!("{first} ×{}", words.len()),
            _ => words.join(", "),
        };
        if self.borderline {
            text.push_str(" (borderline)");
        }
        text
    }

    /// What spoke against the load, each once, in order of appearance: gates that did not hold where a trial failed, caveats where it is invalid.
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

/// Groups trials by load, lowest first.
#[must_use]
pub fn by_load(trials: &[TrialSummary], borderline: &[u32]) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for trial in trials {
        if let Some(load) = loads.iter_mut().find(|l| l.sessions == trial.sessions) {
            load.trials.push(trial.clone());
        } else {
            loads.push(Load {
                sessions: trial.sessions,
                borderline: borderline.contains(&trial.sessions),
                trials: vec![trial.clone()],
            });
        }
    }
    loads.sort_by_key(|load| load.sessions);
    loads
}

/// The loads of a result folder: those of the search where there was one, otherwise every trial in the folder.
#[must_use]
pub fn of(results: &Results) -> Vec<Load> {
    match &results.bracket {
        Some(bracket) => by_load(&bracket.trials, &bracket.borderline),
        None => {
            let summary = |stored: &crate::StoredTrial| {
                TrialSummary::of(&stored.trial, &format!("{}.json", stored.stem))
            };
            let trials: Vec<_> = results.trials.iter().map(summary).collect();
            by_load(&trials, &[])
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn one_row_per_load_lowest_first() {
        let trials = [
            trial(200, Verdict::Fail, Some(400.0)),
            trial(100, Verdict::Pass, Some(100.0)),
            trial(200, Verdict::Pass, Some(300.0)),
            trial(200, Verdict::Invalid, Some(900.0)),
        ];
        let loads = by_load(&trials, &[200]);
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
    fn what_was_never_observed_has_no_range_and_no_median() {
        let loads = by_load(&[trial(1, Verdict::Fail, None)], &[]);
        assert_eq!(loads[0].range(|t| t.newest_p95_ms), None);
        assert_eq!(loads[0].median(|t| t.newest_p95_ms), None);
    }
}
