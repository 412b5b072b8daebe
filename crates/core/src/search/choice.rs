//! Which trial is the most informative, or why none is left: the rules of the [search](super).

mod last_trials;

use std::collections::BTreeMap;

use super::edge::EdgePosterior;
use super::knowledge::Knowledge;
use super::tally::Tally;
use super::{Ended, Settings, Why, grid};
use crate::profile::Length;
use crate::schedule::mix;

/// A trial to run.
pub(super) type Trial = (u32, Length, Why);

/// While the interval is wider than this, short trials may be more informative for their time than full ones.
const SHORT_ABOVE_WIDTH: f64 = 0.1;
/// The most short trials at one load; after that, full trials.
const SHORT_AT_MOST: u32 = 3;
/// Loads tried in vain, for reasons other than the client, before a search without a valid trial gives up.
const LOADS_TRIED_IN_VAIN: usize = 3;
/// Where a gap is split: in the middle, or next to loads that cannot be measured.
const SPLITS: [f64; 5] = [0.5, 0.375, 0.625, 0.25, 0.75];
/// Share of the posterior on either side in which no load is tried.
const TAIL_NOT_TRIED: f64 = 0.03;
/// Number of loads among which the most informative one is chosen.
const CANDIDATES_MAX: u32 = 10;
/// A trial that is expected to say less than this about the edge is not worth its time.
const LEAST_BITS: f64 = 0.001;
/// How much the seed sways the choice between loads that are about equally informative.
const SWAY: f64 = 0.05;
/// If the highest load allowed is not sure after this many times the usual number of full trials, more trials do not
/// make it sure.
const AT_MAXIMUM: u32 = 3;
/// Round loads tried next to the interval before a side is given up.
const SIDE_STEPS: usize = 12;

/// What the rules look at.
pub(super) struct Choice<'a> {
    pub(super) settings: &'a Settings,
    pub(super) tallies: &'a BTreeMap<u32, Tally>,
    pub(super) known: &'a Knowledge,
    /// Trials that the budget still allows.
    pub(super) trials_left: u32,
    /// Trials that the budget allows from beginning to end.
    pub(super) trials_in_all: u32,
    /// Trials that the time budget alone still allows.
    pub(super) time_left: u32,
}

