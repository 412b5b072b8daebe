//! One session: a client, what hears it and what answers it. One task, which waits for whichever comes first.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::admission::Slot;
use crate::ear::{Ear, Heard};
use crate::exact::Timer;
use crate::gateway::{Drain, Gateway};
use crate::lies::fiction::{self, FalseEar};
use crate::lies::{Lie, result};
use crate::messages::{self, Complaint, SessionConfig, Speak, SttResult, TtsConfig};
use crate::metrics;
use crate::mouth::{Dropped, Mouth};
use crate::outgoing::Outgoing;
use crate::reply::{Event, Said};
use crate::socket::{Socket, accepted, linger};
use crate::stt::Stt;

const AUDIO_MAX_BYTES: usize = 5 << 20;
/// Nothing else is due for so long.
const NEVER: Duration = Duration::from_secs(3600);

/// Serves a client whose upgrade was granted, until it ends.
pub(crate) async fn serve(gateway: Arc<Gateway>, slot: Slot, upgraded: Upgraded) {
    gateway.metrics.add(metrics::SESSIONS, &[], 1);
    let mut session = Session::new(Arc::clone(&gateway), accepted(upgraded).await);
    let end = session.run().await;
    gateway.callers.leave(session.number);
    session.close(end).await;
    drop(slot);
}

/// How a session ends.
enum End {
    /// The client is gone.
    Gone,
    Close(CloseCode, &'static str),
}

type Step = Result<(), End>;

/// How far a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    WithoutAudio,
    Ready,
    /// The liar says nothing any more.
    Mute,
}

/// What waits to go out.
#[derive(Debug)]
enum Out {
    Audio(Bytes),
    /// Of another caller's reply.
    Foreign(Bytes),
    Complete,
    Failed(&'static str),
}

struct Session {
    gateway: Arc<Gateway>,
    number: u64,
    socket: Socket,
    stage: Stage,
    ear: Ear,
    mouth: Mouth,
    voice: Option<TtsConfig>,
    place: String,
    /// Results as texts, and whether each is final.
    results: Outgoing<(bool, String)>,
    replies: Outgoing<Out>,
    timer: Timer,
    foreign: mpsc::UnboundedReceiver<Bytes>,
    drain: watch::Receiver<Drain>,
    /// `close_session`: when.
    ends_at: Option<Instant>,
}

impl Session {
    fn new(gateway: Arc<Gateway>, socket: Socket) -> Self {
        let (sender, foreign) = mpsc::unbounded_channel();
        let stage = if gateway.lies.is(Lie::OnlyUpgrade) { Stage::Mute } else { Stage::New };
        Self {
            number: gateway.callers.enter(sender),
            socket,
            stage,
            ear: Ear::Deaf,
            mouth: Mouth::default(),
            voice: None,
            place: gateway.place(),
            results: Outgoing::new(),
            replies: Outgoing::new(),
            timer: Timer::default(),
            foreign,
            drain: gateway.drain.subscribe(),
            ends_at: None,
            gateway,
        }
    }

    async fn run(&mut self) -> End {
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
        }
    }

    /// Does what is due, and then the next thing that comes.
    async fn step(&mut self) -> Step {
        self.write_due().await?;
        self.begin_and_end().await?;
        let out = [self.results.due(), self.replies.due()].into_iter().flatten().min();
        let others = [self.ear.keep_alive_at(), self.mouth.stops_at(), self.ends_at];
        let wake = others.into_iter().flatten().min().unwrap_or_else(|| Instant::now() + NEVER);
        tokio::select! {
            message = self.socket.next() => self.took(message).await,
            heard = self.ear.next() => self.heard(heard).await,
            event = self.mouth.next() => {
                self.said(event);
                Ok(())
            }
            Some(audio) = self.foreign.recv() => {
                self.replies.push(Instant::now(), Out::Foreign(audio));
                Ok(())
            }
            () = self.timer.until(out.unwrap_or(wake)), if out.is_some() => Ok(()),
            () = tokio::time::sleep_until(wake.into()) => Ok(()),
            _ = self.drain.changed() => Ok(()),
        }
    }

    async fn write_due(&mut self) -> Step {
        loop {
            let now = Instant::now();
            if let Some((is_final, text)) = self.results.next(now) {
                let is_final = if is_final { "true" } else { "false" };
                self.gateway.metrics.add(metrics::RESULTS, &[is_final], 1);
                self.send(Message::text(text)).await?;
            } else if let Some(out) = self.replies.next(now) {
                self.write(out).await?;
            } else {
                return Ok(());
            }
        }
    }

