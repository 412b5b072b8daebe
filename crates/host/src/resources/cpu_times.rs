//! The machine's CPUs, from `/proc/stat`: how busy each is, and how much time the hypervisor took.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

use super::open_waits::OpenWaits;
use super::parse::is_ready;
use super::sampler::schedstat;
use crate::error::{Error, Result};
use crate::isolation::{Controller, Layout, receive_threads};

/// Time of one CPU (or of all), by kind, in the kernel's clock ticks since boot. A tick is a hundredth of a second on
/// all machines today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ticks {
    /// Programs, including niced ones. (Guests that we run are already included.)
    pub user: u64,
    /// The kernel, for programs.
    pub system: u64,
    /// The kernel, for interrupts and what follows from them. On a loopback this is most of the network's work.
    pub interrupt: u64,
    /// Idle, including waiting for disks.
    pub idle: u64,
    /// Taken by the hypervisor while we wanted to run.
    pub steal: u64,
}

impl Ticks {
    /// The sum of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.user + self.system + self.interrupt + self.idle + self.steal
    }

    /// The share that was stolen, 0 to 1; 0 if no time has passed.
    ///
    /// Use this for times since boot, over which the two kinds of columns even out: see [`Passed`].
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Ticks stay far below 2^53.
    pub fn steal_share(&self) -> f64 {
        self.steal as f64 / self.total().max(1) as f64
    }

    fn since(&self, earlier: &Self) -> Self {
        // The kernel's idle and steal counts are known to step back a little at times.
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
            idle: self.idle.saturating_sub(earlier.idle),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    fn add(&mut self, other: &Self) {
        self.user += other.user;
        self.system += other.system;
        self.interrupt += other.interrupt;
        self.idle += other.idle;
        self.steal += other.steal;
    }
}

/// What the machine's CPUs did between two moments.
///
/// Its shares are of the time that passed, not of the columns' sum. Today's kernels count idle and stolen time exactly,
/// but charge a whole tick of user, system or interrupt time to whatever runs when the tick comes. Work that is done in
/// step with the tick is then seen always or never: a target that used 14 % of its core appeared to use 1 % and 49 % in
/// two otherwise equal runs. So what a CPU did is what is left of the time when it was not idle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passed {
    /// The first moment, in ns on the samples' clock.
    pub from_ns: u64,
    /// The second moment, on the same clock.
    pub to_ns: u64,
    /// What each CPU did.
    pub cpus: CpuTimes,
}

impl Passed {
    /// The share of these CPUs' time that the hypervisor took; `None` when none of them is known or no time has passed.
    #[must_use]
    pub fn steal_share(&self, of: impl Fn(u32) -> bool) -> Option<f64> {
        self.share(&of, |ticks| ticks.steal)
    }

    /// The share that was neither idle nor stolen nor, as far as this is known, spent on interrupts.
    #[must_use]
    pub fn busy_share(&self, of: impl Fn(u32) -> bool) -> Option<f64> {
        let other = self.share(&of, |ticks| ticks.idle + ticks.steal + ticks.interrupt)?;
        Some((1.0 - other).max(0.0))
    }

    /// The share that was neither idle nor stolen: programs, and the kernel's own work, such as receiving packets and
    /// waking up.
    #[must_use]
    pub fn awake_share(&self, of: impl Fn(u32) -> bool) -> Option<f64> {
        let rest = self.share(&of, |ticks| ticks.idle + ticks.steal)?;
        Some((1.0 - rest).max(0.0))
    }

    /// The share in which threads ran, to the nanosecond; `None` where the kernel does not report it for each of these
    /// CPUs.
    ///
    /// [`Passed::awake_share`] also contains the interrupts of an idle CPU and its transitions out of idle and back.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Nanoseconds of hours stay below 2^53.
    pub fn threads_share(&self, of: impl Fn(u32) -> bool) -> Option<f64> {
        let cpus = self.cpus.cpus.keys().filter(|cpu| of(**cpu));
        let threads: Vec<Option<&u64>> = cpus.map(|cpu| self.cpus.threads_ns.get(cpu)).collect();
        let time_ns = threads.len() as f64 * self.to_ns.checked_sub(self.from_ns)? as f64;
        let threads_ns: u64 = threads.into_iter().sum::<Option<u64>>()?;
        (time_ns > 0.0).then(|| threads_ns as f64 / time_ns)
    }

