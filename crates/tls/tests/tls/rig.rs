//! A session and a server without a network between them. The server sends back what it receives.

use std::cell::Cell;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::session::{Disconnect, Phase, Session, SessionMachines};
use plimsoll_tls::{Client, TlsMachines, TlsSession};
use rustls::{Error, ServerConfig, ServerConnection};

use crate::toy::{Seen, Toy, Toys};

thread_local! {
    static READINGS: Cell<u64> = const { Cell::new(0) };
}

/// What a reading of [`clock`] takes, in ns.
pub(crate) const READING_NS: u64 = 1_000;
/// What everything takes that is timed with it, in ns.
pub(crate) const WORK_NS: u64 = 5_000;
/// How often it is read for that.
pub(crate) const READINGS_EACH: u64 = 3;

/// The CPU clock of sessions in these tests. It stands still but for what its readings take, and for the work between the
/// second and the third.
pub(crate) fn clock() -> u64 {
    let nth = READINGS.get();
    READINGS.set(nth + 1);
    nth * READING_NS + (nth + 1) / READINGS_EACH * WORK_NS
}

/// How often this thread has read it.
pub(crate) fn readings() -> u64 {
    READINGS.get()
}

/// What the engine would know of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    pub(crate) due_ns: Option<u64>,
    pub(crate) held_until_ns: Option<u64>,
    pub(crate) measured: bool,
}

pub(crate) struct Rig {
    pub(crate) session: TlsSession<Toy>,
    pub(crate) server: ServerConnection,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) recorder: Recorder<()>,
    pub(crate) now_ns: u64,
    /// Bytes that the socket takes at a time.
    pub(crate) write_bytes: usize,
    /// Bytes that come in at a time.
    pub(crate) read_bytes: usize,
    /// Every write of the session.
    pub(crate) written: Vec<Written>,
    /// The write that the socket has not wholly taken, and how much of it.
    half: Option<(Written, usize)>,
    /// Why the server gave up.
    pub(crate) server_fault: Option<Error>,
}

impl Rig {
    pub(crate) fn new(client: &Client, server: Arc<ServerConfig>, message_bytes: usize) -> Self {
        let toys = Toys { message_bytes };
        let machines = TlsMachines::new(&toys, client, clock);
        let plan = machines.plan(0, 1, &Profile::quick(), 1);
        // The same toy, with the test's eyes on it.
        let toy = toys.session(&plan);
        let seen = Arc::clone(&toy.seen);
        let mut session = TlsSession::new(toy, &plan, client.clone(), clock);
        let mut recorder = Recorder::default();
        assert_eq!(session.phase(), Phase::Opening);
        assert!(session.transmit(0).is_none(), "it is not connected");
        session.connecting(0, &mut recorder);
        let mut server = ServerConnection::new(server).unwrap();
        server.set_buffer_limit(None);
        Self {
            session,
            server,
            seen,
            recorder,
            now_ns: plan.first_due_ns,
            write_bytes: usize::MAX,
            read_bytes: usize::MAX,
            written: Vec::new(),
            half: None,
            server_fault: None,
        }
    }

    /// Connects the session to a new server.
    pub(crate) fn connect_to(&mut self, server: Arc<ServerConfig>) {
        self.session.connecting(self.now_ns, &mut self.recorder);
        self.server = ServerConnection::new(server).unwrap();
        self.half = None;
    }

    /// One try to write all that there is. Returns whether the socket took anything.
    pub(crate) fn write(&mut self) -> bool {
        let Some(transmit) = self.session.transmit(self.now_ns) else {
            return false;
        };
        let now = Written {
            bytes: [transmit.head, transmit.body].concat(),
            due_ns: transmit.due_ns,
            held_until_ns: transmit.held_until_ns,
            measured: transmit.measured,
        };
        let (began, done) = self.half.take().unwrap_or((now.clone(), 0));
        assert_eq!(began, now, "a half-written write changed");
        let done_now = (done + self.write_bytes.min(now.bytes.len())).min(now.bytes.len());
        self.deliver(&now.bytes[done..done_now]);
        if done_now == now.bytes.len() {
            self.session.sent(self.now_ns, &mut self.recorder);
            self.written.push(now);
        } else {
            self.half = Some((now, done_now));
        }
        true
    }

    pub(crate) fn deliver(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.server_fault.is_none() {
            if self.server.read_tls(&mut bytes).unwrap() == 0 {
                break;
            }
            if let Err(error) = self.server.process_new_packets() {
                self.server_fault = Some(error);
                break;
            }
            let mut plain = Vec::new();
            let _ = self.server.reader().read_to_end(&mut plain);
            self.server.writer().write_all(&plain).unwrap();
        }
    }

    /// What the server has to say.
    pub(crate) fn collect_answer(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.read_bytes) {
            if self.session.phase() == Phase::Ended {
                return;
            }
            self.session
                .received(self.now_ns, piece, &mut self.recorder);
        }
    }

    /// Exchanges bytes until both sides are silent.
    pub(crate) fn exchange(&mut self) {
        loop {
            let wrote = self.write();
            let bytes = self.collect_answer();
            self.receive(&bytes);
            if !wrote && bytes.is_empty() {
                return;
            }
        }
    }

    /// Until this many messages have been written in all, and sent back.
    pub(crate) fn echo(&mut self, messages: u64) {
        // The first write of the inner session is its hello.
        while self.seen.lock().unwrap().sent < messages + 1 {
            self.exchange();
            assert_ne!(self.session.phase(), Phase::Ended, "{:?}", self.seen);
            self.now_ns += 1_000_000;
        }
        self.exchange();
    }

    pub(crate) fn opened(client: &Client, server: Arc<ServerConfig>) -> Self {
        let mut rig = Self::new(client, server, 100);
        rig.now_ns = 0;
        rig.exchange();
        assert_eq!(rig.session.phase(), Phase::Open);
        rig
    }

    /// How the inner session lost its connection.
    pub(crate) fn gone(&self) -> Vec<Disconnect> {
        self.seen.lock().unwrap().gone.clone()
    }

    pub(crate) fn reasons(&self) -> Vec<(&str, u64)> {
        let reasons = self.recorder.ledger.reasons.iter();
        reasons
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect()
    }
}

/// The lengths of the records in these bytes, without their headers.
pub(crate) fn records(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length);
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty());
    lengths
}
