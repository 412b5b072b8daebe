//! Which fault the server has, read from the environment.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// What is wrong with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the README")]
pub enum Kind {
    None,
    Fast503,
    Drop,
    ShortBody,
    WrongBody,
    SlowStart,
    Delay,
    Stop,
    StallRare,
    Dies,
    Dead,
    CloseEarly,
    ExtraAnswer,
}

/// Every fault: its name, and the variables that it reads.
const KINDS: [(Kind, &str, &[&str]); 13] = [
    (Kind::None, "none", &[]),
    (Kind::Fast503, "fast_503", &["SHARE"]),
    (Kind::Drop, "drop", &["SHARE"]),
    (Kind::ShortBody, "short_body", &["SHARE"]),
    (Kind::WrongBody, "wrong_body", &["SHARE"]),
    (Kind::SlowStart, "slow_start", &["DELAY_LOW_MS", "DELAY_HIGH_MS", "COIN"]),
    (Kind::Delay, "delay", &["DELAY_US"]),
    (Kind::Stop, "stop", &["STOP_MS", "EVERY_MS"]),
    (Kind::StallRare, "stall_rare", &["STOP_MS", "EVERY_MS"]),
    (Kind::Dies, "dies", &["DIE_AFTER_S"]),
    (Kind::Dead, "dead", &[]),
    (Kind::CloseEarly, "close_early", &["CLOSE_AFTER"]),
    (Kind::ExtraAnswer, "extra_answer", &["SHARE"]),
];

/// The variables that faults read.
const PARAMETERS: [&str; 9] =
    ["SHARE", "DELAY_LOW_MS", "DELAY_HIGH_MS", "COIN", "DELAY_US", "STOP_MS", "EVERY_MS", "DIE_AFTER_S", "CLOSE_AFTER"];

/// A fault, with its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Which.
    pub kind: Kind,
    /// The share of requests that it strikes.
    share: f64,
    /// What has not been struck yet, of the next one.
    owed: f64,
    /// What every answer waits for, from when its request was read.
    pub delay: Duration,
    /// How long everything stops, and from one stop's beginning to the next.
    pub stop: Option<(Duration, Duration)>,
    /// When the process ends.
    pub die_after: Option<Duration>,
    /// After how many answers a connection is closed.
    pub close_after: Option<u64>,
}

type Read = Result<Fault, String>;

impl Fault {
    /// Reads variables by `variable`, which is `std::env::var_os` but in tests.
    ///
    /// # Errors
    /// One line that names the first variable with a value that is of no use, or that the fault does not read.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Read {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let named = text("FAULT").unwrap_or_else(|| "none".into());
        let Some((kind, _, parameters)) = KINDS.iter().find(|(_, name, _)| *name == named) else {
            return Err(format!("FAULT={named:?}: give one of {}", KINDS.map(|(_, name, _)| name).join(", ")));
        };
        if let Some(name) = PARAMETERS.iter().find(|name| !parameters.contains(name) && text(name).is_some()) {
            return Err(format!("{name}={:?}: FAULT={named} has no use for it", text(name).unwrap_or_default()));
        }
        let number = |name: &str, default: u64| whole(name, text(name), default);
        let mut fault = Self {
            kind: *kind,
            share: share(text("SHARE"))?,
            owed: 0.0,
            delay: Duration::ZERO,
            stop: None,
            die_after: None,
            close_after: None,
        };
        match kind {
            Kind::SlowStart => {
                let low = number("DELAY_LOW_MS", 5)?;
                let high = number("DELAY_HIGH_MS", 200)?;
                fault.delay = Duration::from_millis(if coin(text("COIN"))? { high } else { low });
            }
            Kind::Delay => fault.delay = Duration::from_micros(number("DELAY_US", 300)?),
            Kind::Stop => fault.stop = Some(stops(number("STOP_MS", 200)?, number("EVERY_MS", 2000)?)?),
            Kind::StallRare => fault.stop = Some(stops(number("STOP_MS", 500)?, number("EVERY_MS", 25_000)?)?),
            Kind::Dies => fault.die_after = Some(Duration::from_secs(number("DIE_AFTER_S", 5)?)),
            Kind::CloseEarly => fault.close_after = Some(number("CLOSE_AFTER", 10)?.max(1)),
            _ => {}
        }
        Ok(fault)
    }

    /// Whether it strikes this request. Its share is exact and evenly spread, not by chance.
    pub fn strikes(&mut self) -> bool {
        self.owed += self.share;
        // Shares like 0.1 are not exact in binary; a tenth of ten tenths must not be missed for that.
        let strikes = self.owed > 1.0 - 1e-9;
        if strikes {
            self.owed -= 1.0;
        }
        strikes
    }
}

