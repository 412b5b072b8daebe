//! Requests: what they ask, and their bytes.

use plimsoll_core::session::Endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::script::{Script, Turn};
use crate::wire::{Providers, tts_config};

/// What a request asks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Kind {
    /// Whether the gateway is ready. It asks no provider.
    #[serde(rename = "GET /")]
    Root,
    /// Which voices there are. The gateway keeps the list for 60 s.
    #[serde(rename = "GET /voices")]
    Voices,
    /// A text to be spoken.
    #[serde(rename = "POST /speak")]
    Speak,
}

impl Kind {
    /// Its name in results: `GET /`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "GET /",
            Self::Voices => "GET /voices",
            Self::Speak => "POST /speak",
        }
    }

    /// Whether it may be sent twice: GET may, POST may not.
    pub(crate) fn may_ask_again(self) -> bool {
        self != Self::Speak
    }
}

/// A request that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    /// Who asks, for the mark in a text to be spoken.
    pub(crate) vu: u32,
    /// What its text is drawn from.
    pub(crate) seed: u64,
    pub(crate) at_ns: u64,
    /// Whether it is due in the measured window.
    pub(crate) measured: bool,
}

impl Asked {
    /// The text to be spoken, as the script of this caller has it in its first turn.
    fn script(&self) -> (Script, Turn) {
        let script = Script::new(self.seed, self.vu, 1);
        let turn = script.turn(0);
        (script, turn)
    }

    /// The blocks of a whole reply from a mock provider.
    pub(crate) fn reply_blocks(&self) -> u32 {
        self.script().1.reply_blocks()
    }
}

/// What all requests of a trial have in common.
#[derive(Debug)]
pub(crate) struct Form {
    /// What stands before `/voices` and `/speak`: nothing, unless sessions are below a path.
    prefix: String,
    /// Host, and what the user gave.
    fields: String,
    providers: Providers,
}

impl Form {
    /// Requests to the server whose sessions are at `endpoint`, a path such as `/ws`.
    pub(crate) fn new(endpoint: &Endpoint, providers: &Providers) -> Self {
        let path = endpoint.path.split('?').next().unwrap_or_default();
        let prefix = path.rsplit_once('/').map_or("", |(prefix, _)| prefix);
        let mut fields = format!("Host: {}\r\n", endpoint.host);
        for (name, value) in &endpoint.headers {
            fields.extend([name, ": ", value, "\r\n"]);
        }
        Self {
            prefix: prefix.to_owned(),
            fields,
            providers: providers.clone(),
        }
    }

    /// Who speaks.
    pub(crate) fn tts_provider(&self) -> &str {
        &self.providers.tts
    }

    /// Appends the bytes of a request. After the `last` one on a connection the server is to close it.
    pub(crate) fn append(&self, asked: &Asked, last: bool, out: &mut Vec<u8>) {
        let Self { prefix, fields, .. } = self;
        let close = if last { "Connection: close\r\n" } else { "" };
        let request = match asked.kind {
            Kind::Root => format!("GET {prefix}/ HTTP/1.1\r\n{fields}{close}\r\n"),
            Kind::Voices => format!("GET {prefix}/voices HTTP/1.1\r\n{fields}{close}\r\n"),
            Kind::Speak => {
                let (script, turn) = asked.script();
                let text = script.text(&turn);
                let body = json!({"text": text, "tts_config": tts_config(&self.providers)});
                let body = body.to_string();
                let bytes = body.len();
                format!(
                    "POST {prefix}/speak HTTP/1.1\r\n{fields}{close}Content-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n{body}"
                )
            }
        };
        out.extend_from_slice(request.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::SpeakMark;

    fn form(path: &str) -> Form {
        let endpoint = Endpoint {
            host: "127.0.0.1:3001".to_owned(),
            path: path.to_owned(),
            headers: vec![("Authorization".to_owned(), "Bearer x".to_owned())],
        };
        let providers = Providers {
            stt: "deepgram".to_owned(),
            tts: "openai".to_owned(),
        };
        Form::new(&endpoint, &providers)
    }

    fn bytes(path: &str, kind: Kind, last: bool) -> String {
        let asked = Asked {
            kind,
            vu: 7,
            seed: 1,
            at_ns: 0,
            measured: true,
        };
        let mut out = Vec::new();
        form(path).append(&asked, last, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_get_has_a_host_what_the_user_gave_and_nothing_else() {
        let fields = "Host: 127.0.0.1:3001\r\nAuthorization: Bearer x\r\n";
        assert_eq!(
            bytes("/ws", Kind::Root, false),
            format!("GET / HTTP/1.1\r\n{fields}\r\n")
        );
        assert_eq!(
            bytes("/ws", Kind::Voices, true),
            format!("GET /voices HTTP/1.1\r\n{fields}Connection: close\r\n\r\n")
        );
    }

    /// A gateway behind a proxy has all its paths below one.
    #[test]
    fn paths_are_beside_that_of_sessions() {
        for (path, start) in [
            ("/", "GET /voices "),
            ("/gateway/ws?token=x", "GET /gateway/voices "),
            ("/gateway/", "GET /gateway/voices "),
        ] {
            assert!(
                bytes(path, Kind::Voices, false).starts_with(start),
                "{path}"
            );
        }
    }

    #[test]
    fn a_text_begins_with_its_mark_and_has_its_length() {
        let request = bytes("/ws", Kind::Speak, false);
        let (head, body) = request.split_once("\r\n\r\n").expect("a body");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let text = body["text"].as_str().expect("a text");
        assert_eq!(SpeakMark::read(text), Some(SpeakMark { vu: 7, turn: 0 }));
        assert!((35..=65).contains(&text.len()), "{text}");
        assert_eq!(body["tts_config"]["provider"], "openai");
    }
}
