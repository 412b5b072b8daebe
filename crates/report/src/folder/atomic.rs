//! Writes a file that is there as a whole or not at all.
//!
//! The file is written under a temporary name in the same folder, synced, and renamed; then the folder is synced. If
//! the final name exists, the whole file exists, even after a crash of the program or of the machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ReportError;

/// Marks a temporary file. The name is a dot, the final name, this marker, and a number.
const TEMPORARY: &str = ".plimsoll-tmp-";

/// Makes names unique among the threads of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Whether a file of that name is left over from a write that a crash interrupted.
pub(super) fn is_leftover(name: &str) -> bool {
    name.starts_with('.') && name.contains(TEMPORARY)
}

/// Writes `folder/name`, replacing any existing file.
///
/// # Errors
/// When the system refuses. The temporary file is then gone, and the existing file is untouched.
pub(super) fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
    let named = |error| ReportError::write(&folder.join(name), error);
    let mut file = Unfinished::begin(folder, name).map_err(named)?;
    file.append(bytes).map_err(named)?;
    file.finish(name)
}

/// The same without waiting for the disk, for files that nobody needs after a crash of the machine. Readers still find
/// a whole file.
///
/// # Errors
/// When the system refuses. The temporary file is then gone, and the existing file is untouched.
pub(super) fn write_unsynced(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
    let path = folder.join(name);
    let written = Unfinished::begin(folder, name).and_then(|mut file| {
        file.append(bytes)?;
        file.rename(&path)
    });
    written.map_err(|error| ReportError::write(&path, error))
}

/// A file being written under a temporary name. If it is dropped unfinished, the file is removed.
#[derive(Debug)]
pub(super) struct Unfinished {
    folder: PathBuf,
    temporary: PathBuf,
    file: File,
    renamed: bool,
}

impl Unfinished {
    /// Begins a file in `folder`. `hint` becomes part of its temporary name.
    pub(super) fn begin(folder: &Path, hint: &str) -> io::Result<Self> {
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!(".{hint}{TEMPORARY}{}-{unique}", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).open(&temporary)?;
        Ok(Self {
            folder: folder.to_owned(),
            temporary,
            file,
            renamed: false,
        })
    }

    /// Appends to the file.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file its final name, replacing any existing file.
    ///
    /// # Errors
    /// When the system refuses. The temporary file is then gone, and the existing file is untouched.
    pub(super) fn finish(mut self, name: &str) -> Result<(), ReportError> {
        let path = self.folder.join(name);
        let synced = self.file.sync_all();
        synced
            .and_then(|()| self.rename(&path))
            .map_err(|error| ReportError::write(&path, error))?;
        sync_folder(&self.folder)
    }

    fn rename(&mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.temporary, path)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.renamed {
            // If this fails, there is nothing better to do. `is_leftover` keeps such a file out of every result.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Syncs a folder, so that a rename within it survives a crash of the machine.
pub(super) fn sync_folder(folder: &Path) -> Result<(), ReportError> {
    File::open(folder)
        .and_then(|handle| handle.sync_all())
        .map_err(|error| ReportError::write(folder, error))
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
    fn a_file_that_is_never_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Unfinished::begin(folder.path(), "trial.hlog").unwrap();
        file.append(b"half").unwrap();
        let while_written = names(folder.path());
        assert!(while_written.iter().all(|name| is_leftover(name)) && while_written.len() == 1);
        drop(file);
        assert!(names(folder.path()).is_empty());
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

    /// Passes the folder to the child process of the next test.
    const CHILD_FOLDER: &str = "PLIMSOLL_TEST_FOLDER";

    /// The kernel itself refuses the write half way, as it does on a full disk: the test runs itself as a child that
    /// may write files of at most 8 blocks. The child ignores that limit's signal, so it sees the error instead.
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
