//! Audio in, results out.

use std::time::Duration;

use futures_util::SinkExt as _;
use plimsoll_providers::config::Config;
use plimsoll_providers::profile::Provider;
use plimsoll_workload_voice::marks::CALLER_BLOCK_BYTES;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::gateway::{LISTEN, Session, ask, at_once, audio, until, with_mocks};

const PROVIDER: Provider = Provider::DeepgramStt;

#[test]
fn an_utterance_has_its_results_side_by_side_and_in_order() {
    let config = Config {
        seed: 5,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        session.send(audio(1..=30, 6)).await;
        let mut all = Vec::new();
        let mut took_ms = 0;
        for _ in 0..3 {
            let (mark, last) = session.result().await;
            all.push((mark.from, mark.to, last));
            took_ms = (mark.handed_ns - mark.read_ns) / 1_000_000;
        }
        assert_eq!(all, [(6, 15, false), (6, 25, false), (6, 30, true)]);
        // All were read at once. One behind the other they take up to 450 ms, and none alone more than 150.
        assert!((30..200).contains(&took_ms), "{took_ms} ms");
        session.tell("CloseStream").await;
        assert_eq!(session.json().await["type"], "Metadata");
        let close = session.next().await.expect("no error");
        assert!(
            matches!(&close, Message::Close(Some(frame)) if u16::from(frame.code) == 1000),
            "{close:?}"
        );
        let counts = until(address, PROVIDER, |counts| counts.of("completed") == 1).await;
        let expected = [
            ("sessions", 1),
            ("requests", 1),
            ("results", 3),
            ("finals", 1),
            ("blocks_read", 30),
            ("blocks_covered", 25),
            ("blocks_lost", 0),
        ];
        for (name, count) in expected {
            assert_eq!(counts.of(name), count, "{name}");
        }
    });
}

/// What is not answered yet is answered before the end.
#[test]
fn the_rest_comes_before_the_end() {
    with_mocks(Config::default(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        session
            .send(audio(1..=30, 6)[..15 * CALLER_BLOCK_BYTES].to_vec())
            .await;
        session.tell("CloseStream").await;
        assert_eq!(session.covered().await, (6, 15, false));
        assert_eq!(session.covered().await, (6, 15, true));
        assert_eq!(session.json().await["type"], "Metadata");
    });
}

#[test]
fn what_is_finalized_early_is_a_final_result() {
    with_mocks(at_once(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        session
            .send(audio(1..=30, 6)[..20 * CALLER_BLOCK_BYTES].to_vec())
            .await;
        assert_eq!(session.covered().await, (6, 15, false));
        session.tell("KeepAlive").await;
        session.tell("Finalize").await;
        assert_eq!(session.covered().await, (6, 20, true));
    });
}

#[test]
fn interim_results_come_only_where_they_are_wanted() {
    with_mocks(at_once(), |address| async move {
        let path = LISTEN.replace("interim_results=true", "interim_results=false");
        let (session, _) = connect_async(format!("ws://{address}{path}"))
            .await
            .expect("upgraded");
        let mut session = Session(session);
        session.send(audio(1..=30, 6)).await;
        assert_eq!(session.covered().await, (6, 30, true));
    });
}

/// As a gateway may send it: 2 bytes at a time, and half a second; in fragments; with a ping between.
#[test]
fn audio_is_heard_however_it_is_cut() {
    with_mocks(at_once(), |address| async move {
        for size in [2, 642, 16_000] {
            let mut session = Session::open(address).await.expect("upgraded");
            for piece in audio(1..=12, 4).chunks(size) {
                session.send(piece.to_vec()).await;
            }
            assert_eq!(session.covered().await, (4, 12, true), "{size} bytes");
        }
        let mut session = Session::open(address).await.expect("upgraded");
        let bytes = audio(1..=12, 4);
        let (first, second) = bytes.split_at(5_001);
        let fragment = |part: &[u8], kind, last| {
            Message::Frame(Frame::message(part.to_vec(), OpCode::Data(kind), last))
        };
        session
            .0
            .send(fragment(first, Data::Binary, false))
            .await
            .expect("sent");
        session
            .0
            .send(Message::Ping("?".into()))
            .await
            .expect("sent");
        session
            .0
            .send(fragment(second, Data::Continue, true))
            .await
            .expect("sent");
        assert_eq!(
            session.next().await.expect("no error"),
            Message::Pong("?".into())
        );
        assert_eq!(session.covered().await, (4, 12, true));
    });
}

#[test]
fn blocks_that_are_lost_doubled_or_reordered_are_counted() {
    with_mocks(at_once(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        session.send(audio([1, 2, 2, 6, 4, 7, 4, 8], 8)).await;
        session.send(vec![0; CALLER_BLOCK_BYTES]).await;
        assert_eq!(session.covered().await, (8, 8, true));
        let counts = until(address, PROVIDER, |counts| counts.of("blocks_read") == 9).await;
        // 3 and 5 never came, 2 and 4 came again, and 4 came late.
        let expected = [
            ("blocks_lost", 2),
            ("blocks_doubled", 2),
            ("blocks_reordered", 1),
            ("blocks_foreign", 1),
        ];
        for (name, count) in expected {
            assert_eq!(counts.of(name), count, "{name}");
        }
    });
}

#[test]
fn a_session_ends_as_the_protocol_says() {
    with_mocks(at_once(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        session.0.close(None).await.expect("sent");
        assert!(session.next().await.expect("no error").is_close());
        // A client's frame without a mask.
        let mut session = Session::open(address).await.expect("upgraded");
        let tokio_tungstenite::MaybeTlsStream::Plain(stream) = session.0.get_mut() else {
            panic!("no TLS here")
        };
        tokio::io::AsyncWriteExt::write_all(stream, &[0x82, 1, 0])
            .await
            .expect("written");
        let close = session.next().await.expect("no error");
        assert!(
            matches!(&close, Message::Close(Some(frame)) if u16::from(frame.code) == 1002),
            "{close:?}"
        );
    });
}

#[test]
fn a_session_in_which_nothing_comes_is_closed() {
    with_mocks(at_once(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        let began = tokio::time::Instant::now();
        tokio::time::sleep(Duration::from_secs(3)).await;
        session.tell("KeepAlive").await;
        let close = session.next().await.expect("no error");
        assert!(
            matches!(&close, Message::Close(Some(frame)) if u16::from(frame.code) == 1011),
            "{close:?}"
        );
        let lasted = began.elapsed();
        assert!((12_900..14_000).contains(&lasted.as_millis()), "{lasted:?}");
    });
}

#[test]
fn what_is_no_session_is_refused() {
    with_mocks(at_once(), |address| async move {
        assert_eq!(ask(address, "GET", LISTEN, "").await.status, 426);
        let other = connect_async(format!("ws://{address}/v1/listen?encoding=opus")).await;
        let Err(Error::Http(response)) = other else {
            panic!("{other:?}")
        };
        assert_eq!(response.status(), 400);
        let counts = until(address, PROVIDER, |counts| {
            counts.of("sessions_refused") == 2
        })
        .await;
        assert_eq!(counts.of("sessions"), 0);
    });
}
