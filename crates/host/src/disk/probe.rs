//! How fast a disk makes writes permanent: the limit of every server that answers only after an `fdatasync`.
//!
//! Each write makes the file longer, as a log does. So an `fdatasync` also has to write the file's new length. On most
//! file systems that costs more than to overwrite a block that is there already.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_core::record::{BlockDevice, DiskProbe};
use plimsoll_core::stats;

use super::counters::DeviceCounters;
use super::file_system::file_system;
use super::left_behind;
use super::with_path;
use crate::signals::Stop;

/// A small write.
const BLOCK_BYTES: usize = 4 << 10;
/// A large write.
const PIECE_BYTES: usize = 1 << 20;

/// How much a probe does at most.
#[derive(Debug, Clone, Copy)]
struct Work {
    flushes: usize,
    flushing: Duration,
    pieces: usize,
    writing: Duration,
}

const WORK: Work = Work {
    flushes: 2_000,
    flushing: Duration::from_secs(10),
    pieces: 64,
    writing: Duration::from_secs(5),
};

/// Times 2,000 small writes with an `fdatasync` each, and 64 MiB of large writes with one at the end. Each part ends
/// early once it has taken 10 s or 5 s; an `fdatasync` that hangs is waited for. The two files that it writes are
/// removed, one after the other.
///
/// # Errors
/// The folder cannot be written to, or is full. [`io::ErrorKind::Interrupted`] if we were asked to stop.
pub fn probe(folder: &Path, stop: &Stop) -> io::Result<DiskProbe> {
    probe_with(&WORK, folder, stop)
}

fn probe_with(work: &Work, folder: &Path, stop: &Stop) -> io::Result<DiskProbe> {
    left_behind::remove_from(folder);
    let file_system = file_system(folder)?;
    let flushed = flush(work, folder, file_system.device.as_ref(), stop)?;
    let (sequential_bytes, took) = write_on(work, folder, stop)?;
    let quantile = |q| stats::quantile(&flushed.times_us, q).unwrap_or(0.0);
    Ok(DiskProbe {
        file_system,
        flushes: u64::try_from(flushed.times_us.len()).unwrap_or(u64::MAX),
        flush_p50_us: quantile(0.5),
        flush_p99_us: quantile(0.99),
        flush_max_us: quantile(1.0),
        flushes_per_s: rate(flushed.times_us.len(), flushed.took),
        device_flushes_per_s: flushed.by_device.map(|count| rate(count, flushed.took)),
        sequential_bytes: u64::try_from(sequential_bytes).unwrap_or(u64::MAX),
        sequential_mb_per_s: rate(sequential_bytes, took) / 1e6,
    })
}

/// The first part of a probe.
struct Flushed {
    times_us: Vec<f64>,
    took: Duration,
    /// The flush requests that the device completed meanwhile.
    by_device: Option<usize>,
}

fn flush(
    work: &Work,
    folder: &Path,
    device: Option<&BlockDevice>,
    stop: &Stop,
) -> io::Result<Flushed> {
    let made = Fresh::make(folder)?;
    let block = filler(BLOCK_BYTES);
    let counters = || device.and_then(|device| DeviceCounters::read(device).ok());
    let before = counters();
    let mut times_us = Vec::with_capacity(work.flushes.min(WORK.flushes));
    let began = Instant::now();
    let mut now = began;
    while times_us.len() < work.flushes && now - began < work.flushing {
        go_on(stop)?;
        made.write(&block, times_us.len())?;
        made.flush()?;
        let done = Instant::now();
        times_us.push((done - now).as_secs_f64() * 1e6);
        now = done;
    }
    let passed = counters()
        .zip(before)
        .and_then(|(now, before)| now.since(&before));
    let flushes = passed.and_then(|passed| passed.flushes);
    Ok(Flushed {
        times_us,
        took: now - began,
        by_device: flushes.and_then(|flushes| usize::try_from(flushes.count).ok()),
    })
}

/// The bytes that were written, and the time that it took to have them on the disk.
fn write_on(work: &Work, folder: &Path, stop: &Stop) -> io::Result<(usize, Duration)> {
    let made = Fresh::make(folder)?;
    let piece = filler(PIECE_BYTES);
    let began = Instant::now();
    let mut pieces = 0;
    while pieces < work.pieces && began.elapsed() < work.writing {
        go_on(stop)?;
        made.write(&piece, pieces)?;
        pieces += 1;
    }
    made.flush()?;
    Ok((pieces * PIECE_BYTES, began.elapsed()))
}

fn go_on(stop: &Stop) -> io::Result<()> {
    if stop.requested() {
        let why = "interrupted while probing the disk";
        return Err(io::Error::new(io::ErrorKind::Interrupted, why));
    }
    Ok(())
}

/// A fresh file, which is removed when this is dropped.
///
/// It keeps its name until then: Btrfs does not flush a file without a name.
struct Fresh {
    path: PathBuf,
    file: File,
}

impl Fresh {
    fn make(folder: &Path) -> io::Result<Self> {
        let path = folder.join(left_behind::fresh_name());
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = made.map_err(with_path("making the probe's file", &path))?;
        Ok(Self { path, file })
    }

