//! The machine's CPUs, from `/proc/stat`: how busy each is, and how much the hypervisor took.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// Time of one CPU (or of all), by kind, in clock ticks since boot. Ticks are hundredths of a second on every machine of today, but
/// only their ratios are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// Programs, niced ones included. (Guests of ours are in it already.)
    pub user: u64,
    /// The kernel, for programs.
    pub system: u64,
    /// The kernel, for interrupts and what follows from them: on a loopback, most of the network's work.
    pub interrupt: u64,
    /// Idle, waiting for disks included.
    pub idle: u64,
    /// Taken by the hypervisor while we wanted to run.
    pub steal: u64,
}

impl Ticks {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.user + self.system + self.interrupt + self.idle + self.steal
    }

    /// The share that was stolen, 0 to 1; 0 when no time has passed.
    #[must_use]
    pub fn steal_share(&self) -> f64 {
        self.shares().steal
    }

    /// The share that programs used, in user and in kernel mode, 0 to 1; interrupts are nobody's.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Ticks stay far below 2^53.
    pub fn programs_share(&self) -> f64 {
        (self.user + self.system) as f64 / self.total().max(1) as f64
    }

    /// Every kind as a share of all, 0 to 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Ticks stay far below 2^53.
    pub fn shares(&self) -> CpuShares {
        let total = self.total().max(1) as f64;
        let share = |ticks: u64| ticks as f64 / total;
        CpuShares {
            busy: share(self.user + self.system + self.interrupt),
            interrupt: share(self.interrupt),
            idle: share(self.idle),
            steal: share(self.steal),
        }
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

/// Shares of a CPU's time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuShares {
    /// Worked, interrupts included.
    pub busy: f64,
    /// Worked on interrupts.
    pub interrupt: f64,
    /// Had nothing to do.
    pub idle: f64,
    /// Was taken by the hypervisor.
    pub steal: f64,
}

/// All CPUs at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// CPU number → its time.
    pub cpus: BTreeMap<u32, Ticks>,
}

impl CpuTimes {
    /// Reads `/proc/stat`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read() -> Result<Self> {
        let path = std::path::Path::new("/proc/stat");
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::io("reading", path, error))?;
        Ok(Self::parse(&text))
    }

    /// Parses the text of `/proc/stat`. Lines that are not of a CPU are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self {
            cpus: text.lines().filter_map(parse_line).collect(),
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

    /// What passed since `earlier`, of the CPUs in both.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let both = self
            .cpus
            .iter()
            .filter_map(|(cpu, now)| Some((*cpu, now.since(earlier.cpus.get(cpu)?))));
        Self {
            cpus: both.collect(),
        }
    }
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
        let shares = passed.total().shares();
        assert_eq!(
            (shares.busy, shares.interrupt, shares.idle, shares.steal),
            (0.55, 0.05, 0.4, 0.05)
        );
        assert_eq!(
            before.since(&after).total(),
            Ticks::default(),
            "steps back count as none"
        );
        assert_eq!(Ticks::default().shares(), CpuShares::default());
    }

    #[test]
    fn garbage_is_passed_over() {
        assert!(CpuTimes::parse("cpu\ncpux 1\ncpu0 1 2\nλ").cpus.is_empty());
        assert!(!CpuTimes::read().expect("linux").cpus.is_empty());
    }
}
