//! What the mocks say of themselves: exact counts of each provider since the start, and a window of how late they were.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use plimsoll_workload_voice::companion::{Lateness, Stats as Window};
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

/// The counts of one provider since the start.
///
/// `requests` is always the sum of the ways to end and `in_flight`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "each is the end of the same name")]
pub struct Counts {
    /// Replies that were asked for; of speech recognition, utterances that were over.
    pub requests: u64,
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub dropped: u64,
    pub rate_limited: u64,
    pub stalled: u64,
    pub cancelled: u64,
    /// Requests that have not ended.
    pub in_flight: u64,
    /// Sessions of speech recognition that were opened.
    pub sessions: u64,
    /// Blocks of callers' audio that came.
    pub blocks_read: u64,
    /// Blocks that never came before a later one.
    pub blocks_lost: u64,
    /// Blocks that came again.
    pub blocks_doubled: u64,
    /// Blocks of another caller, or without a mark.
    pub blocks_foreign: u64,
    /// Results handed over.
    pub results: u64,
    /// Of these, final.
    pub finals: u64,
    /// Bytes of audio handed over.
    pub bytes_out: u64,
    /// Time that answered requests took, in µs, from the request to the first byte.
    pub provider_us: u64,
}

impl Counts {
    fn end(&mut self, end: End) {
        self.in_flight -= 1;
        let count = match end {
            End::Completed => &mut self.completed,
            End::Failed => &mut self.failed,
            End::TimedOut => &mut self.timed_out,
            End::Dropped => &mut self.dropped,
            End::RateLimited => &mut self.rate_limited,
            End::Stalled => &mut self.stalled,
            End::Cancelled => &mut self.cancelled,
        };
        *count += 1;
    }
}

/// The clocks at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clocks {
    /// Since the start.
    pub uptime: Duration,
    /// Of that, the event loop was not parked.
    pub loop_busy: Duration,
}

/// Everything counted.
#[derive(Debug)]
pub struct Stats {
    counts: BTreeMap<Provider, Counts>,
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
            counts: Provider::ALL
                .map(|provider| (provider, Counts::default()))
                .into(),
            lateness: Histogram::new_with_bounds(1, 3_600_000_000, 3)
                .unwrap_or_else(|_| unreachable!("constant, valid bounds")),
            audio_bytes_in_all: 0,
            began: Began::default(),
        }
    }
}

impl Stats {
    fn of(&mut self, provider: Provider) -> &mut Counts {
        self.counts.entry(provider).or_default()
    }

    /// A gateway opened a session of speech recognition.
    pub fn session(&mut self, provider: Provider) {
        self.of(provider).sessions += 1;
    }

    /// A request was read.
    pub fn request(&mut self, provider: Provider) {
        let counts = self.of(provider);
        counts.requests += 1;
        counts.in_flight += 1;
    }

    /// It ended.
    pub fn end(&mut self, provider: Provider, end: End) {
        self.of(provider).end(end);
    }

    /// Audio of a caller came.
    pub fn heard(&mut self, provider: Provider, bytes: usize, blocks: Blocks) {
        self.audio_bytes_in_all += bytes as u64;
        let counts = self.of(provider);
        counts.blocks_read += blocks.read;
        counts.blocks_lost += blocks.lost;
        counts.blocks_doubled += blocks.doubled;
        counts.blocks_foreign += blocks.foreign;
    }

    /// A result was handed over.
    pub fn result(&mut self, provider: Provider, last: bool) {
        let counts = self.of(provider);
        counts.results += 1;
        counts.finals += u64::from(last);
    }

    /// Audio of a reply was handed over.
    pub fn spoke(&mut self, provider: Provider, bytes: usize) {
        self.of(provider).bytes_out += bytes as u64;
    }

    /// A request was answered after this time, and so much later than drawn.
    pub fn answered(&mut self, provider: Provider, took: Duration, late: Duration) {
        self.of(provider).provider_us += as_us(took);
        self.late(late);
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
        let counts = self.counts.iter();
        Report {
            window: Window {
                requests: self.requests() - requests,
                busy_us: as_us(now.loop_busy.saturating_sub(clocks.loop_busy)),
                window_us: as_us(now.uptime.saturating_sub(clocks.uptime)),
                lateness: Lateness {
                    p50_us: self.lateness.value_at_quantile(0.5),
                    p99_us: self.lateness.value_at_quantile(0.99),
                    max_us: self.lateness.max(),
                },
                audio_bytes: self.audio_bytes_in_all - audio_bytes,
                audio_bytes_in_all: self.audio_bytes_in_all,
            },
            providers: counts
                .map(|(provider, counts)| (provider.name(), *counts))
                .collect(),
        }
    }

    fn requests(&self) -> u64 {
        self.counts.values().map(|counts| counts.requests).sum()
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
    fn a_window_begins_anew_and_the_counts_do_not() {
        let mut stats = Stats::default();
        let clocks = |seconds| Clocks {
            uptime: Duration::from_secs(seconds),
            loop_busy: Duration::from_secs(seconds / 2),
        };
        stats.request(Provider::DeepgramTts);
        stats.heard(Provider::DeepgramStt, 640, Blocks::default());
        stats.answered(
            Provider::DeepgramTts,
            Duration::from_millis(80),
            Duration::from_millis(5),
        );
        stats.reset_window(clocks(10));
        stats.request(Provider::DeepgramTts);
        stats.heard(Provider::DeepgramStt, 1_280, Blocks::default());
        let report = stats.report(clocks(20));
        assert_eq!(report.window.requests, 1);
        assert_eq!(
            (report.window.busy_us, report.window.window_us),
            (5_000_000, 10_000_000)
        );
        assert_eq!(report.window.lateness, Lateness::default());
        assert_eq!(
            (report.window.audio_bytes, report.window.audio_bytes_in_all),
            (1_280, 1_920)
        );
        assert_eq!(report.providers["deepgram_tts"].requests, 2);
        assert_eq!(report.providers["deepgram_tts"].provider_us, 80_000);
    }
}
