//! Messages both ways between two sides that know each other. A thread of its own drives each connection.
//!
//! One side probes the other's clock every second, and the other answers at once. So silence tells either side that the other is
//! gone.

use std::fmt;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};
use rustls::Connection as Tls;
use serde::Serialize;

use crate::exchange::{ClockOffset, Exchange};
use crate::frame::{BadFrame, Decoder, Frame, encode};
use crate::greeting::Channel;

/// Whoever says nothing for so long is gone.
pub const SILENCE: Duration = Duration::from_secs(3);
/// How often a clock is probed.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// So many probes come one after the other at the beginning, each after the answer to the one before.
pub const FIRST_PROBES: u64 = 20;
/// How long the last words may take after the connection is dropped.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Who probes whose clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Probes: the coordinator.
    Probes,
    /// Answers: the agent.
    Answers,
}

/// What comes from the other side.
#[derive(Debug)]
pub enum Event {
    /// A message, as JSON.
    Message(Vec<u8>),
    /// Nothing more comes, for this reason.
    Gone(String),
}

/// A connection to the other side. Dropping it ends it, and waits until what was said has been sent.
pub struct Connection {
    outgoing: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
    wake: Arc<OwnedFd>,
    exchange: Arc<Mutex<Exchange>>,
    peer: Option<IpAddr>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Connection")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Starts the thread. It calls `on_event` with what comes, and last with [`Event::Gone`].
    ///
    /// # Errors
    /// The system refuses a thread or an eventfd.
    pub fn start(
        channel: Channel,
        side: Side,
        on_event: impl FnMut(Event) + Send + 'static,
    ) -> std::io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let exchange = Arc::new(Mutex::new(Exchange::default()));
        let peer = channel.peer();
        let (outgoing, to_send) = self::channel();
        let driver = Driver {
            stream: channel.stream,
            tls: channel.tls,
            decoder: channel.decoder,
            to_send,
            wake: Arc::clone(&wake),
            exchange: Arc::clone(&exchange),
            side,
            heard_at: Instant::now(),
            probed_at: None,
            on_event,
        };
        let thread = std::thread::Builder::new()
            .name("fleet".to_owned())
            .spawn(move || driver.run())?;
        Ok(Self {
            outgoing,
            thread: Some(thread),
            wake,
            exchange,
            peer,
        })
    }

    /// Says something. If the other side is gone, nobody hears it: the event tells.
    ///
    /// # Errors
    /// It is longer than the other side accepts.
    pub fn say(&self, message: &impl Serialize) -> Result<(), BadFrame> {
        let json = serde_json::to_vec(message).map_err(|_| BadFrame::Nonsense)?;
        let _ = self.outgoing.send(encode(&Frame::Message(json))?);
        self.wake();
        Ok(())
    }

    /// How far the other side's clock is ahead, once enough probes were answered.
    #[must_use]
    pub fn offset(&self) -> Option<ClockOffset> {
        let exchange = locked(&self.exchange);
        exchange
            .offset()
            .filter(|_| exchange.answers() >= FIRST_PROBES)
    }

    /// How wrong an earlier offset may be by now, in ns.
    #[must_use]
    pub fn error_of_ns(&self, earlier: &ClockOffset) -> u64 {
        locked(&self.exchange).error_of_ns(earlier)
    }

    /// Where the other side is.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The thread sees that nobody can say anything any more.
        let (closed, _) = channel();
        self.outgoing = closed;
        self.wake();
        // A command that ended at once would take the last words with it. They have two seconds at most.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Nanoseconds of this machine's monotonic clock.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn locked(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long to wait at most: a millisecond at least, so that a moment that has just passed is no busy loop.
fn timeout(wait: Duration) -> Timespec {
    let wait = wait.max(Duration::from_millis(1));
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(wait.subsec_nanos()),
    }
}

/// The thread of a connection.
struct Driver<F> {
    stream: TcpStream,
    tls: Tls,
    decoder: Decoder,
    to_send: Receiver<Vec<u8>>,
    wake: Arc<OwnedFd>,
    exchange: Arc<Mutex<Exchange>>,
    side: Side,
    heard_at: Instant,
    probed_at: Option<Instant>,
    on_event: F,
}

