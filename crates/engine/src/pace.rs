//! Sessions that read slowly, as callers on a bad line do.
//!
//! Such a session reads a little ten times a second. Its socket holds no more than a second of its pace, so what it does not
//! read stays at the target.

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S};

/// Time between two reads of a session that always finds something.
const STEP_NS: u64 = 100 * NS_PER_MS;

/// How fast a session reads, and when it may read again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    bytes_per_s: u64,
    /// When it may read again.
    next_ns: u64,
    /// Whether something may lie in the socket that it has not read. The kernel tells of new bytes only once.
    waits: bool,
}

impl Pace {
    pub(crate) fn of(bytes_per_s: u32) -> Self {
        Self {
            bytes_per_s: u64::from(bytes_per_s).max(1),
            next_ns: 0,
            waits: false,
        }
    }

    /// What its socket may hold unread, in bytes. The kernel doubles it for its own bookkeeping.
    pub(crate) fn receive_buffer_bytes(&self) -> usize {
        usize::try_from(self.bytes_per_s).unwrap_or(usize::MAX)
    }

    /// Something came, or its time has: how many bytes it may read now; 0 if it must wait.
    pub(crate) fn may_read(&mut self, now_ns: u64) -> usize {
        self.waits = true;
        if now_ns < self.next_ns {
            return 0;
        }
        let bytes = (self.bytes_per_s * STEP_NS / NS_PER_S).max(1);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// It has read so many bytes; 0 if there were none.
    pub(crate) fn has_read(&mut self, now_ns: u64, bytes: usize) {
        self.waits = bytes > 0;
        // A read that came late is made up for, but for a step at most.
        let from_ns = self.next_ns.max(now_ns.saturating_sub(STEP_NS));
        self.next_ns = from_ns + bytes as u64 * NS_PER_S / self.bytes_per_s;
    }

    /// When it is to read again; `None` if only new bytes can change that.
    pub(crate) fn wakes_ns(&self) -> Option<u64> {
        self.waits.then_some(self.next_ns)
    }

    /// Its connection is gone.
    pub(crate) fn ended(&mut self) {
        self.waits = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_no_more_than_its_pace() {
        let mut pace = Pace::of(8_192);
        let (mut now_ns, mut read, mut reads) = (0, 0, 0);
        while now_ns < 10 * NS_PER_S {
            let most = pace.may_read(now_ns);
            if most > 0 {
                pace.has_read(now_ns, most);
                read += most;
                reads += 1;
            }
            // A loop that is a little late each time.
            now_ns = pace.wakes_ns().expect("there is more") + NS_PER_MS;
        }
        assert!((81_000..83_000).contains(&read), "{read} bytes in 10 s");
        assert!((95..=105).contains(&reads), "{reads}");
    }

    #[test]
    fn an_empty_socket_is_no_reason_to_wake() {
        let mut pace = Pace::of(1_000);
        assert_eq!(pace.wakes_ns(), None);
        assert_eq!(pace.may_read(5), 100);
        pace.has_read(5, 100);
        assert_eq!(pace.may_read(6), 0, "too early");
        let next_ns = pace.wakes_ns().expect("something may be left");
        pace.has_read(next_ns, 0);
        assert_eq!(pace.wakes_ns(), None);
        pace.may_read(next_ns);
        pace.ended();
        assert_eq!(pace.wakes_ns(), None);
    }
}
