//! One connection of the server of these tests: frames in, frames out, with the defects under test.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_protocol::websocket::{Opcode, RawFrame, close};

use super::Defect;
use super::http::Request;
use super::server::{Peer, Shared};
use super::wire::{Frame, take_frame};
use super::wse::{self, Heard};
use crate::Dialect;

/// How often a connection looks whether the server ends.
const LOOK: Duration = Duration::from_millis(20);

/// Writes what it can: a peer that went away needs nothing.
pub(super) fn write(writer: &Mutex<TcpStream>, bytes: &[u8]) {
    let _ = writer.lock().expect("sound").write_all(bytes);
}

/// Ends a connection, even one that somebody is writing to.
pub(super) fn end(writer: &Mutex<TcpStream>) {
    if let Ok(stream) = writer.try_lock() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

struct Connection<'a> {
    id: u64,
    on_hub: bool,
    shared: &'a Shared,
    writer: Arc<Mutex<TcpStream>>,
    /// The message whose fragments come.
    message: Option<(u8, Vec<u8>)>,
    /// Answers to what was read at once.
    outbox: Vec<Vec<u8>>,
    /// Pongs that wait for the end of a message.
    held: Vec<Vec<u8>>,
    said_close: bool,
    greeted: bool,
}

type Flow = Result<ControlFlow<()>, u16>;

const ON: Flow = Ok(ControlFlow::Continue(()));

/// Serves an upgraded connection until it ends.
pub(super) fn run(stream: TcpStream, head: &str, request: Request, shared: &Shared) {
    let Ok(clone) = stream.try_clone() else {
        return;
    };
    let writer = Arc::new(Mutex::new(clone));
    let id = shared.counters.accepted.load(Ordering::Relaxed) * 1000
        + u64::from(stream.peer_addr().map_or(0, |peer| peer.port()));
    let on_hub = request.path == "/fanout";
    {
        // Whoever has read the head is sent what is for everybody, so that a defect shows every time.
        let mut peers = shared.peers.lock().expect("sound");
        write(&writer, head.as_bytes());
        peers.push(Peer {
            id,
            on_hub,
            writer: Arc::clone(&writer),
        });
    }
    let mut connection = Connection {
        id,
        on_hub,
        shared,
        writer,
        message: None,
        outbox: Vec::new(),
        held: Vec::new(),
        said_close: false,
        greeted: false,
    };
    if connection.greet(&request) {
        connection.serve(stream, request.rest);
    }
    shared
        .peers
        .lock()
        .expect("sound")
        .retain(|peer| peer.id != id);
}

