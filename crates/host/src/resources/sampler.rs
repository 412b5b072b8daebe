//! One sample of what a target has used so far.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::cpu_times::tick_us;
use super::members::Members;
use super::parse;
use crate::isolation::{CpuList, GroupLimits, GroupMemory, GroupView, Layout, Throttling};
use crate::process::descendants;

/// What is sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The processes of a control group, with its own counters where it has them.
    Group(GroupView),
    /// A process and its descendants.
    Tree(i32),
    /// A process without its descendants.
    Process(i32),
    /// Several processes, together.
    Processes(BTreeSet<i32>),
}

impl Source {
    /// This process itself.
    #[must_use]
    pub fn ourselves() -> Self {
        Self::Process(Pid::this().as_raw())
    }

    /// This process and others of ours, together.
    #[must_use]
    pub fn ourselves_and(others: &[i32]) -> Self {
        let ours = [Pid::this().as_raw()];
        Self::Processes(ours.iter().chain(others).copied().collect())
    }

    /// The limits that bind it: those of its own control group, or of the group that the process is in.
    fn limits(&self) -> GroupLimits {
        match self {
            Self::Group(view) => view.limits(),
            Self::Tree(pid) | Self::Process(pid) => {
                GroupView::of_process(*pid, &Layout::of_this_machine()).limits()
            }
            // These are ours: what we started ourselves is in the same group as we are.
            Self::Processes(_) => Self::ourselves().limits(),
        }
    }

    /// The memory that its processes have now; `None` if none of them lives. The kernel walks all their pages for
    /// this, so it does not belong into a measured window.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        let living = self.processes().into_iter();
        let each = living.filter_map(|pid| {
            let (_, status) = read_process(pid)?;
            let rollup = read(&PathBuf::from(format!("/proc/{pid}/smaps_rollup")));
            let pss_bytes = rollup.as_deref().and_then(parse::pss_bytes);
            Some(Memory {
                rss_bytes: status.rss_bytes,
                pss_bytes,
            })
        });
        each.reduce(|sum, one| Memory {
            rss_bytes: sum.rss_bytes + one.rss_bytes,
            pss_bytes: sum.pss_bytes.zip(one.pss_bytes).map(|(sum, one)| sum + one),
        })
    }

    /// The CPUs that any of its threads may run on now; `None` if all of them have ended.
    #[must_use]
    pub fn cpus(&self) -> Option<CpuList> {
        let processes = self.processes();
        let threads = processes.iter().flat_map(|pid| threads_of(*pid));
        // A thread that has ended in the meantime runs nowhere.
        let allowed = threads.filter_map(|(thread, _)| CpuList::allowed_to(thread).ok());
        CpuList::new(allowed.flat_map(|cpus| cpus.as_slice().to_vec()).collect())
    }

    /// The processes that it has now.
    #[must_use]
    pub fn processes(&self) -> BTreeSet<i32> {
        match self {
            Self::Group(view) => view.processes(),
            Self::Tree(root) => {
                let mut tree = descendants(*root);
                tree.insert(*root);
                tree
            }
            Self::Process(pid) => [*pid].into(),
            Self::Processes(pids) => pids.clone(),
        }
    }
}

/// The memory of a target at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The sum of `VmRSS`, as in [`Sample::rss_bytes`].
    pub rss_bytes: u64,
    /// The sum of `Pss`: a page that several processes map counts once. `None` when we may not look at one of them.
    pub pss_bytes: Option<u64>,
}

/// Counters since the target began, and current gauges.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// When it was taken, in ns since the sampler's epoch.
    pub at_ns: u64,
    /// CPU time, in µs: exact, from the group or from the processes' CPU clocks.
    pub cpu_us: u64,
    /// The part of it in user mode, in µs. For processes it is counted in ticks of 10 ms.
    pub cpu_user_us: u64,
    /// The part of it in the kernel, in µs.
    pub cpu_system_us: u64,
    /// Resident memory now, in bytes: the sum of `VmRSS` as `ps` shows it. Pages that processes share count once for
    /// each.
    pub rss_bytes: u64,
    /// The anonymous part of it, in bytes.
    pub rss_anon_bytes: u64,
    /// The most resident memory so far, in bytes. Exact for one process (`VmHWM`); for several, the greatest sum
    /// sampled.
    pub rss_peak_bytes: u64,
    /// Processes now.
    pub processes: u64,
    /// Threads now.
    pub threads: u64,
    /// What the binding quota did, its own group's or that of a group above; `None` without a quota.
    pub throttling: Option<Throttling>,
    /// What costs more to read, so that not every sample has it.
    pub detail: Option<Detail>,
}

