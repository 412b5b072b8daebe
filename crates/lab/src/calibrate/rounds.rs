//! Summarises the rounds of a calibration.

use plimsoll_core::record::Spread;
use plimsoll_core::stats::median;

/// The costs of bare loop and engine, which take turns: one of each in every round.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    bare_us: Vec<f64>,
    engine_us: Vec<f64>,
}

impl Rounds {
    /// Adds a round.
    pub(super) fn add(&mut self, bare_us: f64, engine_us: f64) {
        self.bare_us.push(bare_us);
        self.engine_us.push(engine_us);
    }

    pub(super) fn bare_us(&self) -> Spread {
        spread(&self.bare_us)
    }

    pub(super) fn engine_us(&self) -> Spread {
        spread(&self.engine_us)
    }

    /// Engine / bare in each round, because a disturbance of the machine affects both halves of a round alike.
    pub(super) fn ratio(&self) -> Spread {
        let halves = self.engine_us.iter().zip(&self.bare_us);
        let ratios: Vec<f64> = halves.map(|(engine, bare)| engine / bare).collect();
        spread(&ratios)
    }
}

/// How many of these an otherwise idle core does per second.
pub(super) fn per_core_second(cpu_us: f64) -> f64 {
    1e6 / cpu_us
}

fn spread(values: &[f64]) -> Spread {
    Spread {
        median: median(values).unwrap_or(f64::NAN),
        least: values.iter().copied().fold(f64::NAN, f64::min),
        greatest: values.iter().copied().fold(f64::NAN, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rounds: &[(f64, f64)]) -> Rounds {
        let mut all = Rounds::default();
        for (bare_us, engine_us) in rounds {
            all.add(*bare_us, *engine_us);
        }
        all
    }

    #[test]
    fn the_middle_and_the_ends_of_all_rounds() {
        let rounds = of(&[(2.0, 3.0), (4.0, 5.0), (1.0, 4.0)]);
        let expected = |median, least, greatest| Spread {
            median,
            least,
            greatest,
        };
        assert_eq!(rounds.bare_us(), expected(2.0, 1.0, 4.0));
        assert_eq!(rounds.engine_us(), expected(4.0, 3.0, 5.0));
        assert!((per_core_second(rounds.engine_us().median) - 250_000.0).abs() < 1e-6);
    }

    /// If the machine is twice as slow in one round, both halves of that round cost twice as much, and the ratio does
    /// not move.
    #[test]
    fn a_ratio_is_that_of_a_round() {
        let rounds = of(&[(2.0, 3.0), (4.0, 6.0), (2.0, 3.0)]);
        let ratio = rounds.ratio();
        assert_eq!((ratio.median, ratio.least, ratio.greatest), (1.5, 1.5, 1.5));
    }
}
