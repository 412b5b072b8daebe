//! Finds the processes of a call, by an environment variable that all of them inherit.

use std::sync::atomic::{AtomicU32, Ordering};

/// What marks the processes of one call.
#[derive(Debug)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", std::process::id()))
    }

    #[expect(clippy::unused_self, reason = "reads as the pair of `value`")]
    pub(crate) fn variable(&self) -> &'static str {
        "PLIMSOLL_TEST_MARK"
    }

    pub(crate) fn value(&self) -> &str {
        &self.0
    }
}

/// The command lines of the processes with this mark. A process that ended but was not reaped has no environment any
/// more, so it does not count.
pub(crate) fn with(mark: &Mark) -> Vec<String> {
    by_id(mark).into_iter().map(|(_, line)| line).collect()
}

/// The same, with their process IDs.
pub(crate) fn by_id(mark: &Mark) -> Vec<(u32, String)> {
    let wanted = format!("{}={}", mark.variable(), mark.value());
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    entries
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let pid = folder.file_name()?.to_str()?.parse().ok()?;
            let environment = std::fs::read(folder.join("environ")).ok()?;
            let marked = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes());
            let line = std::fs::read(folder.join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            marked.then_some((pid, line))
        })
        .collect()
}
