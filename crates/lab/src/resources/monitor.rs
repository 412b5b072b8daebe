//! A thread that samples targets, ourselves and the machine while a trial runs.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cpu_times::CpuTimes;
use super::sampler::Sampler;
use super::series::{MachineSeries, Series};
use crate::error::{Error, Result};
use crate::isolation::CpuList;

/// Ten samples a second: fine enough for windows of a second. It cost 0.6 % of one CPU for a target of 41 threads and
/// ourselves; [`Recorded::cost_cpu_us`] tells what it was each time.
pub const DEFAULT_INTERVAL: Duration = Duration::from_millis(100);

/// How often a sample is detailed.
const DETAIL_INTERVAL: Duration = Duration::from_secs(1);

/// What a monitor saw.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Name → samples, for every sampler. A target that ended has none from then on.
    pub series: BTreeMap<String, Series>,
    /// The machine's CPUs.
    pub machine: MachineSeries,
    /// CPU time that the sampling itself took, µs; it is part of ours.
    pub cost_cpu_us: u64,
}

/// Samples in the background until it is stopped.
#[derive(Debug)]
pub struct Monitor {
    stop: Sender<()>,
    thread: JoinHandle<Recorded>,
}

impl Monitor {
    /// Starts sampling every `interval`, at once for the first time, on `cpus` (the client's) when given. `epoch` must be that of
    /// the samplers.
    ///
    /// # Errors
    /// When the thread cannot be started or bound.
    pub fn start(
        samplers: Vec<(String, Sampler)>,
        epoch: Instant,
        interval: Duration,
        cpus: Option<CpuList>,
    ) -> Result<Self> {
        let (stop, stopped) = channel();
        // The caller goes on only when the first samples are taken, so that its window cannot begin before them.
        let (first, first_taken) = channel();
        let run = move || {
            let bound = cpus.as_ref().map_or(Ok(()), CpuList::bind_this_thread);
            let mut round = Round::new(samplers, epoch);
            round.take(true);
            // The receiver is waiting below.
            let _ = first.send(bound);
            let (mut next, mut next_detail) =
                (Instant::now() + interval, Instant::now() + DETAIL_INTERVAL);
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                match stopped.recv_timeout(wait) {
                    Err(RecvTimeoutError::Timeout) => {}
                    // Asked to stop, or dropped.
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                }
                let now = Instant::now();
                let detailed = now >= next_detail;
                round.take(detailed);
                if detailed {
                    next_detail = now + DETAIL_INTERVAL;
                }
                // The schedule is absolute, but missed samples are not made up for: they would all be of the same moment.
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
        Ok(Self { stop, thread })
    }

    /// Takes a last sample and returns everything.
    ///
    /// # Errors
    /// When the thread panicked.
    pub fn stop(self) -> Result<Recorded> {
        // It fails only when the thread is gone, which the join tells.
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| Error::Io {
            what: "sampling resources".into(),
            source: std::io::Error::other("the sampling thread panicked"),
        })
    }
}

struct Round {
    samplers: Vec<(Sampler, Series, String)>,
    machine: MachineSeries,
    epoch: Instant,
}

impl Round {
    fn new(samplers: Vec<(String, Sampler)>, epoch: Instant) -> Self {
        let samplers = samplers
            .into_iter()
            .map(|(name, sampler)| (sampler, Series::default(), name));
        Self {
            samplers: samplers.collect(),
            machine: MachineSeries::default(),
            epoch,
        }
    }

    fn take(&mut self, detailed: bool) {
        let at_ns = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Linux always has it; where it does not, the machine's series stays empty and answers nothing.
        if let Ok(times) = CpuTimes::read() {
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
    }

    fn finish(mut self) -> Recorded {
        self.take(true);
        Recorded {
            series: self
                .samplers
                .into_iter()
                .map(|(_, series, name)| (name, series))
                .collect(),
            machine: self.machine,
            cost_cpu_us: thread_cpu_us(),
        }
    }
}

fn thread_cpu_us() -> u64 {
    let time = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID.now();
    let time = time.map(|time| (u64::try_from(time.tv_sec()), u64::try_from(time.tv_nsec())));
    match time {
        Ok((Ok(seconds), Ok(nanoseconds))) => seconds * 1_000_000 + nanoseconds / 1000,
        _ => 0,
    }
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
        let cpus = CpuList::allowed_to_us().expect("allowed");
        let monitor =
            Monitor::start(samplers, epoch, Duration::from_millis(5), Some(cpus)).expect("starts");
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
        assert!(recorded.series["nobody"].samples().is_empty());
        assert!(recorded.cost_cpu_us > 0);
    }

    #[test]
    fn a_dropped_monitor_ends_its_thread() {
        let monitor =
            Monitor::start(Vec::new(), Instant::now(), DEFAULT_INTERVAL, None).expect("starts");
        let Monitor { stop, thread } = monitor;
        drop(stop);
        assert!(thread.join().is_ok());
    }
}
