//! The one word that sums a row up, and what is said beside it.
//!
//! The word is the first of [`Word`] whose rule holds. Nobody chooses it by looking at a chart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::BacklogSlope;

/// Client or broker missed the target if less than this share of the offered messages was published.
pub const PUBLISHED_SHARE: f64 = 0.99;
/// Client or broker missed the target if more than this share of the offered messages was late.
pub const LATE_SHARE: f64 = 0.01;
/// A p99 of delivery above so many times that of the set's lowest rate is past the knee.
pub const KNEE_TIMES: f64 = 3.0;
/// From this share of what the disk can do on, a row is storage bound.
pub const STORAGE_SHARE: f64 = 0.8;

/// The words, in the order in which their rules are tried.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Messages that the broker confirmed never arrived.
    Lost,
    /// Published messages never arrived.
    Missing,
    /// The client did not publish what was offered in time, by its own fault. The row is `invalid`.
    ClientMissedTarget,
    /// The broker did not take what was offered in time.
    BrokerMissedTarget,
    /// The broker's backlog grows.
    Backlog,
    /// The broker keeps up, and takes much longer than at the lowest rate. A trial alone never has this word: only several
    /// rates side by side show it.
    Knee,
    /// None of these.
    Clean,
}

impl Word {
    /// All words, in order.
    pub const ALL: [Self; 7] = [
        Self::Lost,
        Self::Missing,
        Self::ClientMissedTarget,
        Self::BrokerMissedTarget,
        Self::Backlog,
        Self::Knee,
        Self::Clean,
    ];

    /// As renderings show it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Missing => "missing",
            Self::ClientMissedTarget => "client missed target",
            Self::BrokerMissedTarget => "broker missed target",
            Self::Backlog => "backlog",
            Self::Knee => "knee",
            Self::Clean => "clean",
        }
    }
}

/// Messages that were not written, or late, and whose doing that was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blame {
    /// By send lag: the client was late.
    pub client: u64,
    /// By send wait: socket, confirm window or flow control was full.
    pub broker: u64,
}

impl Blame {
    fn sum(self) -> u64 {
        self.client + self.broker
    }
}

/// A percentile. While some messages have not arrived, the true value may be greater.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// In milliseconds.
    pub ms: f64,
    /// Whether the true value is this or more (`> x`).
    pub at_least: bool,
}

/// What the broker wrote, and what the probe showed that its disk can do.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Storage {
    /// Bytes per second that the broker wrote.
    pub bytes_per_s: f64,
    /// Flushes per second of its device.
    pub flushes_per_s: f64,
    /// Bytes per second of the probe's sequential writes.
    pub probe_bytes_per_s: f64,
    /// Flushes per second of the probe: one `fdatasync` after the other.
    pub probe_flushes_per_s: f64,
}

impl Storage {
    /// Whether bytes or flushes reach [`STORAGE_SHARE`] of the probe's.
    #[must_use]
    pub fn bound(&self) -> bool {
        let reaches = |used: f64, most: f64| most > 0.0 && used >= STORAGE_SHARE * most;
        reaches(self.bytes_per_s, self.probe_bytes_per_s)
            || reaches(self.flushes_per_s, self.probe_flushes_per_s)
    }
}

/// The figures of a row from which its word follows. All messages are those that were due in the measured window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Messages due.
    pub offered: u64,
    /// Of those, the ones that no socket took wholly.
    pub unpublished: Blame,
    /// Published messages that were written late.
    pub late: Blame,
    /// Published, not refused, and not delivered after the drain; `None` without readers.
    pub missing: Option<u64>,
    /// Of those, confirmed.
    pub lost: Option<u64>,
    /// What the broker still holds at the end, by its own count; `None` if that is unknown. What may be among it is late, and
    /// neither missing nor lost: the backlog shows it.
    pub held: Option<u64>,
    /// How the backlog changed; in a stream that of the worst reader.
    pub slope: Option<BacklogSlope>,
    /// Writes and flushes; `None` if they were not observed.
    pub storage: Option<Storage>,
}

