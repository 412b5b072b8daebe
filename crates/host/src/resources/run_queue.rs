//! How long the threads of a process and its descendants ran, and how long they were ready and waited for a core. Light
//! enough to be read twenty times a second.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::members::Members;
use super::parse;
use super::sampler::{read, schedstat, threads_of};
use crate::isolation::CpuList;
use crate::process::descendants;

/// Looks between two searches for descendants, which cost more than everything else.
const LOOKS_PER_SEARCH: u32 = 20;

/// The threads of a process tree.
#[derive(Debug)]
pub struct RunQueue {
    root: i32,
    processes: BTreeSet<i32>,
    threads: Members<(i32, i32), 2>,
    looks: u32,
}

/// Sums since the threads began, and whether the tree is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waited {
    /// Time ready and waiting for a core, in ns. A wait is counted when it ends.
    pub wait_ns: u64,
    /// Time running, in ns.
    pub on_cpu_ns: u64,
    /// Whether a signal (SIGSTOP) or a debugger has stopped one of the processes.
    pub stopped: bool,
}

impl RunQueue {
    /// The threads of this process and of everything that it has started.
    #[must_use]
    pub fn of_tree(root: i32) -> Self {
        Self {
            root,
            processes: BTreeSet::new(),
            threads: Members::default(),
            looks: 0,
        }
    }

    /// The CPUs that the process at the root may run on; `None` when it is gone.
    #[must_use]
    pub fn cpus(&self) -> Option<CpuList> {
        CpuList::allowed_to(self.root).ok()
    }

    /// The counters now. Where the kernel does not keep them, they are 0.
    #[must_use]
    pub fn look(&mut self) -> Waited {
        if self.looks.is_multiple_of(LOOKS_PER_SEARCH) {
            self.processes = descendants(self.root);
            self.processes.insert(self.root);
        }
        self.looks = self.looks.wrapping_add(1);
        let mut threads = BTreeMap::new();
        for pid in &self.processes {
            for (thread, folder) in threads_of(*pid) {
                // A thread that ends between two of these reads counts as ended.
                let times = schedstat(&folder);
                threads
                    .extend(times.map(|times| ((*pid, thread), [times.wait_ns, times.on_cpu_ns])));
            }
        }
        let [wait_ns, on_cpu_ns] = self.threads.update(threads);
        let stopped = |pid: &i32| {
            read(Path::new(&format!("/proc/{pid}/stat")))
                .is_some_and(|stat| parse::is_stopped(&stat))
        };
        Waited {
            wait_ns,
            on_cpu_ns,
            stopped: self.processes.iter().any(stopped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    /// Looks again until `holds` is true. This test ends when the kernel counts, whatever the machine.
    fn until(mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < deadline, "not within a minute");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn two_that_share_a_core_wait_for_each_other_and_children_count() {
        // The shell and its child spin on one CPU.
        let cpu = CpuList::allowed_to_us().expect("some").as_slice()[0];
        let script = format!(
            "taskset -pc {cpu} $$ >&2 || exit 1; (while :; do :; done) & while :; do :; done"
        );
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .spawn()
            .expect("sh");
        let mut queue = RunQueue::of_tree(i32::try_from(shell.id()).expect("pid"));
        let wanted = Duration::from_millis(200).as_nanos();
        until(|| {
            // The child may start after the first search.
            queue.looks = 0;
            let seen = queue.look();
            queue.processes.len() == 2
                && u128::from(seen.wait_ns) > wanted
                && u128::from(seen.on_cpu_ns) > wanted
        });
        assert_eq!(queue.cpus(), CpuList::new(vec![cpu]));
        for pid in descendants(queue.root) {
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
        }
        shell.kill().expect("killed");
        shell.wait().expect("waited for");
    }

    #[test]
    fn a_stopped_process_is_seen_to_stand_still() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("pid");
        let mut queue = RunQueue::of_tree(pid);
        assert!(!queue.look().stopped);
        kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("stopped");
        until(|| queue.look().stopped);
        kill(Pid::from_raw(pid), Signal::SIGCONT).expect("goes on");
        until(|| !queue.look().stopped);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(!queue.look().stopped, "one that is gone is not stopped");
    }
}
