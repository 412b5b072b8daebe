//! The configuration: environment variables, checked before anything starts.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::session::Rules;
use crate::session::audio::OverflowPolicy;

/// Ten days: longer than any duration here makes sense, and far from where sums of them overflow.
const MILLISECONDS_MAX: u64 = 10 * 24 * 3600 * 1000;

/// A violation must be answered within 500 ms of its arrival, so sockets are read at least twice as often.
const READ_PACE_MS_MAX: u64 = 250;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// `PORT`.
    pub port: u16,
    /// `WORKER_THREADS`.
    pub worker_threads: usize,
    /// `INFERENCE_URL`.
    pub inference: InferenceUrl,
    /// `INFERENCE_HTTP_CLIENTS`: HTTP/2 connections of each worker.
    pub inference_connections: usize,
    /// `FLUSH_PHASE_JITTER_MS`.
    pub flush_phase_jitter: Duration,
    /// `READ_PACE_MS`: longest time between two reads of a socket; none for a read whenever something has come.
    pub read_pace: Option<Duration>,
    /// `MAX_SESSIONS`; 0 for no limit.
    pub sessions_max: usize,
    /// `MAX_INFLIGHT_JOBS`; 0 for no limit.
    pub jobs_max: usize,
    /// `DRAIN_TIMEOUT_MS`.
    pub drain_timeout: Duration,
    /// `AUTH_TOKEN`, unless it is empty.
    pub auth_token: Option<String>,
    /// What concerns each session.
    pub rules: Rules,
}

/// `http://host[:port][/path]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferenceUrl {
    /// Name or address, without brackets.
    pub host: String,
    /// 80 unless given.
    pub port: u16,
    /// Host and port as in the URL.
    pub authority: String,
    /// Path of requests.
    pub path: String,
}

impl FromStr for InferenceUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("http://").ok_or("give http://host:port")?;
        if rest.bytes().any(|byte| !byte.is_ascii_graphic() || b"?#@\\".contains(&byte)) {
            return Err("there is more in it than host, port and path");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[') {
            Some(address) => {
                let (address, port) = address.split_once(']').ok_or("a bracket is not closed")?;
                address.parse::<std::net::Ipv6Addr>().map_err(|_| "not an IPv6 address")?;
                (address, port.strip_prefix(':').or(port.is_empty().then_some("80")))
            }
            None => authority.split_once(':').map_or((authority, Some("80")), |(host, port)| (host, Some(port))),
        };
        let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port: u16 = port.and_then(|port| port.parse().ok()).filter(|port| *port != 0).ok_or("the port is none")?;
        if host.is_empty() {
            return Err("the host is missing");
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            path: format!("{}/infer", path.trim_end_matches('/')),
        })
    }
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
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let worker_threads = read.number("WORKER_THREADS", cores, 1..=1024)?;
        let read_pace = read.number("READ_PACE_MS", READ_PACE_MS_MAX, 0..=READ_PACE_MS_MAX)?;
        Ok(Self {
            port: read.number("PORT", 3000, 1..=u16::MAX)?,
            worker_threads,
            inference: read.parsed("INFERENCE_URL", "http://127.0.0.1:9000")?,
            inference_connections: read.number("INFERENCE_HTTP_CLIENTS", 1, 1..=1024)?,
            flush_phase_jitter: read.milliseconds("FLUSH_PHASE_JITTER_MS", 1000, 0)?,
            read_pace: (read_pace != 0).then_some(Duration::from_millis(read_pace)),
            sessions_max: read.number("MAX_SESSIONS", 0, 0..=usize::MAX)?,
            jobs_max: read.number("MAX_INFLIGHT_JOBS", 0, 0..=usize::MAX)?,
            drain_timeout: read.milliseconds("DRAIN_TIMEOUT_MS", 5000, 0)?,
            auth_token: Some(read.text("AUTH_TOKEN", "")?).filter(|token| !token.is_empty()),
            rules: Rules {
                flush_interval: read.milliseconds("FLUSH_INTERVAL_MS", 1000, 1)?,
                start_timeout: read.milliseconds("START_TIMEOUT_MS", 10_000, 1)?,
                inference_timeout: read.milliseconds("INFERENCE_TIMEOUT_MS", 5000, 1)?,
                buffer_frames_max: read.number("MAX_BUFFER_FRAMES", 500, 1..=1_000_000)?,
                overflow_policy: read.overflow_policy()?,
                outbox_messages_max: read.number("OUTBOX_MESSAGES", 4, 1..=1_000_000)?,
                cpu_passes: read.number("CPU_PASSES", 4, 1..=u32::MAX)?,
            },
        })
    }
}

