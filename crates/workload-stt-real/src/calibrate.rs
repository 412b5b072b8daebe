//! What a stream of speech costs the client.
//!
//! The sink plays a server of the dialect `deepgram` that does not listen: after each second of audio it says the same final
//! words about it.

use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_protocol::server::Upgraded;
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use plimsoll_speech::plan::FrameLength;
use plimsoll_workload::calibrate::{
    After, Answers, Flow, Messages, Reach, Server, Sessions, Speaker, Work,
};
use plimsoll_workload::machines;
use serde_json::json;

use crate::corpus::Speech;
use crate::dialect::{Options, by_name};
use crate::machines::{Shared, Streams};

/// Sessions on which the costs are measured.
const USUAL_SESSIONS: u32 = 1_000;
/// Time between two looks of the sink. Nobody waits for an answer to each frame.
const PACE: Duration = Duration::from_millis(20);
const FRAME_MS: u32 = 40;
/// 40 ms at 16 kHz, 16 bit.
const AUDIO_BYTES: usize = 1_280;
/// The header of a masked frame of that length.
const HEADER_BYTES: usize = 8;
/// A second.
const FRAMES_PER_FINAL: u64 = 25;
/// The length of a final on the wire, about.
const FINAL_BYTES: usize = 160;

/// Streams of speech.
#[derive(Debug)]
pub(crate) struct Stream;

pub(crate) static WORKS: [&dyn Work; 1] = [&Stream];

impl Work for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn load(&self, amount: u32) -> u32 {
        amount
    }

    fn one(&self) -> String {
        "frame of 40 ms".to_owned()
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(AUDIO_BYTES)
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_SESSIONS
    }

    fn grain(&self) -> u32 {
        50
    }

    fn reach(&self) -> Reach {
        Reach::OneCore
    }

    /// A final is for a second, so the last frames of a session go without.
    fn all_are_answered(&self) -> bool {
        false
    }

    fn flow(&self, amount: u32) -> Flow {
        Flow::Messages(Messages {
            connections: amount,
            period_ns: u64::from(FRAME_MS) * NS_PER_MS,
            frame: vec![0x5A; HEADER_BYTES + AUDIO_BYTES],
            number: None,
            share_a_write: false,
            answers: Answers::Unread {
                frames: FRAMES_PER_FINAL,
                bytes: FINAL_BYTES,
            },
        })
    }

    fn server(&self) -> Server {
        Server::new(PACE, || Upgraded::new(Deaf::default()))
    }

    fn path(&self) -> &'static str {
        "/v1/listen"
    }

    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions {
        let dialect = by_name("deepgram", &Options::default());
        let dialect = dialect.unwrap_or_else(|_| unreachable!("usual options"));
        let frame = FrameLength::of_ms(FRAME_MS);
        let frame = frame.unwrap_or_else(|| unreachable!("one of the lengths"));
        let clips = Speech::built_in().clips;
        let shared = Shared::new(to, dialect, (&clips, frame), amount, profile);
        Sessions {
            machines: machines(Streams::new(shared, (profile, 1), None)),
            count: amount,
        }
    }
}

/// One session of the sink.
#[derive(Debug, Default)]
struct Deaf {
    /// Bytes received since the upgrade.
    bytes: usize,
    /// Seconds about which it has said something.
    seconds: u64,
}

impl Speaker for Deaf {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        self.bytes += bytes.len();
        let frames = (self.bytes / (HEADER_BYTES + AUDIO_BYTES)) as u64;
        while frames >= (self.seconds + 1) * FRAMES_PER_FINAL {
            let words = json!({
                "type": "Results", "start": self.seconds, "duration": 1.0, "is_final": true, "speech_final": false,
                "channel": {"alternatives": [{"transcript": "the same words", "words": []}]},
            });
            RawFrame::server(Opcode::Text, words.to_string().as_bytes()).append_to(out);
            self.seconds += 1;
        }
        After::GoOn
    }
}
