//! The log: records one behind another, in segments of some size, with the files behind a trait.
//!
//! A position counts the log's bytes from its very beginning, over all segments. What is appended goes to memory first;
//! [`Log::write`] hands it to the kernel, and a [`Flush`] to the disk. A flush may run on a thread of its own while more is
//! appended and written, and the next flush then serves all that came meanwhile: this is the group commit.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use crate::arena::Arena;
use crate::record::RECORD_FIELDS_BYTES_MAX;

/// What a segment's file begins with: eight letters, and the position of its first record.
pub const FILE_HEAD_BYTES: u64 = 16;

pub(crate) const MAGIC: &[u8; 8] = b"RUSTLOG1";

/// A read of what memory does not hold takes so much, because its neighbours will be wanted next.
const WINDOW_BYTES: usize = 256 * 1024;

/// One file.
pub trait SegmentFile: Debug + Send + Sync {
    /// Writes all of it there.
    ///
    /// # Errors
    /// What the file system says; the log is of no use then.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Reads as much of `buffer` as the file has there.
    ///
    /// # Errors
    /// What the file system says.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Cuts the file off there.
    ///
    /// # Errors
    /// What the file system says.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Returns when all that was written has reached the disk.
    ///
    /// # Errors
    /// What the file system says; then it is unknown what reached it.
    fn flush(&self) -> io::Result<()>;
}

/// A folder of files, each named by the position of its first record.
pub trait Disk: Debug + Send + Sync {
    /// Its files.
    type File: SegmentFile;

    /// The positions that name files, in any order.
    ///
    /// # Errors
    /// What the file system says.
    fn list(&self) -> io::Result<Vec<u64>>;

    /// Opens a file.
    ///
    /// # Errors
    /// What the file system says.
    fn open(&self, base: u64) -> io::Result<Self::File>;

    /// Makes a file.
    ///
    /// # Errors
    /// What the file system says, for instance that there is one.
    fn create(&self, base: u64) -> io::Result<Self::File>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the file system says.
    fn remove(&self, base: u64) -> io::Result<()>;

    /// Gives a file a name under which [`Disk::list`] does not find it, and keeps it.
    ///
    /// # Errors
    /// What the file system says.
    fn set_aside(&self, base: u64) -> io::Result<()>;

    /// Returns when the names of all files have reached the disk.
    ///
    /// # Errors
    /// What the file system says.
    fn flush_names(&self) -> io::Result<()>;
}

/// How large things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// A segment ends when it has so many bytes.
    pub segment_bytes: u64,
    /// How much of the log stays in memory.
    pub tail_bytes: u64,
    /// The longest message.
    pub message_bytes_max: usize,
}

impl Sizes {
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.message_bytes_max + RECORD_FIELDS_BYTES_MAX
    }
}

#[derive(Debug)]
pub(crate) struct Segment<F> {
    /// The position of its first record.
    pub(crate) base: u64,
    pub(crate) file: Arc<F>,
}

/// The log.
#[derive(Debug)]
pub struct Log<D: Disk> {
    disk: Arc<D>,
    sizes: Sizes,
    /// Never empty; the last one grows.
    segments: VecDeque<Segment<D::File>>,
    tail: Arena,
    /// What the kernel has, and what the disk has.
    written: u64,
    flushed: u64,
    /// A file was made whose name may not be on the disk.
    has_new_name: bool,
    /// Files that nobody needs; the thread that flushes removes them, because that can take milliseconds.
    garbage: Vec<u64>,
}

impl<D: Disk> Log<D> {
    /// A log of these segments, all of which is on the disk; see [`crate::recovery`].
    pub(crate) fn of(
        disk: Arc<D>,
        sizes: Sizes,
        segments: VecDeque<Segment<D::File>>,
        end: u64,
        flushed: u64,
    ) -> io::Result<Self> {
        let mut log = Self {
            disk,
            sizes,
            segments,
            tail: Arena::new(end),
            written: end,
            flushed,
            has_new_name: false,
            garbage: Vec::new(),
        };
        if log.segments.is_empty() {
            log.roll()?;
        }
        Ok(log)
    }

    /// The position behind the last record.
    pub fn end(&self) -> u64 {
        self.tail.end()
    }

    /// The position up to which the kernel has the log: it survives the end of this process.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The position up to which the disk has the log: it survives a power cut.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }

    /// The position of the oldest record.
    pub fn start(&self) -> u64 {
        self.segments.front().map_or(0, |segment| segment.base)
    }

    /// Appends a record of at most `most` bytes, which `put` appends at the position that it is given.
    pub fn append(&mut self, most: usize, put: impl FnOnce(&mut Vec<u8>, u64)) {
        let position = self.tail.end();
        self.tail.append(most, |bytes| put(bytes, position));
    }

    /// Hands all that was appended to the kernel.
    ///
    /// # Errors
    /// What the file system says, for instance that it is full. The log is of no use then.
    pub fn write(&mut self) -> io::Result<()> {
        let Some(segment) = self.segments.back() else { return Ok(()) };
        for (at, bytes) in self.tail.since(self.written) {
            segment.file.write_at(bytes, at - segment.base + FILE_HEAD_BYTES)?;
        }
        self.written = self.tail.end();
        // What is on disk need not be in memory, except the newest, which readers want next.
        self.tail.forget(self.written.saturating_sub(self.sizes.tail_bytes));
        Ok(())
    }

