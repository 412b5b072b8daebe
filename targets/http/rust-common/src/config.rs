//! The configuration: environment variables, checked before anything starts.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// Ten days: longer than any duration here makes sense, and far from where sums of them overflow.
const MILLISECONDS_MAX: u64 = 10 * 24 * 3600 * 1000;

/// The longest body that can be allowed: sums of lengths stay far from overflow.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `PORT`.
    pub port: u16,
    /// `WORKER_THREADS`.
    pub worker_threads: usize,
    /// `DRAIN_TIMEOUT_MS`.
    pub drain_timeout: Duration,
    /// `MAX_BODY_BYTES`.
    pub body_bytes_max: usize,
}

/// A variable with a value that is of no use: one line that names it.
#[derive(Debug, PartialEq, Eq)]
pub struct BadValue(String);

impl BadValue {
    fn new(name: &str, value: &str, problem: impl Display) -> Self {
        // As a literal, so that it stays one line whatever the value is.
        Self(format!("{name}={value:?}: {problem}"))
    }
}

impl Display for BadValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for BadValue {}

impl Config {
    /// Reads variables by `variable`, which is `std::env::var_os` but in tests.
    ///
    /// # Errors
    /// On the first value that is of no use.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, BadValue> {
        let read = Reader(variable);
        Ok(Self {
            port: read.number("PORT", 3000, 1..=u16::MAX)?,
            worker_threads: read.number("WORKER_THREADS", 1, 1..=1024)?,
            drain_timeout: Duration::from_millis(read.number("DRAIN_TIMEOUT_MS", 5000, 0..=MILLISECONDS_MAX)?),
            body_bytes_max: read.number("MAX_BODY_BYTES", 1024 * 1024, 1..=BODY_BYTES_MAX)?,
        })
    }
}

struct Reader<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Reader<F> {
    fn number<T: FromStr + Display + PartialOrd>(
        &self,
        name: &str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, BadValue> {
        let Some(value) = self.0(name) else { return Ok(default) };
        let text = value.to_string_lossy();
        // `parse` would also take a plus sign.
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|value| is_digits && range.contains(value)).ok_or_else(|| {
            let problem = format!("give a whole number from {} to {}", range.start(), range.end());
            BadValue::new(name, &text, problem)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_contract() {
        let config = Config::read(|_| None).expect("defaults are good");
        let expected =
            Config { port: 3000, worker_threads: 1, drain_timeout: Duration::from_secs(5), body_bytes_max: 1_048_576 };
        assert_eq!(config, expected);
    }

    #[test]
    fn bad_values_are_named_in_one_line() {
        for (name, value) in [
            ("PORT", "0"),
            ("PORT", "+80"),
            ("PORT", "65536"),
            ("WORKER_THREADS", "0"),
            ("WORKER_THREADS", "two"),
            ("DRAIN_TIMEOUT_MS", "-1"),
            ("DRAIN_TIMEOUT_MS", "99999999999999"),
            ("MAX_BODY_BYTES", "0"),
            ("MAX_BODY_BYTES", "1\n2"),
            ("MAX_BODY_BYTES", ""),
        ] {
            let problem = Config::read(|asked| (asked == name).then(|| value.into())).expect_err(name).to_string();
            assert!(problem.starts_with(&format!("{name}=")) && problem.lines().count() == 1, "{problem}");
        }
    }
}
