//! The configuration, from environment variables and checked before anything starts.

use std::ffi::OsString;
use std::time::Duration;

use axum::http::HeaderValue;
use rust_axum::variables::{ConfigError, HttpUrl, Variables};

use crate::limits::AUDIO_BYTES_PER_MS;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// `PORT`.
    pub port: u16,
    /// `WORKER_THREADS`.
    pub worker_threads: usize,
    /// `PROVIDER_URLS`; at least one.
    pub provider_urls: Vec<HttpUrl>,
    /// `PROVIDER_KEY`; none when it is empty.
    pub provider_key: Option<String>,
    /// `AUTH_TOKEN`; none when it is empty.
    pub auth_token: Option<String>,
    /// `DRAIN_TIMEOUT_MS`.
    pub drain_timeout: Duration,
    /// Who is let in.
    pub admission: Admission,
    /// What each session needs.
    pub session: Session,
}

/// Limits of admission; 0 is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Admission {
    /// `MAX_SESSIONS`.
    pub sessions_max: usize,
    /// `MAX_SESSIONS_PER_ADDRESS`.
    pub sessions_per_address_max: usize,
    /// `RATE_LIMIT_RPS`.
    pub upgrades_per_second_max: usize,
}

/// Times and sizes of a session.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// `READY_MS`.
    pub ready_timeout: Duration,
    /// `IDLE_MS`.
    pub idle_timeout: Duration,
    /// `TTS_FIRST_MS`.
    pub tts_first_timeout: Duration,
    /// `TTS_GAP_MS`.
    pub tts_gap_timeout: Duration,
    /// `STT_PONG_MS`.
    pub stt_pong_timeout: Duration,
    /// `AUDIO_BUFFER_MS`, in bytes.
    pub audio_buffer_bytes: usize,
    /// `OUT_BUFFER_BYTES`.
    pub out_buffer_bytes: usize,
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
        let buffer_ms: usize = variables.number("AUDIO_BUFFER_MS", 5000, 0..=600_000)?;
        Ok(Self {
            port: variables.number("PORT", 3001, 1..=u16::MAX)?,
            worker_threads: variables.worker_threads()?,
            provider_urls: provider_urls(&variables)?,
            provider_key: provider_key(&variables)?,
            auth_token: variables.token("AUTH_TOKEN")?,
            drain_timeout: variables.milliseconds("DRAIN_TIMEOUT_MS", 5000, 0)?,
            admission: Admission {
                sessions_max: variables.number("MAX_SESSIONS", 0, 0..=usize::MAX)?,
                sessions_per_address_max: variables.number("MAX_SESSIONS_PER_ADDRESS", 0, 0..=usize::MAX)?,
                upgrades_per_second_max: variables.number("RATE_LIMIT_RPS", 0, 0..=1_000_000)?,
            },
            session: Session {
                ready_timeout: variables.milliseconds("READY_MS", 30_000, 1)?,
                idle_timeout: variables.milliseconds("IDLE_MS", 300_000, 1)?,
                tts_first_timeout: variables.milliseconds("TTS_FIRST_MS", 10_000, 1)?,
                tts_gap_timeout: variables.milliseconds("TTS_GAP_MS", 2000, 1)?,
                stt_pong_timeout: variables.milliseconds("STT_PONG_MS", 5000, 1)?,
                audio_buffer_bytes: buffer_ms * AUDIO_BYTES_PER_MS,
                out_buffer_bytes: variables.number("OUT_BUFFER_BYTES", 1 << 20, 1..=1 << 40)?,
            },
        })
    }
}

fn provider_urls<F: Fn(&str) -> Option<OsString>>(variables: &Variables<F>) -> Result<Vec<HttpUrl>, ConfigError> {
    const NAME: &str = "PROVIDER_URLS";
    let text = variables.text(NAME, "http://127.0.0.1:9100")?;
    let urls = text.split(',').map(|url| url.trim().parse());
    urls.collect::<Result<_, String>>().map_err(|error| ConfigError::new(NAME, &text, &error))
}

/// A key is told to providers and to nobody else: the message does not repeat it.
fn provider_key<F: Fn(&str) -> Option<OsString>>(variables: &Variables<F>) -> Result<Option<String>, ConfigError> {
    const NAME: &str = "PROVIDER_KEY";
    let key = variables.token(NAME)?;
    match &key {
        Some(key) if HeaderValue::from_str(key).is_err() => {
            Err(ConfigError::new(NAME, "…", "give a key that can stand in an HTTP header"))
        }
        _ => Ok(key),
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
        assert_eq!(config.port, 3001);
        assert_eq!(config.provider_urls[0].base, "http://127.0.0.1:9100");
        assert_eq!((config.provider_key, config.auth_token), (None, None));
        assert_eq!(config.session.ready_timeout, Duration::from_secs(30));
        assert_eq!(config.session.idle_timeout, Duration::from_secs(300));
        assert_eq!(config.session.audio_buffer_bytes, 5 * 32_000);
        assert_eq!(config.session.out_buffer_bytes, 1_048_576);
    }

    #[test]
    fn several_providers() {
        let config = read("PROVIDER_URLS", "http://127.0.0.1:1, http://127.0.0.2:2/base").expect("two URLs");
        let ports: Vec<u16> = config.provider_urls.iter().map(|url| url.port).collect();
        assert_eq!(ports, [1, 2]);
    }

    #[test]
    fn bad_values_are_named_in_one_line() {
        for (name, value) in [
            ("PORT", "0"),
            ("WORKER_THREADS", "none"),
            ("PROVIDER_URLS", ""),
            ("PROVIDER_URLS", "http://127.0.0.1:1,"),
            ("PROVIDER_URLS", "127.0.0.1:1"),
            ("PROVIDER_KEY", "a\nb"),
            ("MAX_SESSIONS", "-1"),
            ("MAX_SESSIONS_PER_ADDRESS", "all"),
            ("RATE_LIMIT_RPS", "1.5"),
            ("DRAIN_TIMEOUT_MS", "x"),
            ("READY_MS", "0"),
            ("IDLE_MS", ""),
            ("TTS_FIRST_MS", "0"),
            ("TTS_GAP_MS", "0"),
            ("STT_PONG_MS", "0"),
            ("AUDIO_BUFFER_MS", "600001"),
            ("OUT_BUFFER_BYTES", "0"),
        ] {
            let message = read(name, value).expect_err(name).to_string();
            assert!(message.starts_with(&format!("{name}=")), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}