impl<F: FnMut(Event)> Driver<F> {
    fn run(mut self) {
        self.tls.set_buffer_limit(None);
        let why = loop {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => break "the connection was ended here".to_owned(),
                Err(why) => break why,
            }
        };
        (self.on_event)(Event::Gone(why));
    }

    /// Sends what is to be sent, waits, and hears what came. Returns false when nobody here wants the connection any more.
    fn turn(&mut self) -> Result<bool, String> {
        loop {
            match self.to_send.try_recv() {
                Ok(bytes) => self.put(&bytes)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.say_goodbye();
                    return Ok(false);
                }
            }
        }
        self.probe_if_due()?;
        self.flush()?;
        self.wait()?;
        self.hear()?;
        if self.heard_at.elapsed() > SILENCE {
            return Err(format!("no word for {} s", SILENCE.as_secs()));
        }
        Ok(true)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.tls
            .writer()
            .write_all(bytes)
            .map_err(|error| error.to_string())
    }

    fn probe_if_due(&mut self) -> Result<(), String> {
        if self.side == Side::Answers {
            return Ok(());
        }
        let answers = self.exchange().answers();
        let due = match self.probed_at {
            None => true,
            // The first ones come as fast as they are answered.
            Some(at) if answers < FIRST_PROBES => {
                self.exchange().awaits_none() || at.elapsed() >= PROBE_EVERY
            }
            Some(at) => at.elapsed() >= PROBE_EVERY,
        };
        if !due {
            return Ok(());
        }
        self.probed_at = Some(Instant::now());
        let number = self.exchange().probe(monotonic_ns());
        let bytes = encode(&Frame::Probe { number }).map_err(|error| error.to_string())?;
        self.put(&bytes)
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        locked(&self.exchange)
    }

    fn flush(&mut self) -> Result<(), String> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Waits until something came, something can be sent, or it is time for a probe or too late for a word.
    fn wait(&mut self) -> Result<(), String> {
        let mut wanted = PollFlags::IN;
        if self.tls.wants_write() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [
            PollFd::new(&self.stream, wanted),
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
        ];
        let next = self
            .probed_at
            .map_or(PROBE_EVERY, |at| PROBE_EVERY.saturating_sub(at.elapsed()));
        let next = next.min(SILENCE.saturating_sub(self.heard_at.elapsed()));
        match poll(&mut fds, Some(&timeout(next))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.wake, &mut count);
        Ok(())
    }

    fn hear(&mut self) -> Result<(), String> {
        let mut piece = [0; 16 * 1024];
        loop {
            match self.tls.read_tls(&mut self.stream) {
                Ok(0) => return Err("it closed the connection".to_owned()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            }
            let now_ns = monotonic_ns();
            let state = self.tls.process_new_packets();
            let state = state.map_err(|error| format!("TLS: {error}"))?;
            loop {
                match self.tls.reader().read(&mut piece) {
                    Ok(0) => break,
                    Ok(length) => self.decoder.push(&piece[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.to_string()),
                }
                self.take_frames(now_ns)?;
            }
            if state.peer_has_closed() {
                return Err("it closed the connection".to_owned());
            }
        }
    }

    fn take_frames(&mut self, now_ns: u64) -> Result<(), String> {
        while let Some(frame) = self
            .decoder
            .next_frame()
            .map_err(|error| format!("it sends {error}"))?
        {
            self.heard_at = Instant::now();
            match (frame, self.side) {
                (Frame::Message(json), _) => (self.on_event)(Event::Message(json)),
                (Frame::Probe { number }, Side::Answers) => {
                    let answer = Frame::Answer {
                        number,
                        at_ns: monotonic_ns(),
                    };
                    let bytes = encode(&answer).map_err(|error| error.to_string())?;
                    self.put(&bytes)?;
                    self.flush()?;
                }
                (Frame::Answer { number, at_ns }, Side::Probes) => {
                    self.exchange().answered(number, at_ns, now_ns);
                }
                (Frame::Probe { .. } | Frame::Answer { .. }, _) => {
                    return Err("it probes the wrong way round".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Sends what is left. Whoever does not take it in time misses it.
    fn say_goodbye(&mut self) {
        self.tls.send_close_notify();
        let _ = self.stream.set_nonblocking(false);
        let _ = self.stream.set_write_timeout(Some(LAST_WORDS));
        while self.tls.wants_write() && self.tls.write_tls(&mut self.stream).is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::RecvTimeoutError;

    use super::*;
    use crate::greeting::{greet_agent, greet_coordinator};
    use crate::tls::Identity;
    use crate::token::Token;

    /// Two sides that know each other.
    fn channels() -> (Channel, Channel) {
        let (identity, token) = (
            Identity::make(&[]).expect("made"),
            Token::random().expect("random"),
        );
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::scope(|scope| {
            let coordinator = scope.spawn(|| {
                let (stream, _) = listener.accept().expect("an agent");
                greet_agent(stream, &identity, &token, |said: u32| Ok(said)).expect("they meet")
            });
            let stream = TcpStream::connect(address).expect("it listens");
            let (_, agent) =
                greet_coordinator::<_, u32>(stream, None, &token, 7_u32).expect("they meet");
            (coordinator.join().expect("no panic"), agent)
        })
    }

    fn started(channel: Channel, side: Side) -> (Connection, Receiver<Event>) {
        let (sender, events) = self::channel();
        let connection = Connection::start(channel, side, move |event| {
            let _ = sender.send(event);
        });
        (connection.expect("started"), events)
    }

    fn next(events: &Receiver<Event>) -> Event {
        events
            .recv_timeout(Duration::from_secs(20))
            .expect("an event")
    }

    /// The side that only answers waits for whole seconds. Without them it would wake up a thousand times a second.
    #[test]
    fn a_wait_of_a_whole_second_is_one() {
        let of = |wait| {
            let timeout = timeout(wait);
            (timeout.tv_sec, timeout.tv_nsec)
        };
        assert_eq!(of(PROBE_EVERY), (1, 0));
        assert_eq!(of(Duration::from_millis(250)), (0, 250_000_000));
        assert_eq!(of(Duration::ZERO), (0, 1_000_000));
    }

    #[test]
    fn both_sides_hear_each_other_and_the_end() {
        let (coordinator, agent) = channels();
        let (coordinator, at_coordinator) = started(coordinator, Side::Probes);
        let (agent, at_agent) = started(agent, Side::Answers);
        // More than the sockets hold at once, both ways.
        let long = "é".repeat(3_000_000);
        for _ in 0..3 {
            coordinator.say(&long).expect("said");
            agent.say(&long).expect("said");
        }
        for events in [&at_agent, &at_coordinator] {
            for _ in 0..3 {
                let Event::Message(json) = next(events) else {
                    panic!("a message")
                };
                assert_eq!(serde_json::from_slice::<String>(&json).expect("JSON"), long);
            }
        }
        coordinator.say(&"bye").expect("said");
        drop(coordinator);
        assert!(matches!(next(&at_agent), Event::Message(json) if json == b"\"bye\""));
        assert!(matches!(next(&at_agent), Event::Gone(why) if why.contains("closed")));
        assert!(matches!(next(&at_coordinator), Event::Gone(_)));
        // Nobody hears it, and that is no error.
        agent.say(&"late").expect("said");
    }

    #[test]
    fn clocks_of_one_machine_are_not_apart() {
        let (coordinator, agent) = channels();
        let (coordinator, _at_coordinator) = started(coordinator, Side::Probes);
        let (_agent, _at_agent) = started(agent, Side::Answers);
        let deadline = Instant::now() + Duration::from_secs(20);
        let offset = loop {
            if let Some(offset) = coordinator.offset() {
                break offset;
            }
            assert!(Instant::now() < deadline, "no offset");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(
            offset.ahead_ns.unsigned_abs() <= u128::from(offset.error_ns),
            "{offset:?}"
        );
        assert!(coordinator.error_of_ns(&offset) >= offset.error_ns);
    }

    #[test]
    fn whoever_falls_silent_is_gone() {
        let (coordinator, agent) = channels();
        let began = Instant::now();
        let (_coordinator, at_coordinator) = started(coordinator, Side::Probes);
        // Its connection stays open.
        let event = next(&at_coordinator);
        assert!(
            matches!(&event, Event::Gone(why) if why == "no word for 3 s"),
            "{event:?}"
        );
        assert!(began.elapsed() >= SILENCE);
        drop(agent);
    }

    #[test]
    fn garbage_ends_the_connection() {
        let (coordinator, mut agent) = channels();
        let (_coordinator, at_coordinator) = started(coordinator, Side::Probes);
        agent
            .tls
            .writer()
            .write_all(&[0, 0, 0, 1, 99])
            .expect("written");
        agent.tls.write_tls(&mut agent.stream).expect("sent");
        let event = next(&at_coordinator);
        assert!(
            matches!(&event, Event::Gone(why) if why.contains("no message")),
            "{event:?}"
        );
        let silent = at_coordinator.recv_timeout(Duration::from_millis(50));
        assert!(matches!(silent, Err(RecvTimeoutError::Disconnected)));
    }
}
