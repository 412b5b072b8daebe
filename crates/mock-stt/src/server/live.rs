//! A session over its socket.

use std::future::{Future as _, poll_fn};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use plimsoll_mock_server::frames::{Frames, Message, Violation};
use plimsoll_mock_server::http::{Connection, Gone};
use plimsoll_protocol::websocket::{Opcode, RawFrame, close};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Shared;
use crate::dialect::{Incoming, Out, Outgoing};
use crate::session::Session;

/// What one `read` takes.
const READ_BYTES: usize = 16 << 10;
/// While so much waits for a client that does not read, nothing more is read from it.
const OUT_MAX_BYTES: usize = 64 << 10;
/// A timer that is not needed.
const NEVER: Duration = Duration::from_secs(86_400);

/// How messages go over the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// In frames of a WebSocket.
    WebSocket,
    /// As bytes, one after the other.
    Stream,
}

impl Wire {
    /// Appends a message; true if it was the last one.
    fn append(self, outgoing: &Outgoing, out: &mut Vec<u8>) -> bool {
        let is_stream = self == Self::Stream;
        match outgoing {
            Outgoing::Text(text) if is_stream => out.extend_from_slice(text.as_bytes()),
            Outgoing::Binary(bytes) if is_stream => out.extend_from_slice(bytes),
            Outgoing::Text(text) => RawFrame::server(Opcode::Text, text.as_bytes()).append_to(out),
            Outgoing::Binary(bytes) => RawFrame::server(Opcode::Binary, bytes).append_to(out),
            Outgoing::Close(Some(code), reason) if !is_stream => {
                let payload = close::payload(*code, reason);
                RawFrame::server(Opcode::Close, &payload).append_to(out);
                return true;
            }
            Outgoing::Close(..) => return true,
        }
        false
    }
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The client is gone.
    Gone,
    /// One of the two closed it, and has been told.
    Closed,
    /// The client broke a rule of the protocol.
    Broken(Violation),
}

