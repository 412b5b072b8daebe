//! The sums that must come out exactly: what the mocks count is what a gateway saw.

use std::time::Duration;

use plimsoll_providers::config::Config;
use plimsoll_providers::profile::Provider;
use plimsoll_workload_voice::marks::REPLY_BLOCK_BYTES;
use serde_json::json;
use tokio::time::timeout;

use crate::gateway::{
    Answer, Connection, Session, at_once, audio, counts, put_faults, speak, speech, until,
    with_mocks,
};
use crate::speak::SPEAKERS;

/// What a gateway sums up of its answers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    answered: u64,
    provider_ns: u64,
    bytes: u64,
}

impl Seen {
    fn add(&mut self, answer: &Answer) {
        let Some(first) = answer.marks().first().copied() else {
            return;
        };
        self.answered += 1;
        self.provider_ns += first.handed_ns - first.read_ns;
        self.bytes += answer.body.len() as u64;
    }
}

#[test]
fn provider_time_and_bytes_are_what_the_gateway_saw() {
    let config = Config {
        paced: false,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        for provider in SPEAKERS {
            let asked: Vec<_> = (0..10)
                .map(|vu| {
                    tokio::spawn(async move {
                        speak(address, provider, &format!("#{vu}.1 a long text")).await
                    })
                })
                .collect();
            let mut seen = Seen::default();
            for answer in asked {
                seen.add(&answer.await.expect("answered"));
            }
            let counts = until(address, provider, |counts| counts.of("completed") == 10).await;
            let told = Seen {
                answered: counts.of("answered"),
                provider_ns: counts.of("provider_ns"),
                bytes: counts.of("bytes_out"),
            };
            assert_eq!(told, seen, "{provider:?}");
            assert_eq!(counts.of("bytes_accepted"), seen.bytes);
        }
    });
}

/// Whatever goes wrong, each request ends once, and its end is what the gateway saw.
#[test]
fn requests_are_the_sum_of_their_ends_under_every_fault() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, json!({"shares": {"fail": 0.2, "timeout": 0.1, "drop": 0.2, "rate_limit": 0.2, "stall": 0.1}})).await;
        for provider in SPEAKERS {
            let asked: Vec<_> = (0..60)
                .map(|turn| {
                    tokio::spawn(async move {
                        let mut connection = Connection::to(address).await;
                        let (path, body) = speech(provider, &format!("#1.{turn} hello"));
                        timeout(
                            Duration::from_millis(400),
                            connection.ask("POST", path, &body),
                        )
                        .await
                        .ok()
                    })
                })
                .collect();
            counts(address, provider).await.check();
            let mut seen = [0_u64; 5];
            for answer in asked {
                let at = match answer.await.expect("no panic") {
                    // Silence, or a reply that stalled.
                    None => 0,
                    Some(Answer { status: 500, .. }) => 1,
                    Some(Answer { status: 429, .. }) => 2,
                    Some(Answer { whole: false, .. }) => 3,
                    Some(_) => 4,
                };
                seen[at] += 1;
            }
            let counts = until(address, provider, |counts| counts.of("in_flight") == 0).await;
            let silent = counts.of("timed_out") + counts.of("stalled");
            let told = [
                silent,
                counts.of("failed"),
                counts.of("rate_limited"),
                counts.of("dropped"),
                counts.of("completed"),
            ];
            assert_eq!(told, seen, "{provider:?}: {}", counts.0);
            assert_eq!((counts.of("requests"), counts.of("cancelled")), (60, 0));
            assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
        }
    });
}

/// A gateway that stops reading: what the socket took is between what was handed over and what the gateway got.
#[test]
fn what_the_socket_took_is_told_from_what_was_handed_over() {
    with_mocks(at_once(), |address| async move {
        let provider = Provider::DeepgramTts;
        // More than any socket holds.
        let text = format!("#1.1 {}", "x".repeat(20_000));
        let (path, body) = speech(provider, &text);
        let mut connection = Connection::to(address).await;
        connection.begin("POST", path, &body).await;
        let mut some = vec![0; 100_000];
        tokio::io::AsyncReadExt::read_exact(&mut connection.stream, &mut some)
            .await
            .expect("a beginning");
        let mut before = 0;
        // Until it stands still.
        let stuck = loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = counts(address, provider).await;
            if now.of("bytes_out") == before {
                break now;
            }
            before = now.of("bytes_out");
        };
        assert_eq!(stuck.of("in_flight"), 1);
        drop(connection);
        let counts = until(address, provider, |counts| counts.of("cancelled") == 1).await;
        let (out, accepted) = (counts.of("bytes_out"), counts.of("bytes_accepted"));
        assert!(out < 20_005 * 3 * REPLY_BLOCK_BYTES as u64, "not the whole");
        // The gateway got 100,000 bytes, some of them the head and the lengths of chunks.
        assert!((95_000..out).contains(&accepted), "{accepted} of {out}");
        // One chunk at the most was on its way.
        assert!(
            out - accepted <= 16 * REPLY_BLOCK_BYTES as u64,
            "{accepted} of {out}"
        );
    });
}

#[test]
fn what_speech_recognition_took_is_what_the_gateway_saw() {
    with_mocks(Config::default(), |address| async move {
        let provider = Provider::DeepgramStt;
        let mut session = Session::open(address).await.expect("upgraded");
        let (mut finals, mut results, mut provider_ns, mut covered) = (0, 0, 0, 0);
        for utterance in 0..3 {
            let from = utterance * 40 + 1;
            session.send(audio(from..from + 40, from + 10)).await;
            loop {
                let (mark, last) = session.result().await;
                results += 1;
                if last {
                    finals += 1;
                    provider_ns += mark.handed_ns - mark.read_ns;
                    covered += u64::from(mark.to - mark.from + 1);
                    break;
                }
            }
        }
        let counts = until(address, provider, |counts| counts.of("completed") == 3).await;
        let expected = [
            ("requests", 3),
            ("finals", finals),
            ("answered", finals),
            ("results", results),
            ("provider_ns", provider_ns),
            ("blocks_read", 120),
            ("blocks_covered", covered),
            ("in_flight", 0),
        ];
        for (name, count) in expected {
            assert_eq!(counts.of(name), count, "{name}");
        }
        assert_eq!((results, covered), (9, 90));
    });
}

/// A gateway that leaves with an utterance unanswered has cancelled it.
#[test]
fn an_utterance_ends_once_too() {
    with_mocks(Config::default(), |address| async move {
        let mut session = Session::open(address).await.expect("upgraded");
        session.send(audio(1..=20, 5)).await;
        until(address, Provider::DeepgramStt, |counts| {
            counts.of("in_flight") == 1
        })
        .await;
        drop(session);
        let counts = until(address, Provider::DeepgramStt, |counts| {
            counts.of("in_flight") == 0
        })
        .await;
        assert_eq!(
            (
                counts.of("requests"),
                counts.of("cancelled"),
                counts.of("finals")
            ),
            (1, 1, 0)
        );
    });
}
