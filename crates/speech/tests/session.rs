//! Whole sessions on the committed clips: plan, ledger, words and crosstalk together, with a recogniser that knows the truth.

use std::ops::Range;
use std::path::Path;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Window};
use plimsoll_core::schedule::Periodic;
use plimsoll_core::stats::Bootstrap;
use plimsoll_speech::corpus::Corpus;
use plimsoll_speech::crosstalk::crosses;
use plimsoll_speech::errors::WordErrors;
use plimsoll_speech::follow::Follower;
use plimsoll_speech::interval::{excess_points, rate_interval};
use plimsoll_speech::ledger::{Account, AudioLedger};
use plimsoll_speech::plan::{AudioPlan, FrameLength, SpokenWord};

const BASE_NS: u64 = 3 * NS_PER_S;
const SECONDS: u64 = 60;

fn corpus() -> Corpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets/stt-real/corpus");
    Corpus::pinned(&folder).expect("the committed clips")
}

/// A session of a minute, all of it measured.
struct Session {
    plan: AudioPlan,
    ledger: AudioLedger,
    frames: u64,
}

impl Session {
    fn new(corpus: &Corpus, seed: u64) -> Self {
        let frame = FrameLength::of_ms(40).expect("a length");
        let frames = SECONDS * NS_PER_S / frame.ns();
        let plan = AudioPlan::new(&corpus.clips, frame, frames, seed);
        let due = Periodic {
            first_ns: BASE_NS,
            period_ns: frame.ns(),
        };
        let window = Window {
            start_ns: BASE_NS,
            end_ns: BASE_NS + SECONDS * NS_PER_S,
            grace_end_ns: BASE_NS + (SECONDS + 20) * NS_PER_S,
        };
        let ledger = AudioLedger::new(due, window, plan.utterances(), false);
        Self {
            plan,
            ledger,
            frames,
        }
    }

    /// Writes the frames that are due up to an audio time.
    fn write_until(&mut self, audio_ns: u64) {
        let all_ns = self.frames * self.plan.frame().ns();
        while self.ledger.written_ns() < audio_ns.min(all_ns) {
            self.ledger.written();
        }
    }

    fn finish(mut self) -> Account {
        self.write_until(u64::MAX);
        self.ledger
            .finish(BASE_NS + (SECONDS + 20) * NS_PER_S, self.frames)
            .0
    }
}

/// Every final comes 500 ms after the utterance's end; those of `skipped` never come.
fn transcribed(corpus: &Corpus, seed: u64, skipped: Range<usize>) -> (Account, Vec<String>) {
    let mut session = Session::new(corpus, seed);
    let mut text = Vec::new();
    for (number, said) in session.plan.utterances().to_vec().into_iter().enumerate() {
        if skipped.contains(&number) {
            continue;
        }
        session.write_until(said.end_ns + 500 * NS_PER_MS);
        session.ledger.final_text(
            BASE_NS + said.end_ns + 500 * NS_PER_MS,
            said.onset_ns,
            said.end_ns,
        );
        text.extend(corpus.clips[said.clip].words.clone());
    }
    (session.finish(), text)
}

fn errors(corpus: &Corpus, seed: u64, text: &[String]) -> Vec<WordErrors> {
    let plan = Session::new(corpus, seed).plan;
    let said = plan
        .utterances()
        .iter()
        .map(|one| corpus.clips[one.clip].words.as_slice());
    WordErrors::of_each(&said.collect::<Vec<_>>(), text)
}

#[test]
fn a_recogniser_that_knows_the_truth_passes_and_one_that_skips_is_caught_in_time_and_in_words() {
    let corpus = corpus();
    let (account, text) = transcribed(&corpus, 5, 0..0);
    assert!(
        account.utterances.len() >= 15,
        "{}",
        account.utterances.len()
    );
    assert_eq!(
        (
            account.speech_uncovered_ns,
            account.frames_duplicated,
            account.silent
        ),
        (0, 0, false)
    );
    assert!(account.faults.is_empty());
    for one in &account.utterances {
        let final_ms = one.final_ns.expect("a final") / NS_PER_MS;
        assert!((500..=580).contains(&final_ms), "{final_ms} ms");
    }
    // A pause ends with the next onset: the longest utterance and the delay bound the lag.
    assert!(account.lags.iter().all(|lag| lag.lag_ns < 5 * NS_PER_S));
    let right = errors(&corpus, 5, &text);
    assert_eq!(right.iter().map(WordErrors::total).sum::<u64>(), 0);

    let (account, text) = transcribed(&corpus, 5, 4..6);
    let uncovered: Vec<usize> = account
        .utterances
        .iter()
        .filter(|one| one.uncovered_ns > 0)
        .map(|one| one.utterance)
        .collect();
    assert_eq!(uncovered, [4, 5]);
    let wrong = errors(&corpus, 5, &text);
    let utterances_wrong: Vec<usize> = (0..wrong.len())
        .filter(|at| wrong[*at].total() > 0)
        .collect();
    assert_eq!(utterances_wrong, [4, 5]);

    let bootstrap = Bootstrap {
        confidence: 0.95,
        resamples: 2_000,
        seed: 1,
    };
    let rate = rate_interval(&wrong, &bootstrap).expect("an interval");
    assert!(rate.low < rate.value && rate.value < rate.high, "{rate:?}");
    let excess = excess_points(&wrong, &right, &bootstrap).expect("an interval");
    assert!(
        (excess.value - 100.0 * rate.value).abs() < 1e-9,
        "{excess:?}"
    );
}

/// A dialect without times: words arrive a second after they were said; one in seven is wrong.
#[test]
fn running_text_without_times_covers_all_speech() {
    let corpus = corpus();
    let mut session = Session::new(&corpus, 9);
    let plan = session.plan.clone();
    let said: Vec<SpokenWord> = plan.words(&corpus.clips);
    let mut follower = Follower::new(said.iter().map(|word| word.word).collect());
    for (at, word) in said.iter().enumerate() {
        let now_ns = word.end_ns + NS_PER_S;
        session.write_until(now_ns);
        let written_ns = session.ledger.written_ns();
        let known = said.partition_point(|word| word.end_ns <= written_ns);
        let heard = if at % 7 == 3 { "wrong" } else { word.word };
        let reached = follower.word(&heard, known);
        let upto_ns = said[..reached].last().map_or(0, |word| word.end_ns);
        session
            .ledger
            .final_text(BASE_NS + now_ns, session.ledger.cursor_ns(), upto_ns);
    }
    let account = session.finish();
    assert_eq!(account.speech_uncovered_ns, 0);
    assert!(account.faults.is_empty(), "{:?}", account.faults);
    for one in &account.utterances {
        let final_ms = one.final_ns.expect("a final") / NS_PER_MS;
        assert!((700..1_500).contains(&final_ms), "{final_ms} ms");
    }
}

#[test]
fn text_of_another_session_is_found() {
    let corpus = corpus();
    let clips = &corpus.clips;
    let [own, other] = [&clips[0].words, &clips[1].words];
    assert_eq!(
        crosses(other, own, clips.iter().map(|clip| clip.words.as_slice())),
        Some(1)
    );
    assert_eq!(
        crosses(own, own, clips.iter().map(|clip| clip.words.as_slice())),
        None
    );
}
