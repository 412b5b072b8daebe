//! What the last trials of a budget are for: an answer, and a better one.

use super::{Choice, SHORT_AT_MOST};
use crate::profile::Length;
use crate::search::edge::EdgePosterior;
use crate::search::grid;
use crate::search::tally::Tally;

/// The last trials go to confirming a load: one in so many, and how many at least and at most.
const LAST_TRIALS_ONE_IN: u32 = 4;
const LAST_TRIALS: (u32, u32) = (3, 6);
/// If at most this many trials are left and no full trial has passed, they go to loads far enough below those that were
/// tried in vain.
const TRIALS_FOR_A_PASS: u32 = 3;
/// So many full trials must have been in vain before: a single one may be chance.
const FULL_TRIALS_IN_VAIN: u32 = 2;
/// Such a load, as a share of the lowest one tried in vain.
const FAR_ENOUGH_BELOW: f64 = 0.75;
/// This many trials before a time budget ends, the load line is raised as far as the interval allows. The limit of
/// trials has no such phase: it is for searches that do not converge, and those have confirmed what they can by then.
const RAISING_TRIALS: u32 = 2;
/// How much higher than the load line a load must be for that, as a share of the load line.
const LEAST_RAISE: f64 = 0.01;
/// A load is safe against the last trials if the probability of an edge below it is at most this share of the doubt.
const SAFE_SHARE: f64 = 0.1;
/// A load lower than the highest safe one by this share is a good enough answer.
const SAFE_BAND: f64 = 0.05;

impl Choice<'_> {
    /// For the very last trials, if short trials passed, several full ones were tried and none of them passed: a load far
    /// enough below. Just below the edge, the client may be late in each full trial, and to repeat them would leave no
    /// answer.
    pub(super) fn far_enough_below(&self) -> Option<u32> {
        let only_short_ones_passed = self.known.highest_pass.is_some() && !self.known.any_full_pass;
        let in_vain = self.tallies.values().map(Tally::full_in_vain);
        let several_in_vain = in_vain.sum::<u32>() >= FULL_TRIALS_IN_VAIN;
        if self.trials_left > TRIALS_FOR_A_PASS || !only_short_ones_passed || !several_in_vain {
            return None;
        }
        let (lowest, _) = self
            .tallies
            .iter()
            .find(|(_, tally)| tally.full_in_vain() > 0)?;
        let load = grid::share(*lowest, FAR_ENOUGH_BELOW);
        self.measurable(load).then_some(load)
    }

    fn last_trials(&self) -> u32 {
        let (least, most) = LAST_TRIALS;
        (self.trials_in_all / LAST_TRIALS_ONE_IN).clamp(least, most)
    }

    /// Before the last trials, if the interval has no upper end: a short trial at the highest load, which failed.
    pub(super) fn top(&self) -> Option<u32> {
        let (_, highest) = self.known.valid_loads?;
        let tally = self.tallies.get(&highest)?;
        let open = self.known.any_fail && self.known.edge?.high.is_none();
        let soon = self.trials_left <= self.last_trials() + 1
            && (self.known.confirmed.is_some() || self.trials_left > self.last_trials());
        let few = tally.mostly_failed() && tally.short_failed + tally.short_passed < SHORT_AT_MOST;
        let short = self.short_if_telling(highest) == Length::Short;
        (open && soon && few && short && self.measurable(highest)).then_some(highest)
    }

    /// Near the end of the budget: a full trial that makes the answer sure, or a better one.
    pub(super) fn last_chance(&self) -> Option<u32> {
        let posterior = self.known.posterior.as_ref()?;
        if self.known.confirmed.is_none() {
            return self.secured(posterior).or_else(|| self.raised(posterior));
        }
        self.raised(posterior).or_else(|| self.secured(posterior))
    }

    /// For the last trials of a time budget: the highest load that would count as passing, because the load line may
    /// lie far below it.
    fn raised(&self, posterior: &EdgePosterior) -> Option<u32> {
        let low = posterior.interval(self.settings.confidence).low;
        let load = grid::round_down(low, self.step(posterior));
        let line = f64::from(self.known.confirmed.unwrap_or(0));
        let higher = f64::from(load) > line * (1.0 + LEAST_RAISE);
        let may_raise = self.time_left <= RAISING_TRIALS && higher && self.known.any_fail;
        (may_raise && self.measurable(load) && self.lacks_full_trials(load)).then_some(load)
    }

    /// A load that surely passes, so that there is an answer whatever the last trials do to the interval.
    fn secured(&self, posterior: &EdgePosterior) -> Option<u32> {
        if self.trials_left > self.last_trials() {
            return None;
        }
        let safe = posterior.quantile((1.0 - self.settings.confidence) * SAFE_SHARE);
        let near = safe * (1.0 - SAFE_BAND) - 1.0;
        let step = self.step(posterior);
        let round = grid::round_down(safe, step).max(self.settings.min);
        let mut within = self.tallies.iter().filter(|(load, tally)| {
            (near..=safe + 0.5).contains(&f64::from(**load)) && tally.mostly_passed()
        });
        let fresh = |load: &u32| self.measurable(*load) && self.lacks_full_trials(*load);
        (within.next().is_none() && f64::from(round) <= safe + 0.5)
            .then_some(round)
            .filter(fresh)
    }
}
