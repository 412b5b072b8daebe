//! A connection to a speech server: a WebSocket or a bare TCP stream, blocking, with time-outs.
//!
//! The client of `plimsoll-conformance` speaks WebSocket only, and drops the reason of a close, which dialects read.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::time::Instant;

use plimsoll_conformance::socket::{self, key};
use plimsoll_protocol::websocket::{
    Decoder, Event, Handshake, Opcode, Outcome, append_client_frame, close, upgrade_request,
};

use super::site::Server;
use crate::dialect::{Connect, Message, Transport};

/// The longest message that a server may send, as in a trial.
const MESSAGE_MAX_BYTES: u32 = 1 << 20;

/// A client that sends only its own bytes may mask them as it likes.
const MASK: [u8; 4] = *b"PLIM";

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Text(String),
    Binary(Vec<u8>),
    /// A piece of a TCP stream.
    Bytes(Vec<u8>),
    /// The server closed in order.
    Closed {
        code: Option<u16>,
        reason: String,
    },
    /// A WebSocket ended without a close.
    Ended,
    /// The connection failed, or a frame broke RFC 6455.
    Broke(String),
}

/// How a server answered a connection.
pub(super) enum Opened {
    Line(Line),
    /// The upgrade was answered with another status.
    Refused {
        status: u16,
        headers: Vec<(String, String)>,
    },
}

/// A connection.
pub(super) struct Line {
    stream: TcpStream,
    /// `None` on TCP.
    decoder: Option<Decoder>,
    arrived: VecDeque<Arrival>,
    /// Nothing comes after what has arrived.
    is_over: bool,
    /// We have sent a close.
    is_closing: bool,
}

impl Line {
    /// Connects, and upgrades to WebSocket where the dialect has that.
    pub(super) fn open(server: &Server<'_>, connect: &Connect) -> Result<Opened, String> {
        let stream = socket::connect(server.address, None)?;
        let patient = stream.set_write_timeout(Some(server.times.patience));
        patient.map_err(|error| error.to_string())?;
        let line = Self {
            stream,
            decoder: None,
            arrived: VecDeque::new(),
            is_over: false,
            is_closing: false,
        };
        match connect.transport {
            Transport::Tcp => Ok(Opened::Line(line)),
            Transport::WebSocket => line.upgrade(server, connect),
        }
    }

    fn upgrade(mut self, server: &Server<'_>, connect: &Connect) -> Result<Opened, String> {
        let key = key(server.next_number());
        self.write_all(&request(server, connect, key)?)?;
        let mut handshake = Handshake::new(key);
        let deadline = Instant::now() + server.times.patience;
        let mut buffer = [0; 4096];
        loop {
            let count = match read(&mut self.stream, &mut buffer, deadline) {
                Ok(0) => {
                    return Err("the connection ended before the upgrade was answered".to_owned());
                }
                Ok(count) => count,
                Err(error) => return Err(format!("the upgrade was not answered: {error}")),
            };
            let fed = handshake.feed(&buffer[..count]);
            match fed.map_err(|error| error.to_string())? {
                None => {}
                Some(Outcome::Refused {
                    status, headers, ..
                }) => return Ok(Opened::Refused { status, headers }),
                Some(Outcome::Upgraded { leftover_offset }) => {
                    self.decoder = Some(Decoder::new(MESSAGE_MAX_BYTES));
                    self.take(&buffer[leftover_offset..count]);
                    return Ok(Opened::Line(self));
                }
            }
        }
    }

    /// Writes a message.
    pub(super) fn write(&mut self, message: &Message) -> Result<(), String> {
        let mut bytes = Vec::with_capacity(message.content.len() + 16);
        message.append_wire(MASK, &mut bytes);
        self.write_all(&bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.stream.write_all(bytes);
        written.map_err(|error| format!("the server stopped reading: {error}"))
    }

    /// Says that nothing more will be sent.
    pub(super) fn close(&mut self) -> Result<(), String> {
        if self.decoder.is_none() {
            let shut = self.stream.shutdown(std::net::Shutdown::Write);
            return shut.map_err(|error| error.to_string());
        }
        self.is_closing = true;
        self.write_all(&close_frame(close::NORMAL))
    }

    /// The next thing that comes before the deadline; `None` if nothing does.
    pub(super) fn next(&mut self, deadline: Instant) -> Option<Arrival> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(arrival) = self.arrived.pop_front() {
                return Some(arrival);
            }
            if self.is_over {
                return None;
            }
            match read(&mut self.stream, &mut buffer, deadline) {
                Ok(0) if self.decoder.is_none() => {
                    let (code, reason) = (None, String::new());
                    self.finish(Arrival::Closed { code, reason });
                }
                Ok(0) => self.finish(Arrival::Ended),
                Ok(count) => self.take(&buffer[..count]),
                Err(error) if is_timeout(&error) => return None,
                Err(error) => {
                    self.finish(Arrival::Broke(format!("the connection failed: {error}")));
                }
            }
        }
    }

    fn finish(&mut self, last: Arrival) {
        self.is_over = true;
        self.arrived.push_back(last);
    }

    fn take(&mut self, bytes: &[u8]) {
        let Some(decoder) = &mut self.decoder else {
            return self.arrived.push_back(Arrival::Bytes(bytes.to_vec()));
        };
        let (arrived, mut answers, mut is_closed) = (&mut self.arrived, Vec::new(), false);
        let decoded = decoder.decode(bytes, |event| {
            match event {
                Event::Text(text) => arrived.push_back(Arrival::Text(text.to_owned())),
                Event::Binary(bytes) => arrived.push_back(Arrival::Binary(bytes.to_vec())),
                Event::Ping(payload) => {
                    append_client_frame(&mut answers, true, Opcode::Pong, payload, MASK);
                }
                Event::Pong(_) => {}
                Event::Close(close) => {
                    is_closed = true;
                    let (code, reason) = (close.code, close.reason.to_owned());
                    arrived.push_back(Arrival::Closed { code, reason });
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        if let Err(violation) = decoded {
            let told = format!("the server broke RFC 6455: {violation}");
            self.finish(Arrival::Broke(told));
        }
        if is_closed {
            self.is_over = true;
            if !self.is_closing {
                answers.extend(close_frame(close::NORMAL));
            }
        }
        // The server may be gone: what it said last counts.
        let _ = self.stream.write_all(&answers);
    }
}

impl Drop for Line {
    /// Leaves as a client should, so that the server lets go of the session at once.
    fn drop(&mut self) {
        if self.decoder.is_some() && !self.is_over && !self.is_closing {
            // A server that does not read is left all the same.
            let _ = self.stream.set_nonblocking(true);
            let _ = self.stream.write(&close_frame(close::NORMAL));
        }
    }
}

fn request(server: &Server<'_>, connect: &Connect, key: [u8; 16]) -> Result<Vec<u8>, String> {
    if !connect.subprotocols.is_empty() {
        return Err("a key is not sent as a subprotocol; give it in a header".to_owned());
    }
    let headers = connect.headers.iter();
    let headers: Vec<_> = headers
        .map(|field| (field.name.as_str(), field.value.expose()))
        .collect();
    let target = connect.target();
    upgrade_request(&server.host, target.expose(), key, &headers).map_err(|error| error.to_string())
}

fn close_frame(code: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    let payload = close::payload(code, "");
    append_client_frame(&mut frame, true, Opcode::Close, &payload, MASK);
    frame
}

fn read(stream: &mut TcpStream, buffer: &mut [u8], deadline: Instant) -> std::io::Result<usize> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
