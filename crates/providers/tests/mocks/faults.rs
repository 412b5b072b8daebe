//! Shares of requests that go wrong.

use std::time::Duration;

use plimsoll_providers::config::Config;
use plimsoll_providers::faults::slowness;
use plimsoll_providers::profile::{Of, Profile, Provider, What};
use plimsoll_workload_voice::marks::REPLY_BLOCK_BYTES;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::gateway::{
    Connection, Session, ask, at_once, audio, expect_first_block, paced, put_faults, speak, speech,
    until, with_mocks,
};

const TTS: Provider = Provider::DeepgramTts;

#[test]
fn a_failure_is_a_500_and_a_limit_a_429() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, json!({"shares": {"fail": 1}})).await;
        // The connection lives on.
        let mut connection = Connection::to(address).await;
        let (path, body) = speech(TTS, "#1.1 hello");
        assert_eq!(connection.ask("POST", path, &body).await.status, 500);
        put_faults(address, json!({"shares": {"rate_limit": 1}})).await;
        let limited = connection.ask("POST", path, &body).await;
        assert_eq!(
            (limited.status, limited.header("retry-after")),
            (429, Some("60"))
        );
        put_faults(address, json!({})).await;
        assert!(connection.ask("POST", path, &body).await.whole);
        let counts = until(address, TTS, |counts| counts.of("completed") == 1).await;
        assert_eq!(
            (
                counts.of("failed"),
                counts.of("rate_limited"),
                counts.of("requests")
            ),
            (1, 1, 3)
        );
    });
}

/// Half of them before the first byte, half in the middle; a reset either way.
#[test]
fn a_drop_is_a_reset() {
    with_mocks(paced(), |address| async move {
        put_faults(address, json!({"shares": {"drop": 1}})).await;
        let (path, body) = ("/v1/speak?encoding=linear16&sample_rate=24000", |turn| {
            json!({"text": format!("#1.{turn} a")}).to_string()
        });
        let mut middles = 0;
        for turn in 0..12 {
            let mut connection = Connection::to(address).await;
            let answer = connection.ask("POST", path, &body(turn)).await;
            assert!(!answer.whole);
            let ended = connection.stream.try_read(&mut [0; 1]);
            let reset = connection.stream.take_error().expect("an answer").is_some()
                || ended.is_err()
                || matches!(ended, Ok(0));
            assert!(reset, "{ended:?}");
            if answer.status == 200 {
                // 18 blocks are the whole.
                assert!(answer.body.len() <= 9 * REPLY_BLOCK_BYTES);
                middles += 1;
            }
        }
        assert!((2..=10).contains(&middles), "{middles} of 12 in the middle");
        let counts = until(address, TTS, |counts| counts.of("dropped") == 12).await;
        assert_eq!(counts.of("requests"), 12);
    });
}

/// A reset and no orderly end: the error that a gateway sees is that one.
#[test]
fn a_drop_is_seen_as_a_connection_reset() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, json!({"shares": {"drop": 1}})).await;
        for turn in 0..6 {
            let mut connection = Connection::to(address).await;
            let (path, _) = speech(TTS, "");
            let body = json!({"text": format!("#1.{turn} hello")}).to_string();
            connection.begin("POST", path, &body).await;
            let mut all = Vec::new();
            let read = tokio::io::AsyncReadExt::read_to_end(&mut connection.stream, &mut all).await;
            assert_eq!(
                read.expect_err("no end").kind(),
                std::io::ErrorKind::ConnectionReset,
                "turn {turn}"
            );
        }
    });
}

