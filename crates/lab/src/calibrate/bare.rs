//! The bare loop: what it costs the kernel to take 648-byte messages on time, with nothing around it.
//!
//! The pace, the tick, the order of the connections and the traffic in both directions are the engine's, so that the difference between the two is the
//! engine's own work. What comes back is left unread: reading is work of the engine's.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::schedule::session_plan;
use plimsoll_engine::Options;
use plimsoll_engine::clock::thread_cpu_ns;

use super::{Settings, Sink, SinkKind};
use crate::error::{Error, Result};
use crate::isolation::CpuList;
use crate::signals::Stop;

const MESSAGE_BYTES: usize = 648;
const PERIOD: Duration = Duration::from_millis(20);
const PERIOD_NS: u64 = 20 * NS_PER_MS;
/// The sleep whose lateness is measured.
const TIMER_SLEEP: Duration = Duration::from_micros(500);

/// Runs the bare loop on one core; µs of CPU per message.
///
/// # Errors
/// When sockets or the thread cannot be had.
pub(super) fn run(settings: &Settings, cpu: u32, stop: &Stop) -> Result<f64> {
    super::go_on(stop)?;
    let sink = Sink::start(SinkKind::Bytes, &settings.sink_cpus)?;
    let mut streams: Vec<_> = (0..settings.sessions)
        .map(|id| {
            let stream = TcpStream::connect(sink.address())?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            // As sessions are: neighbours in time are no neighbours in memory.
            let plan = session_plan(id, settings.sessions, &at_once(), 1);
            Ok((plan.first_due_ns % PERIOD_NS, stream))
        })
        .collect::<std::io::Result<_>>()
        .map_err(|error| Error::Usage(format!("the bare loop could not connect: {error}")))?;
    streams.sort_by_key(|(phase_ns, _)| *phase_ns);
    let streams: Vec<_> = streams.into_iter().map(|(_, stream)| stream).collect();
    let duration = Duration::from_secs_f64(settings.seconds);
    on_cpu(cpu, move || {
        // The first second is a warm-up, like the engine's.
        send(&streams, Duration::from_secs(1));
        let cpu_ns = thread_cpu_ns();
        let frames = send(&streams, duration);
        precise(thread_cpu_ns() - cpu_ns) / 1e3 / precise(frames.max(1))
    })
}

/// A profile without a ramp: only the spread of the first frames is of interest here.
fn at_once() -> Profile {
    Profile {
        ramp_s: 0.0,
        ..Profile::quick()
    }
}

/// Sends on every connection every 20 ms, evenly spread; returns how many messages went out.
fn send(streams: &[TcpStream], duration: Duration) -> u64 {
    let message = [0x5A_u8; MESSAGE_BYTES];
    let tick = Duration::from_micros(Options::DEFAULT_TICK_US);
    let count = streams.len() as u64;
    let start = Instant::now();
    let (mut sent, mut ticks) = (0_u64, 0_u32);
    let mut written = 0;
    while start.elapsed() < duration {
        ticks += 1;
        if let Some(rest) = (tick * ticks).checked_sub(start.elapsed()) {
            std::thread::sleep(rest);
        }
        let periods = start.elapsed().as_secs_f64() / PERIOD.as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of messages"
        )]
        let due = (periods * precise(count)) as u64;
        while sent < due {
            let place = usize::try_from(sent % count).unwrap_or(0);
            let mut stream = &streams[place];
            match stream.write(&message) {
                Ok(_) => written += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return written,
            }
            sent += 1;
        }
    }
    written
}

/// How late sleeps of [`TIMER_SLEEP`] end on that core, 99th percentile.
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

/// Runs `work` on a thread of its own, bound to one core with the engine's settings.
fn on_cpu<T: Send + 'static>(cpu: u32, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    std::thread::spawn(move || {
        if let Some(cpus) = CpuList::new(vec![cpu]) {
            // Refused affinity makes the result noisier, not wrong.
            let _ = cpus.bind_this_thread();
        }
        plimsoll_engine::be_punctual();
        work()
    })
    .join()
    .map_err(|_| {
        Error::Usage("the calibration's thread panicked; this is a bug in Plimsoll".into())
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds and messages of a few seconds are far below 2^53"
)]
fn precise(count: u64) -> f64 {
    count as f64
}
