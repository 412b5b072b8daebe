//! What a server says in each dialect, one module each: the client's messages in, the session's results out as messages. No I/O.
//!
//! Messages have all fields that the published formats have, so that a client meets what it will meet.

use plimsoll_mock_server::http::Answer;
use plimsoll_mock_server::request::Request;
use serde_json::{Value, json};

use crate::audio::Format;
use crate::scribe::Event;

pub mod assemblyai;
pub mod deepgram;
pub mod moshi;
pub mod openai;
pub mod speechmatics;
pub mod vllm;
pub mod vosk;
pub mod whisperlive;
pub mod wyoming;

/// The close code of a server that cannot go on (RFC 6455, section 7.4.1).
pub const INTERNAL_ERROR: u16 = 1011;
/// The close code of an end as it should be.
pub const NORMAL: u16 = 1000;
/// How certain the mock always is.
const CONFIDENCE: f64 = 0.98;
/// Of everything that has an id, where one is enough.
const ID: &str = "5f6b2e0c-64f1-4d0a-93d5-0b1c9a0e7d11";

/// What came from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A piece of a TCP stream.
    Bytes(&'a [u8]),
}

/// What the client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Hear this: a message of audio, as it came.
    Audio(Vec<u8>),
    /// Make all that was said final.
    Flush,
    /// The same, and then [`Dialect::goodbye`].
    End,
    /// [`Dialect::goodbye`] without what is not final yet.
    Leave,
}

/// A message to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// A text message.
    Text(String),
    /// A binary message, or bytes of a TCP stream.
    Binary(Vec<u8>),
    /// The end of the connection. A TCP stream just ends, and so does a WebSocket without a code.
    Close(Option<u16>, &'static str),
}

/// Messages to the client.
#[derive(Debug, Default)]
pub struct Out(pub Vec<Outgoing>);

impl Out {
    /// A text message.
    pub fn json(&mut self, value: &Value) {
        self.0.push(Outgoing::Text(value.to_string()));
    }

    /// A binary message, or bytes.
    pub fn bytes(&mut self, bytes: Vec<u8>) {
        self.0.push(Outgoing::Binary(bytes));
    }

    /// The end of the connection.
    pub fn close(&mut self, code: u16, reason: &'static str) {
        self.0.push(Outgoing::Close(Some(code), reason));
    }

    /// The end of the connection, without a word.
    pub fn drop_line(&mut self) {
        self.0.push(Outgoing::Close(None, ""));
    }

    /// Whether it ends the connection.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.0
            .iter()
            .any(|outgoing| matches!(outgoing, Outgoing::Close(..)))
    }
}

/// Why a session is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No key, or a wrong one.
    Key,
    /// Too many requests.
    Rate,
    /// The server is full.
    Capacity,
}

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// JSON in text messages.
    Text,
    /// `MessagePack` in binary messages.
    MessagePack,
    /// A line of JSON, then bytes, in a TCP stream.
    Stream,
}

/// A session in one dialect.
pub trait Dialect: std::fmt::Debug + Send {
    /// How messages are written.
    fn framing(&self) -> Framing {
        Framing::Text
    }

    /// The audio of the session. It is asked for at the first message of audio.
    fn format(&self) -> Format {
        Format::USUAL
    }

    /// Whether the client says when an utterance is over.
    fn client_turns(&self) -> bool {
        false
    }

    /// How long the session may be without a message, in ms.
    fn idle_ms(&self) -> Option<u64> {
        None
    }

    /// Nothing came for [`Dialect::idle_ms`].
    fn idle(&mut self, out: &mut Out) {
        out.close(INTERNAL_ERROR, "nothing came");
    }

    /// The session is open.
    fn greeting(&mut self, _out: &mut Out) {}

    /// A message of the client.
    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out);

    /// A result.
    fn tell(&mut self, event: &Event, out: &mut Out);

    /// All is told that was to be told before the end that the client asked for.
    fn goodbye(&mut self, heard_ms: u64, out: &mut Out);

    /// The answer to an upgrade that is refused; `None` if this dialect refuses in the session.
    fn refused(&self, refusal: Refusal) -> Option<Answer>;

    /// Whether a session is refused at its first message, not before.
    fn hears_before_it_refuses(&self) -> bool {
        false
    }

    /// Refuses in the session. `heard` is the text of its first message, if there was one.
    fn refuse(&mut self, _refusal: Refusal, _heard: &str, out: &mut Out) {
        out.drop_line();
    }

    /// An internal error, which ends the session.
    fn fail(&mut self, out: &mut Out) {
        out.close(INTERNAL_ERROR, "failed on demand");
    }
}

