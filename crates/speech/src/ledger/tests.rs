//! Tests of the ledger: by hand on two utterances, and properties of whatever comes.

use proptest::prelude::*;

use super::*;

const MS: u64 = NS_PER_MS;
const FRAME_NS: u64 = 40 * MS;
/// The first frame is due here; the session's audio time 0 is this time.
const BASE_NS: u64 = 5_000 * MS;

fn utterance(onset_ms: u64, end_ms: u64) -> Utterance {
    Utterance {
        clip: 0,
        begin_ns: onset_ms * MS,
        onset_ns: onset_ms * MS,
        end_ns: end_ms * MS,
    }
}

/// Speech at 1.0 to 3.0 s and at 4.0 to 5.0 s of ten seconds of audio, all of it measured and written.
fn two_utterances() -> AudioLedger {
    let window = Window {
        start_ns: BASE_NS,
        end_ns: BASE_NS + 10_000 * MS,
        grace_end_ns: BASE_NS + 20_000 * MS,
    };
    with_window(window)
}

fn with_window(window: Window) -> AudioLedger {
    let due = Periodic {
        first_ns: BASE_NS,
        period_ns: FRAME_NS,
    };
    let speech = [utterance(1_000, 3_000), utterance(4_000, 5_000)];
    let mut ledger = AudioLedger::new(due, window, &speech, true);
    (0..250).for_each(|_| ledger.written());
    ledger
}

/// A time of the session, in nanoseconds since the trial began.
fn at(ms: u64) -> u64 {
    BASE_NS + ms * MS
}

fn account(ledger: AudioLedger) -> Account {
    ledger.finish(at(12_000), 250).0
}

fn uncovered_ms(account: &Account) -> Vec<u64> {
    account
        .utterances
        .iter()
        .map(|one| one.uncovered_ns / MS)
        .collect()
}

#[test]
fn finals_answer_what_they_span_and_pass_over_silence() {
    let mut ledger = two_utterances();
    let heard = ledger.final_text(at(3_500), 1_000 * MS, 3_000 * MS);
    assert_eq!(
        heard.settled,
        [(1..26, Class::Silence), (26..76, Class::Answered)]
    );
    assert_eq!(
        (heard.duplicated, heard.out_of_order, heard.fault),
        (0, 0, None)
    );
    assert_eq!(ledger.cursor_ns(), 3_000 * MS);
    let heard = ledger.final_text(at(5_800), 4_000 * MS, 5_000 * MS);
    assert_eq!(
        heard.settled,
        [(76..101, Class::Silence), (101..126, Class::Answered)]
    );

    let (account, rest) = ledger.finish(at(12_000), 250);
    assert_eq!(rest.settled, [(126..251, Class::Silence)]);
    assert_eq!(
        (
            account.frames_due,
            account.frames_answered,
            account.frames_silent,
            account.frames_lost
        ),
        (250, 75, 175, 0)
    );
    assert_eq!(
        (
            account.speech_uncovered_ns,
            account.speech_duplicated_ns,
            account.silent
        ),
        (0, 0, false)
    );
    // The frame with the end is due 40 ms before the end, for its audio begins there.
    let finals: Vec<_> = account
        .utterances
        .iter()
        .map(|one| one.final_ns.unwrap() / MS)
        .collect();
    assert_eq!(finals, [3_500 - 2_960, 5_800 - 4_960]);
    let first: Vec<_> = account
        .utterances
        .iter()
        .map(|one| one.first_result_ns.unwrap() / MS)
        .collect();
    assert_eq!(first, [3_500 - 1_000, 5_800 - 4_000]);
}

#[test]
fn speech_between_the_cursor_and_a_final_is_lost() {
    let mut ledger = two_utterances();
    ledger.final_text(at(2_000), 1_000 * MS, 1_600 * MS);
    // A lost second: from 1.6 to 2.6 s.
    let heard = ledger.final_text(at(3_500), 2_600 * MS, 3_000 * MS);
    assert_eq!(heard.settled, [(66..76, Class::Answered)]);
    // The second utterance is passed over altogether.
    ledger.progress(at(6_000), 6_000 * MS);
    let (account, rest) = ledger.finish(at(12_000), 250);
    assert_eq!(uncovered_ms(&account), [1_000, 1_000]);
    assert_eq!(account.frames_lost, 50);
    assert_eq!(account.speech_uncovered_ns, 2_000 * MS);
    let lost: Vec<_> = rest
        .settled
        .iter()
        .filter(|(_, class)| *class == Class::Lost)
        .collect();
    assert_eq!(lost, [&(41..66, Class::Lost), &(101..126, Class::Lost)]);
    assert_eq!(account.utterances[1].final_ns, None);
    assert_eq!(account.utterances[1].waited_ns, (12_000 - 4_960) * MS);
}

