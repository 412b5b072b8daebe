//! What the tallies say together.

use std::collections::BTreeMap;

use super::tally::{Class, Tally};

/// The loads that bound the answer, as the trials so far have it. One trial suffices for a class here; whether more are
/// needed is the search's business.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bracket {
    /// The highest passing load below `first_fail`.
    pub(super) confirmed: Option<u32>,
    /// Every borderline load, ascending.
    pub(super) borderline: Vec<u32>,
    /// The lowest failing load.
    pub(super) first_fail: Option<u32>,
    /// The lowest passing load above `first_fail`.
    pub(super) pass_above_fail: Option<u32>,
    /// Whether there is a first fail, no load up to a quarter above it fails too, and none above it passes.
    pub(super) lonely_fail: bool,
    /// The lowest load at which the client ran out, with no valid trial at it or above.
    pub(super) out_of_reach: Option<u32>,
    /// Whether there is any valid trial.
    pub(super) any_valid: bool,
}

impl Bracket {
    pub(super) fn of(tallies: &BTreeMap<u32, Tally>) -> Self {
        let loads_of = |class| {
            tallies
                .iter()
                .filter(move |(_, tally)| tally.class() == Some(class))
                .map(|(load, _)| *load)
        };
        let first_fail = loads_of(Class::Failing).next();
        let below_fail = |load: &u32| first_fail.is_none_or(|fail| *load < fail);
        let highest_valid = tallies
            .iter()
            .rfind(|(_, tally)| tally.valid() > 0)
            .map(|(load, _)| *load);
        let pass_above_fail = loads_of(Class::Passing).find(|load| !below_fail(load));
        let lonely = |fail: u32| {
            let next_fail = loads_of(Class::Failing).nth(1);
            next_fail.is_none_or(|next| next - fail > fail / 4)
        };
        Self {
            confirmed: loads_of(Class::Passing).rfind(below_fail),
            borderline: loads_of(Class::Borderline).collect(),
            first_fail,
            pass_above_fail,
            lonely_fail: pass_above_fail.is_none() && first_fail.is_some_and(lonely),
            out_of_reach: tallies
                .iter()
                .find(|(load, tally)| tally.client_ran_out() && Some(**load) > highest_valid)
                .map(|(load, _)| *load),
            any_valid: highest_valid.is_some(),
        }
    }

    /// The lowest load that fails or is borderline.
    pub(super) fn lowest_not_passing(&self) -> Option<u32> {
        let borderline = self.borderline.first().copied();
        borderline.into_iter().chain(self.first_fail).min()
    }

    /// The highest load that passes or is borderline.
    pub(super) fn highest_not_failing(&self) -> Option<u32> {
        self.confirmed.max(self.borderline.last().copied())
    }

    /// The loads that need confirming, ascending.
    pub(super) fn sides(&self) -> impl Iterator<Item = u32> {
        self.confirmed.into_iter().chain(self.first_fail)
    }

    /// Neighbouring loads between which the edge may lie, ascending: from the confirmed load over borderline ones to the first
    /// fail, or to what is out of reach. Not the gaps between two borderline loads: they would say nothing new.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (u32, u32)> {
        let low = self.confirmed.unwrap_or(0);
        let high = self.first_fail.or(self.out_of_reach);
        let between: Vec<u32> = self
            .borderline
            .iter()
            .copied()
            .filter(|load| *load > low && high.is_none_or(|high| *load < high))
            .collect();
        let lower = match (self.confirmed, between.first()) {
            (Some(low), Some(load)) => Some((low, *load)),
            _ => None,
        };
        let upper = match (between.last().copied().or(self.confirmed), high) {
            (Some(load), Some(high)) => Some((load, high)),
            _ => None,
        };
        lower.into_iter().chain(upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bracket(tallies: &[(u32, u32, u32)]) -> Bracket {
        let tallies = tallies
            .iter()
            .map(|(load, pass, fail)| {
                let mut tally = Tally::default();
                (tally.pass, tally.fail) = (*pass, *fail);
                (*load, tally)
            })
            .collect();
        Bracket::of(&tallies)
    }

    #[test]
    fn the_lowest_fail_bounds_what_is_confirmed() {
        let found = bracket(&[(100, 1, 0), (200, 0, 1), (300, 2, 0), (400, 0, 1)]);
        assert_eq!(found.confirmed, Some(100));
        assert_eq!(found.first_fail, Some(200));
        assert_eq!(found.pass_above_fail, Some(300));
    }

    #[test]
    fn gaps_run_over_borderline_loads() {
        let gaps = |tallies: &[_]| bracket(tallies).gaps().collect::<Vec<_>>();
        assert_eq!(gaps(&[(100, 1, 0), (200, 0, 1)]), [(100, 200)]);
        assert_eq!(
            gaps(&[
                (50, 1, 1),
                (100, 1, 0),
                (120, 1, 1),
                (140, 1, 1),
                (200, 0, 1)
            ]),
            [(100, 120), (140, 200)]
        );
        assert_eq!(gaps(&[(100, 1, 0)]), []);
        assert_eq!(gaps(&[(100, 1, 1), (200, 0, 1)]), [(100, 200)]);
    }
}
