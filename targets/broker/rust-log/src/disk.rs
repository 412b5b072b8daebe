//! A folder of the file system as a [`Disk`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::segment::{Disk, SegmentFile};

/// What the files of segments end with, and those that were set aside.
const ENDING: &str = ".log";
const ENDING_ASIDE: &str = ".torn";

/// A folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Locked for as long as the process lives, whatever ends it.
    _lock: File,
}

impl Folder {
    /// This folder, which is made if it is not there.
    ///
    /// # Errors
    /// What the file system says, or that another process uses it.
    pub fn new(path: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&path)?;
        let lock = File::create(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process uses it"))
            }
        }
    }

    fn file(&self, base: u64, ending: &str) -> PathBuf {
        // Of equal length, so that names sort as positions do.
        self.path.join(format!("{base:020}{ending}"))
    }
}

impl Disk for Folder {
    type File = Segment;

    fn list(&self) -> io::Result<Vec<u64>> {
        let mut bases = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let base: Option<u64> =
                name.to_str().and_then(|name| name.strip_suffix(ENDING)).and_then(|name| name.parse().ok());
            bases.extend(base);
        }
        Ok(bases)
    }

    fn open(&self, base: u64) -> io::Result<Segment> {
        OpenOptions::new().read(true).write(true).open(self.file(base, ENDING)).map(Segment)
    }

    fn create(&self, base: u64) -> io::Result<Segment> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.file(base, ENDING)).map(Segment)
    }

    fn remove(&self, base: u64) -> io::Result<()> {
        std::fs::remove_file(self.file(base, ENDING))
    }

    fn set_aside(&self, base: u64) -> io::Result<()> {
        std::fs::rename(self.file(base, ENDING), self.file(base, ENDING_ASIDE))
    }

    fn flush_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// A file in the folder.
#[derive(Debug)]
pub struct Segment(File);

impl SegmentFile for Segment {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buffer, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn flush(&self) -> io::Result<()> {
        // fdatasync: the length reaches the disk as well, times do not.
        self.0.sync_data()
    }
}
