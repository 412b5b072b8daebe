//! The golden messages, which every gateway's own tests read, too.

use serde::Deserialize;
use serde_json::json;

/// One message of a client, and what comes back.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Vector {
    pub(super) id: String,
    pub(super) when: When,
    text: Option<String>,
    binary_bytes: Option<usize>,
    speak_text_bytes: Option<usize>,
    text_bytes: Option<usize>,
    /// `ready`, or the kind of the `error`; nothing comes back where there is none.
    pub(super) kind: Option<String>,
    /// The code of the close frame.
    pub(super) close: Option<u16>,
}

/// What was said before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum When {
    First,
    Ready,
    WithoutAudio,
}

/// A message of a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    Text(String),
    Binary(usize),
    /// A text of which only the length is declared.
    Declared(usize),
}

/// All of them.
pub(super) fn all() -> Result<Vec<Vector>, String> {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<Vector>,
    }
    let text = include_str!("../../../../targets/voice/vectors/messages.json");
    let file: Result<File, _> = serde_json::from_str(text);
    file.map(|file| file.cases)
        .map_err(|error| format!("the golden messages: {error}"))
}

impl Vector {
    /// What the client says.
    pub(super) fn said(&self) -> Result<Said, String> {
        match (
            &self.text,
            self.binary_bytes,
            self.speak_text_bytes,
            self.text_bytes,
        ) {
            (Some(text), ..) => Ok(Said::Text(text.clone())),
            (_, Some(bytes), ..) => Ok(Said::Binary(bytes)),
            (_, _, Some(bytes), _) => {
                let speak = json!({"type": "speak", "text": "x".repeat(bytes)});
                Ok(Said::Text(speak.to_string()))
            }
            (.., Some(bytes)) => Ok(Said::Declared(bytes)),
            _ => Err(format!("the golden message {} has no message", self.id)),
        }
    }

    /// Whether it is a `config`, right or wrong.
    pub(super) fn is_config(&self) -> bool {
        let text = self.text.as_deref();
        let read = text.and_then(|text| serde_json::from_str(text).ok());
        let read: serde_json::Value = read.unwrap_or_default();
        read["type"] == "config"
    }

    /// The kind, or nothing.
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }
}