#[test]
fn inexact_times_are_no_loss_and_no_duplicate() {
    let mut ledger = two_utterances();
    // Begins and ends 200 ms inside; parts 200 ms apart; then 200 ms of overlap; then 200 ms beyond the audio.
    ledger.final_text(at(2_500), 1_200 * MS, 2_000 * MS);
    ledger.final_text(at(3_500), 2_200 * MS, 2_800 * MS);
    let heard = ledger.final_text(at(3_600), 2_600 * MS, 2_800 * MS);
    assert_eq!((heard.duplicated, heard.fault), (0, None));
    ledger.final_text(at(5_800), 4_000 * MS, 5_000 * MS);
    let heard = ledger.final_text(at(11_000), 9_500 * MS, 10_200 * MS);
    assert_eq!(heard.fault, None);
    let account = account(ledger);
    assert_eq!((account.frames_lost, account.frames_duplicated), (0, 0));
    assert!(account.faults.is_empty());
    assert!(account.utterances.iter().all(|one| one.final_ns.is_some()));
}

#[test]
fn a_short_utterance_of_which_nothing_is_answered_is_lost() {
    let due = Periodic {
        first_ns: BASE_NS,
        period_ns: FRAME_NS,
    };
    let window = two_utterances().window;
    let mut ledger = AudioLedger::new(due, window, &[utterance(1_000, 1_160)], true);
    (0..250).for_each(|_| ledger.written());
    ledger.final_text(at(3_000), 1_400 * MS, 2_000 * MS);
    assert_eq!(uncovered_ms(&account(ledger)), [160]);
}

#[test]
fn a_frame_more_than_the_tolerance_is_lost_doubled_or_beyond() {
    let mut ledger = two_utterances();
    ledger.final_text(at(3_500), 1_240 * MS, 3_000 * MS);
    let heard = ledger.final_text(at(3_600), 2_760 * MS, 3_000 * MS);
    assert_eq!(heard.duplicated, 6);
    let heard = ledger.final_text(at(11_000), 4_000 * MS, 10_201 * MS);
    assert_eq!(heard.fault, Some(Fault::BeyondTheAudio));
    let account = account(ledger);
    assert_eq!(account.speech_uncovered_ns, 240 * MS);
    assert_eq!(account.speech_duplicated_ns, 240 * MS);
    assert_eq!(account.faults, BTreeMap::from([(Fault::BeyondTheAudio, 1)]));
}

#[test]
fn progress_in_small_steps_forgives_no_more_than_in_one() {
    let mut ledger = two_utterances();
    ledger.final_text(at(2_000), 1_000 * MS, 2_000 * MS);
    for step in 1..=30 {
        ledger.progress(at(2_000 + step * 100), (2_000 + step * 100) * MS);
    }
    assert_eq!(uncovered_ms(&account(ledger)), [1_000, 1_000]);
}

#[test]
fn a_late_final_takes_back_a_loss() {
    let mut ledger = two_utterances();
    ledger.final_text(at(5_500), 4_000 * MS, 5_000 * MS);
    let heard = ledger.final_text(at(6_000), 1_000 * MS, 3_000 * MS);
    assert_eq!(
        (heard.out_of_order, heard.duplicated, heard.fault),
        (50, 0, None)
    );
    assert_eq!(heard.settled, [(26..76, Class::Answered)]);
    let account = account(ledger);
    assert_eq!((account.frames_lost, account.frames_out_of_order), (0, 50));
}

#[test]
fn a_doubled_final_is_counted_each_time_by_its_speech() {
    let mut ledger = two_utterances();
    let spans = [(500, 3_500); 3];
    let doubled: Vec<u64> = spans
        .iter()
        .map(|(a, b)| ledger.final_text(at(4_000), a * MS, b * MS).duplicated)
        .collect();
    assert_eq!(doubled, [0, 50, 50]);
    // Silence in two finals is no duplicate.
    assert_eq!(
        ledger
            .final_text(at(5_500), 3_000 * MS, 5_000 * MS)
            .duplicated,
        0
    );
    assert_eq!(account(ledger).speech_duplicated_ns, 4_000 * MS);
}

