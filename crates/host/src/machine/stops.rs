//! How long the hypervisor stops a CPU while all are busy.
//!
//! A hypervisor that has more to do than cores stops virtual CPUs for milliseconds. It does so when they are busy, so a
//! probe of an idle machine does not see it. Stolen time counts the stops but does not say how long one is: on the machine
//! of the README, two busy CPUs were stopped for 0.2 % of the time, each of the 20 stops in 30 s for up to 10 ms. A frame
//! that is due during a stop is late, so no quantile that the stops reach can be better than they are.

use std::time::{Duration, Instant};

use crate::isolation::CpuList;
use crate::resources::waited_for_cpu;

/// What is shorter may be an interrupt.
const LEAST: Duration = Duration::from_millis(1);

/// What a look at all CPUs saw.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stops {
    /// How long all CPUs were busy, in seconds.
    pub seconds: f64,
    /// Stops of 1 ms or more, of all CPUs together.
    pub count: u32,
    /// The longest of them, in ms.
    pub longest_ms: f64,
}

impl Stops {
    /// Keeps these CPUs busy for as long, and looks for moments at which a busy thread did not run although no other
    /// thread had its CPU. `None` where a thread cannot tell that.
    #[must_use]
    pub fn look(cpus: &CpuList, length: Duration) -> Option<Self> {
        let each: Option<Vec<Vec<Duration>>> = std::thread::scope(|scope| {
            let alone = |cpu: &u32| CpuList::new(vec![*cpu]);
            let threads: Vec<_> = cpus
                .as_slice()
                .iter()
                .filter_map(alone)
                .map(|cpu| scope.spawn(move || stops_of(&cpu, length)))
                .collect();
            let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended.map(|stops| stops.ok()?).collect()
        });
        let each = each?;
        let all = || each.iter().flatten();
        Some(Self {
            seconds: length.as_secs_f64(),
            count: u32::try_from(all().count()).unwrap_or(u32::MAX),
            longest_ms: all()
                .max()
                .map_or(0.0, |longest| longest.as_secs_f64() * 1e3),
        })
    }
}

/// The stops of one CPU, seen by the thread that keeps it busy. Without a CPU and an account of its own it would take other
/// threads for the hypervisor.
fn stops_of(cpu: &CpuList, length: Duration) -> Option<Vec<Duration>> {
    cpu.bind_this_thread().ok()?;
    let mut stops = Vec::new();
    let mut waited = waited_for_cpu()?;
    let began = Instant::now();
    let mut last = began;
    while last - began < length {
        let now = Instant::now();
        let passed = now - last;
        if passed >= LEAST {
            let waited_now = waited_for_cpu()?;
            let stop = passed.checked_sub(waited_now - waited);
            stops.extend(stop.filter(|stop| *stop >= LEAST));
            waited = waited_now;
        }
        last = now;
    }
    Some(stops)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests have the CPUs too, so nothing can be said of what it finds.
    #[test]
    fn a_look_ends_in_time_and_counts_what_it_reports() {
        let cpus = CpuList::allowed_to_us().expect("ours");
        let began = Instant::now();
        let stops = Stops::look(&cpus, Duration::from_millis(50)).expect("Linux tells");
        assert!(began.elapsed() >= Duration::from_millis(50));
        assert_eq!(stops.count > 0, stops.longest_ms >= 1.0, "{stops:?}");
        assert!((stops.seconds - 0.05).abs() < 1e-9);
    }
}
