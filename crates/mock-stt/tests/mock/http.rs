//! What the mock answers beside sessions.

use crate::rig::{ask, config, serve, stats};

#[test]
fn it_tells_how_it_is() {
    let address = serve(config("deepgram", "none"));
    let health = ask(address, "GET /health");
    assert!(
        health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("ok\n"),
        "{health}"
    );
    assert!(ask(address, "GET /nowhere").starts_with("HTTP/1.1 404 "));
    assert!(ask(address, "GET /v1/listen").starts_with("HTTP/1.1 426 "));
    let told = stats(address);
    for name in [
        "window_us",
        "busy_us",
        "window_audio_ms",
        "sessions_open",
        "sessions_ended",
        "interims",
        "finals",
    ] {
        assert!(told[name].is_u64(), "{name} in {told}");
    }
    assert!(told["lateness"]["p99_us"].is_u64());
    assert!(ask(address, "POST /stats/reset").starts_with("HTTP/1.1 200 "));
    assert!(
        stats(address)["window_us"].as_u64() < told["window_us"].as_u64().map(|us| us + 5_000_000)
    );
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

/// Computing costs what it is set to, on the thread's own clock, and the statistics show it.
#[test]
fn a_second_of_audio_costs_what_it_is_set_to() {
    use plimsoll_workload_stt_real::dialect::Options;

    use crate::client::{Client, dialect_of};
    use crate::rig::Speech;
    let settings = plimsoll_mock_stt::config::Config {
        cpu_ms_per_s: 50.0,
        ..config("deepgram", "none")
    };
    let address = serve(settings);
    let mut client = Client::open(address, dialect_of("deepgram", Options::default()));
    let speech = Speech::new(client.dialect.audio(), 8, 1);
    speech.frames.iter().for_each(|frame| client.say(frame));
    client.read_until(std::time::Duration::from_secs(5), |seen| {
        seen.words().len() >= speech.words().len()
    });
    let told = stats(address);
    let computed_us = told["audio_ms"].as_u64().expect("a number") * 50;
    assert!(
        told["busy_us"].as_u64() >= Some(computed_us * 9 / 10),
        "{told}"
    );
}