#[test]
fn what_breaks_the_rules_of_audio_time_is_a_fault_and_moves_nothing() {
    let mut ledger = two_utterances();
    assert_eq!(
        ledger.final_text(at(1), 2_000 * MS, 1_000 * MS).fault,
        Some(Fault::Reversed)
    );
    ledger.progress(at(2), 3_000 * MS);
    assert_eq!(
        ledger.progress(at(3), 2_799 * MS).fault,
        Some(Fault::CursorBackwards)
    );
    assert_eq!(ledger.progress(at(3), 2_800 * MS).fault, None);
    assert_eq!(ledger.cursor_ns(), 3_000 * MS);
    assert_eq!(
        ledger.interim(at(4), u64::MAX).fault,
        Some(Fault::BeyondTheAudio)
    );
    assert_eq!(account(ledger).faults.values().sum::<u64>(), 3);
}

#[test]
fn an_interim_is_a_first_result_and_settles_nothing() {
    let mut ledger = two_utterances();
    assert_eq!(ledger.interim(at(1_700), 1_500 * MS), Heard::default());
    ledger.interim(at(1_900), 1_800 * MS);
    ledger.final_text(at(3_500), 1_000 * MS, 3_000 * MS);
    let account = account(ledger);
    assert_eq!(account.utterances[0].first_result_ns, Some(700 * MS));
    assert_eq!(account.utterances[1].first_result_ns, None);
}

#[test]
fn a_session_without_a_word_is_silent() {
    let mut ledger = two_utterances();
    ledger.progress(at(9_000), 9_000 * MS);
    let found = account(ledger);
    assert!(found.silent);
    assert_eq!(found.frames_lost, 75);
    let mut ledger = two_utterances();
    ledger.interim(at(9_000), 9_000 * MS);
    assert!(!account(ledger).silent);
}

#[test]
fn lag_is_sampled_each_second_of_the_window() {
    let window = Window {
        start_ns: at(1_500),
        end_ns: at(6_500),
        grace_end_ns: at(9_000),
    };
    let mut ledger = with_window(window);
    ledger.final_text(at(3_500), 1_000 * MS, 2_500 * MS);
    let (account, _) = ledger.finish(at(12_000), 250);
    let lags: Vec<_> = account
        .lags
        .iter()
        .map(|lag| ((lag.at_ns - BASE_NS) / MS, lag.lag_ns / MS))
        .collect();
    // At 2 s, frames 1 to 51 are due.
    assert_eq!(
        lags,
        [
            (2_000, 2_040),
            (3_000, 3_040),
            (4_000, 1_540),
            (5_000, 2_540),
            (6_000, 3_540)
        ]
    );
    // Frames of the window, and the utterances that end in it.
    assert_eq!(account.frames_due, 125);
    assert_eq!(account.utterances.len(), 2);
}

#[test]
fn where_silence_is_not_decidable_lag_counts_to_the_end_of_speech() {
    let mut ledger = two_utterances();
    ledger.silence_decidable = false;
    let lag_ms = |ledger: &AudioLedger, ms| ledger.lag_ns(at(ms)) / MS;
    assert_eq!(lag_ms(&ledger, 900), 0);
    assert_eq!(lag_ms(&ledger, 2_000), 2_040);
    assert_eq!(lag_ms(&ledger, 3_500), 3_000);
    ledger.final_text(at(3_600), 1_000 * MS, 3_000 * MS);
    assert_eq!(lag_ms(&ledger, 3_900), 0);
    assert_eq!(lag_ms(&ledger, 4_200), 1_240);
}

#[test]
fn finalisation_is_from_the_flush_to_the_last_final_after_it() {
    let window = two_utterances().window;
    let mut ledger = with_window(window);
    ledger.final_text(at(2_900), 1_000 * MS, 2_000 * MS);
    ledger.flush_written(at(10_000));
    ledger.final_text(at(10_300), 2_000 * MS, 3_000 * MS);
    ledger.final_text(at(10_450), 4_000 * MS, 5_000 * MS);
    let account = account(ledger);
    let delays: Vec<_> = account
        .utterances
        .iter()
        .map(|one| one.finalisation_ns)
        .collect();
    assert_eq!(delays, [None, Some(450 * MS)]);
}

