//! Messages that come back: dialect `echo`, at a fixed pace, for every test whose connections send.
//!
//! A message begins with its number, so an echo names the one message that it answers; all of it is compared.

use std::sync::Arc;

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{SessionPlan, session_plan_over};
use plimsoll_core::session::{NoArrivals, SessionMachines};

use super::payload::{Content, TooSmall};
use super::wire::{Head, NUMBER_BYTES, Numbered, burst_of, number_of};
use plimsoll_protocol::connection::Endpoint;
use plimsoll_protocol::paced::{Dialogue, FrameAccount, Message, PacedSession, Written};
use plimsoll_protocol::websocket::Opcode;

/// The workload.
#[derive(Debug)]
pub struct EchoMessages {
    shared: Arc<Shared>,
    period_ns: u64,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    messages: Numbered,
    burst_max: u64,
}

impl EchoMessages {
    /// Connections to `endpoint` that send `content`, with a number of 24 bytes before it, every `period_ns` (at least 1).
    #[must_use]
    pub fn new(endpoint: Endpoint, content: Content, period_ns: u64) -> Self {
        let messages = Numbered::new(content);
        Self {
            shared: Arc::new(Shared {
                burst_max: burst_of(messages.frame_bytes()),
                messages,
                endpoint,
            }),
            period_ns: period_ns.max(1),
        }
    }

    /// The content that makes messages of exactly so many bytes, the number included.
    ///
    /// # Errors
    /// The number alone is longer.
    pub fn content_of(message_bytes: usize) -> Result<Content, TooSmall> {
        message_bytes
            .checked_sub(NUMBER_BYTES)
            .map(Content::filler)
            .ok_or(TooSmall {
                bytes: message_bytes,
                least: NUMBER_BYTES,
            })
    }
}

impl SessionMachines for EchoMessages {
    type Session = PacedSession<EchoMessageDialogue>;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        session_plan_over(self.period_ns, id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        let dialogue = EchoMessageDialogue {
            connection: plan.id,
            head: self.shared.messages.head(plan.id, 0),
            burst: Vec::new(),
            built: (0, 0),
            shared: Arc::clone(&self.shared),
        };
        PacedSession::new(&self.shared.endpoint, plan, self.period_ns, dialogue)
    }
}

/// What one connection says, and how it takes the echoes.
#[derive(Debug)]
pub struct EchoMessageDialogue {
    connection: u32,
    head: Head,
    /// Several messages in a row; stays empty where each is written by itself.
    burst: Vec<u8>,
    /// The first message in `burst`, and how many there are.
    built: (u64, u64),
    shared: Arc<Shared>,
}

impl Dialogue for EchoMessageDialogue {
    type Claim = ();

    fn greeting(&self) -> Option<&'static str> {
        None
    }

    fn frame(&mut self, seq: u64) -> (&[u8], &[u8]) {
        let messages = &self.shared.messages;
        self.head = messages.head(self.connection, seq);
        (self.head.as_slice(), messages.body())
    }

    fn frame_written(&mut self) {}

    fn burst_max(&self) -> u64 {
        self.shared.burst_max
    }

    fn frames(&mut self, first: u64, count: u64) -> (&[u8], &[u8]) {
        if count == 1 {
            return self.frame(first);
        }
        if self.built != (first, count) {
            let messages = &self.shared.messages;
            self.burst.clear();
            for seq in first..first + count {
                let head = messages.head(self.connection, seq);
                self.burst.extend_from_slice(head.as_slice());
                self.burst.extend_from_slice(messages.body());
            }
            self.built = (first, count);
        }
        (&self.burst, &[])
    }

    fn frames_written(&mut self, _written: Written) {
        self.built = (0, 0);
    }

    fn received(
        &mut self,
        message: Message<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<()>,
    ) {
        let (opcode, payload) = match message {
            Message::Text(text) => (Opcode::Text, text.as_bytes()),
            Message::Binary(bytes) => (Opcode::Binary, bytes),
        };
        let content = &self.shared.messages.content;
        if opcode != content.opcode {
            return recorder.protocol_fault("echo of another kind than its message");
        }
        let Some((connection, seq)) = number_of(payload) else {
            return recorder.protocol_fault("echo without a message number");
        };
        if connection != self.connection {
            return recorder.protocol_fault("echo of another connection's message");
        }
        if !frames.answered(seq, now_ns, recorder) {
            return;
        }
        recorder.ledger.content_checked += 1;
        recorder.ledger.content_wrong += u64::from(payload[NUMBER_BYTES..] != content.bytes);
    }
}
