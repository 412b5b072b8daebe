//! Audio in, results out, over a WebSocket.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use plimsoll_protocol::websocket::{Opcode, RawFrame, close};
use serde::Deserialize;
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::outage::{Cut, Wait};
use super::{Fate, Shared, result};
use crate::ear::{Blocks, Ear, Heard};
use crate::faults::{Fault, Outage};
use crate::profile::{Of, Provider};
use crate::stats::End;
use plimsoll_mock_server::frames::{Frames, Message, Violation};
use plimsoll_mock_server::http::{Answer, Connection, Gone};
use plimsoll_mock_server::request::Request;

const PROVIDER: Provider = Provider::DeepgramStt;

/// A session in which nothing came for so long is closed with 1011.
const IDLE: Duration = Duration::from_secs(10);
/// What one `read` takes: more than a second of 100 ms of audio.
const READ_BYTES: usize = 16 << 10;
/// While so much waits for a gateway that does not read, nothing more is read from it.
const OUT_MAX_BYTES: usize = 64 << 10;
/// The close code of a provider that cannot go on (RFC 6455, section 7.4.1: 1011).
const INTERNAL_ERROR: u16 = 1011;

/// Answers the upgrade, and hears the session.
pub(super) async fn open(shared: Arc<Shared>, mut connection: Connection, request: &Request) {
    // Whoever hangs does not even answer the upgrade.
    let waited = Wait::new(&shared, PROVIDER, &mut connection)
        .until(Instant::now())
        .await;
    let refused = match waited {
        Ok(_) => refusal(request),
        Err(Cut::Refused) => Some(Answer::line("503 Service Unavailable", "out on demand\n")),
        Err(Cut::Gone | Cut::Hung) => {
            shared.book().stats.session(PROVIDER, false);
            return connection.reset_when_closed();
        }
    };
    shared.book().stats.session(PROVIDER, refused.is_none());
    if let Some(answer) = refused {
        if connection.answer(&answer, false).await.is_ok() {
            connection.linger().await;
        }
        return;
    }
    connection.switch_to_websocket(request, None);
    let interim = request.parameter("interim_results") == Some("true");
    Listener::new(shared, connection, interim).run().await;
}

/// Why this is no session; the mock understands no other audio.
fn refusal(request: &Request) -> Option<Answer> {
    if request.websocket_key.is_none() {
        return Some(Answer {
            header: Some(("upgrade", "websocket")),
            ..Answer::line("426 Upgrade Required", "this is a WebSocket\n")
        });
    }
    let expected = [
        ("encoding", "linear16"),
        ("sample_rate", "16000"),
        ("channels", "1"),
    ];
    let mut wrong = expected
        .iter()
        .filter(|(name, value)| request.parameter(name) != Some(value));
    let (name, value) = wrong.next()?;
    Some(Answer::line(
        "400 Bad Request",
        format!("give {name}={value} in the address\n"),
    ))
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The gateway is gone.
    Gone,
    /// The gateway closed the session.
    Closed,
    /// The gateway asked for the end, and has all results.
    Asked,
    /// Nothing came.
    Idle,
    /// The gateway broke a rule of the protocol.
    Broken(Violation),
    /// A fault: an error and a close.
    Failed,
    /// A fault, or a provider that is out: a reset.
    Reset,
}

impl From<Violation> for Over {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

/// A result that is not handed over yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    heard: Heard,
    read_ns: u64,
    due: Instant,
    fault: Option<Fault>,
}

struct Listener {
    shared: Arc<Shared>,
    connection: Connection,
    /// How much of the connection's output the socket took.
    sent: usize,
    frames: Frames,
    ear: Ear,
    /// Whether results are wanted before an utterance is over.
    interim: bool,
    pending: VecDeque<Pending>,
    /// The gateway asked for the end.
    asked: bool,
    /// When something last came.
    heard_at: Instant,
    /// Since when the provider hangs.
    hangs_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

#[derive(Deserialize)]
struct Command<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
}