    async fn write(&mut self, out: Out) -> Step {
        match out {
            Out::Audio(audio) | Out::Foreign(audio) => {
                let gateway = Arc::clone(&self.gateway);
                let _turn = gateway.process.turn_to_write(&gateway.lies).await;
                gateway.metrics.add(metrics::AUDIO_BYTES, &["out"], audio.len() as u64);
                self.send(Message::Binary(audio)).await
            }
            Out::Complete => {
                let Some((number, provider_ms)) = self.mouth.finish() else { return Ok(()) };
                self.gateway.metrics.add(metrics::SPEAKS, &["complete"], 1);
                let claimed_ms = self.gateway.lies.claimed_ms(provider_ms);
                self.send(Message::text(messages::playback_complete(number, claimed_ms, unix_ms()))).await
            }
            Out::Failed(kind) => {
                self.mouth.finish();
                self.gateway.metrics.add(metrics::SPEAKS, &["failed"], 1);
                self.error(kind, "the provider gave no whole reply", true).await
            }
        }
    }

    /// What nobody else's word begins or ends: the next reply, a clear that was ignored, the session.
    async fn begin_and_end(&mut self) -> Step {
        let now = Instant::now();
        if self.mouth.stop(now) {
            self.dropped(Dropped { speaks: 1, playing: true });
        }
        if let Some(voice) = &self.voice {
            self.mouth.begin(&self.gateway, voice, &self.place, self.number);
        }
        self.ear.keep_alive().await;
        if self.ends_at.is_some_and(|at| at <= now) {
            return Err(End::Close(CloseCode::Normal, "that is all"));
        }
        let is_quiet = self.mouth.is_quiet() && self.results.is_empty() && self.replies.is_empty();
        match *self.drain.borrow() {
            Drain::Now => Err(End::Close(CloseCode::Away, "the gateway ends")),
            Drain::WhenQuiet if is_quiet => Err(End::Close(CloseCode::Away, "the gateway ends")),
            Drain::WhenQuiet | Drain::No => Ok(()),
        }
    }

    async fn took(&mut self, message: Option<Result<Message, Error>>) -> Step {
        match message {
            None | Some(Ok(Message::Close(_))) => Err(End::Gone),
            Some(Err(error)) => Err(end_of(&error)),
            Some(Ok(_)) if self.stage == Stage::Mute => Ok(()),
            Some(Ok(Message::Text(text))) => self.text(&text).await,
            Some(Ok(Message::Binary(audio))) => self.audio(audio).await,
            // The library answers pings.
            Some(Ok(_)) => Ok(()),
        }
    }

    async fn text(&mut self, text: &str) -> Step {
        match messages::parse(text) {
            Err(complaint) => self.complain(&complaint).await,
            Ok(messages::Message::Config(config)) if self.stage == Stage::New => self.open(*config).await,
            Ok(messages::Message::Config(_)) => {
                self.complain(&Complaint("bad_config", "the session has its config".to_owned())).await
            }
            Ok(_) if self.stage != Stage::Ready => self.complain(&not_ready()).await,
            Ok(messages::Message::Speak(speak)) => {
                self.speak(speak);
                Ok(())
            }
            Ok(messages::Message::Clear) => {
                let lies = &self.gateway.lies;
                let goes_on = lies.is(Lie::IgnoreClear).then(|| lies.plan.duration());
                let dropped = self.mouth.clear(goes_on);
                self.dropped(dropped);
                Ok(())
            }
        }
    }

    fn speak(&mut self, speak: Speak) {
        let dropped = self.mouth.speak(speak);
        self.dropped(dropped);
    }

    fn dropped(&mut self, dropped: Dropped) {
        if dropped.playing {
            self.replies.retain(|out| matches!(out, Out::Foreign(_)));
        }
        self.gateway.metrics.add(metrics::SPEAKS, &["dropped"], dropped.speaks);
    }