    /// Share of the time in which a kernel thread that receives packets was ready and waited for its CPU. Of these
    /// CPUs, the one with the longest wait counts. `None` where such threads are not visible.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Nanoseconds of hours stay below 2^53.
    pub fn receive_wait_share(&self, of: impl Fn(u32) -> bool) -> Option<f64> {
        let waits = self.cpus.receive_wait_ns.iter();
        let longest_ns = waits
            .filter(|(cpu, _)| of(**cpu))
            .map(|(_, ns)| *ns)
            .max()?;
        let time_ns = self.to_ns.checked_sub(self.from_ns)?;
        (time_ns > 0).then(|| longest_ns as f64 / time_ns as f64)
    }

    #[allow(clippy::cast_precision_loss)] // Ticks and CPUs stay far below 2^53.
    fn share(&self, of: &impl Fn(u32) -> bool, kind: impl Fn(&Ticks) -> u64) -> Option<f64> {
        let count = self.cpus.cpus.keys().filter(|cpu| of(**cpu)).count() as f64;
        let time_us = count * self.to_ns.checked_sub(self.from_ns)? as f64 / 1e3;
        let ticks_us = kind(&self.cpus.sum(of)) * tick_us();
        (time_us > 0.0).then(|| (ticks_us as f64 / time_us).min(1.0))
    }
}

/// The unit of the kernel's CPU times (`sysconf(_SC_CLK_TCK)`), in µs.
pub(super) fn tick_us() -> u64 {
    let ticks_per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let ticks_per_second = ticks_per_second
        .and_then(|ticks| u64::try_from(ticks).ok())
        .unwrap_or(100);
    1_000_000 / ticks_per_second.max(1)
}

/// All CPUs at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CpuTimes {
    /// CPU number → its time.
    pub cpus: BTreeMap<u32, Ticks>,
    /// CPU number → the time that threads ran on it, in ns, except the kernel's own receive threads; empty where the
    /// kernel does not report it.
    pub threads_ns: BTreeMap<u32, u64>,
    /// CPU number → the time that the kernel's receive threads there were ready and waited for it, in ns; empty where
    /// these threads are not visible.
    pub receive_wait_ns: BTreeMap<u32, u64>,
}

impl CpuTimes {
    /// The unit of these times, in µs.
    #[must_use]
    pub fn tick_us() -> u64 {
        tick_us()
    }

    /// Reads `/proc/stat`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read() -> Result<Self> {
        Self::read_at(0, &mut OpenWaits::default())
    }

    /// The same as one of several readings, so that waits that last from one to the next count.
    pub(super) fn read_at(now_ns: u64, waits: &mut OpenWaits) -> Result<Self> {
        let path = std::path::Path::new("/proc/stat");
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::io("reading", path, error))?;
        let mut times = Self::parse(&text);
        times.threads_ns = threads_ns();
        for (cpu, folder) in receive_threads() {
            let Some(thread) = schedstat(&folder) else {
                continue;
            };
            times
                .threads_ns
                .entry(cpu)
                .and_modify(|threads| *threads = threads.saturating_sub(thread.on_cpu_ns));
            let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
            let open_ns = waits.look(&folder, thread, is_ready(&stat), now_ns);
            *times.receive_wait_ns.entry(cpu).or_default() += thread.wait_ns + open_ns;
        }
        Ok(times)
    }

    /// Parses the text of `/proc/stat`. Lines that are not about a CPU are skipped.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self {
            cpus: text.lines().filter_map(parse_line).collect(),
            ..Self::default()
        }
    }

    /// The sum over all CPUs.
    #[must_use]
    pub fn total(&self) -> Ticks {
        self.sum(|_| true)
    }

    /// The sum over some CPUs.
    #[must_use]
    pub fn sum(&self, of: impl Fn(u32) -> bool) -> Ticks {
        let mut sum = Ticks::default();
        for (_, ticks) in self.cpus.iter().filter(|(cpu, _)| of(**cpu)) {
            sum.add(ticks);
        }
        sum
    }

    /// What passed since `earlier`, for the CPUs in both.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let both = self
            .cpus
            .iter()
            .filter_map(|(cpu, now)| Some((*cpu, now.since(earlier.cpus.get(cpu)?))));
        Self {
            cpus: both.collect(),
            threads_ns: grown(&self.threads_ns, &earlier.threads_ns),
            receive_wait_ns: grown(&self.receive_wait_ns, &earlier.receive_wait_ns),
        }
    }
}

