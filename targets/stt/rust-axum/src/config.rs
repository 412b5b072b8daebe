//! The configuration, from environment variables and checked before anything starts.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use axum::http::Uri;

use crate::session::Settings;
use crate::session::audio::OverflowPolicy;
use crate::variables::{ConfigError, HttpUrl, Variables};

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// `PORT`.
    pub port: u16,
    /// `WORKER_THREADS`.
    pub worker_threads: usize,
    /// `INFERENCE_URL`.
    pub inference_url: InferenceUrl,
    /// HTTP/2 connections of all workers: `INFERENCE_HTTP_CLIENTS` for each.
    pub inference_connections: usize,
    /// `FLUSH_PHASE_JITTER_MS`.
    pub flush_phase_jitter: Duration,
    /// `MAX_SESSIONS`; 0 is no limit.
    pub sessions_max: usize,
    /// `MAX_INFLIGHT_JOBS`; 0 is no limit.
    pub jobs_max: usize,
    /// `DRAIN_TIMEOUT_MS`.
    pub drain_timeout: Duration,
    /// `AUTH_TOKEN`; none when it is empty.
    pub auth_token: Option<String>,
    /// What each session needs.
    pub session: Settings,
}

/// Where the inference server is: `http://host[:port][/path]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferenceUrl {
    /// The server.
    pub server: HttpUrl,
    /// The URL of requests, `…/infer`.
    pub infer: Uri,
}

impl FromStr for InferenceUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let server: HttpUrl = text.parse()?;
        Ok(Self { infer: server.join("/infer")?, server })
    }
}

impl Config {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// On the first variable whose value cannot be used.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// Reads variables through `lookup`.
    ///
    /// # Errors
    /// On the first variable whose value cannot be used.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let variables = Variables(lookup);
        let worker_threads = variables.worker_threads()?;
        // One per worker: each is one lock and one task, and one alone would be both for all workers.
        let connections_per_worker = variables.number("INFERENCE_HTTP_CLIENTS", 1, 1..=1024_usize)?;
        Ok(Self {
            port: variables.number("PORT", 3000, 1..=u16::MAX)?,
            worker_threads,
            inference_url: variables.parsed("INFERENCE_URL", "http://127.0.0.1:9000")?,
            inference_connections: worker_threads * connections_per_worker,
            flush_phase_jitter: variables.milliseconds("FLUSH_PHASE_JITTER_MS", 1000, 0)?,
            sessions_max: variables.number("MAX_SESSIONS", 0, 0..=usize::MAX)?,
            jobs_max: variables.number("MAX_INFLIGHT_JOBS", 0, 0..=usize::MAX)?,
            drain_timeout: variables.milliseconds("DRAIN_TIMEOUT_MS", 5000, 0)?,
            auth_token: variables.token("AUTH_TOKEN")?,
            session: Settings {
                flush_interval: variables.milliseconds("FLUSH_INTERVAL_MS", 1000, 1)?,
                start_timeout: variables.milliseconds("START_TIMEOUT_MS", 10_000, 1)?,
                inference_timeout: variables.milliseconds("INFERENCE_TIMEOUT_MS", 5000, 1)?,
                buffer_frames_max: variables.number("MAX_BUFFER_FRAMES", 500, 1..=1_000_000)?,
                overflow_policy: overflow_policy(&variables)?,
                outbox_messages_max: variables.number("OUTBOX_MESSAGES", 4, 1..=1_000_000)?,
                cpu_passes: variables.number("CPU_PASSES", 4, 1..=u32::MAX)?,
            },
        })
    }
}

fn overflow_policy<F: Fn(&str) -> Option<OsString>>(variables: &Variables<F>) -> Result<OverflowPolicy, ConfigError> {
    const NAME: &str = "OVERFLOW_POLICY";
    match variables.text(NAME, "drop_oldest")?.as_str() {
        "drop_oldest" => Ok(OverflowPolicy::DropOldest),
        "drop_newest" => Ok(OverflowPolicy::DropNewest),
        "close" => Ok(OverflowPolicy::Close),
        other => Err(ConfigError::new(NAME, other, "give drop_oldest, drop_newest or close")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &'static str) -> Result<Config, ConfigError> {
        Config::from_lookup(move |asked| (asked == name).then(|| value.into()))
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let config = Config::from_lookup(|_| None).expect("defaults are good");
        assert_eq!(config.port, 3000);
        assert_eq!(config.inference_url.infer, "http://127.0.0.1:9000/infer");
        assert_eq!(config.session.flush_interval, Duration::from_secs(1));
        assert_eq!(config.session.buffer_frames_max, 500);
        assert_eq!(config.session.overflow_policy, OverflowPolicy::DropOldest);
        assert_eq!(config.auth_token, None);
    }

    #[test]
    fn bad_values_are_named_in_one_line() {
        for (name, value) in [
            ("PORT", "0"),
            ("PORT", "65536"),
            ("PORT", "+80"),
            ("WORKER_THREADS", "0"),
            ("WORKER_THREADS", "two"),
            ("INFERENCE_URL", "127.0.0.1:9000"),
            ("INFERENCE_URL", "https://example.org"),
            ("INFERENCE_URL", ""),
            ("INFERENCE_HTTP_CLIENTS", "0"),
            ("INFERENCE_TIMEOUT_MS", "-1"),
            ("FLUSH_INTERVAL_MS", "0"),
            ("FLUSH_PHASE_JITTER_MS", "1.5"),
            ("CPU_PASSES", "4294967296"),
            ("MAX_SESSIONS", ""),
            ("MAX_SESSIONS", "x\ny"),
            ("MAX_BUFFER_FRAMES", "0"),
            ("OVERFLOW_POLICY", "DROP"),
            ("MAX_INFLIGHT_JOBS", "all"),
            ("OUTBOX_MESSAGES", "0"),
            ("START_TIMEOUT_MS", "0"),
            ("DRAIN_TIMEOUT_MS", "99999999999999"),
        ] {
            let message = read(name, value).expect_err(name).to_string();
            assert!(message.starts_with(&format!("{name}=")), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}
