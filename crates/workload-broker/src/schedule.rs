//! When each message of a writer is due.
//!
//! Message `k` of writer `w` is number `n = k · writers + w` of the trial, and due `n / rate` after the warm-up begins. So
//! it is due at `first + k · writers / rate`, and the writers take turns. No message moves because another was late, and
//! none is skipped. A writer belongs to one session, so threads and client processes have nothing to divide.
//!
//! The rate is the same in warm-up and window. So the numbers go on, and a queue that grows from the start grows through
//! both.
//!
//! With Poisson spacing each writer draws its own gaps. Together they are a Poisson process again, of the whole rate.
//!
//! **Bursts** squeeze the time: in each period of `ON + OFF`, the messages of the whole period are due in the first `ON`.
//! So the rate remains what the user asked for, as the mean over a period; within a burst it is `(ON + OFF) / ON` times as
//! high. All writers burst together, or it would not be one.
//!
//! A **closed loop** has no clock: each message is due when it can be written. It shows how fast a broker is, and no latency:
//! a broker that is slow is asked less.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile, Window};
use plimsoll_core::schedule::{Spacing, mix};
use thiserror::Error;

use crate::marks::NUMBERS_MAX;

/// The longest part of a burst's period.
pub const BURST_MAX_MS: u32 = 60_000;

/// The load of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Messages per second of all writers together; not zero.
    pub rate: u32,
    /// How many writers share them; not zero.
    pub writers: u32,
    /// How the messages are spaced. [`Spacing::Even`] here means at equal distances.
    pub spacing: Spacing,
    /// Whether they come in bursts.
    pub bursts: Option<Bursts>,
    /// Which closed loop it is, if it is one. Then rate, spacing and bursts mean nothing.
    pub closed: Option<Closed>,
}

/// A load that has no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Messages as fast as they can be written, from the beginning of the window to its end.
    Flood,
    /// So many messages of all writers together, from the beginning of the trial on. All of them are measured.
    Preload(u64),
}

/// Times of load and of silence by turns, the load first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bursts {
    on_ms: u32,
    off_ms: u32,
}

/// A text that does not name bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "use ON:OFF, each 1 to {BURST_MAX_MS} ms, for example --bursts 100:900 for 100 ms of load in each second"
)]
pub struct NotBursts;

impl Bursts {
    /// Bursts of `on_ms` milliseconds with `off_ms` between them; `None` if one of them is 0 or above
    /// [`BURST_MAX_MS`].
    #[must_use]
    pub fn new(on_ms: u32, off_ms: u32) -> Option<Self> {
        let possible = 1..=BURST_MAX_MS;
        (possible.contains(&on_ms) && possible.contains(&off_ms)).then_some(Self { on_ms, off_ms })
    }

    /// The period after which the pattern repeats, in nanoseconds. A window should have whole ones.
    #[must_use]
    pub fn period_ns(self) -> u64 {
        (u64::from(self.on_ms) + u64::from(self.off_ms)) * NS_PER_MS
    }

    /// When something is due in bursts that would be due at `even_ns` without them, both from the first burst's start.
    fn squeezed(self, even_ns: u64) -> u64 {
        let period_ns = self.period_ns();
        let on_ns = u128::from(u64::from(self.on_ms) * NS_PER_MS);
        let within_ns = u128::from(even_ns % period_ns) * on_ns / u128::from(period_ns);
        even_ns - even_ns % period_ns + narrow(within_ns)
    }
}

impl FromStr for Bursts {
    type Err = NotBursts;

    fn from_str(text: &str) -> Result<Self, NotBursts> {
        let (on, off) = text.split_once(':').ok_or(NotBursts)?;
        let ms = |text: &str| text.parse().map_err(|_| NotBursts);
        Self::new(ms(on)?, ms(off)?).ok_or(NotBursts)
    }
}

impl fmt::Display for Bursts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.on_ms, self.off_ms)
    }
}

/// A message that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its number within its writer, from 0.
    pub number: u64,
    /// When it is due, in nanoseconds since the trial began.
    pub at_ns: u64,
    /// Whether it is due in the measured window.
    pub measured: bool,
}

/// The messages of one writer, in the order in which they are due.
#[derive(Debug, Clone)]
pub struct Schedule {
    load: Load,
    writer: u32,
    seed: u64,
    /// When the warm-up begins.
    start_ns: u64,
    window: Window,
    /// Of a Poisson process: when the next message is due after the start, without rounding and bursts.
    drawn_ns: f64,
    number: u64,
    next: Option<Due>,
    /// A flood is over.
    is_over: bool,
}

impl Schedule {
    /// The messages of writer `writer`, numbered from 0. `seed` is that of the trial and decides what is drawn.
    #[must_use]
    pub fn new(load: Load, writer: u32, profile: &Profile, seed: u64) -> Self {
        let mut schedule = Self {
            load,
            writer,
            seed: mix(mix(seed ^ 0x4252_4F4B) ^ u64::from(writer)),
            start_ns: profile.ramp_end_ns(),
            window: profile.window(),
            drawn_ns: 0.0,
            number: 0,
            next: None,
            is_over: false,
        };
        schedule.drawn_ns = schedule.gap_ns(0);
        schedule.find();
        schedule
    }

    /// The next message; `None` if the window is over.
    #[must_use]
    pub fn peek(&self) -> Option<Due> {
        self.next
    }

