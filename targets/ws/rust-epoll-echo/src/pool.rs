//! Memory for frames that did not come in one read: taken when one begins, given back when it is complete. So nothing is
//! allocated per message, and a connection at rest holds none of it.

use crate::frame::CLIENT_HEADER_BYTES_MAX;

/// What is kept for later; the rest goes back to the allocator.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The smallest payload that memory is made for.
const PAYLOAD_BYTES_MIN: usize = 256;

/// One class per power of two.
const CLASSES: usize = usize::BITS as usize;

/// A worker's spare memory.
#[derive(Debug)]
pub struct Pool {
    spare: [Vec<Vec<u8>>; CLASSES],
    kept_bytes: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self { spare: [const { Vec::new() }; CLASSES], kept_bytes: 0 }
    }
}

impl Pool {
    /// Memory for a frame: that many bytes at least, with anything in them.
    pub fn take(&mut self, frame_bytes: usize) -> Vec<u8> {
        let payload_bytes = frame_bytes.saturating_sub(CLIENT_HEADER_BYTES_MAX).max(PAYLOAD_BYTES_MIN);
        let payload_bytes = payload_bytes.next_power_of_two();
        match self.spare[payload_bytes.trailing_zeros() as usize].pop() {
            Some(bytes) => {
                self.kept_bytes -= bytes.len();
                bytes
            }
            // Zeroed by the kernel, page by page when it is used: what a client only declares costs next to nothing.
            None => vec![0; payload_bytes + CLIENT_HEADER_BYTES_MAX],
        }
    }

    /// Takes memory back that it has given.
    pub fn give_back(&mut self, bytes: Vec<u8>) {
        let payload_bytes = bytes.len().saturating_sub(CLIENT_HEADER_BYTES_MAX);
        if payload_bytes.is_power_of_two() && self.kept_bytes + bytes.len() <= KEPT_BYTES_MAX {
            self.kept_bytes += bytes.len();
            self.spare[payload_bytes.trailing_zeros() as usize].push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_by_frames_of_about_that_length() {
        let mut pool = Pool::default();
        let bytes = pool.take(70_000);
        assert!(bytes.len() >= 70_000 && bytes.len() < 140_000, "{}", bytes.len());
        let place = bytes.as_ptr();
        pool.give_back(bytes);
        assert_eq!(pool.kept_bytes, 131_072 + 14);
        let small = pool.take(1_000);
        assert_ne!(small.as_ptr(), place);
        let large = pool.take(131_086);
        assert_eq!(large.as_ptr(), place);
        assert_eq!(pool.kept_bytes, 0);
        pool.give_back(Vec::new());
        assert_eq!(pool.kept_bytes, 0);
    }

    #[test]
    fn not_more_is_kept_than_is_useful() {
        let mut pool = Pool::default();
        let taken: Vec<_> = (0..40).map(|_| pool.take(1 << 20)).collect();
        taken.into_iter().for_each(|bytes| pool.give_back(bytes));
        assert!(pool.kept_bytes <= KEPT_BYTES_MAX && pool.kept_bytes > KEPT_BYTES_MAX / 2, "{}", pool.kept_bytes);
    }
}
