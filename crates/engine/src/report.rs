//! What a run measured, and how the results of several threads or processes are merged into one.

use std::collections::BTreeMap;

use plimsoll_core::latency::LatencySet;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::sanity::{KernelBytes, Residence};
use plimsoll_core::tls_cost::TlsCost;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::readiness::{Epoll, Readiness};
use crate::unread::Unread;
use crate::wire;

/// One second of a run, all threads together.
#[derive(Debug, Serialize, Deserialize)]
pub struct EngineSecond {
    /// Which second, from 0.
    pub index: u64,
    /// Latencies of measured frames whose answers came in this second.
    #[serde(with = "wire")]
    pub latency: LatencySet,
    /// Totals at the end of the second.
    pub ledger: Ledger,
    /// Sessions open at the end of the second.
    pub sessions_open: u64,
    /// How busy the engine's cores were in this second.
    pub busy: CoreShares,
}

impl EngineSecond {
    /// Adds the same second from another thread or process.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.ledger.merge(&other.ledger);
        self.sessions_open += other.sessions_open;
        self.busy.merge(&other.busy);
    }
}

/// What a run measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The account of every due frame.
    pub ledger: Ledger,
    /// All latencies of measured frames.
    #[serde(with = "wire")]
    pub latency: LatencySet,
    /// CPU time of all engine threads in the measured window, in ns.
    pub cpu_ns: u64,
    /// Frames written while the clock was in the measured window, whether they are measured or not.
    pub frames_written: u64,
    /// How busy the engine's cores were in the measured window.
    pub busy: CoreShares,
    /// Share of the measured window that the thread that waited most was ready and waited for its core; `None` where
    /// the kernel does not report it.
    pub longest_wait_share: Option<f64>,
    /// The same share of the time before the window, in which sessions open.
    pub longest_opening_wait_share: Option<f64>,
    /// The number of requested sessions.
    pub sessions: u64,
    /// How many of these the client's machine could not open.
    pub sessions_never_opened: u64,
    /// Frames due in the window that the client had not written soon after the window's end, although nothing kept it
    /// from writing them; `None` if the run ended earlier.
    pub frames_owed: Option<u64>,
    /// Unanswered frames and latencies, for Little's law.
    pub residence: Residence,
    /// What TLS cost; nothing if no session uses it.
    pub tls: TlsCost,
    /// Bytes as the kernel counts them; `None` unless every session lived to the end.
    pub kernel_bytes: Option<KernelBytes>,
    /// How often too much lay unread in the sockets of sessions that ask.
    pub unread: Unread,
    /// Faults of the client's own machine.
    pub client_faults: BTreeMap<String, u64>,
    /// Whether the stop flag ended the run early.
    pub interrupted: bool,
    /// How the engine waited for sockets.
    pub backend: String,
    /// The trial's clock. Its epoch relates other records to this one.
    pub clock: Clock,
}

impl Report {
    /// The report of a run without sessions, into which others are merged.
    #[must_use]
    pub fn empty(clock: Clock) -> Self {
        Self {
            ledger: Ledger::default(),
            latency: LatencySet::new(),
            cpu_ns: 0,
            frames_written: 0,
            busy: CoreShares::default(),
            longest_wait_share: None,
            longest_opening_wait_share: None,
            sessions: 0,
            sessions_never_opened: 0,
            frames_owed: Some(0),
            residence: Residence::default(),
            tls: TlsCost::default(),
            kernel_bytes: Some(KernelBytes::default()),
            unread: Unread::default(),
            client_faults: BTreeMap::new(),
            interrupted: false,
            backend: Epoll::NAME.to_owned(),
            clock,
        }
    }

    /// Adds what another thread or process measured in the same trial.
    pub fn merge(&mut self, other: &Self) {
        self.ledger.merge(&other.ledger);
        self.latency.merge(&other.latency);
        self.cpu_ns += other.cpu_ns;
        self.frames_written += other.frames_written;
        self.busy.merge(&other.busy);
        let longest = |mine: Option<f64>, others: Option<f64>| {
            mine.into_iter().chain(others).reduce(f64::max)
        };
        self.longest_wait_share = longest(self.longest_wait_share, other.longest_wait_share);
        self.longest_opening_wait_share = longest(
            self.longest_opening_wait_share,
            other.longest_opening_wait_share,
        );
        self.sessions += other.sessions;
        self.sessions_never_opened += other.sessions_never_opened;
        let owed = self.frames_owed.zip(other.frames_owed);
        self.frames_owed = owed.map(|(mine, others)| mine + others);
        self.residence.merge(&other.residence);
        self.tls.merge(&other.tls);
        let bytes = self.kernel_bytes.zip(other.kernel_bytes);
        self.kernel_bytes = bytes.map(|(mut mine, others)| {
            mine.merge(&others);
            mine
        });
        self.unread.merge(&other.unread);
        for (what, count) in &other.client_faults {
            *self.client_faults.entry(what.clone()).or_default() += count;
        }
        self.interrupted |= other.interrupted;
    }

