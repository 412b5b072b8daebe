//! Where the kernel runs what must not be late, and before what else.

/// Pins the thread and asks for punctual wake-ups. Pinning may be refused; the send lag then shows what it cost.
pub(crate) fn settle_in(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
    be_punctual();
}

/// Nice value of what must not be late: the engine's threads, and the simulator beside them, whose lateness would be charged to the target. Ahead of
/// the sampling and the display, which run on the same cores.
const PRIORITY: i32 = -10;

/// Gives another process the same precedence as the engine's threads. It may be refused; its own lateness record then shows what it cost.
pub fn prefer_process(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::setpriority_process(Some(pid), PRIORITY);
    }
}

/// Asks the kernel to wake the calling thread when it wants to be woken. Each wish may be refused; the send lag then shows what it cost.
pub fn be_punctual() {
    // Sleeps end when asked, not up to 50 µs later.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
    // On Linux this is the calling thread's own.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
}
