//! The echo workload: any RFC 6455 server that sends every message back.
//!
//! Each session sends a binary message at a fixed pace, numbered and filled from its number, and expects exactly that message back. A frame is a
//! message; it is answered when it comes back, so the newest and the oldest frame of an answer are the same, and both
//! latencies are equal. Every echo is compared in full.

mod calibrate;

use std::sync::Arc;

use plimsoll_core::ledger::Naming;
use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Endpoint, NoArrivals, SessionMachines};
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_protocol::connection::check;
use plimsoll_protocol::paced::{Concerned, Dialogue, FrameAccount, Message, PacedSession};
use plimsoll_protocol::websocket::{Opcode, append_client_frame};
use plimsoll_workload::{
    About, Demand, Drive, Job, Kind, Parameter, Plan, Refusal, Told, Usual, Values, Work, Workload,
    machines,
};

use calibrate::{EchoedMessages, WORKS};

/// Number of the session and of the message, at the start of each message.
const PREFIX_BYTES: usize = 12;
const MASK: [u8; 4] = [0x45, 0x43, 0x48, 0x4F];

/// The usual size of a message, in bytes.
const MESSAGE_BYTES: usize = 128;
/// The longest message that a connection takes back, in bytes.
const MESSAGE_MAX_BYTES: u64 = 1 << 20;

const PARAMETERS: [Parameter; 2] = [
    Parameter {
        usual: Usual::Value("128"),
        ..Parameter::new(
            "message_bytes",
            Kind::Whole {
                least: PREFIX_BYTES as u64,
                most: MESSAGE_MAX_BYTES,
            },
            "Message size in bytes",
        )
    },
    Parameter {
        usual: Usual::Value("100"),
        ..Parameter::new(
            "period_ms",
            Kind::Whole {
                least: 1,
                most: 3_600_000,
            },
            "Milliseconds between two messages of a session",
        )
    },
];

/// Every message comes back soon.
const GATES: [(Metric, f64); 3] = [
    (Metric::Newest(Percentile::P50), 10.0),
    (Metric::Newest(Percentile::P95), 50.0),
    (Metric::ErrorRate, 1e-5),
];

/// The workload.
#[derive(Debug)]
pub struct Echo;

impl Workload for Echo {
    fn about(&self) -> &'static About {
        &About {
            name: "echo",
            line: "Any RFC 6455 server that sends every message back",
            floor: None,
            contract: None,
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Ok(Arc::new(EchoPlan(values)))
    }

    fn works(&self) -> &'static [&'static dyn Work] {
        &WORKS
    }
}

/// A message of `message_bytes` every `period_ms` from each session.
#[derive(Debug)]
struct EchoPlan(Values);

impl EchoPlan {
    fn message_bytes(&self) -> usize {
        let bytes = self.0.whole("message_bytes").unwrap_or_default();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn period_ms(&self) -> u64 {
        self.0.whole("period_ms").unwrap_or(1)
    }

    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    fn per_second(&self) -> f64 {
        1e3 / self.period_ms() as f64
    }
}

impl Plan for EchoPlan {
    fn workload(&self) -> &'static dyn Workload {
        &Echo
    }

    fn values(&self) -> &Values {
        &self.0
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn slo(&self) -> Slo {
        Slo::from_gates("echo", &GATES)
    }

    fn demand(&self, load: u32, _profile: &Profile) -> Demand {
        Demand::of_sessions(load, self.per_second())
    }

    fn told(&self) -> Told {
        Told {
            path: "/".into(),
            health_path: "/health",
            port: None,
            variables: Vec::new(),
            data: None,
        }
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        match check(&to) {
            Ok(()) => Ok(to),
            Err(error) => Err(Refusal::new(error.to_string())),
        }
    }

    fn machines(&self, job: &Job, _profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        let echoes = Echoes::new(job.to.clone(), self.message_bytes(), self.period_ms());
        Ok(machines(echoes))
    }

    fn frames_per_session_second(&self) -> Option<f64> {
        Some(self.per_second())
    }

    fn work(&self) -> Option<Box<dyn Work>> {
        Some(Box::new(EchoedMessages {
            message_bytes: self.message_bytes(),
        }))
    }

    fn frame_bytes(&self) -> Option<usize> {
        Some(self.message_bytes())
    }
}

/// The session machines.
#[derive(Debug)]
pub struct Echoes {
    endpoint: Endpoint,
    message_bytes: usize,
    period_ns: u64,
}

impl Echoes {
    /// Sessions that go to `endpoint` and send a message of `message_bytes` (at least 12) every `period_ms` (at least 1).
    #[must_use]
    pub fn new(endpoint: Endpoint, message_bytes: usize, period_ms: u64) -> Self {
        Self {
            endpoint,
            message_bytes: message_bytes.max(PREFIX_BYTES),
            period_ns: period_ms.max(1) * NS_PER_MS,
        }
    }
}

impl SessionMachines for Echoes {
    type Session = PacedSession<EchoDialogue>;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        let dialogue = EchoDialogue::new(plan.id, self.message_bytes);
        PacedSession::new(&self.endpoint, plan, self.period_ns, dialogue)
    }
}

