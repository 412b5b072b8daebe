//! A timer wheel: one timer per key, set and cleared in constant time, without allocation once it has grown.
//!
//! Time is in ticks. A timer that is due in tick `t` lies in slot `t mod 512`; one that is more than a turn of the wheel away
//! is simply left there when the hand passes. What is due in a tick is done in one go, so that a thousand sessions
//! cost some two hundred wake-ups a second and not thousands.

use std::collections::VecDeque;

const SLOTS: usize = 512;

/// No timer.
const NEVER: u64 = u64::MAX;
/// No neighbour.
const NONE: u32 = u32::MAX;

/// Timers by key; keys are small numbers.
#[derive(Debug)]
pub struct Wheel {
    /// The first timer of each slot.
    slots: Box<[u32; SLOTS]>,
    timers: Vec<Timer>,
    /// How many are set.
    set: usize,
    /// Timers up to this tick have been handed out.
    hand: u64,
}

#[derive(Debug, Clone, Copy)]
struct Timer {
    tick: u64,
    previous: u32,
    next: u32,
}

const UNSET: Timer = Timer { tick: NEVER, previous: NONE, next: NONE };

impl Default for Wheel {
    fn default() -> Self {
        Self { slots: Box::new([NONE; SLOTS]), timers: Vec::new(), set: 0, hand: 0 }
    }
}

fn slot(tick: u64) -> usize {
    // Less than SLOTS, so it fits.
    (tick % SLOTS as u64) as usize
}

impl Wheel {
    /// Sets the timer of `key`, in place of what was set, to `tick` or, if that has passed, to the next one.
    pub fn set(&mut self, key: u32, tick: u64) {
        self.clear(key);
        let tick = tick.max(self.hand + 1);
        let index = key as usize;
        if self.timers.len() <= index {
            self.timers.resize(index + 1, UNSET);
        }
        let first = std::mem::replace(&mut self.slots[slot(tick)], key);
        self.timers[index] = Timer { tick, previous: NONE, next: first };
        if let Some(first) = self.timers.get_mut(first as usize) {
            first.previous = key;
        }
        self.set += 1;
    }

    /// Clears the timer of `key`, if it is set.
    pub fn clear(&mut self, key: u32) {
        let Some(timer) = self.timers.get_mut(key as usize) else { return };
        let Timer { tick, previous, next } = std::mem::replace(timer, UNSET);
        if tick == NEVER {
            return;
        }
        self.set -= 1;
        match self.timers.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => self.slots[slot(tick)] = next,
        }
        if let Some(next) = self.timers.get_mut(next as usize) {
            next.previous = previous;
        }
    }

    /// Moves on to `tick` and appends the keys of all timers that are due by then; they are not set any more.
    pub fn advance(&mut self, tick: u64, due: &mut VecDeque<u32>) {
        // After a long sleep every slot is looked at once, not once per turn.
        let from = (self.hand + 1).max(tick.saturating_sub(SLOTS as u64 - 1));
        self.hand = self.hand.max(tick);
        for passed in from..=tick {
            let mut key = self.slots[slot(passed)];
            while let Some(timer) = self.timers.get(key as usize).copied() {
                if timer.tick <= tick {
                    self.clear(key);
                    due.push_back(key);
                }
                key = timer.next;
            }
        }
    }

    /// A tick before which nothing is due, at most a turn of the wheel away; `None` if nothing is set.
    pub fn next(&self) -> Option<u64> {
        if self.set == 0 {
            return None;
        }
        let is_used = |tick: &u64| self.slots[slot(*tick)] != NONE;
        (self.hand + 1..self.hand + SLOTS as u64).find(is_used).or(Some(self.hand + SLOTS as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32, u64),
        Clear(u32),
        Advance(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let ahead = || prop_oneof![5 => 0..50_u64, 1 => 0..3000_u64];
        prop_oneof![
            4 => (0..40_u32, ahead()).prop_map(|(key, ticks)| Step::Set(key, ticks)),
            1 => (0..40_u32).prop_map(Step::Clear),
            3 => ahead().prop_map(Step::Advance),
        ]
    }

    proptest! {
        #[test]
        fn timers_fire_in_their_tick_and_once(steps in prop::collection::vec(step(), 1..300)) {
            let (mut wheel, mut model, mut now) = (Wheel::default(), BTreeMap::new(), 0);
            for step in steps {
                match step {
                    Step::Set(key, ticks) => {
                        wheel.set(key, now + ticks);
                        model.insert(key, (now + ticks).max(now + 1));
                    }
                    Step::Clear(key) => {
                        wheel.clear(key);
                        model.remove(&key);
                    }
                    Step::Advance(ticks) => {
                        let next = model.values().min().copied();
                        match wheel.next() {
                            None => prop_assert_eq!(next, None),
                            Some(tick) => prop_assert!(tick > now && next.is_some_and(|next| tick <= next)),
                        }
                        now += ticks;
                        let mut due = VecDeque::new();
                        wheel.advance(now, &mut due);
                        due.make_contiguous().sort_unstable();
                        let expected: Vec<u32> = model.extract_if(.., |_, tick| *tick <= now).map(|(key, _)| key).collect();
                        prop_assert_eq!(due, expected);
                    }
                }
                prop_assert_eq!(wheel.set, model.len());
            }
        }
    }
}
