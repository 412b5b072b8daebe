//! The session machine of a caller: its connection, and when what is written.

use std::sync::Arc;

use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit};
use plimsoll_protocol::connection::{Connection, Incoming};
use plimsoll_protocol::life::Life;
use plimsoll_protocol::websocket::{Opcode, close};

use crate::caller::{Caller, Claim, Due};
use crate::machines::Shared;
use crate::wire::{self, GatewayMessage};

/// A caller and its connection.
#[derive(Debug)]
pub struct CallerSession {
    connection: Connection,
    plan: SessionPlan,
    shared: Arc<Shared>,
    /// It is open once the gateway is ready.
    stage: Life,
    /// When `config` was queued.
    asked_ns: Option<u64>,
    /// What [`Session::transmit`] gave last and the socket has not wholly taken.
    current: Option<Current>,
    /// The bytes of `current`, if it is one of the load.
    message: Vec<u8>,
    /// The caller hangs up, or has.
    left: bool,
    caller: Caller,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    Control { bytes: usize },
    Load(Due),
}

impl CallerSession {
    /// A caller with this plan.
    pub(crate) fn new(shared: &Arc<Shared>, plan: &SessionPlan) -> Self {
        Self {
            connection: Connection::new(&shared.endpoint, plan.seed),
            plan: *plan,
            shared: Arc::clone(shared),
            stage: Life::Opening,
            asked_ns: None,
            current: None,
            message: Vec::new(),
            left: false,
            caller: Caller::new(shared, plan),
        }
    }

    fn begun(&mut self, now_ns: u64) -> Option<Current> {
        let control = self.connection.control().len();
        if self.current.is_some() {
            return self.current;
        }
        if control > 0 {
            return Some(Current::Control { bytes: control });
        }
        let talks = self.stage == Life::Open && !self.left;
        let due = talks.then(|| self.caller.next());
        let due = due.filter(|due| due.at_ns <= now_ns)?;
        self.caller.make(due.what, &mut self.message);
        Some(Current::Load(due))
    }

    /// The connection is over. Whoever has hung up did not die.
    fn over(&mut self, reason: &str, recorder: &mut Recorder<Claim>) {
        if self.left && self.stage == Life::Open {
            self.stage = Life::Finished;
            recorder.session_left();
        } else {
            self.stage.over(reason, recorder);
        }
    }
}

impl Session for CallerSession {
    type Claim = Claim;

    fn phase(&self) -> Phase {
        self.stage.phase()
    }

    fn next_due_ns(&self) -> Option<u64> {
        let talks = self.stage == Life::Open && !self.left;
        let watched_ns = self.caller.watched_until_ns().unwrap_or(u64::MAX);
        let others_ns = watched_ns.min(self.caller.hangs_up_ns());
        talks.then(|| self.caller.next().at_ns.min(others_ns))
    }

    fn owed(&self, now_ns: u64) -> u64 {
        match self.stage {
            Life::Open if !self.left => self.caller.owed(now_ns),
            Life::Opening | Life::Open | Life::Died | Life::Failed | Life::Finished => 0,
        }
    }

    fn woke(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        self.caller.watched(now_ns, recorder);
        if self.stage == Life::Open && !self.left && now_ns >= self.caller.hangs_up_ns() {
            self.left = true;
            self.connection.close(close::NORMAL);
        }
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.current = self.begun(now_ns);
        Some(match self.current? {
            Current::Control { bytes } => Transmit {
                head: &self.connection.control()[..bytes],
                body: &[],
                due_ns: None,
                held_until_ns: None,
                measured: false,
            },
            Current::Load(due) => Transmit {
                head: &self.message,
                body: &[],
                due_ns: Some(due.at_ns),
                held_until_ns: None,
                measured: self.plan.window.contains(due.at_ns),
            },
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Claim>) {
        match self.current.take() {
            Some(Current::Control { bytes }) => {
                self.connection.control_sent(bytes);
                if self.left && self.stage == Life::Open && self.connection.control().is_empty() {
                    self.stage = Life::Finished;
                    recorder.session_left();
                }
            }
            Some(Current::Load(due)) => self.caller.wrote(due.what, write_ns, recorder),
            None => {}
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Claim>) {
        let Self {
            connection,
            plan,
            stage,
            asked_ns,
            caller,
            ..
        } = self;
        let mut over = None;
        let mut upgraded = false;
        connection.received(bytes, |incoming| match incoming {
            Incoming::Opened => upgraded = true,
            Incoming::Binary(audio) => caller.audio(audio, now_ns, recorder),
            // The first reason is the one: a refusal in words comes before the close frame.
            Incoming::Over(reason) => {
                over.get_or_insert_with(|| reason.to_owned());
            }
            Incoming::Text(text) => match GatewayMessage::parse(text) {
                Err(reason) => recorder.protocol_fault(reason),
                Ok(message) if *stage != Life::Opening => {
                    caller.heard(&message, now_ns, recorder);
                }
                Ok(GatewayMessage::Ready { stream_id }) => {
                    if stream_id != wire::stream_id(plan.id) {
                        recorder.protocol_fault("`ready` with another stream_id");
                    }
                    *stage = Life::Open;
                    recorder.session_started();
                    caller.begin(now_ns);
                    let asked_ns = asked_ns.unwrap_or(now_ns);
                    recorder.claims.push(Claim::Ready {
                        connect_ns: asked_ns.saturating_sub(plan.connect_at_ns),
                        after_ns: now_ns.saturating_sub(asked_ns),
                    });
                }
                Ok(GatewayMessage::Error { kind }) => {
                    over.get_or_insert_with(|| format!("error {kind} instead of `ready`"));
                }
                Ok(_) => recorder.protocol_fault("message before `ready`"),
            },
        });
        if upgraded {
            let config = wire::config(plan.id, &self.shared.load.providers);
            connection.queue(Opcode::Text, config.as_bytes());
            *asked_ns = Some(now_ns);
        }
        if let Some(reason) = over {
            self.over(&reason, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.connection.held_bytes()
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        self.over(how.reason(), recorder);
        self.connection.abandon();
    }

    fn settled(&self) -> bool {
        self.stage != Life::Open || self.caller.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        if self.left {
            self.caller.finish(now_ns, recorder);
        }
        match self.stage {
            Life::Opening if now_ns >= self.plan.window.start_ns => {
                recorder.session_failed(Disconnect::TimedOut.reason());
            }
            Life::Open | Life::Died if !self.left => {
                self.caller.finish(now_ns, recorder);
                self.connection.close(close::NORMAL);
            }
            Life::Opening | Life::Open | Life::Died | Life::Failed | Life::Finished => {}
        }
        self.stage = Life::Finished;
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
