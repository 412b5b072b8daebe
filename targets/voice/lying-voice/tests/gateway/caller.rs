//! A caller: its session, what it says and what it hears.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use lying_voice::marks::{CALLER_BLOCK_BYTES, CallerMark, REPLY_BLOCK_BYTES, REPLY_MARK_BYTES, ReplyMark};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

use super::mocks::SAMPLE;
use super::program::{Gateway, PATIENCE};

/// What a gateway says.
#[derive(Debug)]
pub(crate) enum Heard {
    Text(Value),
    Audio(Vec<u8>),
    /// The connection ended, with this code if it was closed.
    End(Option<u16>),
}

pub(crate) struct Caller {
    pub(crate) socket: WebSocket<TcpStream>,
    number: u32,
    blocks: u32,
}

/// Audio until the last word about it.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) bytes: Vec<u8>,
    /// When each message came.
    pub(crate) came: Vec<Instant>,
    pub(crate) last_word: Value,
}

impl Played {
    /// The number of each block.
    pub(crate) fn blocks(&self) -> Vec<u32> {
        self.marks().iter().map(|mark| mark.block).collect()
    }

    pub(crate) fn marks(&self) -> Vec<ReplyMark> {
        let blocks = self.bytes.chunks(REPLY_BLOCK_BYTES);
        blocks.map(|block| ReplyMark::read(block).expect("a mark")).collect()
    }

    /// The number of each block whose samples are not the provider's.
    pub(crate) fn changed(&self) -> Vec<u32> {
        let blocks = self.bytes.chunks(REPLY_BLOCK_BYTES);
        let changed = blocks.filter(|block| block[REPLY_MARK_BYTES..].iter().any(|byte| *byte != SAMPLE));
        changed.map(|block| ReplyMark::read(block).expect("a mark").block).collect()
    }
}

pub(crate) fn config(tts: &str) -> Value {
    json!({
        "type": "config", "stream_id": "call",
        "stt_config": {
            "provider": "deepgram", "language": "en-US", "sample_rate": 16_000, "channels": 1,
            "punctuation": true, "encoding": "linear16", "model": "nova-3",
        },
        "tts_config": {"provider": tts, "model": "aura-2"},
    })
}

impl Caller {
    /// An upgrade, and nothing said.
    pub(crate) fn connect(gateway: &Gateway, number: u32) -> Self {
        let address = format!("ws://127.0.0.1:{}/ws", gateway.port);
        let (socket, _) = tokio_tungstenite::tungstenite::client(address, gateway.connect()).expect("a 101");
        Self { socket, number, blocks: 0 }
    }

    /// A session that is ready.
    pub(crate) fn start(gateway: &Gateway, number: u32) -> Self {
        let mut caller = Self::connect(gateway, number);
        caller.send(&config("deepgram"));
        let ready = caller.text();
        assert_eq!((&ready["type"], &ready["stream_id"]), (&json!("ready"), &json!("call")));
        caller
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).expect("sent");
    }

    pub(crate) fn speak(&mut self, turn: u32) {
        let text = format!("#{}.{turn} hello", self.number);
        self.send(&json!({"type": "speak", "text": text}));
    }

    pub(crate) fn clear(&mut self) {
        self.send(&json!({"type": "clear"}));
    }

    /// The next so many blocks; with the last of them an utterance ends.
    pub(crate) fn say(&mut self, blocks: u32) {
        let from = self.blocks + 1;
        self.blocks += blocks;
        for block in from..=self.blocks {
            let mark = CallerMark { caller: self.number, block, speech: true, last: block == self.blocks };
            let mut bytes = mark.bytes().to_vec();
            bytes.resize(CALLER_BLOCK_BYTES, SAMPLE);
            self.socket.send(Message::binary(bytes)).expect("sent");
        }
    }

    pub(crate) fn next(&mut self) -> Heard {
        self.next_within(PATIENCE).expect("something comes")
    }

    /// The next message, if it comes in that time.
    pub(crate) fn next_within(&mut self, time: Duration) -> Option<Heard> {
        self.socket.get_ref().set_read_timeout(Some(time)).expect("set");
        loop {
            return Some(match self.socket.read() {
                Ok(Message::Text(text)) => Heard::Text(serde_json::from_str(&text).expect("JSON")),
                Ok(Message::Binary(audio)) => Heard::Audio(audio.to_vec()),
                Ok(Message::Close(frame)) => Heard::End(frame.map(|frame| frame.code.into())),
                Ok(_) => continue,
                Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return None;
                }
                Err(_) => Heard::End(None),
            });
        }
    }

    pub(crate) fn text(&mut self) -> Value {
        match self.next() {
            Heard::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// The code with which the session is closed, after whatever comes before.
    pub(crate) fn end(&mut self) -> Option<u16> {
        loop {
            if let Heard::End(code) = self.next() {
                return code;
            }
        }
    }

    /// The audio that comes until a text.
    pub(crate) fn play(&mut self) -> Played {
        let (mut bytes, mut came) = (Vec::new(), Vec::new());
        loop {
            match self.next() {
                Heard::Audio(audio) => {
                    bytes.extend(audio);
                    came.push(Instant::now());
                }
                Heard::Text(last_word) => return Played { bytes, came, last_word },
                Heard::End(code) => panic!("the session ended: {code:?}"),
            }
        }
    }

    /// A reply that was asked for, and is complete.
    pub(crate) fn reply(&mut self, turn: u32) -> Played {
        self.speak(turn);
        let played = self.play();
        assert_eq!(played.last_word["type"], "tts_playback_complete", "{}", played.last_word);
        played
    }

    /// The transcript of an utterance of so many blocks.
    pub(crate) fn utterance(&mut self, blocks: u32) -> String {
        self.say(blocks);
        let result = self.text();
        assert_eq!((&result["type"], &result["is_speech_final"]), (&json!("stt_result"), &json!(true)), "{result}");
        result["transcript"].as_str().expect("a transcript").to_owned()
    }
}
