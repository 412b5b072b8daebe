//! A receiver that costs as little as possible. One thread reads all its sockets at fixed intervals, and answers no
//! more than the server that it plays would.

mod gateway;
mod ws;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_host::isolation::CpuList;
use plimsoll_protocol::websocket::handshake::accept_for;

use super::bare::STT_FRAME_BYTES;
use crate::error::{Error, Result};

use gateway::{FRAMES_PER_PARTIAL, Gateway};
use ws::{Echo, Wse};

pub(super) use ws::PONG_BYTES;

/// Time between two reads of the sockets, if nobody waits for an answer to each frame.
const PACE: Duration = Duration::from_millis(20);
/// The same for messages. There are many more of them per second, and what arrives in between must fit into the socket.
const MESSAGES_PACE: Duration = Duration::from_millis(5);
/// The same if each message and each connection is answered.
const ECHO_PACE: Duration = Duration::from_millis(1);
/// Connections that may wait to be accepted: enough for many intervals.
const BACKLOG: i32 = 4_096;
/// About the size of a partial on the wire.
const PARTIAL_BYTES: usize = 330;

/// What a sink does with what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SinkKind {
    /// Discards its input, and answers with as many bytes as another kind would. The traffic is then the same in both
    /// directions. TCP acknowledges differently if one side is silent.
    Bytes(Bytes),
    /// Plays a gateway of the speech-to-text contract for synthetic audio, without looking at the audio.
    Gateway,
    /// Plays a server of dialect `wse` that answers pings and discards messages of this length.
    Wse {
        /// Length of a message, bytes.
        message_bytes: usize,
    },
    /// Sends every message back, and closes when asked to.
    Echo,
}

/// How much a discarding sink answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes {
    frame_bytes: usize,
    frames_per_answer: u64,
    answer_bytes: usize,
    pace: Duration,
}

impl Bytes {
    /// As much as a gateway for synthetic audio does.
    pub(super) const GATEWAY: Self = Self {
        frame_bytes: STT_FRAME_BYTES,
        frames_per_answer: FRAMES_PER_PARTIAL,
        answer_bytes: PARTIAL_BYTES,
        pace: PACE,
    };

    /// As much as a server of dialect `wse` does that is pinged after every `frames_per_barrier` messages.
    pub(super) fn wse(frame_bytes: usize, frames_per_barrier: u64) -> Self {
        Self {
            frame_bytes,
            frames_per_answer: frames_per_barrier.max(1),
            answer_bytes: PONG_BYTES,
            pace: MESSAGES_PACE,
        }
    }
}

/// A running sink. It ends when dropped.
#[derive(Debug)]
pub(super) struct Sink {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Starts a sink on a free port of the loopback.
    ///
    /// # Errors
    /// No port or no thread is available.
    pub(super) fn start(kind: SinkKind, cpus: &CpuList) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::Usage(format!("the calibration's sink could not start: {error}"))
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        // Listen again, because the standard library chooses its own backlog.
        let listening = socket2::SockRef::from(&listener).listen(BACKLOG);
        listening.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn({
                let (stop, cpus) = (Arc::clone(&stop), cpus.clone());
                move || {
                    // If the affinity is refused, that costs the client time, and the result shows it.
                    let _ = cpus.bind_this_thread();
                    play(kind, &listener, &stop);
                }
            })
            .map_err(failed)?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn play(kind: SinkKind, listener: &TcpListener, stop: &AtomicBool) {
    match kind {
        SinkKind::Bytes(bytes) => serve(listener, bytes.pace, stop, || Discarding::new(bytes)),
        SinkKind::Gateway => {
            let answers = Rc::default();
            serve(listener, PACE, stop, || {
                Upgraded::new(Gateway::new(Rc::clone(&answers)))
            });
        }
        SinkKind::Wse { message_bytes } => serve(listener, MESSAGES_PACE, stop, || {
            Upgraded::new(Wse::new(message_bytes))
        }),
        SinkKind::Echo => serve(listener, ECHO_PACE, stop, || Upgraded::new(Echo::default())),
    }
}

/// What a sink sends on one of its connections.
trait Speaker {
    /// What it sends before it has received anything.
    fn opening(&mut self, _out: &mut Vec<u8>) {}

    /// Takes the received bytes, which it may overwrite, and adds to `out` what is to be written.
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After;
}

/// What happens to a connection once everything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    GoOn,
    Close,
}

