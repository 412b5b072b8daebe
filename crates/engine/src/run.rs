//! A run: sessions divided among threads, what they record merged each second.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use plimsoll_core::latency::LatencySet;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::Profile;
use plimsoll_core::sanity::{KernelBytes, Residence};
use plimsoll_core::schedule::{SessionPlan, session_plan};
use plimsoll_core::session::{Session, Workload};

use crate::clock::Clock;
use crate::readiness::{Epoll, Readiness};
use crate::worker::{Finished, Worker};

/// How a run is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the target listens.
    pub address: SocketAddr,
    /// How many sessions.
    pub sessions: u32,
    /// How long each phase takes.
    pub profile: Profile,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Whether the sockets have `TCP_NODELAY`.
    pub nodelay: bool,
    /// One engine thread on each of these cores; without any, one thread wherever the kernel puts it.
    pub cpus: Vec<usize>,
    /// Width of a tick: frames due within one are written together at its end. It bounds both the wake-ups a second and the send lag of an
    /// idle client.
    pub tick_us: u64,
}

impl Options {
    /// The tick that is used unless told otherwise: send lag stays well below a millisecond, and a loaded core sleeps rarely enough that waking up is a
    /// small part of a frame's cost (`docs/methodology.md` has the figures).
    pub const DEFAULT_TICK_US: u64 = 500;
}

/// Why a run could not be made at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The kernel refused something that every run needs.
    #[error("the load engine could not start: {0}; see `plimsoll doctor`")]
    Start(#[from] std::io::Error),
    /// An engine thread panicked: a bug.
    #[error("an engine thread panicked; this is a bug in Plimsoll, please report it")]
    Panicked,
}

/// One second of a run, all threads together.
#[derive(Debug)]
pub struct EngineSecond {
    /// Which second, from 0.
    pub index: u64,
    /// Latencies of measured frames whose answers came in this second.
    pub latency: LatencySet,
    /// Totals at the second's end.
    pub ledger: Ledger,
    /// Sessions open at its end.
    pub sessions_open: u64,
    /// Share of its core that the busiest engine thread used.
    pub busiest_share: f64,
}

/// What a run measured.
#[derive(Debug)]
pub struct Report {
    /// Every frame due, accounted for, content audited.
    pub ledger: Ledger,
    /// All latencies of measured frames.
    pub latency: LatencySet,
    /// CPU time of all engine threads in the measured window.
    pub cpu_ns: u64,
    /// Frames written in the measured window by the clock, measured or not.
    pub frames_written: u64,
    /// Share of its core that the busiest thread used in the measured window.
    pub busiest_share: f64,
    /// Share of the measured window that the thread which waited most was ready and waited for its core; `None` where the kernel does not tell.
    pub longest_wait_share: Option<f64>,
    /// Share of the load that the client wrote, or that the target did not take; `None` when the run ended before the window did.
    pub achieved_share: Option<f64>,
    /// Unanswered frames and latencies, for Little's law.
    pub residence: Residence,
    /// Bytes as the kernel counts them; `None` unless every session lived to the end.
    pub kernel_bytes: Option<KernelBytes>,
    /// Faults of the client's own machine.
    pub client_faults: BTreeMap<String, u64>,
    /// Whether the stop flag ended the run early.
    pub interrupted: bool,
    /// How the engine waited for sockets.
    pub backend: &'static str,
    /// The trial's clock: its epoch ties other records to this one.
    pub clock: Clock,
}

impl Report {
    /// CPU time per frame written: sending, receiving and accounting. `None` when nothing was written.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "CPU nanoseconds and frames of a run are far below 2^53"
    )]
    pub fn cpu_us_per_frame(&self) -> Option<f64> {
        (self.frames_written > 0).then(|| self.cpu_ns as f64 / 1e3 / self.frames_written as f64)
    }
}

/// What threads tell the coordinator.
pub(crate) enum Message<C> {
    /// A second is over.
    Second(Box<EngineSecond>),
    /// The thread is done.
    Finished(Box<Finished<C>>),
}

/// Runs a workload against a target and calls `on_second` after each second; returns when every measured frame is answered, grace is over, or `stop` is set.
///
/// # Errors
/// [`EngineError`] when the engine cannot start; what happens to sessions is in the report.
pub fn run<W: Workload>(
    workload: &W,
    options: &Options,
    stop: &AtomicBool,
    mut on_second: impl FnMut(EngineSecond),
) -> Result<Report, EngineError> {
    let threads = options.cpus.len().max(1);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|thread| share_of(workload, options, thread, threads))
            .collect();
        // All sessions are built; only now does the trial's time begin.
        let clock = Clock::start();
        let handles: Vec<_> = (0..)
            .zip(shares)
            .map(|(thread, share): (usize, _)| {
                let cpu = options.cpus.get(thread).copied();
                let sender = sender.clone();
                let work =
                    move || Worker::<W, Epoll>::new(share, options, sender)?.run(clock, cpu, stop);
                std::thread::Builder::new()
                    .name(format!("engine-{thread}"))
                    .spawn_scoped(scope, work)
            })
            .collect::<Result<_, _>>()?;
        drop(sender);
        let finished = coordinate(&receiver, threads, &mut on_second);
        for handle in handles {
            handle.join().map_err(|_| EngineError::Panicked)??;
        }
        Ok(report(
            workload,
            options,
            finished,
            stop.load(Ordering::Relaxed),
            clock,
        ))
    })
}

