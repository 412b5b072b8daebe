//! Golden sessions (`targets/stt-real/vectors`): the mock hears the client's side of each, and its messages must have the fields that
//! those of the session have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use plimsoll_workload_stt_real::dialect::{Field, Options, Turns};
use serde_json::Value;

use crate::client::{Client, LONG, Raw, dialect_of};
use crate::rig::{Speech, config, serve};

const VECTORS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../targets/stt-real/vectors"
);

/// Dialect, name, parameters that ask for all that the server can say, and the fault that the session shows.
type Session = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// Golden sessions in which a server does what it should, or refuses.
const SESSIONS: [Session; 24] = [
    (
        "deepgram",
        "captions",
        &[("vad_events", "true"), ("utterance_end_ms", "1000")],
        "none",
    ),
    ("deepgram", "turns", &[("utterance_end_ms", "1000")], "none"),
    ("whisperlive", "captions", &[], "none"),
    ("whisperlive", "window", &[], "none"),
    ("whisperlive", "full", &[], "capacity"),
    ("wyoming", "turn", &[], "none"),
    ("wyoming", "error", &[], "capacity"),
    (
        "wyoming",
        "real-wyoming-faster-whisper-3.8.1-turn",
        &[],
        "none",
    ),
    (
        "whisperlive",
        "real-whisper-live-0.10.0-captions",
        &[],
        "none",
    ),
    (
        "whisperlive",
        "real-whisper-live-0.10.0-full",
        &[],
        "capacity",
    ),
    ("vosk", "real-pocketsphinx-5.1.1-captions", &[], "none"),
    ("vosk", "captions", &[], "none"),
    ("openai-realtime", "captions", &[], "none"),
    ("openai-realtime", "turns", &[], "none"),
    ("vllm-realtime", "captions", &[], "none"),
    (
        "speechmatics",
        "captions",
        &[(
            "transcription_config.conversation_config.end_of_utterance_silence_trigger",
            "0.3",
        )],
        "none",
    ),
    ("speechmatics", "turns", &[], "none"),
    ("speechmatics", "full", &[], "429"),
    ("speechmatics", "bad-key", &[], "401"),
    (
        "assemblyai",
        "captions",
        &[("format_turns", "true")],
        "none",
    ),
    ("assemblyai", "full", &[], "capacity"),
    ("assemblyai", "bad-key", &[], "401"),
    ("moshi", "captions", &[], "none"),
    ("moshi", "full", &[], "capacity"),
];

/// Messages of golden sessions that the mock never sends.
const NEVER: [(&str, &str); 5] = [
    // Servers of other hands greet like that.
    ("deepgram", "Warning"),
    // Unknown on purpose.
    ("deepgram", "TurnInfo"),
    // The client tells it the language.
    ("whisperlive", "language"),
    // Limits that it does not have, in session `turns`.
    ("speechmatics", "Warning"),
    ("speechmatics", "Error"),
];

/// The paths of the fields of a message: `channel.alternatives[].words[].word`.
fn paths(value: &Value, at: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                // The id of a model is the name of a field.
                let name = if name.len() == 36 { "ID" } else { name };
                let path = format!("{at}.{name}");
                all.insert(path.clone());
                paths(value, &path, all);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| paths(item, &format!("{at}[]"), all)),
        _ => {}
    }
}

/// What kind of message it is.
fn kind(dialect: &str, message: &Value) -> String {
    let named = match dialect {
        "speechmatics" => &message["message"],
        _ => &message["type"],
    };
    match named.as_str() {
        Some(name) => name.to_owned(),
        // Known by its fields alone.
        None => {
            let known = [
                "segments",
                "status",
                "language",
                "message",
                "alternatives",
                "partial",
                "text",
            ];
            let found = known.into_iter().find(|name| message.get(name).is_some());
            found.unwrap_or("?").to_owned()
        }
    }
}

type Shapes = BTreeMap<String, BTreeSet<String>>;

fn note(dialect: &str, message: &Value, shapes: &mut Shapes) {
    let all = shapes.entry(kind(dialect, message)).or_default();
    paths(message, "", all);
}

/// The messages of a Wyoming stream: a line, and the data behind it.
fn of_stream(bytes: &[u8]) -> Vec<Value> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let mut message: Value = serde_json::from_slice(&rest[..end]).expect("a header");
        let length = usize::try_from(message["data_length"].as_u64().unwrap_or(0)).expect("short");
        let data = &rest[end + 1..end + 1 + length];
        if length > 0 {
            message["data"] = serde_json::from_slice(data).expect("data");
        }
        rest = &rest[end + 1 + length..];
        all.push(message);
    }
    all
}

fn decoded(dialect: &str, raw: &Raw) -> Vec<Value> {
    match raw {
        Raw::Text(text) if dialect == "wyoming" => of_stream(text.as_bytes()),
        Raw::Text(text) => vec![serde_json::from_str(text).expect("JSON")],
        Raw::Bytes(bytes) if dialect == "wyoming" => of_stream(bytes),
        Raw::Bytes(bytes) => vec![rmp_serde::from_slice(bytes).expect("MessagePack")],
    }
}

