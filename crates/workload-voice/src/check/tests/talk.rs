//! What a caller of the gateway of these tests says and hears: recognition and replies.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Defect;
use super::caller::{Caller, Event, State};
use super::frames::Out;
use super::gateway::Shared;
use super::upstream::{self, Cancel, Order, Sound};

/// A `config` that was read.
#[derive(Default)]
pub(super) struct Config {
    pub(super) audio: bool,
    pub(super) stream_id: Option<String>,
    stt: Value,
    tts: Value,
}

impl Config {
    /// Reads it; the error is the kind of the answer.
    pub(super) fn read(message: &Value, defect: Defect) -> Result<Self, &'static str> {
        let bad = "bad_config";
        let audio = message
            .get("audio")
            .map_or(Some(true), Value::as_bool)
            .ok_or(bad)?;
        let stream_id = message
            .get("stream_id")
            .map(|id| id.as_str().ok_or(bad))
            .transpose()?;
        if stream_id.is_some_and(|id| id.len() > 256) {
            return Err(bad);
        }
        let known = ["type", "audio", "stream_id", "stt_config", "tts_config"];
        let mut fields = message.as_object().ok_or(bad)?.keys();
        if defect == Defect::RefusesUnknownFields && fields.any(|field| !known.contains(&&**field))
        {
            return Err(bad);
        }
        let (stt, tts) = (&message["stt_config"], &message["tts_config"]);
        if audio {
            let texts = ["provider", "language", "encoding", "model"];
            let numbers = ["sample_rate", "channels"];
            let right = texts.iter().all(|name| stt[*name].is_string())
                && numbers.iter().all(|name| stt[*name].is_number())
                && stt["punctuation"].is_boolean()
                && ["provider", "model"]
                    .iter()
                    .all(|name| tts[*name].is_string());
            if !right {
                return Err(bad);
            }
            let speakers = ["deepgram", "elevenlabs", "openai", "cartesia"];
            let speaks = speakers.iter().any(|known| tts["provider"] == *known);
            let format = tts
                .get("audio_format")
                .is_none_or(|format| format == "linear16");
            if stt["provider"] != "deepgram" || stt["encoding"] != "linear16" || !speaks || !format
            {
                return Err("unsupported");
            }
        }
        Ok(Self {
            audio,
            stream_id: stream_id.map(str::to_owned),
            stt: stt.clone(),
            tts: tts.clone(),
        })
    }
}

/// A caller's connection of recognition.
#[derive(Default)]
pub(super) struct Stt {
    generation: u64,
    audio: Option<Sender<Vec<u8>>>,
    open: bool,
    tries: u32,
    again_at: Option<Instant>,
    buffer: VecDeque<Vec<u8>>,
    dropped_bytes: usize,
    forced_at: Option<Instant>,
    messages: u64,
}

impl Stt {
    /// Whatever comes of it is nobody's any more.
    pub(super) fn abandon(&mut self) {
        self.generation += 1;
        self.audio = None;
    }

    fn keep(&mut self, audio: Vec<u8>, most: usize) {
        self.buffer.push_back(audio);
        while self.buffer.iter().map(Vec::len).sum::<usize>() > most {
            self.dropped_bytes += self.buffer.pop_front().map_or(0, |oldest| oldest.len());
        }
    }
}

