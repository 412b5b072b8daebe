//! Without a fault, every word is right and at its time, in every dialect.

use plimsoll_workload_stt_real::dialect::{Cursor, Field, Key, KeyPlace, Options, Turns};

use crate::client::{Client, LONG, Seen, dialect_of};
use crate::rig::{Speech, config, in_each_dialect, serve, stats};

/// How far an edge of speech and an edge of a final may lie apart: steps of 10 ms, and times in whole ms.
const NEAR_NS: u64 = 20_000_000;

/// Says all of it, and reads to the end.
pub(crate) fn said(client: &mut Client, speech: &Speech) {
    for frame in &speech.frames {
        client.say(frame);
    }
    client.read();
    client.end();
    client.read_until(LONG, |seen| seen.drained);
}

/// The speech, in ns, that no final covers.
pub(crate) fn uncovered_ns(seen: &Seen, speech: &Speech) -> u64 {
    let said = speech.plan.utterances().iter();
    said.map(|said| {
        let mut at_ns = said.onset_ns + NEAR_NS;
        let (end_ns, mut missing_ns) = (said.end_ns - NEAR_NS, 0);
        let mut spans: Vec<(u64, u64)> = seen
            .finals
            .iter()
            .filter_map(|heard| Some((heard.from_ns?, heard.to_ns?)))
            .collect();
        spans.sort_unstable();
        for (from_ns, to_ns) in spans {
            if to_ns > at_ns && at_ns < end_ns {
                missing_ns += from_ns.min(end_ns).saturating_sub(at_ns);
                at_ns = to_ns;
            }
        }
        missing_ns + end_ns.saturating_sub(at_ns)
    })
    .sum()
}

fn is_clean(seen: &Seen) -> bool {
    seen.faults.is_empty()
        && seen.errors.is_empty()
        && seen.unknown == 0
        && seen.refused.is_none()
        && seen.died.is_none()
}

#[test]
fn every_word_is_right_and_at_its_time() {
    in_each_dialect(|name| {
        let address = serve(config(name, "none"));
        let dialect = dialect_of(name, Options::default());
        let (audio, facts) = (dialect.audio(), dialect.facts());
        let speech = Speech::new(audio, 14, 1);
        assert!(speech.plan.utterances().len() >= 3, "{name}");
        let mut client = Client::open(address, dialect);
        said(&mut client, &speech);
        let seen = &client.seen;
        assert!(is_clean(seen), "{name}: {seen:?}");
        assert_eq!(seen.words(), speech.words(), "{name}");
        assert!(seen.drained, "{name}");
        if facts.cursor != Cursor::Inferred {
            assert_eq!(uncovered_ns(seen, &speech), 0, "{name}: {:?}", seen.finals);
            assert!(seen.cursor_ns <= client.written_ns, "{name}");
        }
        let stats = stats(address);
        assert_eq!(stats["sessions"], 1, "{name}");
        assert_eq!(stats["audio_ms"], client.written_ns / 1_000_000, "{name}");
        // What rings before a clip that is resampled belongs to none.
        let unknown_ms = stats["audio_unknown_ms"].as_u64();
        assert!(unknown_ms < Some(10), "{name}: {unknown_ms:?} ms");
        assert_eq!(stats["words"], speech.words().len(), "{name}");
        assert_eq!(stats["faults"], serde_json::json!({}), "{name}");
    });
}

/// Other formats than a dialect's usual one.
#[test]
fn audio_is_heard_in_each_format() {
    for (name, params) in [
        (
            "deepgram",
            vec![("encoding", "mulaw"), ("sample_rate", "8000")],
        ),
        ("deepgram", vec![("sample_rate", "8000")]),
        ("deepgram", vec![("sample_rate", "24000")]),
        ("whisperlive", vec![("audio_format", "float32")]),
    ] {
        let address = serve(config(name, "none"));
        let options = Options {
            params: params
                .iter()
                .map(|(name, value)| Field::new(*name, *value))
                .collect(),
            ..Options::default()
        };
        let dialect = dialect_of(name, options);
        let speech = Speech::new(dialect.audio(), 9, 3);
        let mut client = Client::open(address, dialect);
        said(&mut client, &speech);
        assert_eq!(client.seen.words(), speech.words(), "{name} {params:?}");
        let unknown_ms = stats(address)["audio_unknown_ms"].as_u64();
        assert!(
            unknown_ms < Some(10),
            "{name} {params:?}: {unknown_ms:?} ms"
        );
    }
}

/// Turns by the client: nothing is final before it asks.
#[test]
fn the_client_may_end_turns() {
    for name in ["deepgram", "openai-realtime", "speechmatics", "assemblyai"] {
        let settings = plimsoll_mock_stt::config::Config {
            // So long that the server ends none itself.
            endpointing_ms: 60_000,
            ..config(name, "none")
        };
        let address = serve(settings);
        let options = Options {
            turns: Turns::Client,
            ..Options::default()
        };
        let dialect = dialect_of(name, options);
        let speech = Speech::new(dialect.audio(), 8, 5);
        let mut client = Client::open(address, dialect);
        for frame in &speech.frames {
            client.say(frame);
        }
        client.read();
        let early = client.seen.words();
        client.flush();
        let count = speech.words().len();
        client.read_until(LONG, |seen| seen.words().len() >= count);
        assert_eq!(client.seen.words(), speech.words(), "{name}");
        assert!(early.len() < client.seen.words().len(), "{name}: {early:?}");
        client.end();
        client.read_until(LONG, |seen| seen.drained);
        assert!(
            client.seen.drained && is_clean(&client.seen),
            "{name}: {:?}",
            client.seen
        );
    }
}

/// A key is taken wherever clients of the dialect put it.
#[test]
fn a_right_key_opens() {
    for (name, places) in [
        (
            "deepgram",
            vec![KeyPlace::Header, KeyPlace::Query, KeyPlace::Subprotocol],
        ),
        ("whisperlive", vec![KeyPlace::Header, KeyPlace::Query]),
        ("openai-realtime", vec![KeyPlace::Header]),
        ("vllm-realtime", vec![KeyPlace::Header]),
        ("speechmatics", vec![KeyPlace::Header]),
        ("assemblyai", vec![KeyPlace::Header, KeyPlace::Query]),
        ("moshi", vec![KeyPlace::Header, KeyPlace::Query]),
    ] {
        let settings = plimsoll_mock_stt::config::Config {
            key: plimsoll_core::secret::Secret::new("sesame"),
            ..config(name, "none")
        };
        let address = serve(settings);
        for place in places {
            let options = Options {
                key: Some(Key {
                    value: plimsoll_core::secret::Secret::new("sesame"),
                    place,
                }),
                ..Options::default()
            };
            let mut client = Client::open(address, dialect_of(name, options));
            client.end();
            client.read();
            assert!(
                client.seen.refused.is_none(),
                "{name} {place:?}: {:?}",
                client.seen
            );
        }
        let count = stats(address)["sessions_refused"].clone();
        assert_eq!(count, 0, "{name}");
    }
}
