//! Which fault the broker has, read from the environment.
//!
//! The faults that strike messages strike by a message's number in its channel, not by chance: that of the first one is
//! `AFTER`, and of the next ones `EVERY` more each, `COUNT` in all. So a test knows how many there are.

use std::ffi::OsString;
use std::time::Duration;

use rust_log::conduct::{About, Act, Conduct};

/// When nothing has come for so long, what was held back is delivered.
const QUIET_NS: u64 = 500_000_000;

/// How often a broker that holds messages back looks whether it may go on.
const TICK: Duration = Duration::from_millis(20);

/// What is wrong with the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the README")]
pub enum Kind {
    None,
    Stall,
    LateConfirm,
    Thin,
    Slow,
    Drop,
    Double,
    Swap,
    Sink,
    Grow,
    NoSync,
}

/// Every fault: its name, and the variables that it reads.
const KINDS: [(Kind, &str, &[&str]); 11] = [
    (Kind::None, "none", &[]),
    (Kind::Stall, "stall", &["STOP_MS", "EVERY_MS"]),
    (Kind::LateConfirm, "late_confirm", &["DELAY_MS"]),
    (Kind::Thin, "thin", &["READER", "SHARE_PERCENT"]),
    (Kind::Slow, "slow", &["SHARE_PERCENT"]),
    (Kind::Drop, "drop", &["AFTER", "EVERY", "COUNT"]),
    (Kind::Double, "double", &["AFTER", "EVERY", "COUNT"]),
    (Kind::Swap, "swap", &["AFTER", "EVERY", "COUNT"]),
    (Kind::Sink, "sink", &[]),
    (Kind::Grow, "grow", &["GROW_MIB"]),
    (Kind::NoSync, "no_sync", &[]),
];

/// The variables that faults read.
const PARAMETERS: [&str; 9] =
    ["STOP_MS", "EVERY_MS", "DELAY_MS", "READER", "SHARE_PERCENT", "AFTER", "EVERY", "COUNT", "GROW_MIB"];

/// A fault, with its numbers.
#[derive(Debug)]
pub struct Faults {
    kind: Kind,
    /// Length of a stop, and from the beginning of one to that of the next.
    stop_ns: u64,
    every_ns: u64,
    /// When the next one begins.
    next_stop_ns: u64,
    delay_ns: u64,
    /// Which reader of a channel is struck, from 0.
    reader: u32,
    /// Of a hundred messages, so many are delivered.
    share_percent: u64,
    after: u64,
    every: u64,
    count: u64,
    /// Memory that is of no use.
    ballast: Vec<u8>,
}

impl Faults {
    /// Reads variables by `variable`, which is `std::env::var_os` but in tests.
    ///
    /// # Errors
    /// One line that names the first variable with a value that is of no use, or that the fault does not read.
    pub fn read(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let named = text("FAULT").unwrap_or_else(|| "none".into());
        let Some((kind, _, parameters)) = KINDS.iter().find(|(_, name, _)| *name == named) else {
            return Err(format!("FAULT={named:?}: give one of {}", KINDS.map(|(_, name, _)| name).join(", ")));
        };
        if let Some(name) = PARAMETERS.iter().find(|name| !parameters.contains(name) && text(name).is_some()) {
            return Err(format!("{name}={:?}: FAULT={named} has no use for it", text(name).unwrap_or_default()));
        }
        let number = |name: &str, default: u64, most: u64| whole(name, text(name), default, most);
        let stop_ms = number("STOP_MS", 500, 60_000)?;
        let every_ms = number("EVERY_MS", 5000, 1_000_000)?;
        if every_ms <= stop_ms {
            return Err(format!("EVERY_MS=\"{every_ms}\": give more than the {stop_ms} ms of a stop (STOP_MS)"));
        }
        let grow_mib = if *kind == Kind::Grow { number("GROW_MIB", 256, 16_384)? } else { 0 };
        let share = if *kind == Kind::Thin { 90 } else { 80 };
        Ok(Self {
            kind: *kind,
            stop_ns: stop_ms * 1_000_000,
            every_ns: every_ms * 1_000_000,
            next_stop_ns: every_ms * 1_000_000,
            delay_ns: number("DELAY_MS", 200, 60_000)? * 1_000_000,
            // The fourth of four.
            reader: u32::try_from(number("READER", 3, 1_000_000)?).unwrap_or(u32::MAX),
            share_percent: number("SHARE_PERCENT", share, 100)?,
            after: number("AFTER", 1000, u64::MAX / 4)?,
            every: number("EVERY", 1000, u64::MAX / 4)?.max(1),
            count: number("COUNT", 7, 1_000_000)?,
            // Ones, because the kernel gives no memory for zeros that nobody has written.
            ballast: vec![1; usize::try_from(grow_mib << 20).unwrap_or(0)],
        })
    }

