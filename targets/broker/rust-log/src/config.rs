//! The configuration: environment variables, checked before anything starts.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use crate::broker::Settings;
use crate::segment::Sizes;
use crate::tier::Tier;

/// The longest message that can be allowed: with its fields it is shorter than a frame that looks like HTTP.
const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;

const MIB: u64 = 1024 * 1024;

/// What `LEVEL` names: the tier of each queue, and of streams that ask for the ephemeral one.
const LEVELS: [(&str, (Tier, Tier)); 4] = [
    ("durable", (Tier::Durable, Tier::Cache)),
    ("speculative", (Tier::Speculative, Tier::Cache)),
    ("ephemeral", (Tier::Cache, Tier::Cache)),
    ("memory", (Tier::Memory, Tier::Memory)),
];

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `PORT`.
    pub port: u16,
    /// `HTTP_PORT`; none if it is 0.
    pub http_port: u16,
    /// `DATA_DIR`.
    pub data_dir: PathBuf,
    /// What the broker is like.
    pub settings: Settings,
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
        let data_dir = PathBuf::from((read.0)("DATA_DIR").unwrap_or_else(|| "data".into()));
        if data_dir.as_os_str().is_empty() {
            return Err(BadValue::new("DATA_DIR", "", "give a folder"));
        }
        // The contract's variable; one thread is all that this broker uses.
        read.number("WORKER_THREADS", 1_u32, 1..=1024)?;
        let (queue_tier, ephemeral) = read.tiers()?;
        let mib =
            |name, default, range: RangeInclusive<u64>| read.number(name, default, range).map(|count| count * MIB);
        let sizes = Sizes {
            segment_bytes: mib("SEGMENT_MIB", 64, 1..=4096)?,
            tail_bytes: mib("TAIL_MIB", 64, 1..=65_536)?,
            message_bytes_max: read.number("MAX_MESSAGE_BYTES", 8 * 1024 * 1024, 1..=MESSAGE_BYTES_MAX)?,
        };
        Ok(Self {
            port: read.number("PORT", 9876, 1..=u16::MAX)?,
            http_port: read.number("HTTP_PORT", 8081, 0..=u16::MAX)?,
            data_dir,
            settings: Settings {
                sizes,
                queue_tier,
                ephemeral,
                memory_bytes_max: mib("MEMORY_MIB", 1024, 1..=1024 * 1024)?,
                stream_bytes_max: mib("STREAM_MIB", 4096, 1..=16 * 1024 * 1024)?,
                messages_max: read.number("MAX_MESSAGES", 20_000_000, 1..=1_000_000_000)?,
            },
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

    /// The tier of each queue, and of streams that ask for the ephemeral one: both by `LEVEL`, or each by its own variable.
    fn tiers(&self) -> Result<(Tier, Tier), BadValue> {
        let singly = ["QUEUE_TIER", "EPHEMERAL"];
        if self.0("LEVEL").is_none() {
            let queue_tier = self.word(singly[0], &Tier::ALL, Tier::Durable)?;
            return Ok((queue_tier, self.word(singly[1], &Tier::ALL[..2], Tier::Cache)?));
        }
        if let Some((name, value)) = singly.iter().find_map(|name| Some((name, self.0(name)?))) {
            return Err(BadValue::new(name, &value.to_string_lossy(), "leave it out, because LEVEL says it"));
        }
        self.word("LEVEL", &LEVELS, LEVELS[0].1)
    }

    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], default: T) -> Result<T, BadValue> {
        let Some(value) = self.0(name) else { return Ok(default) };
        let text = value.to_string_lossy();
        words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            BadValue::new(name, &text, format!("give one of {}", words.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_readme() {
        let config = Config::read(|_| None).expect("defaults are good");
        assert_eq!((config.port, config.http_port), (9876, 8081));
        assert_eq!((config.settings.queue_tier, config.settings.ephemeral), (Tier::Durable, Tier::Cache));
        assert_eq!(config.settings.sizes.segment_bytes, 64 * MIB);
    }

    #[test]
    fn a_level_sets_both_tiers_and_excludes_their_own_variables() {
        let tiers = |variables: &[(&str, &str)]| {
            let value =
                |asked: &str| variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).into());
            Config::read(value).map(|config| (config.settings.queue_tier, config.settings.ephemeral))
        };
        assert_eq!(tiers(&[("LEVEL", "durable")]), Ok((Tier::Durable, Tier::Cache)));
        assert_eq!(tiers(&[("LEVEL", "speculative")]), Ok((Tier::Speculative, Tier::Cache)));
        assert_eq!(tiers(&[("LEVEL", "ephemeral")]), Ok((Tier::Cache, Tier::Cache)));
        assert_eq!(tiers(&[("LEVEL", "memory")]), Ok((Tier::Memory, Tier::Memory)));
        assert_eq!(tiers(&[("QUEUE_TIER", "cache"), ("EPHEMERAL", "memory")]), Ok((Tier::Cache, Tier::Memory)));
        for (name, value) in [("QUEUE_TIER", "durable"), ("EPHEMERAL", "cache")] {
            let problem = tiers(&[("LEVEL", "durable"), (name, value)]).expect_err(name).to_string();
            assert_eq!(problem, format!("{name}={value:?}: leave it out, because LEVEL says it"));
        }
    }

    #[test]
    fn bad_values_are_named_in_one_line() {
        for (name, value) in [
            ("PORT", "0"),
            ("PORT", "+80"),
            ("HTTP_PORT", "65536"),
            ("DATA_DIR", ""),
            ("WORKER_THREADS", "0"),
            ("QUEUE_TIER", "paper"),
            ("EPHEMERAL", "durable"),
            ("LEVEL", "cache"),
            ("LEVEL", ""),
            ("SEGMENT_MIB", "0"),
            ("MAX_MESSAGE_BYTES", "1\n2"),
            ("MAX_MESSAGES", ""),
        ] {
            let problem = Config::read(|asked| (asked == name).then(|| value.into())).expect_err(name).to_string();
            assert!(problem.starts_with(&format!("{name}=")) && problem.lines().count() == 1, "{problem}");
        }
    }
}
