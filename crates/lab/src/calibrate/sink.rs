//! A receiver that costs as little as possible. One thread reads all its sockets at fixed intervals, and answers no
//! more than the server that it plays would. A server that speaks unasked does so by the clock of the client's run.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use plimsoll_core::profile::Profile;
use plimsoll_engine::Company;
use plimsoll_engine::clock::Clock;
use plimsoll_host::isolation::{CpuList, OwnNetwork};
use plimsoll_workload::calibrate::{After, Server, Speaker};

use crate::error::{Error, Result};

/// Connections that may wait to be accepted: enough for many intervals.
const BACKLOG: i32 = 4_096;

/// A running sink. It ends when dropped.
#[derive(Debug)]
pub(super) struct Sink {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// The clock of the client's run, once it has begun.
    clock: Arc<OnceLock<Clock>>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Starts a sink on a free port, for a run with this profile: in a target's own network, or else on the loopback.
    ///
    /// # Errors
    /// No port or no thread is available.
    pub(super) fn start(
        server: Server,
        profile: &Profile,
        cpus: &CpuList,
        network: Option<&OwnNetwork>,
    ) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::Usage(format!("the calibration's sink could not start: {error}"))
        };
        let listener = listener(network).map_err(failed)?;
        // Listen again, because the standard library chooses its own backlog.
        let listening = socket2::SockRef::from(&listener).listen(BACKLOG);
        listening.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let clock = Arc::new(OnceLock::new());
        let thread = std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn({
                let (stop, cpus) = (Arc::clone(&stop), cpus.clone());
                let times = Times {
                    clock: Arc::clone(&clock),
                    profile: profile.clone(),
                };
                move || {
                    // If the affinity is refused, that costs the client time, and the result shows it.
                    let _ = cpus.bind_this_thread();
                    serve(server, &listener, &times, &stop);
                }
            })
            .map_err(failed)?;
        Ok(Self {
            address,
            stop,
            clock,
            thread: Some(thread),
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn listener(network: Option<&OwnNetwork>) -> std::io::Result<TcpListener> {
    match network {
        Some(network) => network
            .within(|| TcpListener::bind((network.target_address(), 0)))
            .map_err(std::io::Error::other)?,
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// The client's run and the sink share a clock, which starts when the run begins.
impl Company for Sink {
    fn begin(&self) -> std::io::Result<Clock> {
        Ok(*self.clock.get_or_init(Clock::start))
    }

    fn settled(&self) {}

    fn may_end(&self) -> bool {
        true
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

/// The times of the client's run.
struct Times {
    clock: Arc<OnceLock<Clock>>,
    profile: Profile,
}

/// The connection is over.
struct Over;

fn serve(mut server: Server, listener: &TcpListener, times: &Times, stop: &AtomicBool) {
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
            look(stream, &mut **speaker, times, &mut buffer, &mut out).is_ok()
        });
        std::thread::sleep(server.pace);
    }
}

/// Reads everything that is there, and says what is due.
fn look(
    stream: &mut TcpStream,
    speaker: &mut dyn Speaker,
    times: &Times,
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
    if after == After::GoOn
        && let Some(clock) = times.clock.get()
    {
        speaker.unasked(clock.now_ns(), &times.profile, out);
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
    use std::time::Duration;

    use plimsoll_host::isolation::Placement;

    use super::*;

    /// Says at each look how many ms of the run's warm-up have passed.
    struct Clockwork;

    impl Speaker for Clockwork {
        fn heard(&mut self, _bytes: &mut [u8], out: &mut Vec<u8>) -> After {
            out.extend_from_slice(b"hello ");
            After::GoOn
        }

        fn unasked(&mut self, now_ns: u64, profile: &Profile, out: &mut Vec<u8>) {
            let warm_up_ns = now_ns.saturating_sub(profile.ramp_end_ns());
            out.extend_from_slice(format!("{} ", warm_up_ns / 1_000_000).as_bytes());
        }
    }

    #[test]
    fn nothing_is_said_unasked_before_the_run_begins() {
        let cpus = CpuList::allowed_to_us().expect("a machine");
        let profile = Profile {
            ramp_s: 0.02,
            ..Profile::quick()
        };
        let server = Server::new(Duration::from_millis(1), || Clockwork);
        let sink = Sink::start(server, &profile, &cpus, None).expect("a sink");
        let mut stream = TcpStream::connect(sink.address()).expect("a connection");
        stream.write_all(b"?").expect("written");
        let mut heard = [0; 6];
        stream.read_exact(&mut heard).expect("an answer");
        assert_eq!(&heard, b"hello ");
        let timeout = Some(Duration::from_millis(30));
        stream.set_read_timeout(timeout).expect("a timeout");
        let silent = stream.read(&mut heard).expect_err("nothing is said");
        let kinds = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
        assert!(kinds.contains(&silent.kind()), "{silent}");
        let clock = sink.begin().expect("a clock");
        let mut said = String::new();
        // Until 40 ms of the warm-up have passed, however slow this machine is.
        while last_of(&said) < 40 && clock.now_ns() < 10_000_000_000 {
            if let Ok(read) = stream.read(&mut heard) {
                said.push_str(std::str::from_utf8(&heard[..read]).expect("digits"));
            }
        }
        // It is asked at each look, in the ramp as well.
        assert!(said.starts_with("0 "), "{said}");
        assert!(last_of(&said) >= 40, "{said}");
        // Whoever asks again gets the same clock.
        let again = sink.begin().expect("a clock");
        assert_eq!(again.epoch(), clock.epoch());
    }

    #[test]
    fn it_can_be_where_a_target_would_be() {
        let ours = CpuList::allowed_to_us().expect("a machine");
        let placement = Placement {
            client_cpus: ours.clone(),
            target_cpus: ours.clone(),
            vcpu: ours.vcpu(),
        };
        let network = match OwnNetwork::make(&placement, 1) {
            Ok(network) => network,
            Err(why) => {
                plimsoll_testing::skipped!("a network of its own cannot be had: {why}");
                return;
            }
        };
        let server = Server::new(Duration::from_millis(1), || Clockwork);
        let sink = Sink::start(server, &Profile::quick(), &ours, Some(&network)).expect("a sink");
        assert_eq!(sink.address().ip(), network.target_address());
        let mut stream = TcpStream::connect(sink.address()).expect("a connection");
        stream.write_all(b"?").expect("written");
        let mut heard = [0; 6];
        stream.read_exact(&mut heard).expect("an answer");
        assert_eq!(&heard, b"hello ");
    }

    /// The last whole number.
    fn last_of(said: &str) -> u64 {
        let whole = said.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let last = whole.split_whitespace().last();
        last.map_or(0, |number| number.parse().expect("a number"))
    }

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