struct Reader<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Reader<F> {
    fn text(&self, name: &str, default: &str) -> Result<String, BadValue> {
        self.0(name).map_or_else(
            || Ok(default.to_owned()),
            |value| value.into_string().map_err(|value| BadValue::new(name, &value.to_string_lossy(), "not UTF-8")),
        )
    }

    fn parsed<T: FromStr<Err: Display>>(&self, name: &str, default: &str) -> Result<T, BadValue> {
        let text = self.text(name, default)?;
        text.parse().map_err(|problem| BadValue::new(name, &text, problem))
    }

    fn number<T: FromStr + Display + PartialOrd>(
        &self,
        name: &str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, BadValue> {
        let text = self.text(name, &default.to_string())?;
        // `parse` would also take a plus sign.
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|value| is_digits && range.contains(value)).ok_or_else(|| {
            let problem = format!("give a whole number from {} to {}", range.start(), range.end());
            BadValue::new(name, &text, problem)
        })
    }

    fn milliseconds(&self, name: &str, default: u64, min: u64) -> Result<Duration, BadValue> {
        self.number(name, default, min..=MILLISECONDS_MAX).map(Duration::from_millis)
    }

    fn overflow_policy(&self) -> Result<OverflowPolicy, BadValue> {
        const NAME: &str = "OVERFLOW_POLICY";
        match self.text(NAME, "drop_oldest")?.as_str() {
            "drop_oldest" => Ok(OverflowPolicy::DropOldest),
            "drop_newest" => Ok(OverflowPolicy::DropNewest),
            "close" => Ok(OverflowPolicy::Close),
            other => Err(BadValue::new(NAME, other, "give drop_oldest, drop_newest or close")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_contract() {
        let config = Config::read(|_| None).expect("defaults are good");
        assert_eq!((config.port, config.sessions_max, config.jobs_max), (3000, 0, 0));
        assert_eq!((config.inference.authority.as_str(), config.inference.path.as_str()), ("127.0.0.1:9000", "/infer"));
        assert_eq!(config.flush_phase_jitter, Duration::from_secs(1));
        assert_eq!((config.drain_timeout, config.auth_token), (Duration::from_secs(5), None));
        let rules = config.rules;
        assert_eq!((rules.flush_interval, rules.start_timeout), (Duration::from_secs(1), Duration::from_secs(10)));
        assert_eq!((rules.inference_timeout, rules.buffer_frames_max), (Duration::from_secs(5), 500));
        assert_eq!((rules.overflow_policy, rules.outbox_messages_max), (OverflowPolicy::DropOldest, 4));
        assert_eq!((rules.cpu_passes, config.inference_connections), (4, 1));
    }

    #[test]
    fn bad_values_are_named_in_one_line() {
        for (name, value) in [
            ("PORT", "0"),
            ("PORT", "+80"),
            ("WORKER_THREADS", "0"),
            ("INFERENCE_URL", "127.0.0.1:9000"),
            ("INFERENCE_HTTP_CLIENTS", "0"),
            ("INFERENCE_TIMEOUT_MS", "-1"),
            ("FLUSH_INTERVAL_MS", "0"),
            ("FLUSH_PHASE_JITTER_MS", "1.5"),
            ("READ_PACE_MS", "251"),
            ("CPU_PASSES", "4294967296"),
            ("MAX_SESSIONS", ""),
            ("MAX_SESSIONS", "x\ny"),
            ("MAX_BUFFER_FRAMES", "0"),
            ("OVERFLOW_POLICY", "Drop_Oldest"),
            ("MAX_INFLIGHT_JOBS", "all"),
            ("OUTBOX_MESSAGES", "0"),
            ("START_TIMEOUT_MS", "0"),
            ("DRAIN_TIMEOUT_MS", "99999999999999"),
        ] {
            let problem = Config::read(|asked| (asked == name).then(|| value.into())).expect_err(name).to_string();
            assert!(problem.starts_with(&format!("{name}=")) && problem.lines().count() == 1, "{problem}");
        }
    }

    #[test]
    fn urls() {
        let url = |text: &str| text.parse::<InferenceUrl>().map(|url| (url.host, url.port, url.authority, url.path));
        let parts = |host: &str, port, authority: &str, path: &str| {
            Ok((host.to_owned(), port, authority.to_owned(), path.to_owned()))
        };
        assert_eq!(url("http://[::1]:81/base/"), parts("::1", 81, "[::1]:81", "/base/infer"));
        assert_eq!(url("http://example.org"), parts("example.org", 80, "example.org", "/infer"));
        for bad in [
            "",
            "not a url",
            "http://",
            "http://:80",
            "https://x",
            "http://x:y",
            "http://x:0",
            "http://x:70000",
            "http://x?y",
            "http://u@x",
            "http://[::1",
            "http://[x]",
            "http://x:1:2",
        ] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }
}
