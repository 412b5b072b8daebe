//! One session: a task that moves audio, texts and time between a client and its providers.

mod flood;
mod outbox;
mod queue;
mod voice;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rust_axum::websocket::{Error, Incoming, Limits, Violation, WebSocket};
use tokio::time::Sleep;

use crate::admission::Permit;
use crate::gateway::Gateway;
use crate::limits::{
    AUDIO_BYTES_MAX, BINARY_MESSAGE_BYTES_MAX, BLOCKED_TIMEOUT, CONFIG_TIMEOUT, TEXT_MESSAGE_BYTES_MAX,
};
use crate::messages::{self, ClientMessage, Config};
use crate::problem::{Kind, Problem};
use crate::recognizer::{Recognizer, Told};
use flood::Flood;
use outbox::Outbox;
use voice::Voice;

/// What a client may send, and how it is read: a message of 100 ms of audio in one piece.
pub const LIMITS: Limits = Limits {
    text_max: TEXT_MESSAGE_BYTES_MAX,
    binary_max: BINARY_MESSAGE_BYTES_MAX,
    read_buffer: 4 * 1024,
    write_buffer_max: 256 * 1024,
};

/// Messages taken from the socket before all else gets its turn, so that a flood starves nothing.
const MESSAGES_PER_TURN: usize = 8;
/// Pieces taken from each provider in a turn, likewise.
const PIECES_PER_TURN: usize = 8;

/// Close codes.
mod code {
    pub(super) const GOING_AWAY: u16 = 1001;
    pub(super) const PROTOCOL: u16 = 1002;
    pub(super) const NOT_UTF8: u16 = 1007;
    pub(super) const POLICY: u16 = 1008;
    pub(super) const TOO_LARGE: u16 = 1009;
}

/// How a session ended.
#[derive(Debug)]
enum End {
    /// By us, with this code.
    Closing(u16),
    /// By the client, with a close.
    ClosedByClient,
    /// By the client or the network, without one.
    Gone,
}

