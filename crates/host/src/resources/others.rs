//! Other programs that may run on our CPUs, and how much each ran between two looks.
//!
//! A program that holds a CPU for milliseconds, a few times a second, uses hardly any of it, but makes a client late. So
//! whoever reads that the client was late wants to know which programs could have been there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use nix::unistd::Pid;
use plimsoll_core::caveat::OtherProgram;

use super::parse;
use super::sampler::{read, schedstat, threads_of};
use crate::isolation::CpuList;
use crate::process::{descendants, processes};

/// A program that used less of a core is not worth a word.
const LEAST_SHARE: f64 = 0.002;
/// The most that are named.
const AT_MOST: usize = 3;
/// `PF_NO_SETAFFINITY` of `include/linux/sched.h`: a kernel thread that belongs to its CPU, so nobody can move it.
const CANNOT_BE_MOVED: u64 = 0x0400_0000;
/// The kernel's threads that receive for a network card. Those of our cards are where they should be.
const RECEIVERS: &str = "napi/";

/// What the other programs had used when last looked at.
#[derive(Debug)]
pub struct Others {
    cpus: CpuList,
    at: Instant,
    programs: BTreeMap<Key, Program>,
}

/// A process ID and its start in clock ticks: IDs are used again.
type Key = (i32, u64);

#[derive(Debug)]
struct Program {
    name: String,
    /// CPU time of its threads that may run on the CPUs, in ns.
    used_ns: u64,
}

impl Others {
    /// Looks at the programs that may run on one of these CPUs. Ours are left out: this process and its descendants.
    #[must_use]
    pub fn look(cpus: &CpuList) -> Self {
        let us = Pid::this().as_raw();
        let mut ours = descendants(us);
        ours.insert(us);
        let programs = processes()
            .filter(|pid| !ours.contains(pid))
            .filter_map(|pid| program(pid, cpus))
            .collect();
        Self {
            cpus: cpus.clone(),
            at: Instant::now(),
            programs,
        }
    }

    /// The busiest of them since, the busiest first. A program that has ended is not among them.
    #[must_use]
    pub fn busiest_since(&self) -> Vec<OtherProgram> {
        let mut others = self.until(&Self::look(&self.cpus));
        others.retain(|other| other.core_share >= LEAST_SHARE);
        others.truncate(AT_MOST);
        others
    }

    #[allow(clippy::cast_precision_loss)] // Nanoseconds of a trial.
    fn until(&self, now: &Self) -> Vec<OtherProgram> {
        let passed_ns = now.at.duration_since(self.at).as_nanos() as f64;
        let used = |(key, program): (&Key, &Program)| {
            let before_ns = self.programs.get(key).map_or(0, |before| before.used_ns);
            OtherProgram {
                name: program.name.clone(),
                pid: key.0,
                core_share: program.used_ns.saturating_sub(before_ns) as f64 / passed_ns,
            }
        };
        let mut others: Vec<OtherProgram> = now.programs.iter().map(used).collect();
        others.sort_by(|a, b| b.core_share.total_cmp(&a.core_share));
        others
    }
}

/// `None` if it has ended, or cannot be moved.
fn program(pid: i32, cpus: &CpuList) -> Option<(Key, Program)> {
    let text = read(Path::new(&format!("/proc/{pid}/stat")))?;
    let stat = parse::stat(&text)?;
    let name = parse::name(&text)?;
    if stat.flags & CANNOT_BE_MOVED != 0 || name.starts_with(RECEIVERS) {
        return None;
    }
    let threads = threads_of(pid).into_iter();
    let here = threads.filter(|(thread, _)| may_run_on(*thread, cpus));
    let used_ns = here.filter_map(|(_, folder)| Some(schedstat(&folder)?.on_cpu_ns));
    let program = Program {
        name: name.replace(char::is_control, "?"),
        used_ns: used_ns.sum(),
    };
    Some(((pid, stat.start_ticks), program))
}

fn may_run_on(thread: i32, cpus: &CpuList) -> bool {
    CpuList::allowed_to(thread).is_ok_and(|allowed| allowed.overlaps(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    /// A busy loop that is no descendant of ours, because the shell that started it has ended.
    struct Loop(i32);

    impl Loop {
        fn start() -> Self {
            let script = "sh -c 'while :; do :; done' >&- 2>&- & echo $!";
            let ended = Command::new("sh")
                .args(["-c", script])
                .output()
                .expect("sh");
            let pid = String::from_utf8(ended.stdout).expect("a number");
            Self(pid.trim().parse().expect("a number"))
        }
    }

    impl Drop for Loop {
        fn drop(&mut self) {
            let _ended = nix::sys::signal::kill(Pid::from_raw(self.0), nix::sys::signal::SIGKILL);
        }
    }

    #[test]
    fn a_busy_program_is_named_and_we_are_not() {
        let cpus = CpuList::allowed_to_us().expect("ours");
        let others = Others::look(&cpus);
        let busy = Loop::start();
        let deadline = Instant::now() + Duration::from_secs(30);
        let seen = loop {
            let seen = others.until(&Others::look(&cpus));
            let is_it =
                |other: &&OtherProgram| other.pid == busy.0 && other.core_share >= LEAST_SHARE;
            if let Some(seen) = seen.iter().find(is_it) {
                break seen.clone();
            }
            assert!(Instant::now() < deadline, "{} is not in {seen:?}", busy.0);
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(seen.name, "sh");
        let us = Pid::this().as_raw();
        assert!(!others.programs.keys().any(|(pid, _)| *pid == us));
    }

    #[test]
    fn the_busiest_come_first_and_a_newcomer_counts_from_its_start() {
        let at = Instant::now();
        let look = |at, used: &[(Key, u64)]| Others {
            cpus: CpuList::new(vec![0]).expect("one"),
            at,
            programs: used
                .iter()
                .map(|(key, used_ns)| {
                    let name = format!("p{}", key.0);
                    (
                        *key,
                        Program {
                            name,
                            used_ns: *used_ns,
                        },
                    )
                })
                .collect(),
        };
        let before = look(at, &[((7, 1), 900), ((8, 1), 100), ((9, 1), 400)]);
        let now = look(
            at + Duration::from_nanos(1_000),
            &[((7, 1), 910), ((8, 1), 350), ((9, 2), 60)],
        );
        let told: Vec<(i32, f64)> = before
            .until(&now)
            .into_iter()
            .map(|other| (other.pid, other.core_share))
            .collect();
        assert_eq!(told, [(8, 0.25), (9, 0.06), (7, 0.01)]);
    }
}
