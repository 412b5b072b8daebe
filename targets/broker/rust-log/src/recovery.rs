//! Reading the log at the start: all records until the first that is torn, and what follows that is cut off.
//!
//! A power cut leaves a prefix of what was written, in the best case. In others the file is as long as it was and its last
//! pages are zeros or of mixed age, or a later segment is there and an earlier one is not complete. Nothing behind the first
//! torn record was ever reported as on disk: a flush covers all before its position. So the log ends there.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::record::{Found, Record, find};
use crate::segment::{Disk, FILE_HEAD_BYTES, Log, MAGIC, Segment, SegmentFile, Sizes};

/// One read; a longer record gets a longer one.
const BLOCK_BYTES: usize = 1024 * 1024;

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records that are whole.
    pub records: u64,
    /// Bytes cut off in the segment that was torn.
    pub cut_bytes: u64,
    /// Later segments, which were set aside.
    pub segments_set_aside: u64,
}

/// Opens the log of this folder. `apply` is given each record and the position behind it.
///
/// # Errors
/// What the file system says.
pub fn open<D: Disk>(disk: D, sizes: Sizes, mut apply: impl FnMut(Record<'_>, u64)) -> io::Result<(Log<D>, Recovery)> {
    let disk = Arc::new(disk);
    let mut bases = disk.list()?;
    bases.sort_unstable();
    let mut recovery = Recovery::default();
    let mut segments = VecDeque::new();
    let mut end = bases.first().copied().unwrap_or(0);
    let mut is_torn = false;
    for base in bases {
        // A gap is a tear, too.
        if is_torn || base != end {
            disk.set_aside(base)?;
            recovery.segments_set_aside += 1;
            is_torn = true;
            continue;
        }
        let file = disk.open(base)?;
        let scan = scan(&file, base, sizes.body_bytes_max(), &mut recovery.records, &mut apply)?;
        end = scan.end;
        if scan.torn_bytes > 0 || !scan.has_head {
            is_torn = true;
            recovery.cut_bytes += scan.torn_bytes;
            if !scan.has_head {
                // Not even its first 16 bytes: it has no records, and a new one takes its place.
                disk.set_aside(base)?;
                recovery.segments_set_aside += 1;
                continue;
            }
            file.truncate(end - base + FILE_HEAD_BYTES)?;
        }
        segments.push_back(Segment { base, file: Arc::new(file) });
    }
    // After a kill the kernel has it all, but perhaps the disk has not; and what is found counts as on disk from now on.
    for segment in &segments {
        segment.file.flush()?;
    }
    disk.flush_names()?;
    Ok((Log::of(disk, sizes, segments, end, end)?, recovery))
}

struct Scan {
    /// The position behind the last whole record.
    end: u64,
    /// What follows it.
    torn_bytes: u64,
    has_head: bool,
}

fn scan<F: SegmentFile>(
    file: &F,
    base: u64,
    body_bytes_max: usize,
    records: &mut u64,
    apply: &mut impl FnMut(Record<'_>, u64),
) -> io::Result<Scan> {
    let mut head = [0; 16];
    let length = fill(file, &mut head, 0)?;
    let is_head = length == head.len() && head[..8] == *MAGIC && head[8..] == base.to_be_bytes();
    if !is_head {
        return Ok(Scan { end: base, torn_bytes: length as u64, has_head: false });
    }
    let mut end = base;
    let mut bytes = Vec::new();
    let mut wanted = BLOCK_BYTES;
    loop {
        // From the first record that is not applied, so much of the file as is wanted.
        bytes.resize(wanted, 0);
        let length = fill(file, &mut bytes, end - base + FILE_HEAD_BYTES)?;
        let mut rest = &bytes[..length];
        let is_last = length < wanted;
        wanted = BLOCK_BYTES;
        let found = loop {
            match find(rest, end, body_bytes_max) {
                Found::Whole(record, length) => {
                    end += length as u64;
                    *records += 1;
                    apply(record, end);
                    rest = &rest[length..];
                }
                other => break other,
            }
        };
        match found {
            Found::Partial(length) if !is_last => wanted = wanted.max(length),
            _ => {
                let all = length_from(file, end - base + FILE_HEAD_BYTES, rest.len(), is_last)?;
                return Ok(Scan { end, torn_bytes: all, has_head: true });
            }
        }
    }
}

/// How long the file is from `at` on, of which `known` bytes were read.
fn length_from<F: SegmentFile>(file: &F, at: u64, known: usize, is_last: bool) -> io::Result<u64> {
    let mut all = known as u64;
    let mut buffer = vec![0; if is_last { 0 } else { BLOCK_BYTES }];
    while !buffer.is_empty() {
        match file.read_at(&mut buffer, at + all)? {
            0 => break,
            more => all += more as u64,
        }
    }
    Ok(all)
}

/// Reads until the buffer is full or the file ends; how much.
fn fill<F: SegmentFile>(file: &F, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64)? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
