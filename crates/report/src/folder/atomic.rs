//! A file that is there as a whole or not at all.
//!
//! Written under a temporary name in the same folder, synced, renamed, and the folder synced: whoever finds the final name finds the whole file,
//! after a crash of the program and after a crash of the machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ReportError;

/// What marks a temporary file: a dot before the final name, this and a number after it.
const TEMPORARY: &str = ".plimsoll-tmp-";

/// Makes names unique among the threads of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Whether a file of that name is left over from a write that a crash cut short.
pub(super) fn is_leftover(name: &str) -> bool {
    name.starts_with('.') && name.contains(TEMPORARY)
}

/// Writes `folder/name`, replacing what is there.
///
/// # Errors
/// When the system refuses; then the temporary file is gone and what was there before is untouched.
pub(super) fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
    let path = folder.join(name);
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}{TEMPORARY}{}-{unique}", std::process::id()));
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, &path));
    if let Err(error) = written {
        // Nothing better can be done when this fails too; `is_leftover` keeps such a file out of every result.
        let _ = fs::remove_file(&temporary);
        return Err(ReportError::write(&path, error));
    }
    sync_folder(folder)
}

/// Syncs a folder, so that a rename within it survives a crash of the machine.
pub(super) fn sync_folder(folder: &Path) -> Result<(), ReportError> {
    File::open(folder)
        .and_then(|handle| handle.sync_all())
        .map_err(|error| ReportError::write(folder, error))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_what_is_there_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "bracket.json", b"old and longer").unwrap();
        write(folder.path(), "bracket.json", b"new").unwrap();
        assert_eq!(names(folder.path()), ["bracket.json"]);
        let read = fs::read(folder.path().join("bracket.json")).unwrap();
        assert_eq!(read, b"new");
    }

    #[test]
    fn a_folder_that_is_gone_is_one_clear_line() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("gone"), "x.json", b"x")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cannot write ") && error.contains("gone/x.json"));
        assert!(!error.contains('\n'), "{error}");
    }

    /// Names the folder to the child process of the next test.
    const CHILD_FOLDER: &str = "PLIMSOLL_TEST_FOLDER";

    /// The kernel itself refuses the write half way, as it does on a full disk: the test runs itself as a child that may write files of at most 8
    /// blocks. The signal of that limit is ignored, so that the child sees the error.
    #[test]
    fn a_full_disk_leaves_nothing_half_written() {
        if let Some(folder) = std::env::var_os(CHILD_FOLDER) {
            return writes_more_than_fits(Path::new(&folder));
        }
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "trial-001.hlog", b"as it was").unwrap();
        let child = Command::new("sh")
            .arg("-c")
            .arg("trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact --nocapture \"$1\"")
            .arg(std::env::current_exe().unwrap())
            .arg("folder::atomic::tests::a_full_disk_leaves_nothing_half_written")
            .env(CHILD_FOLDER, folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{said}");
        assert!(said.contains("1 passed"), "the child ran nothing: {said}");
        assert_eq!(names(folder.path()), ["trial-001.hlog"]);
        let read = fs::read(folder.path().join("trial-001.hlog")).unwrap();
        assert_eq!(read, b"as it was");
    }

    fn writes_more_than_fits(folder: &Path) {
        let error = write(folder, "trial-001.hlog", &[b'x'; 100_000])
            .unwrap_err()
            .to_string();
        assert!(error.contains("trial-001.hlog"), "{error}");
        assert!(error.contains("ulimit -f"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn leftovers_are_known_by_their_name() {
        assert!(is_leftover(".trial-001.json.plimsoll-tmp-17-0"));
        assert!(!is_leftover("trial-001.json"));
        assert!(!is_leftover(".gitignore"));
    }
}
