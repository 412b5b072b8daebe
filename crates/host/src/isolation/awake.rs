//! Keeps CPUs awake, so that a thread that sleeps on one wakes up in time.
//!
//! A virtual CPU that has nothing to do halts, and the hypervisor gives its core away. Waking it again takes some 20 µs,
//! and now and then milliseconds, which no account calls stolen. A CPU of real hardware saves power, and wakes up in as
//! much as 0.2 ms.
//!
//! The kernel can be told which delay of a wake-up a CPU may have ([resume latency]). If it may have none, an idle CPU
//! looks for work in a loop, within the kernel's own idle task: that gives way to everything at once, and its time counts
//! as idle.
//!
//! [resume latency]: https://docs.kernel.org/admin-guide/pm/cpuidle.html

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::signal::SigSet;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2, read, setsid, unlink};

use super::cpus::CpuList;

/// Where the kernel shows its CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// Where the marks are. It is emptied when the machine starts, and so are the kernel's settings.
const MARKS: &str = "/run";

const MARK_PREFIX: &str = "plimsoll-awake-cpu";

/// The value that allows a wake-up no delay, and the one that allows any.
const NO_DELAY: &str = "n/a";
const ANY_DELAY: &str = "0";

/// CPUs that do not halt for as long as this lives, or the process that made it.
///
/// Several trials may keep the same CPU awake. Each has a shared lock on the kernel's file, and the last one puts the value
/// back. A process of its own does that, because it still can when ours is killed.
#[derive(Debug)]
pub struct Awake {
    cpus: usize,
    /// The process that puts the values back when the other end of its pipe is closed.
    keeper: Option<(Pid, OwnedFd)>,
}

impl Awake {
    /// Keeps these CPUs awake: those that can be kept so, and for which nobody else has set a delay.
    #[must_use]
    pub fn keep(cpus: &CpuList) -> Self {
        Self::keep_at(Path::new(CPUS), Path::new(MARKS), cpus)
    }

    fn keep_at(kernel: &Path, marks: &Path, cpus: &CpuList) -> Self {
        let each = cpus.as_slice().iter();
        let held: Vec<Held> = each
            .filter_map(|cpu| Held::take(&kernel.join(format!("cpu{cpu}")), &mark_of(marks, *cpu)))
            .collect();
        // The keeper lives before anything is set, so no kill can come between the two.
        let keeper = if held.is_empty() {
            None
        } else {
            start_keeper(&held).ok()
        };
        let kept = held
            .iter()
            .filter(|held| keeper.is_some() && held.set().is_some());
        Self {
            cpus: kept.count(),
            keeper,
        }
    }

    /// Whether all of these CPUs can be kept awake.
    ///
    /// # Errors
    /// Why not.
    pub fn possible(cpus: &CpuList) -> Result<(), &'static str> {
        Self::possible_at(Path::new(CPUS), Path::new(MARKS), cpus)
    }

    fn possible_at(kernel: &Path, marks: &Path, cpus: &CpuList) -> Result<(), &'static str> {
        if Self::keep_at(kernel, marks, cpus).cpus() == cpus.count() {
            return Ok(());
        }
        let mut each = cpus.as_slice().iter();
        Err(
            if each.all(|cpu| polls(&kernel.join(format!("cpu{cpu}")))) {
                "their delay (power/pm_qos_resume_latency_us) is set already, or may not be set"
            } else {
                "the kernel has no idle state POLL"
            },
        )
    }

    /// How many CPUs it keeps awake.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        if let Some((keeper, end)) = self.keeper.take() {
            drop(end);
            let _ = waitpid(keeper, None);
        }
    }
}

/// The name of the mark of a CPU whose delay we have set.
fn mark_of(marks: &Path, cpu: u32) -> PathBuf {
    marks.join(format!("{MARK_PREFIX}{cpu}"))
}

/// A CPU's file, with a shared lock on it.
#[derive(Debug)]
struct Held {
    file: File,
    mark: CString,
}

