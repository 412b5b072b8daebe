//! What a caller costs the client.
//!
//! The sink plays a gateway whose providers take no time.

use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_workload::calibrate::{
    Answers, Counts, Flow, Messages, Reach, Server, Sessions, Work,
};
use plimsoll_workload::{Values, machines};

use crate::load::VoiceLoad;
use crate::machines::Callers;
use crate::marks::{CALLER_BLOCK_BYTES, REPLY_BLOCK_BYTES};
use crate::parameters::PARAMETERS;
use crate::toy::{Fault, Toy};

/// Callers with whom the costs are measured.
const USUAL_CALLERS: u32 = 300;
/// Time between two looks of the sink.
const PACE: Duration = Duration::from_millis(20);
/// A message has 100 ms of audio.
const MESSAGE_MS: u64 = 100;
const MESSAGE_BYTES: usize = 5 * CALLER_BLOCK_BYTES;
/// The header of a masked frame of that length.
const HEADER_BYTES: usize = 8;
/// Replies have 3 s in 8 s, so 150 blocks for each 80 messages, each in a frame of its own.
const MESSAGES_PER_ANSWER: u64 = 8;
const ANSWER_BYTES: usize = 15 * (4 + REPLY_BLOCK_BYTES);

/// A caller's audio, 100 ms in each message.
#[derive(Debug)]
pub(crate) struct Talk;

pub(crate) static WORKS: [&dyn Work; 1] = [&Talk];

impl Work for Talk {
    fn name(&self) -> &'static str {
        "talk"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::of("callers")
    }

    fn load(&self, amount: u32) -> u32 {
        amount
    }

    fn one(&self) -> String {
        "message of 100 ms".to_owned()
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(MESSAGE_BYTES)
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CALLERS
    }

    fn grain(&self) -> u32 {
        10
    }

    fn reach(&self) -> Reach {
        Reach::OneCore
    }

    fn counts(&self) -> Counts {
        Counts::Paced
    }

    /// Only the last message of an utterance has an answer.
    fn all_are_answered(&self) -> bool {
        false
    }

    fn flow(&self, amount: u32) -> Flow {
        Flow::Messages(Messages {
            connections: amount,
            period_ns: MESSAGE_MS * NS_PER_MS,
            frame: vec![0x5A; HEADER_BYTES + MESSAGE_BYTES],
            number: None,
            share_a_write: false,
            answers: Answers::Unread {
                frames: MESSAGES_PER_ANSWER,
                bytes: ANSWER_BYTES,
            },
        })
    }

    fn server(&self) -> Server {
        Server::new(PACE, || Toy::upgraded(Fault::None))
    }

    fn path(&self) -> &'static str {
        "/ws"
    }

    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions {
        let usual = VoiceLoad::of(&Values::default().or_usual(&PARAMETERS));
        let usual = usual.unwrap_or_else(|_| unreachable!("the usual values are a load"));
        Sessions {
            machines: machines(Callers::new(to, &usual, amount, profile)),
            count: amount,
        }
    }
}
