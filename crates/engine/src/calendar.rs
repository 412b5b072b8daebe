//! A calendar queue: finds the sessions that are due, in constant time.
//!
//! Time is divided into buckets of a fixed width, on a wheel. Each bucket holds a list of sessions, linked through two
//! arrays, so nothing is allocated after the start. A session has at most one entry. A bucket is handed out when it is
//! over, so an entry is late by at most one bucket width, and never early. (R. Brown, "Calendar queues", CACM 31(10),
//! 1988; G. Varghese and T. Lauck, "Hashed and hierarchical timing wheels", SOSP 1987.)

/// The number of buckets on the wheel: a power of two. With a width of 500 µs they reach four seconds ahead. An entry
/// further ahead goes into the last bucket and is looked at again when that bucket comes round.
const BUCKETS: usize = 8192;
const WORDS: usize = BUCKETS / 64;
const NONE: u32 = u32::MAX;

/// The queue. Entries are session numbers below the capacity given at the start.
#[derive(Debug)]
pub struct Calendar {
    width_ns: u64,
    /// The first bucket, counted since time zero, that has not been handed out.
    cursor: u64,
    heads: Box<[u32]>,
    /// One bit per bucket: whether it holds anything.
    occupied: Box<[u64]>,
    entries: Box<[Entry]>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    due_ns: u64,
    previous: u32,
    next: u32,
    /// Its place on the wheel, or [`NONE`] when it is not queued.
    bucket: u32,
}

impl Calendar {
    /// A queue for sessions `0..capacity` with buckets of `width_ns`, which must not be zero.
    #[must_use]
    pub fn new(capacity: usize, width_ns: u64) -> Self {
        assert!(width_ns > 0, "a calendar's buckets need a width");
        let unqueued = Entry {
            due_ns: 0,
            previous: NONE,
            next: NONE,
            bucket: NONE,
        };
        Self {
            width_ns,
            cursor: 0,
            heads: vec![NONE; BUCKETS].into_boxed_slice(),
            occupied: vec![0; WORDS].into_boxed_slice(),
            entries: vec![unqueued; capacity].into_boxed_slice(),
            len: 0,
        }
    }

    /// The number of queued sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no session is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues a session for `due_ns`, replacing its earlier entry if it has one.
    pub fn schedule(&mut self, id: u32, due_ns: u64) {
        self.cancel(id);
        let reach = self.cursor + BUCKETS as u64 - 1;
        let bucket = (due_ns / self.width_ns).clamp(self.cursor, reach);
        self.link(id, due_ns, bucket);
    }

    /// Removes a session from the queue, if it is there.
    pub fn cancel(&mut self, id: u32) {
        let entry = self.entries[id as usize];
        if entry.bucket == NONE {
            return;
        }
        if entry.previous == NONE {
            self.heads[entry.bucket as usize] = entry.next;
            if entry.next == NONE {
                self.occupied[entry.bucket as usize / 64] &= !(1 << (entry.bucket % 64));
            }
        } else {
            self.entries[entry.previous as usize].next = entry.next;
        }
        if entry.next != NONE {
            self.entries[entry.next as usize].previous = entry.previous;
        }
        self.entries[id as usize].bucket = NONE;
        self.len -= 1;
    }

    /// The next session that is due at `now_ns`. Call it until it returns `None`.
    pub fn pop(&mut self, now_ns: u64) -> Option<u32> {
        let current = now_ns / self.width_ns;
        while self.cursor < current {
            let place = Self::place(self.cursor);
            let id = self.heads[place];
            if id == NONE {
                self.cursor = self
                    .next_occupied()
                    .map_or(current, |next| next.min(current));
                continue;
            }
            self.cancel(id);
            let due_ns = self.entries[id as usize].due_ns;
            if due_ns / self.width_ns <= self.cursor {
                assert!(
                    due_ns < now_ns,
                    "session {id} is handed out before it is due"
                );
                return Some(id);
            }
            self.schedule(id, due_ns);
        }
        None
    }

    /// When to call [`Calendar::pop`] next: the end of the first bucket that holds anything.
    #[must_use]
    pub fn next_wake_ns(&self) -> Option<u64> {
        self.next_occupied()
            .map(|bucket| (bucket + 1) * self.width_ns)
    }

