//! The variables of the gateway of these tests.

use std::time::Duration;

use plimsoll_conformance::subject::Environment;

#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// Hosts and ports of the providers.
    pub(super) providers: Vec<String>,
    pub(super) key: String,
    pub(super) token: String,
    pub(super) sessions_max: u64,
    pub(super) per_address_max: u64,
    pub(super) rate_rps: u64,
    pub(super) out_buffer_bytes: usize,
    pub(super) audio_buffer_bytes: usize,
    pub(super) ready: Duration,
    pub(super) idle: Duration,
    pub(super) first: Duration,
    pub(super) gap: Duration,
    pub(super) pong: Duration,
    pub(super) drain: Duration,
}

impl Settings {
    pub(super) fn parse(environment: &Environment) -> Result<Self, String> {
        let text = |name: &str| environment.get(name).cloned().unwrap_or_default();
        let number = |name: &str, usual: u64| match environment.get(name) {
            None => Ok(usual),
            Some(value) => value
                .parse()
                .map_err(|_| format!("{name}={value} is not a number")),
        };
        let millis = |name: &str, usual| number(name, usual).map(Duration::from_millis);
        let bytes =
            |name: &str, usual| number(name, usual).map(|n| usize::try_from(n).expect("small"));
        let urls = environment
            .get("PROVIDER_URLS")
            .map_or("http://127.0.0.1:9100", String::as_str);
        let providers = urls
            .split(',')
            .filter_map(|url| url.strip_prefix("http://"));
        Ok(Self {
            providers: providers.map(str::to_owned).collect(),
            key: text("PROVIDER_KEY"),
            token: text("AUTH_TOKEN"),
            sessions_max: number("MAX_SESSIONS", 0)?,
            per_address_max: number("MAX_SESSIONS_PER_ADDRESS", 0)?,
            rate_rps: number("RATE_LIMIT_RPS", 0)?,
            out_buffer_bytes: bytes("OUT_BUFFER_BYTES", 1_048_576)?,
            // 32 bytes are a millisecond.
            audio_buffer_bytes: 32 * bytes("AUDIO_BUFFER_MS", 5000)?,
            ready: millis("READY_MS", 30_000)?,
            idle: millis("IDLE_MS", 300_000)?,
            first: millis("TTS_FIRST_MS", 10_000)?,
            gap: millis("TTS_GAP_MS", 2000)?,
            pong: millis("STT_PONG_MS", 5000)?,
            drain: millis("DRAIN_TIMEOUT_MS", 5000)?,
        })
    }
}
