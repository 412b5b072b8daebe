//! Application pings at a fixed pace: the tests `ping`, `hold` and `limit` in dialect `wse`.
//!
//! A frame of the load is a ping; its answer is the pong that carries its own timestamp.

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{SessionPlan, session_plan_over};
use plimsoll_core::session::{NoArrivals, SessionMachines};

use super::{Line, PingIds};
use crate::formats::Format;
use crate::wire::append_message;
use plimsoll_protocol::connection::Endpoint;
use plimsoll_protocol::paced::{Dialogue, FrameAccount, Message, Opening, PacedSession};
use plimsoll_protocol::websocket::Opcode;

/// Digits of a timestamp.
const DIGITS: usize = 16;
/// What follows them.
const TAIL: usize = "}}".len();

/// The workload.
#[derive(Debug)]
pub struct WsePings {
    endpoint: Endpoint,
    period_ns: u64,
}

impl WsePings {
    /// Sessions with `endpoint`, whose request has a token, that ping every `period_ns` (at least 1).
    #[must_use]
    pub fn new(endpoint: Endpoint, period_ns: u64) -> Self {
        Self {
            endpoint,
            period_ns: period_ns.max(1),
        }
    }
}

impl SessionMachines for WsePings {
    type Session = PacedSession<PingDialogue>;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        session_plan_over(self.period_ns, id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        let dialogue = PingDialogue::new(plan.id);
        PacedSession::new(&self.endpoint, plan, self.period_ns, dialogue)
    }
}

/// What one session says, and how it takes the pongs.
#[derive(Debug)]
pub struct PingDialogue {
    ids: PingIds,
    line: Line,
    /// The ping as it goes on the wire; only the digits of its timestamp change.
    ping: Box<[u8]>,
    /// The mask of each digit.
    digit_masks: [u8; DIGITS],
}

impl PingDialogue {
    fn new(session: u32) -> Self {
        let content = Format::Json.ping(PingIds::of(session).id(0));
        let mut ping = Vec::new();
        append_message(&mut ping, Opcode::Text, &content.bytes);
        let masked = &ping[ping.len() - TAIL - DIGITS..];
        let plain = &content.bytes[content.bytes.len() - TAIL - DIGITS..];
        Self {
            ids: PingIds::of(session),
            line: Line::default(),
            digit_masks: std::array::from_fn(|place| masked[place] ^ plain[place]),
            ping: ping.into_boxed_slice(),
        }
    }

    fn set_timestamp(&mut self, mut timestamp: u64) {
        let end = self.ping.len() - TAIL;
        let digits = &mut self.ping[end - DIGITS..end];
        for (digit, mask) in digits.iter_mut().zip(self.digit_masks).rev() {
            *digit = (b'0' + u8::try_from(timestamp % 10).unwrap_or(0)) ^ mask;
            timestamp /= 10;
        }
    }
}

impl Dialogue for PingDialogue {
    type Claim = ();

    fn greeting(&self) -> Option<&'static str> {
        None
    }

    fn frame(&mut self, seq: u64) -> (&[u8], &[u8]) {
        self.set_timestamp(self.ids.id(seq));
        (&self.ping, &[])
    }

    fn frame_written(&mut self) {}

    fn opens_by_upgrade(&self) -> bool {
        false
    }

    fn opening(&mut self, message: Message<'_>) -> Opening {
        self.line.opening(message)
    }

    fn outbox(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut self.line.outbox)
    }

    fn received(
        &mut self,
        message: Message<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<()>,
    ) {
        let Some(seq) = self.line.pong(message, self.ids, recorder) else {
            return;
        };
        frames.answered(seq, now_ns, recorder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::websocket::mask_in_place;

    #[test]
    fn the_timestamp_is_set_in_the_masked_ping() {
        let mut dialogue = PingDialogue::new(3);
        for seq in [1, 9, 10, 12_345_678] {
            let ping = dialogue.frame(seq).0.to_vec();
            let (header, payload) = ping.split_at(6);
            let mut payload = payload.to_vec();
            mask_in_place(&mut payload, header[2..].try_into().unwrap(), 0);
            let expected = Format::Json.ping(PingIds::of(3).id(seq));
            assert_eq!(payload, expected.bytes);
        }
    }
}
