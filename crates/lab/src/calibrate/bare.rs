//! The bare loop: it only writes messages on time. It shows what it costs the kernel to take them, with nothing around
//! it.
//!
//! The loop has the engine's pace, tick, order of connections, messages per write and traffic in both directions. So
//! the difference between the two is the engine's own work. The loop leaves unread what comes back, because reading is
//! work of the engine. Messages that come back one by one are the exception: they are half of what is measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::session_plan_over;
use plimsoll_engine::Options;
use plimsoll_engine::clock::thread_cpu_ns;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_workload::calibrate::{Answers, Flow, Messages, Opening, Server, Work};

use super::sink::{Discarding, Sink};
use super::{Settings, connections, deliveries, go_on};
use crate::error::{Error, Result};

/// How long a bare loop runs before it is measured, as the engine does.
pub(super) const WARM_UP: Duration = Duration::from_secs(1);
/// The most bytes in one write, as in the engine.
const WRITE_MAX_BYTES: usize = 16 * 1024;
/// The most bytes of one read, as in the engine.
pub(super) const READ_BUFFER_BYTES: usize = 64 * 1024;
/// The sleep whose lateness is measured.
const TIMER_SLEEP: Duration = Duration::from_micros(500);

/// Runs the bare loop of this work on one core. Returns the CPU time per message or connection, µs.
///
/// # Errors
/// The sockets or the thread cannot be created.
pub(super) fn run(
    work: &dyn Work,
    amount: u32,
    settings: &Settings,
    cpu: u32,
    stop: &Stop,
) -> Result<f64> {
    go_on(stop)?;
    let flow = work.flow(amount);
    let per_s = flow.per_second();
    let server = match &flow {
        Flow::Messages(flow) => server(work, flow),
        Flow::Connections(_) | Flow::Deliveries(_) => work.server(),
    };
    // Connections are open before the run begins.
    let profile = Profile {
        ramp_s: 0.0,
        ..super::profile(amount, settings.seconds)
    };
    let sink = Sink::start(server, &profile, &settings.sink_cpus, None)?;
    match flow {
        Flow::Connections(flow) => connections::run(flow, &sink, settings, cpu),
        Flow::Messages(flow) => Sending::new(flow, per_s).run(&sink, settings, cpu),
        Flow::Deliveries(flow) => deliveries::run(flow, &sink, settings, cpu),
    }
}

/// What the sink plays: the work's own server if its answers are read, otherwise one that only counts bytes.
fn server(work: &dyn Work, flow: &Messages) -> Server {
    let server = work.server();
    match flow.answers {
        Answers::Read(_) => server,
        Answers::Unread { frames, bytes } => {
            let frame_bytes = flow.frame.len();
            Server::new(server.pace, move || {
                Discarding::new(frame_bytes, frames, bytes)
            })
        }
    }
}

/// A loop that sends messages.
#[derive(Debug)]
struct Sending {
    flow: Messages,
    /// Messages per second, over all connections.
    per_s: f64,
    /// As many messages as one write may carry, one after the other.
    messages: Vec<u8>,
    /// The number of each connection's next frame, if frames have one.
    next_numbers: Vec<u32>,
    /// How many bytes of its next frame each connection's socket has taken already.
    begun: Vec<usize>,
}

impl Sending {
    fn new(flow: Messages, per_s: f64) -> Self {
        // Frames with numbers are written one at a time.
        let in_a_write = match flow.share_a_write && flow.number.is_none() {
            true => (WRITE_MAX_BYTES / flow.frame.len()).max(1),
            false => 1,
        };
        Self {
            per_s,
            messages: flow.frame.repeat(in_a_write),
            next_numbers: match flow.number {
                Some(number) => vec![number.first; flow.connections as usize],
                None => Vec::new(),
            },
            begun: vec![0; flow.connections as usize],
            flow,
        }
    }

    fn run(mut self, sink: &Sink, settings: &Settings, cpu: u32) -> Result<f64> {
        let streams = self.connect(sink.address()).map_err(failed)?;
        let duration = Duration::from_secs_f64(settings.seconds);
        let cost_us = on_cpu(cpu, move || {
            self.send(&streams, WARM_UP)?;
            let cpu_ns = thread_cpu_ns();
            let frames = self.send(&streams, duration)?;
            Ok(us_each(thread_cpu_ns() - cpu_ns, frames))
        })?;
        cost_us.map_err(failed)
    }

