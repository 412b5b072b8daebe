//! Whether the processes of a case were kept from their cores while it ran: a late answer then says nothing about the target.
//!
//! Three witnesses, twenty times a second:
//!
//! - The threads of the target and of its companion count how long they were ready and waited for a core. A thread also waits for another thread of its own process, and that is
//!   its own doing: so such a wait counts only as far as *others* used the core meanwhile, the hypervisor among them.
//! - A process that a signal has stopped is kept from its core, too.
//! - The checker asks for short sleeps and measures how late they end.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_host::resources::{CpuTimes, RunQueue, Waited};

const SLEEP: Duration = Duration::from_millis(10);

/// A sleep ends up to this late on an idle machine.
const USUAL_LATENESS: Duration = Duration::from_millis(1);

const SLEEPS_PER_LOOK: u32 = 5;

/// The kernel counts idle time in steps of 10 ms, so a shorter stretch would show little.
const STRETCH_MIN: Duration = Duration::from_millis(200);

/// A thread that is kept longer than this behind a case's end is not seen to be.
const SETTLE: Duration = Duration::from_millis(250);

/// The watch may be kept from its core itself; it is not waited for longer than this.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);

/// Delays of target, companion and checker add up, and an answer takes some time even undisturbed: so a part of the tolerance is enough to put a case in doubt.
const LIMIT_PART: u32 = 4;

/// Whose delays count beside those of the target and its companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Witnesses {
    /// The checker's own.
    #[default]
    WithChecker,
    /// Nobody's. For tests of the checker, whose outcome must not depend on the machine's noise.
    ProcessesOnly,
}

/// Watches two processes and the checker itself until it is dropped.
pub(super) struct Watch {
    companion: &'static str,
    moments: Arc<Mutex<Vec<Moment>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What one look showed of the time since the look before.
#[derive(Debug, Clone, Copy)]
struct Moment {
    from: Instant,
    to: Instant,
    /// How much later than asked the checker's own sleeps ended, together.
    late: Duration,
    target: Window,
    companion: Window,
}

/// The same of one process, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    waited: i64,
    /// What its CPUs did for others. Idle time is counted in steps, so one of these may be below 0; their sum is right.
    others: i64,
    on_cpu: i64,
    stopped: i64,
}

/// How long each was kept from its core, in the worst stretch of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kept {
    pub(super) target: Duration,
    /// The name of what runs beside the target, and how long it was kept.
    pub(super) companion: (&'static str, Duration),
    pub(super) checker: Duration,
    /// The target's core was busy with what other cases asked of it.
    pub(super) company: Duration,
    stretch: Duration,
}

impl Kept {
    /// Whether this may have turned a pass into a failure, for a case that a delay of `tolerance` can fail.
    pub(super) fn disturbs(&self, tolerance: Duration) -> bool {
        self.sum() >= tolerance / LIMIT_PART
    }

    fn sum(&self) -> Duration {
        self.target + self.companion.1 + self.checker + self.company
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (beside, beside_kept) = self.companion;
        let parts = [
            ("the target was kept from its core for", self.target),
            (&*format!("the {beside} for"), beside_kept),
            ("the checker for", self.checker),
            ("the target was busy with other cases for", self.company),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, time)| !time.is_zero())
            .map(|(who, time)| format!("{who} {} ms", time.as_millis()))
            .collect();
        write!(
            f,
            "within {} ms {}",
            self.stretch.as_millis(),
            parts.join(", ")
        )
    }
}

