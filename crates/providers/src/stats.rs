//! What the mocks say of themselves: exact counts of each provider since the start, and a window of how late they were.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use plimsoll_core::latency::Percentiles;
use plimsoll_mock_server::program::Clocks;
use plimsoll_workload_voice::companion::Stats as Window;
pub use plimsoll_workload_voice::outcome::Counts;
use serde::Serialize;

use crate::ear::Blocks;
use crate::profile::Provider;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Answered wholly.
    Completed,
    /// Answered with an error, as a fault asked for.
    Failed,
    /// Not answered for 30 s, as a fault asked for.
    TimedOut,
    /// Reset, as a fault asked for.
    Dropped,
    /// Answered with 429, as a fault asked for.
    RateLimited,
    /// Not answered beyond the first block, as a fault asked for.
    Stalled,
    /// The gateway left before the end.
    Cancelled,
}

/// A request ended.
fn ended(counts: &mut Counts, end: End) {
    counts.in_flight -= 1;
    let count = match end {
        End::Completed => &mut counts.completed,
        End::Failed => &mut counts.failed,
        End::TimedOut => &mut counts.timed_out,
        End::Dropped => &mut counts.dropped,
        End::RateLimited => &mut counts.rate_limited,
        End::Stalled => &mut counts.stalled,
        End::Cancelled => &mut counts.cancelled,
    };
    *count += 1;
}

/// Everything counted.
#[derive(Debug)]
pub struct Stats {
    /// In the order of [`Provider::ALL`].
    counts: [Counts; Provider::ALL.len()],
    lateness: Histogram<u64>,
    audio_bytes_in_all: u64,
    began: Began,
}

#[derive(Debug, Clone, Copy, Default)]
struct Began {
    clocks: Clocks,
    requests: u64,
    audio_bytes: u64,
}

/// The answer to `GET /stats`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The window since the last reset.
    #[serde(flatten)]
    pub window: Window,
    /// Each provider since the start.
    pub providers: BTreeMap<&'static str, Counts>,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            counts: Default::default(),
            lateness: Histogram::new_with_bounds(1, 3_600_000_000, 3)
                .unwrap_or_else(|_| unreachable!("constant, valid bounds")),
            audio_bytes_in_all: 0,
            began: Began::default(),
        }
    }
}

impl Stats {
    fn of(&mut self, provider: Provider) -> &mut Counts {
        &mut self.counts[provider as usize]
    }

    /// A gateway asked for a session of speech recognition.
    pub fn session(&mut self, provider: Provider, opened: bool) {
        let counts = self.of(provider);
        counts.sessions += u64::from(opened);
        counts.sessions_refused += u64::from(!opened);
    }

    /// A request that was read is none of this provider's.
    pub fn bad_request(&mut self, provider: Provider) {
        self.of(provider).bad_requests += 1;
    }

    /// A request was read.
    pub fn request(&mut self, provider: Provider) {
        let counts = self.of(provider);
        counts.requests += 1;
        counts.in_flight += 1;
    }

    /// It ended.
    pub fn end(&mut self, provider: Provider, end: End) {
        ended(self.of(provider), end);
    }

    /// Audio of a caller came.
    pub fn heard(&mut self, provider: Provider, bytes: usize, blocks: Blocks) {
        self.audio_bytes_in_all += bytes as u64;
        let counts = self.of(provider);
        counts.blocks_read += blocks.read;
        // What is reordered was missing before.
        counts.blocks_lost = (counts.blocks_lost + blocks.missing).saturating_sub(blocks.reordered);
        counts.blocks_reordered += blocks.reordered;
        counts.blocks_doubled += blocks.doubled;
        counts.blocks_foreign += blocks.foreign;
    }

    /// An interim result was handed over.
    pub fn interim(&mut self, provider: Provider) {
        self.of(provider).results += 1;
    }

    /// A final result was handed over, of so many blocks.
    pub fn finished(&mut self, provider: Provider, blocks: u32) {
        let counts = self.of(provider);
        counts.results += 1;
        counts.finals += 1;
        counts.blocks_covered += u64::from(blocks);
    }

    /// Audio of a reply was handed over.
    pub fn spoke(&mut self, provider: Provider, bytes: usize) {
        self.of(provider).bytes_out += bytes as u64;
    }

    /// The socket took audio of a reply.
    pub fn accepted(&mut self, provider: Provider, bytes: usize) {
        self.of(provider).bytes_accepted += bytes as u64;
    }

    /// A request was answered after so many nanoseconds, by its marks.
    pub fn answered(&mut self, provider: Provider, took_ns: u64) {
        let counts = self.of(provider);
        counts.answered += 1;
        counts.provider_ns += took_ns;
    }