/// A line of a golden session.
fn lines(dialect: &str, session: &str) -> Vec<Value> {
    let path = Path::new(VECTORS)
        .join(dialect)
        .join(format!("{session}.jsonl"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn options(about: &Value, more: &[(&str, &str)]) -> Options {
    let options = &about["options"];
    let own = options["params"].as_object().into_iter().flatten();
    let own = own.map(|(name, value)| Field::new(name, value.as_str().expect("text")));
    Options {
        params: own
            .chain(more.iter().map(|(name, value)| Field::new(*name, *value)))
            .collect(),
        model: options["model"].as_str().map(ToOwned::to_owned),
        turns: match options["turns"].as_str() {
            Some("client") => Turns::Client,
            _ => Turns::Server,
        },
        ..Options::default()
    }
}

/// What the server of the golden session says.
fn golden(dialect: &str, lines: &[Value]) -> Shapes {
    use base64::Engine as _;
    let mut shapes = Shapes::new();
    for line in lines.iter().filter(|line| line["dir"] == "s") {
        // Broken messages are there to be refused.
        let events = line["events"].as_array().into_iter().flatten();
        if events.into_iter().any(|event| event["event"] == "fault") {
            continue;
        }
        let raw = match (line["text"].as_str(), line["base64"].as_str()) {
            (Some(text), _) => Raw::Text(text.to_owned()),
            (_, Some(base64)) => {
                let engine = base64::engine::general_purpose::STANDARD;
                Raw::Bytes(engine.decode(base64).expect("base64"))
            }
            _ => continue,
        };
        for message in decoded(dialect, &raw) {
            note(dialect, &message, &mut shapes);
        }
    }
    shapes
}

/// What the mock says to the client of the golden session, with four times its audio, so that something is said in it, and silence before
/// the end.
fn mocked(dialect: &str, lines: &[Value], more: &[(&str, &str)], fault: &str) -> Shapes {
    let address = serve(config(dialect, fault));
    let mut client = Client::open(address, dialect_of(dialect, options(&lines[0], more)));
    let speech = Speech::new(client.dialect.audio(), 60, 2);
    let silence = vec![0; client.dialect.audio().frame_bytes()];
    let mut frames = speech.frames.iter().cycle();
    let mut spoken = false;
    for line in lines.iter().filter(|line| line["dir"] == "c") {
        // Recordings of other clients do not say what a message is. After the audio it is the end.
        let act = line["act"].as_str().or(spoken.then_some("end"));
        match act {
            _ if line["audio_bytes"].is_u64() => {
                let count = 4 * line["messages"].as_u64().unwrap_or(1);
                (0..count).for_each(|_| client.say(frames.next().expect("endless")));
                spoken = true;
            }
            Some("flush") => client.flush(),
            Some("end") => {
                (0..20).for_each(|_| client.say(&silence));
                client.read();
                client.end();
            }
            _ => {}
        }
    }
    client.read_until(LONG, |seen| seen.drained);
    let mut shapes = Shapes::new();
    let mut stream = Vec::new();
    for raw in &client.seen.raw {
        match raw {
            Raw::Bytes(bytes) if dialect == "wyoming" => stream.extend_from_slice(bytes),
            raw => decoded(dialect, raw)
                .iter()
                .for_each(|message| note(dialect, message, &mut shapes)),
        }
    }
    of_stream(&stream)
        .iter()
        .for_each(|message| note(dialect, message, &mut shapes));
    shapes
}

/// What the mock does not say as the golden session does, and messages that it never sends.
fn compare(session: &Session, wrong: &mut Vec<String>, never: &mut BTreeSet<(&str, String)>) {
    let &(dialect, name, more, fault) = session;
    let lines = lines(dialect, name);
    let (golden, mocked) = (
        golden(dialect, &lines),
        mocked(dialect, &lines, more, fault),
    );
    for (kind, fields) in &golden {
        match mocked.get(kind) {
            None if NEVER.contains(&(dialect, kind.as_str())) => {
                never.insert((dialect, kind.clone()));
            }
            None => wrong.push(format!(
                "{dialect}/{name}: no {kind}, but {:?}",
                mocked.keys()
            )),
            Some(own) => {
                let missing: Vec<_> = fields.difference(own).collect();
                if !missing.is_empty() {
                    wrong.push(format!("{dialect}/{name}: {kind} lacks {missing:?}"));
                }
            }
        }
    }
}

#[test]
fn messages_have_the_fields_of_the_published_formats() {
    let found = Mutex::new((Vec::new(), BTreeSet::new()));
    std::thread::scope(|scope| {
        for session in &SESSIONS {
            let found = &found;
            scope.spawn(move || {
                let (mut wrong, mut never) = (Vec::new(), BTreeSet::new());
                compare(session, &mut wrong, &mut never);
                let mut found = found.lock().expect("no panic under the lock");
                found.0.extend(wrong);
                found.1.extend(never);
            });
        }
    });
    let (wrong, never) = found.into_inner().expect("no panic under the lock");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        never.len(),
        NEVER.len(),
        "what is listed and sent: {never:?}"
    );
}
