//! One caller of the gateway of these tests: a loop over what happens to it.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_protocol::websocket::Opcode;
use serde_json::{Value, json};

use super::Defect;
use super::frames::{Out, read_all};
use super::gateway::Shared;
use super::talk::{Config, Stt, Tts};
use super::upstream::Sound;

/// What happens to a caller.
pub(super) enum Event {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    /// The client's close, with its payload.
    Closed(Vec<u8>),
    Broken(u16),
    Gone,
    SttOpen(u64),
    SttSaid(String),
    SttGone(u64),
    Sound(u64, Sound),
}

/// How a session ends.
pub(super) enum Over {
    Torn,
    Closed,
}

/// Where a session stands.
pub(super) enum State {
    Waiting,
    Opening(Instant),
    Ready { audio: bool },
}

pub(super) struct Caller {
    pub(super) shared: Arc<Shared>,
    pub(super) out: Arc<Out>,
    pub(super) events: Sender<Event>,
    pub(super) state: State,
    pub(super) base: String,
    pub(super) config: Config,
    pub(super) stt: Stt,
    pub(super) tts: Tts,
    bad: VecDeque<Instant>,
    heard: Instant,
    begun: Option<Instant>,
}

/// Runs a session to its end: whether it was torn.
pub(super) fn run(stream: TcpStream, rest: Vec<u8>, shared: &Arc<Shared>) -> bool {
    let (events, inbox) = mpsc::channel();
    let out = Arc::new(Out::default());
    let (reads, writes) = (stream.try_clone().expect("a stream"), stream);
    let (defect, to) = (shared.defect, events.clone());
    thread::spawn(move || read_all(reads, rest, defect, &to));
    let (waiting, to) = (Arc::clone(&out), events.clone());
    let blocked_s = if defect == Defect::KeepsBlocked {
        600
    } else {
        10
    };
    let limit = Duration::from_secs(blocked_s);
    thread::spawn(move || waiting.write_all(writes, limit, &to));
    let mut caller = Caller {
        shared: Arc::clone(shared),
        out: Arc::clone(&out),
        events,
        state: State::Waiting,
        base: shared.provider(),
        config: Config::default(),
        stt: Stt::default(),
        tts: Tts::default(),
        bad: VecDeque::new(),
        heard: Instant::now(),
        begun: Some(Instant::now()),
    };
    let over = caller.live(&inbox);
    caller.tts.drop_all(&caller.out, &caller.shared, true);
    if matches!(over, Over::Torn) {
        out.close_with(1001);
    }
    matches!(over, Over::Torn)
}

impl Caller {
    pub(super) fn is(&self, defect: Defect) -> bool {
        self.shared.defect == defect
    }

    pub(super) fn tell(&self, message: &Value) {
        self.out.push(Opcode::Text, message.to_string().as_bytes());
    }

    pub(super) fn tell_error(&self, kind: &str, retryable: bool, message: &str) {
        self.shared
            .count(&format!("voice_errors_total{{kind=\"{kind}\"}}"), 1.0);
        self.tell(
            &json!({"type": "error", "message": message, "kind": kind, "retryable": retryable}),
        );
    }

    fn close(&self, code: u16) -> Result<(), Over> {
        self.out.close_with(if self.is(Defect::WrongCloseCode) {
            1000
        } else {
            code
        });
        Err(Over::Closed)
    }

    fn live(&mut self, inbox: &Receiver<Event>) -> Over {
        loop {
            let step = match inbox.recv_timeout(Duration::from_millis(5)) {
                Ok(event) => self.took(event),
                Err(_) => Ok(()),
            };
            if let Err(over) = step.and_then(|()| self.look_at_clock()) {
                return over;
            }
        }
    }

    fn took(&mut self, event: Event) -> Result<(), Over> {
        if matches!(
            event,
            Event::Text(_) | Event::Binary(_) | Event::Ping(_) | Event::Pong
        ) {
            self.heard = Instant::now();
        }
        match event {
            Event::Text(text) => return self.text(&text),
            Event::Binary(audio) => return self.audio(audio),
            Event::Ping(payload) => self.out.push(Opcode::Pong, &payload),
            Event::Pong => {}
            Event::Closed(payload) => {
                self.out.close(&payload);
                return Err(Over::Closed);
            }
            Event::Broken(code) => return self.close(code),
            Event::Gone => return Err(Over::Torn),
            Event::SttOpen(generation) => self.stt_open(generation),
            Event::SttSaid(text) => self.stt_said(&text),
            Event::SttGone(generation) => self.stt_gone(generation),
            Event::Sound(speak, sound) => self.sound(speak, sound),
        }
        Ok(())
    }

