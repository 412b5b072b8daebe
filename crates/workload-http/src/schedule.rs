//! When each request of a trial is due.
//!
//! There is one schedule for the whole trial. Threads and client processes take turns with its requests, so how many
//! there are does not change when a request is due. No request moves because another was late, and none is skipped.

use plimsoll_core::profile::{NS_PER_S, Profile, Window};
use plimsoll_core::schedule::{Spacing, mix};
use plimsoll_core::session::Share;

/// The requests of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Requests per second in the measured window; not zero.
    pub measured: u32,
    /// Requests per second in the warm-up.
    pub warm_up: u32,
    /// How they are spaced.
    pub spacing: Spacing,
    /// Whether each second has exactly as many as the rate says, like sessions that each ask once a second. With
    /// [`Spacing::Poisson`], their times within the second are still independent and uniform.
    pub whole_seconds: bool,
}

/// A request that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its number in the trial, from 0.
    pub number: u64,
    /// When it is due.
    pub at_ns: u64,
    /// Whether it is due in the measured window.
    pub measured: bool,
}

/// The requests of one thread, in the order in which they are due.
#[derive(Debug)]
pub struct Schedule {
    rates: Rates,
    share: Share,
    seed: u64,
    /// When the warm-up begins.
    start_ns: u64,
    window: Window,
    /// Number of the trial's next request that is looked at, whoever has it.
    number: u64,
    /// The numbers below this one belong to the warm-up; known once the first measured request was reached.
    warm_ups: Option<u64>,
    /// Of a Poisson process: when the request `number` is due, without rounding.
    drawn_ns: f64,
    /// Of a Poisson process: by what gaps are stretched so that the second has its number of requests.
    stretch: f64,
    next: Option<Due>,
}

impl Schedule {
    /// The requests of a share of a trial.
    #[must_use]
    pub fn new(rates: Rates, share: Share, profile: &Profile, seed: u64) -> Self {
        let start_ns = profile.ramp_end_ns();
        let mut schedule = Self {
            rates,
            share,
            seed: mix(seed ^ 0x4854_5450),
            start_ns,
            window: profile.window(),
            number: 0,
            warm_ups: None,
            drawn_ns: 0.0,
            stretch: 1.0,
            next: None,
        };
        if rates.warm_up == 0 {
            schedule.end_warm_up();
        }
        schedule.draw();
        schedule.advance();
        schedule
    }

    /// The next request.
    #[must_use]
    pub fn peek(&self) -> Option<Due> {
        self.next
    }

    /// Takes the next request.
    pub fn take(&mut self) -> Option<Due> {
        let due = self.next;
        self.advance();
        due
    }

    /// How many measured requests are due before `time_ns` and not taken. It looks at each of them.
    #[must_use]
    pub fn measured_before(&self, time_ns: u64) -> u64 {
        let mut ahead = Self {
            next: self.next,
            ..*self
        };
        let mut count = 0;
        while let Some(due) = ahead.take()
            && due.at_ns < time_ns
        {
            count += u64::from(due.measured);
        }
        count
    }

    /// Finds the next request that belongs to this share.
    fn advance(&mut self) {
        self.next = loop {
            let at_ns = self.due_ns();
            if self.warm_ups.is_none() && at_ns >= self.window.start_ns {
                self.end_warm_up();
                continue;
            }
            if at_ns >= self.window.end_ns {
                break None;
            }
            let number = self.number;
            self.number += 1;
            if self.rates.spacing == Spacing::Poisson {
                self.draw();
            }
            if number % u64::from(self.share.of) == u64::from(self.share.index) {
                break Some(Due {
                    number,
                    at_ns,
                    measured: self.warm_ups.is_some(),
                });
            }
        };
    }

    /// The requests from here on are measured. They start afresh at the beginning of the window, at their own rate.
    fn end_warm_up(&mut self) {
        self.warm_ups = Some(self.number);
        self.draw();
    }

    /// Draws when the request `number` is due.
    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    fn draw(&mut self) {
        let (rate, first) = match self.warm_ups {
            None => (u64::from(self.rates.warm_up), 0),
            Some(first) => (u64::from(self.rates.measured), first),
        };
        let place = self.number - first;
        if place == 0 {
            self.drawn_ns = 0.0;
        }
        if self.rates.whole_seconds && place.is_multiple_of(rate) {
            // Given their number, arrivals of a Poisson process are uniform: so gaps, with one more up to the second's end,
            // are stretched to fill it. That last gap has a number that no request has.
            let gaps = self.number..self.number + rate;
            let last = self.gap_ns(!self.number);
            let sum = gaps.map(|number| self.gap_ns(number)).sum::<f64>() + last;
            self.stretch = NS_PER_S as f64 / sum;
            self.drawn_ns = (place / rate) as f64 * NS_PER_S as f64;
        }
        self.drawn_ns += self.gap_ns(self.number) * self.stretch;
    }