/// The part of a sample that takes a few files per thread to read.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Detail {
    /// Time that threads were ready and waited for a CPU, in µs, including the time that a quota stopped them; `None`
    /// if the kernel does not count it.
    pub runqueue_wait_us: Option<u64>,
    /// Times that a thread gave up its CPU, because it waited for something.
    pub voluntary_switches: u64,
    /// Times that a CPU was taken away from a thread.
    pub involuntary_switches: u64,
    /// Open files now; `None` when we may not look.
    pub fds: Option<u64>,
    /// CPU time of the busiest thread since the previous detailed sample, as a share of one core; `None` in the first
    /// sample and if the kernel does not count it.
    pub busiest_thread_share: Option<f64>,
    /// What the group's memory controller charges.
    pub group_memory: Option<GroupMemory>,
    /// Times that the memory controller of the limiting group refused, reclaimed or killed, since that group was made.
    pub memory_events: Option<u64>,
}

/// Samples one target.
#[derive(Debug)]
pub struct Sampler {
    source: Source,
    epoch: Instant,
    tick_us: u64,
    /// (process, its start) → CPU time: total, user, system; in µs.
    processes: Members<(i32, u64), 3>,
    /// (process, thread) → wait in ns, voluntary and involuntary switches.
    threads: Members<(i32, i32), 3>,
    busiest: BusiestThread,
    limits: GroupLimits,
    rss_peak_bytes: u64,
}

impl Sampler {
    /// A sampler whose times count from `epoch`. Everything that its samples are compared with must have the same
    /// epoch.
    #[must_use]
    pub fn new(source: Source, epoch: Instant) -> Self {
        Self {
            limits: source.limits(),
            source,
            epoch,
            tick_us: tick_us(),
            processes: Members::default(),
            threads: Members::default(),
            busiest: BusiestThread::default(),
            rss_peak_bytes: 0,
        }
    }

    /// What is sampled.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The most memory that it may use, in bytes; `None` if no control group limits it.
    #[must_use]
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        self.limits.memory_bytes()
    }

    /// Where its CPU times come from: "cgroup v1", "cgroup v2" or "process tree".
    #[must_use]
    pub fn source_name(&self) -> &'static str {
        match &self.source {
            Source::Group(view) => view.cpu_version().unwrap_or("process tree"),
            Source::Tree(_) | Source::Process(_) | Source::Processes(_) => "process tree",
        }
    }

    /// Reads everything; `None` if the target is gone.
    #[must_use]
    pub fn sample(&mut self) -> Option<Sample> {
        let (mut sample, processes) = self.read()?;
        sample.detail = Some(self.read_detail(&processes, sample.at_ns));
        Some(sample)
    }

    /// Reads what is light: everything but [`Sample::detail`]. `None` if the target is gone.
    #[must_use]
    pub fn sample_light(&mut self) -> Option<Sample> {
        self.read().map(|(sample, _)| sample)
    }

    fn read(&mut self) -> Option<(Sample, BTreeSet<i32>)> {
        let throttling = self.limits.throttling();
        let group_cpu = match &self.source {
            Source::Group(view) => view.cpu(),
            Source::Tree(_) | Source::Process(_) | Source::Processes(_) => None,
        };
        let mut sample = Sample {
            // Right after the counter for which the time matters.
            at_ns: u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX),
            throttling,
            ..Sample::default()
        };
        let mut living = BTreeSet::new();
        let mut cpu = BTreeMap::new();
        for pid in self.source.processes() {
            let Some((stat, status)) = read_process(pid) else {
                continue;
            };
            living.insert(pid);
            let (user, system) = (
                stat.user_ticks * self.tick_us,
                stat.system_ticks * self.tick_us,
            );
            cpu.insert(
                (pid, stat.start_ticks),
                [process_cpu_us(pid).unwrap_or(user + system), user, system],
            );
            sample.processes += 1;
            sample.threads += stat.threads;
            sample.rss_bytes += status.rss_bytes;
            sample.rss_anon_bytes += status.rss_anon_bytes;
            self.rss_peak_bytes = self.rss_peak_bytes.max(status.rss_peak_bytes);
        }
        if living.is_empty() {
            return None;
        }
        self.rss_peak_bytes = self.rss_peak_bytes.max(sample.rss_bytes);
        sample.rss_peak_bytes = self.rss_peak_bytes;
        let from_processes = self.processes.update(cpu);
        let from_group = group_cpu.map(|cpu| [cpu.total_us, cpu.user_us, cpu.system_us]);
        [sample.cpu_us, sample.cpu_user_us, sample.cpu_system_us] =
            from_group.unwrap_or(from_processes);
        Some((sample, living))
    }

    fn read_detail(&mut self, processes: &BTreeSet<i32>, at_ns: u64) -> Detail {
        let mut threads = BTreeMap::new();
        let mut on_cpu_ns = BTreeMap::new();
        for pid in processes {
            for (thread, folder) in threads_of(*pid) {
                // A thread that ends between two of these reads counts as ended.
                let Some(status) = read(&folder.join("status")) else {
                    continue;
                };
                let status = parse::status(&status);
                let times = schedstat(&folder);
                on_cpu_ns.extend(times.map(|times| ((*pid, thread), times.on_cpu_ns)));
                let counters = [
                    times.map_or(0, |times| times.wait_ns),
                    status.voluntary_switches,
                    status.involuntary_switches,
                ];
                threads.insert((*pid, thread), counters);
            }
        }
        let [wait_ns, voluntary_switches, involuntary_switches] = self.threads.update(threads);
        Detail {
            runqueue_wait_us: (!on_cpu_ns.is_empty()).then_some(wait_ns / 1000),
            busiest_thread_share: self.busiest.update(at_ns, on_cpu_ns),
            memory_events: self.limits.memory_events(),
            voluntary_switches,
            involuntary_switches,
            fds: processes.iter().map(|pid| open_files(*pid)).sum(),
            group_memory: match &self.source {
                Source::Group(view) => view.memory(),
                Source::Tree(_) | Source::Process(_) | Source::Processes(_) => None,
            },
        }
    }
}