impl Connection<'_> {
    /// What dialect `wse` says first; false for a connection that is refused.
    fn greet(&mut self, request: &Request) -> bool {
        if self.shared.dialect == Dialect::Echo {
            return true;
        }
        let defect = self.shared.defect;
        if let Some(code) = wse::refusal(request, defect) {
            self.send(Opcode::Text, wse::error(code, defect).as_bytes());
            let code = if defect == Defect::Closes4400 {
                4400
            } else {
                4401
            };
            self.send(Opcode::Close, &close::payload(code, ""));
            self.flush();
            return false;
        }
        if defect != Defect::HelloFirst {
            self.ready();
        }
        true
    }

    fn ready(&mut self) {
        self.greeted = true;
        self.send(
            Opcode::Text,
            wse::ready(self.id, self.shared.defect).as_bytes(),
        );
        self.flush();
    }

    fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        self.outbox.push(RawFrame::server(opcode, payload).to_vec());
    }

    fn flush(&mut self) {
        if self.shared.defect == Defect::LastFirst {
            self.outbox.reverse();
        }
        let all = self.outbox.concat();
        self.outbox.clear();
        write(&self.writer, &all);
    }

    fn serve(&mut self, mut stream: TcpStream, mut buffer: Vec<u8>) {
        stream.set_read_timeout(Some(LOOK)).expect("a socket");
        let mut bytes = vec![0; 256 * 1024];
        loop {
            let flow = self.take(&mut buffer);
            self.flush();
            match flow {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return self.leave(&mut stream),
                Err(code) => return self.violated(code, &mut stream),
            }
            match stream.read(&mut bytes) {
                Ok(0) => return,
                Ok(n) => buffer.extend_from_slice(&bytes[..n]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    self.look();
                }
                Err(_) => return,
            }
        }
    }

    /// What it does when nothing comes.
    fn look(&mut self) {
        let defect = self.shared.defect;
        if self.shared.draining.load(Ordering::Relaxed) && !self.said_close {
            let code = if defect == Defect::Drains1000 {
                1000
            } else {
                1001
            };
            self.send(Opcode::Close, &close::payload(code, ""));
            self.said_close = true;
        }
        if defect == Defect::PingsItself {
            self.send(Opcode::Ping, b"there?");
        }
    }

    /// Ends the connection, or leaves that to the peer.
    fn leave(&self, stream: &mut TcpStream) {
        if self.shared.defect == Defect::StaysOpen {
            let mut rest = [0; 4096];
            stream
                .set_read_timeout(Some(Duration::from_secs(5)))
                .expect("a socket");
            while stream.read(&mut rest).is_ok_and(|n| n > 0) {}
        }
        end(&self.writer);
    }

    fn violated(&mut self, code: u16, stream: &mut TcpStream) {
        let defect = self.shared.defect;
        let code = if defect == Defect::Closes1000ForAll {
            1000
        } else {
            code
        };
        self.send(Opcode::Close, &close::payload(code, ""));
        self.flush();
        if defect == Defect::OneFallsAllFall {
            for peer in self.shared.peers.lock().expect("sound").iter() {
                end(&peer.writer);
            }
        }
        // A reset would lose the close on its way: what the peer still sends is read.
        let mut rest = [0; 4096];
        stream
            .set_read_timeout(Some(Duration::from_millis(200)))
            .expect("a socket");
        while stream.read(&mut rest).is_ok_and(|n| n > 0) {}
        self.leave(stream);
    }

    /// Takes all whole frames off the buffer.
    fn take(&mut self, buffer: &mut Vec<u8>) -> Flow {
        let max = match self.shared.defect {
            Defect::LimitIsTooLong => self.shared.max - 1,
            _ => self.shared.max,
        };
        let mut closed = false;
        while let Some(frame) = take_frame(buffer, max, self.shared.defect)? {
            if closed {
                // Only the defect under test comes here.
                let echo = RawFrame::server(Opcode::Text, &frame.payload).to_vec();
                self.outbox.insert(0, echo);
                continue;
            }
            if self.frame(frame)?.is_break() {
                if self.shared.defect != Defect::EchoesAfterClose {
                    return Ok(ControlFlow::Break(()));
                }
                closed = true;
            }
        }
        Ok(if closed {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn frame(&mut self, frame: Frame) -> Flow {
        let defect = self.shared.defect;
        match frame.opcode {
            8 => {
                if defect == Defect::NoCloseAnswer {
                    end(&self.writer);
                } else if !self.said_close {
                    let always = close::payload(1000, "");
                    let code = frame.payload.get(..2).unwrap_or_default();
                    let answer = if defect == Defect::AlwaysCloses1000 {
                        &always
                    } else {
                        code
                    };
                    self.send(Opcode::Close, answer);
                }
                return Ok(ControlFlow::Break(()));
            }
            9 => {
                let payload = if defect == Defect::EmptyPong {
                    &[]
                } else {
                    &frame.payload[..]
                };
                let pong = RawFrame::server(Opcode::Pong, payload).to_vec();
                if defect == Defect::PongAfterMessage && self.message.is_some() {
                    self.held.push(pong);
                } else {
                    self.outbox.push(pong);
                }
            }
            10 if defect == Defect::AnswersPongs => self.send(Opcode::Pong, &frame.payload),
            10 => {}
            _ => return self.data(frame),
        }
        ON
    }

    fn data(&mut self, frame: Frame) -> Flow {
        let defect = self.shared.defect;
        if defect == Defect::CountsFragments {
            self.shared
                .counters
                .received
                .fetch_add(1, Ordering::Relaxed);
        }
        let (opcode, mut payload) = match (self.message.take(), frame.opcode) {
            (None, 0) if defect != Defect::TakesOrphans => return Err(1002),
            (None, 0) => (1, Vec::new()),
            (Some(message), 0) => message,
            (Some(_), _) if defect != Defect::TakesInterleaved => return Err(1002),
            (_, opcode) => (opcode, Vec::new()),
        };
        payload.extend(frame.payload);
        if defect == Defect::EachFragmentIsUtf8
            && opcode == 1
            && std::str::from_utf8(&payload).is_err()
        {
            return Err(1007);
        }
        let unlimited = matches!(defect, Defect::AnySize | Defect::FragmentsUncounted);
        if payload.len() as u64 > self.shared.max && !unlimited {
            return Err(1009);
        }
        if frame.fin || defect == Defect::EachFragmentIsAMessage {
            let is_text = std::str::from_utf8(&payload).is_ok();
            let must_be = opcode == 1 && defect != Defect::TakesAnyText;
            if (must_be || defect == Defect::RefusesBinary) && !is_text {
                return Err(1007);
            }
            self.count(&payload);
            self.answer(opcode, &payload);
            self.outbox.append(&mut self.held);
        }
        if !frame.fin {
            let rest = if defect == Defect::EachFragmentIsAMessage {
                Vec::new()
            } else {
                payload
            };
            self.message = Some((opcode, rest));
        }
        ON
    }

    /// Counts a whole message.
    fn count(&self, payload: &[u8]) {
        let (counters, defect) = (&self.shared.counters, self.shared.defect);
        counters.engine.fetch_add(1, Ordering::Relaxed);
        let application = self.shared.dialect == Dialect::Echo
            || !matches!(
                std::str::from_utf8(payload).map(|text| wse::hear(text, defect)),
                Ok(Heard::Engine(_))
            );
        if !application && defect == Defect::EngineCountsNoPings {
            counters.engine.fetch_sub(1, Ordering::Relaxed);
        }
        if application && defect != Defect::CountsFragments || defect == Defect::CountsPings {
            counters.received.fetch_add(1, Ordering::Relaxed);
        }
        if defect != Defect::CountsNoBytes {
            counters
                .bytes
                .fetch_add(payload.len() as u64, Ordering::Relaxed);
        }
        counters.sent.fetch_add(1, Ordering::Relaxed);
    }

    fn answer(&mut self, opcode: u8, payload: &[u8]) {
        let opcode = if opcode == 1 {
            Opcode::Text
        } else {
            Opcode::Binary
        };
        match self.shared.dialect {
            Dialect::Echo => self.echo(opcode, payload),
            Dialect::Wse => self.hear(opcode, payload),
        }
    }

    fn echo(&mut self, opcode: Opcode, payload: &[u8]) {
        let defect = self.shared.defect;
        let forgets_sender = (defect == Defect::HubForgetsSender).then_some(self.id);
        let everywhere = defect == Defect::HubIsEverywhere;
        if self.on_hub {
            let changed = defect == Defect::HubChangesOpcode;
            let opcode = if changed { Opcode::Text } else { opcode };
            return self
                .shared
                .broadcast(opcode, payload, !everywhere, forgets_sender);
        }
        match defect {
            Defect::ToEverybody => self.shared.broadcast(opcode, payload, false, None),
            Defect::EverythingIsText => self.send(Opcode::Text, payload),
            Defect::LosesEmpty if payload.is_empty() => {}
            Defect::CutsAt65535 => self.send(opcode, &payload[..payload.len().min(65_535)]),
            Defect::ForgetsWhatItReads if payload.len() > 10_000 => {}
            _ => self.send(opcode, payload),
        }
        if defect == Defect::Twice {
            self.send(opcode, payload);
        }
    }

    fn hear(&mut self, opcode: Opcode, payload: &[u8]) {
        let defect = self.shared.defect;
        if !self.greeted {
            self.ready();
        }
        let text = std::str::from_utf8(payload)
            .ok()
            .filter(|_| opcode == Opcode::Text);
        match text.map_or(Heard::Application, |text| wse::hear(text, defect)) {
            Heard::Engine(Some(answer)) => self.send(Opcode::Text, answer.as_bytes()),
            Heard::Engine(None) => {}
            Heard::Application if defect == Defect::EchoesMessages => self.send(opcode, payload),
            Heard::Application => {}
            Heard::Everybody(text) => {
                let but = (defect == Defect::HubForgetsSender).then_some(self.id);
                self.shared
                    .broadcast(Opcode::Text, text.as_bytes(), false, but);
            }
        }
    }
}
