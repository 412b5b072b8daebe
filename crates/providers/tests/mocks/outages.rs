//! Times in which a provider is out.

use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, SinkExt as _};
use plimsoll_providers::config::Config;
use plimsoll_providers::profile::{Of, Profile, Provider, What};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::gateway::{
    Connection, LISTEN, Session, at_once, audio, expect_first_block, paced, put_faults, speak,
    speech, until, with_mocks,
};

const STT: Provider = Provider::DeepgramStt;
const TTS: Provider = Provider::ElevenlabsTts;

fn out(provider: Provider, outage: &str, from_s: f64, to_s: f64) -> Value {
    json!({"timeline": [{"provider": provider.name(), "outage": outage, "from_s": from_s, "to_s": to_s}]})
}

async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[test]
fn a_provider_that_refuses_says_so_at_once_and_drops_what_is_under_way() {
    with_mocks(paced(), |address| async move {
        let (path, body) = speech(TTS, "#1.1 a text of a second or two");
        let mut under_way = Connection::to(address).await;
        under_way.begin("POST", path, &body).await;
        put_faults(address, out(TTS, "refuse", 0.2, 0.6)).await;
        sleep_ms(100).await;
        // Not yet, and others are not out.
        assert_eq!(speak(address, TTS, "#1.2 a").await.status, 200);
        let broken = under_way.answer().await;
        assert!(broken.status == 200 && !broken.whole && !broken.body.is_empty());
        assert_eq!(speak(address, TTS, "#1.3 a").await.status, 503);
        assert!(speak(address, Provider::OpenaiTts, "#1.3 a").await.whole);
        let counts = until(address, TTS, |counts| {
            counts.of("completed") == 1 || counts.of("dropped") == 2
        })
        .await;
        assert_eq!(counts.of("failed"), 1);
        sleep_ms(600).await;
        assert!(speak(address, TTS, "#1.4 a").await.whole);
    });
}

/// No drawn time before the 503, whatever the provider takes otherwise.
#[test]
fn a_refusal_takes_no_time() {
    with_mocks(Config::default(), |address| async move {
        put_faults(address, out(TTS, "refuse", 0.0, 60.0)).await;
        let began = Instant::now();
        assert_eq!(speak(address, TTS, "#1.1 a").await.status, 503);
        assert!(
            began.elapsed() < Duration::from_millis(90),
            "its least is 100 ms, and it took {:?}",
            began.elapsed()
        );
    });
}

#[test]
fn speech_recognition_that_refuses_resets_sessions_and_opens_none() {
    with_mocks(at_once(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        put_faults(address, out(STT, "refuse", 0.1, 0.5)).await;
        let began = Instant::now();
        assert!(session.next().await.is_err(), "a reset");
        let after = began.elapsed().as_millis();
        assert!((90..300).contains(&after), "after {after} ms");
        let refused = connect_async(format!("ws://{address}{LISTEN}")).await;
        let Err(Error::Http(response)) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(response.status(), 503);
        assert!(
            speak(address, TTS, "#1.1 a").await.whole,
            "one out spares the other"
        );
        sleep_ms(500).await;
        let mut session = Session::open(address).await.expect("it is back");
        session.send(audio(1..=5, 1)).await;
        assert_eq!(session.covered().await, (1, 5, true));
    });
}

#[test]
fn a_provider_that_hangs_says_nothing_until_it_is_back() {
    with_mocks(paced(), |address| async move {
        let (path, body) = speech(TTS, "#1.1 a text of a second or two");
        let mut under_way = Connection::to(address).await;
        under_way.begin("POST", path, &body).await;
        sleep_ms(100).await;
        put_faults(address, out(TTS, "hang", 0.0, 0.6)).await;
        let put = Instant::now();
        let asked = speak(address, TTS, "#1.2 a").await;
        assert!(
            asked.whole && put.elapsed() >= Duration::from_millis(600),
            "after {:?}",
            put.elapsed()
        );
        let marks = asked.marks();
        assert!(
            marks[0].handed_ns - marks[0].read_ns >= 550_000_000,
            "the provider took all that time"
        );
        // The reply that was under way has a hole, and goes on behind it as fast as it is played.
        let whole = under_way.answer().await;
        assert!(whole.whole);
        let marks = whole.marks();
        let gaps_ms: Vec<u64> = marks
            .windows(2)
            .map(|two| (two[1].handed_ns - two[0].handed_ns) / 1_000_000)
            .collect();
        let holes: Vec<&u64> = gaps_ms.iter().filter(|gap| **gap > 300).collect();
        assert!(
            holes.len() == 1 && (550..800).contains(holes[0]),
            "{gaps_ms:?}"
        );
        let lasted_ms = (marks[marks.len() - 1].handed_ns - marks[0].handed_ns) / 1_000_000;
        let played_ms = 20 * (marks.len() as u64 - 1);
        assert!(
            lasted_ms >= played_ms + 500,
            "{lasted_ms} ms for {played_ms} ms"
        );
    });
}

/// A gateway that has had enough of a provider that hangs: the provider's doing, not a request that was cancelled.
#[test]
fn whoever_leaves_a_provider_that_hangs_was_timed_out() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, out(TTS, "hang", 0.0, 60.0)).await;
        let asked =
            tokio::time::timeout(Duration::from_millis(200), speak(address, TTS, "#1.1 a")).await;
        assert!(asked.is_err());
        let counts = until(address, TTS, |counts| counts.of("timed_out") == 1).await;
        assert_eq!((counts.of("requests"), counts.of("cancelled")), (1, 0));
    });
}

/// Neither results nor pongs nor sessions; and then all of it.
#[test]
fn speech_recognition_that_hangs_does_not_even_answer_a_ping() {
    with_mocks(at_once(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        put_faults(address, out(STT, "hang", 0.0, 0.6)).await;
        sleep_ms(50).await;
        let put = Instant::now();
        session
            .0
            .send(Message::Ping("?".into()))
            .await
            .expect("sent");
        session.send(audio(1..=5, 1)).await;
        let opening = tokio::spawn(connect_async(format!("ws://{address}{LISTEN}")));
        sleep_ms(300).await;
        assert!(session.next().now_or_never().is_none());
        assert!(!opening.is_finished());
        assert_eq!(
            session.next().await.expect("no error"),
            Message::Pong("?".into())
        );
        assert!(
            put.elapsed() >= Duration::from_millis(500),
            "after {:?}",
            put.elapsed()
        );
        assert_eq!(session.covered().await, (1, 5, true));
        opening.await.expect("no panic").expect("upgraded");
    });
}

#[test]
fn a_provider_that_is_slow_takes_five_times_as_long() {
    let config = Config {
        seed: 3,
        paced: false,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        put_faults(address, out(TTS, "slow", 0.0, 60.0)).await;
        for turn in 0..3 {
            let of = Of {
                provider: TTS,
                vu: 1,
                turn,
                attempt: 1,
            };
            let expected = 5 * Profile::Usual.quantiles(TTS).at(of.draw(3, What::Latency));
            expect_first_block(address, TTS, turn, expected).await;
        }
    });
}

/// A new timeline takes the place of the old one.
#[test]
fn an_outage_ends_when_it_is_taken_back() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, out(TTS, "hang", 0.0, 60.0)).await;
        let asked = tokio::spawn(speak_once(address));
        sleep_ms(100).await;
        put_faults(address, json!({})).await;
        assert_eq!(asked.await.expect("no panic"), 200);
    });
}

async fn speak_once(address: std::net::SocketAddr) -> u16 {
    speak(address, TTS, "#1.1 a").await.status
}
