//! What processes wrote, from `/proc/<pid>/io`, summed over processes that come and go.
//!
//! CPU time is summed differently ([`super::members`]), because these counters have another rule: when a parent waits
//! for an ended child, the kernel adds the child's counters to the parent's own (`wait_task_zombie` in the kernel's
//! `kernel/exit.c`). To keep what the child had, as for CPU time, would count it twice. So a process that ended is
//! looked for in the nearest ancestor that still lives and is among the processes: if each of that one's counters grew
//! by at least what the ended process had, it took them over. Otherwise what it had when last seen is kept.
//!
//! The sum never falls: what is left out is always less than what was added in its place. Two things can be lost. An
//! ancestor may have grown by its own work while a child's counters went nowhere, because it ignores the ends of its
//! children (`SIGCHLD` ignored); then the child's are missing. And a process that nobody of these waits for takes with
//! it what it wrote since it was last seen.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::parse;
use super::sampler::{Source, schedstat};
use crate::process::kernel::kernel_threads;

/// What processes have written since they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Bytes that they caused to be written to storage (`write_bytes`). A page counts when it changes in memory, so it
    /// counts before it is on the disk; what is written again before that counts once. On `tmpfs` nothing counts.
    pub storage_bytes: u64,
    /// Bytes given to `write` and its kin (`wchar`), whatever was behind the descriptor: a file, a pipe, a socket.
    /// `send` and `sendmsg` do not count.
    pub call_bytes: u64,
    /// Such system calls (`syscw`).
    pub calls: u64,
}

/// Reads what processes have written.
#[derive(Debug)]
pub struct ProcessIo {
    source: Source,
    ledger: Ledger,
}

impl ProcessIo {
    /// For these processes.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self {
            source,
            ledger: Ledger::default(),
        }
    }

    /// What they have written so far. It includes what processes wrote that have ended since the first reading. If none
    /// lives any more, the sum stays what it was.
    ///
    /// # Errors
    /// We may not look at one of the processes, or the kernel does not count.
    pub fn read(&mut self) -> io::Result<Written> {
        let mut now = BTreeMap::new();
        for pid in self.source.processes() {
            let folder = PathBuf::from(format!("/proc/{pid}"));
            let stat = std::fs::read_to_string(folder.join("stat"));
            // A process that ends between two of these reads counts as ended.
            let Some(stat) = stat.ok().as_deref().and_then(parse::stat) else {
                continue;
            };
            let Some(io) = read_io(&folder.join("io"))? else {
                continue;
            };
            let member = Member {
                parent: stat.parent,
                counters: [io.write_bytes, io.wchar, io.syscw],
            };
            now.insert((pid, stat.start_ticks), member);
        }
        let [storage_bytes, call_bytes, calls] = self.ledger.update(now);
        Ok(Written {
            storage_bytes,
            call_bytes,
            calls,
        })
    }
}

/// `None` if the process is gone.
fn read_io(path: &Path) -> io::Result<Option<parse::Io>> {
    let error = match std::fs::read_to_string(path) {
        Ok(text) => return Ok(parse::io(&text)),
        Err(error) => error,
    };
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{} may not be read; run as root", path.display())
        }
        io::ErrorKind::NotFound if !Path::new("/proc/self/io").exists() => {
            "this kernel does not count what processes write (CONFIG_TASK_IO_ACCOUNTING)".to_owned()
        }
        // It ended before or after the file was opened.
        _ => return Ok(None),
    };
    Err(io::Error::new(error.kind(), why))
}

const COUNTERS: usize = 3;

/// One process at one reading.
#[derive(Debug, Clone, Copy)]
struct Member {
    parent: i32,
    counters: [u64; COUNTERS],
}

/// The processes at the last reading, by ID and start.
type Members = BTreeMap<(i32, u64), Member>;

/// The sum over processes that come and go.
#[derive(Debug, Default)]
struct Ledger {
    last: Members,
    /// What ended processes had that no other one took over.
    gone: [u64; COUNTERS],
}

