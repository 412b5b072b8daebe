//! Samples over time, and what was used between two moments.

use serde::{Deserialize, Serialize};

use super::cpu_times::{CpuTimes, Passed};
use super::sampler::{Detail, Sample};

/// What a target used in a window. Counters are interpolated at the window's edges, so a window need not begin at a
/// sample.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// The window's length, in µs.
    pub wall_us: f64,
    /// CPU time, in µs.
    pub cpu_us: f64,
    /// The part of it in user mode, in µs. Kernels that account by clock ticks report this split only roughly. So it is
    /// scaled to the exact sum, as the kernel itself does for `getrusage` (`cputime_adjust`).
    pub cpu_user_us: f64,
    /// The part of it in the kernel, in µs.
    pub cpu_system_us: f64,
    /// CPUs kept busy on average: CPU time divided by the time passed.
    pub cpus_busy: f64,
    /// The share of the quota's periods in which the target was stopped; `None` without a quota.
    pub throttled_share: Option<f64>,
    /// The time for which it was stopped, in µs; `None` without a quota.
    pub throttled_us: Option<f64>,
    /// The time that its threads waited for a CPU (or for a new quota period), divided by the time passed. It can
    /// exceed 1. `None` if unknown.
    pub runqueue_wait_share: Option<f64>,
    /// Voluntary context switches per second; `None` if the window has no detailed samples around it.
    pub voluntary_switches_per_s: Option<f64>,
    /// Involuntary context switches per second.
    pub involuntary_switches_per_s: Option<f64>,
    /// The most resident memory in any sample of the window, in bytes.
    pub rss_max_bytes: u64,
    /// Resident memory at the window's first sample, in bytes.
    pub rss_first_bytes: u64,
    /// Resident memory at the window's last sample, in bytes.
    pub rss_last_bytes: u64,
    /// The most resident memory since the target began, in bytes, as known at the window's end; see
    /// [`Sample::rss_peak_bytes`].
    pub rss_peak_bytes: u64,
    /// The most threads in any sample of the window.
    pub threads_max: u64,
    /// The most open files in any detailed sample of the window. If the window has none, those of the last detailed
    /// sample before it.
    pub fds_max: Option<u64>,
    /// CPU time of the busiest thread as a share of one core: the mean over the detailed samples of the window. Each
    /// covers the time since the sample before it, with that time's own busiest thread.
    pub busiest_thread_share: Option<f64>,
    /// Times that the memory controller of the limiting group refused, reclaimed or killed; `None` if nothing counts
    /// it.
    pub memory_events: Option<f64>,
    /// Samples in the window.
    pub samples: usize,
}

impl Usage {
    /// CPU time as a share of `vcpu` CPUs.
    #[must_use]
    pub fn share_of(&self, vcpu: f64) -> f64 {
        self.cpus_busy / vcpu
    }
}

/// A target's samples, in order of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    samples: Vec<Sample>,
}

impl Series {
    /// Adds a sample; it must not be older than the last.
    pub fn push(&mut self, sample: Sample) {
        debug_assert!(
            self.samples
                .last()
                .is_none_or(|last| last.at_ns <= sample.at_ns)
        );
        self.samples.push(sample);
    }

    /// Adds later samples.
    pub fn extend(&mut self, later: Self) {
        self.samples.extend(later.samples);
    }