/// Serves one session to its end and closes its sockets.
pub async fn serve(socket: WebSocket, gateway: Arc<Gateway>, permit: Permit) {
    let mut session = Session::new(&gateway, socket, Instant::now());

    // Registers this task to be woken when draining begins. Polled this once only: the registration holds for as long
    // as the task lives, and polling it again would lock a list that all sessions share. The flag, which every turn looks
    // at, tells what the wake was for.
    let mut drain_wake = pin!(gateway.drain.wake.notified());
    poll_fn(|context| {
        let _ = drain_wake.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
    let end = poll_fn(|context| session.poll_turn(context)).await;

    session.voice.end(&mut session.outbox);
    let Session { socket, recognizer, .. } = session;
    // The next client may have the place before this one's close is through.
    drop(permit);
    let hang_up = async {
        match end {
            End::Closing(code) => socket.close(code).await,
            End::ClosedByClient => socket.acknowledge_close().await,
            End::Gone => drop(socket),
        }
    };
    let end_recognition = async {
        if let Some(recognizer) = recognizer {
            recognizer.close().await;
        }
    };
    tokio::join!(hang_up, end_recognition);
}

#[derive(Debug)]
enum Phase {
    /// Waits for a `config`.
    New {
        until: Instant,
    },
    /// Waits for speech-to-text.
    Connecting {
        stream_id: String,
    },
    Ready,
}

struct Session<'a> {
    gateway: &'a Arc<Gateway>,
    socket: WebSocket,
    phase: Phase,
    /// None before `config`, and without audio.
    recognizer: Option<Recognizer>,
    voice: Voice<'a>,
    outbox: Outbox,
    flood: Flood,
    /// When the client sent something last.
    heard_at: Instant,
    /// Since when the socket takes nothing, and what it had taken by then.
    blocked: Option<(Instant, u64)>,
    /// The session's one timer. It is set again only for an earlier time, or after it has fired: most times are put off
    /// again and again.
    timer: Pin<Box<Sleep>>,
    armed_for: Instant,
}

impl<'a> Session<'a> {
    fn new(gateway: &'a Arc<Gateway>, socket: WebSocket, now: Instant) -> Self {
        Self {
            gateway,
            socket,
            phase: Phase::New { until: now + CONFIG_TIMEOUT },
            recognizer: None,
            voice: Voice::new(gateway),
            outbox: Outbox::new(gateway.config.session.out_buffer_bytes),
            flood: Flood::default(),
            heard_at: now,
            blocked: None,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed_for: now,
        }
    }

    /// Does all that can be done now. A hand-written poll and not `select!`, since a `select!` loop makes, registers and
    /// drops the futures of all its branches for each message.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<End> {
        // What is read in one turn arrived at one time, as far as the gateway can know.
        let now = Instant::now();
        if let Poll::Ready(end) = self.poll_client(context, now) {
            // What was said about the messages before goes first, as far as the client takes it.
            let _ = self.poll_outbox(context);
            return Poll::Ready(end);
        }
        if self.move_on(context, now).is_err() {
            return Poll::Ready(End::Gone);
        }
        if let Poll::Ready(end) = self.poll_timer(context) {
            return Poll::Ready(end);
        }
        if let Some(give_up_at) = self.gateway.drain.give_up_at()
            && (self.is_quiet() || give_up_at <= now)
        {
            return Poll::Ready(End::Closing(code::GOING_AWAY));
        }
        Poll::Pending
    }

    /// Takes what the client sent.
    fn poll_client(&mut self, context: &mut Context<'_>, now: Instant) -> Poll<End> {
        for _ in 0..MESSAGES_PER_TURN {
            let incoming = match self.socket.poll_incoming(context) {
                Poll::Ready(incoming) => incoming,
                Poll::Pending => return Poll::Pending,
            };
            self.heard_at = now;
            let taken = match incoming {
                Incoming::Binary(audio) => self.on_audio(audio),
                Incoming::Text(text) => self.on_text(text.as_bytes(), now),
                Incoming::Ping | Incoming::Pong => Ok(()),
                Incoming::Violation(violation) => return Poll::Ready(End::Closing(close_code(violation))),
                Incoming::Closed => return Poll::Ready(End::ClosedByClient),
                Incoming::Gone => return Poll::Ready(End::Gone),
            };
            if let Err(problem) = taken
                && let Err(code) = self.bad_message(&problem, now)
            {
                return Poll::Ready(End::Closing(code));
            }
        }
        // There may be more: have another turn soon.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn on_audio(&mut self, audio: Bytes) -> Result<(), Problem> {
        self.check_ready()?;
        let recognizer = self.recognizer.as_mut().ok_or_else(without_audio)?;
        if audio.len() > AUDIO_BYTES_MAX {
            return Err(Problem::new(Kind::TooLarge, "audio of more than 5 MiB"));
        }
        if !audio.len().is_multiple_of(2) {
            return Err(Problem::new(Kind::BadMessage, "audio of an odd number of bytes"));
        }
        if !audio.is_empty() {
            self.gateway.metrics.audio_in.add(audio.len() as u64);
            recognizer.hear(audio);
        }
        Ok(())
    }

    fn on_text(&mut self, text: &[u8], now: Instant) -> Result<(), Problem> {
        match ClientMessage::parse(text)? {
            ClientMessage::Config(config) => self.configure(config, now),
            ClientMessage::Speak(speak) => {
                self.check_audio()?;
                self.voice.speak(speak, &mut self.outbox)
            }
            ClientMessage::Clear => {
                self.check_audio()?;
                self.voice.clear(&mut self.outbox);
                Ok(())
            }
        }
    }

    fn check_ready(&self) -> Result<(), Problem> {
        match self.phase {
            Phase::Ready => Ok(()),
            Phase::New { .. } => Err(Problem::new(Kind::NotReady, "send `config` first")),
            Phase::Connecting { .. } => Err(Problem::passing(Kind::NotReady, "wait for `ready`")),
        }
    }

    fn check_audio(&self) -> Result<(), Problem> {
        self.check_ready()?;
        if self.recognizer.is_none() { Err(without_audio()) } else { Ok(()) }
    }

    fn configure(&mut self, config: Config, now: Instant) -> Result<(), Problem> {
        if !matches!(self.phase, Phase::New { .. }) {
            return Err(Problem::new(Kind::BadConfig, "the session has its `config`"));
        }
        let stream_id = config.stream_id.unwrap_or_else(random_id);
        match config.audio {
            None => {
                self.outbox.say(messages::ready(&stream_id));
                self.phase = Phase::Ready;
            }
            Some(audio) => {
                let upstream = self.gateway.upstream();
                self.voice.configure(Arc::clone(&upstream), audio.tts);
                self.recognizer = Some(Recognizer::new(self.gateway, upstream, &audio.stt, now));
                self.phase = Phase::Connecting { stream_id };
            }
        }
        Ok(())
    }

    /// Says what was wrong with a message; too many of them end the session.
    fn bad_message(&mut self, problem: &Problem, now: Instant) -> Result<(), u16> {
        self.tell(problem);
        if let Phase::New { until } = &mut self.phase
            && matches!(problem.kind, Kind::BadConfig | Kind::Unsupported)
        {
            // Another `config` may come, and has as long.
            *until = now + CONFIG_TIMEOUT;
        }
        if self.flood.is_too_much(now) { Err(code::POLICY) } else { Ok(()) }
    }

    fn tell(&mut self, problem: &Problem) {
        self.gateway.metrics.error(problem.kind);
        self.outbox.say(messages::error(problem));
    }

    /// Hands over audio, and takes results.
    fn poll_recognizer(&mut self, context: &mut Context<'_>, now: Instant) {
        for _ in 0..PIECES_PER_TURN {
            let Some(recognizer) = &mut self.recognizer else { return };
            let Poll::Ready(told) = recognizer.poll(context, now) else { return };
            match told {
                Told::Ready => {
                    if let Phase::Connecting { stream_id } = std::mem::replace(&mut self.phase, Phase::Ready) {
                        self.outbox.say(messages::ready(&stream_id));
                    }
                }
                Told::Result { message, is_final, is_speech_final } => {
                    self.outbox.result(message, is_final, now);
                    self.voice.heard_final(is_final && !is_speech_final, now);
                }
                Told::Unready(problem) => {
                    self.tell(&problem);
                    self.recognizer = None;
                    self.phase = Phase::New { until: now + CONFIG_TIMEOUT };
                }
                Told::Problem(problem) => self.tell(&problem),
            }
        }
        context.waker().wake_by_ref();
    }

    /// Moves what the client asked for on its way.
    fn move_on(&mut self, context: &mut Context<'_>, now: Instant) -> Result<(), Error> {
        self.poll_recognizer(context, now);
        self.voice.poll(context, &mut self.outbox, PIECES_PER_TURN);
        self.poll_outbox(context)
    }

    /// Does what is due, and sets the timer for what comes next.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<End> {
        loop {
            let wake_at = self.wake_at();
            if wake_at < self.armed_for {
                self.armed_for = wake_at;
                self.timer.as_mut().reset(wake_at.into());
            }
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if let Some(code) = self.wake(now) {
                return Poll::Ready(End::Closing(code));
            }
            // What the wake has begun does nothing before it is polled.
            if self.move_on(context, now).is_err() {
                return Poll::Ready(End::Gone);
            }
            self.armed_for = self.wake_at();
            self.timer.as_mut().reset(self.armed_for.into());
        }
    }

    /// When the next thing is due.
    fn wake_at(&self) -> Instant {
        let until = match self.phase {
            Phase::New { until } => Some(until),
            Phase::Connecting { .. } | Phase::Ready => None,
        };
        let blocked = self.blocked.map(|(since, _)| since + BLOCKED_TIMEOUT);
        let recognizer = self.recognizer.as_ref().and_then(Recognizer::wake_at);
        let others = [until, blocked, recognizer, self.voice.wake_at(), self.gateway.drain.give_up_at()];
        others.into_iter().flatten().fold(self.heard_at + self.gateway.config.session.idle_timeout, Instant::min)
    }

    /// Does what is due; the code to close with, if that is it.
    fn wake(&mut self, now: Instant) -> Option<u16> {
        if self.heard_at + self.gateway.config.session.idle_timeout <= now
            || self.gateway.drain.give_up_at().is_some_and(|at| at <= now)
        {
            return Some(code::GOING_AWAY);
        }
        let late = matches!(self.phase, Phase::New { until } if until <= now);
        if late || self.blocked.is_some_and(|(since, _)| since + BLOCKED_TIMEOUT <= now) {
            return Some(code::POLICY);
        }
        if let Some(recognizer) = &mut self.recognizer {
            recognizer.wake(now);
        }
        self.voice.wake(now, &mut self.outbox);
        None
    }

    /// Writes messages for as long as the client takes them. Never waits: a client that does not read must not keep its
    /// own audio from being read.
    fn poll_outbox(&mut self, context: &mut Context<'_>) -> Result<(), Error> {
        loop {
            // Also what is not ours, such as a pong: a message is begun only when nothing is left of the one before.
            match self.socket.poll_flush(context) {
                Poll::Ready(flushed) => flushed?,
                Poll::Pending => {
                    let taken = self.socket.written_bytes();
                    if self.blocked.is_none_or(|(_, before)| before != taken) {
                        self.blocked = Some((Instant::now(), taken));
                    }
                    return Ok(());
                }
            }
            self.blocked = None;
            let Some(message) = self.outbox.next(Instant::now(), &self.gateway.metrics) else { return Ok(()) };
            if let Poll::Ready(sent) = self.socket.poll_send(context, message) {
                sent?;
            }
        }
    }

    /// Whether nothing plays, waits to play, or waits to be written.
    fn is_quiet(&self) -> bool {
        self.voice.is_quiet() && self.outbox.is_empty() && self.blocked.is_none()
    }
}

fn without_audio() -> Problem {
    Problem::new(Kind::NotReady, "the session is one without audio")
}

fn close_code(violation: Violation) -> u16 {
    match violation {
        Violation::Protocol => code::PROTOCOL,
        Violation::NotUtf8 => code::NOT_UTF8,
        Violation::TooLarge => code::TOO_LARGE,
    }
}

/// A UUID of version 4 (RFC 9562).
fn random_id() -> String {
    let id = fastrand::u128(..) & !(0xF << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
    let hex = format!("{id:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_are_uuids() {
        for _ in 0..100 {
            let id = random_id();
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "4", "{id}");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
        assert_ne!(random_id(), random_id());
    }
}