    async fn open(&mut self, config: SessionConfig) -> Step {
        let stream_id = config.stream_id.clone().unwrap_or_else(uuid);
        self.stage = match (config.stt_config, config.tts_config) {
            _ if self.gateway.lies.is(Lie::OnlyReady) => Stage::Mute,
            (Some(stt), Some(tts)) if config.audio => {
                let opening = Stt::open(Arc::clone(&self.gateway), self.place.clone(), stt);
                self.ear = if fiction::is_told(&self.gateway.lies) {
                    Ear::False(FalseEar::new(&self.gateway.lies))
                } else if self.gateway.lies.is(Lie::EarlyReady) {
                    let later = self.gateway.lies.plan.duration();
                    let opening = async move {
                        tokio::time::sleep(later).await;
                        opening.await
                    };
                    Ear::Connecting(Box::pin(opening), Vec::new())
                } else if let Some(stt) = opening.await {
                    Ear::Provider(Box::new(stt))
                } else {
                    return self.error("stt_failed", "the provider that hears cannot be reached", true).await;
                };
                self.voice = Some(tts);
                Stage::Ready
            }
            _ => Stage::WithoutAudio,
        };
        self.gateway.process.session_started();
        if self.gateway.lies.strikes(Lie::CloseSession) {
            self.ends_at = Some(Instant::now() + self.gateway.lies.plan.after());
        }
        self.send(Message::text(messages::ready(&stream_id))).await
    }

    async fn audio(&mut self, audio: Bytes) -> Step {
        let complaint = if audio.len() > AUDIO_MAX_BYTES {
            Complaint("too_large", format!("audio of over {AUDIO_MAX_BYTES} bytes"))
        } else if audio.len() % 2 == 1 {
            Complaint("bad_message", "audio of an odd length".to_owned())
        } else if self.stage == Stage::Ready {
            let Gateway { process, lies, admission, metrics, .. } = &*self.gateway;
            process.message_came(lies, admission.sessions());
            metrics.add(metrics::AUDIO_BYTES, &["in"], audio.len() as u64);
            for result in self.ear.hear(audio).await {
                self.result(&result);
            }
            return Ok(());
        } else {
            not_ready()
        };
        self.complain(&complaint).await
    }

    async fn heard(&mut self, heard: Heard) -> Step {
        match heard {
            Heard::Result(result) => {
                self.result(&result);
                Ok(())
            }
            Heard::Connected(mut stt, kept) => {
                for audio in kept {
                    stt.hear(audio).await;
                }
                self.ear = Ear::Provider(stt);
                Ok(())
            }
            Heard::Lost => {
                self.ear = Ear::Deaf;
                self.error("stt_failed", "the provider that hears is gone", false).await
            }
        }
    }

    fn result(&mut self, result: &SttResult) {
        let lies = &self.gateway.lies;
        let due = Instant::now() + lies.result_delay(self.gateway.admission.sessions());
        for text in result::texts(lies, result) {
            self.results.push(due, (result.is_final, text));
        }
    }

    fn said(&mut self, event: Event) {
        let out = match event.said {
            Said::Begins(_) => return,
            Said::Audio(audio) => Out::Audio(audio),
            Said::Complete => Out::Complete,
            Said::Failed(kind) => Out::Failed(kind),
        };
        self.replies.push(event.due, out);
    }

    async fn complain(&mut self, Complaint(kind, message): &Complaint) -> Step {
        self.error(kind, message, false).await
    }

    async fn error(&mut self, kind: &'static str, message: &str, retryable: bool) -> Step {
        self.gateway.metrics.add(metrics::ERRORS, &[kind], 1);
        self.send(Message::text(messages::error(kind, message, retryable))).await
    }

    async fn send(&mut self, message: Message) -> Step {
        self.socket.send(message).await.map_err(|_| End::Gone)
    }

    async fn close(mut self, end: End) {
        self.gateway.metrics.add(metrics::SPEAKS, &["dropped"], self.mouth.open());
        self.mouth = Mouth::default();
        self.ear.close().await;
        let frame = match end {
            End::Gone => None,
            End::Close(code, reason) => Some(CloseFrame { code, reason: reason.into() }),
        };
        // A client that is gone is told nothing.
        let _ = self.socket.close(frame).await;
        linger(&mut self.socket).await;
    }
}

fn not_ready() -> Complaint {
    Complaint("not_ready", "the session is not ready for it".to_owned())
}

fn end_of(error: &Error) -> End {
    match error {
        Error::Capacity(_) => End::Close(CloseCode::Size, "too long"),
        Error::Utf8(_) => End::Close(CloseCode::Invalid, "not UTF-8"),
        Error::Protocol(_) => End::Close(CloseCode::Protocol, "not a WebSocket"),
        _ => End::Gone,
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A name for a session that has none.
fn uuid() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    read.map_or_else(|_| format!("session-{}", unix_ms()), |text| text.trim().to_owned())
}