/// Where clients of a dialect put their key.
#[derive(Debug, Clone, Copy)]
struct KeyPlaces {
    /// In this header, in lower case, behind one of these words.
    header: &'static str,
    schemes: &'static [&'static str],
    /// In this field of the query.
    query: &'static str,
}

const BEARER: KeyPlaces = KeyPlaces {
    header: "authorization",
    schemes: &["Bearer "],
    query: "",
};

/// The headers that the server looks at.
pub const KEPT_HEADERS: &[&str] = &["authorization", "kyutai-api-key", SUBPROTOCOL];

/// The header of subprotocols that a client offers.
const SUBPROTOCOL: &str = "sec-websocket-protocol";

/// A dialect that a client can ask for.
#[derive(Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Whether a request is for it.
    is_at: fn(&Request) -> bool,
    /// Where its clients put their key; `None` if they have none.
    key: Option<KeyPlaces>,
    /// Begins a session, or says why not.
    open: fn(&Request) -> Result<Box<dyn Dialect>, Answer>,
}

/// All of them.
pub static ALL: [Known; 9] = [
    Known {
        name: "deepgram",
        is_at: |request| request.path == "/v1/listen",
        key: Some(KeyPlaces {
            header: "authorization",
            schemes: &["Token ", "Bearer "],
            query: "token",
        }),
        open: |request| Ok(Box::new(deepgram::Deepgram::open(request)?)),
    },
    Known {
        name: "whisperlive",
        is_at: |_| false,
        key: Some(KeyPlaces {
            query: "token",
            ..BEARER
        }),
        open: |_| Ok(Box::new(whisperlive::WhisperLive::default())),
    },
    Known {
        name: "wyoming",
        is_at: |_| false,
        key: None,
        open: |_| Ok(Box::new(wyoming::Wyoming::default())),
    },
    Known {
        name: "vosk",
        is_at: |_| false,
        key: None,
        open: |_| Ok(Box::new(vosk::Vosk::default())),
    },
    Known {
        name: "openai-realtime",
        is_at: |request| request.path == "/v1/realtime" && request.parameter("intent").is_some(),
        key: Some(BEARER),
        open: |_| Ok(Box::new(openai::Openai::default())),
    },
    Known {
        name: "vllm-realtime",
        is_at: |request| request.path == "/v1/realtime",
        key: Some(BEARER),
        open: |_| Ok(Box::new(vllm::Vllm::default())),
    },
    Known {
        name: "speechmatics",
        is_at: |request| request.path == "/v2" || request.path.starts_with("/v2/"),
        key: Some(KeyPlaces {
            query: "jwt",
            ..BEARER
        }),
        open: |_| Ok(Box::new(speechmatics::Speechmatics::default())),
    },
    Known {
        name: "assemblyai",
        is_at: |request| request.path == "/v3/ws",
        key: Some(KeyPlaces {
            header: "authorization",
            schemes: &[""],
            query: "token",
        }),
        open: |request| Ok(Box::new(assemblyai::AssemblyAi::open(request)?)),
    },
    Known {
        name: "moshi",
        is_at: |request| request.path == "/api/asr-streaming",
        key: Some(KeyPlaces {
            header: "kyutai-api-key",
            schemes: &[""],
            query: "auth_id",
        }),
        open: |_| Ok(Box::new(moshi::Moshi::default())),
    },
];

impl Known {
    /// The dialect with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|known| known.name == name)
    }

    /// The dialect at the path of a request; the path `/` has that which the server was set to.
    #[must_use]
    pub fn at(request: &Request, at_root: &'static Self) -> Option<&'static Self> {
        let found = ALL.iter().find(|known| (known.is_at)(request));
        found.or_else(|| (request.path == "/").then_some(at_root))
    }

    /// Begins a session.
    ///
    /// # Errors
    /// The answer to what cannot be understood.
    pub fn open(&self, request: &Request) -> Result<Box<dyn Dialect>, Answer> {
        (self.open)(request)
    }

    /// Whether the client shows this key, where clients of this dialect do.
    #[must_use]
    pub fn is_shown(&self, key: &str, request: &Request) -> bool {
        let Some(places) = self.key else {
            return true;
        };
        let header = request.header(places.header).unwrap_or_default();
        let in_header = places
            .schemes
            .iter()
            .any(|scheme| header.strip_prefix(scheme) == Some(key));
        let offered = request.header(SUBPROTOCOL).unwrap_or_default();
        let in_subprotocol = offered.split(',').any(|one| one.trim() == key);
        in_header || in_subprotocol || request.parameter(places.query) == Some(key)
    }
}