    /// CPU time per frame written, in µs: sending, receiving and accounting. `None` if nothing was written.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "CPU nanoseconds and frames of a run are far below 2^53"
    )]
    pub fn cpu_us_per_frame(&self) -> Option<f64> {
        (self.frames_written > 0).then(|| self.cpu_ns as f64 / 1e3 / self.frames_written as f64)
    }

    /// The part of it that TLS took, in µs: encryption and decryption, without handshakes. `None` without TLS.
    #[must_use]
    pub fn tls_us_per_frame(&self) -> Option<f64> {
        self.tls.us_per_frame(self.frames_written)
    }

    /// Share of the requested load that the client wrote or that the target did not take. It is the share of sessions
    /// that the client's machine could open, times the share of their frames due in the window that the client did not
    /// owe at its end. `None` if the run ended before the window did.
    #[must_use]
    pub fn achieved_share(&self) -> Option<f64> {
        let written = share_without(self.frames_owed?, self.ledger.frames_due);
        Some(share_without(self.sessions_never_opened, self.sessions) * written)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "frames of a run are far below 2^53"
)]
fn share_without(missing: u64, of: u64) -> f64 {
    1.0 - missing.min(of) as f64 / of.max(1) as f64
}

/// How busy cores were with engine threads, as a share of each core. Threads that share a core count together. A thread
/// that is not bound to a core counts as having one to itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreShares(Vec<(Option<usize>, f64)>);

impl CoreShares {
    /// The share of one thread.
    #[must_use]
    pub fn of(cpu: Option<usize>, share: f64) -> Self {
        Self(vec![(cpu, share)])
    }

    /// Adds the shares of other threads.
    pub fn merge(&mut self, other: &Self) {
        for (cpu, share) in &other.0 {
            let same = self
                .0
                .iter_mut()
                .find(|(mine, _)| cpu.is_some() && mine == cpu);
            match same {
                Some((_, mine)) => *mine += share,
                None => self.0.push((*cpu, *share)),
            }
        }
    }

    /// The same of another machine, whose cores are not those of this one.
    #[must_use]
    pub fn elsewhere(self) -> Self {
        let shares = self.0.into_iter();
        Self(shares.map(|(_, share)| (None, share)).collect())
    }

