//! A gateway with providers in it that take no time, without I/O: what calibrations and tests talk to.
//!
//! A reply goes out at the pace of the caller's own audio: a block for each block that comes. So it needs no clock.

use plimsoll_core::speaker::{After, Speaker};
use plimsoll_protocol::server::{ClientFrames, Upgraded};
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use serde_json::{Value, json};

use crate::marks::{CALLER_BLOCK_BYTES, CallerMark, ReplyMark, SpeakMark, TranscriptMark};
use crate::script::BLOCKS_PER_CHAR;

/// What it does wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// No text is spoken.
    NeverSpeaks,
    /// A reply goes to another caller.
    AnswersAnother,
    /// Every block of a reply comes twice.
    SpeaksTwice,
    /// An interrupted reply goes on.
    GoesOnAfterClear,
    /// A text is answered with an error.
    FailsReplies,
    /// A reply comes at once, faster than it is played.
    SpeaksAtOnce,
}

/// One session.
#[derive(Debug, Default)]
pub struct Toy {
    frames: ClientFrames,
    fault: Fault,
    /// Where the utterance began.
    from: Option<u32>,
    /// What is left of a reply, the next block last.
    rest: Vec<ReplyMark>,
}

impl Toy {
    /// A session with this fault, behind the upgrade.
    #[must_use]
    pub fn upgraded(fault: Fault) -> Upgraded<Self> {
        Upgraded::new(Self {
            fault,
            ..Self::default()
        })
    }

    fn text(&mut self, text: &[u8], out: &mut Vec<u8>) -> After {
        let message: Value = serde_json::from_slice(text).unwrap_or_default();
        match message["type"].as_str() {
            Some("config") => say(
                out,
                &json!({"type": "ready", "stream_id": message["stream_id"]}),
            ),
            Some("speak") => self.speak(message["text"].as_str().unwrap_or_default(), out),
            Some("clear") if self.fault == Fault::GoesOnAfterClear => {}
            Some("clear") => self.rest.clear(),
            _ => return After::Close,
        }
        After::GoOn
    }

    fn speak(&mut self, text: &str, out: &mut Vec<u8>) {
        let Some(SpeakMark { vu, turn }) = SpeakMark::read(text) else {
            return;
        };
        let vu = match self.fault {
            Fault::NeverSpeaks => return,
            Fault::FailsReplies => {
                let error = json!({"type": "error", "message": "no", "kind": "tts_failed"});
                return say(out, &error);
            }
            Fault::AnswersAnother => vu + 1,
            Fault::None | Fault::SpeaksTwice | Fault::GoesOnAfterClear | Fault::SpeaksAtOnce => vu,
        };
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX / BLOCKS_PER_CHAR);
        let blocks = chars * BLOCKS_PER_CHAR;
        let times = if self.fault == Fault::SpeaksTwice {
            2
        } else {
            1
        };
        let mark = |block| ReplyMark {
            vu,
            turn,
            request: 1,
            block,
            blocks,
            read_ns: 1_000,
            handed_ns: 1_000,
        };
        let all = (1..=blocks).flat_map(|block| std::iter::repeat_n(mark(block), times));
        self.rest = all.collect();
        self.rest.reverse();
        while self.fault == Fault::SpeaksAtOnce && self.say_block(out) {}
    }

    /// Says the next block of the reply; whether there was one.
    fn say_block(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mark) = self.rest.pop() else {
            return false;
        };
        let mut block = Vec::new();
        mark.append_block(&mut block);
        RawFrame::server(Opcode::Binary, &block).append_to(out);
        true
    }

    fn audio(&mut self, audio: &[u8], out: &mut Vec<u8>) {
        for block in audio.chunks(CALLER_BLOCK_BYTES) {
            self.say_block(out);
            // A bare loop's audio has no marks.
            if let Some(mark) = CallerMark::read(block) {
                self.heard_block(mark, out);
            }
        }
    }

    fn heard_block(&mut self, mark: CallerMark, out: &mut Vec<u8>) {
        if mark.speech {
            self.from.get_or_insert(mark.block);
        }
        if !mark.last {
            return;
        }
        let transcript = TranscriptMark {
            vu: mark.vu,
            from: self.from.take().unwrap_or(mark.block),
            to: mark.block,
            read_ns: 5,
            handed_ns: 5,
        };
        say(
            out,
            &json!({
                "type": "stt_result", "transcript": format!("{transcript}hello"), "is_final": true,
                "is_speech_final": true, "confidence": 0.9,
            }),
        );
    }
}

fn say(out: &mut Vec<u8>, message: &Value) {
    RawFrame::server(Opcode::Text, message.to_string().as_bytes()).append_to(out);
}

impl Speaker for Toy {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let mut frames = std::mem::take(&mut self.frames);
        let after = frames.take(bytes, |frame| match frame.opcode {
            Opcode::Text => self.text(frame.unmasked(), out),
            Opcode::Binary => {
                self.audio(frame.unmasked(), out);
                After::GoOn
            }
            _ => After::Close,
        });
        self.frames = frames;
        after
    }
}
