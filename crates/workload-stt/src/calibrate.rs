//! What the audio of speech-to-text sessions costs the client, and how many of those sessions it can drive.
//!
//! The sink plays a gateway of the contract for synthetic audio. It sends a correct partial for every fifty frames
//! without looking at their audio.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_core::profile::Profile;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_protocol::server::Upgraded;
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use plimsoll_workload::calibrate::{
    After, Answers as AnswersOfFlow, Flow, Messages, Reach, Server, Sessions as SessionsOfWork,
    Speaker, Work,
};
use plimsoll_workload::machines;

use crate::audio::Audio;
use crate::reference::compute;
use crate::session::{FRAME_PERIOD_NS, Sessions};
use crate::synthetic::{FRAME_BYTES as PCM_BYTES, Synthetic};

/// Sessions on which the costs are measured.
const USUAL_SESSIONS: u32 = 1_000;
/// Time between two looks of the sink. Nobody waits for an answer to each frame.
const PACE: Duration = Duration::from_millis(20);
/// Length of a masked frame of 640 bytes.
const FRAME_BYTES: usize = 8 + PCM_BYTES;
/// Length of the start message: a header of 6 bytes, then `{"type":"start"}`.
const START_BYTES: usize = 22;
const FRAMES_PER_PARTIAL: u64 = 50;
/// About the size of a partial on the wire.
const PARTIAL_BYTES: usize = 330;
/// The passes over a batch that the gateway's answers have.
const CPU_PASSES: u32 = 4;

/// Audio frames, each in its own write.
#[derive(Debug)]
pub(crate) struct Speech;

impl Work for Speech {
    fn name(&self) -> &'static str {
        "speech"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn load(&self, amount: u32) -> u32 {
        amount
    }

    fn one(&self) -> String {
        "frame".to_owned()
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(PCM_BYTES)
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_SESSIONS
    }

    fn grain(&self) -> u32 {
        50
    }

    fn reach(&self) -> Reach {
        Reach::AllCores
    }

    /// A partial is for fifty frames, so the last ones of a session go without.
    fn all_are_answered(&self) -> bool {
        false
    }

    fn flow(&self, amount: u32) -> Flow {
        Flow::Messages(Messages {
            connections: amount,
            period_ns: FRAME_PERIOD_NS,
            frame: vec![0x5A; FRAME_BYTES],
            number: None,
            share_a_write: false,
            answers: AnswersOfFlow::Unread {
                frames: FRAMES_PER_PARTIAL,
                bytes: PARTIAL_BYTES,
            },
        })
    }

    fn server(&self) -> Server {
        let answers = Arc::default();
        Server::new(PACE, move || {
            Upgraded::new(Gateway::new(Arc::clone(&answers)))
        })
    }

    fn path(&self) -> &'static str {
        "/ws/stt"
    }

    fn sessions(&self, amount: u32, to: Endpoint, _profile: &Profile) -> SessionsOfWork {
        let audio = Arc::new(Audio::synthetic());
        SessionsOfWork {
            machines: machines(Sessions::new(to, audio, Some(CPU_PASSES))),
            count: amount,
        }
    }
}

/// One session.
struct Gateway {
    /// Bytes received since the upgrade.
    bytes: usize,
    /// Frames answered.
    answered: u64,
    /// Which synthetic session this is, known from its first frame.
    session: Option<u64>,
    head: Vec<u8>,
    answers: Arc<Mutex<Answers>>,
}

impl Gateway {
    fn new(answers: Arc<Mutex<Answers>>) -> Self {
        Self {
            bytes: 0,
            answered: 0,
            session: None,
            head: Vec::new(),
            answers,
        }
    }

    fn frames(&self) -> u64 {
        (self.bytes.saturating_sub(START_BYTES) / FRAME_BYTES) as u64
    }
}