fn whole(name: &str, text: Option<String>, default: u64) -> Result<u64, String> {
    const MOST: u64 = 1_000_000_000;
    let Some(text) = text else { return Ok(default) };
    // `parse` would also take a plus sign.
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|value| is_digits && *value <= MOST);
    value.ok_or_else(|| format!("{name}={text:?}: give a whole number from 0 to {MOST}"))
}

fn share(text: Option<String>) -> Result<f64, String> {
    let Some(text) = text else { return Ok(0.02) };
    let value = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    value.ok_or_else(|| format!("SHARE={text:?}: give a number from 0 to 1"))
}

/// Whether the coin fell on the high side.
fn coin(text: Option<String>) -> Result<bool, String> {
    match text.as_deref() {
        // The keys of a hash map are drawn anew in each process.
        None => Ok(RandomState::new().build_hasher().finish() & 1 == 1),
        Some("low") => Ok(false),
        Some("high") => Ok(true),
        Some(other) => Err(format!("COIN={other:?}: give low or high, or leave it out to draw one")),
    }
}

fn stops(stop_ms: u64, every_ms: u64) -> Result<(Duration, Duration), String> {
    if every_ms <= stop_ms {
        return Err(format!("EVERY_MS=\"{every_ms}\": give more than the {stop_ms} ms of a stop (STOP_MS)"));
    }
    Ok((Duration::from_millis(stop_ms), Duration::from_millis(every_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Read {
        Fault::read(|asked| variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| value.into()))
    }

    #[test]
    fn faults_and_their_numbers() {
        assert_eq!(read(&[]).expect("good").kind, Kind::None);
        assert_eq!(read(&[("FAULT", "delay")]).expect("good").delay, Duration::from_micros(300));
        let high = read(&[("FAULT", "slow_start"), ("COIN", "high")]).expect("good");
        assert_eq!(high.delay, Duration::from_millis(200));
        let drawn: Vec<Duration> = (0..64).map(|_| read(&[("FAULT", "slow_start")]).expect("good").delay).collect();
        assert!(drawn.contains(&Duration::from_millis(5)) && drawn.contains(&Duration::from_millis(200)));
        let rare = read(&[("FAULT", "stall_rare")]).expect("good").stop;
        assert_eq!(rare, Some((Duration::from_millis(500), Duration::from_secs(25))));
    }

    #[test]
    fn bad_values_are_named_in_one_line() {
        for (variables, name) in [
            (&[("FAULT", "sloth")][..], "FAULT="),
            (&[("SHARE", "0.5")], "SHARE="),
            (&[("FAULT", "drop"), ("SHARE", "2")], "SHARE="),
            (&[("FAULT", "drop"), ("SHARE", "NaN")], "SHARE="),
            (&[("FAULT", "delay"), ("DELAY_US", "+3")], "DELAY_US="),
            (&[("FAULT", "delay"), ("STOP_MS", "3")], "STOP_MS="),
            (&[("FAULT", "stop"), ("EVERY_MS", "100")], "EVERY_MS="),
            (&[("FAULT", "slow_start"), ("COIN", "edge")], "COIN="),
        ] {
            let problem = read(variables).expect_err(name);
            assert!(problem.starts_with(name) && problem.lines().count() == 1, "{problem}");
        }
    }

    #[test]
    fn shares_are_exact() {
        for (share, struck) in [("0", 0), ("0.02", 20), ("0.1", 100), ("0.333", 333), ("1", 1000)] {
            let mut fault = read(&[("FAULT", "drop"), ("SHARE", share)]).expect("good");
            assert_eq!((0..1000).filter(|_| fault.strikes()).count(), struck, "{share}");
        }
        let mut fault = read(&[("FAULT", "drop")]).expect("good");
        assert_eq!((1..=100).filter(|_| fault.strikes()).count(), 2);
    }
}
