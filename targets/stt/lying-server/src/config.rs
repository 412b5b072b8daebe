//! The environment, checked. A bad value is one line that names the variable.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::honest::session::Rules;
use crate::lies::{Lie, Parameters, Plan};

/// A day: longer than any trial, so nothing overflows.
const DAY_MS: u64 = 24 * 3600 * 1000;

/// The contract's `MAX_BUFFER_FRAMES`. Fixed here: with answers computed in process, only a flush interval of over 10 s fills it.
const MAX_BUFFER_FRAMES: usize = 500;

/// Everything that the environment decides.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// `PORT`; 0 lets the kernel choose, and the start line tells.
    pub port: u16,
    /// What is the same for every session.
    pub rules: Rules,
    /// `FLUSH_PHASE_JITTER_MS`.
    pub flush_phase_jitter_us: u64,
    /// `DRAIN_TIMEOUT_MS`.
    pub drain_timeout_us: u64,
    /// `LIE` and its parameters.
    pub plan: Plan,
    /// `LIE_SEED`: decides the flush jitter and what a lie leaves to chance. Drawn where the environment does not say.
    pub seed: u64,
}

/// A variable that cannot be used, and why: one line.
#[derive(Debug, PartialEq, Eq)]
pub struct BadVariable(String);

impl fmt::Display for BadVariable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for BadVariable {}

impl Config {
    /// Reads the configuration; `lookup` gives the value of a variable, `None` when it is not set.
    ///
    /// # Errors
    /// The first variable that cannot be used.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, BadVariable> {
        let number =
            |name, range, default| bounded(&lookup, name, range).map(|v| v.unwrap_or(default));
        Ok(Self {
            port: bounded(&lookup, "PORT", 0..=u16::MAX)?.unwrap_or(3000),
            rules: Rules {
                flush_interval_us: number("FLUSH_INTERVAL_MS", 1..=DAY_MS, 1000)? * 1000,
                start_timeout_us: number("START_TIMEOUT_MS", 1..=DAY_MS, 10_000)? * 1000,
                model_delay_us: number("MODEL_DELAY_MS", 0..=DAY_MS, 75)? * 1000,
                cpu_passes: bounded(&lookup, "CPU_PASSES", 1..=1000)?.unwrap_or(4),
                max_buffer_frames: MAX_BUFFER_FRAMES,
            },
            flush_phase_jitter_us: number("FLUSH_PHASE_JITTER_MS", 0..=DAY_MS, 1000)? * 1000,
            drain_timeout_us: number("DRAIN_TIMEOUT_MS", 0..=DAY_MS, 5000)? * 1000,
            plan: plan(&lookup)?,
            seed: bounded(&lookup, "LIE_SEED", 0..=u64::MAX)?.unwrap_or_else(|| fastrand::u64(..)),
        })
    }
}

fn plan(lookup: &impl Fn(&str) -> Option<String>) -> Result<Plan, BadVariable> {
    let name = lookup("LIE").unwrap_or_default();
    let lie = Lie::parse(&name).map_err(|error| BadVariable(error.to_string()))?;
    let defaults = lie.defaults();
    let size = 1..=64 << 20;
    Ok(Plan {
        lie,
        parameters: Parameters {
            after_ms: parameter(lookup, lie, "LIE_AFTER_MS", 0..=DAY_MS, defaults.after_ms)?,
            ms: parameter(lookup, lie, "LIE_MS", 1..=DAY_MS, defaults.ms)?,
            every: parameter(lookup, lie, "LIE_EVERY", 1..=DAY_MS, defaults.every)?,
            share: parameter(lookup, lie, "LIE_SHARE", 0.0..=1.0, defaults.share)?,
            bytes: parameter(lookup, lie, "LIE_BYTES", size, defaults.bytes)?,
            sessions: parameter(lookup, lie, "LIE_SESSIONS", 1..=10_000, defaults.sessions)?,
        },
    })
}

/// A parameter of a lie; without a default the lie has no such parameter, and setting it is an error rather than a trial of
/// something else than was meant.
fn parameter<T: FromStr + PartialOrd + fmt::Display>(
    lookup: &impl Fn(&str) -> Option<String>,
    lie: Lie,
    name: &str,
    range: RangeInclusive<T>,
    default: Option<T>,
) -> Result<Option<T>, BadVariable> {
    let value = bounded(lookup, name, range)?;
    if value.is_some() && default.is_none() {
        let lie = lie.name();
        return Err(BadVariable(format!(
            "{name} means nothing to LIE={lie}; unset it"
        )));
    }
    Ok(value.or(default))
}

fn bounded<T: FromStr + PartialOrd + fmt::Display>(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &str,
    range: RangeInclusive<T>,
) -> Result<Option<T>, BadVariable> {
    let Some(text) = lookup(name) else {
        return Ok(None);
    };
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.map(Some).ok_or_else(|| {
        BadVariable(format!(
            "{name}={text:?} is not a number from {} to {}",
            range.start(),
            range.end()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, BadVariable> {
        Config::read(|name| {
            let set = variables.iter().find(|(key, _)| *key == name);
            set.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn defaults_are_the_contracts() {
        let config = read(&[]).unwrap();
        assert_eq!(config.port, 3000);
        assert_eq!(config.rules.flush_interval_us, 1_000_000);
        assert_eq!(config.flush_phase_jitter_us, 1_000_000);
        assert_eq!(config.rules.model_delay_us, 75_000);
        assert_eq!(config.rules.cpu_passes, 4);
        assert_eq!(config.plan, Plan::of(Lie::None));
    }

    #[test]
    fn a_lie_takes_its_parameters() {
        let plan = read(&[("LIE", "stall_once"), ("LIE_MS", "300")])
            .unwrap()
            .plan;
        assert_eq!(plan.lie, Lie::StallOnce);
        assert_eq!(plan.parameters.duration_us(), 300_000);
        assert_eq!(plan.parameters.after_us(), 8_000_000);
    }

    #[test]
    fn bad_values_are_one_line_that_names_the_variable() {
        for variables in [
            &[("PORT", "65536")][..],
            &[("PORT", "")],
            &[("CPU_PASSES", "0")],
            &[("FLUSH_INTERVAL_MS", "1s")],
            &[("MODEL_DELAY_MS", "-1")],
            &[("LIE", "fib")],
            &[("LIE_SHARE", "1.5"), ("LIE", "flood")],
            &[("LIE_SHARE", "NaN"), ("LIE", "flood")],
            &[("LIE_EVERY", "0"), ("LIE", "skip_flush")],
            &[("LIE_BYTES", "10"), ("LIE", "skip_flush")],
            &[("LIE_MS", "10")],
        ] {
            let error = read(variables).unwrap_err().to_string();
            assert!(error.starts_with(variables[0].0), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