    /// Whether it is time to [`Log::roll`].
    pub fn is_full(&self) -> bool {
        self.segments.back().is_none_or(|segment| self.end() - segment.base >= self.sizes.segment_bytes)
    }

    /// Begins a segment. All that was appended must be written.
    ///
    /// # Errors
    /// What the file system says.
    pub fn roll(&mut self) -> io::Result<()> {
        let base = self.end();
        let file = self.disk.create(base)?;
        let mut head = [0; 16];
        head[..8].copy_from_slice(MAGIC);
        head[8..].copy_from_slice(&base.to_be_bytes());
        file.write_at(&head, 0)?;
        self.segments.push_back(Segment { base, file: Arc::new(file) });
        self.has_new_name = true;
        self.tail.cut();
        Ok(())
    }

    /// Gives up segments all of whose records lie before this position.
    pub fn release(&mut self, before: u64) {
        while let Some(second) = self.segments.get(1)
            && second.base <= before
            && let Some(first) = self.segments.pop_front()
        {
            self.garbage.push(first.base);
        }
    }

    /// A flush of all that is written, if there is something to flush (`is_wanted`) or to remove.
    pub fn flush(&mut self, is_wanted: bool) -> Option<Flush<D>> {
        // Before a segment goes, its successors must be on disk: they repeat which channels there are.
        let is_wanted = (is_wanted || !self.garbage.is_empty()) && self.written > self.flushed;
        if !is_wanted && self.garbage.is_empty() {
            return None;
        }
        let mut files = Vec::new();
        if is_wanted {
            // A segment ends where the next one begins.
            let ends = self.segments.iter().skip(1).map(|segment| segment.base).chain([self.written]);
            let dirty = self.segments.iter().zip(ends).filter(|(_, end)| *end > self.flushed);
            files.extend(dirty.map(|(segment, _)| Arc::clone(&segment.file)));
        }
        let has_new_name = is_wanted && std::mem::take(&mut self.has_new_name);
        Some(Flush {
            disk: Arc::clone(&self.disk),
            files,
            has_new_name,
            garbage: std::mem::take(&mut self.garbage),
            until: if is_wanted { self.written } else { self.flushed },
        })
    }

    /// A flush has ended: all before this position is on the disk.
    pub fn flushed_until(&mut self, position: u64) {
        self.flushed = self.flushed.max(position);
    }

    /// Whether this position is in memory.
    pub fn holds(&self, at: u64) -> bool {
        at >= self.tail.start()
    }

    /// The bytes of one record, which must be written or in memory. `window` is the reader's own.
    ///
    /// # Errors
    /// What the file system says, or that the file has not so much.
    pub fn read<'a>(&'a self, at: u64, length: usize, window: &'a mut Window) -> io::Result<&'a [u8]> {
        if let Some(bytes) = self.tail.get(at, length) {
            return Ok(bytes);
        }
        if window.get(at, length).is_none() {
            let index = self.segments.partition_point(|segment| segment.base <= at).saturating_sub(1);
            let segment = self.segments.get(index).ok_or(io::ErrorKind::NotFound)?;
            let offset = at.checked_sub(segment.base).ok_or(io::ErrorKind::NotFound)?;
            window.fill(&*segment.file, at, offset + FILE_HEAD_BYTES, length)?;
        }
        window.get(at, length).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// What a reader has read from a file, ahead of what it wanted.
#[derive(Debug, Default)]
pub struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn get(&self, at: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(from..from.checked_add(length)?)
    }

    fn fill(&mut self, file: &impl SegmentFile, at: u64, offset: u64, length: usize) -> io::Result<()> {
        self.at = at;
        self.bytes.resize(length.max(WINDOW_BYTES), 0);
        let mut filled = 0;
        while filled < length {
            let more = file.read_at(&mut self.bytes[filled..], offset + filled as u64)?;
            if more == 0 {
                break;
            }
            filled += more;
        }
        self.bytes.truncate(filled);
        Ok(())
    }

    /// Gives its memory back: the reader is up with the newest.
    pub fn clear(&mut self) {
        self.bytes = Vec::new();
    }

    /// Whether it holds no memory.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// What has to reach the disk, for the thread that waits for it.
#[derive(Debug)]
pub struct Flush<D: Disk> {
    disk: Arc<D>,
    files: Vec<Arc<D::File>>,
    has_new_name: bool,
    garbage: Vec<u64>,
    until: u64,
}

impl<D: Disk> Flush<D> {
    /// Waits for the disk; the position up to which it has the log then.
    ///
    /// # Errors
    /// What the file system says. What reached the disk is unknown then, so the process must end: a second flush could
    /// succeed although data was dropped.
    pub fn run(self) -> io::Result<u64> {
        for file in &self.files {
            file.flush()?;
        }
        if self.has_new_name {
            self.disk.flush_names()?;
        }
        for base in self.garbage {
            self.disk.remove(base)?;
        }
        Ok(self.until)
    }

    /// The same without waiting for the disk: a lie.
    pub fn without_sync(self) -> Self {
        Self { files: Vec::new(), has_new_name: false, ..self }
    }

    /// Whether it waits for a file, rather than only removing some.
    pub fn is_commit(&self) -> bool {
        !self.files.is_empty()
    }
}