/// Which thread used the most CPU time between two looks.
#[derive(Debug, Default)]
struct BusiestThread {
    at_ns: u64,
    on_cpu_ns: BTreeMap<(i32, i32), u64>,
}

impl BusiestThread {
    /// Takes the threads' current CPU times. Returns the greatest growth since the last look, divided by the time
    /// passed. Threads that are new or gone have none.
    fn update(&mut self, at_ns: u64, on_cpu_ns: BTreeMap<(i32, i32), u64>) -> Option<f64> {
        let grown = on_cpu_ns
            .iter()
            .filter_map(|(thread, now)| now.checked_sub(*self.on_cpu_ns.get(thread)?));
        let passed_ns = at_ns.saturating_sub(self.at_ns).max(1);
        let share = grown.max().map(|grown| ratio(grown, passed_ns));
        *self = Self { at_ns, on_cpu_ns };
        share
    }
}

#[allow(clippy::cast_precision_loss)] // Nanoseconds of hours stay below 2^53.
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

fn read_process(pid: i32) -> Option<(parse::Stat, parse::Status)> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let stat = parse::stat(&read(&folder.join("stat"))?)?;
    let status = parse::status(&read(&folder.join("status"))?);
    // A process that has ended but was not waited for has no memory, and it uses nothing more.
    Some((stat, status)).filter(|(_, status)| status.rss_bytes > 0)
}

/// CPU time of a process since it started, in µs; `None` if it is gone. It comes from the process's CPU clock, which
/// counts all its threads in ns, including those that ended. `/proc` shows the same in ticks of 10 ms.
#[must_use]
pub fn process_cpu_us(pid: i32) -> Option<u64> {
    let clock: ClockId = clock_getcpuclockid(Pid::from_raw(pid)).ok()?;
    let time = clock.now().ok()?;
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec()).ok()?;
    Some(seconds * 1_000_000 + nanoseconds / 1000)
}

pub(super) fn threads_of(pid: i32) -> Vec<(i32, PathBuf)> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let named =
        entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    named.collect()
}

/// Since Linux 6.2 the folder's size is the number of its entries. Before that it is 0, and the entries are counted.
fn open_files(pid: i32) -> Option<u64> {
    let folder = format!("/proc/{pid}/fd");
    match std::fs::metadata(&folder).ok()?.len() {
        0 => Some(std::fs::read_dir(&folder).ok()?.count() as u64),
        length => Some(length),
    }
}

pub(super) fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// How long the thread with this folder below `/proc` ran and waited.
pub(super) fn schedstat(folder: &Path) -> Option<parse::SchedStat> {
    parse::schedstat(&read(&folder.join("schedstat"))?)
}

/// How long the calling thread was ready and waited for a CPU since it began.
pub(crate) fn waited_for_cpu() -> Option<Duration> {
    let times = schedstat(Path::new("/proc/thread-self"))?;
    Some(Duration::from_nanos(times.wait_ns))
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