/// What one session says, and how it takes the echoes.
#[derive(Debug)]
pub struct EchoDialogue {
    message: Vec<u8>,
    /// The frame being written.
    wire: Vec<u8>,
}

impl EchoDialogue {
    fn new(session: u32, message_bytes: usize) -> Self {
        let mut message: Vec<u8> = (0..=250).cycle().take(message_bytes).collect();
        message[..4].copy_from_slice(&session.to_le_bytes());
        Self {
            message,
            wire: Vec::with_capacity(message_bytes + 14),
        }
    }

    fn number(&mut self, seq: u64) {
        self.message[4..PREFIX_BYTES].copy_from_slice(&seq.to_le_bytes());
    }
}

/// The number in an echo, if it has one.
fn number_in(echo: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(echo.get(4..PREFIX_BYTES)?.try_into().ok()?);
    (number > 0).then_some(number)
}

impl Dialogue for EchoDialogue {
    type Claim = ();

    fn greeting(&self) -> Option<&'static str> {
        None
    }

    fn frame(&mut self, seq: u64) -> (&[u8], &[u8]) {
        self.number(seq);
        self.wire.clear();
        append_client_frame(&mut self.wire, true, Opcode::Binary, &self.message, MASK);
        (&self.wire, &[])
    }

    fn frame_written(&mut self) {}

    fn received(
        &mut self,
        message: Message<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<()>,
    ) {
        let Message::Binary(echo) = message else {
            return recorder.protocol_fault("text for a binary message");
        };
        let Some(seq) = number_in(echo) else {
            return recorder.protocol_fault("echo without a message number");
        };
        match frames.named(seq, seq, Naming::Answered, now_ns, recorder) {
            Concerned::Measured => recorder.ledger.partials += 1,
            Concerned::Others => {}
            Concerned::NeverSent => return,
        }
        recorder.ledger.content_checked += 1;
        self.number(seq);
        recorder.ledger.content_wrong += u64::from(self.message != echo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use plimsoll_core::schedule::session_plan;
    use plimsoll_core::session::Session;

    use plimsoll_protocol::websocket::handshake::accept_for;
    use plimsoll_protocol::websocket::{RawFrame, mask_in_place};

    struct Rig {
        session: PacedSession<EchoDialogue>,
        recorder: Recorder<()>,
    }

    impl Rig {
        fn open() -> Self {
            let endpoint = Endpoint {
                host: "h".to_owned(),
                path: "/".to_owned(),
                headers: Vec::new(),
            };
            let mut profile = Profile::quick();
            (profile.ramp_s, profile.warm_up_s) = (0.0, 0.0);
            profile.session_start_spread_ms = 0.0;
            let echo = Echoes::new(endpoint, 300, 100);
            let mut rig = Self {
                session: echo.session(&session_plan(3, 10, &profile, 1)),
                recorder: Recorder::default(),
            };
            let request = String::from_utf8(rig.write(0).remove(0)).unwrap();
            let key = request
                .lines()
                .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
            let answer = format!(
                "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
                accept_for(key.unwrap())
            );
            rig.session
                .received(0, answer.as_bytes(), &mut rig.recorder);
            rig
        }

        fn write(&mut self, now_ns: u64) -> Vec<Vec<u8>> {
            let mut writes = Vec::new();
            while let Some(transmit) = self.session.transmit(now_ns) {
                writes.push([transmit.head, transmit.body].concat());
                self.session.sent(now_ns, &mut self.recorder);
            }
            writes
        }

        /// What an honest server sends back for a frame.
        fn echo_of(frame: &[u8]) -> Vec<u8> {
            let (header, payload) = frame.split_at(8);
            let mut payload = payload.to_vec();
            mask_in_place(&mut payload, header[4..].try_into().unwrap(), 0);
            payload
        }

        fn receive(&mut self, now_ns: u64, payload: &[u8]) {
            let frame = RawFrame::server(Opcode::Binary, payload).to_vec();
            self.session.received(now_ns, &frame, &mut self.recorder);
        }
    }

    #[test]
    fn every_message_comes_back_once() {
        let mut rig = Rig::open();
        let frames = rig.write(250 * NS_PER_MS);
        assert_eq!(frames.len(), 3);
        for frame in &frames {
            rig.receive(260 * NS_PER_MS, &Rig::echo_of(frame));
        }
        let ledger = &rig.recorder.ledger;
        assert_eq!((ledger.frames_sent, ledger.frames_answered), (3, 3));
        assert_eq!((ledger.content_checked, ledger.content_wrong), (3, 0));
        rig.receive(270 * NS_PER_MS, &Rig::echo_of(&frames[1]));
        assert_eq!(rig.recorder.ledger.frames_duplicated, 1);
    }

    #[test]
    fn a_changed_echo_is_wrong_and_a_strange_one_a_fault() {
        let mut rig = Rig::open();
        let frames = rig.write(0);
        let mut echo = Rig::echo_of(&frames[0]);
        echo[299] ^= 1;
        rig.receive(1, &echo);
        assert_eq!(rig.recorder.ledger.content_wrong, 1);
        rig.receive(2, b"short");
        rig.receive(3, &[0xFF; 300]);
        assert_eq!(rig.recorder.ledger.protocol_faults, 2);
    }
}
