//! Between the measuring thread and the output threads: the latest state, and the lines that stay.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::record::Live;

use super::state::LiveState;

/// The longest time between two updates, because time passes even if nothing happens.
const TICK: Duration = Duration::from_secs(1);

/// The latest state. A thread that changes it waits for nothing but a reader that copies it.
#[derive(Debug)]
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    state: LiveState,
    /// Counts the changes.
    version: u64,
    /// Lines that stay and are not yet written.
    lines: VecDeque<String>,
    /// Results are being printed, so no view is drawn.
    resting: bool,
    ended: bool,
    /// The version that the terminal shows; `None` while nobody writes to it.
    shown: Option<u64>,
}

/// What an output thread is to show.
#[derive(Debug)]
pub(super) struct News {
    pub(super) version: u64,
    /// `None` until it is known what is measured.
    pub(super) live: Option<Live>,
    pub(super) resting: bool,
    /// The command is over: this is the last news.
    pub(super) ended: bool,
}

impl Shared {
    pub(crate) fn new(state: LiveState) -> Self {
        Self {
            inner: Mutex::new(Inner {
                state,
                version: 0,
                lines: VecDeque::new(),
                resting: false,
                ended: false,
                shown: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Applies an event to the state.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut LiveState)) {
        self.change(|inner| change(&mut inner.state));
    }

    /// Adds a line that stays.
    pub(crate) fn say(&self, line: String) {
        self.change(|inner| inner.lines.push_back(line));
    }

    /// A trial begins, so there is something to view again.
    pub(crate) fn wake(&self) {
        self.change(|inner| inner.resting = false);
    }

    /// Removes the view until [`Shared::wake`]. Waits until it is gone and every line is written, so that whatever is
    /// printed next comes after them.
    pub(crate) fn rest(&self) {
        let mut inner = self.lock();
        inner.resting = true;
        inner.version += 1;
        let wanted = inner.version;
        self.changed.notify_all();
        let behind = |inner: &mut Inner| inner.shown.is_some_and(|shown| shown < wanted);
        let waited = self.changed.wait_while(inner, behind);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The command is over. The output threads end with the last news.
    pub(crate) fn end(&self) {
        self.change(|inner| {
            inner.state.ends();
            inner.ended = true;
        });
    }

    /// Waits for a change since the version `seen`, but no longer than `TICK`.
    pub(super) fn news(&self, seen: u64, updated_at: impl FnOnce() -> String) -> News {
        let inner = self.wait(seen);
        inner.news(updated_at)
    }

    /// The same for the terminal, with the lines that stay.
    pub(super) fn news_and_lines(&self, seen: u64) -> (News, Vec<String>) {
        let mut inner = self.wait(seen);
        let lines = inner.lines.drain(..).collect();
        // The terminal shows no time of day.
        (inner.news(String::new), lines)
    }

    /// Sets the version that the terminal shows; `None` if nobody writes to it any more.
    pub(super) fn shown(&self, version: Option<u64>) {
        self.lock().shown = version;
        self.changed.notify_all();
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        change(&mut inner);
        inner.version += 1;
        drop(inner);
        self.changed.notify_all();
    }

    fn wait(&self, seen: u64) -> MutexGuard<'_, Inner> {
        let nothing_new = |inner: &mut Inner| inner.version == seen && !inner.ended;
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), TICK, nothing_new);
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inner
    }

    /// State left behind by a panic is used as it is, because it is only shown.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn news(&self, updated_at: impl FnOnce() -> String) -> News {
        News {
            version: self.version,
            live: self.state.live(updated_at()),
            resting: self.resting,
            ended: self.ended,
        }
    }
}