impl Watch {
    /// Watches the target's and its companion's process, as far as they are known, and this one.
    pub(super) fn new(
        target: Option<i32>,
        (companion, beside): (&'static str, Option<i32>),
        witnesses: Witnesses,
    ) -> Self {
        let moments = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (kept, ended) = (Arc::clone(&moments), Arc::clone(&over));
        let thread = thread::spawn(move || {
            let mut target = target.map(Process::new);
            let mut beside = beside.map(Process::new);
            let mut from = Instant::now();
            while !ended.load(Ordering::Relaxed) {
                let late = match witnesses {
                    Witnesses::WithChecker => late_sleeps(),
                    Witnesses::ProcessesOnly => {
                        late_sleeps();
                        Duration::ZERO
                    }
                };
                let cpus = CpuTimes::read().unwrap_or_default();
                let to = Instant::now();
                let window = |process: &mut Option<Process>| {
                    process.as_mut().map_or_else(Window::default, |process| {
                        process.window(&cpus, nanos(to - from))
                    })
                };
                let moment = Moment {
                    from,
                    to,
                    late,
                    target: window(&mut target),
                    companion: window(&mut beside),
                };
                lock(&kept).push(moment);
                from = to;
            }
        });
        Self {
            companion,
            moments,
            over,
            thread: Some(thread),
        }
    }

    /// Waits until a whole look lies behind this moment. The kernel counts a wait when it ends, and a case may end before the wait that failed it.
    pub(super) fn settle(&self, end: Instant) {
        let deadline = end + SETTLE_LIMIT;
        let settled = |moments: &[Moment]| {
            let last = moments.last();
            last.is_some_and(|moment| moment.from >= end + SETTLE)
        };
        while !settled(&lock(&self.moments)) && Instant::now() < deadline {
            thread::sleep(SLEEP);
        }
    }

    /// The worst stretch since then, for a case with this tolerance. `company`: other cases ran against the same target.
    pub(super) fn kept_since(&self, since: Instant, tolerance: Duration, company: bool) -> Kept {
        let stretch = (2 * tolerance).max(STRETCH_MIN);
        let moments = lock(&self.moments);
        let first = moments.partition_point(|moment| moment.to <= since);
        let kept = worst(&moments[first..], stretch, company);
        Kept {
            companion: (self.companion, kept.companion.1),
            ..kept
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell: a watch that failed saw nothing.
            let _ = thread.join();
        }
    }
}

fn lock(moments: &Mutex<Vec<Moment>>) -> std::sync::MutexGuard<'_, Vec<Moment>> {
    moments.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps a few times; how late the sleeps ended beyond what is usual.
fn late_sleeps() -> Duration {
    (0..SLEEPS_PER_LOOK)
        .map(|_| {
            let begun = Instant::now();
            thread::sleep(SLEEP);
            begun.elapsed().saturating_sub(SLEEP + USUAL_LATENESS)
        })
        .sum()
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// One of the two processes.
struct Process {
    queue: RunQueue,
    last: Option<(Waited, CpuTimes)>,
}

impl Process {
    fn new(pid: i32) -> Self {
        Self {
            queue: RunQueue::of_tree(pid),
            last: None,
        }
    }

    fn window(&mut self, cpus: &CpuTimes, passed: i64) -> Window {
        let now = self.queue.look();
        let before = self.last.replace((now, cpus.clone()));
        let (Some((before, cpus_before)), Some(own)) = (before, self.queue.cpus()) else {
            return Window::default();
        };
        let grown = |now: u64, before: u64| i64::try_from(now.saturating_sub(before)).unwrap_or(0);
        let spent = cpus.since(&cpus_before).sum(|cpu| own.contains(cpu));
        let idle = i64::try_from(spent.idle * CpuTimes::tick_us() * 1000).unwrap_or(i64::MAX);
        let cores = i64::try_from(own.count()).unwrap_or(1);
        let on_cpu = grown(now.on_cpu_ns, before.on_cpu_ns);
        Window {
            waited: grown(now.wait_ns, before.wait_ns),
            others: passed * cores - idle - on_cpu,
            on_cpu,
            stopped: if now.stopped { passed } else { 0 },
        }
    }
}

/// The stretch of about this length in which the processes were kept most. A look that was late itself is longer than that and counts, too.
fn worst(moments: &[Moment], stretch: Duration, company: bool) -> Kept {
    let from = |first: usize| {
        let begun = moments[first].from;
        let within = moments[first..]
            .iter()
            .take_while(|moment| moment.from - begun < stretch);
        let mut sum = [Window::default(); 2];
        let mut late = Duration::ZERO;
        for moment in within {
            late += moment.late;
            sum[0].add(&moment.target);
            sum[1].add(&moment.companion);
        }
        let busy = if company { sum[0].on_cpu } else { 0 };
        Kept {
            target: sum[0].kept(stretch),
            companion: ("", sum[1].kept(stretch)),
            checker: late.min(stretch),
            company: Duration::from_nanos(busy.unsigned_abs()).min(stretch),
            stretch,
        }
    };
    (0..moments.len())
        .map(from)
        .max_by_key(Kept::sum)
        .unwrap_or(Kept {
            stretch,
            ..Kept::default()
        })
}

impl Window {
    fn add(&mut self, other: &Self) {
        self.waited += other.waited;
        self.others += other.others;
        self.on_cpu += other.on_cpu;
        self.stopped += other.stopped;
    }

    /// Waits of its threads as far as others used its CPUs; nobody is kept for longer than the time that passed.
    fn kept(&self, stretch: Duration) -> Duration {
        let waited = self.waited.min(self.others).max(0);
        Duration::from_nanos((waited + self.stopped).unsigned_abs()).min(stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Duration = Duration::from_millis(400);

    const MS: i64 = 1_000_000;

    /// Looks 50 ms apart, each with a target's window in ms (waited, others, on the CPU).
    fn looks(windows: &[(i64, i64, i64)]) -> Vec<Moment> {
        let begun = Instant::now();
        let at =
            |index: usize| begun + Duration::from_millis(50) * u32::try_from(index).unwrap_or(0);
        let moment = |(index, (waited, others, on_cpu)): (usize, &(i64, i64, i64))| Moment {
            from: at(index),
            to: at(index + 1),
            late: Duration::ZERO,
            target: Window {
                waited: waited * MS,
                others: others * MS,
                on_cpu: on_cpu * MS,
                stopped: 0,
            },
            companion: Window::default(),
        };
        windows.iter().enumerate().map(moment).collect()
    }

    fn kept_ms(windows: &[(i64, i64, i64)]) -> u128 {
        let kept = worst(&looks(windows), 2 * TOLERANCE, false);
        kept.target.as_millis()
    }

    #[test]
    fn waits_count_only_as_far_as_others_used_the_core() {
        assert_eq!(kept_ms(&[(40, 0, 50), (45, 0, 50)]), 0, "its own threads");
        assert_eq!(kept_ms(&[(40, 50, 0), (45, 50, 0)]), 85);
        assert_eq!(kept_ms(&[(0, 50, 0), (0, 50, 0)]), 0, "it was not ready");
        // A wait is counted when it ends, so all of a long one stands in one look; idle time comes in steps.
        assert_eq!(kept_ms(&[(0, 50, 0), (0, 50, 0), (95, 50, 0)]), 95);
        assert_eq!(kept_ms(&[(20, 15, 5), (20, -5, 5)]), 10);
        assert_eq!(kept_ms(&[]), 0);
    }

    #[test]
    fn the_worst_stretch_decides_not_the_sum_of_a_long_case() {
        let mut long = vec![(2, 50, 10); 200];
        assert_eq!(kept_ms(&long), 32, "16 looks of 50 ms");
        let kept = worst(&looks(&long), 2 * TOLERANCE, false);
        assert!(!kept.disturbs(TOLERANCE));
        long[150] = (90, 50, 0);
        let kept = worst(&looks(&long), 2 * TOLERANCE, false);
        assert!(kept.disturbs(TOLERANCE), "{kept}");
        assert!(!kept.disturbs(10 * TOLERANCE), "{kept}");
    }

    #[test]
    fn company_counts_only_beside_other_cases() {
        let busy = looks(&[(0, 0, 50), (0, 0, 50), (0, 0, 50)]);
        let alone = worst(&busy, 2 * TOLERANCE, false);
        assert!(!alone.disturbs(TOLERANCE), "{alone}");
        let beside = worst(&busy, 2 * TOLERANCE, true);
        assert_eq!(beside.company, Duration::from_millis(150));
        assert!(beside.disturbs(TOLERANCE), "{beside}");
        assert_eq!(
            beside.to_string(),
            "within 800 ms the target was busy with other cases for 150 ms"
        );
    }

    #[test]
    fn a_look_that_was_late_itself_counts_though_it_is_longer_than_the_stretch() {
        let mut moments = looks(&[(0, 0, 0); 2]);
        moments[1].to += Duration::from_secs(5);
        moments[1].late = Duration::from_secs(5);
        let kept = worst(&moments, STRETCH_MIN, false);
        assert_eq!(kept.checker, STRETCH_MIN);
        assert!(kept.disturbs(TOLERANCE), "{kept}");
    }

    #[test]
    fn a_stopped_process_and_a_late_checker_are_kept() {
        let mut moments = looks(&[(0, 0, 0); 4]);
        moments[1].companion.stopped = 50 * MS;
        moments[2].late = Duration::from_millis(70);
        let kept = worst(&moments, 2 * TOLERANCE, false);
        assert_eq!(kept.companion.1, Duration::from_millis(50));
        assert_eq!(kept.checker, Duration::from_millis(70));
        assert!(kept.disturbs(TOLERANCE));
    }
}
