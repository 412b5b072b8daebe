//! What the mock answers beside sessions.

use crate::rig::{ask, config, serve, stats};

#[test]
fn it_tells_how_it_is() {
    let address = serve(config("deepgram", "none"));
    let health = ask(address, "GET /health");
    assert!(health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("ok\n"), "{health}");
    assert!(ask(address, "GET /nowhere").starts_with("HTTP/1.1 404 "));
    assert!(ask(address, "GET /v1/listen").starts_with("HTTP/1.1 426 "));
    let told = stats(address);
    for name in ["window_us", "busy_us", "window_audio_ms", "sessions_open", "sessions_ended", "interims", "finals"] {
        assert!(told[name].is_u64(), "{name} in {told}");
    }
    assert!(told["lateness"]["p99_us"].is_u64());
    assert!(ask(address, "POST /stats/reset").starts_with("HTTP/1.1 200 "));
    assert!(stats(address)["window_us"].as_u64() < told["window_us"].as_u64().map(|us| us + 5_000_000));
}

#[test]
fn audio_that_is_not_understood_is_refused() {
    use plimsoll_workload_stt_real::dialect::{Field, Kind, Options};

    use crate::client::{Client, dialect_of};
    let address = serve(config("deepgram", "none"));
    let options = Options {
        params: vec![Field::new("channels", "2")],
        ..Options::default()
    };
    let client = Client::open(address, dialect_of("deepgram", options));
    assert_eq!(client.seen.refused, Some(Kind::BadRequest));
}