    /// How connections are opened, if what comes back is read.
    fn opening(&self) -> Option<&Opening> {
        match &self.flow.answers {
            Answers::Read(opening) => Some(opening),
            Answers::Unread { .. } => None,
        }
    }

    /// Opens the connections, and returns them in the order of their messages.
    fn connect(&self, address: SocketAddr) -> std::io::Result<Vec<TcpStream>> {
        let at_once = Profile {
            ramp_s: 0.0,
            ..Profile::quick()
        };
        let mut streams: Vec<_> = (0..self.flow.connections)
            .map(|id| {
                let mut stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                if let Some(opening) = self.opening() {
                    open(&mut stream, opening)?;
                }
                stream.set_nonblocking(true)?;
                // As with sessions: neighbours in time are not neighbours in memory.
                let flow = &self.flow;
                let plan = session_plan_over(flow.period_ns, id, flow.connections, &at_once, 1);
                Ok((plan.first_due_ns, stream))
            })
            .collect::<std::io::Result<_>>()?;
        streams.sort_by_key(|(due_ns, _)| *due_ns);
        Ok(streams.into_iter().map(|(_, stream)| stream).collect())
    }

    /// Gives the frame that is written next its number, if frames have one.
    fn put_number(&mut self, place: usize) {
        if let Some(number) = self.flow.number {
            let next = self.next_numbers[place].to_be_bytes();
            self.messages[number.at..][..4].copy_from_slice(&next);
        }
    }

    /// Writes at most so many bytes of a connection's frames, with one call. Returns how many frames became whole. What the
    /// socket does not take is not written later, except for the rest of a frame that has begun: a server would take other
    /// bytes for it.
    fn write(
        &mut self,
        mut stream: &TcpStream,
        place: usize,
        bytes: usize,
    ) -> std::io::Result<u64> {
        self.put_number(place);
        let begun = self.begun[place];
        let taken = match stream.write(&self.messages[begun..begun.max(bytes)]) {
            Ok(taken) => taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        let frame_bytes = self.flow.frame.len();
        let whole = (begun + taken) / frame_bytes;
        self.begun[place] = (begun + taken) % frame_bytes;
        if let Some(number) = self.flow.number
            && whole > 0
        {
            // With a number there is one frame at a time.
            let next = &mut self.next_numbers[place];
            *next = next.wrapping_add(number.step);
        }
        Ok(whole as u64)
    }

    /// Sends on every connection, evenly spread. Returns how many messages went out.
    fn send(&mut self, streams: &[TcpStream], duration: Duration) -> std::io::Result<u64> {
        let count = streams.len() as u64;
        let frame_bytes = self.flow.frame.len();
        let (mut sent, mut written) = (0, 0);
        let mut read_buffer = vec![0; READ_BUFFER_BYTES];
        let answers_are_read = self.opening().is_some();
        pace(duration, self.per_s, |due| {
            for first in sent..due.min(sent + count) {
                let place = usize::try_from(first % count).unwrap_or(0);
                let stream = &streams[place];
                if answers_are_read {
                    read_some(stream, &mut read_buffer)?;
                }
                let mut left = to_usize((due - first).div_ceil(count)) * frame_bytes;
                while left > 0 {
                    let bytes = left.min(self.messages.len());
                    written += self.write(stream, place, bytes)?;
                    left -= bytes;
                }
            }
            sent = due;
            Ok(())
        })?;
        Ok(written)
    }
}

/// The CPU time of each, µs.
pub(super) fn us_each(cpu_ns: u64, count: u64) -> f64 {
    precise(cpu_ns) / 1e3 / precise(count.max(1))
}

pub(super) fn failed(error: std::io::Error) -> Error {
    Error::Usage(format!("the bare loop's connections failed: {error}"))
}

/// Calls `on_tick` at each of the engine's ticks, with how many of something are due by then at a rate of `per_s`.
pub(super) fn pace(
    duration: Duration,
    per_s: f64,
    mut on_tick: impl FnMut(u64) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let tick = Duration::from_micros(Options::DEFAULT_TICK_US);
    let start = Instant::now();
    let mut ticks = 0_u32;
    while start.elapsed() < duration {
        ticks += 1;
        if let Some(rest) = (tick * ticks).checked_sub(start.elapsed()) {
            std::thread::sleep(rest);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of messages"
        )]
        let due = (start.elapsed().as_secs_f64() * per_s) as u64;
        on_tick(due)?;
    }
    Ok(())
}

