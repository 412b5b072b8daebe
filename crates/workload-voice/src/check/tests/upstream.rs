//! The gateway's side of its providers.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_conformance::socket::{Connection, Incoming, Socket, Upgrade};
use plimsoll_protocol::websocket::Opcode;
use serde_json::{Value, json};

use super::Defect;
use super::caller::Event;
use super::settings::Settings;
use crate::check::wire::{Body, Part, Wire};

/// What is to be spoken, and how.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) base: String,
    pub(super) tts: Value,
    pub(super) text: String,
}

/// What becomes of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sound {
    /// The first byte will come next; what the provider took.
    First(f64),
    Data(Vec<u8>),
    End,
    /// Without a first byte, or in the middle: the kind.
    Failed(&'static str),
}

/// Ends a request from another thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Cancel(Arc<Mutex<(bool, Option<TcpStream>)>>);

impl Cancel {
    pub(super) fn cancel(&self) {
        let mut state = self.0.lock().expect("sound");
        state.0 = true;
        if let Some(stream) = state.1.take() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Whether this try may go on.
    fn may_use(&self, wire: &Wire) -> bool {
        let mut state = self.0.lock().expect("sound");
        state.1 = wire.stream().try_clone().ok();
        !state.0
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.lock().expect("sound").0
    }
}

fn request(order: &Order, key: &str) -> Option<Vec<u8>> {
    let word = |name: &str, usual: &str| order.tts[name].as_str().unwrap_or(usual).to_owned();
    let (model, voice, text) = (word("model", ""), word("voice_id", "default"), &order.text);
    let bearer = format!("Authorization: Bearer {key}");
    let (path, key, body) = match word("provider", "").as_str() {
        "deepgram" => (
            format!("/v1/speak?model={model}&encoding=linear16&sample_rate=24000"),
            format!("Authorization: Token {key}"),
            json!({"text": text}),
        ),
        "elevenlabs" => (
            format!("/v1/text-to-speech/{voice}/stream?output_format=pcm_24000"),
            format!("xi-api-key: {key}"),
            json!({"text": text, "model_id": model}),
        ),
        "openai" => (
            "/v1/audio/speech".to_owned(),
            bearer,
            json!({"model": model, "input": text, "voice": voice, "response_format": "pcm"}),
        ),
        "cartesia" => (
            "/tts/bytes".to_owned(),
            bearer,
            json!({
                "model_id": model, "transcript": text, "voice": {"mode": "id", "id": voice},
                "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
            }),
        ),
        _ => return None,
    };
    let (host, body) = (&order.base, body.to_string());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\n{key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    Some([head.into_bytes(), body.into_bytes()].concat())
}

/// Has a text spoken; each part of the reply goes to `on`, until it wants no more.
pub(super) fn speak(
    order: &Order,
    settings: &Settings,
    defect: Defect,
    cancel: &Cancel,
    on: &mut dyn FnMut(Sound) -> bool,
) {
    let key = if defect == Defect::WrongKey {
        "wrong"
    } else {
        &settings.key
    };
    let request = request(order, key).expect("a known provider");
    let mut kind = "tts_failed";
    let tries = if defect == Defect::NoRetry { 1 } else { 2 };
    for _ in 0..tries {
        match attempt(order, &request, settings, defect, cancel, on) {
            Ok(()) => return,
            Err(Some(ended)) => {
                kind = ended;
                break;
            }
            Err(None) => {}
        }
    }
    on(Sound::Failed(kind));
}

/// One try. The error is what ends the reply, or nothing where it may be tried once more.
fn attempt(
    order: &Order,
    request: &[u8],
    settings: &Settings,
    defect: Defect,
    cancel: &Cancel,
    on: &mut dyn FnMut(Sound) -> bool,
) -> Result<(), Option<&'static str>> {
    let asked = Instant::now();
    let endless = defect == Defect::NoTimeouts;
    let [first, gap] =
        [settings.first, settings.gap].map(|time| if endless { 60 * time } else { time });
    let address: SocketAddr = order.base.parse().expect("an address");
    let mut wire = Wire::to(address).map_err(|_| None)?;
    if !cancel.may_use(&wire) {
        return Ok(());
    }
    wire.send(request).map_err(|_| None)?;
    let head = wire
        .head(asked + first)
        .map_err(|_| None)?
        .ok_or(Some("tts_timeout"))?;
    match head.status().map_err(|_| Some("tts_failed"))? {
        200 => {}
        429 => return Err(Some("tts_rate_limited")),
        500.. => return Err(None),
        _ => return Err(Some("tts_failed")),
    }
    let mut body = head.body(Body::UntilEnd).map_err(|_| Some("tts_failed"))?;
    let (mut deadline, mut begun) = (asked + first, false);
    loop {
        let part = wire
            .part(&mut body, deadline)
            .map_err(|_| Some("tts_failed"))?;
        match part {
            Part::Data(data) => {
                if !begun {
                    let own = asked.elapsed().as_secs_f64() * 1e3;
                    let claimed = head
                        .field("x-mock-provider-ms")
                        .and_then(|ms| ms.parse().ok());
                    if !on(Sound::First(claimed.unwrap_or(own))) {
                        return Ok(());
                    }
                }
                begun = true;
                deadline = Instant::now() + gap;
                if !on(Sound::Data(data)) {
                    return Ok(());
                }
            }
            Part::End => {
                on(Sound::End);
                return Ok(());
            }
            Part::Cut if begun => return Err(Some("tts_failed")),
            Part::Cut => return Err(None),
            Part::Nothing => return Err(Some("tts_timeout")),
        }
    }
}

/// Keeps a connection of recognition: audio in by `audio`, what happens out by `to`.
pub(super) fn listen(
    (base, path, key): (String, String, String),
    pong: Duration,
    generation: u64,
    audio: &Receiver<Vec<u8>>,
    to: &Sender<Event>,
) {
    let how = Connection {
        path,
        authorization: Some(format!("Token {key}")),
        ..Connection::default()
    };
    let opened = Socket::open(base.parse().expect("an address"), &how, generation);
    let Ok(Upgrade::Done(mut socket)) = opened else {
        return drop(to.send(Event::SttGone(generation)));
    };
    drop(to.send(Event::SttOpen(generation)));
    let mut ping_at = Instant::now() + Duration::from_secs(5);
    let mut pong_by = None;
    loop {
        loop {
            match audio.try_recv() {
                Ok(bytes) => drop(socket.say(Opcode::Binary, &bytes)),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    drop(socket.say(Opcode::Text, br#"{"type":"CloseStream"}"#));
                    return;
                }
            }
        }
        if Instant::now() >= ping_at {
            drop(socket.say(Opcode::Ping, b""));
            pong_by = Some(Instant::now() + pong);
            ping_at += Duration::from_secs(5);
        }
        match socket.next_within(Duration::from_millis(3)) {
            Ok(Some((_, Incoming::Text(text)))) => drop(to.send(Event::SttSaid(text))),
            Ok(Some((_, Incoming::Pong(_)))) => pong_by = None,
            Ok(Some((_, Incoming::Close(_) | Incoming::End | Incoming::Reset))) | Err(_) => {
                return drop(to.send(Event::SttGone(generation)));
            }
            Ok(_) => {}
        }
        if pong_by.is_some_and(|by| Instant::now() > by) {
            return drop(to.send(Event::SttGone(generation)));
        }
    }
}
