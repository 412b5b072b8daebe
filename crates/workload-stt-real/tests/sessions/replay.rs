//! Reads golden sessions and replays them: the client's side must be what the dialect says, the server's side goes to the
//! parser.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plimsoll_workload_stt_real::dialect::{
    self, Dialect, Field, Form, Incoming, Message, Options, Transcription, Turns,
};
use serde_json::{Map, Value, json};

pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets/stt-real/vectors")
}

/// All golden sessions of a dialect, in the order of their names.
pub(crate) fn sessions_of(dialect: &str) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(vectors().join(dialect)) else {
        return Vec::new();
    };
    let paths = folder.map(|entry| entry.unwrap().path());
    let mut sessions: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    sessions.sort();
    sessions
}

fn options_of(about: &Map<String, Value>) -> Options {
    let options = about.get("options").unwrap_or(&Value::Null);
    let params = options["params"].as_object();
    Options {
        params: params
            .into_iter()
            .flatten()
            .map(|(name, value)| Field::new(name, value.as_str().unwrap()))
            .collect(),
        model: options["model"].as_str().map(ToOwned::to_owned),
        turns: match options["turns"].as_str() {
            Some("client") => Turns::Client,
            _ => Turns::Server,
        },
        frame_ms: options["frame_ms"].as_u64(),
        ..Options::default()
    }
}

/// A session as it is replayed.
pub(crate) struct Replay {
    dialect: Box<dyn Dialect>,
    session: Box<dyn Transcription>,
    /// Opening messages that are not yet in the file.
    opening: Vec<Message>,
    written_ns: u64,
    messages: u64,
}

impl Replay {
    pub(crate) fn new(dialect: Box<dyn Dialect>) -> Self {
        let mut opening = dialect.opening(0);
        opening.reverse();
        Self {
            session: dialect.transcription(),
            opening,
            dialect,
            written_ns: 0,
            messages: 0,
        }
    }

    fn audio(&mut self, bytes: u64) {
        let audio = self.dialect.audio();
        let samples = bytes / audio.encoding.sample_bytes() as u64;
        self.written_ns += samples * 1_000_000_000 / u64::from(audio.rate_hz);
        self.messages += 1;
    }

    /// The message that the dialect would send here.
    fn own(&mut self, line: &Map<String, Value>) -> Option<Message> {
        match line.get("act")?.as_str()? {
            "opening" => self.opening.pop(),
            "flush" => self.session.flush(self.written_ns),
            "end" => self.session.end(self.messages, self.written_ns),
            "keep-alive" => self.dialect.keep_alive(),
            act => panic!("unknown act {act}"),
        }
    }

    pub(crate) fn client(&mut self, line: &Map<String, Value>) -> Result<(), String> {
        if let Some(bytes) = line.get("audio_bytes") {
            let count = line.get("messages").and_then(Value::as_u64).unwrap_or(1);
            for _ in 0..count {
                self.audio(bytes.as_u64().unwrap());
            }
            return Ok(());
        }
        if !line.contains_key("act") {
            self.client_of_other_hands(line);
            return Ok(());
        }
        let own = self.own(line).ok_or("the dialect sends nothing here")?;
        if own.form == Form::Text {
            let own: Value = serde_json::from_slice(&own.content).unwrap();
            let text = line["text"].as_str().unwrap();
            let golden: Value = serde_json::from_str(text).unwrap();
            return (own == golden)
                .then_some(())
                .ok_or(format!("the dialect sends {own}"));
        }
        let golden = content_of(line);
        (own.content == golden)
            .then_some(())
            .ok_or(format!("the dialect sends {}", BASE64.encode(&own.content)))
    }

    /// A recording does not name its messages: an end or a flush is told by its content.
    fn client_of_other_hands(&mut self, line: &Map<String, Value>) {
        let content = content_of(line);
        let mut other = self.dialect.transcription();
        let is = |message: Option<Message>| message.is_some_and(|own| own.content == content);
        if is(other.end(self.messages, self.written_ns)) {
            self.session.end(self.messages, self.written_ns);
        } else if is(other.flush(self.written_ns)) {
            self.session.flush(self.written_ns);
        }
    }

    fn events(&mut self, incoming: Incoming<'_>) -> Vec<Value> {
        let mut events = Vec::new();
        let sink = &mut |event: dialect::Event<'_>| events.push(json!(event));
        self.session.parse(incoming, self.written_ns, sink);
        events
    }

