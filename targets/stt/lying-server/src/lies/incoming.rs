//! Lies about listening: how much of a session's input may be read now.

use super::{Lie, Parameters, Plan};
use crate::honest::session::FRAME_BYTES;

/// A masked WebSocket frame of audio: 2 bytes of header, 2 of length, 4 of mask, then the audio.
const FRAME_ON_THE_WIRE_BYTES: u64 = FRAME_BYTES as u64 + 8;

/// What one session reads. Without a lie, everything at once.
#[derive(Debug)]
pub struct Incoming {
    lie: Lie,
    parameters: Parameters,
    begins_us: u64,
    /// Bytes read since the lie began.
    taken_bytes: u64,
}

impl Incoming {
    /// The ear of a session that started at `started_us`.
    #[must_use]
    pub fn new(plan: Plan, started_us: u64) -> Self {
        Self {
            lie: plan.lie,
            parameters: plan.parameters,
            begins_us: started_us.saturating_add(plan.parameters.after_us()),
            taken_bytes: 0,
        }
    }

    /// Bytes that may be read at `now_us`.
    #[must_use]
    pub fn allowance_bytes(&self, now_us: u64) -> u64 {
        if now_us < self.begins_us {
            return u64::MAX;
        }
        match self.lie {
            Lie::StopReading => 0,
            Lie::ReadSlowly => self.granted_bytes(now_us).saturating_sub(self.taken_bytes),
            _ => u64::MAX,
        }
    }

    /// That many bytes were read at `now_us`.
    pub fn took(&mut self, now_us: u64, bytes: u64) {
        if now_us >= self.begins_us {
            self.taken_bytes = self.taken_bytes.saturating_add(bytes);
        }
    }

    /// When an allowance of 0 will have grown; `None`: never, or there is one now.
    #[must_use]
    pub fn due_us(&self, now_us: u64) -> Option<u64> {
        let waits = self.lie == Lie::ReadSlowly && self.allowance_bytes(now_us) == 0;
        waits.then(|| {
            let step_us = self.step_us();
            let steps = self.taken_bytes / FRAME_ON_THE_WIRE_BYTES + 1;
            self.begins_us.saturating_add(steps.saturating_mul(step_us))
        })
    }

    fn granted_bytes(&self, now_us: u64) -> u64 {
        (now_us - self.begins_us) / self.step_us() * FRAME_ON_THE_WIRE_BYTES
    }

    fn step_us(&self) -> u64 {
        self.parameters.duration_us().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1000;

    #[test]
    fn without_a_lie_everything_is_read() {
        let incoming = Incoming::new(Plan::of(Lie::None), 0);
        assert_eq!(incoming.allowance_bytes(u64::MAX), u64::MAX);
        assert_eq!(incoming.due_us(u64::MAX), None);
    }

    #[test]
    fn stop_reading_stops_for_good() {
        let incoming = Incoming::new(Plan::of(Lie::StopReading), 500 * MS);
        assert_eq!(incoming.allowance_bytes(8500 * MS - 1), u64::MAX);
        assert_eq!(incoming.allowance_bytes(8500 * MS), 0);
        assert_eq!(incoming.due_us(8500 * MS), None);
    }

    #[test]
    fn read_slowly_reads_half_of_what_is_sent() {
        let mut incoming = Incoming::new(Plan::of(Lie::ReadSlowly), 0);
        let mut now_us = 8000 * MS;
        incoming.took(now_us - 1, 1 << 20);
        let mut read_bytes = 0;
        while now_us <= 18_000 * MS {
            let allowed = incoming.allowance_bytes(now_us);
            if allowed > 0 {
                read_bytes += allowed;
                incoming.took(now_us, allowed);
            }
            now_us = incoming.due_us(now_us).unwrap();
        }
        // Ten seconds: 500 frames were sent, 250 of them are read.
        assert_eq!(read_bytes, 250 * 648);
    }
}