/// The subprotocol that the server chooses: the first that is offered, which names no key.
#[must_use]
pub fn subprotocol(request: &Request) -> Option<&str> {
    let offered = request.header(SUBPROTOCOL)?;
    offered.split(',').map(str::trim).next()
}

/// Milliseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a session")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

/// A refusal over HTTP, in JSON.
fn refused_with(status: &'static str, body: &Value) -> Answer {
    Answer {
        status,
        content_type: "application/json",
        header: None,
        body: body.to_string().into_bytes(),
    }
}

/// The status of a refusal, where a dialect has no answer of its own.
fn refused_plainly(refusal: Refusal) -> Answer {
    let (status, told) = match refusal {
        Refusal::Key => ("401 Unauthorized", "give a valid key"),
        Refusal::Rate => ("429 Too Many Requests", "too many requests"),
        Refusal::Capacity => ("503 Service Unavailable", "all places are taken"),
    };
    refused_with(status, &json!({"detail": told}))
}

#[cfg(test)]
mod tests {
    use plimsoll_mock_server::request::{Body, Head};
    use proptest::prelude::*;

    use super::*;

    fn request(target: &str, header: &str) -> Request {
        let bytes = format!("GET {target} HTTP/1.1\r\n{header}\r\n\r\n");
        let head = Head::parse(bytes.as_bytes(), KEPT_HEADERS);
        let (_, head) = head.expect("legal").expect("whole");
        let body = Body::of(&head).expect("none");
        head.request(body)
    }

    #[test]
    fn each_path_has_its_dialect() {
        let vosk = Known::by_name("vosk").expect("a dialect");
        for (target, name) in [
            ("/", Some("vosk")),
            ("/v1/listen?model=x", Some("deepgram")),
            ("/v1/realtime?intent=transcription", Some("openai-realtime")),
            ("/v1/realtime", Some("vllm-realtime")),
            ("/v2", Some("speechmatics")),
            ("/v2/en", Some("speechmatics")),
            ("/v3/ws?sample_rate=16000", Some("assemblyai")),
            ("/api/asr-streaming", Some("moshi")),
            ("/v4", None),
        ] {
            let known = Known::at(&request(target, "a: b"), vosk);
            assert_eq!(known.map(|known| known.name), name, "{target}");
        }
    }

    #[test]
    fn a_key_is_shown_where_the_dialect_has_it() {
        for (name, target, header, is_shown) in [
            ("deepgram", "/", "Authorization: Token sesame", true),
            ("deepgram", "/", "Authorization: Bearer sesame", true),
            ("deepgram", "/", "Authorization: sesame", false),
            (
                "deepgram",
                "/",
                "Sec-WebSocket-Protocol: token, sesame",
                true,
            ),
            ("deepgram", "/", "Authorization: Token sesam", false),
            ("speechmatics", "/?jwt=sesame", "a: b", true),
            ("openai-realtime", "/?token=sesame", "a: b", false),
            ("assemblyai", "/", "Authorization: sesame", true),
            ("moshi", "/?auth_id=sesame", "a: b", true),
            ("moshi", "/", "kyutai-api-key: other", false),
            ("vosk", "/", "a: b", true),
        ] {
            let known = Known::by_name(name).expect("a dialect");
            let shown = known.is_shown("sesame", &request(target, header));
            assert_eq!(shown, is_shown, "{name} {target} {header}");
        }
    }

    proptest! {
        /// Whatever a client sends: every session takes it or ends.
        #[test]
        fn nothing_makes_a_dialect_panic(messages in prop::collection::vec(any::<Vec<u8>>(), 0..8), text in ".*") {
            for known in &ALL {
                let encoding = if known.name == "deepgram" { "linear16" } else { "pcm_s16le" };
                let target = format!("/?encoding={encoding}&sample_rate=16000");
                let mut dialect = known.open(&request(&target, "a: b")).expect("a session");
                let (mut asks, mut out) = (Vec::new(), Out::default());
                for message in &messages {
                    dialect.take(Incoming::Binary(message), &mut asks, &mut out);
                    dialect.take(Incoming::Text(&text), &mut asks, &mut out);
                    dialect.tell(&Event::Flushed, &mut out);
                    dialect.tell(&Event::Message { heard_ms: 160 }, &mut out);
                }
                dialect.goodbye(160, &mut out);
            }
        }
    }
}
