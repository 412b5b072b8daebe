//! What the last trials of a budget are for: an answer, and a better one.

use super::{Choice, SHORT_AT_MOST};
use crate::profile::Length;
use crate::search::grid;
use crate::search::tally::Tally;

/// The last trials go to confirming a load: one in so many, and how many at least and at most.
const LAST_TRIALS_ONE_IN: u32 = 4;
const LAST_TRIALS: (u32, u32) = (3, 6);
/// After so many invalid full trials and none that passed, a safe load lies far enough below theirs.
const FULL_TRIALS_INVALID: u32 = 2;
/// Such a load, as a share of the lowest of theirs; also the next one, where a safe load turned out to be none.
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

    /// Near the end of the budget: a full trial that makes the answer better, or keeps it sure.
    pub(super) fn last_chance(&self) -> Option<u32> {
        self.raised().or_else(|| self.secured())
    }

    /// For the last trials of a time budget: the highest load that would count as passing, because the load line may
    /// lie far below it.
    fn raised(&self) -> Option<u32> {
        let posterior = self.known.posterior.as_ref()?;
        let low = posterior.interval(self.settings.confidence).low;
        let load = grid::round_down(low, self.step(posterior));
        let line = f64::from(self.known.confirmed.unwrap_or(0));
        let higher = f64::from(load) > line * (1.0 + LEAST_RAISE);
        let may_raise = self.time_left <= RAISING_TRIALS && higher && self.known.any_fail;
        (may_raise && self.measurable(load) && self.lacks_full_trials(load)).then_some(load)
    }

    /// For the last trials: a load that surely passes, so that there is an answer whatever they do to the interval.
    pub(super) fn secured(&self) -> Option<u32> {
        (self.trials_left <= self.last_trials())
            .then(|| self.safe())
            .flatten()
    }

    /// A load that surely passes and lacks full trials, unless one about as high has passed.
    pub(super) fn safe(&self) -> Option<u32> {
        let posterior = self.known.posterior.as_ref()?;
        let safe = posterior.quantile((1.0 - self.settings.confidence) * SAFE_SHARE);
        let near = safe * (1.0 - SAFE_BAND) - 1.0;
        let mut within = self.tallies.iter().filter(|(load, tally)| {
            (near..=safe + 0.5).contains(&f64::from(**load)) && tally.mostly_passed()
        });
        if within.next().is_some() {
            return None;
        }
        let highest = grid::round_down(safe, self.step(posterior)).max(self.settings.min);
        let highest = highest.min(self.below_invalid().unwrap_or(highest));
        let unsure = self.known.confirmed.is_none();
        let lower =
            |load: &u32| Some(grid::share(*load, FAR_ENOUGH_BELOW)).filter(|next| next < load);
        std::iter::successors(Some(highest), |load| lower(load).filter(|_| unsure))
            .filter(|load| f64::from(*load) <= safe + 0.5)
            .find(|load| self.measurable(*load) && self.lacks_full_trials(*load))
    }

    /// Where full trials were invalid and none passed: a load far enough below. Just below the edge, the client may be
    /// late in each full trial.
    fn below_invalid(&self) -> Option<u32> {
        let invalid: u32 = self.tallies.values().map(Tally::full_invalid).sum();
        let late = invalid >= FULL_TRIALS_INVALID && !self.known.any_full_pass;
        let mut loads = self.tallies.iter();
        let (lowest, _) = loads.find(|(_, tally)| late && tally.full_invalid() > 0)?;
        Some(grid::share(*lowest, FAR_ENOUGH_BELOW))
    }
}
