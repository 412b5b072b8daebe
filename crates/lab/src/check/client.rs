//! The client that cases are written with: one session over one socket, blocking, with time-outs.
//!
//! Every function fails with a text that says what was seen, so that a case can hand it on with `?`.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use plimsoll_protocol::websocket::{
    Decoder, Event, Handshake, Opcode, Outcome, RawFrame, close, upgrade_request,
};
use plimsoll_workload_stt::synthetic::Synthetic;
use socket2::{Domain, Socket, Type};

use super::messages::{Ledger, Message, Partial, check_content};

/// What a case saw: `Ok` when it is as expected.
pub(super) type Verdict = Result<String, String>;

/// Within this time a gateway must answer a violation, and a close "at once".
pub(super) const AT_ONCE: Duration = Duration::from_millis(500);

/// How long a handshake, or any single write, may take.
const SOCKET_LIMIT: Duration = Duration::from_secs(3);

/// No message of this contract is longer.
const MESSAGE_MAX_BYTES: u32 = 64 * 1024;

/// The one path of the contract.
pub(super) const PATH: &str = "/ws/stt";

/// The message that begins a session.
pub(super) const START: &str = r#"{"type":"start"}"#;

/// How to connect.
#[derive(Debug, Clone, Default)]
pub(super) struct Connection {
    /// The request path; the contract's when `None`.
    pub(super) path: Option<&'static str>,
    /// The whole `Authorization` field.
    pub(super) authorization: Option<String>,
    /// Small buffers on this side, and a small segment size that keeps the other side's small too: so a client that does
    /// not read is felt by the gateway after some ten kilobytes instead of megabytes.
    pub(super) small_buffers: bool,
    /// Write the handshake byte by byte.
    pub(super) byte_by_byte: bool,
}

/// What came from the gateway.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    Text(String),
    Binary(usize),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>),
    /// The connection ended in order.
    End,
    /// The connection was reset.
    Reset,
}

/// How an upgrade was answered.
pub(super) enum Upgrade {
    Done(Session),
    Refused {
        status: u16,
        headers: Vec<(String, String)>,
    },
}

/// One upgraded session.
pub(super) struct Session {
    stream: TcpStream,
    decoder: Decoder,
    queue: VecDeque<(Instant, Incoming)>,
    /// The number in the formula of the synthetic frames.
    number: u64,
    sent: u64,
    ledger: Ledger,
    audio: Synthetic,
}

impl Session {
    /// Connects and upgrades.
    pub(super) fn open(
        address: SocketAddr,
        how: &Connection,
        number: u64,
    ) -> Result<Upgrade, String> {
        let mut stream = connect(address, how.small_buffers)?;
        let key = u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let key = key.to_be_bytes();
        let mut headers = Vec::new();
        if let Some(authorization) = &how.authorization {
            headers.push(("Authorization", authorization.as_str()));
        }
        let path = how.path.unwrap_or(PATH);
        let request = upgrade_request(&address.to_string(), path, key, &headers)
            .map_err(|error| error.to_string())?;
        let pieces = if how.byte_by_byte { 1 } else { request.len() };
        for piece in request.chunks(pieces) {
            stream
                .write_all(piece)
                .map_err(|error| format!("the upgrade request could not be sent: {error}"))?;
        }
        let mut handshake = Handshake::new(key);
        let mut buffer = [0; 4096];
        let deadline = Instant::now() + SOCKET_LIMIT;
        loop {
            let n = match read(&mut stream, &mut buffer, deadline) {
                Ok(0) => {
                    return Err("the connection ended before the upgrade was answered".to_owned());
                }
                Ok(n) => n,
                Err(error) => return Err(format!("the upgrade was not answered: {error}")),
            };
            match handshake
                .feed(&buffer[..n])
                .map_err(|error| error.to_string())?
            {
                None => {}
                Some(Outcome::Refused {
                    status, headers, ..
                }) => return Ok(Upgrade::Refused { status, headers }),
                Some(Outcome::Upgraded { leftover_offset }) => {
                    let mut session = Self {
                        stream,
                        decoder: Decoder::new(MESSAGE_MAX_BYTES),
                        queue: VecDeque::new(),
                        number,
                        sent: 0,
                        ledger: Ledger::default(),
                        audio: Synthetic::new(),
                    };
                    session.decode(&buffer[leftover_offset..n])?;
                    return Ok(Upgrade::Done(session));
                }
            }
        }
    }

