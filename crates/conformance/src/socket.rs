//! The client that cases are written with: a WebSocket, blocking, with time-outs.
//!
//! Every function fails with a text that says what was seen, so that a case can hand it on with `?`.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use plimsoll_protocol::websocket::{
    Decoder, Event, Handshake, Opcode, Outcome, RawFrame, close, upgrade_request,
};
use socket2::{Domain, Socket as Sys, Type};

use super::case::{AT_ONCE, Verdict};

/// How long a handshake, or any single write, may take.
pub const SOCKET_LIMIT: Duration = Duration::from_secs(3);

/// After the closes, the server ends the connection within this time.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How to connect.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The request path.
    pub path: String,
    /// The whole `Authorization` field.
    pub authorization: Option<String>,
    /// Other fields of the request.
    pub headers: Vec<(&'static str, String)>,
    /// Small buffers on this side, and a small segment size that keeps the other side's small too: so a client that does
    /// not read is felt by the server after some ten kilobytes instead of megabytes.
    pub small_buffers: bool,
    /// Write the handshake byte by byte.
    pub byte_by_byte: bool,
    /// No message of the contract is longer.
    pub message_max_bytes: u32,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            path: "/".to_owned(),
            authorization: None,
            headers: Vec::new(),
            small_buffers: false,
            byte_by_byte: false,
            message_max_bytes: 64 * 1024,
        }
    }
}

/// What came from the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A whole text message.
    Text(String),
    /// A whole binary message.
    Binary(Vec<u8>),
    /// A ping.
    Ping(Vec<u8>),
    /// A pong.
    Pong(Vec<u8>),
    /// A close, with its code if it has one.
    Close(Option<u16>),
    /// The connection ended in order.
    End,
    /// The connection was reset.
    Reset,
}

/// How an upgrade was answered.
#[derive(Debug)]
pub enum Upgrade<T> {
    /// 101, and what was made of it.
    Done(T),
    /// Anything else.
    Refused {
        /// The status.
        status: u16,
        /// The fields of the answer.
        headers: Vec<(String, String)>,
    },
}

impl<T> Upgrade<T> {
    /// The same with something else made of a 101.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Upgrade<U> {
        match self {
            Self::Done(made) => Upgrade::Done(make(made)),
            Self::Refused { status, headers } => Upgrade::Refused { status, headers },
        }
    }

    /// What was made of an upgrade that should have been granted.
    ///
    /// # Errors
    /// It was refused.
    pub fn accepted(self) -> Result<T, String> {
        match self {
            Self::Done(made) => Ok(made),
            Self::Refused { status, .. } => Err(format!("the upgrade was answered {status}")),
        }
    }
}

/// One upgraded socket.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    decoder: Decoder,
    queue: VecDeque<(Instant, Incoming)>,
}

impl Socket {
    /// Connects and upgrades. Sockets with different numbers have different keys.
    ///
    /// # Errors
    /// The upgrade was not answered, or not as RFC 6455 says.
    pub fn open(
        address: SocketAddr,
        how: &Connection,
        number: u64,
    ) -> Result<Upgrade<Self>, String> {
        let key = key(number);
        let mut headers: Vec<(&str, &str)> = how
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        if let Some(authorization) = &how.authorization {
            headers.push(("Authorization", authorization.as_str()));
        }
        let request = upgrade_request(&address.to_string(), &how.path, key, &headers)
            .map_err(|error| error.to_string())?;
        Self::open_with(address, how, &request, number)
    }

