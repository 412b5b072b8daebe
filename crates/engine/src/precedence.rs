//! Where the kernel runs threads and processes that must not be late, and what they take precedence over.

/// Pins the thread and asks for punctual wake-ups. Pinning may be refused; the send lag then shows what that cost.
pub(crate) fn settle_in(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
    be_punctual();
}

/// The nice value of what must not be late: the engine's threads, and the companion beside them, because its lateness
/// would be charged to the target. It puts them ahead of the sampling and the display, which run on the same cores.
const PRIORITY: i32 = -10;

/// The slice that such a thread asks for, in ns: the shortest that the kernel grants.
///
/// A thread that wakes up preempts the running thread if its deadline, one slice away, is earlier. With the usual slice
/// (1.4 to 3 ms), a thread that slept for half a millisecond waits for whichever thread has the core, whatever its nice
/// value. Since Linux 6.12 a thread may ask for another slice (`sched_attr::sched_runtime`, clamped to 0.1 to 100 ms:
/// commit 857b158dc5e8, "sched/eevdf: Use sched_attr::sched_runtime to set request/slice suggestion"). Older kernels
/// ignore the request.
const SLICE_NS: u64 = 100_000;

/// Gives another process the same precedence as the engine's threads. This may be refused; that process's own lateness
/// record then shows what it cost.
pub fn prefer_process(pid: i32) {
    if let Some(process) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::setpriority_process(Some(process), PRIORITY);
        ask_for_slice(pid);
    }
}

/// Asks the kernel to wake the calling thread when it wants to be woken. Each request may be refused; the send lag then
/// shows what that cost.
pub fn be_punctual() {
    // Sleeps end when requested, not up to 50 µs later.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
    // On Linux this sets the nice value of the calling thread only.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    ask_for_slice(0);
}

/// Asks for [`SLICE_NS`] for a thread of the usual policy; 0 is the calling thread.
#[allow(unsafe_code)]
fn ask_for_slice(thread: i32) {
    let Some(mut attributes) = attributes_of(thread) else {
        return;
    };
    if attributes.sched_policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: the kernel reads `size` bytes from the pointer, which are those of a live value, and writes only its
    // `size`.
    let _refused =
        unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw mut attributes, 0) };
}

/// How a thread is scheduled; `None` if it is gone or the kernel does not report it.
#[allow(unsafe_code)]
fn attributes_of(thread: i32) -> Option<libc::sched_attr> {
    let size = u32::try_from(size_of::<libc::sched_attr>()).ok()?;
    let mut attributes = libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `size` bytes to the pointer, which are those of a live value of plain numbers.
    let told = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            thread,
            &raw mut attributes,
            size,
            0,
        )
    };
    (told == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Major and minor number of a kernel release: "6.12.3-amd64".
    fn version_of(release: &str) -> Option<(u32, u32)> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some((next()?, next()?))
    }

    #[test]
    fn releases_are_read() {
        assert_eq!(version_of("6.12.3-amd64"), Some((6, 12)));
        assert_eq!(version_of("6.1.0"), Some((6, 1)));
        assert_eq!(version_of("odd"), None);
    }

    /// Whether this process may give one of its threads that nice value. Asked the way the engine asks, but not by its
    /// code.
    fn may_be_nicer() -> bool {
        let asked = || rustix::process::setpriority_process(None, PRIORITY).is_ok();
        std::thread::spawn(asked).join().expect("ends")
    }

    #[test]
    fn a_thread_that_asks_for_it_is_punctual() {
        let allowed = may_be_nicer();
        // A separate thread, because the precedence ends with it.
        let seen = std::thread::spawn(|| {
            let slack = rustix::thread::current_timer_slack;
            let before = (attributes_of(0).expect("Linux tells"), slack());
            be_punctual();
            (before, (attributes_of(0).expect("Linux tells"), slack()))
        });
        let ((before, _), (after, slack)) = seen.join().expect("ends");
        assert_eq!(slack.expect("Linux tells"), 1_000);
        assert_eq!(after.sched_policy, before.sched_policy);
        let nice = if allowed { PRIORITY } else { before.sched_nice };
        assert_eq!(after.sched_nice, nice);
        // Since 6.12 a thread may ask for a slice. From 6.6 on, an older kernel reports the slice that the thread has;
        // before that, it reports none.
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
        match version_of(release.trim()) {
            Some(version) if version >= (6, 12) => assert_eq!(after.sched_runtime, SLICE_NS),
            _ => {
                assert_eq!(after.sched_runtime, before.sched_runtime);
                plimsoll_testing::skipped!(
                    "the slice: Linux {} has none to ask for",
                    release.trim()
                );
            }
        }
        if !allowed {
            plimsoll_testing::skipped!("the nice value: it needs root or CAP_SYS_NICE");
        }
    }

    #[test]
    fn a_process_that_is_gone_is_passed_over() {
        prefer_process(i32::MAX);
        assert!(attributes_of(i32::MAX).is_none());
    }
}
