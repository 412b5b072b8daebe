//! The verdicts of one load.

use std::collections::BTreeMap;

use super::TrialVerdict;
use super::edge::INVALID_PER_VALID;
use crate::profile::Length;
use crate::record::{LoadClass, LoadEvidence};

/// With this many more invalid than valid trials, a load is not worth another trial.
const INVALID_SURPLUS: u32 = 3;
/// The least and the most of the same for trials in which the client ran out, which does not go away by itself.
const RAN_OUT_SURPLUS: (u32, u32) = (3, 4);
/// Further trials at a load that is out of reach, before a search gives up because of it.
const LAST_LOOKS: u32 = 4;
/// Chance alone may put a load out of reach with this probability.
const OUT_OF_REACH_BY_CHANCE: f64 = 0.02;

/// With this many more trials in which the client ran out than valid ones, a load is out of reach.
///
/// So many in a row rarely come by chance. The chance of one is the share of such trials among those at loads that the client
/// mostly reached, and below.
pub(super) fn ran_out_surplus(tallies: &BTreeMap<u32, Tally>) -> u32 {
    let reached = tallies.iter().rfind(|(_, t)| t.valid() > t.ran_out);
    let highest = reached.map_or(0, |(load, _)| *load);
    let up_to_it = tallies.range(..=highest).map(|(_, tally)| tally);
    let (ran_out, valid) = up_to_it.fold((0, 0), |(ran_out, valid), tally| {
        (ran_out + tally.ran_out, valid + tally.valid())
    });
    let chance = f64::from(ran_out) / f64::from((ran_out + valid).max(1));
    let (least, most) = RAN_OUT_SURPLUS;
    let rare = |trials: &u32| {
        let trials = i32::try_from(*trials).unwrap_or(i32::MAX);
        chance.powi(trials) <= OUT_OF_REACH_BY_CHANCE
    };
    (least..most).find(rare).unwrap_or(most)
}

/// The verdicts of one load. These are only counts: the order in which they came does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u32,
    pub(super) failed: u32,
    pub(super) short_passed: u32,
    pub(super) short_failed: u32,
    pub(super) invalid: u32,
    /// Invalid trials that were short.
    pub(super) short_invalid: u32,
    /// Invalid trials in which the client ran out.
    pub(super) ran_out: u32,
}

impl Tally {
    pub(super) fn record(&mut self, length: Length, verdict: TrialVerdict) {
        let count = match (verdict, length) {
            (TrialVerdict::Pass, Length::Full) => &mut self.passed,
            (TrialVerdict::Fail, Length::Full) => &mut self.failed,
            (TrialVerdict::Pass, Length::Short) => &mut self.short_passed,
            (TrialVerdict::Fail, Length::Short) => &mut self.short_failed,
            (TrialVerdict::Invalid { client_ran_out }, _) => {
                self.ran_out += u32::from(client_ran_out);
                self.short_invalid += u32::from(length == Length::Short);
                &mut self.invalid
            }
        };
        *count += 1;
    }

    /// Trials of either length that passed or failed.
    pub(super) fn valid(&self) -> u32 {
        self.passed + self.failed + self.short_passed + self.short_failed
    }

    /// Invalid trials that were full.
    pub(super) fn full_invalid(&self) -> u32 {
        self.invalid - self.short_invalid
    }

    /// Whether any trial passed.
    pub(super) fn any_pass(&self) -> bool {
        self.passed + self.short_passed > 0
    }

    /// Whether a trial failed, and not too many were invalid. Otherwise a fail says nothing, see [`super::edge`].
    pub(super) fn any_fail_that_counts(&self) -> bool {
        self.failed + self.short_failed > 0 && self.invalid <= INVALID_PER_VALID * self.valid()
    }

    /// Whether more of its full trials passed than failed.
    pub(super) fn mostly_passed(&self) -> bool {
        self.passed > self.failed
    }

    /// The tally without its fails, and also without its passes if they do not outweigh the fails.
    pub(super) fn passes_that_outweigh(mut self) -> Self {
        let full_ones_agree = self.passed > self.failed || self.failed == 0;
        if !full_ones_agree || self.passed + self.short_passed <= self.failed + self.short_failed {
            (self.passed, self.short_passed) = (0, 0);
        }
        (self.failed, self.short_failed) = (0, 0);
        self
    }

    /// Whether most of its trials failed: of the full ones if there are any, otherwise of the short ones.
    pub(super) fn mostly_failed(&self) -> bool {
        let by_full = self.passed + self.failed > 0;
        self.any_fail_that_counts()
            && if by_full {
                self.failed > self.passed
            } else {
                self.short_failed > self.short_passed
            }
    }

    /// Whether its trials disagree, of one length or of both.
    pub(super) fn disagrees(&self) -> bool {
        self.any_pass() && self.any_fail_that_counts()
    }

    /// Whether so many of its trials were invalid that another is not worth its time. `surplus` is that of
    /// [`ran_out_surplus`].
    pub(super) fn spent(&self, surplus: u32) -> bool {
        self.invalid >= self.valid() + INVALID_SURPLUS.max(surplus)
            || self.ran_out >= self.valid() + surplus
    }

