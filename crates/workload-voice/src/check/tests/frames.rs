//! The frames of a client, read as strictly as the contract asks; and what waits to be written to it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use plimsoll_protocol::websocket::{Opcode, RawFrame, close, mask_in_place};

use super::Defect;
use super::caller::Event;

const TEXT_MAX: u64 = 1 << 20;
const BINARY_MAX: u64 = 10 << 20;

/// The messages in a client's frames.
#[derive(Default)]
struct Frames {
    buffer: Vec<u8>,
    begun: Option<(Opcode, Vec<u8>)>,
}

impl Frames {
    /// The next message; `Ok(None)` when it is not complete, the close code when it breaks a rule.
    fn next(&mut self, defect: Defect) -> Result<Option<Event>, u16> {
        let [first, second, ..] = self.buffer[..] else {
            return Ok(None);
        };
        let (fin, short) = (first & 0x80 != 0, second & 0x7F);
        let opcode = Opcode::from_bits(first)
            .filter(|_| first & 0x70 == 0)
            .ok_or(1002_u16)?;
        let control_broken = opcode.is_control() && (!fin || short > 125);
        let orphaned = opcode == Opcode::Continuation && self.begun.is_none();
        let inside = matches!(opcode, Opcode::Text | Opcode::Binary) && self.begun.is_some();
        if second & 0x80 == 0 || control_broken || orphaned || inside {
            return Err(1002);
        }
        let extended = [(126, 2), (127, 8)]
            .into_iter()
            .find(|(mark, _)| *mark == short);
        let extended = extended.map_or(0, |(_, bytes)| bytes);
        let head = 2 + extended + 4;
        if self.buffer.len() < head {
            return Ok(None);
        }
        let field = self.buffer[2..2 + extended].iter();
        let long = field.fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
        let len = if extended == 0 {
            u64::from(short)
        } else {
            long
        };
        let kind = self.begun.as_ref().map_or(opcode, |(kind, _)| *kind);
        let so_far = self
            .begun
            .as_ref()
            .map_or(0, |(_, bytes)| bytes.len() as u64);
        let most = if kind == Opcode::Text {
            TEXT_MAX
        } else {
            BINARY_MAX
        };
        if !opcode.is_control() && so_far + len > most {
            return Err(1009);
        }
        let end = head + usize::try_from(len).map_err(|_| 1009_u16)?;
        if self.buffer.len() < end {
            return Ok(None);
        }
        let mask = *self.buffer[..head].last_chunk().ok_or(1002_u16)?;
        let mut payload = self.buffer[head..end].to_vec();
        self.buffer.drain(..end);
        mask_in_place(&mut payload, mask, 0);
        if opcode.is_control() {
            return Ok(Some(match opcode {
                Opcode::Ping => Event::Ping(payload),
                Opcode::Pong => Event::Pong,
                _ => Event::Closed(payload),
            }));
        }
        let (kind, mut whole) = self.begun.take().unwrap_or((opcode, Vec::new()));
        whole.extend(payload);
        if !fin && defect != Defect::FragmentsApart {
            self.begun = Some((kind, whole));
            return self.next(defect);
        }
        match kind {
            Opcode::Text => String::from_utf8(whole)
                .map(Event::Text)
                .map(Some)
                .map_err(|_| 1007),
            _ => Ok(Some(Event::Binary(whole))),
        }
    }
}

/// Reads until the client is gone.
pub(super) fn read_all(mut stream: TcpStream, rest: Vec<u8>, defect: Defect, to: &Sender<Event>) {
    let mut frames = Frames {
        buffer: rest,
        ..Frames::default()
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        loop {
            match frames.next(defect) {
                Ok(None) => break,
                Ok(Some(event)) => drop(to.send(event)),
                Err(code) => {
                    drop(to.send(Event::Broken(code)));
                    // What follows is nobody's; the end must still be seen.
                    while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
                    drop(to.send(Event::Gone));
                    return;
                }
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => frames.buffer.extend_from_slice(&buffer[..n]),
            _ => return drop(to.send(Event::Gone)),
        }
    }
}

/// What waits to be written to a client.
#[derive(Default)]
pub(super) struct Out {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<(Option<u64>, Vec<u8>)>,
    audio_bytes: usize,
    over: bool,
}

impl Out {
    pub(super) fn push(&self, opcode: Opcode, payload: &[u8]) {
        let frame = RawFrame::server(opcode, payload).to_vec();
        let mut waiting = self.waiting.lock().expect("sound");
        waiting.frames.push_back((None, frame));
        self.changed.notify_all();
    }

    /// Whether there was room for this audio of a reply.
    pub(super) fn push_audio(&self, reply: u64, audio: &[u8], most: usize) -> bool {
        let mut waiting = self.waiting.lock().expect("sound");
        if waiting.audio_bytes + audio.len() > most.max(audio.len()) {
            return false;
        }
        waiting.audio_bytes += audio.len();
        let frame = RawFrame::server(Opcode::Binary, audio).to_vec();
        waiting.frames.push_back((Some(reply), frame));
        self.changed.notify_all();
        true
    }

    pub(super) fn drop_reply(&self, reply: u64) {
        let mut waiting = self.waiting.lock().expect("sound");
        waiting.frames.retain(|(of, _)| *of != Some(reply));
        let audio = waiting.frames.iter().filter(|(of, _)| of.is_some());
        waiting.audio_bytes = audio.map(|(_, frame)| frame.len()).sum();
    }

    pub(super) fn close(&self, payload: &[u8]) {
        let mut waiting = self.waiting.lock().expect("sound");
        let frame = RawFrame::server(Opcode::Close, payload).to_vec();
        waiting.frames.push_back((None, frame));
        waiting.over = true;
        self.changed.notify_all();
    }

    pub(super) fn close_with(&self, code: u16) {
        self.close(&close::payload(code, ""));
    }

    /// Writes what waits until nothing more will.
    pub(super) fn write_all(&self, mut stream: TcpStream, limit: Duration, to: &Sender<Event>) {
        let look = stream.set_write_timeout(Some(Duration::from_millis(200)));
        look.expect("a time");
        loop {
            let mut waiting = self.waiting.lock().expect("sound");
            while waiting.frames.is_empty() && !waiting.over {
                waiting = self.changed.wait(waiting).expect("sound");
            }
            let Some((reply, frame)) = waiting.frames.pop_front() else {
                drop(stream.shutdown(Shutdown::Write));
                return;
            };
            drop(waiting);
            let written = write(&mut stream, &frame, limit);
            if reply.is_some() {
                let mut waiting = self.waiting.lock().expect("sound");
                waiting.audio_bytes = waiting.audio_bytes.saturating_sub(frame.len());
            }
            if !written {
                drop(stream.shutdown(Shutdown::Both));
                return drop(to.send(Event::Gone));
            }
        }
    }
}

/// Whether the client took all of it. One that takes nothing for this time does not.
fn write(stream: &mut TcpStream, bytes: &[u8], limit: Duration) -> bool {
    let (mut rest, mut taken_at) = (bytes, Instant::now());
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(n) => {
                rest = &rest[n..];
                taken_at = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        if taken_at.elapsed() >= limit {
            return false;
        }
    }
    true
}
