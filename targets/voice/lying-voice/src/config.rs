//! The environment, checked. A bad value is one line that names the variable.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::lies::{Lie, Parameters, Plan};

/// A day: longer than any trial.
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Everything that the environment decides.
#[derive(Debug, Clone)]
pub struct Config {
    /// `PORT`; 0 lets the kernel choose, and the start line tells.
    pub port: u16,
    /// `PROVIDER_URLS`, as `host:port`.
    pub providers: Vec<String>,
    /// `PROVIDER_KEY`; empty for none.
    pub provider_key: String,
    /// `AUTH_TOKEN`; empty for none.
    pub auth_token: String,
    /// `MAX_SESSIONS`; 0 for no limit.
    pub sessions_max: u64,
    /// `MAX_SESSIONS_PER_ADDRESS`; 0 for no limit.
    pub sessions_max_per_address: u64,
    /// `RATE_LIMIT_RPS`; 0 for no limit.
    pub upgrades_max_per_second: u64,
    /// `DRAIN_TIMEOUT_MS`.
    pub drain_timeout: Duration,
    /// `READY_MS`.
    pub ready: Duration,
    /// `TTS_FIRST_MS`.
    pub tts_first: Duration,
    /// `TTS_GAP_MS`.
    pub tts_gap: Duration,
    /// `LIE` and its numbers.
    pub plan: Plan,
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Config {
    /// Reads the configuration; `lookup` gives the value of a variable, `None` when it is not set.
    ///
    /// # Errors
    /// One line about the first variable that cannot be used.
    pub fn read(lookup: Lookup<'_>) -> Result<Self, String> {
        let ms = |name: &str, default: u64| {
            let value = bounded(lookup, name, 1..=DAY_MS)?.unwrap_or(default);
            Ok::<_, String>(Duration::from_millis(value))
        };
        let limit = |name: &str| Ok::<_, String>(bounded(lookup, name, 0..=1_000_000)?.unwrap_or(0));
        // Checked, and of no other use: there is one thread.
        bounded(lookup, "WORKER_THREADS", 1..=1024_u64)?;
        Ok(Self {
            port: bounded(lookup, "PORT", 0..=u16::MAX)?.unwrap_or(3001),
            providers: providers(lookup)?,
            provider_key: header(lookup, "PROVIDER_KEY")?,
            auth_token: header(lookup, "AUTH_TOKEN")?,
            sessions_max: limit("MAX_SESSIONS")?,
            sessions_max_per_address: limit("MAX_SESSIONS_PER_ADDRESS")?,
            upgrades_max_per_second: limit("RATE_LIMIT_RPS")?,
            drain_timeout: ms("DRAIN_TIMEOUT_MS", 5000)?,
            ready: ms("READY_MS", 30_000)?,
            tts_first: ms("TTS_FIRST_MS", 10_000)?,
            tts_gap: ms("TTS_GAP_MS", 2000)?,
            plan: plan(lookup)?,
        })
    }
}

fn providers(lookup: Lookup<'_>) -> Result<Vec<String>, String> {
    let text = lookup("PROVIDER_URLS").unwrap_or_else(|| "http://127.0.0.1:9100".to_owned());
    let place = |url: &str| {
        let place = url.trim().strip_prefix("http://")?.trim_end_matches('/');
        let (host, port) = place.rsplit_once(':')?;
        let good = !host.is_empty() && !place.contains(['/', '?', '#', '@', ' ']) && port.parse::<u16>().is_ok();
        good.then(|| place.to_owned())
    };
    let places: Option<Vec<String>> = text.split(',').map(place).collect();
    places.ok_or_else(|| format!("PROVIDER_URLS={text:?}: give http://HOST:PORT, more of them with commas between"))
}

/// What goes into a header.
fn header(lookup: Lookup<'_>, name: &str) -> Result<String, String> {
    let text = lookup(name).unwrap_or_default();
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text)
    } else {
        Err(format!("{name}: give ASCII characters without spaces"))
    }
}

