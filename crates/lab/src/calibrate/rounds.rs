//! Summarises the rounds of a calibration.

use plimsoll_core::record::{CostOverTls, Spread};
use plimsoll_core::stats::median;

use super::{Round, RoundOverTls};

/// The costs of bare loop and engine, which take turns: one of each in every round.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds(Vec<Round>);

impl Rounds {
    /// Adds a round.
    pub(super) fn add(&mut self, round: Round) {
        self.0.push(round);
    }

    pub(super) fn bare_us(&self) -> Spread {
        spread(self.0.iter().map(|round| round.bare_us))
    }

    pub(super) fn engine_us(&self) -> Spread {
        spread(self.0.iter().map(|round| round.engine_us))
    }

    /// Engine / bare in each round, because a disturbance of the machine affects both halves of a round alike.
    pub(super) fn ratio(&self) -> Spread {
        spread(self.0.iter().map(|round| round.engine_us / round.bare_us))
    }

    /// The engine over TLS, compared within each round as well; `None` if it was not measured.
    pub(super) fn over_tls(&self) -> Option<CostOverTls> {
        let both = self.0.iter();
        let both = both.filter_map(|round| Some((round.engine_us, round.tls?)));
        let both: Vec<(f64, RoundOverTls)> = both.collect();
        let of = |figure: fn(f64, &RoundOverTls) -> f64| {
            spread(both.iter().map(|(plain_us, over)| figure(*plain_us, over)))
        };
        (!both.is_empty()).then(|| CostOverTls {
            engine_cpu_us: of(|_, over| over.engine_us),
            added_cpu_us: of(|plain_us, over| over.engine_us - plain_us),
            ratio: of(|plain_us, over| over.engine_us / plain_us),
            tls_cpu_us: of(|_, over| over.tls_us),
            handshake_cpu_us: of(|_, over| over.handshake_us),
        })
    }
}

/// How many of these an otherwise idle core does per second.
pub(super) fn per_core_second(cpu_us: f64) -> f64 {
    1e6 / cpu_us
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let values: Vec<f64> = values.collect();
    Spread {
        median: median(&values).unwrap_or(f64::NAN),
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
            all.add(Round {
                bare_us: *bare_us,
                engine_us: *engine_us,
                tls: None,
            });
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

    /// As with the ratio: what TLS adds is the difference within a round.
    #[test]
    fn tls_is_compared_within_a_round() {
        assert_eq!(of(&[(2.0, 3.0)]).over_tls(), None);
        let mut rounds = Rounds::default();
        for slower in [1.0, 2.0, 4.0] {
            rounds.add(Round {
                bare_us: 2.0 * slower,
                engine_us: 4.0 * slower,
                tls: Some(RoundOverTls {
                    engine_us: 6.0 * slower,
                    tls_us: 1.5 * slower,
                    handshake_us: 300.0 * slower,
                }),
            });
        }
        let tls = rounds.over_tls().expect("measured");
        let added = tls.added_cpu_us;
        assert_eq!((added.median, added.least, added.greatest), (4.0, 2.0, 8.0));
        let ratio = tls.ratio;
        assert_eq!((ratio.median, ratio.least, ratio.greatest), (1.5, 1.5, 1.5));
        let medians = [tls.engine_cpu_us, tls.tls_cpu_us, tls.handshake_cpu_us];
        assert_eq!(medians.map(|spread| spread.median), [12.0, 3.0, 600.0]);
    }
}