/// The connection is over.
struct Over;

fn serve<S: Speaker>(
    listener: &TcpListener,
    pace: Duration,
    stop: &AtomicBool,
    speaker: impl Fn() -> S,
) {
    let mut connections: Vec<(TcpStream, S)> = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut out = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                connections.push((stream, speaker()));
            }
        }
        connections.retain_mut(|(stream, speaker)| {
            out.clear();
            look(stream, speaker, &mut buffer, &mut out).is_ok()
        });
        std::thread::sleep(pace);
    }
}

/// Reads everything that is there, and answers what is due.
fn look(
    stream: &mut TcpStream,
    speaker: &mut impl Speaker,
    buffer: &mut [u8],
    out: &mut Vec<u8>,
) -> std::result::Result<(), Over> {
    let mut after = After::GoOn;
    while after == After::GoOn {
        let read = match stream.read(buffer) {
            Ok(0) => return Err(Over),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Err(Over),
        };
        after = speaker.heard(&mut buffer[..read], out);
        if read < buffer.len() {
            break;
        }
    }
    if !out.is_empty() {
        stream.write_all(out).map_err(|_| Over)?;
    }
    match after {
        After::GoOn => Ok(()),
        After::Close => Err(Over),
    }
}

/// Counts the bytes it receives, and sends some in answer from time to time.
struct Discarding {
    bytes: usize,
    answered: u64,
    how: Bytes,
}

impl Discarding {
    fn new(how: Bytes) -> Self {
        Self {
            bytes: 0,
            answered: 0,
            how,
        }
    }
}

impl Speaker for Discarding {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        self.bytes += bytes.len();
        let frames = (self.bytes / self.how.frame_bytes) as u64;
        while frames >= self.answered + self.how.frames_per_answer {
            out.resize(out.len() + self.how.answer_bytes, b' ');
            self.answered += self.how.frames_per_answer;
        }
        After::GoOn
    }
}

/// A WebSocket connection: first its upgrade, then its messages.
struct Upgraded<S> {
    /// The upgrade request so far; `None` once it is answered.
    request: Option<Vec<u8>>,
    speaker: S,
}

impl<S> Upgraded<S> {
    fn new(speaker: S) -> Self {
        Self {
            request: Some(Vec::new()),
            speaker,
        }
    }
}

impl<S: Speaker> Speaker for Upgraded<S> {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let Some(mut request) = self.request.take() else {
            return self.speaker.heard(bytes, out);
        };
        request.extend_from_slice(bytes);
        let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else {
            self.request = Some(request);
            return After::GoOn;
        };
        let Some(accept) = accept_in(&request[..end]) else {
            return After::Close;
        };
        out.extend_from_slice(
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            )
            .as_bytes(),
        );
        self.speaker.opening(out);
        match &mut request[end + 4..] {
            [] => After::GoOn,
            rest => self.speaker.heard(rest, out),
        }
    }
}

fn accept_in(request: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(request).ok()?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
        .map(|(_, key)| accept_for(key.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_discarded_is_answered_in_bytes() {
        let mut discarding = Discarding::new(Bytes::wse(100, 50));
        let mut out = Vec::new();
        discarding.heard(&mut [0; 4_999], &mut out);
        assert!(out.is_empty());
        discarding.heard(&mut [0; 5_001], &mut out);
        assert_eq!(out.len(), 2 * PONG_BYTES);
    }

    #[test]
    fn a_request_may_come_in_pieces_with_a_message_behind_it() {
        let mut connection = Upgraded::new(Echo::default());
        let mut out = Vec::new();
        let mut first = *b"GET / HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        assert_eq!(connection.heard(&mut first, &mut out), After::GoOn);
        assert!(out.is_empty());
        let mut second = *b"\r\n\x81\x81\0\0\0\0x";
        assert_eq!(connection.heard(&mut second, &mut out), After::GoOn);
        // The example of RFC 6455, section 1.3.
        let answer = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        let expected = [answer.as_bytes(), b"\x81\x01x"].concat();
        assert!(
            out.ends_with(&expected),
            "{:?}",
            String::from_utf8_lossy(&out)
        );
        let mut no_key = *b"GET / HTTP/1.1\r\n\r\n";
        let mut connection = Upgraded::new(Echo::default());
        assert_eq!(connection.heard(&mut no_key, &mut out), After::Close);
    }
}