    /// Takes the next message.
    pub fn take(&mut self) -> Option<Due> {
        let due = self.next?;
        self.number += 1;
        if self.load.spacing == Spacing::Poisson {
            self.drawn_ns += self.gap_ns(self.number);
        }
        self.find();
        Some(due)
    }

    /// The same for a message that is written now: in a closed loop, it is due now.
    pub fn take_at(&mut self, now_ns: u64) -> Option<Due> {
        let due = self.take()?;
        Some(if self.load.closed.is_some() {
            Due {
                at_ns: now_ns,
                ..due
            }
        } else {
            due
        })
    }

    /// Whether messages are due when they can be written.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.load.closed.is_some()
    }

    /// Ends a flood if its window is over.
    pub fn look(&mut self, now_ns: u64) {
        if now_ns >= self.window.end_ns {
            self.end();
        }
    }

    /// Ends a flood: what was not written was never due.
    pub fn end(&mut self) {
        if self.load.closed == Some(Closed::Flood) {
            self.is_over = true;
            self.next = None;
        }
    }

    /// How many messages of a preload are this writer's.
    fn share_of(&self, messages: u64) -> u64 {
        let (writer, writers) = (u64::from(self.writer), u64::from(self.load.writers.max(1)));
        messages / writers + u64::from(writer < messages % writers)
    }

    /// How many measured messages are due before `time_ns` and not taken. It looks at each of them if they are drawn,
    /// and at a few otherwise.
    #[must_use]
    pub fn measured_before(&self, time_ns: u64) -> u64 {
        match self.load.closed {
            // A flood owes nothing: that is what is wrong with it.
            Some(Closed::Flood) => return 0,
            Some(Closed::Preload(messages)) => return self.share_of(messages) - self.number,
            None => {}
        }
        let end_ns = time_ns.min(self.window.end_ns);
        if self.load.spacing == Spacing::Even {
            let first = self.first_due_from(self.window.start_ns, self.number);
            return self.first_due_from(end_ns, first) - first;
        }
        let mut ahead = self.clone();
        let taken = std::iter::from_fn(|| ahead.take());
        let before = taken.take_while(|due| due.at_ns < end_ns);
        before.map(|due| u64::from(due.measured)).sum()
    }

    /// The numbers of this writer's messages in the whole trial: the limit of what a reader can expect of it. It looks at
    /// each message if they are drawn.
    #[must_use]
    pub fn numbers(&self) -> Range<u64> {
        match self.load.closed {
            Some(Closed::Flood) => return 0..NUMBERS_MAX,
            Some(Closed::Preload(messages)) => return 0..self.share_of(messages),
            None => {}
        }
        if self.load.spacing == Spacing::Even {
            return 0..self.first_due_from(self.window.end_ns, 0);
        }
        let mut ahead = self.clone();
        0..self.number
            + std::iter::from_fn(|| ahead.take())
                .map(|_| 1_u64)
                .sum::<u64>()
    }

    fn find(&mut self) {
        if let Some(closed) = self.load.closed {
            let (at_ns, is_left) = match closed {
                Closed::Flood => (self.window.start_ns, !self.is_over),
                Closed::Preload(messages) => (0, self.number < self.share_of(messages)),
            };
            self.next = is_left.then_some(Due {
                number: self.number,
                at_ns,
                measured: true,
            });
            return;
        }
        let at_ns = self.due_ns(self.number);
        self.next = (at_ns < self.window.end_ns).then(|| Due {
            number: self.number,
            at_ns,
            measured: self.window.contains(at_ns),
        });
    }

    /// When a message is due. Of a Poisson process it knows only the next one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time within a trial, not negative"
    )]
    fn due_ns(&self, number: u64) -> u64 {
        let even_ns = match self.load.spacing {
            Spacing::Poisson => self.drawn_ns as u64,
            Spacing::Even => {
                let of_trial =
                    u128::from(number) * u128::from(self.load.writers) + u128::from(self.writer);
                narrow(of_trial * u128::from(NS_PER_S) / u128::from(self.load.rate))
            }
        };
        let squeezed_ns = match self.load.bursts {
            Some(bursts) => bursts.squeezed(even_ns),
            None => even_ns,
        };
        self.start_ns.saturating_add(squeezed_ns)
    }

    /// The first message from number `from` on that is due at `time_ns` or later, without Poisson spacing: due times
    /// rise with the numbers, so it is found by halving.
    fn first_due_from(&self, time_ns: u64, from: u64) -> u64 {
        let (mut low, mut step) = (from, 1_u64);
        while self.due_ns(low + step) < time_ns {
            low += step;
            step *= 2;
        }
        let mut high = low + step;
        if self.due_ns(low) >= time_ns {
            return low;
        }
        // Number `low` is due before the time, and number `high` is not.
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if self.due_ns(middle) < time_ns {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// The time from message `number - 1` to message `number` of a Poisson process: exponential, drawn from the number.
    #[expect(clippy::cast_precision_loss, reason = "53 bits of a draw")]
    fn gap_ns(&self, number: u64) -> f64 {
        let drawn = (mix(self.seed ^ mix(number)) >> 11) as f64 + 0.5;
        let mean_ns = NS_PER_S as f64 * f64::from(self.load.writers) / f64::from(self.load.rate);
        -(drawn / (1_u64 << 53) as f64).ln() * mean_ns
    }
}

/// The whole number, or the greatest one: a time that no trial reaches.
fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
