//! Servers made of a formula, to try the search on: shared by the property tests and by the example that prints its errors.

use plimsoll_core::schedule::mix;
use plimsoll_core::search::{Outcome, Search, Step, TrialVerdict};

/// A server whose trials pass by chance: with probability `(1 - false_fails) / (1 + exp(ln(load / edge) / noise))`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyntheticServer {
    /// The load at which half of the trials pass.
    pub(crate) edge: f64,
    /// How soft the edge is, as a share of it: at `edge * (1 ± 3 noise)` about 95 % of the trials agree. 0 is a sharp edge.
    pub(crate) noise: f64,
    /// Share of trials that fail at any load, by disturbance.
    pub(crate) false_fails: f64,
    /// Decides the draws.
    pub(crate) seed: u64,
}

impl SyntheticServer {
    /// The verdict of trial number `trial` of the search, at `load`.
    pub(crate) fn verdict(&self, load: u32, trial: u32) -> TrialVerdict {
        let excess = (f64::from(load) / self.edge).ln();
        let carries = if self.noise > 0.0 {
            1.0 / (1.0 + (excess / self.noise).exp())
        } else {
            f64::from(u8::from(excess <= 0.0))
        };
        if uniform(self.seed, trial) < carries * (1.0 - self.false_fails) {
            TrialVerdict::Pass
        } else {
            TrialVerdict::Fail
        }
    }
}

/// Runs `search` to its end and says how many trials that took. `server` is told the load and the number of the trial.
pub(crate) fn run(
    search: &mut Search,
    mut server: impl FnMut(u32, u32) -> TrialVerdict,
) -> (Outcome, u32) {
    let mut trials = 0;
    loop {
        match search.next() {
            Step::Done(outcome) => return (outcome, trials),
            Step::Trial { load, .. } => {
                search.record(load, server(load, trials));
                trials += 1;
            }
        }
    }
}

/// A number in `0..1`.
pub(crate) fn uniform(seed: u64, draw: u32) -> f64 {
    (mix(seed ^ mix(u64::from(draw))) >> 11) as f64 / (1_u64 << 53) as f64
}