    /// The length at which none passed and too many were invalid for a fail to count, while another attempt is worth its
    /// time. (A pass counts whatever the others were.)
    pub(super) fn length_to_repeat(&self, surplus: u32) -> Option<Length> {
        if self.spent(surplus) {
            None
        } else if self.passed == 0 && self.full_invalid() > INVALID_PER_VALID * self.failed {
            Some(Length::Full)
        } else if self.short_passed == 0
            && self.short_invalid > INVALID_PER_VALID * self.short_failed
        {
            Some(Length::Short)
        } else {
            None
        }
    }

    /// Whether it is spent mostly because the client ran out.
    pub(super) fn client_ran_out(&self, surplus: u32) -> bool {
        self.spent(surplus) && self.ran_out * 2 > self.invalid
    }

    /// Whether more trials may show that the client ran out only by chance.
    pub(super) fn worth_another_look(&self, surplus: u32) -> bool {
        self.ran_out < self.valid() + surplus + LAST_LOOKS
    }

    pub(super) fn evidence(&self, load: u32, class: LoadClass) -> LoadEvidence {
        LoadEvidence {
            sessions: load,
            passed: self.passed,
            failed: self.failed,
            short_passed: self.short_passed,
            short_failed: self.short_failed,
            invalid: self.invalid,
            class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS: TrialVerdict = TrialVerdict::Pass;
    const FAIL: TrialVerdict = TrialVerdict::Fail;

    fn tally(trials: &[(Length, TrialVerdict)]) -> Tally {
        let mut tally = Tally::default();
        for (length, verdict) in trials {
            tally.record(*length, *verdict);
        }
        tally
    }

    fn invalid(client_ran_out: bool) -> (Length, TrialVerdict) {
        (Length::Full, TrialVerdict::Invalid { client_ran_out })
    }

    #[test]
    fn lengths_are_counted_apart_and_full_ones_decide() {
        let short_fails = tally(&[
            (Length::Short, FAIL),
            (Length::Short, FAIL),
            (Length::Full, PASS),
        ]);
        assert_eq!((short_fails.passed, short_fails.short_failed), (1, 2));
        assert!(short_fails.mostly_passed() && !short_fails.mostly_failed());
        assert!(short_fails.disagrees());
        let short_only = tally(&[(Length::Short, FAIL)]);
        assert!(short_only.mostly_failed() && !short_only.mostly_passed());
    }

    #[test]
    fn fails_among_many_invalid_trials_do_not_count() {
        let mut trials = vec![(Length::Full, FAIL), invalid(true), invalid(false)];
        let disturbed = tally(&trials);
        assert!(disturbed.any_fail_that_counts() && disturbed.mostly_failed());
        trials.push(invalid(true));
        let survivor = tally(&trials);
        assert!(!survivor.any_fail_that_counts() && !survivor.mostly_failed());
    }

    #[test]
    fn passes_stay_only_where_they_outweigh_the_fails() {
        let left = |full: (u32, u32), short: (u32, u32)| {
            let tally = Tally {
                passed: full.0,
                failed: full.1,
                short_passed: short.0,
                short_failed: short.1,
                ..Tally::default()
            };
            let left = tally.passes_that_outweigh();
            assert_eq!((left.failed, left.short_failed), (0, 0));
            (left.passed, left.short_passed)
        };
        assert_eq!(left((2, 1), (0, 0)), (2, 0));
        assert_eq!(left((0, 0), (2, 1)), (0, 2));
        assert_eq!(left((1, 2), (5, 0)), (0, 0));
        assert_eq!(left((1, 1), (1, 0)), (0, 0));
        assert_eq!(left((2, 1), (0, 1)), (0, 0));
    }

    #[test]
    fn two_invalid_trials_by_the_client_or_three_by_others_spend_a_load() {
        assert!(!tally(&[invalid(true)]).spent(2));
        assert!(tally(&[invalid(true), invalid(true)]).client_ran_out(2));
        assert!(!tally(&[invalid(false), invalid(false)]).spent(2));
        let disturbed = tally(&[invalid(false), invalid(false), invalid(true)]);
        assert!(disturbed.spent(2) && !disturbed.client_ran_out(2));
        // Each valid trial is worth another attempt.
        let mixed = [(Length::Short, PASS), invalid(true), invalid(true)];
        assert!(!tally(&mixed).spent(2));
    }

    #[test]
    fn the_more_often_chance_stops_the_client_the_more_trials_put_a_load_out_of_reach() {
        let of = |ran_out: u32, valid: u32| {
            let low = Tally {
                ran_out,
                invalid: ran_out,
                passed: valid,
                ..Tally::default()
            };
            let high = tally(&[invalid(true), invalid(true)]);
            ran_out_surplus(&[(100, low), (200, high)].into())
        };
        assert_eq!(of(0, 1), 3);
        assert_eq!(of(1, 3), 3);
        assert_eq!(of(2, 5), 4);
        assert_eq!(ran_out_surplus(&BTreeMap::new()), 3);
        // Where it is mostly invalid, it is no load that is reached.
        assert_eq!(of(2, 2), 3);
    }

    #[test]
    fn a_client_that_just_ran_out_gets_a_few_more_looks() {
        let ran_out = |times: usize| tally(&vec![invalid(true); times]);
        assert!(ran_out(2).worth_another_look(2) && ran_out(5).worth_another_look(2));
        assert!(!ran_out(6).worth_another_look(2));
    }
}