fn plan(lookup: Lookup<'_>) -> Result<Plan, String> {
    let lie = Lie::named(&lookup("LIE").unwrap_or_default())?;
    let usual = lie.defaults();
    let number = |name: &str, range, default| parameter(lookup, lie, name, range, default);
    let numbers = Parameters {
        after_ms: number("LIE_AFTER_MS", 0..=DAY_MS, usual.after_ms)?,
        ms: number("LIE_MS", 0..=DAY_MS, usual.ms)?,
        period_ms: number("LIE_PERIOD_MS", 1..=DAY_MS, usual.period_ms)?,
        us: number("LIE_US", 0..=1_000_000, usual.us)?,
        every: number("LIE_EVERY", 1..=1_000_000_000, usual.every)?,
        share: parameter(lookup, lie, "LIE_SHARE", 0.0..=1.0, usual.share)?,
        bytes: number("LIE_BYTES", 1..=64 << 20, usual.bytes)?,
        status: number("LIE_STATUS", 429..=503, usual.status)?,
    };
    if let Some(status) = numbers.status.filter(|status| ![429, 503].contains(status)) {
        return Err(format!("LIE_STATUS=\"{status}\": give 429 or 503"));
    }
    if let (Some(ms), Some(period_ms)) = (numbers.ms, numbers.period_ms)
        && ms >= period_ms
    {
        return Err(format!("LIE_PERIOD_MS=\"{period_ms}\": give more than the {ms} ms of LIE_MS"));
    }
    Ok(Plan { lie, numbers })
}

/// A number of a lie. One that the lie does not read is an error, rather than a trial of something else than was meant.
fn parameter<T: FromStr + PartialOrd + Display>(
    lookup: Lookup<'_>,
    lie: Lie,
    name: &str,
    range: RangeInclusive<T>,
    default: Option<T>,
) -> Result<Option<T>, String> {
    let value = bounded(lookup, name, range)?;
    if value.is_some() && default.is_none() {
        return Err(format!("{name}: LIE={} has no use for it", lie.name()));
    }
    Ok(value.or(default))
}

fn bounded<T: FromStr + PartialOrd + Display>(
    lookup: Lookup<'_>,
    name: &str,
    range: RangeInclusive<T>,
) -> Result<Option<T>, String> {
    let Some(text) = lookup(name) else { return Ok(None) };
    // `parse` would also take a plus sign.
    let value = text.parse().ok().filter(|value| !text.starts_with('+') && range.contains(value));
    value.map(Some).ok_or_else(|| format!("{name}={text:?}: give a number from {} to {}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, String> {
        Config::read(&|name| {
            let set = variables.iter().find(|(key, _)| *key == name);
            set.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn defaults_are_the_contracts() {
        let config = read(&[]).expect("good");
        assert_eq!((config.port, config.providers), (3001, vec!["127.0.0.1:9100".to_owned()]));
        assert_eq!((config.sessions_max, config.sessions_max_per_address, config.upgrades_max_per_second), (0, 0, 0));
        let times = [config.drain_timeout, config.ready, config.tts_first, config.tts_gap];
        assert_eq!(times, [5000, 30_000, 10_000, 2000].map(Duration::from_millis));
        assert_eq!(config.plan, Plan::of(Lie::None));
    }

    #[test]
    fn a_lie_takes_its_numbers_and_a_list_its_parts() {
        let urls = ("PROVIDER_URLS", "http://127.0.0.1:1,http://localhost:2/");
        let config = read(&[("LIE", "gap"), ("LIE_MS", "300"), urls]).expect("good");
        assert_eq!(
            (config.plan.lie, config.plan.numbers.ms, config.plan.numbers.every),
            (Lie::Gap, Some(300), Some(10))
        );
        assert_eq!(config.providers, ["127.0.0.1:1", "localhost:2"]);
    }

    #[test]
    fn bad_values_are_one_line_that_names_the_variable() {
        for variables in [
            &[("PORT", "65536")][..],
            &[("PORT", "")],
            &[("WORKER_THREADS", "0")],
            &[("MAX_SESSIONS", "-1")],
            &[("READY_MS", "+5")],
            &[("PROVIDER_URLS", "https://127.0.0.1:1")],
            &[("PROVIDER_URLS", "http://127.0.0.1")],
            &[("PROVIDER_URLS", "http://127.0.0.1:1,")],
            &[("PROVIDER_KEY", "a\nb")],
            &[("LIE", "fib")],
            &[("LIE_SHARE", "NaN"), ("LIE", "refuse")],
            &[("LIE_STATUS", "500"), ("LIE", "refuse")],
            &[("LIE_EVERY", "0"), ("LIE", "gap")],
            &[("LIE_BYTES", "10"), ("LIE", "gap")],
            &[("LIE_MS", "10")],
            &[("LIE_PERIOD_MS", "3000"), ("LIE", "stall")],
        ] {
            let error = read(variables).expect_err(variables[0].0);
            assert!(error.starts_with(variables[0].0) && !error.contains('\n'), "{error}");
        }
    }
}
