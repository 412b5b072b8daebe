//! Keeps CPUs awake, so that a thread that sleeps on one wakes up in time.
//!
//! A virtual CPU that has nothing to do halts, and the hypervisor gives its core away. Waking it again takes some 20 µs,
//! and now and then milliseconds, which no account calls stolen. A client that sleeps until each request is due wakes
//! thousands of times a second. On the machine of the README, a thread that slept 80 µs at a time woke up 24 µs late in
//! the median and 109 to 1,100 µs at p99.9; beside a process that kept the CPU awake 9 µs and 22 to 455 µs.

use std::collections::BTreeMap;

use nix::libc;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::spawn::die_with;
use crate::isolation::{CpuList, GroupView, IdleGroup, Layout};

/// CPUs that do not halt for as long as this lives. Each has a process that runs whenever nothing else wants the CPU
/// (`SCHED_IDLE`). It is a process, because a thread would count as CPU time of this one.
#[derive(Debug)]
pub struct Awake {
    /// CPU number → its process.
    processes: BTreeMap<u32, Pid>,
    /// Removed after its processes.
    group: Option<IdleGroup>,
}

impl Awake {
    /// Keeps these CPUs awake. Where that is refused, the lateness of whoever sleeps there shows it.
    ///
    /// It keeps none if our control group has a CPU quota, because these processes would use it up.
    ///
    /// The processes end with the calling thread, should this value never be dropped.
    #[must_use]
    pub fn keep(cpus: &CpuList) -> Self {
        let layout = Layout::of_this_machine();
        let ours = GroupView::of_process(Pid::this().as_raw(), &layout);
        if ours.limits().has_quota() {
            let (processes, group) = (BTreeMap::new(), None);
            return Self { processes, group };
        }
        let group = IdleGroup::make(&layout);
        let each = cpus.as_slice().iter();
        let processes: BTreeMap<_, _> = each
            .filter_map(|cpu| Some((*cpu, spin_on(*cpu)?)))
            .collect();
        if let Some(group) = &group {
            for pid in processes.values() {
                group.take(pid.as_raw());
            }
        }
        Self { processes, group }
    }

    /// CPU number → the process that keeps it awake.
    #[must_use]
    pub fn keepers(&self) -> BTreeMap<u32, i32> {
        let each = self.processes.iter();
        each.map(|(cpu, pid)| (*cpu, pid.as_raw())).collect()
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for pid in self.processes.values() {
            let _ = kill(*pid, Signal::SIGKILL);
            let _ = waitpid(*pid, None);
        }
        // A field would be dropped after this too. It says so here because a group with processes cannot be removed.
        self.group = None;
    }
}

/// Starts a process that keeps this CPU awake; `None` if it cannot be started.
#[allow(unsafe_code)]
fn spin_on(cpu: u32) -> Option<Pid> {
    let mut set = CpuSet::new();
    set.set(usize::try_from(cpu).ok()?).ok()?;
    let parent = Pid::this();
    // SAFETY: this process has several threads, so its child may do only what is safe in a signal handler. It makes plain
    // system calls, with a CPU set that was built before the fork, and then spins. It neither allocates nor takes a lock,
    // and never returns.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => Some(child),
        Ok(ForkResult::Child) => spin(parent, &set),
        Err(_) => None,
    }
}

#[allow(unsafe_code)]
fn spin(parent: Pid, cpu: &CpuSet) -> ! {
    leave_session();
    // The kernel's parameter is one number. The C library is not asked: musl's refuses to set a policy.
    let idle: libc::c_int = 0;
    // SAFETY: plain system calls of numbers and of one live value. Closing all descriptors lets go of what others wait
    // for the end of, such as a pipe.
    let placed = die_with(parent).is_ok()
        && sched_setaffinity(Pid::from_raw(0), cpu).is_ok()
        && unsafe {
            libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) == 0
                && libc::syscall(
                    libc::SYS_sched_setscheduler,
                    0,
                    libc::SCHED_IDLE,
                    &raw const idle,
                ) == 0
        };
    if placed {
        loop {
            std::hint::spin_loop();
        }
    }
    // SAFETY: it ends this process at once, without the handlers of the one that it was forked from.
    unsafe { libc::_exit(1) }
}

/// Leaves our session for one of the least weight.
///
/// Where the kernel schedules sessions as groups (autogroup, see sched(7)), the lowest class counts only within its own
/// session. Against other sessions and the kernel's threads, such as those that receive packets, it has the weight of the
/// whole session: on the machine of the README, a thread of another session that woke on the same CPU each 300 µs was
/// 3.6 to 3.9 ms late at p99.9, and 0.14 ms after this. Beside six such sessions it was 3.9 ms late again, so
/// [`IdleGroup`] comes first.
fn leave_session() {
    let Ok(_) = nix::unistd::setsid() else {
        return;
    };
    // It has no such file where sessions are no groups; then nothing is to be done.
    let file = nix::fcntl::open(
        c"/proc/self/autogroup",
        nix::fcntl::OFlag::O_WRONLY,
        nix::sys::stat::Mode::empty(),
    );
    if let Ok(file) = file {
        let _ = nix::unistd::write(file, b"19");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of `/proc/PID/stat` after the name: the state is the first.
    fn stat(pid: Pid) -> Option<Vec<String>> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = text.rsplit_once(')')?.1.split_whitespace();
        Some(fields.map(str::to_owned).collect())
    }

    #[test]
    fn a_process_of_the_lowest_class_holds_each_cpu_until_the_end() {
        let allowed = nix::sched::sched_getaffinity(Pid::from_raw(0)).expect("ours");
        let cpu = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu) == Ok(true));
        let cpu = u32::try_from(cpu.expect("one")).expect("small");
        let awake = Awake::keep(&CpuList::new(vec![cpu]).expect("one"));
        let Some(pid) = awake.processes.get(&cpu).copied() else {
            plimsoll_testing::skipped!("keeping a CPU awake: this control group has a CPU quota");
            return;
        };
        let folder = awake.group.as_ref().map(IdleGroup::folder);
        match &folder {
            Some(folder) => {
                let idle = std::fs::read_to_string(folder.join("cpu.idle"));
                let members = std::fs::read_to_string(folder.join("cgroup.procs"));
                assert_eq!(idle.expect("idle").trim(), "1");
                assert_eq!(members.expect("members").trim(), pid.to_string());
            }
            None => {
                plimsoll_testing::skipped!("a control group that gives way: none can be made here")
            }
        }
        // It is placed within moments. Field 39 of the manual is the CPU, 41 the policy; the state is field 3.
        let placed = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let now = stat(pid)?;
            (now[41 - 3] == libc::SCHED_IDLE.to_string()).then_some(now)
        });
        let placed = placed.expect("placed");
        assert_eq!((&*placed[0], &*placed[39 - 3]), ("R", &*cpu.to_string()));
        // Field 6 is the session.
        assert_eq!(placed[6 - 3], pid.to_string(), "a session of its own");
        if let Ok(group) = std::fs::read_to_string(format!("/proc/{pid}/autogroup")) {
            assert!(group.trim_end().ends_with("nice 19"), "{group}");
        }
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
        assert_eq!(open.count(), 0, "it holds nothing open");
        drop(awake);
        assert_eq!(stat(pid), None);
        assert!(!folder.is_some_and(|folder| folder.exists()));
    }
}