/// They say nothing until the gateway has had enough. That is the fault's doing, not a request that was cancelled.
#[test]
fn silence_and_stalls_are_what_they_are_called() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, json!({"shares": {"timeout": 1}})).await;
        let silent = timeout(
            Duration::from_millis(300),
            speak(address, TTS, "#1.1 hello"),
        )
        .await;
        assert!(silent.is_err(), "{silent:?}");
        put_faults(address, json!({"shares": {"stall": 1}})).await;
        let mut connection = Connection::to(address).await;
        let (path, body) = speech(TTS, "#1.2 hello");
        connection.begin("POST", path, &body).await;
        let mut some = vec![0; 4_000];
        tokio::time::sleep(Duration::from_millis(300)).await;
        let count = connection
            .stream
            .try_read(&mut some)
            .expect("the beginning");
        assert!(
            (REPLY_BLOCK_BYTES..2 * REPLY_BLOCK_BYTES).contains(&count),
            "{count} bytes"
        );
        drop(connection);
        let counts = until(address, TTS, |counts| counts.of("stalled") == 1).await;
        assert_eq!(
            (
                counts.of("timed_out"),
                counts.of("cancelled"),
                counts.of("requests")
            ),
            (1, 0, 2)
        );
        assert_eq!(counts.of("bytes_out"), REPLY_BLOCK_BYTES as u64);
    });
}

#[test]
fn a_slow_answer_takes_two_to_five_times_as_long() {
    let config = Config {
        paced: false,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        put_faults(address, json!({"shares": {"slow": 1}})).await;
        for turn in 0..4 {
            let of = Of {
                provider: TTS,
                vu: 1,
                turn,
                attempt: 1,
            };
            let drawn = Profile::Usual.quantiles(TTS).at(of.draw(1, What::Latency));
            let expected = drawn.mul_f64(slowness(&of, 1));
            assert!(expected >= drawn * 2 && expected <= drawn * 5);
            expect_first_block(address, TTS, turn, expected).await;
        }
    });
}

#[test]
fn faults_of_speech_recognition_are_what_they_are_called() {
    with_mocks(at_once(), |address| async move {
        let provider = Provider::DeepgramStt;
        put_faults(address, json!({"shares": {"fail": 1}})).await;
        let mut session = Session::open(address).await.expect("upgraded");
        session.send(audio(1..=5, 1)).await;
        assert_eq!(session.json().await["type"], "Error");
        let close = session.next().await.expect("no error");
        assert!(
            matches!(&close, Message::Close(Some(frame)) if u16::from(frame.code) == 1011),
            "{close:?}"
        );
        put_faults(address, json!({"shares": {"drop": 1}})).await;
        let mut session = Session::open(address).await.expect("upgraded");
        session.send(audio(1..=5, 1)).await;
        let next = session.next().await;
        assert!(next.is_err(), "{next:?}");
        // An utterance without a final result; the next one has its own.
        for (share, end) in [("timeout", "timed_out"), ("stall", "stalled")] {
            put_faults(address, json!({"shares": {share: 1}})).await;
            let mut session = Session::open(address).await.expect("upgraded");
            session.send(audio(1..=5, 1)).await;
            until(address, provider, |counts| counts.of(end) == 1).await;
            put_faults(address, json!({})).await;
            session.send(audio(6..=12, 7)).await;
            assert_eq!(session.covered().await, (7, 12, true));
        }
        // A session is limited when it opens, so an utterance never is.
        put_faults(address, json!({"shares": {"rate_limit": 1}})).await;
        let mut session = Session::open(address).await.expect("upgraded");
        session.send(audio(1..=5, 1)).await;
        assert_eq!(session.covered().await, (1, 5, true));
        let counts = until(address, provider, |counts| counts.of("completed") == 3).await;
        assert_eq!(
            (
                counts.of("failed"),
                counts.of("dropped"),
                counts.of("requests")
            ),
            (1, 1, 7)
        );
    });
}

#[test]
fn bad_faults_change_nothing() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, json!({"preset": "stress"})).await;
        let answer = ask(address, "PUT", "/faults", r#"{"shares": {"fail": 2}}"#).await;
        let told = String::from_utf8(answer.body).expect("text");
        assert_eq!(answer.status, 400);
        assert!(
            told.starts_with("faults: ") && told.lines().count() == 1,
            "{told}"
        );
        assert_eq!(
            ask(address, "GET", "/faults", "").await.json()["preset"],
            "stress"
        );
    });
}