    /// The samples.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// What was used from `from_ns` to `to_ns`. `None` if the samples do not reach beyond both ends: nothing is
    /// extrapolated.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Option<Usage> {
        if to_ns <= from_ns {
            return None;
        }
        let grown = |counter: &dyn Fn(&Sample) -> Option<u64>| -> Option<f64> {
            Some(self.at(to_ns, counter)? - self.at(from_ns, counter)?)
        };
        let detailed = |counter: fn(&Detail) -> Option<u64>| {
            grown(&|sample| sample.detail.as_ref().and_then(counter))
        };
        let wall_us = to_us(to_ns - from_ns);
        let cpu_us = grown(&|sample| Some(sample.cpu_us))?;
        let user_ticks_us = grown(&|sample| Some(sample.cpu_user_us))?;
        let system_ticks_us = grown(&|sample| Some(sample.cpu_system_us))?;
        // Without any tick, all of it counts as user mode, as in the kernel.
        let cpu_system_us = cpu_us * share(system_ticks_us, user_ticks_us + system_ticks_us);
        let periods = grown(&|sample| sample.throttling.map(|throttling| throttling.periods));
        let throttled = grown(&|sample| {
            sample
                .throttling
                .map(|throttling| throttling.throttled_periods)
        });
        let per_second = |count: f64| count / wall_us * 1e6;
        let begin = self.samples.partition_point(|s| s.at_ns < from_ns);
        let end = self.samples.partition_point(|s| s.at_ns <= to_ns);
        let inside = || self.samples[begin..end].iter();
        // A window between two samples has none inside. Then the sample before it supplies its gauges.
        let earlier = &self.samples[..self.samples.partition_point(|s| s.at_ns <= from_ns)];
        let before = earlier.last()?;
        let fds = |sample: &Sample| sample.detail?.fds;
        Some(Usage {
            wall_us,
            cpu_us,
            cpu_user_us: cpu_us - cpu_system_us,
            cpu_system_us,
            cpus_busy: cpu_us / wall_us,
            throttled_share: throttled
                .zip(periods)
                .map(|(throttled, periods)| share(throttled, periods)),
            throttled_us: grown(&|sample| {
                sample.throttling.map(|throttling| throttling.throttled_us)
            }),
            runqueue_wait_share: detailed(|detail| detail.runqueue_wait_us)
                .map(|wait_us| wait_us / wall_us),
            voluntary_switches_per_s: detailed(|detail| Some(detail.voluntary_switches))
                .map(per_second),
            involuntary_switches_per_s: detailed(|detail| Some(detail.involuntary_switches))
                .map(per_second),
            rss_max_bytes: inside()
                .map(|sample| sample.rss_bytes)
                .max()
                .unwrap_or(before.rss_bytes),
            rss_first_bytes: inside().next().unwrap_or(before).rss_bytes,
            rss_last_bytes: inside().next_back().unwrap_or(before).rss_bytes,
            rss_peak_bytes: inside().next_back().unwrap_or(before).rss_peak_bytes,
            threads_max: inside()
                .map(|sample| sample.threads)
                .max()
                .unwrap_or(before.threads),
            fds_max: inside()
                .filter_map(fds)
                .max()
                .or_else(|| earlier.iter().rev().find_map(fds)),
            busiest_thread_share: mean(
                inside().filter_map(|sample| sample.detail?.busiest_thread_share),
            ),
            memory_events: detailed(|detail| detail.memory_events),
            samples: end - begin,
        })
    }

    /// The counter at a moment, interpolated between the samples around it that have it.
    fn at(&self, at_ns: u64, counter: &dyn Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let known = |sample: &Sample| Some((sample.at_ns, to_float(counter(sample)?)));
        let split = self.samples.partition_point(|sample| sample.at_ns <= at_ns);
        let (before_ns, before) = self.samples[..split].iter().rev().find_map(known)?;
        if before_ns == at_ns {
            return Some(before);
        }
        let (after_ns, after) = self.samples[split..].iter().find_map(known)?;
        let passed = to_us(at_ns - before_ns) / to_us(after_ns - before_ns);
        Some(before + (after - before) * passed)
    }
}

/// The machine's CPUs and memory over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSeries {
    samples: Vec<(u64, CpuTimes)>,
    memory_available: Vec<(u64, f64)>,
}

impl MachineSeries {
    /// Adds a sample taken at `at_ns`; it must not be older than the last.
    pub fn push(&mut self, at_ns: u64, times: CpuTimes) {
        self.samples.push((at_ns, times));
    }

    /// Adds later samples.
    pub fn extend(&mut self, later: Self) {
        self.samples.extend(later.samples);
        self.memory_available.extend(later.memory_available);
    }

    /// Adds the share of the memory that was available at `at_ns`; it must not be older than the last.
    pub fn push_memory_available(&mut self, at_ns: u64, share: f64) {
        self.memory_available.push((at_ns, share));
    }

    /// The lowest share of the memory that was available in any sample of a window; `None` without a sample.
    #[must_use]
    pub fn memory_available_least(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let samples = self.memory_available.iter();
        samples
            .filter(|(at_ns, _)| (from_ns..=to_ns).contains(at_ns))
            .map(|(_, share)| *share)
            .reduce(f64::min)
    }