impl Caller {
    pub(super) fn connect_stt(&mut self) {
        self.stt.abandon();
        let word = |name: &str| {
            self.config.stt[name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let path = format!(
            "/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true&model={}&language={}&punctuate={}",
            word("model"),
            word("language"),
            self.config.stt["punctuation"]
        );
        let (sender, audio) = mpsc::channel();
        self.stt.audio = Some(sender);
        let where_to = (self.base.clone(), path, self.shared.settings.key.clone());
        let pong = match self.is(Defect::NoTimeouts) {
            true => Duration::from_secs(600),
            false => self.shared.settings.pong,
        };
        let (generation, to) = (self.stt.generation, self.events.clone());
        thread::spawn(move || upstream::listen(where_to, pong, generation, &audio, &to));
    }

    pub(super) fn stt_open(&mut self, generation: u64) {
        if generation != self.stt.generation {
            return;
        }
        self.stt.open = true;
        if matches!(self.state, State::Opening(_)) {
            return self.ready();
        }
        let buffer = std::mem::take(&mut self.stt.buffer);
        for audio in buffer {
            self.stt_hears(audio);
        }
        self.stt.tries = 0;
        self.tell_dropped();
    }

    fn tell_dropped(&mut self) {
        let dropped_ms = std::mem::take(&mut self.stt.dropped_bytes) / 32;
        if dropped_ms > 0 {
            self.tell_error(
                "audio_dropped",
                false,
                &format!("{dropped_ms} ms of audio were dropped"),
            );
        }
    }

    pub(super) fn stt_gone(&mut self, generation: u64) {
        if generation != self.stt.generation {
            return;
        }
        if matches!(self.state, State::Opening(_)) {
            self.state = State::Waiting;
            return self.tell_error("stt_failed", true, "STT refused");
        }
        if std::mem::take(&mut self.stt.open) {
            self.stt.tries = 0;
            self.tell_error("stt_lost", true, "STT is away");
            if self.is(Defect::SttLossEndsReply) {
                self.tts.drop_all(&self.out, &self.shared, true);
            }
        }
        if self.stt.tries == 5 && !self.is(Defect::TriesForever) {
            self.stt.audio = None;
            self.tell_error("stt_failed", false, "STT is gone");
            return self.tell_dropped();
        }
        let doublings = if self.is(Defect::TriesForever) {
            0
        } else {
            self.stt.tries
        };
        self.stt.again_at = Some(Instant::now() + Duration::from_millis(100) * (1 << doublings));
    }

    pub(super) fn stt_clock(&mut self, now: Instant) {
        if self.stt.again_at.is_some_and(|at| now >= at) {
            self.stt.again_at = None;
            self.stt.tries += 1;
            self.connect_stt();
        }
        if self.stt.forced_at.is_some_and(|at| now >= at) {
            self.stt.forced_at = None;
            self.tell_result("", (true, true), 0.0);
        }
    }

    pub(super) fn stt_hears(&mut self, audio: Vec<u8>) {
        self.stt.messages += 1;
        let often = match self.stt.messages.is_multiple_of(10) {
            true if self.is(Defect::DoublesAudio) => 2,
            _ => 1,
        };
        for _ in 0..often {
            match &self.stt.audio {
                Some(to) if self.stt.open => drop(to.send(audio.clone())),
                _ if self.is(Defect::NoAudioBuffer) => {}
                _ => self
                    .stt
                    .keep(audio.clone(), self.shared.settings.audio_buffer_bytes),
            }
        }
    }

    pub(super) fn stt_said(&mut self, text: &str) {
        let said: Value = serde_json::from_str(text).unwrap_or_default();
        if said["type"] != "Results" {
            return;
        }
        let best = &said["channel"]["alternatives"][0];
        let flag = |name: &str| said[name].as_bool().unwrap_or_default();
        let flags = (flag("is_final"), flag("speech_final"));
        let forced = flags == (true, false) && !self.is(Defect::NoForcedFinal);
        self.stt.forced_at = forced.then(|| Instant::now() + Duration::from_secs(5));
        let mut transcript = best["transcript"].as_str().unwrap_or_default().to_owned();
        if self.is(Defect::MixesCallers) {
            let mut mixed = self.shared.mixed.lock().expect("sound");
            transcript = mixed.replace(transcript.clone()).unwrap_or(transcript);
        }
        self.tell_result(
            &transcript,
            flags,
            best["confidence"].as_f64().unwrap_or_default(),
        );
    }

    fn tell_result(
        &self,
        transcript: &str,
        (is_final, speech_final): (bool, bool),
        confidence: f64,
    ) {
        let counted = if self.is(Defect::Miscounts) { 2.0 } else { 1.0 };
        self.shared.count(
            &format!("voice_results_total{{final=\"{is_final}\"}}"),
            counted,
        );
        let speech_final = if self.is(Defect::MixesFlags) {
            is_final
        } else {
            speech_final
        };
        self.tell(&json!({
            "type": "stt_result", "transcript": transcript, "is_final": is_final,
            "is_speech_final": speech_final, "confidence": confidence, "provider_ms": 1.5,
        }));
    }
}

/// A caller's replies.
#[derive(Default)]
pub(super) struct Tts {
    speaks: u64,
    playing: Option<Playing>,
    waiting: VecDeque<Speak>,
    /// One defect drops the beginning of a reply behind a `clear`.
    cleared: bool,
}

struct Speak {
    number: u64,
    text: String,
    interruptible: bool,
}

struct Playing {
    number: u64,
    interruptible: bool,
    cancel: Cancel,
    provider_ms: f64,
    dropped_bytes: usize,
}

impl Tts {
    pub(super) fn is_quiet(&self) -> bool {
        self.playing.is_none() && self.waiting.is_empty()
    }

    /// Drops what plays and what waits, as far as that may be.
    pub(super) fn drop_all(&mut self, out: &Out, shared: &Shared, all: bool) {
        self.waiting.retain(|speak| !(speak.interruptible || all));
        let may_go = |playing: &Playing| playing.interruptible || all;
        if let Some(playing) = self.playing.take_if(|playing| may_go(playing)) {
            if shared.defect != Defect::KeepsRequest {
                playing.cancel.cancel();
            }
            out.drop_reply(playing.number);
            shared.count("voice_speaks_total{outcome=\"dropped\"}", 1.0);
        }
    }
}

impl Caller {
    pub(super) fn speak(&mut self, message: &Value) -> Result<(), super::caller::Over> {
        let flag = |name: &str| message.get(name).map_or(Some(true), Value::as_bool);
        let text = message["text"].as_str().filter(|text| !text.is_empty());
        let (Some(text), Some(flush), Some(interruptible)) =
            (text, flag("flush"), flag("allow_interruption"))
        else {
            return self.bad("bad_message");
        };
        if text.len() > 102_400 {
            return self.bad("too_large");
        }
        let flush = match self.shared.defect {
            Defect::AlwaysFlushes => true,
            Defect::NeverFlushes => false,
            _ => flush,
        };
        if flush {
            self.tts
                .drop_all(&self.out, &self.shared, self.is(Defect::InterruptsAll));
        }
        self.tts.speaks += 1;
        self.tts.waiting.push_back(Speak {
            number: self.tts.speaks,
            text: text.to_owned(),
            interruptible,
        });
        self.play_next();
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        if self.is(Defect::AnswersClear) && self.tts.is_quiet() {
            self.tell_complete(self.tts.speaks, 0.0, 0);
        }
        self.tts.cleared = true;
        if self.is(Defect::StopsLate) {
            thread::sleep(Duration::from_millis(300));
            // What came meanwhile is said, too.
            if let Some(playing) = &self.tts.playing {
                let number = playing.number;
                self.out.push_audio(number, &[0; 960], usize::MAX);
                thread::sleep(Duration::from_millis(20));
            }
        }
        self.tts
            .drop_all(&self.out, &self.shared, self.is(Defect::InterruptsAll));
        self.play_next();
    }

    fn play_next(&mut self) {
        if self.tts.playing.is_some() {
            return;
        }
        let Some(speak) = self.tts.waiting.pop_front() else {
            return;
        };
        let cancel = Cancel::default();
        self.tts.playing = Some(Playing {
            number: speak.number,
            interruptible: speak.interruptible,
            cancel: cancel.clone(),
            provider_ms: 0.0,
            dropped_bytes: 0,
        });
        let order = Order {
            base: self.base.clone(),
            tts: self.config.tts.clone(),
            text: speak.text,
        };
        let (shared, to, number) = (self.shared.clone(), self.events.clone(), speak.number);
        thread::spawn(move || {
            let mut on =
                |sound| to.send(Event::Sound(number, sound)).is_ok() && !cancel.is_cancelled();
            upstream::speak(&order, &shared.settings, shared.defect, &cancel, &mut on);
        });
    }

    pub(super) fn sound(&mut self, number: u64, sound: Sound) {
        let defect = self.shared.defect;
        let most = match defect {
            Defect::NeverDrops => usize::MAX,
            _ => self.shared.settings.out_buffer_bytes,
        };
        let Some(playing) = self
            .tts
            .playing
            .as_mut()
            .filter(|playing| playing.number == number)
        else {
            return;
        };
        match sound {
            Sound::First(ms) => {
                playing.provider_ms = ms;
                if defect == Defect::CompleteFirst {
                    self.tell_complete(number, ms, 0);
                }
            }
            Sound::Data(mut audio) => {
                if defect == Defect::DropsByte {
                    audio.pop();
                }
                if defect == Defect::ForgetsBeginning && std::mem::take(&mut self.tts.cleared) {
                    return;
                }
                if self.out.push_audio(number, &audio, most) {
                    self.shared.count(
                        "voice_audio_bytes_total{direction=\"out\"}",
                        audio.len() as f64,
                    );
                } else {
                    playing.dropped_bytes += audio.len();
                }
            }
            Sound::End => {
                let (ms, dropped) = (playing.provider_ms, playing.dropped_bytes);
                self.tts.playing = None;
                self.shared
                    .count("voice_speaks_total{outcome=\"complete\"}", 1.0);
                let provider = self.config.tts["provider"].as_str().unwrap_or_default();
                let series = format!(
                    "voice_requests_total{{provider=\"{provider}_tts\",outcome=\"complete\"}}"
                );
                self.shared.count(&series, 1.0);
                if defect != Defect::CompleteFirst {
                    self.tell_complete(number, ms, dropped);
                }
                self.play_next();
            }
            Sound::Failed(kind) => {
                self.tts.playing = None;
                self.tell_error(kind, kind != "tts_failed", "the provider failed");
                self.play_next();
            }
        }
    }
}