    /// Connects and writes this request for an upgrade, whose key is that of `number` if it has one.
    ///
    /// # Errors
    /// The request was not answered, or with a 101 that RFC 6455 forbids.
    pub fn open_with(
        address: SocketAddr,
        how: &Connection,
        request: &[u8],
        number: u64,
    ) -> Result<Upgrade<Self>, String> {
        let mut stream = connect(address, how.small_buffers.then_some(2048))?;
        let pieces = if how.byte_by_byte { 1 } else { request.len() };
        for piece in request.chunks(pieces) {
            stream
                .write_all(piece)
                .map_err(|error| format!("the upgrade request could not be sent: {error}"))?;
        }
        let mut handshake = Handshake::new(key(number));
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
                    let mut socket = Self {
                        stream,
                        decoder: Decoder::new(how.message_max_bytes),
                        queue: VecDeque::new(),
                    };
                    socket.decode(&buffer[leftover_offset..n])?;
                    return Ok(Upgrade::Done(socket));
                }
            }
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The server took none for [`SOCKET_LIMIT`], or the connection is gone.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(bytes)
            .map_err(|error| format!("the target stopped reading: {error}"))
    }

    /// Sends one whole message, masked.
    ///
    /// # Errors
    /// As [`Socket::send`].
    pub fn say(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), String> {
        self.send(&RawFrame::new(opcode, payload).to_vec())
    }

    /// Sends bytes to which the server may answer by closing before it has read them all.
    pub fn send_what_may_be_refused(&mut self, bytes: &[u8]) {
        // A failed write is no finding: the answer, or its absence, is.
        let _ = self.stream.write_all(bytes);
    }

    /// Sends what the server takes of these bytes within `limit`; how many that were.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send_what_is_taken(&mut self, bytes: &[u8], limit: Duration) -> Result<usize, String> {
        let gone = |error: std::io::Error| format!("the connection is gone: {error}");
        self.stream.set_write_timeout(Some(limit)).map_err(gone)?;
        let mut taken = 0;
        while taken < bytes.len() {
            match self.stream.write(&bytes[taken..]) {
                Ok(n) => taken += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => break,
                Err(error) => return Err(gone(error)),
            }
        }
        let usual = self.stream.set_write_timeout(Some(SOCKET_LIMIT));
        usual.map_err(gone).map(|()| taken)
    }

    /// Goes away without a close: the connection ends here and now.
    pub fn vanish(self) {
        // A connection that is gone already is what was asked for.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// The next thing that comes, or `None` when nothing does within `limit`.
    ///
    /// # Errors
    /// What came breaks RFC 6455, or reading failed.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<(Instant, Incoming)>, String> {
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

    /// Gives back what was taken by [`Socket::next_within`], to come next.
    pub fn give_back(&mut self, incoming: (Instant, Incoming)) {
        self.queue.push_front(incoming);
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<(), String> {
        let now = Instant::now();
        let queue = &mut self.queue;
        let result = self.decoder.decode(bytes, |event| {
            let incoming = match event {
                Event::Text(text) => Incoming::Text(text.to_owned()),
                Event::Binary(bytes) => Incoming::Binary(bytes.to_vec()),
                Event::Ping(payload) => Incoming::Ping(payload.to_vec()),
                Event::Pong(payload) => Incoming::Pong(payload.to_vec()),
                Event::Close(close) => Incoming::Close(close.code),
            };
            queue.push_back((now, incoming));
            ControlFlow::Continue(())
        });
        match result {
            Ok(_) => Ok(()),
            Err(violation) => Err(format!("the target broke RFC 6455: {violation}")),
        }
    }

    /// Passes when nothing at all comes within `limit`.
    ///
    /// # Errors
    /// What came.
    pub fn expect_silence(&mut self, limit: Duration) -> Result<(), String> {
        match self.next_within(limit)? {
            None => Ok(()),
            Some((_, incoming)) => Err(format!("{}, though nothing was due", describe(&incoming))),
        }
    }

    /// Passes when the server closes with one of `codes` within `limit`. Messages before it are passed over.
    ///
    /// # Errors
    /// It did not, or with another code.
    pub fn expect_close(&mut self, codes: &[u16], limit: Duration) -> Verdict {
        let since = Instant::now();
        loop {
            let left = limit.saturating_sub(since.elapsed());
            match self.next_within(left)? {
                None => return Err(format!("no close within {} ms", limit.as_millis())),
                Some((at, Incoming::Close(code))) => {
                    let after_ms = at.saturating_duration_since(since).as_millis();
                    let seen = format!("{} after {after_ms} ms", describe(&Incoming::Close(code)));
                    let expected = code.is_some_and(|code| codes.contains(&code));
                    // The answer ends the closing handshake; the server may have gone already.
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

    /// Passes when a pong with this payload comes at once. Messages before it are passed over.
    ///
    /// # Errors
    /// What came instead.
    pub fn expect_pong(&mut self, payload: &[u8]) -> Result<(), String> {
        let deadline = Instant::now() + AT_ONCE;
        loop {
            match self.next_within(deadline.saturating_duration_since(Instant::now()))? {
                None => return Err(format!("no pong within {} ms", AT_ONCE.as_millis())),
                Some((_, Incoming::Pong(seen))) if seen == payload => return Ok(()),
                Some((_, Incoming::Pong(seen))) => {
                    return Err(format!("a pong with {seen:02x?} instead of {payload:02x?}"));
                }
                Some((_, Incoming::Text(_) | Incoming::Binary(_))) => {}
                Some((_, other)) => return Err(format!("{} instead of a pong", describe(&other))),
            }
        }
    }

    /// Passes when the server answers a close of ours at once with the same code, and then ends the connection. Where
    /// ours had no code, 1000 is as good as none. Messages before it are passed over.
    ///
    /// # Errors
    /// What came instead.
    pub fn expect_answered_close(&mut self, code: Option<u16>) -> Verdict {
        let since = Instant::now();
        let seen = loop {
            match self.next_within(AT_ONCE.saturating_sub(since.elapsed()))? {
                None => return Err(format!("no close within {} ms", AT_ONCE.as_millis())),
                Some((_, Incoming::Text(_) | Incoming::Binary(_))) => {}
                Some((_, Incoming::Close(seen))) => break seen,
                Some((_, other)) => return Err(format!("{} instead of a close", describe(&other))),
            }
        };
        let as_expected = seen == code || (code.is_none() && seen == Some(close::NORMAL));
        let text = format!(
            "{} after {} ms",
            describe(&Incoming::Close(seen)),
            since.elapsed().as_millis()
        );
        if !as_expected {
            return Err(text);
        }
        // RFC 6455, section 7.1.1: the server ends the connection, at once.
        self.expect_end(END_LIMIT)?;
        Ok(text)
    }

    /// Passes when the connection ends within `limit`.
    ///
    /// # Errors
    /// It is still open.
    pub fn expect_end(&mut self, limit: Duration) -> Result<(), String> {
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

    /// Ends the connection as a client should, and waits for the answer.
    ///
    /// # Errors
    /// There was no answer, or another.
    pub fn close(mut self) -> Result<(), String> {
        self.send(&close_frame(close::NORMAL))?;
        self.expect_close(&[close::NORMAL], SOCKET_LIMIT)
            .map(|_| ())
    }
}

/// The key of a socket's upgrade request.
#[must_use]
pub fn key(number: u64) -> [u8; 16] {
    let key = u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    key.to_be_bytes()
}

/// A client's close frame.
#[must_use]
pub fn close_frame(code: u16) -> Vec<u8> {
    RawFrame::new(Opcode::Close, &close::payload(code, "")).to_vec()
}

/// A message in fragments of these sizes; the last takes the rest.
#[must_use]
pub fn in_fragments(opcode: Opcode, payload: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = payload;
    let mut frames = Vec::new();
    let mut opcode = opcode;
    for size in sizes {
        let (part, tail) = rest.split_at(*size);
        let fragment = RawFrame {
            fin: false,
            ..RawFrame::new(opcode, part)
        };
        frames.push(fragment.to_vec());
        (rest, opcode) = (tail, Opcode::Continuation);
    }
    frames.push(RawFrame::new(opcode, rest).to_vec());
    frames
}

/// What came, in words.
#[must_use]
pub fn describe(incoming: &Incoming) -> String {
    match incoming {
        Incoming::Text(text) if text.len() <= 100 => format!("the text {text:?}"),
        Incoming::Text(text) => format!("a text of {} bytes", text.len()),
        Incoming::Binary(bytes) => format!("a binary message of {} bytes", bytes.len()),
        Incoming::Ping(_) => "a ping".to_owned(),
        Incoming::Pong(payload) => format!("a pong of {} bytes", payload.len()),
        Incoming::Close(Some(code)) => format!("close {code}"),
        Incoming::Close(None) => "a close without a code".to_owned(),
        Incoming::End => "the connection ended".to_owned(),
        Incoming::Reset => "the connection was reset".to_owned(),
    }
}

/// A connection whose writes have a time-out and whose segments leave at once.
///
/// `receive_bytes` asks for a receive buffer of this size, and for a small segment size that keeps the other side's
/// buffer small too: see [`Connection::small_buffers`].
///
/// # Errors
/// The server does not accept it.
pub fn connect(address: SocketAddr, receive_bytes: Option<usize>) -> Result<TcpStream, String> {
    let connect = || -> std::io::Result<TcpStream> {
        let socket = Sys::new(Domain::for_address(address), Type::STREAM, None)?;
        if let Some(bytes) = receive_bytes {
            socket.set_recv_buffer_size(bytes)?;
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
