//! Parses the texts of `/proc/<pid>`. Pure, so that it is tested without a process. Source: `proc(5)`.

/// From `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// The process ID of its parent.
    pub(super) parent: i32,
    /// The kernel's flags, `PF_…` of `include/linux/sched.h`.
    pub(super) flags: u64,
    /// Clock ticks in user mode.
    pub(super) user_ticks: u64,
    /// Clock ticks in the kernel.
    pub(super) system_ticks: u64,
    pub(super) threads: u64,
    /// Clock ticks from boot to its start.
    pub(super) start_ticks: u64,
}

/// From `/proc/<pid>/status`; the switches also from `/proc/<pid>/task/<tid>/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Status {
    /// Resident memory: `VmRSS`.
    pub(super) rss_bytes: u64,
    /// The most that was ever resident: `VmHWM`.
    pub(super) rss_peak_bytes: u64,
    /// Resident memory that belongs to no file: `RssAnon`.
    pub(super) rss_anon_bytes: u64,
    /// Times that the thread gave up the CPU.
    pub(super) voluntary_switches: u64,
    /// Times that the CPU was taken away from it.
    pub(super) involuntary_switches: u64,
}

/// `None` when the text is cut short or not of this kind.
pub(super) fn stat(text: &str) -> Option<Stat> {
    // The program's name is in parentheses and may contain anything, so counting begins after the last one.
    let (_, fields) = text.rsplit_once(')')?;
    // The first of these is field 3 of the manual page.
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: i32::try_from(number(4)?).ok()?,
        flags: number(9)?,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        threads: number(20)?,
        start_ticks: number(22)?,
    })
}

/// The program's name in `/proc/<pid>/stat`, which may contain anything.
pub(super) fn name(text: &str) -> Option<&str> {
    let (before, _) = text.rsplit_once(')')?;
    Some(before.split_once('(')?.1)
}

/// Whether `/proc/<pid>/stat` says that a signal or a tracer has stopped the process: state `T` or `t`.
pub(super) fn is_stopped(text: &str) -> bool {
    matches!(state(text), Some('T' | 't'))
}

/// Whether `/proc/<pid>/stat` says that the thread runs or waits for a CPU: state `R`.
pub(super) fn is_ready(text: &str) -> bool {
    state(text) == Some('R')
}

/// The letter after the name, which may contain anything.
fn state(text: &str) -> Option<char> {
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Absent lines count as 0: a process that is just ending has no memory lines any more.
pub(super) fn status(text: &str) -> Status {
    let mut status = Status::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let number: u64 = value
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0);
        match key {
            "VmRSS" => status.rss_bytes = number * 1024,
            "VmHWM" => status.rss_peak_bytes = number * 1024,
            "RssAnon" => status.rss_anon_bytes = number * 1024,
            "voluntary_ctxt_switches" => status.voluntary_switches = number,
            "nonvoluntary_ctxt_switches" => status.involuntary_switches = number,
            _ => {}
        }
    }
    status
}

/// The proportional set size in `/proc/<pid>/smaps_rollup`, in bytes: a page that several processes map counts for each
/// with its part. `None` when the text does not say it.
pub(super) fn pss_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// From `/proc/<pid>/task/<tid>/schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchedStat {
    /// Time on a CPU.
    pub(super) on_cpu_ns: u64,
    /// Time that the thread was ready and waited for a CPU.
    pub(super) wait_ns: u64,
}

/// `None` when the text is cut short. Source: `sched-stats.rst` in the kernel's documentation.
pub(super) fn schedstat(text: &str) -> Option<SchedStat> {
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(SchedStat {
        on_cpu_ns: numbers.next()?.ok()?,
        wait_ns: numbers.next()?.ok()?,
    })
}

/// What a process wrote, from `/proc/<pid>/io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Io {
    /// Bytes given to system calls that write: `wchar`.
    pub(super) wchar: u64,
    /// Such system calls: `syscw`.
    pub(super) syscw: u64,
    /// Bytes that it caused to be written to storage: `write_bytes`.
    pub(super) write_bytes: u64,
}