    /// When the request `number` is due.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time within a trial, not negative"
    )]
    fn due_ns(&self) -> u64 {
        let (rate, since_ns, first) = match self.warm_ups {
            None => (self.rates.warm_up, self.start_ns, 0),
            Some(first) => (self.rates.measured, self.window.start_ns, first),
        };
        since_ns
            + match self.rates.spacing {
                Spacing::Poisson => self.drawn_ns as u64,
                Spacing::Even => {
                    let periods = u128::from(self.number - first) * u128::from(NS_PER_S);
                    (periods / u128::from(rate)) as u64
                }
            }
    }

    /// The time from request `number - 1` to request `number` of a Poisson process: exponential, drawn from the number.
    #[expect(clippy::cast_precision_loss, reason = "53 bits of a draw")]
    fn gap_ns(&self, number: u64) -> f64 {
        let rate = match self.warm_ups {
            None => self.rates.warm_up,
            Some(_) => self.rates.measured,
        };
        let drawn = (mix(self.seed ^ mix(number)) >> 11) as f64 + 0.5;
        -(drawn / (1_u64 << 53) as f64).ln() * NS_PER_S as f64 / f64::from(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::NS_PER_MS;
    use proptest::prelude::*;

    const WHOLE: Share = Share { index: 0, of: 1 };

    fn profile() -> Profile {
        Profile {
            ramp_s: 1.0,
            warm_up_s: 1.0,
            measured_s: 2.0,
            ..Profile::quick()
        }
    }

    fn rates(measured: u32) -> Rates {
        Rates {
            measured,
            warm_up: measured,
            spacing: Spacing::Even,
            whole_seconds: false,
        }
    }

    fn all(rates: Rates, share: Share) -> Vec<Due> {
        let mut schedule = Schedule::new(rates, share, &profile(), 7);
        std::iter::from_fn(|| schedule.take()).collect()
    }

    #[test]
    fn an_even_schedule_is_a_closed_form() {
        let due = all(rates(3), WHOLE);
        let at_ms: Vec<u64> = due.iter().map(|due| due.at_ns / NS_PER_MS).collect();
        // Warm-up from 1 s to 2 s, window from 2 s to 4 s.
        assert_eq!(
            at_ms,
            [1000, 1333, 1666, 2000, 2333, 2666, 3000, 3333, 3666]
        );
        assert!(due.iter().all(|due| due.measured == (due.number >= 3)));
    }

    #[test]
    fn the_warm_up_has_a_rate_of_its_own_or_none() {
        let of = |warm_up| {
            let due = all(
                Rates {
                    warm_up,
                    ..rates(100)
                },
                WHOLE,
            );
            (due.iter().filter(|due| due.measured).count(), due.len())
        };
        assert_eq!(of(10), (200, 210));
        assert_eq!(of(0), (200, 200));
    }

    #[test]
    fn poisson_gaps_are_as_irregular_as_they_should_be() {
        let due = all(
            Rates {
                spacing: Spacing::Poisson,
                ..rates(10_000)
            },
            WHOLE,
        );
        let measured: Vec<u64> = due
            .iter()
            .filter(|due| due.measured)
            .map(|due| due.at_ns)
            .collect();
        // 20,000 are expected, with a standard deviation of 141.
        assert!(
            (19_400..20_600).contains(&measured.len()),
            "{}",
            measured.len()
        );
        let gaps: Vec<f64> = measured
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // An exponential distribution's standard deviation is its mean.
        assert!(
            (0.95..1.05).contains(&(variance.sqrt() / mean)),
            "{mean} {variance}"
        );
    }

    /// The window has two whole seconds, and so does each of them, whatever the rate.
    #[test]
    fn whole_seconds_have_as_many_as_the_rate_says() {
        for rate in [1, 2, 40, 1_000] {
            let rates = Rates {
                spacing: Spacing::Poisson,
                whole_seconds: true,
                ..rates(rate)
            };
            let due = all(rates, WHOLE);
            assert!(due.is_sorted_by_key(|due| due.at_ns));
            for second in 1..4 {
                let in_it = |due: &&Due| due.at_ns / NS_PER_S == second;
                let count = due.iter().filter(in_it).count();
                assert_eq!(count, rates.measured as usize, "second {second}");
            }
            assert_eq!(
                due.iter().filter(|due| due.measured).count(),
                2 * rates.measured as usize
            );
        }
    }

    /// As many are in the first tenth of a second as in any other.
    #[test]
    fn their_times_within_the_second_are_uniform() {
        let rates = Rates {
            spacing: Spacing::Poisson,
            whole_seconds: true,
            ..rates(10_000)
        };
        let due = all(rates, WHOLE);
        for tenth in 0..10 {
            let in_it = |due: &&Due| due.at_ns % NS_PER_S / (NS_PER_S / 10) == tenth;
            let count = due.iter().filter(in_it).count();
            // Of 30,000, 3,000 are expected with a standard deviation of 52.
            assert!((2_750..3_250).contains(&count), "{tenth}: {count}");
        }
    }

    proptest! {
        /// However many threads and processes there are, together they have each request once, at the same time.
        #[test]
        fn shares_divide_the_trial(of in 1_u32..9, rate in 1_u32..500, poisson in any::<bool>(), whole_seconds in any::<bool>()) {
            let spacing = if poisson { Spacing::Poisson } else { Spacing::Even };
            let rates = Rates { spacing, whole_seconds, ..rates(rate) };
            let mut divided: Vec<Due> = (0..of).flat_map(|index| all(rates, Share { index, of })).collect();
            divided.sort_by_key(|due| due.number);
            prop_assert_eq!(divided, all(rates, WHOLE));
        }

        #[test]
        fn what_is_left_is_counted(taken in 0_usize..40, before_ms in 0_u64..5_000) {
            let mut schedule = Schedule::new(rates(20), WHOLE, &profile(), 1);
            for _ in 0..taken {
                schedule.take();
            }
            let counted = all(rates(20), WHOLE).iter().skip(taken)
                .filter(|due| due.measured && due.at_ns < before_ms * NS_PER_MS).count() as u64;
            prop_assert_eq!(schedule.measured_before(before_ms * NS_PER_MS), counted);
        }
    }
}
