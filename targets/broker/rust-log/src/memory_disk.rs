//! A [`Disk`] in memory, whose power can be cut. For tests.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::segment::{Disk, SegmentFile};

/// A file: what the kernel has, and what the disk has.
#[derive(Debug, Default, Clone)]
struct Content {
    written: Vec<u8>,
    flushed: Vec<u8>,
    /// Its name has reached the disk.
    is_named: bool,
}

/// Files by the position that names them.
#[derive(Debug, Default, Clone)]
pub struct MemoryDisk {
    files: Arc<Mutex<BTreeMap<u64, Content>>>,
    /// Bytes that fit; `None` is without a bound.
    room: Option<usize>,
}

/// One of them.
#[derive(Debug)]
pub struct MemoryFile {
    disk: MemoryDisk,
    base: u64,
}

impl MemoryDisk {
    /// A disk that is full after so many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self { room: Some(bytes), ..Self::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<u64, Content>) -> T) -> T {
        act(&mut self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What another process finds after this one was killed.
    pub fn after_kill(&self) -> Self {
        Self { files: Arc::new(Mutex::new(self.with(|files| files.clone()))), room: self.room }
    }

    /// What is found after a power cut, when of the bytes that were only written the first `kept` had reached the disk by
    /// themselves, in each file.
    pub fn after_power_cut(&self, kept: usize) -> Self {
        let mut files = self.with(|files| files.clone());
        files.retain(|_, content| content.is_named);
        for content in files.values_mut() {
            let until = content.written.len().min(content.flushed.len() + kept);
            content.written.truncate(until.max(content.flushed.len()));
            content.flushed.clone_from(&content.written);
        }
        Self { files: Arc::new(Mutex::new(files)), room: self.room }
    }

    /// Changes the content of a file.
    pub fn change(&self, base: u64, change: impl FnOnce(&mut Vec<u8>)) {
        self.with(|files| {
            if let Some(content) = files.get_mut(&base) {
                change(&mut content.written);
            }
        });
    }

    /// How many bytes each file has, by its position.
    pub fn lengths(&self) -> Vec<(u64, usize)> {
        self.with(|files| files.iter().map(|(base, content)| (*base, content.written.len())).collect())
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<u64>> {
        Ok(self.with(|files| files.keys().copied().collect()))
    }

    fn open(&self, base: u64) -> io::Result<MemoryFile> {
        if self.with(|files| files.contains_key(&base)) {
            Ok(MemoryFile { disk: self.clone(), base })
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn create(&self, base: u64) -> io::Result<MemoryFile> {
        if self.with(|files| files.insert(base, Content::default()).is_some()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.open(base)
    }

    fn remove(&self, base: u64) -> io::Result<()> {
        self.with(|files| files.remove(&base)).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn set_aside(&self, base: u64) -> io::Result<()> {
        self.remove(base)
    }

    fn flush_names(&self) -> io::Result<()> {
        self.with(|files| files.values_mut().for_each(|content| content.is_named = true));
        Ok(())
    }
}

impl SegmentFile for MemoryFile {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        self.disk.with(|files| {
            let used: usize = files.values().map(|content| content.written.len()).sum();
            if self.disk.room.is_some_and(|room| used + bytes.len() > room) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let Some(content) = files.get_mut(&self.base) else { return Ok(()) };
            let until = at + bytes.len();
            if content.written.len() < until {
                content.written.resize(until, 0);
            }
            content.written[at..until].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        self.disk.with(|files| {
            let there = files.get(&self.base).and_then(|content| content.written.get(at..)).unwrap_or_default();
            let length = there.len().min(buffer.len());
            buffer[..length].copy_from_slice(&there[..length]);
            Ok(length)
        })
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.disk.change(self.base, |bytes| bytes.truncate(length));
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.disk.with(|files| {
            if let Some(content) = files.get_mut(&self.base) {
                content.flushed.clone_from(&content.written);
            }
        });
        Ok(())
    }
}
