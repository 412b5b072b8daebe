//! The environment variables of the contract, checked before anything starts.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use reqwest::Url;

/// Ten days. Sums of such times stay far from overflow.
const MAX_TIME_MS: u64 = 10 * 24 * 3600 * 1000;
const MAX_COUNT: usize = u32::MAX as usize;
const POLICIES: &str = "drop_oldest, drop_newest or close";

/// What to do with a frame when the input buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowPolicy {
    DropOldest,
    DropNewest,
    Close,
}

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    pub port: u16,
    pub worker_threads: usize,
    /// The URL of requests, `…/infer`.
    pub infer_url: Url,
    /// HTTP/2 connections of each worker.
    pub inference_http_clients: usize,
    pub inference_timeout: Duration,
    pub flush_interval: Duration,
    pub flush_phase_jitter: Duration,
    pub cpu_passes: u32,
    /// 0 is no limit.
    pub max_sessions: usize,
    pub max_buffer_frames: usize,
    pub overflow_policy: OverflowPolicy,
    /// 0 is no limit.
    pub max_inflight_jobs: usize,
    pub outbox_messages: usize,
    pub start_timeout: Duration,
    pub drain_timeout: Duration,
    /// Empty for none.
    pub auth_token: String,
}

impl Config {
    /// Reads the environment of the process. An error is one line that names the variable.
    pub fn from_env() -> Result<Self> {
        Self::read(|name| std::env::var_os(name))
    }

    /// Reads variables through `lookup`.
    pub fn read(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let env = Env(lookup);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            port: env.number("PORT", 3000, 1..=u16::MAX)?,
            worker_threads: env.number("WORKER_THREADS", cores, 1..=1024)?,
            infer_url: env.parsed("INFERENCE_URL", "http://127.0.0.1:9000", "http://host:port", infer_url)?,
            inference_http_clients: env.number("INFERENCE_HTTP_CLIENTS", 1, 1..=1024)?,
            inference_timeout: env.time_ms("INFERENCE_TIMEOUT_MS", 5000, 1)?,
            flush_interval: env.time_ms("FLUSH_INTERVAL_MS", 1000, 1)?,
            flush_phase_jitter: env.time_ms("FLUSH_PHASE_JITTER_MS", 1000, 0)?,
            cpu_passes: env.number("CPU_PASSES", 4, 1..=u32::MAX)?,
            max_sessions: env.number("MAX_SESSIONS", 0, 0..=MAX_COUNT)?,
            max_buffer_frames: env.number("MAX_BUFFER_FRAMES", 500, 1..=1_000_000)?,
            overflow_policy: env.parsed("OVERFLOW_POLICY", "drop_oldest", POLICIES, overflow_policy)?,
            max_inflight_jobs: env.number("MAX_INFLIGHT_JOBS", 0, 0..=MAX_COUNT)?,
            outbox_messages: env.number("OUTBOX_MESSAGES", 4, 1..=1_000_000)?,
            start_timeout: env.time_ms("START_TIMEOUT_MS", 10_000, 1)?,
            drain_timeout: env.time_ms("DRAIN_TIMEOUT_MS", 5000, 1)?,
            auth_token: env.parsed("AUTH_TOKEN", "", "UTF-8", |token| Some(token.to_owned()))?,
        })
    }
}

fn infer_url(base: &str) -> Option<Url> {
    let mut url = Url::parse(base).ok()?;
    if url.scheme() != "http" || url.query().is_some() || url.fragment().is_some() {
        return None;
    }
    url.path_segments_mut().ok()?.pop_if_empty().push("infer");
    Some(url)
}

fn overflow_policy(name: &str) -> Option<OverflowPolicy> {
    match name {
        "drop_oldest" => Some(OverflowPolicy::DropOldest),
        "drop_newest" => Some(OverflowPolicy::DropNewest),
        "close" => Some(OverflowPolicy::Close),
        _ => None,
    }
}

struct Env<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Env<F> {
    fn parsed<T>(&self, name: &str, default: &str, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let value = (self.0)(name).unwrap_or_else(|| default.into());
        // `{:?}` keeps the message one line, whatever the value is.
        let parsed = value.to_str().and_then(parse);
        parsed.with_context(|| format!("{name}={value:?}: give {wanted}"))
    }

    fn number<T: FromStr + PartialOrd + Display>(&self, name: &str, default: T, range: RangeInclusive<T>) -> Result<T> {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        self.parsed(name, &default.to_string(), &wanted, |text| text.parse().ok().filter(|value| range.contains(value)))
    }

    fn time_ms(&self, name: &str, default_ms: u64, min_ms: u64) -> Result<Duration> {
        self.number(name, default_ms, min_ms..=MAX_TIME_MS).map(Duration::from_millis)
    }
}
