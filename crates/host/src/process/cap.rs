//! Keeps logs from filling the disk.
//!
//! A child writes directly into its log. Nothing is in between, so the child never waits for us, and each write costs
//! what it costs anywhere, on the child's own core. (With a pipe, a thread of ours would copy every byte on the
//! client's cores, and hold the child up whenever the thread is late. The kernel's own limit, `RLIMIT_FSIZE`, would
//! kill the child.) A thread checks the sizes twenty times a second, at the cost of a `stat` each. A log that has
//! outgrown its cap is cut back to its beginning and its end, with a line in between that says how much is gone. The
//! file is open for appending, so the child continues after that. Between two checks, a log may grow beyond its cap by
//! what the child can write in that time.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};

/// A log longer than this is cut back.
pub const LOG_MAX_BYTES: u64 = 16 << 20;

/// How much of a log's beginning is kept: the versions and the warnings at the start.
const HEAD_BYTES: u64 = 8 << 20;

/// How much of its end is kept at each cut: the last output, which errors show.
const TAIL_BYTES: u64 = 64 << 10;

/// Time between two checks of the sizes.
const EVERY: Duration = Duration::from_millis(50);

/// A watched log. Dropping it checks the size once more and ends the watch.
#[derive(Debug)]
pub(super) struct Watched(Arc<Log>);

#[derive(Debug)]
struct Log {
    file: File,
    dropped: Mutex<u64>,
}

impl Watched {
    /// Creates the log anew, for appending.
    ///
    /// # Errors
    /// It cannot be created, or there is no thread to watch it.
    pub(super) fn make(path: &Path) -> Result<Self> {
        let made =
            File::create(path).and_then(|_| OpenOptions::new().read(true).append(true).open(path));
        let file = made.map_err(|error| Error::io("making the log", path, error))?;
        let log = Arc::new(Log {
            file,
            dropped: Mutex::default(),
        });
        watch(&log).map_err(|error| Error::io("watching the log", path, error))?;
        Ok(Self(log))
    }

    /// A handle for the child to write to.
    pub(super) fn file(&self) -> std::io::Result<File> {
        self.0.file.try_clone()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.cut();
    }
}

impl Log {
    /// Cuts the log back if it is too long. If it cannot be cut, it stays as it is: a log is no reason to end a trial.
    fn cut(&self) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        let length = || self.file.metadata().map_or(0, |metadata| metadata.len());
        let mut until = length();
        if until <= LOG_MAX_BYTES {
            return;
        }
        let mut tail = vec![0; TAIL_BYTES as usize];
        // What the child writes between the last look at the length and the cut is lost. So look again after reading: a
        // child that says its last words and dies says them once. One that never pauses is not waited for.
        for _ in 0..10 {
            if self
                .file
                .read_exact_at(&mut tail, until - TAIL_BYTES)
                .is_err()
            {
                return;
            }
            let read_until = until;
            until = length();
            if until == read_until {
                break;
            }
        }
        let tail_at = until - TAIL_BYTES;
        if self.file.set_len(HEAD_BYTES).is_err() {
            return;
        }
        *dropped += tail_at - HEAD_BYTES;
        let line = format!(
            "\n[plimsoll: this log exceeded {} MiB; about {} MiB in total were dropped here]\n",
            LOG_MAX_BYTES >> 20,
            *dropped >> 20
        );
        // One write, so that the child's next output does not come in between.
        let _ = (&self.file).write_all(&[line.as_bytes(), &tail].concat());
    }
}

/// Has a thread check the log until its [`Watched`] is dropped.
fn watch(log: &Arc<Log>) -> std::io::Result<()> {
    type Logs = Mutex<Vec<std::sync::Weak<Log>>>;
    static LOGS: OnceLock<std::result::Result<Arc<Logs>, String>> = OnceLock::new();
    let start = || {
        let logs = Arc::new(Logs::default());
        let watched = Arc::clone(&logs);
        let look = move || {
            loop {
                std::thread::sleep(EVERY);
                let mut logs = watched.lock().unwrap_or_else(PoisonError::into_inner);
                logs.retain(|log| log.strong_count() > 0);
                let here: Vec<_> = logs.iter().filter_map(std::sync::Weak::upgrade).collect();
                drop(logs);
                here.iter().for_each(|log| log.cut());
            }
        };
        let thread = std::thread::Builder::new()
            .name("plimsoll-logs".into())
            .spawn(look);
        thread.map(|_| logs).map_err(|error| error.to_string())
    };
    let logs = LOGS.get_or_init(start).as_ref();
    let logs = logs.map_err(|error| std::io::Error::other(error.clone()))?;
    let mut logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
    logs.push(Arc::downgrade(log));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_log_keeps_its_beginning_and_its_end_and_says_what_is_gone() {
        let folder = tempfile::tempdir().expect("temp");
        let path = folder.path().join("a.log");
        let log = Watched::make(&path).expect("made");
        let mut child = log.file().expect("a second one");
        let mut line = 0_u64;
        let mut longest = 0;
        let began = Instant::now();
        // Write at full speed until the log has been cut several times. The writer is never held up.
        while line < 4_000_000 {
            let block: String = (0..10_000)
                .map(|_| {
                    line += 1;
                    format!("line {line:011}\n")
                })
                .collect();
            child.write_all(block.as_bytes()).expect("not full");
            longest = longest.max(child.metadata().expect("there").len());
        }
        eprintln!("wrote for {:?}; at most {longest} bytes", began.elapsed());
        // Last words, which no cut may take: a writer that never pauses may lose what it writes at the moment of one.
        while child.metadata().expect("there").len() > LOG_MAX_BYTES {
            std::thread::sleep(EVERY);
        }
        child.write_all(b"last words\n").expect("not full");
        drop(log);
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.len() as u64 <= LOG_MAX_BYTES, "{}", text.len());
        assert!(text.len() as u64 >= HEAD_BYTES);
        assert!(text.starts_with("line 00000000001\n"));
        assert!(text.ends_with("\nlast words\n"));
        let said: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("[plimsoll: "))
            .collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("exceeded 16 MiB"), "{}", said[0]);
        // 4,000,000 lines of 17 bytes are 64 MiB.
        let mib = said[0]
            .split("about ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        let kept = text.len() as u64 >> 20;
        let sum = mib.expect("a number") + kept;
        assert!((62..=65).contains(&sum), "{} and {kept}", said[0]);
    }

    #[test]
    fn a_short_log_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("temp");
        let path = folder.path().join("a.log");
        let log = Watched::make(&path).expect("made");
        writeln!(log.file().expect("a second one"), "hello").expect("written");
        std::thread::sleep(3 * EVERY);
        drop(log);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "hello\n");
    }
}
