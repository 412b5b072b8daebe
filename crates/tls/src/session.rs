//! A session machine around another one: TLS, without I/O.

use std::io::{BufRead, IoSlice, Write};

use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit, Unconnected};
use rustls::{ClientConnection, ConnectionCommon, Error};

use crate::client::Client;
use crate::meter::{CpuClock, Meter};
use crate::reason::Why;
use crate::records::Records;

/// The most that is encrypted for one write, in bytes: two full records. A longer write of the inner session goes out in
/// parts, so a session holds no second copy of a long message that the target does not read.
const PART_MAX_BYTES: usize = 2 * (16 << 10);
/// The longest buffer for writes that a session keeps, in bytes. Thousands of sessions need not keep the room of the
/// longest.
const KEPT_BYTES: usize = 4 << 10;
/// The most that the library buffers of what came in, in bytes: a message of the handshake, and a record.
const BUFFERED_MAX_BYTES: usize = (64 << 10) + (18 << 10);

/// Another session, encrypted. Until the handshake is done, it is [`Phase::Opening`] and the inner session is not asked
/// for anything.
#[derive(Debug)]
pub struct TlsSession<S> {
    inner: S,
    client: Client,
    stage: Stage,
    /// The connection, from the attempt to connect on.
    tls: Option<Box<ClientConnection>>,
    /// Encrypted bytes that the socket has not wholly taken.
    out: Vec<u8>,
    /// What they are.
    current: Current,
    /// Bytes of the inner session's write that went out in earlier parts.
    taken: usize,
    records: Records,
    /// Bytes that came in and gave nothing yet.
    held_bytes: usize,
    farewell: Farewell,
    meter: Meter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the attempt to connect.
    Planned,
    /// In the handshake.
    Handshake,
    /// The inner session has its connection.
    Open,
    /// TLS failed: the inner session has lost its connection, and the target is still to be told why.
    Failing,
    /// Over.
    Over,
}

/// What is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    /// Messages of TLS itself.
    Own,
    /// A part of the inner session's write that others follow.
    Part { bytes: usize },
    /// The inner session's write, or its last part.
    Last {
        due_ns: Option<u64>,
        held_until_ns: Option<u64>,
        measured: bool,
    },
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Farewell {
    /// The trial goes on.
    NotYet,
    /// The trial is over: when the inner session has nothing more to say, the connection is closed.
    Due,
    /// The message that closes it is written, or about to be.
    Said,
}

impl<S: Session> TlsSession<S> {
    /// This session with its plan, over a connection of this client. The clock is that of the thread that drives it.
    #[must_use]
    pub fn new(inner: S, plan: &SessionPlan, client: Client, clock: CpuClock) -> Self {
        Self {
            inner,
            client,
            stage: Stage::Planned,
            tls: None,
            out: Vec::new(),
            current: Current::Own,
            taken: 0,
            records: Records::default(),
            held_bytes: 0,
            farewell: Farewell::NotYet,
            meter: Meter::new(clock, plan),
        }
    }

    /// The session that is encrypted.
    pub(crate) fn inner(&self) -> &S {
        &self.inner
    }

    /// The session that is encrypted.
    pub(crate) fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Puts the next bytes into `out`, which is empty: messages of TLS itself first, then what the inner session says.
    fn fill(&mut self, now_ns: u64) {
        let Some(tls) = self.tls.as_deref_mut() else {
            return;
        };
        self.current = Current::Own;
        if !tls.wants_write() && self.stage == Stage::Open {
            if let Some(transmit) = self.inner.transmit(now_ns) {
                let (part, current) = part_of(&transmit, self.taken);
                self.current = current;
                let out = &mut self.out;
                return self.meter.write(now_ns, || {
                    encrypt(tls, part);
                    take_all(tls, out);
                });
            }
            if self.farewell == Farewell::Due {
                self.farewell = Farewell::Said;
                tls.send_close_notify();
            }
        }
        let out = &mut self.out;
        match self.stage {
            Stage::Handshake => self.meter.shake(|| take_all(tls, out)),
            _ => take_all(tls, out),
        }
    }

    /// Whether the inner session goes on after it received what was decrypted.
    fn hand_over(&mut self, now_ns: u64, recorder: &mut Recorder<S::Claim>) {
        let Some(tls) = self.tls.as_deref_mut() else {
            return;
        };
        let mut reader = tls.reader();
        // Nothing to read is an error of kind WouldBlock.
        while let Ok(plain) = reader.fill_buf()
            && !plain.is_empty()
            && self.inner.phase() != Phase::Ended
        {
            self.inner.received(now_ns, plain, recorder);
            let count = plain.len();
            reader.consume(count);
            self.held_bytes = self.records.unfinished();
        }
    }