#[test]
fn speech_that_was_due_and_never_written_is_lost() {
    let window = two_utterances().window;
    let due = Periodic {
        first_ns: BASE_NS,
        period_ns: FRAME_NS,
    };
    let mut ledger = AudioLedger::new(
        due,
        window,
        &[utterance(1_000, 3_000), utterance(4_000, 5_000)],
        true,
    );
    (0..50).for_each(|_| ledger.written());
    ledger.final_text(at(2_500), 1_000 * MS, 2_000 * MS);
    let (account, _) = ledger.finish(at(12_000), 250);
    assert_eq!(uncovered_ms(&account), [1_000, 1_000]);
}

#[test]
#[should_panic(expected = "250 frames were written and only 249 were due")]
fn more_written_than_due_is_our_own_fault() {
    let _ = two_utterances().finish(at(12_000), 249);
}

#[test]
fn speech_shorter_than_a_frame_has_a_frame() {
    assert_eq!(speech_frames(&utterance(1_001, 1_005), 100 * MS), 10..11);
    assert_eq!(speech_frames(&utterance(1_000, 1_100), 100 * MS), 10..11);
}

#[derive(Debug, Clone)]
enum Event {
    Written(u8),
    Tick(u64),
    Interim(u64, u64),
    Final(u64, u64, u64),
    Progress(u64, u64),
    Flush(u64),
}

/// A time: mostly of the session, sometimes of no sense.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0..20_000 * MS, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<u8>().prop_map(Event::Written),
        1 => time().prop_map(Event::Tick),
        2 => (time(), time()).prop_map(|(at, upto)| Event::Interim(at, upto)),
        4 => (time(), time(), time()).prop_map(|(at, from, to)| Event::Final(at, from, to)),
        2 => (time(), time()).prop_map(|(at, upto)| Event::Progress(at, upto)),
        1 => time().prop_map(Event::Flush),
    ]
}

/// Utterances, from lengths of pause and speech in milliseconds.
fn spoken(lengths: &[(u64, u64)]) -> Vec<Utterance> {
    let mut at_ms = 0;
    let each = lengths.iter().map(|(pause, speech)| {
        let onset_ms = at_ms + pause;
        at_ms = onset_ms + speech;
        utterance(onset_ms, at_ms)
    });
    each.collect()
}