    /// What it does, in one line; none if it is honest.
    pub fn about(&self) -> Option<String> {
        let Self { reader, share_percent, after, every, count, .. } = self;
        let ms = |ns: u64| ns / 1_000_000;
        let struck = || format!("{count} messages of each channel, number {after} and each {every} later");
        Some(match self.kind {
            Kind::None => return None,
            Kind::Stall => format!("stands still for {} ms every {} ms", ms(self.stop_ns), ms(self.every_ns)),
            Kind::LateConfirm => format!("confirms {} ms late", ms(self.delay_ns)),
            Kind::Thin => format!("reader {reader} of a channel gets {share_percent} of 100 messages"),
            Kind::Slow => format!("delivers {share_percent} of 100 messages while more come, and then the rest"),
            Kind::Drop => format!("never delivers {}", struck()),
            Kind::Double => format!("delivers twice {}", struck()),
            Kind::Swap => format!("delivers behind their successors {}", struck()),
            Kind::Sink => "confirms everything and keeps nothing".to_owned(),
            Kind::NoSync => "says that messages are on disk, and never asks the disk".to_owned(),
            Kind::Grow => format!("holds {} MiB for nothing", self.ballast.len() >> 20),
        })
    }

    /// Whether a message with this number is struck.
    fn strikes(&self, offset: u64) -> bool {
        let Some(since) = offset.checked_sub(self.after) else { return false };
        since.is_multiple_of(self.every) && since / self.every < self.count
    }
}

impl Conduct for Faults {
    fn act(&mut self, about: &About) -> Act {
        // A message that comes again has been struck.
        let is_struck = !about.again && self.strikes(about.offset);
        match self.kind {
            Kind::Drop if is_struck => Act::Skip,
            Kind::Double if is_struck => Act::Twice,
            Kind::Swap if is_struck => Act::Swap,
            // Evenly spread: of each hundred the last ones would be one long gap.
            Kind::Thin if about.reader == self.reader && is_thinned(about.offset, self.share_percent) => Act::Skip,
            _ => Act::Send,
        }
    }

    fn keeps(&self) -> bool {
        self.kind != Kind::Sink
    }

    fn syncs(&self) -> bool {
        self.kind != Kind::NoSync
    }

    fn confirm_late_ns(&self) -> u64 {
        if self.kind == Kind::LateConfirm { self.delay_ns } else { 0 }
    }

    fn goes_on(&self, published: u64, delivered: u64, quiet_ns: u64) -> bool {
        self.kind != Kind::Slow
            || quiet_ns >= QUIET_NS
            || u128::from(delivered) * 100 < u128::from(published) * u128::from(self.share_percent)
    }

    fn tick(&self) -> Option<Duration> {
        (self.kind == Kind::Slow).then_some(TICK)
    }

    fn pause(&mut self, now_ns: u64) -> Option<Duration> {
        if self.kind != Kind::Stall || now_ns < self.next_stop_ns {
            return None;
        }
        // Stops that were missed are not made up for.
        while self.next_stop_ns <= now_ns {
            self.next_stop_ns += self.every_ns;
        }
        Some(Duration::from_nanos(self.stop_ns))
    }

