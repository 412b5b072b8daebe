//! A session, a simulated clock, and a server that is a closure: what the tests of this module share.

use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::session::{Account, Session, SessionMachines};
use serde_json::{Value, json};

use super::jwt::Credentials;
use super::{Dialect, Format, Peer, wse};
use plimsoll_protocol::connection::Endpoint;
use plimsoll_protocol::websocket::handshake::accept_for;
use plimsoll_protocol::websocket::{Opcode, RawFrame, close, mask_in_place};

pub(super) const MS: u64 = NS_PER_MS;

/// Warm-up until 1 s, window until 3 s, grace until 8 s.
pub(super) fn profile() -> Profile {
    Profile {
        ramp_s: 0.0,
        warm_up_s: 1.0,
        measured_s: 2.0,
        session_start_spread_ms: 0.0,
        ..Profile::quick()
    }
}

pub(super) fn peer(dialect: Dialect) -> Peer {
    let endpoint = Endpoint {
        host: "localhost:1".to_owned(),
        path: wse::path(Format::Json).to_owned(),
        headers: Vec::new(),
    };
    Peer {
        dialect,
        endpoint: match dialect {
            Dialect::Echo => endpoint,
            Dialect::Wse => wse::with_token(endpoint, &Credentials::default(), 1_700_000_000),
        },
    }
}

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) opcode: Opcode,
    pub(super) payload: Vec<u8>,
}

impl Said {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.payload).unwrap_or(Value::Null)
    }

    /// The pong of an honest `wse` server, if this is a ping in JSON.
    pub(super) fn pong(&self) -> Option<Vec<u8>> {
        let message = self.json();
        (message["t"] == "ping").then(|| pong(&message["p"]["timestamp"]))
    }

    /// What an echo server sends.
    pub(super) fn echo(&self) -> Vec<u8> {
        RawFrame::server(self.opcode, &self.payload).to_vec()
    }
}

/// The frame of a pong.
pub(super) fn pong(timestamp: &Value) -> Vec<u8> {
    text(&json!({
        "c": "WSE", "t": "PONG", "v": 1,
        "p": {"client_timestamp": timestamp, "server_timestamp": 1_700_000_000_000_u64, "latency": 0},
    }))
}

/// The frame of a text message.
pub(super) fn text(message: &Value) -> Vec<u8> {
    RawFrame::server(Opcode::Text, message.to_string().as_bytes()).to_vec()
}

/// The frame of a close.
pub(super) fn close_frame(code: u16) -> Vec<u8> {
    RawFrame::server(Opcode::Close, &close::payload(code, "")).to_vec()
}

/// What a server sends, and how long after it was asked.
pub(super) type Reply = (u64, Vec<u8>);

pub(super) struct Rig<S: Session> {
    pub(super) session: S,
    pub(super) recorder: Recorder<S::Claim>,
    pub(super) now_ns: u64,
    /// Replies on their way, by the time they arrive.
    pending: Vec<Reply>,
}

impl<S: Session> Rig<S> {
    /// Session 0 of one, at the time it connects.
    pub(super) fn new<W: SessionMachines<Session = S>>(workload: &W) -> Self {
        Self::of(workload, 0, 1)
    }

    /// Session `id` of so many.
    pub(super) fn of<W: SessionMachines<Session = S>>(
        workload: &W,
        id: u32,
        sessions: u32,
    ) -> Self {
        let plan = workload.plan(id, sessions, &profile(), 1);
        Self {
            session: workload.session(&plan),
            recorder: Recorder::default(),
            now_ns: plan.connect_at_ns,
            pending: Vec::new(),
        }
    }

    /// What the session writes now, in one piece for each write.
    pub(super) fn writes(&mut self) -> Vec<Vec<u8>> {
        let mut writes = Vec::new();
        while let Some(transmit) = self.session.transmit(self.now_ns) {
            writes.push([transmit.head, transmit.body].concat());
            self.session.sent(self.now_ns, &mut self.recorder);
        }
        writes
    }

    /// The messages that it writes now.
    pub(super) fn said(&mut self) -> Vec<Said> {
        messages(&self.writes().concat())
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.session
            .received(self.now_ns, bytes, &mut self.recorder);
    }

    /// It connects, and the server upgrades.
    pub(super) fn upgraded(mut self) -> Self {
        self.session.connecting(self.now_ns, &mut self.recorder);
        let request = self.writes().concat();
        self.receive(&upgrade(&request));
        self
    }