impl Ledger {
    /// Takes the counters of all processes that are there now. Returns the sums.
    fn update(&mut self, now: Members) -> [u64; COUNTERS] {
        let mut growth = BTreeMap::new();
        let mut ended = Vec::new();
        for (key, last) in &self.last {
            let grown = now
                .get(key)
                .and_then(|now| less(&now.counters, &last.counters));
            match grown {
                Some(grown) => {
                    growth.insert(key.0, grown);
                }
                None => ended.push(*last),
            }
        }
        for member in ended {
            let heir = self.nearest(member.parent, &growth);
            let room = heir.and_then(|heir| growth.get_mut(&heir));
            let rest = room
                .as_deref()
                .and_then(|room| less(room, &member.counters));
            match (room, rest) {
                (Some(room), Some(rest)) => *room = rest,
                _ => add(&mut self.gone, &member.counters),
            }
        }
        let mut sum = self.gone;
        for member in now.values() {
            add(&mut sum, &member.counters);
        }
        self.last = now;
        sum
    }

    /// The first of `pid`, its parent, its parent's parent …, as they were at the last reading, that still lives.
    fn nearest(&self, pid: i32, living: &BTreeMap<i32, [u64; COUNTERS]>) -> Option<i32> {
        let mut pid = pid;
        // No line of parents is longer than there are processes.
        for _ in 0..=self.last.len() {
            if living.contains_key(&pid) {
                return Some(pid);
            }
            let mut of_pid = self.last.range((pid, 0)..=(pid, u64::MAX));
            pid = of_pid.next()?.1.parent;
        }
        None
    }
}

/// `from` less `what`; `None` if one of the counters is smaller than that.
fn less(from: &[u64; COUNTERS], what: &[u64; COUNTERS]) -> Option<[u64; COUNTERS]> {
    let mut rest = [0; COUNTERS];
    for (rest, (from, what)) in rest.iter_mut().zip(from.iter().zip(what)) {
        *rest = from.checked_sub(*what)?;
    }
    Some(rest)
}

fn add(sum: &mut [u64; COUNTERS], counters: &[u64; COUNTERS]) {
    for (sum, counter) in sum.iter_mut().zip(counters) {
        *sum = sum.saturating_add(*counter);
    }
}