    /// Something was handed over so much later than its time.
    pub fn late(&mut self, late: Duration) {
        self.lateness.saturating_record(as_us(late));
    }

    /// Begins a new window.
    pub fn reset_window(&mut self, clocks: Clocks) {
        self.lateness.reset();
        self.began = Began {
            clocks,
            requests: self.requests(),
            audio_bytes: self.audio_bytes_in_all,
        };
    }

    /// What is told.
    #[must_use]
    pub fn report(&self, now: Clocks) -> Report {
        let Began {
            clocks,
            requests,
            audio_bytes,
        } = self.began;
        let counts = Provider::ALL.into_iter().zip(self.counts);
        Report {
            window: Window {
                requests: self.requests() - requests,
                busy_us: as_us(now.loop_busy.saturating_sub(clocks.loop_busy)),
                window_us: as_us(now.uptime.saturating_sub(clocks.uptime)),
                lateness: Percentiles::of(&self.lateness),
                audio_bytes: self.audio_bytes_in_all - audio_bytes,
                audio_bytes_in_all: self.audio_bytes_in_all,
            },
            providers: counts
                .map(|(provider, counts)| (provider.name(), counts))
                .collect(),
        }
    }

    fn requests(&self) -> u64 {
        self.counts.iter().map(|counts| counts.requests).sum()
    }
}

fn as_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_sum_of_their_ends() {
        let mut stats = Stats::default();
        let ends = [
            End::Completed,
            End::Failed,
            End::TimedOut,
            End::Dropped,
            End::RateLimited,
            End::Stalled,
            End::Cancelled,
        ];
        for end in ends {
            stats.request(Provider::OpenaiTts);
            stats.end(Provider::OpenaiTts, end);
        }
        stats.request(Provider::OpenaiTts);
        let report = stats.report(Clocks::default());
        let counts = report.providers["openai_tts"];
        let ended = counts.completed + counts.failed + counts.timed_out + counts.dropped;
        let ended = ended + counts.rate_limited + counts.stalled + counts.cancelled;
        assert_eq!((ended, counts.in_flight, counts.requests), (7, 1, 8));
        assert_eq!(report.providers["deepgram_stt"], Counts::default());
    }

    #[test]
    fn each_provider_has_its_counts() {
        let mut stats = Stats::default();
        for (times, provider) in Provider::ALL.into_iter().enumerate() {
            (0..=times).for_each(|_| stats.request(provider));
        }
        let report = stats.report(Clocks::default());
        for (times, provider) in Provider::ALL.into_iter().enumerate() {
            assert_eq!(report.providers[provider.name()].requests, times as u64 + 1);
        }
    }

    #[test]
    fn a_window_begins_anew_and_the_counts_do_not() {
        let mut stats = Stats::default();
        let clocks = |seconds| Clocks {
            uptime: Duration::from_secs(seconds),
            loop_busy: Duration::from_secs(seconds / 2),
        };
        stats.request(Provider::DeepgramTts);
        stats.heard(Provider::DeepgramStt, 640, Blocks::default());
        stats.answered(Provider::DeepgramTts, 80_000_001);
        stats.late(Duration::from_millis(5));
        stats.reset_window(clocks(10));
        stats.request(Provider::DeepgramTts);
        stats.heard(Provider::DeepgramStt, 1_280, Blocks::default());
        let report = stats.report(clocks(20));
        assert_eq!(report.window.requests, 1);
        assert_eq!(
            (report.window.busy_us, report.window.window_us),
            (5_000_000, 10_000_000)
        );
        assert_eq!(report.window.lateness, Percentiles::default());
        assert_eq!(
            (report.window.audio_bytes, report.window.audio_bytes_in_all),
            (1_280, 1_920)
        );
        assert_eq!(report.providers["deepgram_tts"].requests, 2);
        let counts = report.providers["deepgram_tts"];
        assert_eq!((counts.answered, counts.provider_ns), (1, 80_000_001));
    }

    #[test]
    fn a_block_that_comes_late_was_not_lost() {
        let mut stats = Stats::default();
        let blocks = |missing, reordered| Blocks {
            missing,
            reordered,
            ..Blocks::default()
        };
        let mut counts = |blocks| {
            stats.heard(Provider::DeepgramStt, 640, blocks);
            let counts = stats.report(Clocks::default()).providers["deepgram_stt"];
            (counts.blocks_lost, counts.blocks_reordered)
        };
        assert_eq!(counts(blocks(3, 0)), (3, 0));
        assert_eq!(counts(blocks(0, 2)), (1, 2));
        assert_eq!(counts(blocks(1, 1)), (1, 3));
    }
}