    /// The same, and a `wse` server is ready and takes the hello.
    pub(super) fn greeted(self) -> (Self, Vec<Said>) {
        let mut rig = self.upgraded();
        assert!(rig.said().is_empty(), "nothing is said before server_ready");
        rig.receive(&text(
            &json!({"c": "WSE", "t": "server_ready", "p": {"details": {}}}),
        ));
        let said = rig.said();
        rig.receive(&text(&json!({"c": "WSE", "t": "server_hello", "p": {}})));
        (rig, said)
    }

    /// Time passes. The session writes all as it is due; `server` is shown each message and says what it sends.
    pub(super) fn run_until(
        &mut self,
        until_ns: u64,
        mut server: impl FnMut(u64, &Said) -> Vec<Reply>,
    ) {
        loop {
            let arrival_ns = self.pending.iter().map(|(at_ns, _)| *at_ns).min();
            let events = [self.session.next_due_ns(), arrival_ns];
            let next_ns = events.into_iter().flatten().min();
            let Some(next_ns) = next_ns.filter(|next_ns| *next_ns <= until_ns) else {
                break;
            };
            self.now_ns = self.now_ns.max(next_ns);
            let arrived = |reply: &mut Reply| reply.0 <= self.now_ns;
            let mut arrived: Vec<_> = self.pending.extract_if(.., arrived).collect();
            arrived.sort_by_key(|(at_ns, _)| *at_ns);
            for (_, bytes) in arrived {
                self.receive(&bytes);
            }
            for said in self.said() {
                for (delay_ns, bytes) in server(self.now_ns, &said) {
                    self.pending.push((self.now_ns + delay_ns, bytes));
                }
            }
        }
        self.now_ns = until_ns;
    }

    pub(super) fn finish(&mut self) {
        self.session.finish(self.now_ns, &mut self.recorder);
        let ledger = &self.recorder.ledger;
        assert_eq!(
            ledger.frames_due,
            ledger.frames_answered + ledger.frames_errored + ledger.frames_lost,
            "every frame is accounted for"
        );
    }

    /// The trial is over for all sessions.
    pub(super) fn settle<W: SessionMachines<Session = S>>(&mut self, workload: &W) {
        let Recorder {
            ledger,
            interval,
            claims,
            ..
        } = &mut self.recorder;
        let latency = interval;
        let began_ns = Some(0);
        let account = Account {
            ledger,
            latency,
            began_ns,
        };
        workload.settle(claims, account);
    }

    /// The greatest latency of a series, in milliseconds, rounded down.
    pub(super) fn max_ms(&self, series: Series) -> u64 {
        self.recorder.interval.histogram(series).max() / 1000
    }

    pub(super) fn count(&self, series: Series) -> u64 {
        self.recorder.interval.histogram(series).len()
    }

    pub(super) fn reason(&self, reason: &str) -> u64 {
        let reasons = &self.recorder.ledger.reasons;
        reasons.get(reason).copied().unwrap_or(0)
    }
}

/// The answer to an upgrade request.
pub(super) fn upgrade(request: &[u8]) -> Vec<u8> {
    let request = std::str::from_utf8(request).expect("a request is text");
    let key = request
        .lines()
        .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
        .expect("a request has a key");
    let accept = accept_for(key);
    format!(
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
    .into_bytes()
}

/// Client frames, unmasked.
pub(super) fn messages(mut bytes: &[u8]) -> Vec<Said> {
    let mut said = Vec::new();
    while let [first, second, rest @ ..] = bytes {
        assert_eq!(second & 0x80, 0x80, "a client masks");
        let (length_bytes, short) = match second & 0x7F {
            126 => (2, None),
            127 => (8, None),
            length => (0, Some(u64::from(length))),
        };
        let (length, rest) = rest.split_at(length_bytes);
        let length = length
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte));
        let length = usize::try_from(short.unwrap_or(length)).expect("it fits");
        let (mask, rest) = rest.split_first_chunk::<4>().expect("a mask");
        assert_ne!(*mask, [0; 4], "a mask that masks");
        let (payload, rest) = rest.split_at(length);
        let mut payload = payload.to_vec();
        mask_in_place(&mut payload, *mask, 0);
        said.push(Said {
            opcode: Opcode::from_bits(*first).expect("an opcode"),
            payload,
        });
        bytes = rest;
    }
    assert!(bytes.is_empty(), "whole frames");
    said
}
