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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The words that a trial can have alone.
    const OF_A_TRIAL: [Word; 6] = [
        Word::Lost,
        Word::Missing,
        Word::ClientMissedTarget,
        Word::BrokerMissedTarget,
        Word::Backlog,
        Word::Clean,
    ];

    fn slope(low: f64, value: f64, high: f64) -> BacklogSlope {
        BacklogSlope {
            per_s: value,
            low_per_s: low,
            high_per_s: high,
            confidence: 0.95,
            rate_per_s: 1_000.0,
        }
    }

    fn p99(ms: f64) -> Option<Percentile> {
        let at_least = false;
        Some(Percentile { ms, at_least })
    }

    fn at_least(ms: f64) -> Option<Percentile> {
        let at_least = true;
        Some(Percentile { ms, at_least })
    }

    fn client(client: u64) -> Blame {
        Blame { client, broker: 0 }
    }

    fn broker(broker: u64) -> Blame {
        Blame { client: 0, broker }
    }

    /// A row in which everything is as it should be.
    fn clean() -> Figures {
        Figures {
            offered: 10_000,
            unpublished: Blame::default(),
            late: Blame::default(),
            missing: Some(0),
            lost: Some(0),
            held: None,
            slope: Some(slope(-5.0, 0.0, 5.0)),
            storage: None,
        }
    }

    fn word(figures: &Figures) -> &'static str {
        figures.judged().word.text()
    }

    /// The figures, made so that the rule of a word holds.
    fn spoilt(mut figures: Figures, word: Word) -> Figures {
        match word {
            Word::Lost => figures.lost = Some(1),
            Word::Missing => figures.missing = Some(1),
            Word::ClientMissedTarget => figures.late.client = 101,
            Word::BrokerMissedTarget => figures.late.broker = 101,
            Word::Backlog => figures.slope = Some(slope(5.1, 10.0, 15.0)),
            Word::Knee | Word::Clean => {}
        }
        figures
    }

    #[test]
    fn a_row_without_faults_is_clean() {
        let judged = Judged {
            word: Word::Clean,
            invalid: false,
            storage_bound: None,
            untried: Vec::new(),
        };
        assert_eq!(clean().judged(), judged);
    }

    #[test]
    fn each_word_has_its_rule() {
        for word in OF_A_TRIAL {
            assert_eq!(spoilt(clean(), word).judged().word, word);
        }
    }

    /// A broker that is too slow to drain in the grace has lost nothing.
    #[test]
    fn what_the_broker_still_holds_is_late_and_not_lost() {
        let mut figures = Figures {
            missing: Some(12_000),
            lost: Some(12_000),
            held: Some(12_000),
            slope: Some(slope(5.1, 10.0, 15.0)),
            ..clean()
        };
        assert_eq!(word(&figures), "backlog");
        figures.held = Some(11_999);
        assert_eq!(word(&figures), "lost");
    }

    #[test]
    fn a_target_is_missed_by_more_than_one_percent() {
        let unpublished = |blame| Figures {
            unpublished: blame,
            ..clean()
        };
        let late = |blame| Figures {
            late: blame,
            ..clean()
        };
        // Of 10,000, 100 may be missing or late: 9,900 are not less than 99 %.
        for figures in [
            unpublished(client(100)),
            unpublished(broker(100)),
            late(client(100)),
            late(broker(100)),
        ] {
            assert_eq!(word(&figures), "clean");
        }
        assert_eq!(word(&unpublished(client(101))), "client missed target");
        assert_eq!(word(&late(client(101))), "client missed target");
        assert_eq!(word(&unpublished(broker(101))), "broker missed target");
        assert_eq!(word(&late(broker(101))), "broker missed target");
        // Both have a part: the client's own is too much, or it is the greater one, or it is neither.
        let both = |client, broker| late(Blame { client, broker });
        assert_eq!(word(&both(101, 5_000)), "client missed target");
        assert_eq!(word(&both(60, 60)), "client missed target");
        assert_eq!(word(&both(59, 60)), "broker missed target");
        let neither = Figures {
            late: client(60),
            unpublished: broker(60),
            ..clean()
        };
        assert_eq!(word(&neither), "clean", "two different rules");
    }

    /// Fault of other benchmarks: a client that is too slow counts as the broker's limit.
    #[test]
    fn a_slow_client_makes_a_row_invalid_whatever_comes_first() {
        let slow = spoilt(
            spoilt(clean(), Word::ClientMissedTarget),
            Word::BrokerMissedTarget,
        );
        let judged = slow.judged();
        assert_eq!(
            (judged.word, judged.invalid),
            (Word::ClientMissedTarget, true)
        );
        let judged = spoilt(slow, Word::Missing).judged();
        assert_eq!((judged.word, judged.invalid), (Word::Missing, true));
        assert!(!spoilt(clean(), Word::BrokerMissedTarget).judged().invalid);
    }

    #[test]
    fn a_backlog_needs_the_whole_interval() {
        let with = |slope| Figures {
            slope: Some(slope),
            ..clean()
        };
        assert_eq!(word(&with(slope(4.9, 20.0, 35.1))), "clean");
        assert_eq!(word(&with(slope(5.0, 20.0, 35.0))), "clean");
        assert_eq!(word(&with(slope(5.1, 20.0, 34.9))), "backlog");
    }

    #[test]
    fn a_knee_is_three_times_the_lowest_rate() {
        let with = |here, lowest| clean().judged().among_rates(here, lowest);
        assert_eq!(with(p99(3.0), p99(1.0)), Word::Clean);
        assert_eq!(with(p99(3.01), p99(1.0)), Word::Knee);
        // The row with the lowest rate, and a row without readers.
        assert_eq!(with(p99(100.0), None), Word::Clean);
        assert_eq!(with(None, p99(1.0)), Word::Clean);
        // `> x` is past the knee for certain, or perhaps.
        assert_eq!(with(at_least(3.01), p99(1.0)), Word::Knee);
        assert_eq!(with(at_least(2.0), p99(1.0)), Word::Clean);
        assert_eq!(with(p99(4.0), at_least(1.0)), Word::Clean);
        // Whatever comes first stays.
        for word in OF_A_TRIAL {
            let judged = spoilt(clean(), word).judged();
            let expected = if word == Word::Clean {
                Word::Knee
            } else {
                word
            };
            assert_eq!(judged.among_rates(p99(9.0), p99(1.0)), expected);
        }
    }

    #[test]
    fn storage_bound_stands_beside_any_word() {
        let storage = |bytes_per_s, flushes_per_s| Storage {
            bytes_per_s,
            flushes_per_s,
            probe_bytes_per_s: 1_000.0,
            probe_flushes_per_s: 100.0,
        };
        assert!(!storage(799.0, 79.0).bound());
        assert!(storage(800.0, 0.0).bound());
        assert!(storage(0.0, 80.0).bound());
        assert!(!Storage::default().bound(), "without a probe");
        for word in OF_A_TRIAL {
            let figures = Figures {
                storage: Some(storage(0.0, 100.0)),
                ..spoilt(clean(), word)
            };
            let judged = figures.judged();
            assert_eq!((judged.word, judged.storage_bound), (word, Some(true)));
        }
    }

    #[test]
    fn what_nobody_saw_is_said() {
        let judged = Figures {
            offered: 10,
            ..Figures::default()
        }
        .judged();
        let untried = vec![Word::Lost, Word::Missing, Word::Backlog];
        assert_eq!((judged.word, judged.untried), (Word::Clean, untried));
        // A word that comes first does not need the later ones.
        let judged = Figures {
            slope: None,
            lost: Some(2),
            ..clean()
        }
        .judged();
        assert_eq!((judged.word, judged.untried), (Word::Lost, vec![]));
    }

    proptest! {
        /// Whichever rules hold, the word is the first of them.
        #[test]
        fn the_first_rule_that_holds_decides(words in prop::sample::subsequence(OF_A_TRIAL.to_vec(), 0..=6)) {
            let figures = words.iter().fold(clean(), |figures, word| spoilt(figures, *word));
            let first = words.first().copied().unwrap_or(Word::Clean);
            prop_assert_eq!(figures.judged().word, first);
        }

        #[test]
        fn any_figures_have_a_word(
            offered in any::<u32>(), parts in prop::array::uniform4(any::<u32>()), missing in any::<u8>(), confirmed in any::<bool>(),
        ) {
            let [a, b, c, d] = parts.map(u64::from);
            let figures = Figures {
                offered: u64::from(offered),
                unpublished: Blame { client: a, broker: b },
                late: Blame { client: c, broker: d },
                missing: Some(u64::from(missing)),
                lost: Some(if confirmed { u64::from(missing) } else { 0 }),
                ..Figures::default()
            };
            let judged = figures.judged();
            prop_assert_eq!(judged.word == Word::Lost, confirmed && missing > 0);
            prop_assert!(judged.word != Word::ClientMissedTarget || judged.invalid);
        }
    }
}