type Claim<W> = <<W as Workload>::Session as Session>::Claim;

/// The sessions of one thread.
fn share_of<W: Workload>(
    workload: &W,
    options: &Options,
    thread: usize,
    threads: usize,
) -> Vec<(SessionPlan, W::Session)> {
    (0..options.sessions)
        .skip(thread)
        .step_by(threads)
        .map(|id| {
            let plan = session_plan(id, options.sessions, &options.profile, options.seed);
            (plan, workload.session(&plan))
        })
        .collect()
}

/// Merges each second once every thread has told it.
fn coordinate<C>(
    receiver: &Receiver<Message<C>>,
    threads: usize,
    on_second: &mut impl FnMut(EngineSecond),
) -> Vec<Finished<C>> {
    let mut pending: BTreeMap<u64, (usize, EngineSecond)> = BTreeMap::new();
    let mut finished = Vec::new();
    for message in receiver {
        match message {
            Message::Second(second) => {
                let second = *second;
                let index = second.index;
                let told = match pending.entry(index) {
                    std::collections::btree_map::Entry::Vacant(vacant) => {
                        vacant.insert((1, second)).0
                    }
                    std::collections::btree_map::Entry::Occupied(mut occupied) => {
                        let (told, merged) = occupied.get_mut();
                        merge_second(merged, &second);
                        *told += 1;
                        *told
                    }
                };
                if told == threads
                    && let Some((_, merged)) = pending.remove(&index)
                {
                    on_second(merged);
                }
            }
            Message::Finished(done) => finished.push(*done),
        }
    }
    // A thread that finished first has no row for the last seconds; those of the others still count.
    for (_, (_, second)) in pending {
        on_second(second);
    }
    finished
}

fn merge_second(into: &mut EngineSecond, other: &EngineSecond) {
    into.latency.merge(&other.latency);
    into.ledger.merge(&other.ledger);
    into.sessions_open += other.sessions_open;
    into.busiest_share = into.busiest_share.max(other.busiest_share);
}

fn report<W: Workload>(
    workload: &W,
    options: &Options,
    finished: Vec<Finished<Claim<W>>>,
    interrupted: bool,
    clock: Clock,
) -> Report {
    let mut report = Report {
        ledger: Ledger::default(),
        latency: LatencySet::new(),
        cpu_ns: 0,
        frames_written: 0,
        busiest_share: 0.0,
        longest_wait_share: None,
        achieved_share: None,
        residence: Residence::default(),
        kernel_bytes: Some(KernelBytes::default()),
        client_faults: BTreeMap::new(),
        interrupted,
        backend: Epoll::NAME,
        clock,
    };
    let mut owed = Some(0);
    let mut never_opened = 0;
    for thread in finished {
        owed = owed.zip(thread.frames_owed).map(|(a, b)| a + b);
        never_opened += thread.sessions_never_opened;
        report.residence.merge(&thread.recorder.residence);
        report.kernel_bytes = both(report.kernel_bytes, thread.kernel_bytes);
        if let Some(share) = thread.window.wait_share() {
            let longest = report.longest_wait_share.unwrap_or(0.0);
            report.longest_wait_share = Some(share.max(longest));
        }
        report.ledger.merge(&thread.recorder.ledger);
        report.latency.merge(&thread.latency);
        report.cpu_ns += thread.window.cpu_ns;
        report.frames_written += thread.window.frames;
        report.busiest_share = report.busiest_share.max(thread.window.busy_share());
        for (what, count) in thread.recorder.client_faults {
            *report.client_faults.entry(what.to_owned()).or_default() += count;
        }
        let audit = workload.audit(&thread.recorder.claims);
        report.ledger.content_checked += audit.checked;
        report.ledger.content_wrong += audit.wrong;
    }
    report.achieved_share =
        owed.map(|owed| achieved_share(&report.ledger, owed, never_opened, options.sessions));
    report
}

fn both(mine: Option<KernelBytes>, other: Option<KernelBytes>) -> Option<KernelBytes> {
    let mut sum = mine?;
    sum.merge(&other?);
    Some(sum)
}

/// Of the load that was asked for, what the client did not fail to give: the sessions that its machine let it open, times the share of their frames
/// due in the window that it did not owe at its end.
#[expect(
    clippy::cast_precision_loss,
    reason = "frames of a run are far below 2^53"
)]
fn achieved_share(ledger: &Ledger, owed: u64, never_opened: u64, sessions: u32) -> f64 {
    let share_without = |missing: u64, of: u64| 1.0 - missing.min(of) as f64 / of.max(1) as f64;
    share_without(never_opened, u64::from(sessions)) * share_without(owed, ledger.frames_due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_owes_frames_and_sessions() {
        let ledger = Ledger {
            frames_due: 1_000,
            ..Ledger::default()
        };
        let share = |owed, never_opened| achieved_share(&ledger, owed, never_opened, 10);
        assert!((share(0, 0) - 1.0).abs() < 1e-12);
        assert!((share(2, 0) - 0.998).abs() < 1e-12);
        assert!((share(100, 1) - 0.81).abs() < 1e-12);
        // Nothing was opened, so nothing was due.
        assert!(achieved_share(&Ledger::default(), 0, 10, 10).abs() < 1e-12);
    }
}
