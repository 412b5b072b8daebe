//! What is made of an answer: its status and its body, and of a reply its blocks.

use plimsoll_core::recorder::Recorder;
use plimsoll_workload_http::outcome::RequestOutcome;
use serde_json::Value;

use super::request::{Asked, Kind};
use crate::caller::{Claim, Heard};
use crate::entry::{count, is_new};
use crate::marks::ReplyMark;
use crate::progress::Progress;
use crate::reply::{Found, ReplyStream};
use crate::turns::Wrong;

/// A longer answer to a GET is wrong, whatever it says.
const BODY_MAX_BYTES: usize = 1 << 20;

/// The answer to one request, as far as it has come.
#[derive(Debug)]
pub(super) struct Answer {
    asked: Asked,
    pub(super) status: u16,
    /// The body of a GET.
    body: Vec<u8>,
    stream: ReplyStream,
    pub(super) reply: Progress,
    /// Whether the block that arrives had not come before.
    block_is_new: bool,
    /// Whether something of a reply was wrong, and is counted.
    pub(super) flawed: bool,
}

impl Answer {
    /// Nothing has come.
    pub(super) fn new(asked: Asked) -> Self {
        Self {
            asked,
            status: 0,
            body: Vec::new(),
            stream: ReplyStream::default(),
            reply: Progress::default(),
            block_is_new: false,
            flawed: false,
        }
    }

    /// The memory that it takes because of what the gateway sent.
    pub(super) fn held_bytes(&self) -> usize {
        self.body.capacity()
    }

    /// A part of the body came.
    pub(super) fn body(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        heard: &mut Heard,
        recorder: &mut Recorder<Claim>,
    ) {
        if self.status != 200 {
            return;
        }
        if self.asked.kind == Kind::Speak {
            return self.audio(bytes, now_ns, heard, recorder);
        }
        // One byte more than it may have shows that it is too long.
        let room = (BODY_MAX_BYTES + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn audio(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        heard: &mut Heard,
        recorder: &mut Recorder<Claim>,
    ) {
        let mut stream = std::mem::take(&mut self.stream);
        stream.received(bytes, |found| match found {
            Found::Begins(mark) => self.block_begins(&mark, now_ns, heard, recorder),
            Found::Complete(mark) => {
                heard.reply_blocks += u64::from(self.block_is_new);
                self.reply.complete(&mark);
            }
            Found::Damaged => {
                let what = "audio with other samples than the provider's";
                self.wrong_content(what, recorder);
            }
            Found::Unmarked => {
                self.wrong_content("audio without a mark of a mock provider", recorder);
            }
        });
        self.stream = stream;
    }

    fn block_begins(
        &mut self,
        mark: &ReplyMark,
        now_ns: u64,
        heard: &mut Heard,
        recorder: &mut Recorder<Claim>,
    ) {
        let asked = &self.asked;
        let begun = if (mark.vu, mark.turn) == (asked.vu, 0) {
            self.reply.begins(mark, asked.at_ns, now_ns)
        } else {
            Err(Wrong::Crossed)
        };
        self.block_is_new = is_new(&begun);
        if self.block_is_new && mark.block == 1 {
            heard.replies += 1;
            heard.replies_provider_ns += mark.handed_ns.saturating_sub(mark.read_ns);
            if mark.blocks != asked.reply_blocks() {
                self.wrong_content("audio of another text", recorder);
            }
        }
        if let Err(wrong) = begun {
            self.flawed = true;
            count(wrong, "audio", recorder);
        }
    }

    fn wrong_content(&mut self, why: &str, recorder: &mut Recorder<Claim>) {
        self.flawed = true;
        recorder.ledger.content_wrong += 1;
        recorder.ledger.because(why);
    }

    /// The answer is complete: whether it is right.
    pub(super) fn judged(&self, tts_provider: &str) -> Result<(), RequestOutcome> {
        let holds = match self.asked.kind {
            _ if self.status != 200 => return Err(RequestOutcome::HttpStatus(self.status)),
            _ if self.body.len() > BODY_MAX_BYTES => false,
            Kind::Root => says_ok(&self.body),
            Kind::Voices => lists_voices(&self.body, tts_provider),
            Kind::Speak => self.reply.whole && !self.flawed,
        };
        holds.then_some(()).ok_or(RequestOutcome::WrongBody)
    }
}

/// Whether a body is `{"status":"OK"}`, however it is written.
fn says_ok(body: &[u8]) -> bool {
    // Nearly all gateways write it so, and nothing need be parsed.
    body == br#"{"status":"OK"}"#
        || serde_json::from_slice::<Value>(body).is_ok_and(|value| value["status"] == "OK")
}

/// Whether a body lists voices as the contract has it: among others those of the provider who speaks, or ElevenLabs', the
/// one provider that lists its own.
fn lists_voices(body: &[u8], tts_provider: &str) -> bool {
    const FIELDS: [&str; 6] = ["id", "name", "language", "gender", "accent", "sample"];
    let Ok(Value::Object(providers)) = serde_json::from_slice(body) else {
        return false;
    };
    let is_voice = |voice: &Value| FIELDS.iter().all(|field| voice[*field].is_string());
    let are_voices = |list: &Value| {
        let list = list.as_array();
        list.is_some_and(|voices| voices.iter().all(is_voice))
    };
    let has_some = |name: &str| {
        let list = providers.get(name).and_then(Value::as_array);
        list.is_some_and(|voices| !voices.is_empty())
    };
    providers.values().all(are_voices) && (has_some(tts_provider) || has_some("elevenlabs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_says_ok_however_it_is_written() {
        for body in [
            r#"{"status":"OK"}"#,
            "{ \"status\": \"OK\", \"more\": 1 }\n",
        ] {
            assert!(says_ok(body.as_bytes()), "{body}");
        }
        for body in ["", "{}", "OK", r#"{"status":"DRAINING"}"#, "[]"] {
            assert!(!says_ok(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn voices_have_the_contracts_shape() {
        let voice = json!({"id": "v", "name": "V", "language": "", "gender": "", "accent": "", "sample": "u"});
        let lists = |list: Value, provider| lists_voices(list.to_string().as_bytes(), provider);
        assert!(lists(json!({"deepgram": [voice]}), "deepgram"));
        assert!(lists(
            json!({"elevenlabs": [voice], "openai": []}),
            "deepgram"
        ));
        assert!(
            !lists(json!({"openai": [voice]}), "deepgram"),
            "others' only"
        );
        assert!(!lists(json!({"deepgram": []}), "deepgram"), "no voice");
        assert!(!lists(json!({"deepgram": [{"id": "v"}]}), "deepgram"));
        assert!(!lists(
            json!({"deepgram": [voice], "openai": 1}),
            "deepgram"
        ));
        assert!(!lists(json!({}), "deepgram"));
        assert!(!lists_voices(b"{", "deepgram"));
    }
}