proptest! {
    #[test]
    fn every_frame_ends_in_exactly_one_class_whatever_comes(
        lengths in prop::collection::vec((400_u64..1_600, 10_u64..4_000), 0..5),
        events in prop::collection::vec(event(), 0..60),
        frame_ms in prop::sample::select(vec![20_u64, 40, 80, 100]),
        unwritten in 0_u64..50,
        start_ms in 0_u64..8_000,
        silence_decidable: bool,
    ) {
        let utterances = spoken(&lengths);
        let due = Periodic { first_ns: BASE_NS, period_ns: frame_ms * MS };
        let window = Window { start_ns: at(start_ms), end_ns: at(start_ms + 6_000), grace_end_ns: at(start_ms + 9_000) };
        let mut ledger = AudioLedger::new(due, window, &utterances, silence_decidable);
        let mut settled: Vec<(Range<u64>, Class)> = Vec::new();
        let mut written = 0_u64;
        let mut cursor_ns = 0;
        for event in events {
            let heard = match event {
                Event::Written(count) => {
                    written += u64::from(count);
                    (0..count).for_each(|_| ledger.written());
                    Heard::default()
                }
                Event::Tick(at) => { ledger.tick(at); Heard::default() }
                Event::Interim(at, upto) => ledger.interim(at, upto),
                Event::Final(at, from, to) => ledger.final_text(at, from, to),
                Event::Progress(at, upto) => ledger.progress(at, upto),
                Event::Flush(at) => { ledger.flush_written(at); Heard::default() }
            };
            prop_assert!(heard.settled.iter().all(|(frames, class)| *class != Class::Lost && frames.end <= written + 1));
            prop_assert!(ledger.cursor_ns() >= cursor_ns && ledger.cursor_ns() <= ledger.written_ns());
            cursor_ns = ledger.cursor_ns();
            settled.extend(heard.settled);
        }
        let frames_due = written + unwritten;
        let (account, rest) = ledger.finish(at(30_000), frames_due);
        settled.extend(rest.settled);

        // Together the events settled each frame due exactly once.
        let mut classes = BTreeMap::new();
        for (frames, class) in settled {
            for seq in frames {
                prop_assert!(classes.insert(seq, class).is_none(), "frame {} twice", seq);
            }
        }
        prop_assert!(classes.keys().copied().eq(1..=frames_due));

        // The account counts those of the window.
        let measured: Vec<(u64, Class)> = classes.iter().map(|(seq, class)| (*seq, *class)).filter(|(seq, _)| window.contains(due.due_ns(seq - 1))).collect();
        let count = |class| measured.iter().filter(|(_, of)| *of == class).count() as u64;
        prop_assert_eq!(account.frames_due, measured.len() as u64);
        prop_assert_eq!(account.frames_answered, count(Class::Answered));
        prop_assert_eq!(account.frames_silent, count(Class::Silence));
        prop_assert_eq!(account.frames_lost, count(Class::Lost));

        // Only speech is lost, and only what has none is silence.
        for (seq, class) in classes {
            let frame = usize::try_from(seq - 1).unwrap();
            let speech = utterances.iter().any(|one| speech_frames(one, due.period_ns).contains(&frame));
            let wrong = if speech { Class::Silence } else { Class::Lost };
            prop_assert_ne!(class, wrong);
        }
        prop_assert!(account.lags.len() <= 7);
        for one in &account.utterances {
            prop_assert!(one.uncovered_ns == 0 || one.uncovered_ns.is_multiple_of(due.period_ns));
        }
    }

    #[test]
    fn an_honest_server_is_never_blamed(
        lengths in prop::collection::vec((400_u64..1_600, 600_u64..4_000, 0_u64..150, 0_u64..150), 1..6),
        cuts in prop::collection::vec(1_u64..100, 6),
        frame_ms in prop::sample::select(vec![20_u64, 40, 80, 100]),
        delay_ms in 0_u64..3_000,
    ) {
        let pairs: Vec<_> = lengths.iter().map(|(pause, speech, ..)| (*pause, *speech)).collect();
        let utterances = spoken(&pairs);
        let due = Periodic { first_ns: BASE_NS, period_ns: frame_ms * MS };
        let end_ms = utterances.last().unwrap().end_ns / MS + 2_000;
        let window = Window { start_ns: BASE_NS, end_ns: at(end_ms), grace_end_ns: at(end_ms + 9_000) };
        let mut ledger = AudioLedger::new(due, window, &utterances, false);
        let frames = end_ms / frame_ms;
        (0..frames).for_each(|_| ledger.written());
        for ((one, (.., late, early)), cut) in utterances.iter().zip(&lengths).zip(&cuts) {
            // Two finals for each, whose edges are up to 150 ms off.
            let middle_ns = one.onset_ns + (one.end_ns - one.onset_ns) * cut / 100;
            let begin_ns = (one.onset_ns + late * MS).min(middle_ns);
            let end_ns = (one.end_ns - early * MS).max(middle_ns);
            for (from_ns, to_ns) in [(begin_ns, middle_ns), (middle_ns, end_ns)] {
                let heard = ledger.final_text(BASE_NS + to_ns + delay_ms * MS, from_ns, to_ns);
                prop_assert_eq!((heard.duplicated, heard.out_of_order, heard.fault), (0, 0, None));
            }
        }
        let (account, _) = ledger.finish(at(end_ms + 9_000), frames);
        prop_assert_eq!((account.frames_lost, account.silent), (0, false));
        prop_assert_eq!(account.utterances.len(), utterances.len());
        for one in &account.utterances {
            let final_ms = one.final_ns.unwrap() / MS;
            prop_assert!(final_ms <= delay_ms + 2 * frame_ms && one.first_result_ns.is_some(), "{:?}", one);
        }
    }

    #[test]
    fn a_lost_stretch_of_speech_is_found_to_a_frame(
        from_ms in 1_100_u64..2_500,
        length_ms in 300_u64..1_000,
        frame_ms in prop::sample::select(vec![20_u64, 40, 80, 100]),
    ) {
        let due = Periodic { first_ns: BASE_NS, period_ns: frame_ms * MS };
        let window = Window { start_ns: BASE_NS, end_ns: at(6_000), grace_end_ns: at(9_000) };
        let mut ledger = AudioLedger::new(due, window, &[utterance(1_000, 4_000)], true);
        (0..6_000 / frame_ms).for_each(|_| ledger.written());
        ledger.final_text(at(3_000), 1_000 * MS, from_ms * MS);
        ledger.final_text(at(5_000), (from_ms + length_ms) * MS, 4_000 * MS);
        let (account, _) = ledger.finish(at(9_000), 6_000 / frame_ms);
        let lost_ms = account.speech_uncovered_ns / MS;
        prop_assert!(lost_ms.abs_diff(length_ms) <= frame_ms, "{} of {}", lost_ms, length_ms);
    }
}