/// `None` when a line is missing.
pub(super) fn io(text: &str) -> Option<Io> {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| *name == key)?;
        value.trim().parse().ok()
    };
    Some(Io {
        wchar: value("wchar")?,
        syscw: value("syscw")?,
        write_bytes: value("write_bytes")?,
    })
}

/// The share of the machine's memory that is available to programs, from `/proc/meminfo`: what is free or can be had
/// without swapping.
#[allow(clippy::cast_precision_loss)] // KiB of a machine's memory.
pub(super) fn memory_available_share(text: &str) -> Option<f64> {
    let value = |key: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let total = value("MemTotal:").filter(|total| *total > 0)?;
    Some(value("MemAvailable:")? as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pss_is_not_its_parts() {
        let text = "55e1 ---p 00000000 00:00 0 [rollup]\nRss:                1888 kB\nPss:                 312 kB\nPss_Dirty:           132 kB\nPss_Anon:            100 kB\n";
        assert_eq!(pss_bytes(text), Some(312 * 1024));
        assert_eq!(pss_bytes("Rss: 1888 kB\nPss_Dirty: 132 kB\n"), None);
    }

    #[test]
    fn stat_with_a_name_full_of_traps() {
        let text = "3972 (a ) b) R 3957 3957 2425 0 -1 4194304 104 0 0 0 17 18 0 0 20 0 5 0 57382 3133440 383 1844";
        let expected = Stat {
            parent: 3957,
            flags: 4_194_304,
            user_ticks: 17,
            system_ticks: 18,
            threads: 5,
            start_ticks: 57_382,
        };
        assert_eq!(stat(text), Some(expected));
        assert_eq!(name(text), Some("a ) b"));
        assert_eq!(name("3972 cat"), None);
        assert_eq!(stat("3972 (cat) R 3957"), None);
        assert_eq!(stat(""), None);
    }

    #[test]
    fn a_stopped_process_has_its_state_behind_the_name() {
        assert!(is_stopped("3972 (a ) b) T 3957 3957"));
        assert!(is_stopped("3972 (traced) t 3957 3957"));
        assert!(!is_stopped("3972 (T) S 3957 3957"));
        assert!(!is_stopped(""));
        assert!(is_ready("14 (ksoftirqd/0) R 2 0") && !is_ready("14 (R) S 2 0") && !is_ready(""));
    }

    #[test]
    fn status_in_bytes() {
        let text = "Name:\tcat\nVmHWM:\t    1712 kB\nVmRSS:\t    1700 kB\nRssAnon:\t 116 kB\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
        let expected = Status {
            rss_bytes: 1700 * 1024,
            rss_peak_bytes: 1712 * 1024,
            rss_anon_bytes: 116 * 1024,
            voluntary_switches: 3,
            involuntary_switches: 4,
        };
        assert_eq!(status(text), expected);
        assert_eq!(status("State:\tZ (zombie)\n"), Status::default());
    }

    #[test]
    fn schedstat_has_time_on_and_off_the_cpu() {
        let expected = SchedStat {
            on_cpu_ns: 123,
            wait_ns: 456,
        };
        assert_eq!(schedstat("123 456 7\n"), Some(expected));
        assert_eq!(schedstat("0\n"), None);
    }

    #[test]
    fn io_has_what_was_written_and_not_what_was_taken_back() {
        let text = "rchar: 1\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        let expected = Io {
            wchar: 20,
            syscw: 4,
            write_bytes: 4096,
        };
        assert_eq!(io(text), Some(expected));
        assert_eq!(io("wchar: 20\nsyscw: 4\ncancelled_write_bytes: 7\n"), None);
    }

    #[test]
    fn memory_available_is_a_share_of_the_total() {
        let text = "MemTotal:        1000 kB\nMemFree:  1 kB\nMemAvailable:     250 kB\n";
        assert_eq!(memory_available_share(text), Some(0.25));
        assert_eq!(
            memory_available_share("MemTotal: 0 kB\nMemAvailable: 0 kB\n"),
            None
        );
        assert_eq!(memory_available_share("MemTotal: 9 kB\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in r"[a-zA-Z0-9() :\n]{0,200}") {
            let _ = (is_stopped(&text), stat(&text), status(&text), schedstat(&text), io(&text), memory_available_share(&text));
        }
    }
}