/// How much each CPU's count grew, for the CPUs in both.
fn grown(now: &BTreeMap<u32, u64>, earlier: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    let both = now
        .iter()
        .filter_map(|(cpu, now)| Some((*cpu, now.saturating_sub(*earlier.get(cpu)?))));
    both.collect()
}

/// The time that threads ran on each CPU, from `/proc/schedstat`. Where the kernel has no such file, it comes from the
/// root of version 1's `cpuacct`.
fn threads_ns() -> BTreeMap<u32, u64> {
    static OF_ALL_GROUPS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let of_schedstat = std::fs::read_to_string("/proc/schedstat")
        .map(|text| parse_schedstat(&text))
        .unwrap_or_default();
    if !of_schedstat.is_empty() {
        return of_schedstat;
    }
    let path = OF_ALL_GROUPS.get_or_init(|| {
        let layout = Layout::of_this_machine();
        let mount = &layout.v1.get(&Controller::Cpuacct)?.mount;
        // Only the root of all groups has this file. A container's own group may be mounted there instead.
        let is_root = mount.join("release_agent").exists();
        is_root.then(|| mount.join("cpuacct.usage_percpu"))
    });
    let text = path.as_ref().map(std::fs::read_to_string);
    text.and_then(std::io::Result::ok)
        .map(|text| parse_usage_percpu(&text))
        .unwrap_or_default()
}