    /// The events of a line of the server.
    pub(crate) fn server(&mut self, line: &Map<String, Value>) -> Vec<Value> {
        let reason = line.get("reason").and_then(Value::as_str).unwrap_or("");
        let number = |name: &str| line.get(name)?.as_u64()?.try_into().ok();
        let is_stream = self.dialect.connect().transport == dialect::Transport::Tcp;
        if let Some(status) = number("refused") {
            return self.events(Incoming::Refused { status, reason });
        }
        if line.contains_key("close") {
            let code = number("close");
            return self.events(Incoming::Closed { code, reason });
        }
        if let Some(text) = line.get("text") {
            let text = text.as_str().unwrap();
            return match is_stream {
                true => self.events(Incoming::Bytes(text.as_bytes())),
                false => self.events(Incoming::Text(text)),
            };
        }
        let bytes = BASE64.decode(line["base64"].as_str().unwrap()).unwrap();
        match is_stream {
            true => self.events(Incoming::Bytes(&bytes)),
            false => self.events(Incoming::Binary(&bytes)),
        }
    }
}

/// The payload of a line.
pub(crate) fn content_of(line: &Map<String, Value>) -> Vec<u8> {
    match (line.get("text"), line.get("base64")) {
        (Some(text), _) => text.as_str().unwrap().as_bytes().to_vec(),
        (None, Some(base64)) => BASE64.decode(base64.as_str().unwrap()).unwrap(),
        (None, None) => Vec::new(),
    }
}

/// The lines of a file, without the one that says what it is about; and that one's options.
pub(crate) fn read(path: &Path) -> (Vec<Map<String, Value>>, Options) {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Map<String, Value>> = lines.collect();
    let about = lines.iter().find(|line| line.contains_key("about"));
    let options = options_of(&about.cloned().unwrap_or_default());
    (lines, options)
}

/// The order of fields in a line.
const FIELDS: [&str; 13] = [
    "about",
    "options",
    "dir",
    "ms",
    "act",
    "audio_bytes",
    "messages",
    "refused",
    "close",
    "reason",
    "text",
    "base64",
    "events",
];

fn write(path: &Path, lines: &[Map<String, Value>]) {
    let mut text = String::new();
    for line in lines {
        let fields = FIELDS
            .iter()
            .filter_map(|name| Some((name, line.get(*name)?)));
        let fields: Vec<_> = fields
            .map(|(name, value)| format!("{name:?}:{value}"))
            .collect();
        assert_eq!(
            fields.len(),
            line.len(),
            "{}: an unknown field in {line:?}",
            path.display()
        );
        writeln!(text, "{{{}}}", fields.join(",")).unwrap();
    }
    fs::write(path, text).unwrap();
}

/// Replays one file; what does not fit, one line each.
pub(crate) fn replay(dialect: &str, path: &Path, is_update: bool) -> Vec<String> {
    let (mut lines, options) = read(path);
    let is_real = path.to_string_lossy().contains("/real-");
    let dialect = match dialect::by_name(dialect, &options) {
        // The recorder asks for what the dialect refuses to, to see what the server says.
        Err(_) if is_real => dialect::by_name(dialect, &Options::default()),
        made => made,
    };
    let mut replay = Replay::new(dialect.unwrap());
    let mut wrong = Vec::new();
    let mut last_ms = 0;
    for (index, line) in lines.iter_mut().enumerate() {
        let Some(dir) = line.get("dir").cloned() else {
            continue; // what the session is about
        };
        let place = format!("{}:{}", path.display(), index + 1);
        let ms = line["ms"].as_u64().unwrap();
        assert!(ms >= last_ms, "{place}: time goes back");
        last_ms = ms;
        if dir == "c" {
            let fits = replay.client(line);
            wrong.extend(fits.err().map(|why| format!("{place}: {why}")));
            continue;
        }
        let seen = Value::Array(replay.server(line));
        if is_update {
            line.insert("events".to_owned(), seen);
        } else if line.get("events") != Some(&seen) {
            let why = match line.contains_key("events") {
                true => "",
                false => " (no events yet: PLIMSOLL_UPDATE=1 writes them)",
            };
            wrong.push(format!("{place}: {seen}{why}"));
        }
    }
    if is_update {
        write(path, &lines);
    }
    wrong
}
