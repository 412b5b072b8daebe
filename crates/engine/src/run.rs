//! A run: divides the sessions among threads, and merges what they record each second.

use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use plimsoll_core::profile::Profile;
use plimsoll_core::session::{Session, SessionMachines, Share};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::company::{Alone, Company, Ending};
use crate::readiness::{Epoll, Readiness};
use crate::report::{CoreShares, EngineSecond, Report};
use crate::seconds::Seconds;
use crate::unsettled::Unsettled;
use crate::worker::{Finished, Load, Place, Worker};

/// The options of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// Where the target listens.
    pub address: SocketAddr,
    /// How many sessions the trial has.
    pub sessions: u32,
    /// Which of these sessions this process drives.
    pub part: Part,
    /// How long each phase takes.
    pub profile: Profile,
    /// Seed for everything that is drawn.
    pub seed: u64,
    /// Whether the sockets have `TCP_NODELAY`.
    pub nodelay: bool,
    /// One engine thread runs on each of these cores. If there are none, one thread runs wherever the kernel puts it.
    pub cpus: Vec<usize>,
    /// Width of a tick, in µs: frames due within one tick are written together at its end. It bounds both the wake-ups
    /// per second and the send lag of an idle client. With 0, work that any session may do is handed out when it is due,
    /// to the microsecond; sessions with a schedule of their own then have the usual tick.
    pub tick_us: u64,
    /// Addresses of this machine that sessions come from: session `i` uses address `i % n`. If there are none, the
    /// kernel chooses. Each address has its own range of ports, so several addresses hold more connections than one.
    pub source_addresses: Vec<IpAddr>,
    /// Send buffer of each socket, in bytes. What is written in one piece should fit into it; otherwise it waits for
    /// the target in any case.
    pub send_buffer_bytes: usize,
}

impl Options {
    /// The default send buffer. Left to itself, the kernel would take minutes of a session's audio on the target's
    /// behalf, and back-pressure would never show as send wait. The kernel doubles the value for its own bookkeeping.
    /// What is left holds one to two seconds of 648-byte frames.
    pub const SEND_BUFFER_BYTES: usize = 32 * 1024;

    /// The default tick. Send lag stays well below a millisecond, and a loaded core sleeps rarely enough that waking up
    /// is a small part of a frame's cost (`docs/explanation/time-and-latency.md` has the figures).
    pub const DEFAULT_TICK_US: u64 = 500;

    /// Width of the calendar's buckets.
    pub(crate) fn calendar_ns(&self) -> u64 {
        match self.tick_us {
            0 => Self::DEFAULT_TICK_US * 1000,
            tick_us => tick_us * 1000,
        }
    }

    /// All sessions of a trial with seed 1, on one thread wherever the kernel puts it. Everything else has its default.
    #[must_use]
    pub fn new(address: SocketAddr, sessions: u32, profile: Profile) -> Self {
        Self {
            address,
            sessions,
            part: Part::WHOLE,
            profile,
            seed: 1,
            nodelay: true,
            cpus: Vec::new(),
            tick_us: Self::DEFAULT_TICK_US,
            source_addresses: Vec::new(),
            send_buffer_bytes: Self::SEND_BUFFER_BYTES,
        }
    }
}

/// Which sessions of a trial a process drives: `index`, `index + of`, `index + 2 of`, …. A session's schedule does not
/// depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which part, from 0.
    pub index: u32,
    /// How many parts there are; not zero.
    pub of: u32,
}

impl Part {
    /// All sessions.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The numbers of its sessions, if the trial has `sessions` of them.
    pub fn ids(self, sessions: u32) -> impl Iterator<Item = u32> {
        (self.index..sessions).step_by(self.of.max(1) as usize)
    }
}

/// Why a run was not possible at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The kernel refused something that every run needs.
    #[error("the load engine could not start: {0}; see `plimsoll doctor`")]
    Start(#[from] std::io::Error),
    /// An engine thread panicked: a bug.
    #[error("a thread of the load engine panicked")]
    Panicked,
}

/// What threads send to the coordinator.
pub(crate) enum Message<C> {
    /// A second of this thread is over.
    Second(usize, Box<EngineSecond>),
    /// This thread is done.
    Finished(usize, Box<Finished<C>>),
}

/// Runs a workload against a target and calls `on_second` after each second. Returns when every measured frame is
/// answered, grace is over, `on_second` breaks, or `stop` is set.
///
/// # Errors
/// [`EngineError`] if the engine cannot start. What happens to sessions is in the report.
pub fn run<W: SessionMachines>(
    workload: &W,
    options: &Options,
    stop: &AtomicBool,
    on_second: impl FnMut(EngineSecond) -> ControlFlow<()>,
) -> Result<Report, EngineError> {
    let all = run_in(&Alone, workload, options, stop, on_second)?;
    Ok(all.settle(workload, true))
}