    /// The share of the busiest core; 0 if there is none.
    #[must_use]
    pub fn busiest(&self) -> f64 {
        self.0.iter().map(|(_, share)| *share).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::latency::Series;
    use proptest::prelude::*;

    #[test]
    fn the_client_owes_frames_and_sessions() {
        let share = |due, owed, never_opened| {
            let mut report = Report::empty(Clock::start());
            report.ledger.frames_due = due;
            (report.sessions, report.sessions_never_opened) = (10, never_opened);
            report.frames_owed = owed;
            report.achieved_share()
        };
        let close = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?}");
        };
        close(share(1_000, Some(0), 0), 1.0);
        close(share(1_000, Some(2), 0), 0.998);
        close(share(1_000, Some(100), 1), 0.81);
        // Nothing was opened, so nothing was due.
        close(share(0, Some(0), 10), 0.0);
        assert_eq!(share(1_000, None, 0), None);
    }

    #[test]
    fn threads_of_one_core_keep_it_busy_together() {
        let mut shares = CoreShares::default();
        assert!(shares.busiest().abs() < 1e-12);
        for (cpu, share) in [(Some(0), 0.3), (Some(1), 0.5), (Some(0), 0.4)] {
            shares.merge(&CoreShares::of(cpu, share));
        }
        assert!((shares.busiest() - 0.7).abs() < 1e-12);
        // The first core of another machine is another core.
        let mut both = shares.clone();
        both.merge(&shares.clone().elsewhere());
        assert!((both.busiest() - 0.7).abs() < 1e-12);
        // Nobody knows whether threads that are not bound share a core.
        for share in [0.6, 0.65] {
            shares.merge(&CoreShares::of(None, share));
        }
        assert!((shares.busiest() - 0.7).abs() < 1e-12);
    }

    #[test]
    fn what_one_does_not_know_nobody_knows() {
        let known = || Report::empty(Clock::start());
        let mut all = known();
        all.merge(&known());
        assert_eq!((all.frames_owed, all.longest_wait_share), (Some(0), None));
        assert!(all.kernel_bytes.is_some() && !all.interrupted);
        all.merge(&Report {
            kernel_bytes: None,
            frames_owed: None,
            longest_wait_share: Some(0.25),
            longest_opening_wait_share: Some(0.5),
            interrupted: true,
            ..known()
        });
        all.merge(&known());
        assert_eq!((all.frames_owed, all.kernel_bytes), (None, None));
        assert_eq!(all.longest_wait_share, Some(0.25));
        assert_eq!(all.longest_opening_wait_share, Some(0.5));
        assert!(all.interrupted);
    }

    /// What a thread would record about one frame.
    #[derive(Debug, Clone)]
    struct Event {
        series: usize,
        value_ns: u64,
        unanswered: bool,
        unconfirmed: bool,
        reason: Option<usize>,
        residence_ns: u128,
    }

    fn events() -> impl Strategy<Value = Vec<(usize, Event)>> {
        let event = (
            0..Series::ALL.len(),
            0_u64..8_000_000_000_000,
            any::<bool>(),
            any::<bool>(),
            prop::option::of(0_usize..3),
            any::<u64>(),
        );
        let event = event.prop_map(
            |(series, value_ns, unanswered, unconfirmed, reason, residence)| Event {
                series,
                value_ns,
                unanswered,
                unconfirmed,
                reason,
                residence_ns: u128::from(residence) << 32,
            },
        );
        prop::collection::vec((any::<usize>(), event), 0..200)
    }

    fn record(into: &mut Report, event: &Event) {
        const REASONS: [&str; 3] = ["connection \"reset\"", "EMFILE", "späť"];
        let Report {
            ledger, latency, ..
        } = into;
        ledger.frames_due += 1;
        ledger.bytes_sent += event.value_ns;
        latency.record_ns(Series::ALL[event.series], event.value_ns);
        if event.unanswered {
            ledger.frames_lost += 1;
            latency.record_unanswered(event.value_ns, event.value_ns / 2);
        }
        if event.unconfirmed {
            latency.record_unconfirmed(event.value_ns, event.value_ns / 2);
        }
        if let Some(reason) = event.reason {
            ledger.sessions_died += 1;
            ledger.because(REASONS[reason]);
            let faults = &mut into.client_faults;
            *faults.entry(REASONS[reason].to_owned()).or_default() += 1;
        }
        into.unread.watched_ns += 1;
        into.unread.behind_ns += u64::from(event.unanswered);
        into.residence.frames += 1;
        into.tls.handshakes.count += u64::from(event.unconfirmed);
        into.tls.writes.between_ns += event.value_ns;
        into.tls.reads.timed += 1;
        into.residence.latency_frame_ns += event.residence_ns;
        into.sessions += 1;
        into.cpu_ns += 7;
    }

    fn over_the_wire<T: Serialize + for<'de> Deserialize<'de>>(value: &T) -> T {
        let line = serde_json::to_string(value).expect("it can be told");
        assert!(!line.contains('\n'), "one line");
        serde_json::from_str(&line).expect("what is told can be read")
    }

    proptest! {
        /// However the records of a run are split over processes, sent and merged, the ledger and every percentile are
        /// those of one process.
        #[test]
        fn parts_are_the_whole(events in events(), parts in 1_usize..6) {
            let clock = Clock::start();
            let mut whole = Report::empty(clock);
            let mut of_part: Vec<Report> = (0..parts).map(|_| Report::empty(clock)).collect();
            for (place, event) in &events {
                record(&mut whole, event);
                record(&mut of_part[place % parts], event);
            }
            let mut merged = Report::empty(clock);
            let mut second: Option<EngineSecond> = None;
            for part in &of_part {
                merged.merge(&over_the_wire(part));
                let told = over_the_wire(&EngineSecond {
                    index: 3,
                    latency: part.latency.clone(),
                    ledger: part.ledger.clone(),
                    sessions_open: 2,
                    busy: CoreShares::of(Some(1), 0.125),
                });
                match &mut second {
                    None => second = Some(told),
                    Some(second) => second.merge(&told),
                }
            }
            prop_assert_eq!(&merged.ledger, &whole.ledger);
            prop_assert_eq!(merged.latency.summary(), whole.latency.summary());
            for series in Series::ALL {
                prop_assert_eq!(merged.latency.histogram(series), whole.latency.histogram(series));
            }
            prop_assert_eq!(merged.residence, whole.residence);
            prop_assert_eq!(merged.tls, whole.tls);
            prop_assert_eq!(merged.unread, whole.unread);
            prop_assert_eq!(&merged.client_faults, &whole.client_faults);
            prop_assert_eq!((merged.sessions, merged.cpu_ns), (whole.sessions, whole.cpu_ns));
            prop_assert_eq!(merged.achieved_share(), whole.achieved_share());
            let second = second.expect("there is a part");
            prop_assert_eq!((second.index, second.sessions_open), (3, 2 * parts as u64));
            prop_assert_eq!(&second.ledger, &whole.ledger);
            prop_assert_eq!(second.latency.summary(), whole.latency.summary());
        }
    }
}