    /// Writes the content behind `before` others of the same length.
    fn write(&self, content: &[u8], before: usize) -> io::Result<()> {
        let at = u64::try_from(content.len() * before).unwrap_or(u64::MAX);
        let written = self.file.write_all_at(content, at);
        written.map_err(with_path("writing to the probe's file", &self.path))
    }

    fn flush(&self) -> io::Result<()> {
        let flushed = self.file.sync_data();
        flushed.map_err(with_path("flushing the probe's file", &self.path))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // There is no caller to return an error to. The next probe of this folder tries again if we are dead by then.
        if let Err(error) = std::fs::remove_file(&self.path) {
            eprintln!("plimsoll: removing {}: {error}", self.path.display());
        }
    }
}

/// Bytes that no file system can compress: Marsaglia's xorshift64.
fn filler(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// How many there were per second; 0 if no time passed.
#[allow(clippy::cast_precision_loss)] // Bytes of a few seconds stay below 2^53.
fn rate(count: usize, took: Duration) -> f64 {
    let seconds = took.as_secs_f64();
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Work = Work {
        flushes: 20,
        flushing: Duration::from_secs(60),
        pieces: 3,
        writing: Duration::from_secs(60),
    };

    fn is_empty(folder: &Path) -> bool {
        std::fs::read_dir(folder).expect("read").next().is_none()
    }

    #[test]
    fn a_probe_times_both_kinds_of_writing_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("temp");
        let probe = probe_with(&SHORT, folder.path(), &Stop::new()).expect("probed");
        assert_eq!((probe.flushes, probe.sequential_bytes), (20, 3 << 20));
        let times = [probe.flush_p50_us, probe.flush_p99_us, probe.flush_max_us];
        assert!(times[0] > 0.0 && times.is_sorted(), "{probe:?}");
        // Twenty times take at most twenty times the longest.
        let total_us = 20.0 * 1e6 / probe.flushes_per_s;
        assert!(total_us <= 20.5 * probe.flush_max_us, "{probe:?}");
        assert!(total_us >= 10.0 * probe.flush_p50_us, "{probe:?}");
        assert!(probe.sequential_mb_per_s > 0.0, "{probe:?}");
        assert!(!probe.file_system.kind.is_empty());
        assert!(is_empty(folder.path()));
        // As others read it.
        let text = serde_json::to_string(&probe).expect("written");
        let read: DiskProbe = serde_json::from_str(&text).expect("read");
        assert_eq!(read.file_system, probe.file_system);
        assert!(text.contains("\"flush_p99_us\":"), "{text}");
    }

    #[test]
    fn a_device_that_counts_flushes_counts_those_of_a_probe() {
        // Beside the program, because a folder for temporary files is often in memory.
        let program = std::env::current_exe().expect("known");
        let folder = tempfile::tempdir_in(program.parent().expect("a folder")).expect("temp");
        let probe = probe_with(&SHORT, folder.path(), &Stop::new()).expect("probed");
        match probe.device_flushes_per_s {
            // A flush of several programs at once is one.
            Some(by_device) => assert!(by_device > 0.0, "{probe:?}"),
            None => plimsoll_testing::skipped!("no device counts flushes: {:?}", probe.file_system),
        }
    }

    #[test]
    fn the_time_is_bounded_and_what_was_done_is_told() {
        let folder = tempfile::tempdir().expect("temp");
        // Without a bound, these would take months.
        let a_moment = Work {
            flushes: 1 << 28,
            flushing: Duration::from_millis(30),
            pieces: 1 << 28,
            writing: Duration::from_millis(3),
        };
        let probe = probe_with(&a_moment, folder.path(), &Stop::new()).expect("probed");
        assert!((1..1 << 20).contains(&probe.flushes), "{probe:?}");
        let mib = probe.sequential_bytes >> 20;
        assert!((1..1 << 10).contains(&mib), "{probe:?}");
        let no_time = Work {
            flushing: Duration::ZERO,
            writing: Duration::ZERO,
            ..SHORT
        };
        let probe = probe_with(&no_time, folder.path(), &Stop::new()).expect("probed");
        assert_eq!((probe.flushes, probe.sequential_bytes), (0, 0));
        assert_eq!(probe.flushes_per_s.to_bits(), 0.0f64.to_bits());
    }

    #[test]
    fn asked_to_stop_it_stops_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("temp");
        let stop = Stop::new();
        stop.request();
        let error = probe(folder.path(), &stop).expect_err("stopped");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert!(is_empty(folder.path()));
        let error = probe(&folder.path().join("gone"), &Stop::new()).expect_err("no folder");
        assert!(error.to_string().contains("gone"), "{error}");
    }

    #[test]
    fn the_filler_does_not_repeat_itself() {
        let bytes = filler(BLOCK_BYTES);
        assert_eq!(bytes.len(), BLOCK_BYTES);
        let mut words: Vec<&[u8]> = bytes.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), BLOCK_BYTES / 8);
    }
}
