//! A receiver that costs as little as possible. One thread reads all its sockets at fixed intervals, and answers no
//! more than the server that it plays would.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use plimsoll_host::isolation::CpuList;
use plimsoll_workload::calibrate::{After, Server, Speaker};

use crate::error::{Error, Result};

/// Connections that may wait to be accepted: enough for many intervals.
const BACKLOG: i32 = 4_096;

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
    pub(super) fn start(server: Server, cpus: &CpuList) -> Result<Self> {
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
                    serve(server, &listener, &stop);
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

/// The connection is over.
struct Over;

fn serve(mut server: Server, listener: &TcpListener, stop: &AtomicBool) {
    let mut connections: Vec<(TcpStream, Box<dyn Speaker>)> = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut out = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                connections.push((stream, (server.speakers)()));
            }
        }
        connections.retain_mut(|(stream, speaker)| {
            out.clear();
            look(stream, &mut **speaker, &mut buffer, &mut out).is_ok()
        });
        std::thread::sleep(server.pace);
    }
}

/// Reads everything that is there, and answers what is due.
fn look(
    stream: &mut TcpStream,
    speaker: &mut dyn Speaker,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Discarding {
    frame_bytes: usize,
    frames_per_answer: u64,
    answer_bytes: usize,
    bytes: usize,
    answered: u64,
}

impl Discarding {
    /// Answers every so many frames with so many bytes.
    pub(super) fn new(frame_bytes: usize, frames_per_answer: u64, answer_bytes: usize) -> Self {
        Self {
            frame_bytes,
            frames_per_answer: frames_per_answer.max(1),
            answer_bytes,
            bytes: 0,
            answered: 0,
        }
    }
}

impl Speaker for Discarding {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        self.bytes += bytes.len();
        let frames = (self.bytes / self.frame_bytes) as u64;
        while frames >= self.answered + self.frames_per_answer {
            out.resize(out.len() + self.answer_bytes, b' ');
            self.answered += self.frames_per_answer;
        }
        After::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_discarded_is_answered_in_bytes() {
        let mut discarding = Discarding::new(100, 50, 117);
        let mut out = Vec::new();
        discarding.heard(&mut [0; 4_999], &mut out);
        assert!(out.is_empty());
        discarding.heard(&mut [0; 5_001], &mut out);
        assert_eq!(out.len(), 2 * 117);
    }
}