impl Listener {
    fn new(shared: Arc<Shared>, connection: Connection, interim: bool) -> Self {
        let now = Instant::now();
        Self {
            shared,
            connection,
            sent: 0,
            frames: Frames::default(),
            ear: Ear::default(),
            interim,
            pending: VecDeque::new(),
            asked: false,
            heard_at: now,
            hangs_since: None,
            timer: Box::pin(sleep_until(now + IDLE)),
        }
    }

    async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut changed = Box::pin(shared.changed.notified());
        // What came with the upgrade.
        let mut ahead = std::mem::take(&mut self.connection.input);
        let mut over = self.hear(&mut ahead).err();
        drop(ahead);
        while over.is_none() {
            let outage = shared.outage(PROVIDER);
            if outage == Some(Outage::Refuse) {
                over = Some(Over::Reset);
                break;
            }
            self.hang(outage == Some(Outage::Hang));
            over = poll_fn(|context| {
                if changed.as_mut().poll(context).is_ready() {
                    return Poll::Ready(None);
                }
                self.poll(context).map(Some)
            })
            .await;
            if over.is_none() {
                changed.set(shared.changed.notified());
            }
        }
        self.end(over.unwrap_or(Over::Gone)).await;
    }

    /// The provider hangs, or does not. While it did, time stood still for it.
    fn hang(&mut self, hangs: bool) {
        if hangs {
            self.hangs_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.hangs_since.take() {
            let hung = since.elapsed();
            self.heard_at += hung;
            for next in &mut self.pending {
                next.due += hung;
            }
        }
    }

    /// Goes on as far as it can; ready when the session is over.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Over> {
        // Whoever hangs does not notice either that the gateway leaves.
        if self.hangs_since.is_some() {
            return Poll::Pending;
        }
        loop {
            let may_read = self.connection.out.len() < OUT_MAX_BYTES;
            if may_read && let Poll::Ready(over) = self.poll_hear(context) {
                return Poll::Ready(over);
            }
            let now = Instant::now();
            if let Err(over) = self.hand_over(now) {
                return Poll::Ready(over);
            }
            match self.connection.poll_write(&mut self.sent, context) {
                Poll::Ready(Err(Gone)) => return Poll::Ready(Over::Gone),
                Poll::Ready(Ok(())) => {
                    self.connection.out.clear();
                    self.sent = 0;
                    if self.asked && self.pending.is_empty() {
                        return Poll::Ready(Over::Asked);
                    }
                    if !may_read {
                        continue;
                    }
                }
                Poll::Pending => {}
            }
            let idle_at = self.heard_at + IDLE;
            if now >= idle_at {
                return Poll::Ready(Over::Idle);
            }
            let wanted = self
                .pending
                .front()
                .map_or(idle_at, |next| next.due.min(idle_at));
            // It may fire for nothing, which costs less than to set it anew for each message.
            if wanted < self.timer.deadline() || self.timer.is_elapsed() {
                self.timer.as_mut().reset(wanted);
            }
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
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
                self.say(Opcode::Close, payload);
                return Err(Over::Closed);
            }
            Message::Ping(payload) => self.say(Opcode::Pong, payload),
            Message::Pong => {}
            // Whoever asked for the end has nothing more to say.
            Message::Binary(_) | Message::Text(_) if self.asked => {}
            Message::Binary(audio) => self.listen(audio),
            Message::Text(text) => {
                let command: Option<Command<'_>> = serde_json::from_str(text).ok();
                let kind = command.as_ref().map(|command| &*command.r#type);
                // Others are KeepAlive, and what this mock does not know.
                self.asked = kind == Some("CloseStream");
                if self.asked || kind == Some("Finalize") {
                    self.finalize();
                }
            }
        }
        Ok(())
    }

    fn listen(&mut self, audio: &[u8]) {
        let mut blocks = Blocks::default();
        let mut all = Vec::new();
        self.ear.hear(audio, &mut blocks, |heard| all.push(heard));
        let mut book = self.shared.book();
        book.stats.heard(PROVIDER, audio.len(), blocks);
        drop(book);
        for heard in all {
            self.answer(heard);
        }
    }

    fn finalize(&mut self) {
        if let Some(heard) = self.ear.finalize() {
            self.answer(heard);
        }
    }

    /// Results are made side by side and handed over in order. Only the last one of an utterance is a request, and can fail.
    fn answer(&mut self, heard: Heard) {
        if !heard.last && !self.interim {
            return;
        }
        let of = Of {
            provider: PROVIDER,
            vu: heard.vu,
            turn: heard.to,
            attempt: 1,
        };
        let Fate { latency, fault } = if heard.last {
            self.shared.book().stats.request(PROVIDER);
            self.shared.fate(&of)
        } else {
            self.shared.faultless(&of)
        };
        let read = Instant::now();
        let after = self.pending.back().map_or(read, |last| last.due);
        self.pending.push_back(Pending {
            heard,
            read_ns: Shared::now_ns(),
            due: after.max(read + latency),
            fault,
        });
    }

    /// Hands over the results that are due.
    fn hand_over(&mut self, now: Instant) -> Result<(), Over> {
        while let Some(next) = self.pending.pop_front_if(|next| next.due <= now) {
            self.finish(&next, now)?;
        }
        Ok(())
    }

    fn finish(&mut self, next: &Pending, now: Instant) -> Result<(), Over> {
        let Pending { heard, read_ns, .. } = *next;
        let (end, over) = match next.fault {
            Some(Fault::Fail) => (End::Failed, Err(Over::Failed)),
            Some(Fault::Drop) => (End::Dropped, Err(Over::Reset)),
            Some(Fault::Timeout) => (End::TimedOut, Ok(())),
            Some(Fault::Stall) => (End::Stalled, Ok(())),
            Some(Fault::RateLimit | Fault::Slow) | None => (End::Completed, Ok(())),
        };
        let handed_ns = Shared::now_ns();
        let mut book = self.shared.book();
        if heard.last {
            book.stats.end(PROVIDER, end);
        }
        if end != End::Completed {
            return over;
        }
        if heard.last {
            book.stats.finished(PROVIDER, heard.to - heard.from + 1);
            book.stats.answered(PROVIDER, handed_ns - read_ns);
        } else {
            book.stats.interim(PROVIDER);
        }
        book.stats.late(now - next.due);
        drop(book);
        let results = result::results(&heard, read_ns, handed_ns);
        self.say(Opcode::Text, results.as_bytes());
        Ok(())
    }

    fn say(&mut self, opcode: Opcode, payload: &[u8]) {
        RawFrame::server(opcode, payload).append_to(&mut self.connection.out);
    }

    async fn end(mut self, over: Over) {
        let unanswered = self
            .pending
            .drain(..)
            .filter(|next| next.heard.last)
            .count();
        for _ in 0..unanswered {
            self.shared.book().stats.end(PROVIDER, End::Cancelled);
        }
        let (text, code, reason) = match over {
            // Whoever is gone is told nothing.
            Over::Gone => return,
            Over::Reset => return self.connection.reset_when_closed(),
            Over::Closed => (None, None, ""),
            Over::Asked => (Some(result::metadata()), Some(close::NORMAL), ""),
            Over::Idle => (None, Some(INTERNAL_ERROR), "nothing came for 10 s"),
            Over::Broken(Violation(code)) => (None, Some(code), ""),
            Over::Failed => (
                Some(result::error()),
                Some(INTERNAL_ERROR),
                "failed on demand",
            ),
        };
        if let Some(text) = text {
            self.say(Opcode::Text, text.as_bytes());
        }
        if let Some(code) = code {
            self.say(Opcode::Close, &close::payload(code, reason));
        }
        if self.connection.send(&mut self.sent).await.is_ok() {
            self.connection.linger().await;
        }
    }
}
