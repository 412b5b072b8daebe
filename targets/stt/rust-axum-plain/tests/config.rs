//! The environment variables: defaults and bad values.

mod support;

use std::time::Duration;

use rust_axum_plain::config::{Config, OverflowPolicy};
use support::config;

#[test]
fn defaults_are_those_of_the_contract() {
    let config = config(&[]);
    assert_eq!(config.port, 3000);
    assert_eq!(config.infer_url.as_str(), "http://127.0.0.1:9000/infer");
    assert_eq!(config.inference_http_clients, 1);
    assert_eq!(config.inference_timeout, Duration::from_secs(5));
    assert_eq!(config.flush_interval, Duration::from_secs(1));
    assert_eq!(config.flush_phase_jitter, Duration::from_secs(1));
    assert_eq!(config.cpu_passes, 4);
    assert_eq!((config.max_sessions, config.max_inflight_jobs), (0, 0));
    assert_eq!((config.max_buffer_frames, config.outbox_messages), (500, 4));
    assert_eq!(config.overflow_policy, OverflowPolicy::DropOldest);
    assert_eq!(config.start_timeout, Duration::from_secs(10));
    assert_eq!(config.drain_timeout, Duration::from_secs(5));
    assert_eq!(config.auth_token, "");
}

#[test]
fn a_base_url_may_have_a_path() {
    let with_path = config(&[("INFERENCE_URL", "http://[::1]:81/base/")]);
    assert_eq!(with_path.infer_url.as_str(), "http://[::1]:81/base/infer");
}

#[test]
fn bad_values_are_named_in_one_line() {
    for (name, value) in [
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "http"),
        ("WORKER_THREADS", "0"),
        ("WORKER_THREADS", "two"),
        ("INFERENCE_URL", "127.0.0.1:9000"),
        ("INFERENCE_URL", "https://example.org"),
        ("INFERENCE_URL", "not a url"),
        ("INFERENCE_URL", "http://"),
        ("INFERENCE_URL", "http://host/?query"),
        ("INFERENCE_URL", ""),
        ("INFERENCE_HTTP_CLIENTS", "0"),
        ("INFERENCE_TIMEOUT_MS", "-1"),
        ("FLUSH_INTERVAL_MS", "0"),
        ("FLUSH_PHASE_JITTER_MS", "1.5"),
        ("CPU_PASSES", "4294967296"),
        ("MAX_SESSIONS", "x\ny"),
        ("MAX_BUFFER_FRAMES", "0"),
        ("OVERFLOW_POLICY", "Drop_Oldest"),
        ("MAX_INFLIGHT_JOBS", "all"),
        ("OUTBOX_MESSAGES", "0"),
        ("START_TIMEOUT_MS", "never"),
        ("DRAIN_TIMEOUT_MS", "99999999999999"),
    ] {
        let read = Config::read(|asked| (asked == name).then(|| value.into()));
        let message = read.expect_err(name).to_string();
        assert!(message.starts_with(&format!("{name}=")), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
