//! The verdicts of one load, and what they make of it.

use super::TrialVerdict;

/// Invalid trials in a row after which a load is not tried any more: the first and two repeats.
const INVALID_IN_A_ROW: u32 = 3;

/// What the valid trials of a load say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// At least two thirds passed.
    Passing,
    /// At least two thirds failed.
    Failing,
    /// Neither.
    Borderline,
}

/// The verdicts of one load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) pass: u32,
    pub(super) fail: u32,
    pub(super) invalid: u32,
    /// Invalid trials since the last valid one.
    invalid_in_a_row: u32,
    /// Those of them in which the client ran out.
    ran_out_in_a_row: u32,
}

impl Tally {
    pub(super) fn record(&mut self, verdict: TrialVerdict) {
        match verdict {
            TrialVerdict::Pass => self.pass += 1,
            TrialVerdict::Fail => self.fail += 1,
            TrialVerdict::Invalid { client_ran_out } => {
                self.invalid += 1;
                self.invalid_in_a_row += 1;
                self.ran_out_in_a_row += u32::from(client_ran_out);
                return;
            }
        }
        self.invalid_in_a_row = 0;
        self.ran_out_in_a_row = 0;
    }

    pub(super) fn valid(&self) -> u32 {
        self.pass + self.fail
    }

    /// `None` without a valid trial.
    pub(super) fn class(&self) -> Option<Class> {
        let two_thirds = |count: u32| u64::from(count) * 3 >= u64::from(self.valid()) * 2;
        if self.valid() == 0 {
            None
        } else if two_thirds(self.pass) {
            Some(Class::Passing)
        } else if two_thirds(self.fail) {
            Some(Class::Failing)
        } else {
            Some(Class::Borderline)
        }
    }

    /// Trials on the side of the majority.
    pub(super) fn agreeing(&self) -> u32 {
        self.pass.max(self.fail)
    }

    /// Whether its last trials were all invalid, so that another is not worth its time.
    pub(super) fn spent(&self) -> bool {
        self.invalid_in_a_row >= INVALID_IN_A_ROW
    }

    /// Whether it is spent because, mostly, the client ran out.
    pub(super) fn client_ran_out(&self) -> bool {
        self.spent() && self.ran_out_in_a_row * 2 > self.invalid_in_a_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(pass: u32, fail: u32) -> Tally {
        Tally {
            pass,
            fail,
            ..Tally::default()
        }
    }

    #[test]
    fn two_thirds_decide() {
        assert_eq!(tally(0, 0).class(), None);
        for (pass, fail) in [(1, 0), (2, 1), (4, 2), (4, 1)] {
            assert_eq!(
                tally(pass, fail).class(),
                Some(Class::Passing),
                "{pass}:{fail}"
            );
            assert_eq!(
                tally(fail, pass).class(),
                Some(Class::Failing),
                "{fail}:{pass}"
            );
        }
        for (pass, fail) in [(1, 1), (2, 2), (3, 2), (2, 3)] {
            assert_eq!(
                tally(pass, fail).class(),
                Some(Class::Borderline),
                "{pass}:{fail}"
            );
        }
    }

    #[test]
    fn three_invalid_in_a_row_spend_a_load() {
        let invalid = |client_ran_out| TrialVerdict::Invalid { client_ran_out };
        let mut tally = Tally::default();
        tally.record(invalid(true));
        tally.record(invalid(true));
        assert!(!tally.spent());
        tally.record(TrialVerdict::Pass);
        tally.record(invalid(false));
        tally.record(invalid(true));
        assert!(!tally.spent(), "a valid trial starts the count again");
        tally.record(invalid(true));
        assert!(tally.spent() && tally.client_ran_out());
        assert_eq!((tally.pass, tally.invalid), (1, 5));
    }

    #[test]
    fn most_of_the_invalid_trials_say_why() {
        let mut tally = Tally::default();
        for client_ran_out in [true, false, false] {
            tally.record(TrialVerdict::Invalid { client_ran_out });
        }
        assert!(tally.spent() && !tally.client_ran_out());
    }
}