/// What is said of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// Its word.
    pub word: Word,
    /// Whether the client missed its target, whichever word comes first: the row is `invalid`, and neither passes nor
    /// fails. A client that is too slow to read also leaves messages missing.
    pub invalid: bool,
    /// Whether the disk was near its limit; `null` if nobody saw. It can stand beside any word.
    pub storage_bound: Option<bool>,
    /// Words before [`Judged::word`] whose rule could not be tried, because a figure is unknown. `clean` means less with
    /// any of them.
    pub untried: Vec<Word>,
}

impl Figures {
    /// The word of the row, and what is said beside it.
    #[must_use]
    pub fn judged(&self) -> Judged {
        let rules = Word::ALL.map(|word| (word, self.holds(word)));
        let word = rules
            .iter()
            .find_map(|(word, holds)| (*holds == Some(true)).then_some(*word))
            .unwrap_or(Word::Clean);
        let untried = rules
            .iter()
            .filter(|(tried, holds)| *tried < word && holds.is_none());
        Judged {
            word,
            invalid: self.client_missed(),
            storage_bound: self.storage.map(|storage| storage.bound()),
            untried: untried.map(|(word, _)| *word).collect(),
        }
    }

    /// Whether the rule of a word holds; `None` if a figure that it needs is unknown.
    fn holds(&self, word: Word) -> Option<bool> {
        match word {
            Word::Lost => self.lost.map(|lost| self.is_gone(lost)),
            Word::Missing => self.missing.map(|missing| self.is_gone(missing)),
            Word::ClientMissedTarget => Some(self.client_missed()),
            Word::BrokerMissedTarget => Some(self.target_missed() && !self.client_missed()),
            Word::Backlog => self.slope.map(|slope| slope.grows()),
            Word::Knee => Some(false),
            Word::Clean => Some(true),
        }
    }

    /// Whether so many messages that did not come are more than the broker may still hold.
    fn is_gone(&self, messages: u64) -> bool {
        messages > self.held.unwrap_or(0)
    }

    /// Whether too little was published, or too much of it late, by whomever.
    fn target_missed(&self) -> bool {
        self.is_short(self.unpublished.sum()) || self.is_late(self.late.sum())
    }

    /// Whether that was the client's doing: its own part is too much, or is at least as large as the broker's. In doubt
    /// a row is invalid, and does not fail.
    fn client_missed(&self) -> bool {
        let by_client = |blame: Blame, too_much: &dyn Fn(u64) -> bool| {
            too_much(blame.client) || (too_much(blame.sum()) && blame.client >= blame.broker)
        };
        by_client(self.unpublished, &|messages| self.is_short(messages))
            || by_client(self.late, &|messages| self.is_late(messages))
    }

    /// Whether less than [`PUBLISHED_SHARE`] is left without these messages.
    fn is_short(&self, unpublished: u64) -> bool {
        float(self.offered.saturating_sub(unpublished)) < PUBLISHED_SHARE * float(self.offered)
    }

    fn is_late(&self, late: u64) -> bool {
        float(late) > LATE_SHARE * float(self.offered)
    }
}

impl Judged {
    /// The word of a row among others. `here` is its p99 of delivery, `lowest` that of the row with the lowest rate of the
    /// same messages; `None` in that row itself, and if no other rate was measured.
    #[must_use]
    pub fn among_rates(&self, here: Option<Percentile>, lowest: Option<Percentile>) -> Word {
        if self.word > Word::Knee && past_knee(here, lowest) {
            Word::Knee
        } else {
            self.word
        }
    }
}

/// Whether delivery is past the knee for certain. While a value may be greater than it is known to be, `here` can only be
/// further past the knee than it seems, and `lowest` can hide it.
fn past_knee(here: Option<Percentile>, lowest: Option<Percentile>) -> bool {
    let (Some(here), Some(lowest)) = (here, lowest) else {
        return false;
    };
    here.ms > KNEE_TIMES * lowest.ms && !lowest.at_least
}

#[expect(
    clippy::cast_precision_loss,
    reason = "messages of a trial, far below 2^53"
)]
fn float(messages: u64) -> f64 {
    messages as f64
}

#[cfg(test)]
#[path = "word_tests.rs"]
mod tests;
