//! Text in, audio out.

use std::time::{Duration, Instant};

use plimsoll_providers::config::Config;
use plimsoll_providers::profile::{Of, Profile, Provider, What};
use plimsoll_workload_voice::marks::{REPLY_BLOCK_BYTES, ReplyMark, SpeakMark};

use crate::gateway::{Connection, ask, at_once, paced, speak, speech, until, with_mocks};

pub(crate) const SPEAKERS: [Provider; 4] = [
    Provider::DeepgramTts,
    Provider::CartesiaTts,
    Provider::ElevenlabsTts,
    Provider::OpenaiTts,
];

#[test]
fn each_provider_speaks_the_whole_text_once() {
    with_mocks(at_once(), |address| async move {
        let text = format!("{}schön, hello", SpeakMark { vu: 3, turn: 4 });
        // One connection serves all of them, one after the other.
        let mut connection = Connection::to(address).await;
        for provider in SPEAKERS {
            let (path, body) = speech(provider, &text);
            let answer = connection.ask("POST", path, &body).await;
            assert_eq!((answer.status, answer.whole), (200, true), "{provider:?}");
            assert_eq!(answer.header("content-type"), Some("audio/pcm"));
            let marks = answer.marks();
            let blocks = u32::try_from(text.chars().count() * 3).expect("few");
            let numbers: Vec<u32> = marks.iter().map(|mark| mark.block).collect();
            assert_eq!(numbers, (1..=blocks).collect::<Vec<u32>>());
            for mark in &marks {
                assert_eq!(
                    (mark.vu, mark.turn, mark.request, mark.blocks),
                    (3, 4, 1, blocks)
                );
                assert!(mark.read_ns <= mark.handed_ns);
            }
            let counts = until(address, provider, |counts| counts.of("completed") == 1).await;
            assert_eq!(counts.of("requests"), 1);
            assert_eq!(
                counts.of("bytes_out"),
                u64::from(blocks) * REPLY_BLOCK_BYTES as u64
            );
        }
    });
}

/// The time of the header is that of the mark, to the nanosecond.
#[test]
fn the_header_says_what_the_marks_say() {
    let config = Config {
        paced: false,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        for provider in SPEAKERS {
            let answer = speak(address, provider, "#1.1 a").await;
            let first = answer.marks()[0];
            let took_ns = first.handed_ns - first.read_ns;
            let expected = format!("{}.{:06}", took_ns / 1_000_000, took_ns % 1_000_000);
            assert_eq!(answer.header("x-mock-provider-ms"), Some(&*expected));
        }
    });
}

/// The first block comes after the time that was drawn, and no draw depends on what came before.
#[test]
fn a_request_takes_what_is_drawn_for_it() {
    let config = Config {
        seed: 5,
        paced: false,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        // Not in the order of callers; and the second time is another attempt.
        for (vu, attempt) in [(3, 1), (1, 1), (3, 2), (2, 1)] {
            let provider = Provider::CartesiaTts;
            let answer = speak(address, provider, &format!("#{vu}.7 a")).await;
            let first = answer.marks()[0];
            let of = Of {
                provider,
                vu,
                turn: 7,
                attempt,
            };
            let drawn = Profile::Usual
                .quantiles(provider)
                .at(of.draw(5, What::Latency));
            let took = Duration::from_nanos(first.handed_ns - first.read_ns);
            assert_eq!(first.request, attempt);
            assert!(
                took >= drawn && took < drawn + Duration::from_millis(60),
                "{took:?} of {drawn:?}"
            );
        }
    });
}

/// Requests are answered side by side.
#[test]
fn a_request_does_not_wait_for_another() {
    let config = Config {
        paced: false,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        let began = Instant::now();
        let asked: Vec<_> = (0..20)
            .map(|vu| {
                tokio::spawn(async move {
                    speak(address, Provider::OpenaiTts, &format!("#{vu}.1 a")).await
                })
            })
            .collect();
        for answer in asked {
            assert!(answer.await.expect("answered").whole);
        }
        // One after the other they take 2 s at the least.
        assert!(
            began.elapsed() < Duration::from_millis(1_500),
            "{:?}",
            began.elapsed()
        );
    });
}

/// A block is due each 20 ms, and none comes early.
#[test]
fn a_reply_comes_as_fast_as_it_is_played() {
    with_mocks(paced(), |address| async move {
        let answer = speak(address, Provider::DeepgramTts, "#1.1 abcde").await;
        let marks = answer.marks();
        assert_eq!(marks.len(), 30);
        // The first one may be late by a tick.
        expect_paced(&marks, Duration::from_millis(5));
    });
}