/// The same, while others drive the other parts of the trial's sessions. The caller settles all parts together.
///
/// # Errors
/// The same as for [`run`], and when the trial does not begin.
pub fn run_in<W: SessionMachines>(
    company: &dyn Company,
    workload: &W,
    options: &Options,
    stop: &AtomicBool,
    mut on_second: impl FnMut(EngineSecond) -> ControlFlow<()>,
) -> Result<Unsettled<Claim<W>>, EngineError> {
    let threads = options.cpus.len().max(1);
    let (sender, receiver) = channel();
    let ending = Ending::new(company, threads);
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|thread| share_of(workload, options, thread, threads))
            .collect();
        // The trial's time begins only now that all sessions are built.
        let clock = company.begin()?;
        let handles: Vec<_> = (0..)
            .zip(shares)
            .map(|(thread, share): (usize, _)| {
                let place = Place {
                    thread,
                    cpu: options.cpus.get(thread).copied(),
                };
                let (sender, ending) = (sender.clone(), &ending);
                let work = move || {
                    Worker::<W, Epoll>::new(share, options, place, sender)?.run(clock, stop, ending)
                };
                std::thread::Builder::new()
                    .name(format!("engine-{thread}"))
                    .spawn_scoped(scope, work)
            })
            .collect::<Result<_, _>>()?;
        drop(sender);
        let finished = coordinate(&receiver, threads, &ending, &mut on_second);
        for handle in handles {
            handle.join().map_err(|_| EngineError::Panicked)??;
        }
        let mut all = Unsettled::empty(clock);
        for thread in finished {
            all.merge(of_thread(thread, clock));
        }
        all.report.interrupted = stop.load(Ordering::Relaxed);
        Ok(all)
    })
}

type Claim<W> = <<W as SessionMachines>::Session as Session>::Claim;

/// The load of one thread.
fn share_of<W: SessionMachines>(
    workload: &W,
    options: &Options,
    thread: usize,
    threads: usize,
) -> Load<W> {
    let sessions: Vec<_> = options
        .part
        .ids(options.sessions)
        .skip(thread)
        .step_by(threads)
        .map(|id| {
            let plan = workload.plan(id, options.sessions, &options.profile, options.seed);
            (plan, workload.session(&plan))
        })
        .collect();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (thread, threads) = (count(thread), count(threads));
    // The processes take turns, and the threads of a process take turns with its part.
    let share = Share {
        index: options.part.index + options.part.of.max(1) * thread,
        of: options.part.of.max(1) * threads,
    };
    let (profile, seed) = (&options.profile, options.seed);
    Load {
        arrivals: workload.arrivals(share, count(sessions.len()), profile, seed),
        sessions,
    }
}

/// Merges each second once every thread has reported it. The run ends when `on_second` has seen enough.
fn coordinate<C>(
    receiver: &Receiver<Message<C>>,
    threads: usize,
    ending: &Ending<'_>,
    on_second: &mut impl FnMut(EngineSecond) -> ControlFlow<()>,
) -> Vec<Finished<C>> {
    let mut seconds = Seconds::new(threads);
    let mut finished = Vec::new();
    let mut tell = |complete: Vec<EngineSecond>| {
        for second in complete {
            if on_second(second).is_break() {
                ending.is_now();
            }
        }
    };
    for message in receiver {
        let complete = match message {
            Message::Second(thread, second) => seconds.told(thread, *second),
            Message::Finished(thread, done) => {
                finished.push(*done);
                seconds.over(thread)
            }
        };
        tell(complete);
    }
    // A thread that failed has not reported its end. What the others reported still counts.
    for thread in 0..threads {
        tell(seconds.over(thread));
    }
    finished
}

/// What one thread measured.
fn of_thread<C>(thread: Finished<C>, clock: Clock) -> Unsettled<C> {
    let recorder = thread.recorder;
    let faults = recorder.client_faults.into_iter();
    let report = Report {
        ledger: recorder.ledger,
        latency: thread.latency,
        cpu_ns: thread.window.cpu_ns,
        frames_written: thread.window.frames,
        busy: CoreShares::of(thread.cpu, thread.window.busy_share()),
        longest_wait_share: thread.window.wait_share(),
        longest_opening_wait_share: thread.opening.wait_share(),
        sessions: thread.sessions,
        sessions_never_opened: thread.sessions_never_opened,
        frames_owed: thread.frames_owed,
        residence: recorder.residence,
        tls: recorder.tls,
        kernel_bytes: thread.kernel_bytes,
        unread: thread.unread,
        client_faults: faults
            .map(|(what, count)| (what.to_owned(), count))
            .collect(),
        interrupted: false,
        backend: Epoll::NAME.to_owned(),
        clock,
    };
    Unsettled {
        report,
        claims: recorder.claims,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn parts_are_disjoint_and_leave_nothing_out() {
        for (sessions, of) in [(10, 1), (10, 3), (2, 5), (0, 2)] {
            let ids: Vec<u32> = (0..of)
                .flat_map(|index| Part { index, of }.ids(sessions))
                .collect();
            let different: BTreeSet<u32> = ids.iter().copied().collect();
            assert_eq!(ids.len(), sessions as usize);
            assert_eq!(different, (0..sessions).collect());
        }
        assert!(Part::WHOLE.ids(7).eq(0..7));
    }
}