/// `cpu0 0 0 40 20 10 5 123456789 55 40`: the seventh number is the time that threads ran, in ns (the kernel's
/// `Documentation/scheduler/sched-stats.rst`).
fn parse_schedstat(text: &str) -> BTreeMap<u32, u64> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        Some((words.next()?.parse().ok()?, words.nth(6)?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// One number per CPU, in their order, in ns.
fn parse_usage_percpu(text: &str) -> BTreeMap<u32, u64> {
    let numbers = text.split_ascii_whitespace();
    let numbers = numbers.map_while(|word| word.parse().ok());
    (0..).zip(numbers).collect()
}

/// `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`; guest times are part of user and nice.
fn parse_line(line: &str) -> Option<(u32, Ticks)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    let cpu = words.next()?.parse().ok()?;
    // The first line, of all CPUs, has no number right behind "cpu", so its first word would be a count.
    if line.as_bytes().get(3).is_some_and(u8::is_ascii_whitespace) {
        return None;
    }
    let fields: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields[..] else {
        return None;
    };
    let ticks = Ticks {
        user: user + nice,
        system,
        interrupt: irq + softirq,
        idle: idle + iowait,
        steal,
    };
    Some((cpu, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 0 10 100 0 0 5 5 0 0\ncpu0 10 1 5 50 2 1 2 5 0 0\ncpu1 20 0 5 50 0 0 3 0 0 0\nintr 1 2\nctxt 3\n";

    #[test]
    fn each_cpu_is_read_and_the_first_line_is_not_one() {
        let times = CpuTimes::parse(STAT);
        assert_eq!(times.cpus.len(), 2);
        let first = times.cpus[&0];
        assert_eq!(
            (
                first.user,
                first.system,
                first.interrupt,
                first.idle,
                first.steal
            ),
            (11, 5, 3, 52, 5)
        );
        assert_eq!(times.total().user, 31);
        assert_eq!(times.sum(|cpu| cpu == 1).interrupt, 3);
    }

    #[test]
    fn shares_between_two_moments() {
        let before = CpuTimes::parse("cpu0 0 0 0 0 0 0 0 0 0 0\n");
        let after = CpuTimes::parse("cpu0 40 0 10 40 0 0 5 5 0 0\ncpu7 1 1 1 1 1 1 1 1 1 1\n");
        let passed = after.since(&before);
        assert_eq!(
            passed.cpus.len(),
            1,
            "a CPU that came on meanwhile does not count"
        );
        assert_eq!(passed.total().steal_share(), 0.05);
        assert_eq!(
            before.since(&after).total(),
            Ticks::default(),
            "steps back count as none"
        );
        assert_eq!(Ticks::default().steal_share(), 0.0);
    }

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let ticks_per_second = 1_000_000 / tick_us();
        assert_eq!(ticks_per_second, 100, "the numbers below are hundredths");
        // Ten seconds of two CPUs. The first was idle for 8.3 s; 0.1 s were stolen, and 0.1 s went to interrupts. Its
        // work was in step with the tick, so the columns add up to 15 s.
        let cpus =
            CpuTimes::parse("cpu0 173 0 477 830 0 0 10 10 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\n");
        let passed = Passed {
            from_ns: 5_000_000_000,
            to_ns: 15_000_000_000,
            cpus,
        };
        let close = |seen: Option<f64>, expected: f64| {
            assert!((seen.expect("known") - expected).abs() < 1e-9, "{seen:?}");
        };
        close(passed.steal_share(|cpu| cpu == 0), 0.01);
        close(passed.steal_share(|_| true), 0.005);
        close(passed.busy_share(|cpu| cpu == 0), 0.15);
        close(passed.busy_share(|_| true), 0.075);
        close(passed.busy_share(|cpu| cpu == 1), 0.0);
        assert_eq!(passed.busy_share(|cpu| cpu == 2), None);
        assert_eq!(Passed::default().steal_share(|_| true), None);
    }

    #[test]
    fn what_threads_had_is_told_apart_from_what_the_kernel_did_of_its_own() {
        let schedstat = "version 15\ntimestamp 4294\ncpu0 0 0 40 20 10 5 3000000000 55 40\ndomain0 3 0 0\ncpu1 0 0 1 2 3 4 500000000 6 7\n";
        assert_eq!(
            parse_schedstat(schedstat),
            [(0, 3_000_000_000), (1, 500_000_000)].into()
        );
        assert_eq!(
            parse_usage_percpu("3000000000 500000000 \n"),
            parse_schedstat(schedstat)
        );
        assert!(parse_schedstat("version 15\ncpu").is_empty());
        let cpus = CpuTimes {
            threads_ns: parse_schedstat(schedstat),
            receive_wait_ns: [(0, 700_000_000), (1, 100_000_000)].into(),
            ..CpuTimes::parse("cpu0 300 0 0 600 0 0 0 50 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\n")
        };
        let earlier = CpuTimes {
            threads_ns: [(0, 0), (1, 0)].into(),
            receive_wait_ns: [(0, 200_000_000), (1, 0), (2, 0)].into(),
            ..CpuTimes::parse("cpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n")
        };
        let mut passed = Passed {
            from_ns: 0,
            to_ns: 10_000_000_000,
            cpus: cpus.since(&earlier),
        };
        let close = |seen: Option<f64>, expected: f64| {
            assert!((seen.expect("known") - expected).abs() < 1e-9, "{seen:?}");
        };
        close(passed.awake_share(|cpu| cpu == 0), 0.35);
        close(passed.threads_share(|cpu| cpu == 0), 0.3);
        close(passed.threads_share(|_| true), 0.175);
        close(passed.receive_wait_share(|_| true), 0.05);
        close(passed.receive_wait_share(|cpu| cpu == 1), 0.01);
        assert_eq!(passed.receive_wait_share(|cpu| cpu == 2), None);
        passed.cpus.threads_ns.remove(&1);
        assert_eq!(passed.threads_share(|_| true), None);
        assert!(!CpuTimes::read().expect("linux").cpus.is_empty());
    }

    #[test]
    fn garbage_is_passed_over() {
        assert!(CpuTimes::parse("cpu\ncpux 1\ncpu0 1 2\nλ").cpus.is_empty());
        assert!(!CpuTimes::read().expect("linux").cpus.is_empty());
    }
}