/// CPU time that the kernel's threads for writing to disks have taken: those of journals (`jbd2/…`), and its workers, which do
/// what is put off. `None` where kernel threads are not visible, as in a container.
#[must_use]
pub fn kernel_writers_cpu_us() -> Option<u64> {
    let threads = kernel_threads(&["jbd2/", "kworker/"]);
    // One that has ended meanwhile is not there to be read.
    let taken_ns = |(_, pid): &(String, i32)| {
        let thread = schedstat(Path::new(&format!("/proc/{pid}")));
        thread.map(|thread| thread.on_cpu_ns)
    };
    let sum_ns: u64 = threads.iter().filter_map(taken_ns).sum();
    (!threads.is_empty()).then_some(sum_ns / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Child, Command, Stdio};

    use crate::process::descendants;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use proptest::prelude::*;

    /// Process, parent, and the same value for each counter.
    fn members(of: &[(i32, i32, u64)]) -> Members {
        let member = |&(pid, parent, value)| {
            let counters = [value; COUNTERS];
            ((pid, 1), Member { parent, counters })
        };
        of.iter().map(member).collect()
    }

    fn sums(readings: &[&[(i32, i32, u64)]]) -> Vec<u64> {
        let mut ledger = Ledger::default();
        let sum = |reading: &&[_]| ledger.update(members(reading))[0];
        readings.iter().map(sum).collect()
    }

    #[test]
    fn a_child_that_was_waited_for_counts_once() {
        // The parent takes over the child's 100 and has written 5 itself.
        let readings: [&[_]; 3] = [&[(1, 0, 10), (2, 1, 100)], &[(1, 0, 115)], &[(1, 0, 120)]];
        assert_eq!(sums(&readings), [110, 115, 120]);
    }

    #[test]
    fn a_child_that_nobody_waited_for_is_kept() {
        let ignored: [&[_]; 2] = [&[(1, 0, 10), (2, 1, 100)], &[(1, 0, 12)]];
        assert_eq!(sums(&ignored), [110, 112]);
        // Its parent is none of ours, or it was the last one.
        let stranger: [&[_]; 3] = [&[(1, 0, 10), (2, 7, 100)], &[(1, 0, 500)], &[]];
        assert_eq!(sums(&stranger), [110, 600, 600]);
        assert_eq!(sums(&[&[], &[]]), [0, 0]);
    }

    #[test]
    fn a_grandparent_takes_over_what_the_parent_had_taken_over() {
        let readings: [&[_]; 2] = [&[(1, 0, 10), (2, 1, 100), (3, 2, 1000)], &[(1, 0, 1110)]];
        assert_eq!(sums(&readings), [1110, 1110]);
        // The parent ended without waiting for the child, which went on under another one.
        let readings: [&[_]; 3] = [
            &[(1, 0, 10), (2, 1, 100), (3, 2, 1000)],
            &[(1, 0, 110), (3, 99, 1000)],
            &[(1, 0, 110)],
        ];
        assert_eq!(sums(&readings), [1110, 1110, 1110]);
    }

    #[test]
    fn an_id_that_is_used_again_is_another_process() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.update(members(&[(1, 0, 10)]))[0], 10);
        let mut later = members(&[(1, 0, 50)]);
        let again = later.pop_first().expect("one").1;
        assert_eq!(ledger.update([((1, 2), again)].into())[0], 60);
    }

    proptest! {
        #[test]
        fn sums_never_fall(readings in proptest::collection::vec(proptest::collection::btree_map(1i32..6, (0i32..6, [0u64..100, 0u64..100, 0u64..100]), 0..5), 1..20)) {
            let mut ledger = Ledger::default();
            let mut before = [0; COUNTERS];
            for reading in readings {
                let now = reading.into_iter().map(|(pid, (parent, counters))| ((pid, 1), Member { parent, counters }));
                let sum = ledger.update(now.collect());
                prop_assert!(sum.iter().zip(&before).all(|(sum, before)| sum >= before));
                before = sum;
            }
        }
    }

    fn shell(script: &str, folder: &Path) -> (Child, i32) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder);
        let child = command.stdout(Stdio::piped()).spawn().expect("sh");
        let pid = i32::try_from(child.id()).expect("pid");
        (child, pid)
    }

    fn wait_for_byte(child: &mut Child) {
        let stdout = child.stdout.as_mut().expect("piped");
        stdout.read_exact(&mut [0]).expect("a byte");
    }

    #[test]
    fn what_an_ended_child_wrote_neither_vanishes_nor_counts_twice() {
        const BYTES: u64 = 300_000;
        let folder = tempfile::tempdir().expect("temp");
        let script = format!(
            "(head -c {BYTES} /dev/zero > file; echo; exec sleep 600) & wait; echo; exec sleep 600"
        );
        let (mut child, pid) = shell(&script, folder.path());
        wait_for_byte(&mut child);
        let mut io = ProcessIo::new(Source::Tree(pid));
        let with_child = io.read().expect("ours");
        assert!(with_child.call_bytes >= BYTES, "{with_child:?}");
        assert!(with_child.call_bytes < 2 * BYTES, "{with_child:?}");
        assert!(with_child.calls > 0, "{with_child:?}");
        for pid in descendants(pid) {
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("kill");
        }
        wait_for_byte(&mut child);
        let without = io.read().expect("ours");
        assert!(without.call_bytes >= with_child.call_bytes, "{without:?}");
        assert!(without.call_bytes < 2 * BYTES, "{without:?}");
        assert!(without.calls >= with_child.calls, "{without:?}");
        child.kill().expect("kill");
        child.wait().expect("reaped");
        assert_eq!(io.read().expect("nobody there"), without);
    }

    #[test]
    fn bytes_for_a_disk_are_those_that_were_written() {
        // Beside the program, because a folder for temporary files is often in memory.
        let program = std::env::current_exe().expect("known");
        let folder = tempfile::tempdir_in(program.parent().expect("a folder")).expect("temp");
        let file_system = crate::disk::file_system(folder.path()).expect("known");
        if file_system.device.is_none() {
            plimsoll_testing::skipped!("no disk here: {file_system:?}");
            return;
        }
        let (mut child, pid) = shell(
            "head -c 409600 /dev/zero > file; echo; exec sleep 600",
            folder.path(),
        );
        wait_for_byte(&mut child);
        let written = ProcessIo::new(Source::Process(pid)).read().expect("ours");
        // Whole pages, and no more than a few of the file system's own.
        assert!(
            (409_600..1 << 20).contains(&written.storage_bytes),
            "{written:?}"
        );
        child.kill().expect("kill");
        child.wait().expect("reaped");
    }
}
