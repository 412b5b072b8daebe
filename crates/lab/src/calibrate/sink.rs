//! A receiver that costs as little as can be: one thread that reads all its sockets at a pace and discards what they hold. Every fifty frames it answers: with
//! a right partial when it plays a gateway, with as many bytes when it serves the bare loop.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_workloads::stt::reference::compute;
use plimsoll_workloads::stt::synthetic::Synthetic;
use plimsoll_workloads::websocket::handshake::accept_for;
use plimsoll_workloads::websocket::{Opcode, RawFrame};

use crate::error::{Error, Result};
use crate::isolation::CpuList;

/// Time between two looks at the sockets.
const PACE: Duration = Duration::from_millis(20);
/// A masked frame of 640 bytes.
const FRAME_BYTES: usize = 648;
/// The start message: `{"type":"start"}` behind a header of 6 bytes.
const START_BYTES: usize = 22;
const FRAMES_PER_PARTIAL: u64 = 50;
/// About what a partial has on the wire.
const PARTIAL_BYTES: usize = 330;

/// What a sink does with what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SinkKind {
    /// It answers every fifty messages with as many bytes as a partial has: the same traffic in both directions as a gateway's, for TCP
    /// acknowledges otherwise where one side is silent.
    Bytes,
    /// It plays a gateway of the speech-to-text contract for synthetic audio, without looking at it.
    Gateway,
}

/// A running sink; it ends when dropped.
#[derive(Debug)]
pub(super) struct Sink {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Starts one on a free port of the loopback.
    ///
    /// # Errors
    /// When no port or thread can be had.
    pub(super) fn start(kind: SinkKind, cpus: &CpuList) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::Usage(format!("the calibration's sink could not start: {error}"))
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn({
                let (stop, cpus) = (Arc::clone(&stop), cpus.clone());
                move || {
                    // Refused affinity costs the client time, which the result then shows.
                    let _ = cpus.bind_this_thread();
                    serve(&listener, kind, &stop);
                }
            })
            .map_err(failed)?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
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

fn serve(listener: &TcpListener, kind: SinkKind, stop: &AtomicBool) {
    let mut connections: Vec<Connection> = Vec::new();
    let mut answers = Answers::default();
    let mut buffer = vec![0; 256 * 1024];
    while !stop.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                connections.push(Connection::new(stream));
            }
        }
        connections
            .retain_mut(|connection| connection.look(kind, &mut buffer, &mut answers).is_ok());
        std::thread::sleep(PACE);
    }
}

/// The connection is over.
struct Over;

struct Connection {
    stream: TcpStream,
    /// The upgrade request so far; `None` once it was answered.
    request: Option<Vec<u8>>,
    /// Bytes since the upgrade.
    bytes: usize,
    /// Frames answered.
    answered: u64,
    /// Which synthetic session this is, known from its first frame.
    session: Option<u64>,
    head: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            request: Some(Vec::new()),
            bytes: 0,
            answered: 0,
            session: None,
            head: Vec::new(),
        }
    }

    /// Reads all there is, answers what is owed.
    fn look(
        &mut self,
        kind: SinkKind,
        buffer: &mut [u8],
        answers: &mut Answers,
    ) -> std::result::Result<(), Over> {
        loop {
            let read = match self.stream.read(buffer) {
                Ok(0) => return Err(Over),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(Over),
            };
            if kind == SinkKind::Gateway {
                self.take(&buffer[..read])?;
            } else {
                self.bytes += read;
            }
            if read < buffer.len() {
                break;
            }
        }
        while self.frames(kind) >= self.answered + FRAMES_PER_PARTIAL {
            match (kind, self.session) {
                (SinkKind::Bytes, _) => self.write(&[b' '; PARTIAL_BYTES])?,
                (SinkKind::Gateway, Some(session)) => {
                    let partial = answers.partial(session, self.answered + 1);
                    self.write(&partial)?;
                }
                (SinkKind::Gateway, None) => break,
            }
            self.answered += FRAMES_PER_PARTIAL;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), Over> {
        self.stream.write_all(bytes).map_err(|_| Over)
    }

    fn frames(&self, kind: SinkKind) -> u64 {
        let before = match kind {
            SinkKind::Bytes => 0,
            SinkKind::Gateway => START_BYTES,
        };
        (self.bytes.saturating_sub(before) / FRAME_BYTES) as u64
    }

    fn take(&mut self, bytes: &[u8]) -> std::result::Result<(), Over> {
        let mut stream_bytes = bytes;
        if let Some(request) = &mut self.request {
            request.extend_from_slice(bytes);
            let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Ok(());
            };
            let accept = accept_in(&request[..end]).ok_or(Over)?;
            stream_bytes = &bytes[bytes.len() - (request.len() - end - 4)..];
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            self.stream.write_all(answer.as_bytes()).map_err(|_| Over)?;
            self.request = None;
        }
        self.bytes += stream_bytes.len();
        if self.session.is_none() {
            self.head.extend_from_slice(stream_bytes);
            self.session = session_of(&self.head);
            if self.session.is_some() {
                self.head = Vec::new();
            }
        }
        Ok(())
    }
}

