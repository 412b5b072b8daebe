//! Each fault is told in every dialect in which a client can see it, and counted.

use std::time::{Duration, Instant};

use plimsoll_workload_stt_real::dialect::{Fault, Kind, Options};

use crate::client::{Client, dialect_of};
use crate::honest::{said, uncovered_ns};
use crate::rig::{Speech, config, in_each_dialect, serve, stats};

/// A session of a mock with this fault.
fn session(name: &str, fault: &str) -> (Client, Speech, std::net::SocketAddr) {
    let address = serve(config(name, fault));
    let (client, speech) = another(name, address, 1);
    (client, speech, address)
}

fn another(name: &str, address: std::net::SocketAddr, seed: u64) -> (Client, Speech) {
    let dialect = dialect_of(name, Options::default());
    let speech = Speech::new(dialect.audio(), 10, seed);
    let mut client = Client::open(address, dialect);
    said(&mut client, &speech);
    (client, speech)
}

fn assert_told(address: std::net::SocketAddr, name: &str, fault: &str) {
    let stats = stats(address);
    assert!(
        stats["faults"][fault].as_u64() >= Some(1),
        "{name} {fault}: {stats}"
    );
}

#[test]
fn a_lost_word_is_not_there() {
    in_each_dialect(|name| {
        let (client, speech, address) = session(name, "lost-word");
        let expected: Vec<&str> = speech
            .words()
            .into_iter()
            .enumerate()
            .filter(|(number, _)| number % 4 != 2)
            .map(|(_, word)| word)
            .collect();
        assert_eq!(client.seen.words(), expected, "{name}");
        assert_told(address, name, "lost-word");
    });
}

#[test]
fn a_lost_second_is_in_no_final() {
    in_each_dialect(|name| {
        let (client, speech, address) = session(name, "lost-second");
        let words = client.seen.words();
        assert!(
            words.len() + 3 < speech.words().len() && !words.is_empty(),
            "{name}: {words:?}"
        );
        // Where finals have their times from the server.
        if [
            "deepgram",
            "whisperlive",
            "speechmatics",
            "assemblyai",
            "moshi",
        ]
        .contains(&name)
        {
            let each_ns =
                uncovered_ns(&client.seen, &speech) / speech.plan.utterances().len() as u64;
            assert!(each_ns > 800_000_000, "{name}: {each_ns}");
        }
        assert_told(address, name, "lost-second");
    });
}

#[test]
fn a_doubled_final_comes_twice() {
    in_each_dialect(|name| {
        let (client, speech, address) = session(name, "doubled-final");
        assert_eq!(
            client.seen.words().len(),
            2 * speech.words().len(),
            "{name}: {:?}",
            client.seen.finals
        );
        assert_told(address, name, "doubled-final");
    });
}

#[test]
fn a_final_may_end_after_the_audio() {
    in_each_dialect(|name| {
        let (client, _, address) = session(name, "beyond-audio");
        let ends = client
            .seen
            .finals
            .iter()
            .filter_map(|heard| heard.words_to_ns.max(heard.to_ns));
        let latest_ns = ends.max().unwrap_or_default();
        // A whole turn ends with its connection, and text without times ends nowhere.
        if !["wyoming", "vllm-realtime"].contains(&name) {
            assert!(
                latest_ns > client.written_ns + 5_000_000_000,
                "{name}: {:?}",
                client.seen.finals
            );
        }
        assert_told(address, name, "beyond-audio");
    });
}

#[test]
fn a_session_may_have_the_text_of_another() {
    in_each_dialect(|name| {
        let (first, speech, address) = session(name, "crosstalk");
        assert_eq!(
            first.seen.words(),
            speech.words(),
            "{name}: there is no other yet"
        );
        let (second, own) = another(name, address, 8);
        let words = second.seen.words();
        assert_ne!(words, own.words(), "{name}");
        assert!(
            words
                .iter()
                .all(|word| speech.words().contains(&word.as_str())),
            "{name}: {words:?}"
        );
        assert_told(address, name, "crosstalk");
    });
}

#[test]
fn a_silent_session_has_no_words() {
    in_each_dialect(|name| {
        let (client, _, address) = session(name, "silent");
        assert!(
            client.seen.words().is_empty() && client.seen.interims == 0,
            "{name}: {:?}",
            client.seen
        );
        assert!(
            client.seen.faults.is_empty() && client.seen.drained,
            "{name}: {:?}",
            client.seen
        );
        assert_told(address, name, "silent");
    });
}

