//! A thread that samples targets, ourselves and the machine while a trial runs.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cpu_times::CpuTimes;
use super::open_waits::OpenWaits;
use super::parse;
use super::sampler::Sampler;
use super::series::{MachineSeries, Series, Usage};
use super::sockets::{SocketSeries, SocketWatch};
use crate::error::{Error, Result};
use crate::isolation::CpuList;

/// Ten samples a second: fine enough for windows of a second. This cost 0.6 % of one CPU for a target of 41 threads and
/// ourselves; [`Recorded::cost_cpu_us`] reports what it cost each time.
pub const DEFAULT_INTERVAL: Duration = Duration::from_millis(100);

/// How often a sample is detailed: threads, open files, sockets, memory events, and the machine's memory.
const DETAIL_INTERVAL: Duration = Duration::from_secs(1);

/// What a monitor saw.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Recorded {
    /// Name → samples, for every sampler. A target that has ended has no samples from then on.
    pub series: BTreeMap<String, Series>,
    /// The machine's CPUs and memory.
    pub machine: MachineSeries,
    /// The sockets that were watched.
    pub sockets: SocketSeries,
    /// Name → the most memory that a control group lets it use, in bytes.
    pub memory_limits_bytes: BTreeMap<String, u64>,
    /// CPU time that the sampling itself took, in µs. It is part of our own.
    pub cost_cpu_us: u64,
}

impl Recorded {
    /// Adds what the same monitor saw next.
    pub fn extend(&mut self, later: Self) {
        for (name, samples) in later.series {
            self.series.entry(name).or_default().extend(samples);
        }
        self.machine.extend(later.machine);
        self.sockets.extend(later.sockets);
        self.memory_limits_bytes.extend(later.memory_limits_bytes);
        self.cost_cpu_us = later.cost_cpu_us;
    }
}

/// What a monitor watches, besides the machine.
#[derive(Debug, Default)]
pub struct Watched {
    /// Name → processes.
    pub samplers: Vec<(String, Sampler)>,
    /// The target's sockets.
    pub sockets: Option<SocketWatch>,
}

/// Name → what was used in the second before the last detailed sample, for display while the monitor runs.
type Latest = Arc<Mutex<BTreeMap<String, Usage>>>;

/// What the sampling thread is asked for. It stops when nobody is left to ask.
#[derive(Debug)]
enum Ask {
    Stop,
    /// What it has recorded since it was asked last.
    Take(Sender<Recorded>),
}

/// Samples in the background until it is stopped.
#[derive(Debug)]
pub struct Monitor {
    ask: Sender<Ask>,
    thread: JoinHandle<Recorded>,
    latest: Latest,
}

impl Monitor {
    /// Starts sampling every `interval`, beginning at once, on `cpus` (the client's) if given. `epoch` must be that of
    /// the samplers.
    ///
    /// # Errors
    /// When the thread cannot be started or bound.
    pub fn start(
        watched: Watched,
        epoch: Instant,
        interval: Duration,
        cpus: Option<CpuList>,
    ) -> Result<Self> {
        let (ask, asked) = channel();
        // The caller continues only after the first samples, so that its window cannot begin before them.
        let (first, first_taken) = channel();
        let latest = Latest::default();
        let told = Arc::clone(&latest);
        let run = move || {
            let bound = cpus.as_ref().map_or(Ok(()), CpuList::bind_this_thread);
            let mut round = Round::new(watched, epoch);
            round.take(true);
            // The receiver is waiting below.
            let _ = first.send(bound);
            let (mut next, mut next_detail) =
                (Instant::now() + interval, Instant::now() + DETAIL_INTERVAL);
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                match asked.recv_timeout(wait) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(Ask::Take(to)) => {
                        let _ = to.send(round.recorded());
                        continue;
                    }
                    Ok(Ask::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                }
                let now = Instant::now();
                let detailed = now >= next_detail;
                round.take(detailed);
                if detailed {
                    next_detail = now + DETAIL_INTERVAL;
                    let usages = round.last_second();
                    *told.lock().unwrap_or_else(PoisonError::into_inner) = usages;
                }
                // The schedule is absolute, but missed samples are not made up for: they would all be of the same
                // moment.
                while next <= now {
                    next += interval;
                }
            }
            round.finish()
        };
        let failed = |source: std::io::Error| Error::Io {
            what: "starting the sampling thread".into(),
            source,
        };
        let thread = std::thread::Builder::new()
            .name("plimsoll-monitor".into())
            .spawn(run)
            .map_err(failed)?;
        first_taken
            .recv()
            .map_err(|_| failed(std::io::Error::other("it ended at once")))??;
        Ok(Self {
            ask,
            thread,
            latest,
        })
    }

    /// What the processes with this name used in about the last second, for display while the monitor runs. Results are
    /// made from [`Recorded`]. `None` in the first second, and for a target that has ended.
    #[must_use]
    pub fn latest(&self, name: &str) -> Option<Usage> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.get(name).copied()
    }

    /// What was recorded since the last call, or since it started; `None` if the thread is gone. [`Monitor::stop`] returns the rest.
    #[must_use]
    pub fn take(&self) -> Option<Recorded> {
        let (to, taken) = channel();
        self.ask.send(Ask::Take(to)).ok()?;
        taken.recv().ok()
    }

    /// Takes a last sample and returns everything that nobody took before.
    ///
    /// # Errors
    /// When the thread panicked.
    pub fn stop(self) -> Result<Recorded> {
        // This fails only if the thread is gone, which the join reports.
        let _ = self.ask.send(Ask::Stop);
        self.thread.join().map_err(|_| Error::Io {
            what: "sampling resources".into(),
            source: std::io::Error::other("the sampling thread panicked"),
        })
    }
}

