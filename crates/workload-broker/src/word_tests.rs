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