    fn pause_at(&self) -> Option<u64> {
        (self.kind == Kind::Stall).then_some(self.next_stop_ns)
    }
}

/// Whether this message is one of those that a reader does not get, of whom `share_percent` of a hundred reach it.
fn is_thinned(offset: u64, share_percent: u64) -> bool {
    let reached = |count: u64| u128::from(count) * u128::from(share_percent) / 100;
    reached(offset + 1) == reached(offset)
}

fn whole(name: &str, text: Option<String>, default: u64, most: u64) -> Result<u64, String> {
    let Some(text) = text else { return Ok(default) };
    // `parse` would also take a plus sign.
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|value| is_digits && *value <= most);
    value.ok_or_else(|| format!("{name}={text:?}: give a whole number from 0 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Faults, String> {
        Faults::read(&|asked| variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| value.into()))
    }

    fn acts(fault: &str, reader: u32) -> Vec<(u64, Act)> {
        let mut faults = read(&[("FAULT", fault)]).expect("good");
        let about = |offset| About { offset, reader, again: false };
        (0..20_000).map(|offset| (offset, faults.act(&about(offset)))).filter(|(_, act)| *act != Act::Send).collect()
    }

    #[test]
    fn an_honest_broker_does_nothing_wrong() {
        let mut faults = read(&[]).expect("good");
        assert_eq!((acts("none", 3), faults.about()), (Vec::new(), None));
        assert!(faults.keeps() && faults.syncs() && faults.goes_on(100, 99, 0));
        assert!(!read(&[("FAULT", "no_sync")]).expect("good").syncs());
        assert_eq!((faults.confirm_late_ns(), faults.tick(), faults.pause(u64::MAX)), (0, None, None));
    }

    #[test]
    fn seven_messages_are_struck() {
        for (fault, act) in [("drop", Act::Skip), ("double", Act::Twice), ("swap", Act::Swap)] {
            let expected: Vec<(u64, Act)> = (1..=7).map(|number| (number * 1000, act)).collect();
            assert_eq!(acts(fault, 0), expected);
        }
    }

    #[test]
    fn one_reader_of_four_is_thinned_evenly() {
        assert_eq!((acts("thin", 0).len(), acts("thin", 3).len()), (0, 2000));
        let struck: Vec<u64> = acts("thin", 3).into_iter().map(|(offset, _)| offset).collect();
        assert!(struck.windows(2).all(|pair| pair[1] - pair[0] == 10));
    }

    #[test]
    fn four_of_five_are_delivered_until_nothing_comes() {
        let faults = read(&[("FAULT", "slow")]).expect("good");
        assert!(faults.goes_on(100, 79, 0) && !faults.goes_on(100, 80, 0));
        assert!(faults.goes_on(100, 80, QUIET_NS));
    }

    #[test]
    fn it_stands_still_once_in_a_while() {
        let mut faults = read(&[("FAULT", "stall"), ("EVERY_MS", "1000")]).expect("good");
        assert_eq!((faults.pause(999_999_999), faults.pause_at()), (None, Some(1_000_000_000)));
        assert_eq!(faults.pause(3_500_000_000), Some(Duration::from_millis(500)));
        assert_eq!(faults.pause_at(), Some(4_000_000_000));
    }

    #[test]
    fn bad_values_are_named_in_one_line() {
        for (variables, name) in [
            (&[("FAULT", "sloth")][..], "FAULT="),
            (&[("COUNT", "5")], "COUNT="),
            (&[("FAULT", "drop"), ("COUNT", "+5")], "COUNT="),
            (&[("FAULT", "thin"), ("SHARE_PERCENT", "101")], "SHARE_PERCENT="),
            (&[("FAULT", "stall"), ("EVERY_MS", "100")], "EVERY_MS="),
        ] {
            let problem = read(variables).expect_err(name);
            assert!(problem.starts_with(name) && problem.lines().count() == 1, "{problem}");
        }
    }
}
