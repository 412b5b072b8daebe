//! Recognition: a WebSocket that takes audio and says what a case has it say.

use std::io::Write as _;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::speaker::After;
use plimsoll_protocol::server::ClientFrames;
use plimsoll_protocol::websocket::handshake::accept_for;
use plimsoll_protocol::websocket::{Opcode, RawFrame, close};
use serde_json::{Value, json};

use super::scene::{Listener, Scene, Seen};
use super::{LOOK, Request, Shared, answer};
use crate::check::wire::{Filled, Wire};

/// How an upgrade of recognition is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) enum Opening {
    /// At once.
    #[default]
    Accept,
    /// After this time.
    After(Duration),
    /// With a 503.
    Refuse,
    /// Not at all.
    Hang,
}

/// How a connection of recognition ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Ending {
    /// With a close frame.
    Close(u16),
    /// Without one.
    Drop,
}

/// A result as Deepgram writes it.
pub(in super::super) fn result_text(
    transcript: &str,
    (is_final, speech_final): (bool, bool),
    confidence: f64,
) -> Value {
    json!({
        "type": "Results", "start": 0.0, "duration": 1.0,
        "is_final": is_final, "speech_final": speech_final,
        "channel": {"alternatives": [
            {"transcript": transcript, "confidence": confidence, "words": []},
        ]},
    })
}

/// The same as a frame.
pub(in super::super) fn result(transcript: &str, flags: (bool, bool), confidence: f64) -> Vec<u8> {
    let text = result_text(transcript, flags, confidence).to_string();
    RawFrame::server(Opcode::Text, text.as_bytes()).to_vec()
}

/// Answers the upgrade, and listens.
pub(super) fn serve(mut wire: Wire, request: &Request, scene: &Scene, shared: &Shared) {
    match scene.next_opening() {
        Opening::Accept => {}
        Opening::After(delay) => {
            if wire.gone_within(delay) {
                return;
            }
        }
        Opening::Refuse => {
            // Whoever left meanwhile is told nothing.
            let _ = wire.send(&answer("503 Service Unavailable", "{}"));
            return;
        }
        Opening::Hang => {
            while !shared.over() && !wire.gone_within(LOOK) {}
            return;
        }
    }
    let Some(key) = request.head.field("sec-websocket-key") else {
        let _ = wire.send(&answer("426 Upgrade Required", "{}"));
        return;
    };
    let accept = accept_for(key);
    let upgraded = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    let Ok(writer) = wire.stream().try_clone() else {
        return;
    };
    let writer = Arc::new(Mutex::new(writer));
    // Noted first: once the gateway says `ready`, the case may look. What the case then says waits for the 101.
    let held = writer.lock().unwrap_or_else(PoisonError::into_inner);
    let number = scene.note(|seen| {
        seen.listeners.push(Listener {
            path: request.path.clone(),
            query: request.query.clone(),
            head: request.head.clone(),
            audio: Vec::new(),
            texts: Vec::new(),
            opened: Instant::now(),
            ended: None,
            writer: Arc::clone(&writer),
            ending: None,
        });
        seen.listeners.len() - 1
    });
    let sent = wire.send(upgraded.as_bytes());
    drop(held);
    if sent.is_ok() {
        listen(wire, number, scene, shared);
    }
    let ended = |seen: &mut Seen| seen.listeners[number].ended = Some(Instant::now());
    scene.note(ended);
}

fn listen(wire: Wire, number: usize, scene: &Scene, shared: &Shared) {
    let writer = scene.look(|seen| Arc::clone(&seen.listeners[number].writer));
    let say = |frame: &[u8]| {
        let mut stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A gateway that left is found out by the next read.
        let _ = stream.write_all(frame);
    };
    let mut wire = wire;
    let mut frames = ClientFrames::default();
    let mut last = Opcode::Text;
    loop {
        let filled = wire.fill(Instant::now() + LOOK / 5);
        let mut bytes = wire.take();
        let after = frames.take(&mut bytes, |frame| {
            let opcode = frame.opcode;
            let payload = frame.unmasked();
            match opcode {
                Opcode::Ping if !scene.is_deaf() => {
                    say(&RawFrame::server(Opcode::Pong, payload).to_vec())
                }
                Opcode::Close => {
                    say(&RawFrame::server(Opcode::Close, payload).to_vec());
                    return After::Close;
                }
                Opcode::Ping | Opcode::Pong => {}
                Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                    note(scene, number, (opcode, last), payload);
                    if opcode != Opcode::Continuation {
                        last = opcode;
                    }
                }
            }
            After::GoOn
        });
        let ending = scene.look(|seen| seen.listeners[number].ending);
        if let Some(Ending::Close(code)) = ending {
            say(&RawFrame::server(Opcode::Close, &close::payload(code, "")).to_vec());
        }
        if ending.is_some() {
            // One more clone is open: the end is said here.
            let _ = wire.stream().shutdown(Shutdown::Both);
            return;
        }
        if after == After::Close || filled == Filled::Gone || shared.over() {
            let _ = wire.stream().shutdown(Shutdown::Both);
            return;
        }
    }
}

/// Keeps what came. A fragment belongs to the message before it.
fn note(scene: &Scene, number: usize, (opcode, last): (Opcode, Opcode), payload: &[u8]) {
    if !scene.remembers() {
        return;
    }
    scene.note(|seen| {
        let listener = &mut seen.listeners[number];
        let text = || String::from_utf8_lossy(payload);
        match (opcode, last) {
            (Opcode::Binary, _) | (Opcode::Continuation, Opcode::Binary) => {
                listener.audio.extend_from_slice(payload);
            }
            (Opcode::Text, _) => listener.texts.push(text().into_owned()),
            _ => {
                if let Some(begun) = listener.texts.last_mut() {
                    begun.push_str(&text());
                }
            }
        }
    });
}