struct Round {
    samplers: Vec<(Sampler, Series, String)>,
    watch: Option<SocketWatch>,
    sockets: SocketSeries,
    waits: OpenWaits,
    machine: MachineSeries,
    epoch: Instant,
}

impl Round {
    fn new(watched: Watched, epoch: Instant) -> Self {
        let samplers = watched.samplers.into_iter();
        Self {
            samplers: samplers
                .map(|(name, sampler)| (sampler, Series::default(), name))
                .collect(),
            watch: watched.sockets,
            sockets: SocketSeries::default(),
            waits: OpenWaits::default(),
            machine: MachineSeries::default(),
            epoch,
        }
    }

    fn take(&mut self, detailed: bool) {
        let at_ns = self.now_ns();
        // Linux always has it. Elsewhere the machine's series stays empty, and returns nothing.
        if let Ok(times) = CpuTimes::read_at(at_ns, &mut self.waits) {
            self.machine.push(at_ns, times);
        }
        for (sampler, series, _) in &mut self.samplers {
            let sample = if detailed {
                sampler.sample()
            } else {
                sampler.sample_light()
            };
            if let Some(sample) = sample {
                series.push(sample);
            }
        }
        if detailed {
            self.take_machine_memory();
            self.take_sockets();
        }
    }

    fn take_machine_memory(&mut self) {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        if let Some(share) = parse::memory_available_share(&text) {
            self.machine.push_memory_available(self.now_ns(), share);
        }
    }

    fn take_sockets(&mut self) {
        let at_ns = self.now_ns();
        if let Some(sample) = self.watch.as_mut().and_then(|watch| watch.take(at_ns)) {
            self.sockets.push(sample);
        }
    }

