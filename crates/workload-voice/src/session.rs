//! The session machine of a caller: its connection, and when what is written.

use std::sync::Arc;

use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit, Unconnected};
use plimsoll_protocol::connection::{Connection, Incoming};
use plimsoll_protocol::life::Life;
use plimsoll_protocol::websocket::{Opcode, close};

use crate::back::{Back, NOT_BACK};
use crate::caller::{Caller, Claim, Due};
use crate::machines::Shared;
use crate::slow;
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
    /// How it crosses the kill of its gateway, if its load has one.
    back: Option<Back>,
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
            back: shared.back(plan.seed),
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

    /// The connection is over. Whoever has hung up did not die, nor has one who comes back.
    fn over(&mut self, now_ns: u64, reason: &str, recorder: &mut Recorder<Claim>) {
        let was_open = self.stage == Life::Open;
        if !matches!(self.stage, Life::Opening | Life::Open) {
            return;
        }
        if self.left && was_open {
            self.stage = Life::Finished;
            recorder.session_left();
        } else if self.back.as_mut().is_some_and(|back| back.lost(now_ns)) {
            self.stage = Life::Died;
            if was_open {
                recorder.session_left();
                self.caller.cut_off(now_ns, recorder);
            }
        } else if was_open && self.caller.is_slow() {
            self.stage = Life::Died;
            recorder.session_left();
            recorder.ledger.because(&format!("slow caller: {reason}"));
            self.caller.slow_died();
        } else {
            self.stage.over(reason, recorder);
        }
    }

    /// It comes back, and has not yet.
    fn is_away(&self) -> bool {
        self.back.as_ref().is_some_and(Back::is_away)
    }

    /// The trial is over, and it did not come back.
    fn stayed_away(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        if self.caller.has_begun() {
            self.caller.finish(now_ns, recorder);
            // It was open when it was lost.
            recorder.sessions_open += 1;
            recorder.session_died(NOT_BACK);
        } else {
            recorder.session_failed(NOT_BACK);
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
            back,
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
                    if caller.has_begun() {
                        recorder.sessions_open += 1;
                    } else {
                        recorder.session_started();
                    }
                    if let Some(back) = back {
                        back.opened();
                    }
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
            self.over(now_ns, &reason, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.connection.held_bytes()
    }

    fn reads_bytes_per_s(&self) -> Option<u32> {
        self.caller.is_slow().then_some(slow::READS_BYTES_PER_S)
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        let back = self.back.as_ref();
        let Some((at_ns, open_by_ns)) = back.and_then(|back| back.attempt(now_ns)) else {
            return Unconnected::Over;
        };
        self.connection = Connection::new(&self.shared.endpoint, self.plan.seed ^ at_ns);
        (self.stage, self.current, self.asked_ns) = (Life::Opening, None, None);
        Unconnected::Connects { at_ns, open_by_ns }
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        self.over(now_ns, how.reason(), recorder);
        self.connection.abandon();
    }

    fn settled(&self) -> bool {
        match self.stage {
            Life::Open => self.caller.settled(),
            _ => !self.is_away(),
        }
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        if self.left {
            self.caller.finish(now_ns, recorder);
        }
        match self.stage {
            Life::Opening | Life::Died if self.is_away() => self.stayed_away(now_ns, recorder),
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
