//! Servers defined by a formula, for trying the search on. The property tests share them with the example that prints
//! the search's errors.

use plimsoll_core::profile::Length;
use plimsoll_core::schedule::mix;
use plimsoll_core::search::{Search, SearchResult, Step, TrialVerdict};

/// A server whose trials pass by chance, less often at higher loads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyntheticServer {
    /// The load at which half of the full trials pass, apart from disturbances and drift; see [`Self::half_passes`].
    pub(crate) edge: f64,
    /// How the share of passes falls around the edge.
    pub(crate) shape: Shape,
    /// How soft the edge is, as a share of it. At `edge * (1 ± 3 softness)`, about 95 % of the trials agree. 0 is a
    /// sharp edge.
    pub(crate) softness: f64,
    /// Share of trials that fail at any load, by disturbance.
    pub(crate) false_fails: f64,
    /// How far the edge wanders to either side, as a share of the edge.
    pub(crate) drift: f64,
    /// The way in which the edge wanders.
    pub(crate) wander: Wander,
    /// One period of the wandering, in full trials.
    pub(crate) drift_period: f64,
    /// How much higher the edge of short trials is, as a share of the edge.
    pub(crate) short_optimism: f64,
    /// Decides the draws.
    pub(crate) seed: u64,
}

/// How the share of passes falls around the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Logistic, with scale `softness`.
    Logistic,
    /// Normal, with the same spread as the logistic (standard deviation `1.7 softness`) and lighter tails.
    Normal,
}

/// How an edge wanders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wander {
    /// Like a sine.
    Sine,
    /// Between two states: each lasts for a quarter to three quarters of the period, drawn anew each time.
    TwoStates,
}

impl SyntheticServer {
    /// A server without noise.
    pub(crate) fn sharp(edge: f64, seed: u64) -> Self {
        Self {
            edge,
            shape: Shape::Logistic,
            softness: 0.0,
            false_fails: 0.0,
            drift: 0.0,
            wander: Wander::Sine,
            drift_period: 20.0,
            short_optimism: 0.0,
            seed,
        }
    }

    /// The load at which half of all full trials pass, apart from drift: what a search should find. False fails lower
    /// it a little.
    pub(crate) fn half_passes(&self) -> f64 {
        let carried = 0.5 / (1.0 - self.false_fails);
        let room = match self.shape {
            Shape::Logistic => (carried / (1.0 - carried)).ln(),
            Shape::Normal => {
                let (mut low, mut high) = (0.0, 8.0);
                for _ in 0..60 {
                    let middle = (low + high) / 2.0;
                    if normal_share(middle) < carried {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                1.7 * low
            }
        };
        self.edge * (-room * self.softness).exp()
    }

    /// The verdict of trial number `trial` of the search, at `load`. `elapsed` is the time spent before it, in full
    /// trials.
    pub(crate) fn verdict(
        &self,
        load: u32,
        length: Length,
        trial: u32,
        elapsed: f64,
    ) -> TrialVerdict {
        let short_edge = match length {
            Length::Full => 1.0,
            Length::Short => 1.0 + self.short_optimism,
        };
        let edge = self.edge * (1.0 + self.drift * self.wandered(elapsed)) * short_edge;
        let room = (edge / f64::from(load)).ln();
        let carries = if self.softness <= 0.0 {
            f64::from(u8::from(room >= 0.0))
        } else {
            match self.shape {
                Shape::Logistic => 1.0 / (1.0 + (-room / self.softness).exp()),
                Shape::Normal => normal_share(room / (1.7 * self.softness)),
            }
        };
        if uniform(self.seed, trial) < carries * (1.0 - self.false_fails) {
            TrialVerdict::Pass
        } else {
            TrialVerdict::Fail
        }
    }
}

impl SyntheticServer {
    /// Where the edge is after this time, from -1 to 1.
    fn wandered(&self, elapsed: f64) -> f64 {
        let phase = uniform(!self.seed, 0);
        match self.wander {
            Wander::Sine => (std::f64::consts::TAU * (elapsed / self.drift_period + phase)).sin(),
            Wander::TwoStates => {
                let mut state = if phase < 0.5 { -1.0 } else { 1.0 };
                // The first state began some time before the search did.
                let mut until = -self.drift_period * uniform(!self.seed, 1);
                for turn in 2.. {
                    until += self.drift_period * (0.25 + 0.5 * uniform(!self.seed, turn));
                    if elapsed < until {
                        break;
                    }
                    state = -state;
                }
                state
            }
        }
    }
}

/// The share of a standard normal distribution below `z`: Abramowitz and Stegun, Handbook of Mathematical Functions,
/// 26.2.17 (error below 1e-7).
fn normal_share(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let tail = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
        * t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// What a search cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    /// Number of trials of either length.
    pub(crate) trials: u32,
    /// Time, in full trials.
    pub(crate) full_trials: f64,
}

/// Runs `search` to its end and returns the outcome and what it cost. `server` receives the load, the length, the
/// number of the trial, and the time before it in full trials; a short trial takes `short_share` of a full one.
pub(crate) fn run(
    search: &mut Search,
    short_share: f64,
    mut server: impl FnMut(u32, Length, u32, f64) -> TrialVerdict,
) -> (SearchResult, Spent) {
    let mut spent = Spent::default();
    loop {
        match search.next() {
            Step::Done(outcome) => return (outcome, spent),
            Step::Trial { load, length, .. } => {
                let verdict = server(load, length, spent.trials, spent.full_trials);
                search.record(load, length, verdict);
                spent.trials += 1;
                spent.full_trials += match length {
                    Length::Full => 1.0,
                    Length::Short => short_share,
                };
            }
        }
    }
}

/// A uniform number in `0..1`.
pub(crate) fn uniform(seed: u64, draw: u32) -> f64 {
    (mix(seed ^ mix(u64::from(draw))) >> 11) as f64 / (1_u64 << 53) as f64
}
