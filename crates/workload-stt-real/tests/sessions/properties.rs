//! What must hold of every parser, whatever a server sends.

use plimsoll_workload_stt_real::dialect::{
    self, Dialect, Incoming, Options, Transcription, Transport,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::replay::{content_of, read, sessions_of};

fn of(name: &str) -> Box<dyn Dialect> {
    let options = Options {
        model: Some("m".to_owned()),
        ..Options::default()
    };
    dialect::by_name(name, &options).unwrap()
}

fn is_stream(dialect: &dyn Dialect) -> bool {
    dialect.connect().transport == Transport::Tcp
}

/// What a server sends over a session, as its transport delivers it.
fn feed(
    session: &mut dyn Transcription,
    is_stream: bool,
    is_text: bool,
    content: &[u8],
) -> Vec<Value> {
    let mut events = Vec::new();
    let sink = &mut |event: dialect::Event<'_>| events.push(json!(event));
    let incoming = match std::str::from_utf8(content) {
        _ if is_stream => Incoming::Bytes(content),
        Ok(text) if is_text => Incoming::Text(text),
        _ => Incoming::Binary(content),
    };
    session.parse(incoming, 60_000_000_000, sink);
    events
}

/// The messages of all golden sessions of a dialect, with whether they are text.
fn messages_of(name: &str) -> Vec<(bool, Vec<u8>)> {
    let has_content = |line: &Map<String, Value>| {
        line.get("dir") == Some(&json!("s"))
            && (line.contains_key("text") || line.contains_key("base64"))
    };
    let sessions = sessions_of(name).into_iter();
    let lines = sessions.flat_map(|path| read(&path).0).filter(has_content);
    lines
        .map(|line| (line.contains_key("text"), content_of(&line)))
        .collect()
}

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(dialect::NAMES.to_vec())
}

/// A message that is cut must not pass for a whole one.
#[test]
fn a_message_cut_at_any_place_is_a_fault() {
    for name in dialect::NAMES
        .into_iter()
        .filter(|name| !is_stream(&*of(name)))
    {
        let messages = messages_of(name);
        assert!(messages.len() > 10, "{name}");
        for (is_text, content) in messages {
            let events = feed(&mut *of(name).transcription(), false, is_text, &content);
            if events.iter().any(|event| event["event"] == "fault") {
                continue; // a part of a broken message may be whole
            }
            let whole = std::str::from_utf8(&content);
            let last = content.trim_ascii_end().len();
            for cut in 0..last {
                if is_text && !whole.is_ok_and(|text| text.is_char_boundary(cut)) {
                    continue; // the WebSocket does not let such a text through
                }
                let mut session = of(name).transcription();
                let events = feed(&mut *session, false, is_text, &content[..cut]);
                // Vosk's answers count even if they are broken.
                let mut rest = events.iter().filter(|event| event["event"] != "received");
                let first = rest.next().map(|event| &event["event"]);
                assert_eq!(
                    first,
                    Some(&json!("fault")),
                    "{name}: {:?}",
                    &content[..cut]
                );
                assert_eq!(rest.next(), None, "{name}: {:?}", &content[..cut]);
            }
        }
    }
}

/// The bytes of a golden session of a stream.
fn stream_of(name: &str, session: &str) -> Vec<u8> {
    let path = super::replay::vectors().join(name).join(session);
    let lines = read(&path).0.into_iter();
    let of_server = lines.filter(|line| line.get("dir") == Some(&json!("s")));
    of_server.flat_map(|line| content_of(&line)).collect()
}

/// A stream that is cut waits: what comes before the cut gives the beginning of the events, and the rest the rest.
#[test]
fn a_stream_cut_at_any_place_waits() {
    for session in ["turn.jsonl", "pieces.jsonl", "error.jsonl", "faults.jsonl"] {
        let stream = stream_of("wyoming", session);
        let whole = feed(&mut *of("wyoming").transcription(), true, false, &stream);
        assert!(!whole.is_empty());
        for cut in 0..=stream.len() {
            let mut session = of("wyoming").transcription();
            let mut events = feed(&mut *session, true, false, &stream[..cut]);
            assert!(whole.starts_with(&events), "cut at {cut}");
            events.extend(feed(&mut *session, true, false, &stream[cut..]));
            assert_eq!(events, whole, "cut at {cut}");
        }
    }
}

proptest! {
    #[test]
    fn pieces_of_a_stream_of_any_size_are_the_same_stream(
        session in prop::sample::select(vec!["turn.jsonl", "pieces.jsonl", "faults.jsonl"]),
        sizes in prop::collection::vec(1_usize..60, 1..40),
    ) {
        let stream = stream_of("wyoming", session);
        let whole = feed(&mut *of("wyoming").transcription(), true, false, &stream);
        let mut session = of("wyoming").transcription();
        let (mut events, mut rest) = (Vec::new(), &stream[..]);
        for size in sizes.iter().cycle() {
            let (piece, after) = rest.split_at(rest.len().min(*size));
            events.extend(feed(&mut *session, true, false, piece));
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(events, whole);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(
        name in names(),
        messages in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..100)), 0..8),
    ) {
        let dialect = of(name);
        let mut session = dialect.transcription();
        for (is_text, content) in messages {
            feed(&mut *session, is_stream(&*dialect), is_text, &content);
        }
    }

    /// Golden messages in any order, some of their bytes changed, with ends, flushes and closes between them.
    #[test]
    fn no_session_makes_a_parser_panic(
        name in names(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of((any::<prop::sample::Index>(), any::<u8>())), 0_u8..8), 1..40),
        code in prop::option::of(any::<u16>()),
    ) {
        let dialect = of(name);
        let messages = messages_of(name);
        let mut session = dialect.transcription();
        for (pick, change, act) in picks {
            let (is_text, mut content) = messages[pick.index(messages.len())].clone();
            if let (Some((place, byte)), false) = (change, content.is_empty()) {
                let place = place.index(content.len());
                content[place] = byte;
            }
            match act {
                0 => drop(session.flush(1_000_000)),
                1 => drop(session.end(3, 2_000_000)),
                2 => session.parse(Incoming::Closed { code, reason: "" }, 0, &mut |_| {}),
                _ => drop(feed(&mut *session, is_stream(&*dialect), is_text, &content)),
            }
        }
    }

    #[test]
    fn audio_of_any_length_is_packed(name in names(), frame in prop::collection::vec(any::<u8>(), 0..5000)) {
        let message = of(name).pack(&frame);
        let mut wire = Vec::new();
        message.append_wire([1, 2, 3, 4], &mut wire);
        prop_assert!(wire.len() >= message.content.len());
    }
}
