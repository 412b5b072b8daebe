//! One session over one socket, as a caller of the contract has it.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use plimsoll_conformance::socket::{self, Connection, Incoming, Socket};
use plimsoll_protocol::websocket::Opcode;
use serde_json::{Value, json};

use super::audio::must_be_same;
use super::messages::{Complete, Failure, Fields, Message, SttResult};

/// The path of sessions.
pub(super) const PATH: &str = "/ws";

/// How long something that is due at once, or that a mock provider does at once, may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Replies may come in messages of any size.
const MESSAGE_MAX_BYTES: u32 = 64 * 1024 * 1024;

/// A connection as nearly every case has it.
pub(super) fn usual() -> Connection {
    Connection {
        path: PATH.to_owned(),
        message_max_bytes: MESSAGE_MAX_BYTES,
        ..Connection::default()
    }
}

/// The `config` of a session whose providers know it by this model.
pub(super) fn config(model: &str, tts: &str) -> Value {
    json!({
        "type": "config",
        "stt_config": {
            "provider": "deepgram", "language": "en-US", "sample_rate": 16_000, "channels": 1,
            "punctuation": true, "encoding": "linear16", "model": model,
        },
        "tts_config": tts_config(model, tts),
    })
}

/// The part of a `config` that says who speaks.
pub(super) fn tts_config(model: &str, tts: &str) -> Value {
    json!({"provider": tts, "model": model, "audio_format": "linear16", "sample_rate": 24_000})
}

/// The `config` of a session without audio.
pub(super) fn without_audio() -> Value {
    json!({"type": "config", "audio": false})
}

/// A `speak` with the defaults.
pub(super) fn speak(text: &str) -> Value {
    json!({"type": "speak", "text": text})
}

/// A `speak` that queues.
pub(super) fn queued(text: &str) -> Value {
    json!({"type": "speak", "text": text, "flush": false})
}

/// A socket that reads the messages of the contract.
pub(super) struct Session {
    socket: Socket,
    fields: Fields,
}

/// A whole reply.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) audio: Vec<u8>,
    pub(super) complete: Complete,
}

impl Deref for Session {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.socket
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }
}

impl Session {
    pub(super) fn over(socket: Socket, fields: Fields) -> Self {
        Self { socket, fields }
    }

    /// Sends a message of JSON.
    pub(super) fn tell(&mut self, message: &Value) -> Result<(), String> {
        self.say(Opcode::Text, message.to_string().as_bytes())
    }

    /// Sends audio.
    pub(super) fn hear(&mut self, audio: &[u8]) -> Result<(), String> {
        self.say(Opcode::Binary, audio)
    }

    /// Sends `clear`.
    pub(super) fn clear(&mut self) -> Result<(), String> {
        self.tell(&json!({"type": "clear"}))
    }

    /// The next message, or `None` when none comes within `limit`. Pings are answered.
    pub(super) fn message(
        &mut self,
        limit: Duration,
    ) -> Result<Option<(Instant, Message)>, String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.socket.next_within(left)? {
                None => return Ok(None),
                Some((at, Incoming::Text(text))) => {
                    return Message::parse(&text, self.fields).map(|message| Some((at, message)));
                }
                Some((at, Incoming::Binary(audio))) => {
                    return Ok(Some((at, Message::Audio(audio))));
                }
                Some((_, Incoming::Ping(payload))) => self.say(Opcode::Pong, &payload)?,
                Some((_, Incoming::Pong(_))) => {}
                Some((_, end)) => {
                    return Err(format!("{} instead of a message", socket::describe(&end)));
                }
            }
        }
    }

    /// The next message, which must come within `limit`. `what` it should be is for the text of a failure.
    pub(super) fn due(
        &mut self,
        what: &str,
        limit: Duration,
    ) -> Result<(Instant, Message), String> {
        let late = || format!("nothing within {} ms instead of {what}", limit.as_millis());
        let came = self.message(limit);
        let came = came.map_err(|seen| format!("{seen}, which should be {what}"))?;
        came.ok_or_else(late)
    }

    /// Passes when `ready` comes; its stream id.
    pub(super) fn expect_ready(&mut self, limit: Duration) -> Result<(Instant, String), String> {
        match self.due("`ready`", limit)? {
            (at, Message::Ready(ready)) => Ok((at, ready.stream_id)),
            (_, other) => Err(format!("{} instead of `ready`", other.describe())),
        }
    }

    /// Passes when an `error` of this kind comes next.
    pub(super) fn expect_error(
        &mut self,
        kind: &str,
        limit: Duration,
    ) -> Result<(Instant, Failure), String> {
        match self.due(&format!("`error` {kind}"), limit)? {
            (at, Message::Error(failure)) if failure.is(kind) => Ok((at, failure)),
            (_, other) => Err(format!("{} instead of `error` {kind}", other.describe())),
        }
    }

    /// The next message, which must be a result.
    pub(super) fn expect_result(
        &mut self,
        limit: Duration,
    ) -> Result<(Instant, SttResult), String> {
        match self.due("`stt_result`", limit)? {
            (at, Message::Result(result)) => Ok((at, result)),
            (_, other) => Err(format!("{} instead of `stt_result`", other.describe())),
        }
    }

    /// Passes when the next thing is audio.
    pub(super) fn expect_audio(&mut self, limit: Duration) -> Result<(Instant, Vec<u8>), String> {
        match self.due("audio of the reply", limit)? {
            (at, Message::Audio(audio)) => Ok((at, audio)),
            (_, other) => Err(format!("{} instead of audio", other.describe())),
        }
    }

    /// Passes when no message comes within `limit`.
    pub(super) fn expect_quiet(&mut self, limit: Duration) -> Result<(), String> {
        match self.message(limit)? {
            None => Ok(()),
            Some((_, message)) => Err(format!("{}, though nothing was due", message.describe())),
        }
    }

    /// Reads a reply up to its `tts_playback_complete`. `limit` is for each message.
    pub(super) fn reply(&mut self, limit: Duration) -> Result<Heard, String> {
        let mut audio = Vec::new();
        loop {
            let came = self.due("the rest of the reply", limit);
            match came.map_err(|seen| format!("after {} bytes: {seen}", audio.len()))? {
                (_, Message::Audio(part)) => audio.extend(part),
                (_, Message::Complete(complete)) => {
                    return Ok(Heard { audio, complete });
                }
                (_, other) => {
                    return Err(format!(
                        "{} in a reply, after {} bytes",
                        other.describe(),
                        audio.len()
                    ));
                }
            }
        }
    }

    /// Passes when the next reply is exactly this.
    pub(super) fn expect_reply(&mut self, expected: &[u8]) -> Result<Heard, String> {
        let heard = self.reply(PATIENCE)?;
        must_be_same(&heard.audio, expected)?;
        Ok(heard)
    }

    /// The audio that comes until nothing does for a while, or something else; that is the second.
    pub(super) fn audio_until(
        &mut self,
        quiet: Duration,
    ) -> Result<(Vec<u8>, Option<Message>), String> {
        let mut audio = Vec::new();
        loop {
            match self.message(quiet)? {
                None => return Ok((audio, None)),
                Some((_, Message::Audio(part))) => audio.extend(part),
                Some((_, other)) => return Ok((audio, Some(other))),
            }
        }
    }

    /// Passes when the session still goes on: it answers a ping.
    pub(super) fn expect_alive(&mut self) -> Result<(), String> {
        const PAYLOAD: &[u8] = b"still there";
        self.say(Opcode::Ping, PAYLOAD)?;
        self.socket.expect_pong(PAYLOAD)
    }
}