    /// What passed between the last sample before `from_ns` and the first after `to_ns`. (Ticks are too coarse to
    /// interpolate.) `None` if the samples do not reach beyond both ends.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Option<Passed> {
        let (from_ns, before) = self
            .samples
            .iter()
            .rev()
            .find(|(at_ns, _)| *at_ns <= from_ns)?;
        let (to_ns, after) = self.samples.iter().find(|(at_ns, _)| *at_ns >= to_ns)?;
        Some(Passed {
            from_ns: *from_ns,
            to_ns: *to_ns,
            cpus: after.since(before),
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)] // Hours in ns stay below 2^53.
fn to_us(duration_ns: u64) -> f64 {
    duration_ns as f64 / 1e3
}

#[allow(clippy::cast_precision_loss)] // Counters of µs and of switches, far below 2^53.
fn to_float(counter: u64) -> f64 {
    counter as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::Throttling;

    const MS: u64 = 1_000_000;

    #[allow(clippy::cast_precision_loss)] // Milliseconds of a test.
    fn ms(count: u64) -> f64 {
        count as f64
    }

    fn sample(at_ms: u64, cpu_us: u64) -> Sample {
        Sample {
            at_ns: at_ms * MS,
            cpu_us,
            cpu_user_us: cpu_us / 2,
            cpu_system_us: cpu_us / 2,
            rss_bytes: 1000 + at_ms,
            rss_peak_bytes: 5000,
            processes: 1,
            threads: 2,
            throttling: Some(Throttling {
                periods: at_ms / 100,
                throttled_periods: at_ms / 200,
                throttled_us: at_ms,
            }),
            ..Sample::default()
        }
    }

    fn series() -> Series {
        let mut series = Series::default();
        // Half a CPU up to 1 s, then a whole one up to 2 s.
        for (at_ms, cpu_us) in [(0, 0), (500, 250_000), (1000, 500_000), (2000, 1_500_000)] {
            let mut sample = sample(at_ms, cpu_us);
            sample.detail = (at_ms != 500).then_some(Detail {
                runqueue_wait_us: Some(at_ms * 100),
                voluntary_switches: at_ms,
                involuntary_switches: 0,
                fds: Some(10 + at_ms),
                busiest_thread_share: (at_ms > 0).then_some(ms(at_ms) / 4000.0),
                group_memory: None,
                memory_events: Some(at_ms / 1000),
            });
            series.push(sample);
        }
        series
    }

    #[test]
    fn a_window_between_samples_is_interpolated() {
        let usage = series().between(750 * MS, 1500 * MS).expect("covered");
        assert!((usage.cpu_us - 625_000.0).abs() < 1.0, "{usage:?}");
        assert!((usage.cpus_busy - 625.0 / 750.0).abs() < 1e-6);
        assert!((usage.share_of(0.5) - 2.0 * usage.cpus_busy).abs() < 1e-9);
        assert_eq!(usage.samples, 1);
        assert_eq!((usage.rss_max_bytes, usage.rss_peak_bytes), (2000, 5000));
        assert!((usage.runqueue_wait_share.expect("known") - 0.1).abs() < 1e-9);
        assert!((usage.voluntary_switches_per_s.expect("known") - 1000.0).abs() < 1e-6);
        assert_eq!(usage.fds_max, Some(1010));
        assert_eq!(usage.busiest_thread_share, Some(0.25));
        let seconds = series().between(0, 2000 * MS).expect("covered");
        assert_eq!(seconds.busiest_thread_share, Some(0.375), "of two seconds");
        assert_eq!(seconds.memory_events, Some(2.0));
        let short = series().between(1100 * MS, 1200 * MS).expect("covered");
        assert_eq!(short.fds_max, Some(1010), "the last before it");
        assert_eq!(short.busiest_thread_share, None);
    }

    #[test]
    fn user_and_system_are_scaled_to_the_exact_sum() {
        let split = |user_us, system_us| {
            let mut series = Series::default();
            series.push(sample(0, 0));
            series.push(Sample {
                cpu_us: 400_000,
                cpu_user_us: user_us,
                cpu_system_us: system_us,
                ..sample(1000, 0)
            });
            let usage = series.between(0, 1000 * MS).expect("covered");
            (usage.cpu_user_us, usage.cpu_system_us)
        };
        assert_eq!(split(30_000, 10_000), (300_000.0, 100_000.0));
        assert_eq!(split(0, 0), (400_000.0, 0.0));
        assert_eq!(split(0, 10_000), (0.0, 400_000.0));
    }

    #[test]
    fn throttling_is_a_share_of_the_windows_periods() {
        let usage = series().between(0, 2000 * MS).expect("covered");
        assert_eq!(usage.throttled_share, Some(0.5));
        assert_eq!(usage.throttled_us, Some(2000.0));
        let mut without = Series::default();
        for at_ms in [0, 1000] {
            without.push(Sample {
                throttling: None,
                ..sample(at_ms, 0)
            });
        }
        let usage = without.between(0, 1000 * MS).expect("covered");
        assert_eq!(
            (usage.throttled_share, usage.runqueue_wait_share),
            (None, None)
        );
    }

    #[test]
    fn nothing_is_extrapolated() {
        let series = series();
        assert!(series.between(0, 2001 * MS).is_none());
        assert!(series.between(500 * MS, 500 * MS).is_none());
        assert!(Series::default().between(0, 1).is_none());
        let mut late = Series::default();
        late.push(sample(100, 0));
        late.push(sample(200, 0));
        assert!(late.between(0, 150 * MS).is_none());
        assert!(
            late.between(110 * MS, 120 * MS).is_some(),
            "between two samples"
        );
    }

    #[test]
    fn the_machine_is_taken_from_the_samples_around_the_window() {
        let mut machine = MachineSeries::default();
        for (at_ns, user) in [(0, 0), (10, 5), (20, 11)] {
            machine.push(
                at_ns,
                CpuTimes::parse(&format!("cpu0 {user} 0 0 0 0 0 0 0 0 0\n")),
            );
        }
        let passed = machine.between(11, 19).expect("covered");
        assert_eq!((passed.from_ns, passed.to_ns), (10, 20));
        assert_eq!(passed.cpus.total().user, 6);
        let passed = machine.between(5, 15).expect("covered");
        assert_eq!(passed.cpus.total().user, 11);
        assert!(machine.between(5, 21).is_none());
        for (at_ns, share) in [(0, 0.1), (10, 0.9), (20, 0.8)] {
            machine.push_memory_available(at_ns, share);
        }
        assert_eq!(machine.memory_available_least(5, 20), Some(0.8));
        assert_eq!(machine.memory_available_least(11, 19), None);
    }
}
