//! The kernel's own threads.

use std::path::PathBuf;

/// The kernel threads whose names begin with one of these, each with its process ID.
pub(crate) fn kernel_threads(beginnings: &[&str]) -> Vec<(String, i32)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_one = |path: PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        // A program may take such a name, but only kernel threads have no command line.
        let named_so = beginnings.iter().any(|begins| name.starts_with(begins));
        let is_it = named_so && std::fs::read(path.join("cmdline")).ok()?.is_empty();
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        is_it.then(|| (name.trim().to_owned(), pid))
    };
    processes.filter_map(|entry| is_one(entry.path())).collect()
}