    fn last_second(&self) -> BTreeMap<String, Usage> {
        let length_ns = u64::try_from(DETAIL_INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        let last = |series: &Series| {
            let to_ns = series.samples().last()?.at_ns;
            // Samples stop when the target does.
            let current = self.now_ns().saturating_sub(to_ns) < length_ns;
            let from_ns = to_ns.checked_sub(length_ns).filter(|_| current)?;
            series.between(from_ns, to_ns)
        };
        let samplers = self.samplers.iter();
        samplers
            .filter_map(|(_, series, name)| Some((name.clone(), last(series)?)))
            .collect()
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn finish(mut self) -> Recorded {
        self.take(true);
        self.recorded()
    }

    /// Hands over what it has.
    fn recorded(&mut self) -> Recorded {
        let limits = self
            .samplers
            .iter()
            .filter_map(|(sampler, _, name)| Some((name.clone(), sampler.memory_limit_bytes()?)));
        let memory_limits_bytes = limits.collect();
        let samplers = self.samplers.iter_mut();
        Recorded {
            memory_limits_bytes,
            sockets: std::mem::take(&mut self.sockets),
            series: samplers
                .map(|(_, series, name)| (name.clone(), std::mem::take(series)))
                .collect(),
            machine: std::mem::take(&mut self.machine),
            cost_cpu_us: u64::try_from(thread_cpu().as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// CPU time of the calling thread; zero where the clock cannot be read.
pub(crate) fn thread_cpu() -> Duration {
    let time = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID.now();
    time.map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Source;

    #[test]
    fn a_monitor_keeps_series_that_cover_its_life() {
        let epoch = Instant::now();
        let samplers = vec![
            (
                "ourselves".to_owned(),
                Sampler::new(Source::ourselves(), epoch),
            ),
            (
                "nobody".to_owned(),
                Sampler::new(Source::Process(i32::MAX), epoch),
            ),
        ];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let watched = Watched {
            samplers,
            sockets: Some(SocketWatch::new(listener.local_addr().expect("bound"))),
        };
        let cpus = CpuList::allowed_to_us().expect("allowed");
        let monitor =
            Monitor::start(watched, epoch, Duration::from_millis(5), Some(cpus)).expect("starts");
        let from_ns = u64::try_from(epoch.elapsed().as_nanos()).expect("short");
        let mut sum = 0u64;
        while epoch.elapsed() < Duration::from_millis(60) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let to_ns = u64::try_from(epoch.elapsed().as_nanos()).expect("short");
        let recorded = monitor.stop().expect("recorded");
        let usage = recorded.series["ourselves"]
            .between(from_ns, to_ns)
            .expect("covered from the first moment to the last");
        assert!(
            usage.cpu_us > 0.0
                && usage.rss_max_bytes > 0
                && usage.runqueue_wait_share.is_some_and(|share| share >= 0.0)
        );
        assert!(recorded.machine.between(from_ns, to_ns).is_some());
        assert!(
            recorded
                .machine
                .memory_available_least(0, u64::MAX)
                .is_some_and(|share| share > 0.0 && share <= 1.0)
        );
        let sockets = recorded.sockets.between(0, u64::MAX).expect("a listener");
        assert_eq!(
            (sockets.connections_peak, sockets.accept_queue_peak),
            (0, Some(0))
        );
        assert!(recorded.series["nobody"].samples().is_empty());
        assert!(recorded.cost_cpu_us > 0);
    }

    #[test]
    fn the_last_second_is_told_while_it_goes_on() {
        let epoch = Instant::now();
        let samplers = vec![(
            "ourselves".to_owned(),
            Sampler::new(Source::ourselves(), epoch),
        )];
        let watched = Watched {
            samplers,
            sockets: None,
        };
        let monitor =
            Monitor::start(watched, epoch, Duration::from_millis(20), None).expect("starts");
        assert_eq!(monitor.latest("ourselves"), None);
        let deadline = epoch + Duration::from_secs(20);
        let usage = loop {
            if let Some(usage) = monitor.latest("ourselves") {
                break usage;
            }
            assert!(Instant::now() < deadline, "nothing is told");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!((usage.wall_us - 1e6).abs() < 1.0 && usage.rss_last_bytes > 0);
        assert_eq!(monitor.latest("nobody"), None);
        monitor.stop().expect("recorded");
    }

    #[test]
    fn pieces_that_are_taken_make_the_whole() {
        let epoch = Instant::now();
        let ourselves = Sampler::new(Source::ourselves(), epoch);
        let watched = Watched {
            samplers: vec![("ourselves".to_owned(), ourselves)],
            sockets: None,
        };
        let monitor =
            Monitor::start(watched, epoch, Duration::from_millis(5), None).expect("starts");
        let from_ns = u64::try_from(epoch.elapsed().as_nanos()).expect("short");
        let mut whole = Recorded::default();
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(20));
            let piece = monitor.take().expect("it runs");
            // As it comes over a connection.
            let json = serde_json::to_string(&piece).expect("JSON");
            whole.extend(serde_json::from_str(&json).expect("the same"));
        }
        let to_ns = u64::try_from(epoch.elapsed().as_nanos()).expect("short");
        whole.extend(monitor.stop().expect("recorded"));
        let usage = whole.series["ourselves"].between(from_ns, to_ns);
        assert!(usage.expect("covered").cpu_us > 0.0);
        assert!(whole.machine.between(from_ns, to_ns).is_some());
        let of_last = |series: &Series| series.samples().last().map(|sample| sample.at_ns);
        assert!(of_last(&whole.series["ourselves"]) > Some(to_ns));
    }

    #[test]
    fn a_dropped_monitor_ends_its_thread() {
        let monitor = Monitor::start(Watched::default(), Instant::now(), DEFAULT_INTERVAL, None)
            .expect("starts");
        let Monitor { ask, thread, .. } = monitor;
        drop(ask);
        assert!(thread.join().is_ok());
    }
}