    fn link(&mut self, id: u32, due_ns: u64, bucket: u64) {
        let place = Self::place(bucket);
        let next = self.heads[place];
        if next != NONE {
            self.entries[next as usize].previous = id;
        }
        self.entries[id as usize] = Entry {
            due_ns,
            previous: NONE,
            next,
            bucket: u32::try_from(place)
                .unwrap_or_else(|_| unreachable!("a place is below BUCKETS")),
        };
        self.heads[place] = id;
        self.occupied[place / 64] |= 1 << (place % 64);
        self.len += 1;
    }

    /// The first bucket at or after the cursor that holds anything, counted since time zero.
    fn next_occupied(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let start = Self::place(self.cursor);
        let first = self.occupied[start / 64] & (u64::MAX << (start % 64));
        let words = (1..=WORDS).map(|step| (step, self.occupied[(start / 64 + step) % WORDS]));
        std::iter::once((0, first))
            .chain(words)
            .find(|(_, word)| *word != 0)
            .map(|(step, word)| {
                let place = ((start / 64 + step) % WORDS) * 64 + word.trailing_zeros() as usize;
                self.cursor + ((place + BUCKETS - start) % BUCKETS) as u64
            })
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "masked to the wheel's size"
    )]
    fn place(bucket: u64) -> usize {
        (bucket as usize) & (BUCKETS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn drain(calendar: &mut Calendar, now_ns: u64) -> Vec<u32> {
        let mut ids: Vec<_> = std::iter::from_fn(|| calendar.pop(now_ns)).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn entries_come_when_their_bucket_is_over() {
        let mut calendar = Calendar::new(4, 100);
        calendar.schedule(0, 50);
        calendar.schedule(1, 99);
        calendar.schedule(2, 100);
        assert_eq!(calendar.next_wake_ns(), Some(100));
        assert!(drain(&mut calendar, 99).is_empty());
        assert_eq!(drain(&mut calendar, 100), [0, 1]);
        assert_eq!(calendar.next_wake_ns(), Some(200));
        assert_eq!(drain(&mut calendar, 1_000_000), [2]);
        assert_eq!(calendar.next_wake_ns(), None);
    }

    #[test]
    fn an_entry_far_away_waits_for_its_turn() {
        let mut calendar = Calendar::new(2, 10);
        let far = 10 * BUCKETS as u64 * 3 + 5;
        calendar.schedule(1, far);
        assert!(drain(&mut calendar, far - 10).is_empty());
        assert_eq!(drain(&mut calendar, far + 10), [1]);
    }

    #[test]
    fn an_entry_in_the_past_comes_with_the_next_bucket() {
        let mut calendar = Calendar::new(1, 10);
        assert_eq!(calendar.pop(1000), None);
        calendar.schedule(0, 3);
        assert_eq!(drain(&mut calendar, 1010), [0]);
    }

    #[test]
    fn rescheduling_replaces_and_cancelling_removes() {
        let mut calendar = Calendar::new(3, 10);
        calendar.schedule(0, 5);
        calendar.schedule(1, 5);
        calendar.schedule(2, 5);
        calendar.schedule(1, 95);
        calendar.cancel(0);
        assert_eq!(calendar.len(), 2);
        assert_eq!(drain(&mut calendar, 50), [2]);
        assert_eq!(drain(&mut calendar, 100), [1]);
        assert!(calendar.is_empty());
    }

    proptest! {
        /// Whatever is scheduled and cancelled in between, no entry is early, none is more than one bucket late once
        /// asked for, none is lost, and none is duplicated.
        #[test]
        fn behaves_like_a_sorted_map(steps in prop::collection::vec((0_u32..50, 0_u64..400_000, 0_u64..3_000, any::<bool>()), 1..200)) {
            let width = 16;
            let mut calendar = Calendar::new(50, width);
            let mut model = BTreeMap::new();
            let mut now = 0;
            for (id, ahead, pass, cancel) in steps {
                if cancel {
                    calendar.cancel(id);
                    model.remove(&id);
                } else {
                    calendar.schedule(id, now + ahead);
                    model.insert(id, now + ahead);
                }
                now += pass;
                if let Some(wake) = calendar.next_wake_ns() {
                    let earliest = *model.values().min().unwrap();
                    prop_assert!(wake <= earliest.max(now) + width);
                }
                for popped in drain(&mut calendar, now) {
                    let due = model.remove(&popped);
                    prop_assert!(due.is_some_and(|due| due <= now), "{popped} early or twice");
                }
                prop_assert!(model.values().all(|due| due / width + 1 > now / width), "one was left behind");
                prop_assert_eq!(calendar.len(), model.len());
            }
        }
    }
}