    /// The session's number in the formula of the synthetic frames.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Sends the start message.
    pub(super) fn start(&mut self) -> Result<(), String> {
        self.send(&RawFrame::new(Opcode::Text, START.as_bytes()).to_vec())
    }

    /// Sends bytes as they are.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(bytes)
            .map_err(|error| format!("the gateway stopped reading: {error}"))
    }

    /// Sends bytes to which the gateway may answer by closing before it has read them all.
    pub(super) fn send_what_may_be_refused(&mut self, bytes: &[u8]) {
        // A failed write is no finding: the answer, or its absence, is.
        let _ = self.stream.write_all(bytes);
    }

    /// The bytes of the next `count` synthetic frames, which count as sent from now on.
    pub(super) fn next_frames(&mut self, count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            self.sent += 1;
            let payload = self.audio.frame(self.number, self.sent);
            RawFrame::new(Opcode::Binary, payload).append_to(&mut bytes);
        }
        bytes
    }

    /// The payload of the next synthetic frame, which counts as sent from now on.
    pub(super) fn next_payload(&mut self) -> Vec<u8> {
        self.sent += 1;
        self.audio.frame(self.number, self.sent).to_vec()
    }

    /// Sends the next `count` synthetic frames in one write.
    pub(super) fn send_audio(&mut self, count: u64) -> Result<(), String> {
        let bytes = self.next_frames(count);
        self.send(&bytes)
    }

    /// The frames sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The next thing that comes, or `None` when nothing does within `limit`.
    pub(super) fn next_within(
        &mut self,
        limit: Duration,
    ) -> Result<Option<(Instant, Incoming)>, String> {
        let deadline = Instant::now() + limit;
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(incoming) = self.queue.pop_front() {
                return Ok(Some(incoming));
            }
            match read(&mut self.stream, &mut buffer, deadline) {
                Ok(0) => return Ok(Some((Instant::now(), Incoming::End))),
                Ok(n) => self.decode(&buffer[..n])?,
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(error) if is_reset(&error) => {
                    return Ok(Some((Instant::now(), Incoming::Reset)));
                }
                Err(error) => return Err(format!("reading failed: {error}")),
            }
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<(), String> {
        let now = Instant::now();
        let queue = &mut self.queue;
        let result = self.decoder.decode(bytes, |event| {
            let incoming = match event {
                Event::Text(text) => Incoming::Text(text.to_owned()),
                Event::Binary(bytes) => Incoming::Binary(bytes.len()),
                Event::Ping(payload) => Incoming::Ping(payload.to_vec()),
                Event::Pong(payload) => Incoming::Pong(payload.to_vec()),
                Event::Close(close) => Incoming::Close(close.code),
            };
            queue.push_back((now, incoming));
            ControlFlow::Continue(())
        });
        match result {
            Ok(_) => Ok(()),
            Err(violation) => Err(format!("the gateway broke RFC 6455: {violation}")),
        }
    }

    /// The next partial or error, entered in the ledger; a partial's content is checked.
    pub(super) fn next_message(&mut self, limit: Duration) -> Result<(Instant, Message), String> {
        match self.next_within(limit)? {
            None => Err(format!(
                "no message within {} ms; frames up to {} of {} were named",
                limit.as_millis(),
                self.ledger.named(),
                self.sent
            )),
            Some((at, Incoming::Text(text))) => {
                let message = Message::parse(&text)?;
                self.ledger.enter(&message, self.sent)?;
                if let Message::Partial(partial) = &message {
                    check_content(partial, self.number)?;
                }
                Ok((at, message))
            }
            Some((_, other)) => Err(format!("{} instead of a message", describe(&other))),
        }
    }

    /// The next message, which must be a partial.
    pub(super) fn next_partial(&mut self, limit: Duration) -> Result<(Instant, Partial), String> {
        match self.next_message(limit)? {
            (at, Message::Partial(partial)) => Ok((at, partial)),
            (_, message) => Err(format!("{} instead of a partial", message.summary())),
        }
    }

    /// The next partial, if one comes before `deadline`.
    pub(super) fn partial_before(
        &mut self,
        deadline: Instant,
    ) -> Result<Option<(Instant, Partial)>, String> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.next_within(left)? {
            None => Ok(None),
            Some(incoming) => {
                self.queue.push_front(incoming);
                self.next_partial(Duration::ZERO).map(Some)
            }
        }
    }

    /// Whether every frame sent is named.
    pub(super) fn all_named(&self) -> bool {
        self.ledger.named() == self.sent
    }

    /// Reads until every frame sent is named, each once and in order; the messages, with their arrivals.
    ///
    /// `limit` is for each message.
    pub(super) fn until_all_named(
        &mut self,
        limit: Duration,
    ) -> Result<Vec<(Instant, Message)>, String> {
        let mut messages = Vec::new();
        while !self.all_named() {
            messages.push(self.next_message(limit)?);
        }
        Ok(messages)
    }

    /// Passes when nothing at all comes within `limit`.
    pub(super) fn expect_silence(&mut self, limit: Duration) -> Result<(), String> {
        match self.next_within(limit)? {
            None => Ok(()),
            Some((_, incoming)) => Err(format!("{}, though nothing was due", describe(&incoming))),
        }
    }

    /// Passes when the gateway closes with one of `codes` within `limit`. Messages before it are passed over.
    pub(super) fn expect_close(&mut self, codes: &[u16], limit: Duration) -> Verdict {
        let since = Instant::now();
        loop {
            let left = limit.saturating_sub(since.elapsed());
            match self.next_within(left)? {
                None => return Err(format!("no close within {} ms", limit.as_millis())),
                Some((at, Incoming::Close(code))) => {
                    let after_ms = at.saturating_duration_since(since).as_millis();
                    let seen = format!("{} after {after_ms} ms", describe(&Incoming::Close(code)));
                    let expected = code.is_some_and(|code| codes.contains(&code));
                    // The answer ends the closing handshake; the gateway may have gone already.
                    self.send_what_may_be_refused(&close_frame(code.unwrap_or(close::NORMAL)));
                    return if expected { Ok(seen) } else { Err(seen) };
                }
                Some((_, end @ (Incoming::End | Incoming::Reset))) => {
                    return Err(format!("{} without a close frame", describe(&end)));
                }
                Some(_) => {}
            }
        }
    }

    /// Passes when the connection ends within `limit`.
    pub(super) fn expect_end(&mut self, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            match self.next_within(deadline.saturating_duration_since(Instant::now()))? {
                None => {
                    return Err(format!(
                        "the connection is still open after {} ms",
                        limit.as_millis()
                    ));
                }
                Some((_, Incoming::End | Incoming::Reset)) => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Ends the session as a client should, and waits for the answer.
    pub(super) fn close(mut self) -> Result<(), String> {
        self.send(&close_frame(close::NORMAL))?;
        self.expect_close(&[close::NORMAL], SOCKET_LIMIT)
            .map(|_| ())
    }
}

/// A client's close frame.
pub(super) fn close_frame(code: u16) -> Vec<u8> {
    RawFrame::new(Opcode::Close, &close::payload(code, "")).to_vec()
}

/// What came, in words.
pub(super) fn describe(incoming: &Incoming) -> String {
    match incoming {
        Incoming::Text(text) => match Message::parse(text) {
            Ok(message) => message.summary(),
            Err(error) => error,
        },
        Incoming::Binary(len) => format!("a binary message of {len} bytes"),
        Incoming::Ping(_) => "a ping".to_owned(),
        Incoming::Pong(payload) => format!("a pong of {} bytes", payload.len()),
        Incoming::Close(Some(code)) => format!("close {code}"),
        Incoming::Close(None) => "a close without a code".to_owned(),
        Incoming::End => "the connection ended".to_owned(),
        Incoming::Reset => "the connection was reset".to_owned(),
    }
}

fn connect(address: SocketAddr, small_buffers: bool) -> Result<TcpStream, String> {
    let connect = || -> std::io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        if small_buffers {
            socket.set_recv_buffer_size(2048)?;
            #[cfg(target_os = "linux")]
            socket.set_tcp_mss(536)?;
        }
        socket.connect_timeout(&address.into(), SOCKET_LIMIT)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_write_timeout(Some(SOCKET_LIMIT))?;
        Ok(socket.into())
    };
    connect().map_err(|error| format!("cannot connect to {address}: {error}"))
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

fn is_reset(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}