    /// TLS failed. The target is told why before the socket is closed, so that its log has the reason too.
    fn fail(&mut self, why: Why, now_ns: u64, recorder: &mut Recorder<S::Claim>) {
        if self.inner.phase() == Phase::Ended {
            return self.let_go();
        }
        let counted = recorder.ledger.reasons.get(why.reason).copied();
        let how = Disconnect::Tls(why.reason);
        self.inner.disconnected(now_ns, how, recorder);
        // A workload may have its own name for how a connection failed.
        if recorder.ledger.reasons.get(why.reason).copied() == counted {
            recorder.ledger.because(why.reason);
        }
        recorder.ledger.protocol_faults += u64::from(why.breaks_tls);
        let has_alert = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        if has_alert || !self.out.is_empty() {
            self.stage = Stage::Failing;
        } else {
            self.let_go();
        }
    }

    /// Releases what the connection held.
    fn let_go(&mut self) {
        self.stage = Stage::Over;
        self.tls = None;
        self.out = Vec::new();
        self.held_bytes = 0;
    }

    /// Decrypts the beginning of what came in; `None` if nothing more can come of it.
    fn decrypt(
        &mut self,
        bytes: &mut &[u8],
        now_ns: u64,
        recorder: &mut Recorder<S::Claim>,
    ) -> Option<()> {
        let tls = self.tls.as_deref_mut()?;
        let before = *bytes;
        let work = || {
            tls.read_tls(bytes)
                .map(|read| (read, tls.process_new_packets()))
        };
        let taken = if self.stage == Stage::Handshake {
            self.meter.shake(work)
        } else {
            let (taken, cost) = self.meter.read(now_ns, work);
            recorder.tls.reads.merge(&cost);
            taken
        };
        let Ok((read, processed)) = taken else {
            // The library's buffer is full of one message that never ends.
            self.fail(Why::of(&Error::PeerSentOversizedRecord), now_ns, recorder);
            return None;
        };
        self.records.pass(&before[..read]);
        self.held_bytes = (self.held_bytes + read).min(BUFFERED_MAX_BYTES);
        if self.stage == Stage::Handshake && !tls.is_handshaking() {
            self.stage = Stage::Open;
            recorder.tls.handshakes.merge(&self.meter.shaken());
            self.held_bytes = self.records.unfinished();
            self.inner.connected(now_ns, recorder);
        }
        // What came before a fault, or before the end, still counts.
        self.hand_over(now_ns, recorder);
        match processed {
            Err(error) => {
                self.fail(Why::of(&error), now_ns, recorder);
                None
            }
            Ok(state) if state.peer_has_closed() => {
                if self.inner.phase() != Phase::Ended {
                    self.inner
                        .disconnected(now_ns, Disconnect::Closed, recorder);
                }
                self.let_go();
                None
            }
            Ok(_) => (read > 0).then_some(()),
        }
    }
}