impl Choice<'_> {
    /// The next trial, or why there is none.
    pub(super) fn next(&self) -> Result<Trial, Ended> {
        self.towards_the_edge()
            .or_else(|ended| self.lower_bound(ended).ok_or(ended))
    }

    /// Before the search gives up because a load cannot be tried: a trial that makes the lower bound sure, because that
    /// is the answer. If trials passed and no load is sure, this is a safe load; or, if none failed, the highest load with
    /// a pass that can still be tried, or else the next one below all loads. If the highest load allowed passed but a fail
    /// elsewhere leaves a doubt, it is tried again: no other load is more informative.
    fn lower_bound(&self, ended: Ended) -> Option<Trial> {
        if ended == Ended::AtMaximum
            && let Some(trial) = self.sure_at_maximum()
        {
            return Some(trial);
        }
        let gives_up = matches!(
            ended,
            Ended::AtMaximum | Ended::OutOfReach | Ended::Unmeasurable
        );
        let (lowest, _) = self.known.valid_loads?;
        if !gives_up || self.known.confirmed.is_some() || self.known.highest_pass.is_none() {
            return None;
        }
        if self.known.any_fail {
            return Some((self.safe()?, Length::Full, Why::Confirm));
        }
        let mut passed = self.tallies.iter().rev().filter(|(_, t)| t.any_pass());
        passed
            .find_map(|(load, _)| self.settle(*load))
            .or_else(|| Some((self.below(lowest)?, Length::Full, Why::Confirm)))
    }

    /// A full trial at the highest load allowed, if its trials passed but do not make it sure yet.
    fn sure_at_maximum(&self) -> Option<Trial> {
        let max = self.settings.max;
        let tally = self.tallies.get(&max)?;
        let unsure = self.known.confirmed != Some(max) && tally.mostly_passed();
        let few = tally.passed + tally.failed < self.settings.repeats * AT_MAXIMUM;
        (unsure && few && self.measurable(max)).then_some((max, Length::Full, Why::Confirm))
    }

    fn towards_the_edge(&self) -> Result<Trial, Ended> {
        if self.known.confirmed.is_none()
            && let Some(load) = self.secured()
        {
            return Ok((load, Length::Full, Why::Confirm));
        }
        if let Some(trial) = self.repetition() {
            return Ok(trial);
        }
        let Some((lowest, highest)) = self.known.valid_loads else {
            return self.opening();
        };
        if let Some(load) = self.known.doubtful_reach {
            return Ok((load, self.short_if_telling(load), Why::Confirm));
        }
        if let Some(load) = self.top() {
            return Ok((load, Length::Short, Why::Confirm));
        }
        if let Some(load) = self.last_chance() {
            return Ok((load, Length::Full, Why::Confirm));
        }
        match (&self.known.posterior, self.known.highest_pass) {
            (Some(posterior), Some(_)) if self.known.any_fail => {
                self.between(posterior, lowest, highest)
            }
            (_, Some(pass)) => self.upwards(pass),
            _ => self.downwards(lowest),
        }
    }

    /// Repeats an invalid trial, while that is worth its time.
    fn repetition(&self) -> Option<Trial> {
        let mut loads = self.tallies.iter();
        loads.find_map(|(load, tally)| {
            let in_range = (self.settings.min..=self.settings.max).contains(load);
            let length = tally.length_to_repeat(self.known.ran_out_surplus);
            let length = length.filter(|_| in_range)?;
            Some((*load, length, self.why_repeat()))
        })
    }

    /// Why a trial is repeated: the reason for the invalid trial, as far as it is known.
    fn why_repeat(&self) -> Why {
        if self.known.posterior.is_some() && self.known.any_fail {
            Why::Narrow
        } else {
            Why::Probe
        }
    }

    /// While no trial was valid: `start`; below it if the client ran out; otherwise one step up and one down.
    fn opening(&self) -> Result<Trial, Ended> {
        let &Settings {
            start, min, max, ..
        } = self.settings;
        let probe = |load| (load, self.short_if_telling(load), Why::Probe);
        if let Some(load) = self.known.out_of_reach {
            return self.below(load).map(probe).ok_or(Ended::OutOfReach);
        }
        let in_vain = self.tallies.values().filter(|t| self.spent(t)).count();
        if in_vain >= LOADS_TRIED_IN_VAIN {
            return Err(Ended::Unmeasurable);
        }
        let steps = [
            Some(start),
            grid::grow(start, max),
            grid::shrink(start, min),
        ];
        let load = steps.into_iter().flatten().find(|l| self.measurable(*l));
        load.map(probe).ok_or(Ended::Unmeasurable)
    }

    /// If nothing passes: a load below everything that was tried, then the lowest load until it is sure.
    fn downwards(&self, lowest: u32) -> Result<Trial, Ended> {
        if let Some(load) = self.below(lowest) {
            return Ok((load, self.short_if_telling(load), Why::Probe));
        }
        let ended = if lowest <= self.settings.min {
            Ended::AtMinimum
        } else {
            Ended::Unmeasurable
        };
        self.settle(lowest.max(self.settings.min)).ok_or(ended)
    }

    /// If nothing fails: twice the highest load, up to what may be tried or can be reached.
    fn upwards(&self, pass: u32) -> Result<Trial, Ended> {
        let pass = pass.max(self.settings.min);
        if let Some(limit) = self.known.out_of_reach.filter(|limit| *limit > pass) {
            return self.towards(limit, pass);
        }
        let max = self.settings.max;
        let up = grid::grow(pass, max).and_then(|double| {
            let wide = grid::too_wide(pass, double, self.settings.relative_width);
            let split = grid::split(pass, double, 0.5).filter(|_| wide);
            let steps = [Some(double), split, grid::grow(double, max)];
            steps.into_iter().flatten().find(|l| self.measurable(*l))
        });
        if let Some(load) = up {
            return Ok((load, self.short_if_telling(load), Why::Probe));
        }
        let ended = if pass >= max {
            Ended::AtMaximum
        } else {
            Ended::Unmeasurable
        };
        self.settle(pass).ok_or(ended)
    }

    /// If nothing fails and the client ran out at `limit`: as close to it as requested. Then a few more trials at
    /// `limit`, to see whether it was chance.
    fn towards(&self, limit: u32, pass: u32) -> Result<Trial, Ended> {
        if grid::too_wide(pass, limit, self.settings.relative_width) {
            let splits = SPLITS.iter().filter_map(|f| grid::split(pass, limit, *f));
            if let Some(load) = splits.into_iter().find(|l| self.measurable(*l)) {
                let length = self.length(load, grid::width(pass, limit));
                return Ok((load, length, Why::Narrow));
            }
        }
        let settled = self.settle(pass).or_else(|| self.another_look(limit));
        settled.ok_or(Ended::OutOfReach)
    }

    /// A trial at a load that is out of reach, while it may show that this was chance. Where a client is always late, it costs
    /// a few short trials.
    fn another_look(&self, limit: u32) -> Option<Trial> {
        let tally = self.tallies.get(&limit)?;
        let in_range = (self.settings.min..=self.settings.max).contains(&limit);
        let worth_it = tally.worth_another_look(self.known.ran_out_surplus);
        (in_range && worth_it).then(|| (limit, self.short_if_telling(limit), Why::Confirm))
    }

    /// If something passes and something fails.
    fn between(
        &self,
        posterior: &EdgePosterior,
        lowest: u32,
        highest: u32,
    ) -> Result<Trial, Ended> {
        let &Settings { min, max, .. } = self.settings;
        let median = posterior.quantile(0.5);
        let limit = self.known.out_of_reach;
        let ceiling = limit.map_or(max, |limit| limit - 1).min(max);
        if median > f64::from(highest.min(ceiling)) {
            // The edge lies above anything tried, so either a fail below or what put the load above out of reach was a
            // disturbance.
            let look = limit.and_then(|limit| self.another_look(limit));
            return look.map_or_else(
                || self.upwards(self.known.highest_pass.unwrap_or(highest)),
                Ok,
            );
        }
        if median < f64::from(lowest) {
            let below = self
                .below(lowest)
                .map(|l| (l, self.short_if_telling(l), Why::Probe));
            let ended = if lowest <= min {
                Ended::AtMinimum
            } else {
                Ended::Unmeasurable
            };
            return below.or_else(|| self.settle(lowest.max(min))).ok_or(ended);
        }
        let edge = posterior.interval(self.settings.confidence);
        let width = edge
            .high
            .map_or(f64::INFINITY, |high| high / edge.low - 1.0);
        let whole = edge.high.is_some_and(|high| high - edge.low <= 1.0);
        if width > self.settings.relative_width && !whole {
            let telling = self.most_telling(posterior, highest, ceiling);
            return match telling {
                Some((load, length)) => Ok((load, length, Why::Narrow)),
                None => self.bounding(posterior, ceiling).ok_or(Ended::Unmeasurable),
            };
        }
        self.bounding(posterior, ceiling).ok_or(Ended::Narrow)
    }

    /// The trial at a round load in the posterior's range that is expected to say the most about the edge for its time.
    fn most_telling(
        &self,
        posterior: &EdgePosterior,
        highest: u32,
        ceiling: u32,
    ) -> Option<(u32, Length)> {
        let top = grid::grow(highest, ceiling).unwrap_or(ceiling);
        if top < self.settings.min {
            // In trials of another SLO's search, the client ran out below the least load.
            return None;
        }
        let quantile = |q: f64| {
            let load = posterior.quantile(q);
            load.clamp(f64::from(self.settings.min), f64::from(top))
        };
        let (low, high) = (quantile(TAIL_NOT_TRIED), quantile(1.0 - TAIL_NOT_TRIED));
        let least = self.step(posterior);
        let trials: u32 = self.tallies.values().map(Tally::valid).sum();
        let worth = |load: u32, length: Length| {
            // Drawn from the number of valid trials, so that an invalid trial is repeated at the same load.
            let draw = mix(self.settings.seed ^ mix(u64::from(trials) << 32 | u64::from(load)));
            let sway = (draw >> 11) as f64 / (1_u64 << 53) as f64;
            let cost = match length {
                Length::Full => 1.0,
                Length::Short => self.settings.short_share,
            };
            let bits = posterior.expected_bits(load, length);
            (bits > LEAST_BITS).then_some(bits * (1.0 + SWAY * sway) / cost)
        };
        let lengths = |load: u32| {
            let short = self.length(load, high / low - 1.0);
            [Length::Full, short]
                .into_iter()
                .skip(usize::from(short == Length::Full))
        };
        grid::round_between(low, high, least, CANDIDATES_MAX)
            .into_iter()
            .filter(|load| (self.settings.min..=top).contains(load) && self.measurable(*load))
            .flat_map(|load| lengths(load).map(move |length| (load, length)))
            .filter_map(|(load, length)| Some((load, length, worth(load, length)?)))
            .max_by(|a, b| a.2.total_cmp(&b.2))
            .map(|(load, length, _)| (load, length))
    }

    /// If the interval is narrow: a load just below it must pass and one just above it must fail, each with its own
    /// full trials.
    fn bounding(&self, posterior: &EdgePosterior, ceiling: u32) -> Option<Trial> {
        let sides = [
            self.lower_side(posterior),
            self.upper_side(posterior, ceiling),
        ];
        let trials: u32 = self.tallies.values().map(Tally::valid).sum();
        let draw = mix(self.settings.seed ^ mix(u64::from(trials)));
        let first = usize::from(draw & 1 == 1);
        let load = sides[first].or(sides[1 - first])?;
        Some((load, Length::Full, Why::Confirm))
    }

    /// A load just below the interval that still lacks full trials.
    fn lower_side(&self, posterior: &EdgePosterior) -> Option<u32> {
        let low = posterior.interval(self.settings.confidence).low + 0.5;
        let near = low * (1.0 - self.settings.relative_width / 2.0) - 1.0;
        if let Some(load) = self.known.confirmed.filter(|load| f64::from(*load) >= near) {
            return self.settle(load).map(|(load, _, _)| load);
        }
        let step = self.step(posterior);
        let loads = std::iter::successors(Some(grid::round_down(low, step)), |load| {
            load.checked_sub(step)
        });
        loads
            .take(SIDE_STEPS)
            .filter(|load| *load >= self.settings.min && Some(*load) > self.known.confirmed)
            .find(|load| self.measurable(*load) && self.lacks_full_trials(*load))
    }

    /// A load just above the interval that still lacks full trials.
    fn upper_side(&self, posterior: &EdgePosterior, ceiling: u32) -> Option<u32> {
        let high = posterior.interval(self.settings.confidence).high? - 0.5;
        let near = high * (1.0 + self.settings.relative_width / 2.0) + 1.0;
        if let Some(load) = self
            .known
            .first_fail
            .filter(|load| f64::from(*load) <= near)
        {
            return self.settle(load).map(|(load, _, _)| load);
        }
        let step = self.step(posterior);
        let loads = std::iter::successors(Some(grid::round_up(high, step)), |load| {
            load.checked_add(step)
        });
        loads
            .take(SIDE_STEPS)
            .filter(|load| *load <= ceiling)
            .filter(|load| self.known.first_fail.is_none_or(|fail| *load < fail))
            .find(|load| self.measurable(*load) && self.lacks_full_trials(*load))
    }

    /// A full trial at a load that bounds the answer, while it lacks full trials.
    fn settle(&self, load: u32) -> Option<Trial> {
        (self.measurable(load) && self.lacks_full_trials(load)).then_some((
            load,
            Length::Full,
            Why::Confirm,
        ))
    }

    /// Whether a load has neither a majority of `repeats` nor all of them.
    fn lacks_full_trials(&self, load: u32) -> bool {
        self.tallies.get(&load).is_none_or(|tally| {
            tally.passed.max(tally.failed) < self.needed()
                && tally.passed + tally.failed < self.settings.repeats
        })
    }

    /// The number of agreeing full trials that settle a load.
    fn needed(&self) -> u32 {
        self.settings.repeats / 2 + 1
    }

    /// A round step of about a quarter of the requested width.
    fn step(&self, posterior: &EdgePosterior) -> u32 {
        grid::step_of(posterior.quantile(0.5) * self.settings.relative_width / 4.0)
    }

    /// A short trial if it can give a verdict, otherwise a full one.
    fn short_if_telling(&self, load: u32) -> Length {
        if load < self.settings.least(Length::Short) {
            Length::Full
        } else {
            Length::Short
        }
    }

    fn length(&self, load: u32, width: f64) -> Length {
        let short_trials = self
            .tallies
            .get(&load)
            .map_or(0, |tally| tally.short_passed + tally.short_failed);
        let enough = short_trials < SHORT_AT_MOST && self.settings.short_share < 1.0;
        if enough && width > SHORT_ABOVE_WIDTH {
            self.short_if_telling(load)
        } else {
            Length::Full
        }
    }

    /// Whether a trial at `load` may still show something new.
    fn measurable(&self, load: u32) -> bool {
        load >= self.settings.min
            && self
                .tallies
                .get(&load)
                .is_none_or(|tally| !self.spent(tally))
    }

    fn spent(&self, tally: &Tally) -> bool {
        tally.spent(self.known.ran_out_surplus)
    }

    /// The next measurable load on the way down from `load`.
    fn below(&self, load: u32) -> Option<u32> {
        let min = self.settings.min;
        std::iter::successors(grid::shrink(load, min), |next| grid::shrink(*next, min))
            .find(|next| self.measurable(*next))
    }
}
