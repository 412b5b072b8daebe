//! The last requests seen, so that a conformance test can check what a gateway sent.

use std::collections::VecDeque;

use serde::Serialize;

/// Requests remembered.
pub const CAPACITY: usize = 1024;

/// What is remembered of a request to `/infer`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeenRequest {
    /// When it had been read, in µs since the simulator started.
    pub at_us: u64,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub http_version: String,
    /// Its `content-type`, null where it had none.
    pub content_type: Option<String>,
    /// Its `x-cpu-passes`, null where it had none or one that cannot be used.
    pub cpu_passes: Option<u32>,
    /// Length of its body.
    pub audio_bytes: u64,
    /// The answer's checksum; null until it is computed, and for a request that was refused.
    pub checksum: Option<u32>,
    /// Requests in flight when it had been read, itself included.
    pub inflight: u64,
}

/// The last [`CAPACITY`] requests, by number.
#[derive(Debug, Default)]
pub struct RecentRequests {
    seen: VecDeque<SeenRequest>,
    /// Number of the oldest request still here.
    oldest: u64,
}

impl RecentRequests {
    /// Remembers a request and gives its number.
    pub fn push(&mut self, request: SeenRequest) -> u64 {
        if self.seen.len() == CAPACITY {
            self.seen.pop_front();
            self.oldest += 1;
        }
        self.seen.push_back(request);
        self.oldest + self.seen.len() as u64 - 1
    }

    /// Notes the checksum of a request, if it is still remembered.
    pub fn set_checksum(&mut self, number: u64, checksum: u32) {
        let place = number
            .checked_sub(self.oldest)
            .and_then(|place| usize::try_from(place).ok());
        if let Some(request) = place.and_then(|place| self.seen.get_mut(place)) {
            request.checksum = Some(checksum);
        }
    }

    /// The last `count` requests, oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = &SeenRequest> {
        self.seen.iter().skip(self.seen.len().saturating_sub(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_us: u64) -> SeenRequest {
        SeenRequest {
            at_us,
            http_version: "HTTP/2.0".to_owned(),
            content_type: None,
            cpu_passes: Some(4),
            audio_bytes: 640,
            checksum: None,
            inflight: 1,
        }
    }

    #[test]
    fn the_oldest_make_room_and_numbers_stay() {
        let mut recent = RecentRequests::default();
        for n in 0..CAPACITY as u64 + 10 {
            assert_eq!(recent.push(request(n)), n);
        }
        assert_eq!(recent.last(usize::MAX).count(), CAPACITY);
        assert_eq!(
            recent.last(2).map(|r| r.at_us).collect::<Vec<_>>(),
            [1032, 1033]
        );

        recent.set_checksum(9, 1);
        recent.set_checksum(10, 2);
        recent.set_checksum(1033, 3);
        recent.set_checksum(5000, 4);
        let noted: Vec<_> = recent
            .last(usize::MAX)
            .filter_map(|r| r.checksum.map(|sum| (r.at_us, sum)))
            .collect();
        assert_eq!(noted, [(10, 2), (1033, 3)]);
    }
}
