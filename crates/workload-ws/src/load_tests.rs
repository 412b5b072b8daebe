//! Tests of the load of workload `ws`.

use super::*;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::secret::Secret;

fn load(test: Test, dialect: Dialect) -> WsLoad {
    let load = WsLoad::new(test, dialect);
    load.check().expect("the defaults can be used");
    load
}

fn refusal(load: &WsLoad) -> String {
    let text = load.check().expect_err("refused").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn a_load_is_sessions_by_its_unit() {
    let quick = Profile::quick();
    let demand = |test, number, profile: &Profile| {
        let demand = load(test, Dialect::Echo).demand(number, profile);
        (demand.sessions, demand.concurrent)
    };
    for test in [Test::Ping, Test::Hold, Test::Limit] {
        assert_eq!(test.load_unit(), LoadUnit::CONNECTIONS);
        assert_eq!(demand(test, 500, &quick), (500, 500));
    }
    assert_eq!(demand(Test::Fanout, 70, &quick), (70, 70));
    for test in [Test::Throughput, Test::Matrix, Test::Formats] {
        assert_eq!(demand(test, 10_000, &quick), (100, 100));
    }
    // 3 s of warm-up and 10 s of window. Up to 7 s of arrivals may be open at once.
    assert_eq!(demand(Test::Storm, 200, &quick), (2_600, 1_400));
    let mut short = quick.clone();
    Test::Storm.load_unit().shape(&mut short);
    (short.warm_up_s, short.measured_s) = (0.0, 1.0);
    assert_eq!(short.ramp_s.to_bits(), 0.0_f64.to_bits());
    assert_eq!(demand(Test::Storm, 200, &short), (200, 200));
}

#[test]
fn answers_come_as_often_as_they_are_due() {
    near(
        load(Test::Ping, Dialect::Wse).answers_per_second(300),
        300.0,
    );
    near(
        load(Test::Hold, Dialect::Echo).answers_per_second(300),
        60.0,
    );
    near(
        load(Test::Limit, Dialect::Echo).answers_per_second(300),
        30.0,
    );
    near(
        load(Test::Throughput, Dialect::Echo).answers_per_second(5_000),
        5_000.0,
    );
    // 100 connections: ten barriers per second each, or one after each message.
    let wse = load(Test::Throughput, Dialect::Wse);
    near(wse.answers_per_second(5_000), 1_000.0);
    near(wse.answers_per_second(500), 500.0);
    near(
        load(Test::Fanout, Dialect::Echo).answers_per_second(40),
        400.0,
    );
    near(load(Test::Storm, Dialect::Wse).answers_per_second(40), 40.0);
}

#[test]
fn paths_are_the_dialects() {
    let path = |test, dialect| load(test, dialect).default_path();
    assert_eq!(path(Test::Ping, Dialect::Echo), "/");
    assert_eq!(path(Test::Fanout, Dialect::Echo), "/fanout");
    assert_eq!(path(Test::Fanout, Dialect::Wse), wse::path(Format::Json));
    let mut msgpack = load(Test::Formats, Dialect::Wse);
    msgpack.format = Format::Msgpack;
    assert_eq!(msgpack.default_path(), wse::path(Format::Msgpack));
    // A ping is JSON, whatever the messages of another test would be.
    msgpack.test = Test::Ping;
    assert_eq!(msgpack.default_path(), wse::path(Format::Json));
}

#[test]
fn sizes_are_those_on_the_wire() {
    let bytes = |load: &WsLoad| load.bytes_of_a_message();
    assert_eq!(
        EchoMessages::content_of(NUMBER_BYTES).map(|c| c.bytes),
        Ok(Vec::new())
    );
    assert!(EchoMessages::content_of(NUMBER_BYTES - 1).is_err());
    for dialect in Dialect::ALL {
        let mut matrix = load(Test::Matrix, dialect);
        for size in [64, 256, 1_024, 4_096, 16_384, 65_536] {
            matrix.message_bytes = size;
            assert_eq!(bytes(&matrix), Some(size));
        }
        let flooded = matrix.flood_content().expect("a size");
        assert_eq!(flooded.bytes.len(), 65_536);
    }
    assert_eq!(bytes(&load(Test::Formats, Dialect::Wse)), Some(175));
    assert_eq!(bytes(&load(Test::Formats, Dialect::Echo)), Some(199));
    assert_eq!(bytes(&load(Test::Ping, Dialect::Wse)), None);
    let ping = load(Test::Ping, Dialect::Echo);
    assert_eq!(bytes(&ping), Some(64));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let changed = |test, dialect, change: fn(&mut WsLoad)| {
        let mut load = load(test, dialect);
        change(&mut load);
        refusal(&load)
    };
    let (echo, wse) = (Dialect::Echo, Dialect::Wse);
    for (text, expected) in [
        (
            changed(Test::Matrix, wse, |l| l.message_bytes = 35),
            "at least 36",
        ),
        (
            changed(Test::Matrix, echo, |l| l.message_bytes = 23),
            "at least 24",
        ),
        (
            changed(Test::Ping, echo, |l| l.message_bytes = 2 << 20),
            "1048576",
        ),
        (
            changed(Test::Fanout, echo, |l| l.message_bytes = 8),
            "at least 24",
        ),
        (
            changed(Test::Fanout, wse, |l| l.rate_per_s = 0.0),
            "--rate 0",
        ),
        (
            changed(Test::Throughput, echo, |l| l.connections = 0),
            "--connections 0",
        ),
        (
            changed(Test::Hold, echo, |l| l.period_ns = 0),
            "--period-ms 0",
        ),
        (
            changed(Test::Storm, echo, |l| l.closed_loop = true),
            "ping and throughput",
        ),
        (
            changed(Test::Storm, wse, |l| {
                l.credentials.secret = Secret::new("x".repeat(31))
            }),
            "32 bytes",
        ),
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn only_messages_are_handed_to_an_application() {
    let handed = |test, dialect| load(test, dialect).frames_reach_the_application();
    for dialect in Dialect::ALL {
        assert!(handed(Test::Throughput, dialect));
        assert!(!handed(Test::Storm, dialect) && !handed(Test::Fanout, dialect));
    }
    assert!(handed(Test::Ping, Dialect::Echo) && !handed(Test::Ping, Dialect::Wse));
    assert!(load(Test::Formats, Dialect::Echo).asks_for_decoding());
    assert!(!load(Test::Throughput, Dialect::Echo).asks_for_decoding());
    assert!(load(Test::Throughput, Dialect::Wse).asks_for_decoding());
}