impl Held {
    fn take(cpu: &Path, mark: &Path) -> Option<Self> {
        if !polls(cpu) {
            return None;
        }
        let mut file = open(cpu)?;
        // Whoever has the exclusive lock sees a value that no living Plimsoll has set.
        if file.try_lock().is_ok() {
            match value(&mut file)?.as_str() {
                ANY_DELAY => {}
                // A Plimsoll was killed with its keeper.
                NO_DELAY if mark.exists() => {}
                // Somebody else has set it, so it is theirs.
                _ => return None,
            }
        }
        share(&file)?;
        let mark = CString::new(mark.as_os_str().as_bytes()).ok()?;
        Some(Self { file, mark })
    }

    /// Allows its wake-up no delay.
    fn set(&self) -> Option<()> {
        // The mark comes first: what is not marked is never put back after a kill of the keeper.
        File::create(OsStr::from_bytes(self.mark.as_bytes())).ok()?;
        write(&self.file, NO_DELAY).ok()
    }

    /// Puts the value back, unless another trial keeps this CPU awake too. It allocates nothing.
    fn put_back(&self) {
        // This gives the shared lock up first, so of several that try at once, the last one gets it.
        if self.file.try_lock().is_ok() && write(&self.file, ANY_DELAY).is_ok() {
            let _ = unlink(self.mark.as_c_str());
        }
    }
}

/// Without this state, an idle CPU halts whatever delay it may have.
fn polls(cpu: &Path) -> bool {
    let state = std::fs::read_to_string(cpu.join("cpuidle/state0/name"));
    state.is_ok_and(|state| state.trim() == "POLL")
}

fn open(cpu: &Path) -> Option<File> {
    let path = cpu.join("power/pm_qos_resume_latency_us");
    File::options().read(true).write(true).open(path).ok()
}

/// Takes a shared lock. Others of ours have the exclusive one for moments only.
fn share(file: &File) -> Option<()> {
    (0..100).find_map(|_| {
        let shared = file.try_lock_shared().ok();
        if shared.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        shared
    })
}

fn value(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

fn write(file: &File, value: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all_at(value.as_bytes(), 0)
}

/// Starts the process that holds the locks until we are gone or close the end of the pipe that is returned.
#[allow(unsafe_code)]
fn start_keeper(held: &[Held]) -> nix::Result<(Pid, OwnedFd)> {
    let (watched, end) = pipe2(OFlag::O_CLOEXEC)?;
    let kept = held.iter().map(|held| held.file.as_raw_fd());
    let others = others_than(kept.chain([watched.as_raw_fd()]).collect());
    // SAFETY: this process has several threads, so its child may do only what is safe in a signal handler. It makes plain
    // system calls with values that were made before the fork. It neither allocates nor takes a lock of this process, and
    // never returns.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok((child, end)),
        ForkResult::Child => keep_until_closed(&watched, held, &others),
    }
}

/// The ranges of descriptors between these.
fn others_than(mut kept: Vec<i32>) -> Vec<(u32, u32)> {
    kept.sort_unstable();
    let mut others = Vec::new();
    let mut next = 0;
    for kept in kept.into_iter().filter_map(|kept| u32::try_from(kept).ok()) {
        if kept > next {
            others.push((next, kept - 1));
        }
        next = kept + 1;
    }
    others.push((next, u32::MAX));
    others
}

#[allow(unsafe_code)]
fn keep_until_closed(watched: &OwnedFd, held: &[Held], others: &[(u32, u32)]) -> ! {
    // What interrupts us, such as Ctrl-C, goes to all processes of our terminal.
    let _ = setsid();
    let _ = SigSet::all().thread_block();
    for (first, last) in others {
        // SAFETY: plain numbers. Nothing here uses these descriptors, and others may wait for their ends.
        unsafe { libc::syscall(libc::SYS_close_range, *first, *last, 0) };
    }
    while read(watched.as_fd(), &mut [0]) == Err(nix::Error::EINTR) {}
    held.iter().for_each(Held::put_back);
    // SAFETY: it ends this process at once, without the handlers of the one that it was forked from.
    unsafe { libc::_exit(0) }
}