#[test]
fn words_are_wrong_where_many_sessions_are_open() {
    for (loaded_sessions, wrong) in [(1, true), (2, false)] {
        in_each_dialect(|name| {
            let settings = plimsoll_mock_stt::config::Config {
                loaded_sessions,
                ..config(name, "wrong-words")
            };
            let (client, speech) = another(name, serve(settings), 1);
            let words = client.seen.words();
            let count = words.iter().filter(|word| *word == "marmalade").count();
            let expected = if wrong { speech.words().len() / 2 } else { 0 };
            assert_eq!(
                (count, words.len()),
                (expected, speech.words().len()),
                "{name}"
            );
        });
    }
}

/// A tenth of the audio's time: a second after ten.
#[test]
fn lag_may_grow() {
    for name in ["deepgram", "vosk", "moshi"] {
        let address = serve(config(name, "growing-lag"));
        let dialect = dialect_of(name, Options::default());
        let speech = Speech::new(dialect.audio(), 10, 1);
        let mut client = Client::open(address, dialect);
        let began = Instant::now();
        speech.frames.iter().for_each(|frame| client.say(frame));
        let count = speech.words().len();
        client.read_until(Duration::from_secs(3), |seen| seen.words().len() >= count);
        let took = began.elapsed();
        assert!((800..2_500).contains(&took.as_millis()), "{name}: {took:?}");
        assert_told(address, name, "growing-lag");
    }
}

#[test]
fn a_stalled_session_says_nothing_more() {
    in_each_dialect(|name| {
        let (client, speech, address) = session(name, "stall");
        assert!(client.seen.words().len() < speech.words().len(), "{name}");
        assert!(
            !client.seen.drained && !client.seen.closed,
            "{name}: {:?}",
            client.seen
        );
        assert_told(address, name, "stall");
    });
}

#[test]
fn a_session_may_be_closed() {
    in_each_dialect(|name| {
        let (client, _, address) = session(name, "close");
        let seen = &client.seen;
        assert!(seen.closed && !seen.drained, "{name}: {seen:?}");
        assert!(
            !seen.errors.is_empty() || seen.died.is_some(),
            "{name}: {seen:?}"
        );
        assert_told(address, name, "close");
    });
}

#[test]
fn a_broken_message_is_a_fault_of_the_protocol() {
    in_each_dialect(|name| {
        let (client, speech, address) = session(name, "bad-json");
        let faults = &client.seen.faults;
        let expected = if name == "moshi" {
            Fault::MessagePack
        } else {
            Fault::Json
        };
        assert!(faults.contains(&expected), "{name}: {faults:?}");
        // The session goes on.
        assert_eq!(client.seen.words(), speech.words(), "{name}");
        assert_told(address, name, "bad-json");
    });
}

#[test]
fn a_message_may_be_too_long() {
    in_each_dialect(|name| {
        let (client, _, address) = session(name, "huge-message");
        let seen = &client.seen;
        let is_seen = if name == "wyoming" {
            seen.faults.contains(&Fault::Framing)
        } else {
            seen.died
                .as_ref()
                .is_some_and(|why| why.contains("too long"))
        };
        assert!(is_seen, "{name}: {:?} {:?}", seen.died, seen.faults);
        assert_told(address, name, "huge-message");
    });
}

#[test]
fn the_end_may_never_come() {
    in_each_dialect(|name| {
        let (client, _, address) = session(name, "no-end");
        let seen = &client.seen;
        // A whole turn has its transcript before it ends.
        assert_eq!(seen.drained, name == "wyoming", "{name}");
        assert!(!seen.closed, "{name}: {seen:?}");
        assert_told(address, name, "no-end");
    });
}

#[test]
fn a_fault_is_that_of_a_share_of_sessions() {
    let address = serve(config("deepgram", "401:0.5"));
    let refused = (0..20).filter(|_| {
        let client = Client::open(address, dialect_of("deepgram", Options::default()));
        client.seen.refused == Some(Kind::Auth)
    });
    let refused = refused.count();
    assert!((4..=16).contains(&refused), "{refused} of 20");
    assert_eq!(stats(address)["sessions_refused"], refused);
}
