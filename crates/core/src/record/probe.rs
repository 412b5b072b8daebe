//! The time that the machine takes for the same small work before and after a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Trial;
use crate::stats;

/// The time that a machine at rest takes for small work that is always the same. Each value is a median, so that one
/// interruption does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// A multiplication that waits for the previous one, on the target's first CPU.
    pub arithmetic_ns: f64,
    /// A read of memory beyond the core's own caches, on the target's first CPU. Its address is the result of the
    /// previous read.
    pub memory_ns: f64,
    /// The shortest system call, on the target's first CPU.
    pub system_call_ns: f64,
    /// A thread on the client's CPU wakes a blocked thread on the target's first CPU, which wakes it in turn: both ways
    /// together.
    pub wake_up_us: f64,
    /// How late a sleep of 500 µs on the target's first CPU ends.
    pub timer_late_us: f64,
    /// CPU time that such a sleep takes: going to sleep and waking up.
    pub timer_cpu_us: f64,
}

/// The probes of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probes {
    /// The probe before the target was started.
    pub before: Probe,
    /// The probe after the target had ended; `null` if the trial was interrupted.
    pub after: Option<Probe>,
}

/// One value of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeFigure {
    /// Its name in words.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// The unit of the value.
    pub unit: &'static str,
}

const MEMORY: &str = "memory read";

/// A value that differs between two probes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// The value in the first probe.
    pub from: ProbeFigure,
    /// The value in the second probe.
    pub to: f64,
}

impl Probe {
    /// A value that changes by more than this factor is reported. On a virtual machine with neighbours, wake-ups and
    /// timers had two states, and one took twice as long as the other.
    pub const MOVED: f64 = 2.0;

    /// Its values.
    #[must_use]
    pub fn figures(&self) -> [ProbeFigure; 6] {
        let figure = |name, value, unit| ProbeFigure { name, value, unit };
        [
            figure("multiplication", self.arithmetic_ns, "ns"),
            figure(MEMORY, self.memory_ns, "ns"),
            figure("system call", self.system_call_ns, "ns"),
            figure("wake-up across cores, round trip", self.wake_up_us, "µs"),
            figure("timer lateness", self.timer_late_us, "µs"),
            figure("CPU time of a timer", self.timer_cpu_us, "µs"),
        ]
    }

    /// The value that changed most between the two probes, in either direction, if it changed by more than the factor
    /// `limit`. Reading memory is left out: its time depends on which pages a probe happens to get, and varied
    /// eightfold between probes that agreed in everything else.
    #[must_use]
    pub fn moved_to(&self, other: &Self, limit: f64) -> Option<Moved> {
        self.moved_most(other, limit, |figure| figure.name != MEMORY)
    }

    fn moved_most(
        &self,
        other: &Self,
        limit: f64,
        counts: impl Fn(&ProbeFigure) -> bool,
    ) -> Option<Moved> {
        let pairs = self.figures().into_iter().zip(other.figures());
        let known = pairs.filter(|(from, to)| from.value > 0.0 && to.value > 0.0);
        let factor = |moved: &Moved| (moved.to / moved.from.value).max(moved.from.value / moved.to);
        known
            .filter(|(from, _)| counts(from))
            .map(|(from, to)| Moved { from, to: to.value })
            .filter(|moved| factor(moved) > limit)
            .max_by(|a, b| factor(a).total_cmp(&factor(b)))
    }
}

/// The median of each value over several probes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianProbe {
    /// The medians.
    pub median: Probe,
    /// The number of probes.
    pub probes: usize,
}

impl MedianProbe {
    /// Over so many probes, the pages that each of them got even out, so reading memory counts.
    const MANY: usize = 8;

    /// Over the probes before these trials; `None` if there was no probe.
    #[must_use]
    pub fn before<'a>(trials: impl Iterator<Item = &'a Trial>) -> Option<Self> {
        let probes = trials.filter_map(|trial| trial.environment.probes.as_ref());
        Self::of(probes.map(|probes| &probes.before))
    }

    fn of<'a>(probes: impl Iterator<Item = &'a Probe>) -> Option<Self> {
        let probes: Vec<&Probe> = probes.collect();
        let median = |figure: fn(&Probe) -> f64| {
            let values: Vec<f64> = probes.iter().map(|probe| figure(probe)).collect();
            stats::median(&values)
        };
        let median = Probe {
            arithmetic_ns: median(|probe| probe.arithmetic_ns)?,
            memory_ns: median(|probe| probe.memory_ns)?,
            system_call_ns: median(|probe| probe.system_call_ns)?,
            wake_up_us: median(|probe| probe.wake_up_us)?,
            timer_late_us: median(|probe| probe.timer_late_us)?,
            timer_cpu_us: median(|probe| probe.timer_cpu_us)?,
        };
        let probes = probes.len();
        Some(Self { median, probes })
    }

    /// Like [`Probe::moved_to`], and with reading memory if both are over many probes.
    #[must_use]
    pub fn moved_to(&self, other: &Self, limit: f64) -> Option<Moved> {
        if self.probes.min(other.probes) < Self::MANY {
            return self.median.moved_to(&other.median, limit);
        }
        self.median.moved_most(&other.median, limit, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_each_figure() {
        let with = |wake_up_us, timer_cpu_us| Probe {
            wake_up_us,
            timer_cpu_us,
            ..Probe::default()
        };
        let probes = [with(50.0, 30.0), with(90.0, 10.0), with(60.0, 20.0)];
        let median = MedianProbe::of(probes.iter());
        let probes = 3;
        assert_eq!(
            median,
            Some(MedianProbe {
                median: with(60.0, 20.0),
                probes
            })
        );
        assert_eq!(MedianProbe::of([].iter()), None);
    }

    #[test]
    fn what_moved_most_is_told_and_what_moved_little_is_not() {
        let rest = Probe {
            arithmetic_ns: 1.0,
            memory_ns: 80.0,
            system_call_ns: 100.0,
            wake_up_us: 50.0,
            timer_late_us: 60.0,
            timer_cpu_us: 0.0,
        };
        let moved = |other: Probe| rest.moved_to(&other, 1.3).map(|moved| moved.from.name);
        assert_eq!(moved(rest), None);
        let wake_ups = Probe {
            wake_up_us: 80.0,
            system_call_ns: 140.0,
            // Unknown in one probe, so it is not reported.
            timer_cpu_us: 9.0,
            ..rest
        };
        assert_eq!(moved(wake_ups), Some("wake-up across cores, round trip"));
        let faster = Probe {
            system_call_ns: 60.0,
            ..rest
        };
        assert_eq!(moved(faster), Some("system call"));
        let other_pages = Probe {
            memory_ns: 16.0,
            ..rest
        };
        assert_eq!(moved(other_pages), None);
        let of_medians = |probes: [usize; 2]| {
            let [from, to] = [(rest, probes[0]), (other_pages, probes[1])]
                .map(|(median, probes)| MedianProbe { median, probes });
            from.moved_to(&to, 1.3).map(|moved| moved.from.name)
        };
        assert_eq!(of_medians([8, 9]), Some(MEMORY));
        assert_eq!(of_medians([9, 7]), None);
        let a_little = Probe {
            wake_up_us: 64.0,
            ..rest
        };
        assert_eq!(moved(a_little), None);
    }
}
