//! The kernel's own threads.

use std::path::PathBuf;

/// The kernel threads whose names begin with `prefix`, each with its process ID.
pub(crate) fn kernel_threads(prefix: &str) -> Vec<(String, i32)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_one = |path: PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        // A program may take such a name, but only kernel threads have no command line.
        let is_it =
            name.starts_with(prefix) && std::fs::read(path.join("cmdline")).ok()?.is_empty();
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        is_it.then(|| (name.trim().to_owned(), pid))
    };
    processes.filter_map(|entry| is_one(entry.path())).collect()
}

/// CPU time that the kernel's threads for writing to disks have taken: those of journals (`jbd2/…`), and its workers, which do
/// what is put off. `None` where kernel threads are not visible, as in a container.
#[must_use]
pub fn writers_cpu_us() -> Option<u64> {
    let threads = ["jbd2/", "kworker/"].map(kernel_threads).concat();
    if threads.is_empty() {
        return None;
    }
    // One that has ended meanwhile is not there to be read.
    let taken_ns = |(_, pid): &(String, i32)| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    Some(threads.iter().filter_map(taken_ns).sum::<u64>() / 1_000)
}