fn accept_in(request: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(request).ok()?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
        .map(|(_, key)| accept_for(key.trim()))
}

/// The synthetic session whose first frame this stream (start message, then frames) holds: its first sample is
/// `((320 + s) * 17 mod 20000) - 10000`, and 17 has an inverse modulo 20,000.
fn session_of(stream: &[u8]) -> Option<u64> {
    const INVERSE_OF_17: u64 = 2_353;
    let frame = stream.get(START_BYTES..START_BYTES + 10)?;
    let sample = i16::from_le_bytes([frame[8] ^ frame[4], frame[9] ^ frame[5]]);
    let shifted = u64::try_from(i32::from(sample) + 10_000).ok()?;
    Some((shifted * INVERSE_OF_17 % 20_000 + 20_000 - 320) % 20_000)
}

/// Right answers for synthetic batches of fifty frames. Of those a session has only five, for 5 · 50 frames are whole periods of the table.
#[derive(Default)]
struct Answers {
    synthetic: Synthetic,
    known: HashMap<(u64, u64), String>,
}

impl Answers {
    fn partial(&mut self, session: u64, oldest: u64) -> Vec<u8> {
        let synthetic = &self.synthetic;
        let fields = self
            .known
            .entry((session, oldest % (5 * FRAMES_PER_PARTIAL)))
            .or_insert_with(|| {
                let pcm = synthetic.batch(session, oldest, FRAMES_PER_PARTIAL);
                compute(&pcm, 4)
                    .ok()
                    .and_then(|answer| serde_json::to_string(&answer).ok())
                    .unwrap_or_default()
            });
        // The answer's fields are six of the partial's.
        let rest = fields.trim_start_matches('{').trim_end_matches('}');
        let newest = oldest + FRAMES_PER_PARTIAL - 1;
        let text = format!(
            r#"{{"type":"partial","oldest_frame_seq":{oldest},"newest_frame_seq":{newest},"frames":{FRAMES_PER_PARTIAL},{rest},"cpu_passes":4,"model_delay_ms":0,"flush_lateness_ms":0.0,"inflight_model_jobs":0}}"#
        );
        RawFrame::server(Opcode::Text, text.as_bytes()).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workloads::stt::messages::{GatewayMessage, START};
    use plimsoll_workloads::websocket::{append_client_frame, frame::client_header};

    #[test]
    fn a_session_is_known_by_its_first_sample() {
        for session in [0_u64, 1, 319, 5_000, 19_999] {
            let mut stream = Vec::new();
            append_client_frame(
                &mut stream,
                true,
                Opcode::Text,
                START.as_bytes(),
                [1, 2, 3, 4],
            );
            assert_eq!(stream.len(), START_BYTES);
            let frame = Synthetic::new().frame(session, 1).to_vec();
            append_client_frame(&mut stream, true, Opcode::Binary, &frame, [5, 6, 7, 8]);
            assert_eq!(stream.len(), START_BYTES + FRAME_BYTES);
            assert_eq!(session_of(&stream), Some(session));
            assert_eq!(session_of(&stream[..30]), None);
        }
        assert_eq!(client_header(true, Opcode::Binary, 640, [0; 4]).1, 8);
    }

    #[test]
    fn its_partials_are_of_the_contract() {
        let mut answers = Answers::default();
        for oldest in [1, 51, 251, 1_001] {
            let frame = answers.partial(7, oldest);
            let text = std::str::from_utf8(&frame[4..]).unwrap();
            let Ok(GatewayMessage::Partial(partial)) = GatewayMessage::parse(text) else {
                panic!("not a partial: {text}");
            };
            assert!(partial.sizes_and_word_are_right());
            let pcm = Synthetic::new().batch(7, oldest, 50);
            assert_eq!(partial.checksum, compute(&pcm, 4).unwrap().checksum);
        }
    }
}