    fn look_at_clock(&mut self) -> Result<(), Over> {
        let now = Instant::now();
        let settings = &self.shared.settings;
        let late = self
            .begun
            .is_some_and(|begun| now - begun > Duration::from_secs(10));
        if late && !self.is(Defect::NoConfigLimit) {
            return self.close(1008);
        }
        if now - self.heard > settings.idle && !self.is(Defect::NoIdle) {
            return self.close(1001);
        }
        if let Some(by) = self.shared.drain_by() {
            let quiet = self.tts.is_quiet() || self.is(Defect::DrainCuts);
            if quiet || now >= by {
                return self.close(1001);
            }
        }
        if self.shared.is_over() {
            return Err(Over::Torn);
        }
        if matches!(self.state, State::Opening(by) if now >= by) {
            self.state = State::Waiting;
            self.stt.abandon();
            self.tell_error("stt_failed", true, "STT did not open in time");
        }
        self.stt_clock(now);
        Ok(())
    }

    /// A message that breaks the contract.
    pub(super) fn bad(&mut self, kind: &str) -> Result<(), Over> {
        let now = Instant::now();
        self.bad.push_back(now);
        self.bad.retain(|at| now - *at < Duration::from_secs(10));
        self.tell_error(kind, false, "this is not in the contract");
        if self.bad.len() >= 100 && !self.is(Defect::NoFloodLimit) {
            return self.close(1008);
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Over> {
        let message: Value = match serde_json::from_str(text) {
            Err(_) if self.is(Defect::NotJsonCloses) => return self.close(1008),
            read => read.unwrap_or_default(),
        };
        let ready = matches!(self.state, State::Ready { audio: true });
        match message["type"].as_str() {
            Some("config") => self.config(&message),
            Some("speak" | "clear") if !ready => match self.is(Defect::SilentTooEarly) {
                true => Ok(()),
                false => self.bad("not_ready"),
            },
            Some("speak") => self.speak(&message),
            Some("clear") => {
                self.clear();
                Ok(())
            }
            _ if self.is(Defect::IgnoresTypes) && message.is_object() => Ok(()),
            _ => self.bad("bad_message"),
        }
    }

    fn audio(&mut self, audio: Vec<u8>) -> Result<(), Over> {
        if !matches!(self.state, State::Ready { audio: true }) {
            return self.bad("not_ready");
        }
        if audio.len() % 2 == 1 && !self.is(Defect::TakesOddAudio) {
            return self.bad("bad_message");
        }
        if audio.len() > 5 << 20 {
            return self.bad("too_large");
        }
        self.shared.count(
            "voice_audio_bytes_total{direction=\"in\"}",
            audio.len() as f64,
        );
        if !(self.is(Defect::IgnoresSmallAudio) && audio.len() < 4) {
            self.stt_hears(audio);
        }
        Ok(())
    }

    fn config(&mut self, message: &Value) -> Result<(), Over> {
        if matches!(self.state, State::Ready { .. }) && !self.is(Defect::TakesSecondConfig) {
            return self.bad("bad_config");
        }
        let config = match Config::read(message, self.shared.defect) {
            Ok(config) => config,
            Err(kind) => {
                self.bad(kind)?;
                return if self.is(Defect::DiesOfBadConfig) {
                    self.close(1008)
                } else {
                    Ok(())
                };
            }
        };
        self.begun = None;
        self.config = config;
        if self.config.audio || self.is(Defect::OpensWithoutAudio) {
            self.state = State::Opening(Instant::now() + self.shared.settings.ready);
            self.connect_stt();
        }
        if !self.config.audio || self.is(Defect::ReadyAtOnce) {
            self.ready();
        }
        Ok(())
    }

    pub(super) fn ready(&mut self) {
        self.state = State::Ready {
            audio: self.config.audio,
        };
        let number = self.shared.number.fetch_add(1, Ordering::Relaxed);
        let made = format!("{number:08x}-0000-4000-8000-{number:012x}");
        let made = if self.is(Defect::NoUuid) {
            "session-1".to_owned()
        } else {
            made
        };
        let stream_id = self.config.stream_id.clone().unwrap_or(made);
        self.tell(&json!({"type": "ready", "stream_id": stream_id, "protocol_version": "1.0"}));
    }

    pub(super) fn tell_complete(&self, speak: u64, provider_ms: f64, dropped_bytes: usize) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        let timestamp = u64::try_from(now.as_millis()).expect("before the end of time");
        self.tell(&json!({
            "type": "tts_playback_complete", "timestamp": timestamp, "speak": speak,
            "provider_ms": provider_ms, "dropped_bytes": dropped_bytes,
        }));
    }
}