/// Opens a connection, and waits for the whole answer.
pub(super) fn open(stream: &mut TcpStream, opening: &Opening) -> std::io::Result<()> {
    stream.write_all(&opening.request)?;
    let mut answer = Vec::new();
    while !answer.ends_with(opening.answer_end) {
        let mut buffer = [0; 512];
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => answer.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(())
}

/// Reads what is there with one call. Returns whether the peer has closed its side.
pub(super) fn read_some(mut stream: &TcpStream, buffer: &mut [u8]) -> std::io::Result<bool> {
    match stream.read(buffer) {
        Ok(read) => Ok(read == 0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// How late sleeps of [`TIMER_SLEEP`] end on that core, 99th percentile, µs.
pub(super) fn timer_error_p99_us(cpu: u32) -> Result<f64> {
    on_cpu(cpu, || {
        let mut late_us: Vec<f64> = (0..1_000)
            .map(|_| {
                let start = Instant::now();
                std::thread::sleep(TIMER_SLEEP);
                start.elapsed().saturating_sub(TIMER_SLEEP).as_secs_f64() * 1e6
            })
            .collect();
        late_us.sort_by(f64::total_cmp);
        late_us[989]
    })
}

/// Runs `work` on a new thread, bound to one core, with the engine's settings.
pub(super) fn on_cpu<T: Send + 'static>(
    cpu: u32,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    std::thread::spawn(move || {
        if let Some(cpus) = CpuList::new(vec![cpu]) {
            // If the affinity is refused, the result is noisier, not wrong.
            let _ = cpus.bind_this_thread();
        }
        plimsoll_engine::be_punctual();
        work()
    })
    .join()
    .map_err(|_| Error::Fault("the calibration's thread panicked".to_owned()))
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds and messages of a few seconds are far below 2^53"
)]
fn precise(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workload::calibrate::Number;

    /// Frames of 10,000 bytes, which begin with their number.
    fn numbered() -> Sending {
        let flow = Messages {
            connections: 1,
            period_ns: 1_000_000,
            frame: vec![b'.'; 10_000],
            number: Some(Number {
                at: 0,
                first: 7,
                step: 2,
            }),
            share_a_write: false,
            answers: Answers::Unread {
                frames: 1,
                bytes: 0,
            },
        };
        Sending::new(flow, 1_000.0)
    }

    /// A socket that is full cuts a frame. What follows is its rest, so the receiver gets whole frames in the order of
    /// their numbers.
    #[test]
    fn a_frame_that_was_cut_is_finished_first() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        stream.set_nonblocking(true).expect("not blocking");
        let (mut receiver, _) = listener.accept().expect("accepted");
        let mut sending = numbered();
        let (mut whole, mut received) = (0, Vec::new());
        while sending.begun[0] == 0 {
            let written = sending.write(&stream, 0, 10_000).expect("a socket");
            whole += written;
            if written == 0 && sending.begun[0] == 0 {
                // It was full at the end of a frame. A little room moves the next cut.
                let mut some = [0; 4_000];
                receiver.read_exact(&mut some).expect("bytes");
                received.extend_from_slice(&some);
            }
        }
        let end = whole + 3;
        let reader = std::thread::spawn(move || {
            let mut rest = vec![0; to_usize(end) * 10_000 - received.len()];
            receiver.read_exact(&mut rest).expect("frames");
            received.append(&mut rest);
            received
        });
        while whole < end {
            whole += sending.write(&stream, 0, 10_000).expect("a socket");
        }
        let received = reader.join().expect("whole frames");
        for (number, frame) in (7_u32..).step_by(2).zip(received.chunks(10_000)) {
            assert_eq!(frame[..4], number.to_be_bytes());
            assert!(frame[4..].iter().all(|byte| *byte == b'.'));
        }
    }

    #[test]
    fn a_panic_of_the_bare_loop_is_plimsolls_own_fault() {
        let error = on_cpu(0, || panic!("of this test")).expect_err("it panics");
        assert_eq!(error.exit_code(), 70, "{error}");
    }
}