impl Speaker for Gateway {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        self.bytes += bytes.len();
        if self.session.is_none() {
            self.head.extend_from_slice(bytes);
            self.session = session_of(&self.head);
            if self.session.is_some() {
                self.head = Vec::new();
            }
        }
        if let Some(session) = self.session {
            while self.frames() >= self.answered + FRAMES_PER_PARTIAL {
                let answers = self.answers.lock();
                let mut answers = answers.unwrap_or_else(PoisonError::into_inner);
                out.extend(answers.partial(session, self.answered + 1));
                self.answered += FRAMES_PER_PARTIAL;
            }
        }
        After::GoOn
    }
}

/// The synthetic session `s` whose first frame is in this stream (start message, then frames). Its first sample is
/// `((320 + s) * 17 mod 20000) - 10000`, and 17 has an inverse modulo 20,000.
fn session_of(stream: &[u8]) -> Option<u64> {
    const INVERSE_OF_17: u64 = 2_353;
    let frame = stream.get(START_BYTES..START_BYTES + 10)?;
    let sample = i16::from_le_bytes([frame[8] ^ frame[4], frame[9] ^ frame[5]]);
    let shifted = u64::try_from(i32::from(sample) + 10_000).ok()?;
    Some((shifted * INVERSE_OF_17 % 20_000 + 20_000 - 320) % 20_000)
}

/// Correct answers for synthetic batches of fifty frames. A session has only five of them, because 5 · 50 frames are
/// whole periods of the table.
#[derive(Default)]
struct Answers {
    synthetic: Synthetic,
    known: HashMap<(u64, u64), String>,
}

impl Answers {
    fn partial(&mut self, session: u64, oldest: u64) -> Vec<u8> {
        let synthetic = &self.synthetic;
        let fields = self
            .known
            .entry((session, oldest % (5 * FRAMES_PER_PARTIAL)))
            .or_insert_with(|| {
                let pcm = synthetic.batch(session, oldest, FRAMES_PER_PARTIAL);
                compute(&pcm, CPU_PASSES)
                    .ok()
                    .and_then(|answer| serde_json::to_string(&answer).ok())
                    .unwrap_or_default()
            });
        // The answer's fields are six of the partial's fields.
        let rest = fields.trim_start_matches('{').trim_end_matches('}');
        let newest = oldest + FRAMES_PER_PARTIAL - 1;
        let text = format!(
            r#"{{"type":"partial","oldest_frame_seq":{oldest},"newest_frame_seq":{newest},"frames":{FRAMES_PER_PARTIAL},{rest},"cpu_passes":{CPU_PASSES},"flush_lateness_ms":0.0}}"#
        );
        RawFrame::server(Opcode::Text, text.as_bytes()).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{GatewayMessage, START};
    use plimsoll_protocol::websocket::{append_client_frame, frame::client_header};

    #[test]
    fn a_session_is_known_by_its_first_sample() {
        for session in [0_u64, 1, 319, 5_000, 19_999] {
            let mut stream = Vec::new();
            append_client_frame(
                &mut stream,
                true,
                Opcode::Text,
                START.as_bytes(),
                [1, 2, 3, 4],
            );
            assert_eq!(stream.len(), START_BYTES);
            let frame = Synthetic::new().frame(session, 1).to_vec();
            append_client_frame(&mut stream, true, Opcode::Binary, &frame, [5, 6, 7, 8]);
            assert_eq!(stream.len(), START_BYTES + FRAME_BYTES);
            assert_eq!(session_of(&stream), Some(session));
            assert_eq!(session_of(&stream[..30]), None);
        }
        assert_eq!(client_header(true, Opcode::Binary, 640, [0; 4]).1, 8);
    }

    #[test]
    fn its_partials_are_of_the_contract() {
        let mut answers = Answers::default();
        for oldest in [1, 51, 251, 1_001] {
            let frame = answers.partial(7, oldest);
            let text = std::str::from_utf8(&frame[4..]).unwrap();
            let Ok(GatewayMessage::Partial(partial)) = GatewayMessage::parse(text) else {
                panic!("not a partial: {text}");
            };
            assert!(partial.sizes_and_word_are_right());
            let pcm = Synthetic::new().batch(7, oldest, 50);
            assert_eq!(partial.checksum, compute(&pcm, 4).unwrap().checksum);
        }
    }
}