/// Blocks come 20 ms after one another, none of them earlier than that by more than `early`, or later by 60 ms.
fn expect_paced(marks: &[ReplyMark], early: Duration) {
    for mark in marks {
        let due = Duration::from_millis(20) * (mark.block - 1);
        let handed = Duration::from_nanos(mark.handed_ns - marks[0].handed_ns);
        let in_time = handed + early >= due && handed < due + Duration::from_millis(60);
        assert!(in_time, "block {}: {handed:?}", mark.block);
    }
}

/// Half as many chunks, and no block is more than 20 ms early.
#[test]
fn a_chunk_may_have_two_blocks() {
    let config = Config {
        chunk_ms: 40,
        ..paced()
    };
    with_mocks(config, |address| async move {
        let marks = speak(address, Provider::DeepgramTts, "#1.1 abcde")
            .await
            .marks();
        let mut handed: Vec<u64> = marks.iter().map(|mark| mark.handed_ns).collect();
        expect_paced(&marks, Duration::from_millis(25));
        handed.dedup();
        assert!(
            (10..=15).contains(&handed.len()),
            "{} chunks for {} blocks",
            handed.len(),
            marks.len()
        );
    });
}

/// Not a fault: the provider is told, and what it had is counted.
#[test]
fn a_gateway_that_leaves_cancels_its_request() {
    with_mocks(paced(), |address| async move {
        let (path, body) = speech(
            Provider::DeepgramTts,
            "#1.1 a long text that takes some seconds",
        );
        let mut connection = Connection::to(address).await;
        connection.begin("POST", path, &body).await;
        let mut some = [0; 2_000];
        tokio::io::AsyncReadExt::read_exact(&mut connection.stream, &mut some)
            .await
            .expect("a beginning");
        let left = Instant::now();
        drop(connection);
        let counts = until(address, Provider::DeepgramTts, |counts| {
            counts.of("cancelled") == 1
        })
        .await;
        assert!(left.elapsed() < Duration::from_millis(500));
        assert_eq!((counts.of("requests"), counts.of("in_flight")), (1, 0));
        let spoken = counts.of("bytes_out");
        assert!((1_920..96_000).contains(&spoken), "{spoken} bytes");
    });
}

#[test]
fn what_a_provider_would_not_take_is_refused_in_one_line() {
    with_mocks(at_once(), |address| async move {
        for (path, body, named) in [
            ("/v1/speak?encoding=linear16&sample_rate=24000", "", "JSON"),
            (
                "/v1/speak?encoding=linear16&sample_rate=24000",
                "{}",
                "/text",
            ),
            (
                "/v1/speak?encoding=linear16&sample_rate=24000",
                r#"{"text": ""}"#,
                "/text",
            ),
            (
                "/v1/speak?encoding=linear16&sample_rate=24000",
                r#"{"text": 1}"#,
                "/text",
            ),
            (
                "/v1/speak?encoding=mp3",
                r#"{"text": "a"}"#,
                "encoding=linear16",
            ),
            (
                "/v1/text-to-speech/x/stream",
                r#"{"text": "a"}"#,
                "output_format=pcm_24000",
            ),
            (
                "/v1/audio/speech",
                r#"{"model": "a", "voice": "b", "input": "c"}"#,
                "/response_format",
            ),
            (
                "/v1/audio/speech",
                r#"{"model": "a", "input": "c", "response_format": "pcm"}"#,
                "/voice",
            ),
            (
                "/tts/bytes",
                r#"{"model_id": "a", "voice": {"id": "b"}, "transcript": "c", "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 16000}}"#,
                "/output_format/sample_rate",
            ),
        ] {
            let answer = ask(address, "POST", path, body).await;
            let told = String::from_utf8(answer.body).expect("text");
            assert_eq!(answer.status, 400, "{path} {body}");
            assert!(told.contains(named) && told.lines().count() == 1, "{told}");
        }
        let counts = until(address, Provider::DeepgramTts, |counts| {
            counts.of("failed") == 5
        })
        .await;
        assert_eq!((counts.of("requests"), counts.of("bad_requests")), (5, 5));
        assert_eq!(
            ask(address, "POST", "/v1/text-to-speech//stream", "{}")
                .await
                .status,
            404
        );
    });
}