/// The two slices of a write from byte `taken` on, as far as one part goes, and what this part is.
fn part_of<'a>(transmit: &Transmit<'a>, taken: usize) -> ([&'a [u8]; 2], Current) {
    let head = &transmit.head[taken.min(transmit.head.len())..];
    let body = &transmit.body[taken.saturating_sub(transmit.head.len())..];
    let from_head = head.len().min(PART_MAX_BYTES);
    let from_body = body.len().min(PART_MAX_BYTES - from_head);
    let current = if from_head + from_body < head.len() + body.len() {
        Current::Part {
            bytes: from_head + from_body,
        }
    } else {
        Current::Last {
            due_ns: transmit.due_ns,
            held_until_ns: transmit.held_until_ns,
            measured: transmit.measured,
        }
    };
    ([&head[..from_head], &body[..from_body]], current)
}

/// Encrypts both slices, as one record where they fit into one.
fn encrypt(tls: &mut ClientConnection, [head, body]: [&[u8]; 2]) {
    let whole = head.len() + body.len();
    let slices = [IoSlice::new(head), IoSlice::new(body)];
    // The library takes up to 64 KiB, and refuses only after a fault that has ended the session.
    let written = tls.writer().write_vectored(&slices);
    debug_assert_eq!(written.ok(), Some(whole));
}

/// Takes all encrypted bytes that a connection has, of either side.
pub(crate) fn take_all<D>(tls: &mut ConnectionCommon<D>, out: &mut Vec<u8>) {
    while tls.wants_write() {
        // Writing to memory does not fail.
        if tls.write_tls(out).is_err() {
            return;
        }
    }
}

impl<S: Session> Session for TlsSession<S> {
    type Claim = S::Claim;

    fn phase(&self) -> Phase {
        match self.stage {
            // While it fails, it is neither open nor ended: the engine goes on writing.
            Stage::Planned | Stage::Handshake | Stage::Failing => Phase::Opening,
            Stage::Open => self.inner.phase(),
            Stage::Over => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Open => self.inner.next_due_ns(),
            Stage::Planned | Stage::Handshake | Stage::Failing | Stage::Over => None,
        }
    }

    fn owed(&self, now_ns: u64) -> u64 {
        match self.stage {
            Stage::Open => self.inner.owed(now_ns),
            Stage::Planned | Stage::Handshake | Stage::Failing | Stage::Over => 0,
        }
    }

    fn connecting(&mut self, now_ns: u64, recorder: &mut Recorder<Self::Claim>) {
        self.inner.connecting(now_ns, recorder);
        self.let_go();
        self.records = Records::default();
        self.taken = 0;
        self.meter.begin();
        let client = &self.client;
        match self.meter.shake(|| client.connection()) {
            Ok(connection) => {
                self.tls = Some(Box::new(connection));
                self.stage = Stage::Handshake;
            }
            // It has no random numbers, for example.
            Err(_) => {
                recorder.client_fault("TLS");
                self.fail(Why::NOT_BEGUN, now_ns, recorder);
            }
        }
    }

    fn woke(&mut self, now_ns: u64, recorder: &mut Recorder<Self::Claim>) {
        if self.stage == Stage::Open {
            self.inner.woke(now_ns, recorder);
        }
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        // The inner session may have ended the connection itself.
        self.let_go();
        let next = self.inner.unconnected(now_ns);
        if next != Unconnected::Over {
            self.stage = Stage::Planned;
        }
        next
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        if self.out.is_empty() {
            self.fill(now_ns);
        }
        let (due_ns, held_until_ns, measured) = match self.current {
            Current::Own | Current::Part { .. } => (None, None, false),
            Current::Last {
                due_ns,
                held_until_ns,
                measured,
            } => (due_ns, held_until_ns, measured),
        };
        (!self.out.is_empty()).then_some(Transmit {
            head: &self.out,
            body: &[],
            due_ns,
            held_until_ns,
            measured,
        })
    }

    fn dues(&self) -> &[u64] {
        match self.current {
            Current::Last { .. } => self.inner.dues(),
            Current::Own | Current::Part { .. } => &[],
        }
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Self::Claim>) {
        self.out.clear();
        if self.out.capacity() > KEPT_BYTES {
            self.out = Vec::new();
        }
        if self.stage == Stage::Failing {
            if !self.tls.as_ref().is_some_and(|tls| tls.wants_write()) {
                self.let_go();
            }
            return;
        }
        recorder.tls.writes.merge(&self.meter.written());
        match self.current {
            Current::Own => {}
            Current::Part { bytes } => self.taken += bytes,
            Current::Last { .. } => {
                self.taken = 0;
                self.inner.sent(write_ns, recorder);
            }
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Self::Claim>) {
        let mut rest = bytes;
        while !rest.is_empty()
            && matches!(self.stage, Stage::Handshake | Stage::Open)
            && self.decrypt(&mut rest, now_ns, recorder).is_some()
        {}
    }

    /// What the library buffers of what came in, what is written, and what the inner session holds.
    fn unread_max_bytes(&self) -> Option<u64> {
        self.inner.unread_max_bytes()
    }

    fn reads_bytes_per_s(&self) -> Option<u32> {
        self.inner.reads_bytes_per_s()
    }

    fn held_bytes(&self) -> usize {
        self.inner.held_bytes() + self.held_bytes + self.out.len()
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Self::Claim>) {
        // One whose TLS failed has lost its connection already.
        if self.stage != Stage::Failing && self.stage != Stage::Over {
            self.inner.disconnected(now_ns, how, recorder);
        }
        self.let_go();
    }

    fn settled(&self) -> bool {
        self.stage == Stage::Failing || self.inner.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Self::Claim>) {
        self.inner.finish(now_ns, recorder);
        self.farewell = Farewell::Due;
    }
}