impl From<Violation> for Over {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

/// A session and its socket.
pub(super) struct Live {
    shared: Arc<Shared>,
    connection: Connection,
    /// How much of the connection's output the socket took.
    sent: usize,
    wire: Wire,
    /// What came and is no whole message yet.
    frames: Frames,
    session: Session,
    /// When something last came.
    heard_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Live {
    pub(super) fn new(
        shared: Arc<Shared>,
        connection: Connection,
        session: Session,
        wire: Wire,
    ) -> Self {
        let now = Instant::now();
        Self {
            shared,
            connection,
            sent: 0,
            wire,
            frames: Frames::default(),
            session,
            heard_at: now,
            timer: Box::pin(sleep_until(now + NEVER)),
        }
    }

    pub(super) async fn run(mut self) {
        let over = match self.begin() {
            Ok(()) => poll_fn(|context| self.poll(context)).await,
            Err(over) => over,
        };
        match over {
            // Whoever is gone is told nothing.
            Over::Gone => return,
            Over::Closed => {}
            Over::Broken(Violation(code)) => {
                let payload = close::payload(code, "");
                RawFrame::server(Opcode::Close, &payload).append_to(&mut self.connection.out);
            }
        }
        if self.connection.send(&mut self.sent).await.is_ok() {
            self.connection.linger().await;
        }
    }

    fn begin(&mut self) -> Result<(), Over> {
        let mut out = Out::default();
        self.session.open(&mut self.shared.book(), &mut out);
        self.write(&out)?;
        // What came with the upgrade.
        let mut ahead = std::mem::take(&mut self.connection.input);
        if ahead.is_empty() {
            return Ok(());
        }
        self.hear(&mut ahead)
    }

    /// Goes on as far as it can; ready when the session is over.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Over> {
        loop {
            let may_read = self.connection.out.len() < OUT_MAX_BYTES;
            if may_read && let Poll::Ready(over) = self.poll_hear(context) {
                return Poll::Ready(over);
            }
            if let Err(over) = self.hand_over() {
                return Poll::Ready(over);
            }
            match self.connection.poll_write(&mut self.sent, context) {
                Poll::Ready(Err(Gone)) => return Poll::Ready(Over::Gone),
                Poll::Ready(Ok(())) => {
                    self.connection.out.clear();
                    self.sent = 0;
                    if !may_read {
                        continue;
                    }
                }
                Poll::Pending => {}
            }
            let idle_at = self.idle_at();
            if Instant::now() >= idle_at {
                let mut out = Out::default();
                self.session.idle(&mut out);
                if let Err(over) = self.write(&out) {
                    return Poll::Ready(over);
                }
            }
            let due_at = self.session.due_ns().map(|ns| self.shared.at(ns));
            let wanted = due_at.map_or(idle_at, |due_at| due_at.min(idle_at));
            // It may fire for nothing, which costs less than to set it anew for each message.
            if wanted < self.timer.deadline() || self.timer.is_elapsed() {
                self.timer.as_mut().reset(wanted);
            }
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn idle_at(&self) -> Instant {
        let most = self.session.idle_ms().map(Duration::from_millis);
        self.heard_at + most.unwrap_or(NEVER)
    }

    /// Hears all that has come; ready when the session is over.
    fn poll_hear(&mut self, context: &mut Context<'_>) -> Poll<Over> {
        while self.connection.out.len() < OUT_MAX_BYTES {
            let mut bytes = [const { MaybeUninit::uninit() }; READ_BYTES];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            let read =
                ready!(Pin::new(&mut self.connection.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Over::Gone);
            }
            self.heard_at = Instant::now();
            if let Err(over) = self.hear(buffer.filled_mut()) {
                return Poll::Ready(over);
            }
        }
        Poll::Pending
    }

    fn hear(&mut self, bytes: &mut [u8]) -> Result<(), Over> {
        if self.wire == Wire::Stream {
            return self.take(Incoming::Bytes(bytes));
        }
        let mut frames = std::mem::take(&mut self.frames);
        let heard = frames.take(bytes, |message| self.took(&message));
        self.frames = frames;
        heard
    }

    fn took(&mut self, message: &Message<'_>) -> Result<(), Over> {
        match message {
            Message::Close(payload) => {
                // What cannot be read of it is not repeated.
                let payload = payload.get(..2).unwrap_or_default();
                RawFrame::server(Opcode::Close, payload).append_to(&mut self.connection.out);
                return Err(Over::Closed);
            }
            Message::Ping(payload) => {
                RawFrame::server(Opcode::Pong, payload).append_to(&mut self.connection.out);
            }
            Message::Pong => {}
            Message::Binary(bytes) => return self.take(Incoming::Binary(bytes)),
            Message::Text(text) => return self.take(Incoming::Text(text)),
        }
        Ok(())
    }

    fn take(&mut self, incoming: Incoming<'_>) -> Result<(), Over> {
        let mut out = Out::default();
        let shared = Arc::clone(&self.shared);
        let now_ns = shared.now_ns();
        let heard_ms = self
            .session
            .take(incoming, now_ns, &mut shared.book(), &mut out);
        let cost = shared.config.cpu_ms_per_s * 1e-3;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of one message")]
        compute(Duration::from_secs_f64(heard_ms as f64 * 1e-3 * cost));
        self.write(&out)
    }

    fn hand_over(&mut self) -> Result<(), Over> {
        let now_ns = self.shared.now_ns();
        if self.session.due_ns().is_none_or(|due_ns| due_ns > now_ns) {
            return Ok(());
        }
        let mut out = Out::default();
        self.session
            .hand_over(now_ns, &mut self.shared.book(), &mut out);
        self.write(&out)
    }

    fn write(&mut self, out: &Out) -> Result<(), Over> {
        out.0.iter().try_for_each(|outgoing| self.say(outgoing))
    }

    fn say(&mut self, outgoing: &Outgoing) -> Result<(), Over> {
        if self.wire.append(outgoing, &mut self.connection.out) {
            return Err(Over::Closed);
        }
        Ok(())
    }
}

/// Takes so much CPU time, as a recogniser would. It is the thread's own clock, so a core that is shared makes it last longer.
fn compute(cost: Duration) {
    if cost.is_zero() {
        return;
    }
    let clock = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let began = clock();
    while clock().saturating_sub(began) < cost {
        for _ in 0..100 {
            std::hint::spin_loop();
        }
    }
}