/// Puts back what Plimsolls have set that were killed together with their keepers.
pub(super) fn sweep_awake() {
    sweep_at(Path::new(CPUS), Path::new(MARKS));
}

fn sweep_at(kernel: &Path, marks: &Path) {
    for entry in std::fs::read_dir(marks).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let cpu = name
            .to_str()
            .and_then(|name| name.strip_prefix(MARK_PREFIX));
        let Some(cpu) = cpu.and_then(|cpu| cpu.parse::<u32>().ok()) else {
            continue;
        };
        let mark = CString::new(entry.path().as_os_str().as_bytes());
        let file = open(&kernel.join(format!("cpu{cpu}")));
        if let (Some(file), Ok(mark)) = (file, mark) {
            // Whoever keeps it awake has a lock, and so this does nothing.
            Held { file, mark }.put_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel's folder of CPUs, and one of marks.
    struct Machine(tempfile::TempDir);

    impl Machine {
        /// With CPU 0, which halts only in `states`.
        fn new(state: &str, delay: &str) -> Self {
            let folder = tempfile::tempdir().expect("temp");
            let cpu = folder.path().join("kernel/cpu0");
            for (path, text) in [
                ("cpuidle/state0/name", state),
                ("power/pm_qos_resume_latency_us", delay),
            ] {
                let path = cpu.join(path);
                std::fs::create_dir_all(path.parent().expect("above")).expect("made");
                std::fs::write(path, format!("{text}\n")).expect("written");
            }
            std::fs::create_dir(folder.path().join("marks")).expect("made");
            Self(folder)
        }

        fn kernel(&self) -> PathBuf {
            self.0.path().join("kernel")
        }

        fn marks(&self) -> PathBuf {
            self.0.path().join("marks")
        }

        fn keep(&self) -> Awake {
            let cpus = CpuList::new(vec![0, 7]).expect("two");
            Awake::keep_at(&self.kernel(), &self.marks(), &cpus)
        }

        fn sweep(&self) {
            sweep_at(&self.kernel(), &self.marks());
        }

        fn delay(&self) -> String {
            let mut file = open(&self.kernel().join("cpu0")).expect("opened");
            value(&mut file).expect("read")
        }

        fn marked(&self) -> bool {
            mark_of(&self.marks(), 0).exists()
        }
    }

    #[test]
    fn the_last_one_who_keeps_a_cpu_awake_puts_its_delay_back() {
        let machine = Machine::new("POLL", "0");
        let first = machine.keep();
        assert_eq!((first.cpus(), &*machine.delay()), (1, NO_DELAY));
        let second = machine.keep();
        machine.sweep();
        drop(first);
        assert_eq!((second.cpus(), &*machine.delay()), (1, NO_DELAY));
        assert!(machine.marked());
        drop(second);
        assert_eq!(machine.delay(), ANY_DELAY);
        assert!(!machine.marked());
    }

    #[test]
    fn what_others_have_set_is_theirs() {
        for delay in [NO_DELAY, "50"] {
            let machine = Machine::new("POLL", delay);
            let awake = machine.keep();
            assert_eq!((awake.cpus(), &*machine.delay()), (0, delay));
            drop(awake);
            machine.sweep();
            assert_eq!(machine.delay(), delay);
        }
    }

    #[test]
    fn it_says_why_a_cpu_cannot_be_kept_awake() {
        let possible = |state, delay, cpus| {
            let machine = Machine::new(state, delay);
            let cpus = CpuList::new(cpus).expect("some");
            let possible = Awake::possible_at(&machine.kernel(), &machine.marks(), &cpus);
            assert_eq!((&*machine.delay(), machine.marked()), (delay, false));
            possible
        };
        assert_eq!(possible("POLL", "0", vec![0]), Ok(()));
        let why = possible("C1", "0", vec![0]).expect_err("halts");
        assert!(why.contains("POLL"), "{why}");
        assert_eq!(possible("POLL", "0", vec![0, 7]), Err(why));
        let why = possible("POLL", "50", vec![0]).expect_err("theirs");
        assert!(why.contains("set already"), "{why}");
    }

    #[test]
    fn a_cpu_that_cannot_poll_is_let_alone() {
        let machine = Machine::new("C1", "0");
        assert_eq!((machine.keep().cpus(), &*machine.delay()), (0, ANY_DELAY));
    }

    #[test]
    fn what_a_killed_run_left_is_swept_or_taken_over() {
        let left = |machine: &Machine| {
            let awake = machine.keep();
            let (keeper, _) = awake.keeper.as_ref().expect("kept");
            nix::sys::signal::kill(*keeper, nix::sys::signal::Signal::SIGKILL).expect("killed");
            drop(awake);
            assert_eq!((&*machine.delay(), machine.marked()), (NO_DELAY, true));
        };
        let machine = Machine::new("POLL", "0");
        left(&machine);
        machine.sweep();
        assert_eq!((&*machine.delay(), machine.marked()), (ANY_DELAY, false));
        left(&machine);
        let later = machine.keep();
        assert_eq!(later.cpus(), 1);
        drop(later);
        assert_eq!((&*machine.delay(), machine.marked()), (ANY_DELAY, false));
    }

    #[test]
    fn nothing_is_set_before_there_is_a_keeper() {
        let machine = Machine::new("POLL", "0");
        let held = Held::take(
            &machine.kernel().join("cpu0"),
            &mark_of(&machine.marks(), 0),
        );
        assert_eq!((&*machine.delay(), machine.marked()), (ANY_DELAY, false));
        let keeper = start_keeper(held.as_slice()).expect("started");
        held.as_ref().and_then(Held::set).expect("set");
        assert_eq!((&*machine.delay(), machine.marked()), (NO_DELAY, true));
        drop(keeper);
        drop(held);
        plimsoll_testing::eventually("the keeper puts it back", || !machine.marked());
        assert_eq!(machine.delay(), ANY_DELAY);
    }

    #[test]
    fn the_keeper_holds_nothing_else_open_and_hears_no_signal() {
        let machine = Machine::new("POLL", "0");
        let awake = machine.keep();
        let (keeper, _) = awake.keeper.as_ref().expect("kept");
        plimsoll_testing::eventually("its files are closed", || {
            let open = std::fs::read_dir(format!("/proc/{keeper}/fd"));
            open.expect("it lives").count() == 2
        });
        nix::sys::signal::kill(*keeper, nix::sys::signal::Signal::SIGINT).expect("sent");
        drop(awake);
        assert_eq!(machine.delay(), ANY_DELAY);
    }

    #[test]
    fn descriptors_between_those_that_are_kept_are_closed() {
        assert_eq!(
            others_than(vec![5, 0, 1, 9]),
            [(2, 4), (6, 8), (10, u32::MAX)]
        );
        assert_eq!(others_than(vec![3]), [(0, 2), (4, u32::MAX)]);
    }

    #[test]
    fn this_machine_gets_its_delay_back() {
        let allowed = CpuList::allowed_to_us().expect("ours");
        let cpu = allowed.as_slice()[0];
        let read = || {
            let mut file = open(&Path::new(CPUS).join(format!("cpu{cpu}")))?;
            value(&mut file)
        };
        let awake = Awake::keep(&CpuList::new(vec![cpu]).expect("one"));
        if awake.cpus() == 0 {
            plimsoll_testing::skipped!(
                "keeping a CPU awake: this kernel has no idle state POLL, its settings are read-only, or CPU {cpu} has a setting already"
            );
            return;
        }
        assert_eq!(read().as_deref(), Some(NO_DELAY));
        drop(awake);
        // Other programs of ours may keep it awake for a while.
        plimsoll_testing::eventually("the delay is put back", || {
            read().as_deref() == Some(ANY_DELAY)
        });
    }
}
