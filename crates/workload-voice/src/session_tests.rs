use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::session_plan;
use plimsoll_core::session::{Account, Disconnect, Endpoint, Phase, Session, SessionMachines};
use plimsoll_core::speaker::{After, Speaker};
use plimsoll_protocol::server::Upgraded;
use plimsoll_workload::{Value, Values};

use super::*;
use crate::load::VoiceLoad;
use crate::machines::Callers;
use crate::parameters::PARAMETERS;
use crate::tally::Tally;
use crate::toy::{Fault, Toy};
use crate::turns::Leg;

fn profile() -> Profile {
    Profile {
        ramp_s: 1.0,
        warm_up_s: 1.0,
        measured_s: 80.0,
        grace_s: 10.0,
        ..Profile::quick()
    }
}

fn callers(test: &str) -> Callers {
    callers_with(&[("test", test)])
}

/// Of ten callers with these parameters, the first of whom reads slowly in test `slow`.
fn callers_with(words: &[(&'static str, &str)]) -> Callers {
    let endpoint = Endpoint {
        host: "127.0.0.1:3001".to_owned(),
        path: "/ws".to_owned(),
        headers: Vec::new(),
    };
    let values = words
        .iter()
        .fold(Values::default(), |values, (name, word)| {
            values.with(name, Value::Word((*word).to_owned()))
        });
    let load = VoiceLoad::of(&values.or_usual(&PARAMETERS)).expect("a load");
    let seeded = (0..).map(|seed| {
        let mut load = load.clone();
        load.seed = seed;
        load
    });
    let drawn = seeded
        .take(200)
        .find(|load| load.is_slow(0) || load.test.name() != "slow");
    Callers::new(endpoint, &drawn.expect("a seed"), 10, &profile())
}

/// A caller and a gateway, each with 20 ms between two looks.
struct Talk {
    /// Until when the gateway reads nothing that the caller writes.
    accepts_at_ns: u64,
    unread: Vec<u8>,
    session: CallerSession,
    gateway: Upgraded<Toy>,
    recorder: Recorder<Claim>,
    now_ns: u64,
    /// The numbers of the blocks that were sent.
    sent: Vec<u32>,
}

/// The numbers of the blocks in a client's frame; none if it has no audio.
fn blocks_in(frame: &[u8]) -> Vec<u32> {
    // A final binary frame that is masked and has a length of two bytes.
    let Some([0x82, 0xFE, _, _, mask @ ..]) = frame.first_chunk::<8>() else {
        return Vec::new();
    };
    let unmasked = frame[8..].iter().zip(mask.iter().cycle());
    let audio: Vec<u8> = unmasked.map(|(byte, mask)| byte ^ mask).collect();
    let blocks = audio.chunks(crate::marks::CALLER_BLOCK_BYTES);
    blocks
        .filter_map(|block| Some(crate::marks::CallerMark::read(block)?.block))
        .collect()
}

const LOOK_NS: u64 = 20 * NS_PER_MS;

impl Talk {
    fn new(fault: Fault) -> Self {
        Self::of("talk", fault)
    }

    fn of(test: &str, fault: Fault) -> Self {
        Self::with(&[("test", test)], fault)
    }

    fn with(words: &[(&'static str, &str)], fault: Fault) -> Self {
        let plan = session_plan(0, 1, &profile(), 7);
        Self {
            accepts_at_ns: 0,
            unread: Vec::new(),
            session: callers_with(words).session(&plan),
            gateway: Toy::upgraded(fault),
            recorder: Recorder::default(),
            now_ns: 0,
            sent: Vec::new(),
        }
    }

    fn look(&mut self) {
        self.now_ns += LOOK_NS;
        let mut out = Vec::new();
        if self
            .session
            .next_due_ns()
            .is_some_and(|due| due <= self.now_ns)
        {
            self.session.woke(self.now_ns, &mut self.recorder);
        }
        while let Some(transmit) = self.session.transmit(self.now_ns) {
            self.sent.extend(blocks_in(transmit.head));
            out.extend_from_slice(transmit.head);
            self.session.sent(self.now_ns, &mut self.recorder);
        }
        self.unread.append(&mut out);
        if self.now_ns < self.accepts_at_ns {
            return;
        }
        let mut out = std::mem::take(&mut self.unread);
        let mut back = Vec::new();
        if !out.is_empty() {
            let left = self.session.phase() == Phase::Ended;
            let after = if left { After::Close } else { After::GoOn };
            assert_eq!(self.gateway.heard(&mut out, &mut back), after);
        }
        if !back.is_empty() {
            self.session
                .received(self.now_ns, &back, &mut self.recorder);
        }
    }

    /// The whole trial.
    fn run(fault: Fault) -> (Recorder<Claim>, Tally) {
        let mut talk = Self::new(fault);
        let tally = talk.run_to_the_end();
        assert_eq!(tally.turns, 10);
        (talk.recorder, tally)
    }

    /// The rest of the trial.
    fn run_to_the_end(&mut self) -> Tally {
        let window = profile().window();
        while self.now_ns < window.grace_end_ns
            && !(self.now_ns > window.end_ns && self.session.settled())
        {
            self.look();
        }
        self.session.finish(self.now_ns, &mut self.recorder);
        let ledger = &self.recorder.ledger;
        assert!(ledger.is_whole(), "{ledger:?}");
        let tally = Tally::of(&self.recorder.claims, None);
        let due = tally.turns + tally.slow.map_or(0, |slow| slow.turns);
        assert_eq!(due, 10, "a turn each eight seconds");
        assert_eq!(ledger.frames_due, tally.turns);
        tally
    }

    /// The gateway is killed, and started again after so many attempts of the caller's.
    fn kill(&mut self, refuses: usize) {
        let mut how = Disconnect::Reset;
        for _ in 0..=refuses {
            self.session
                .disconnected(self.now_ns, how, &mut self.recorder);
            assert_eq!(self.session.phase(), Phase::Ended);
            let Unconnected::Connects { at_ns, .. } = self.session.unconnected(self.now_ns) else {
                panic!("it comes back");
            };
            assert_eq!(self.session.phase(), Phase::Opening);
            while self.now_ns < at_ns {
                self.now_ns += LOOK_NS;
            }
            how = Disconnect::Refused;
        }
        self.gateway = Toy::upgraded(Fault::None);
    }
}

#[test]
fn an_honest_gateway_completes_every_turn() {
    let (recorder, tally) = Talk::run(Fault::None);
    let ledger = &recorder.ledger;
    assert_eq!(
        (ledger.frames_answered, ledger.frames_lost, ledger.errors),
        (10, 0, 0)
    );
    assert_eq!(
        (ledger.protocol_faults, ledger.content_wrong),
        (0, 0),
        "{:?}",
        ledger.reasons
    );
    assert_eq!((ledger.sessions_started, ledger.sessions_died), (1, 0));
    assert_eq!((tally.complete, tally.good, tally.with_gap), (10, 10, 0));
    assert_eq!(tally.ready.samples, 1);
    // A look of 20 ms is all that a result takes here, and the reply begins with the next message of audio.
    assert!(
        tally.result.overhead.max_ms <= Some(20.0),
        "{:?}",
        tally.result
    );
    assert!(
        tally.first_audio.overhead.max_ms <= Some(120.0),
        "{:?}",
        tally.first_audio
    );
    let newest = recorder
        .interval
        .histogram(plimsoll_core::latency::Series::NewestFromSchedule);
    assert_eq!(newest.len(), 10);
}

#[test]
fn turns_without_a_reply_are_lost() {
    let (recorder, tally) = Talk::run(Fault::NeverSpeaks);
    assert_eq!(
        (recorder.ledger.frames_answered, recorder.ledger.frames_lost),
        (0, 10)
    );
    assert_eq!(tally.result.end_to_end.unanswered, 0);
    assert_eq!(tally.first_audio.end_to_end.unanswered, 10);
    // Each was waited for, and that is in the percentiles.
    assert!(tally.first_audio.end_to_end.p50_ms > Some(1_000.0));
}

#[test]
fn anothers_reply_is_wrong() {
    let (recorder, _) = Talk::run(Fault::AnswersAnother);
    assert_eq!(recorder.ledger.frames_answered, 0);
    assert!(recorder.ledger.content_wrong > 0);
}

#[test]
fn audio_that_comes_twice_is_counted() {
    let (recorder, _) = Talk::run(Fault::SpeaksTwice);
    assert!(
        recorder.ledger.frames_duplicated > 100,
        "{:?}",
        recorder.ledger
    );
}

#[test]
fn an_error_is_an_errored_turn() {
    let (recorder, tally) = Talk::run(Fault::FailsReplies);
    assert_eq!(
        (recorder.ledger.frames_errored, recorder.ledger.frames_lost),
        (10, 0)
    );
    assert_eq!(tally.errors.get("tts_failed"), Some(&10));
}

#[test]
fn stale_audio_after_an_interruption_is_seen() {
    // A seed in which this caller interrupts within its ten turns.
    let (_, honest) = Talk::run(Fault::None);
    let (_, stale) = Talk::run(Fault::GoesOnAfterClear);
    assert_eq!(honest.interrupted, stale.interrupted);
    if honest.interrupted > 0 {
        assert!(
            honest.barge_in.max_ms <= Some(20.0),
            "{:?}",
            honest.barge_in
        );
        assert!(stale.barge_in.max_ms > Some(500.0), "{:?}", stale.barge_in);
    }
}

#[test]
fn a_session_that_is_refused_or_dies_says_why() {
    let mut talk = Talk::new(Fault::None);
    talk.session.received(
        0,
        b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n\r\n",
        &mut talk.recorder,
    );
    assert_eq!(talk.session.phase(), Phase::Ended);
    assert_eq!(talk.recorder.ledger.sessions_failed, 1);
    let mut talk = Talk::new(Fault::None);
    for _ in 0..500 {
        talk.look();
    }
    assert_eq!(talk.session.phase(), Phase::Open);
    talk.session
        .disconnected(talk.now_ns, Disconnect::Reset, &mut talk.recorder);
    assert_eq!(talk.recorder.ledger.sessions_died, 1);
    // What was due of it still counts.
    talk.session
        .finish(profile().window().grace_end_ns, &mut talk.recorder);
    assert_eq!(talk.recorder.ledger.frames_due, 10);
    assert!(talk.recorder.ledger.is_whole());
}

#[test]
fn whoever_hangs_up_neither_dies_nor_loses_turns() {
    let mut talk = Talk::of("calls", Fault::None);
    while talk.now_ns < profile().window().end_ns {
        talk.look();
    }
    assert_eq!(talk.session.phase(), Phase::Ended);
    talk.session
        .disconnected(talk.now_ns, Disconnect::Closed, &mut talk.recorder);
    talk.session.finish(talk.now_ns, &mut talk.recorder);
    let ledger = &talk.recorder.ledger;
    assert_eq!((ledger.sessions_started, ledger.sessions_died), (1, 0));
    assert_eq!(talk.recorder.sessions_open, 0);
    // 30 s of a turn each eight seconds; the last must be able to end.
    assert!((2..=3).contains(&ledger.frames_due), "{ledger:?}");
    assert_eq!(ledger.frames_answered, ledger.frames_due);
    assert!(ledger.is_whole(), "{ledger:?}");
    let heard = talk.recorder.claims.iter().find_map(|claim| match claim {
        Claim::Session(heard) => Some(*heard),
        _ => None,
    });
    let heard = heard.expect("the session's account");
    assert_eq!(
        (heard.finals, heard.replies),
        (ledger.frames_due, ledger.frames_due)
    );
    // 30 s in blocks of 20 ms, and the message that was due while it hung up.
    assert!((1_490..=1_505).contains(&heard.blocks_written), "{heard:?}");
}

/// Fault of a report: all connect at the window's beginning, so that a slow accept is in its percentiles of requests.
#[test]
fn a_slow_accept_moves_connect_and_nothing_else() {
    let (_, quick) = Talk::run(Fault::None);
    let mut talk = Talk {
        accepts_at_ns: 400 * NS_PER_MS,
        ..Talk::new(Fault::None)
    };
    let slow = talk.run_to_the_end();
    assert_eq!(talk.recorder.ledger.sessions_started, 1);
    assert_eq!(quick.connect.max_ms, Some(20.0));
    assert_eq!(slow.connect.max_ms, Some(400.0));
    assert_eq!(slow.ready, quick.ready);
    // The script begins when the session is ready, so turns fall otherwise between two looks. The toy speaks with the caller's
    // next message, 100 ms later. Nothing else moves them.
    for legs in [slow.overhead, quick.overhead] {
        assert!(legs.max_ms <= Some(100.0 + 2.0 * 20.0), "{legs:?}");
    }
    assert_eq!((slow.turns, slow.good), (quick.turns, quick.good));
}

#[test]
fn a_trial_is_settled_into_its_own_metrics() {
    let (recorder, mut tally) = Talk::run(Fault::None);
    tally.split_overhead(&recorder.claims, 0);
    let machines = callers("talk");
    let mut ledger = recorder.ledger.clone();
    let mut latency = plimsoll_core::latency::LatencySet::new();
    let account = Account {
        ledger: &mut ledger,
        latency: &mut latency,
        began_ns: Some(0),
    };
    machines.settle(&recorder.claims, account);
    assert_eq!(machines.tally(), Some(&tally));
    assert_eq!(ledger.own, tally.metrics());
    let legs: Option<Leg> = recorder.claims.iter().find_map(|claim| match claim {
        Claim::Turn(turn) => turn.result,
        _ => None,
    });
    assert!(legs.is_some());
}

#[test]
fn a_caller_who_skips_silence_sends_its_speech_in_blocks_without_a_gap() {
    let mut all = Talk::with(&[("test", "talk")], Fault::SpeaksAtOnce);
    let mut speech = Talk::with(&[("silence", "skip")], Fault::SpeaksAtOnce);
    let tallies = [all.run_to_the_end(), speech.run_to_the_end()];
    for tally in &tallies {
        assert_eq!((tally.complete, tally.good), (10, 10), "{tally:?}");
    }
    let ledger = &speech.recorder.ledger;
    assert_eq!(
        (ledger.protocol_faults, ledger.content_wrong),
        (0, 0),
        "{:?}",
        ledger.reasons
    );
    for (talk, tally) in [&all, &speech].into_iter().zip(&tallies) {
        let numbers = (1..).take(talk.sent.len());
        assert!(talk.sent.iter().copied().eq(numbers), "no gap");
        assert_eq!(tally.heard.blocks_written, talk.sent.len() as u64);
    }
    // 1.5 to 3.5 s of each 8 s, in whole messages.
    let share = speech.sent.len() * 100 / all.sent.len();
    assert!((20..=45).contains(&share), "{share} %");
}

#[test]
fn whoever_crosses_a_restart_does_not_die_and_misses_turns() {
    for refuses in [0, 3] {
        let words = [("test", "faults"), ("fault", "restart")];
        let mut talk = Talk::with(&words, Fault::None);
        let killed_ns = plimsoll_workload::Crash::at_ns(&profile().window());
        while talk.now_ns < killed_ns {
            talk.look();
        }
        assert_eq!(talk.recorder.sessions_open, 1);
        talk.kill(refuses);
        assert_eq!(talk.recorder.sessions_open, 0);
        assert!(talk.now_ns <= killed_ns + 5_500 * NS_PER_MS);
        assert!(!talk.session.settled(), "it is still to come back");
        let tally = talk.run_to_the_end();
        assert_eq!(talk.recorder.sessions_open, 1);
        let ledger = &talk.recorder.ledger;
        assert_eq!((ledger.sessions_started, ledger.sessions_died), (1, 0));
        assert_eq!(ledger.frames_answered + ledger.frames_lost, 10);
        assert!((1..=2).contains(&ledger.frames_lost), "{ledger:?}");
        let faults = [
            ledger.protocol_faults,
            ledger.content_wrong,
            ledger.frames_duplicated,
            ledger.frames_out_of_order,
        ];
        assert_eq!(faults, [0; 4], "{:?}", ledger.reasons);
        assert_eq!(tally.ready.samples, 2);
    }
}

#[test]
fn whoever_does_not_come_back_has_died() {
    let words = [("test", "faults"), ("fault", "restart")];
    let mut talk = Talk::with(&words, Fault::None);
    let killed_ns = plimsoll_workload::Crash::at_ns(&profile().window());
    while talk.now_ns < killed_ns {
        talk.look();
    }
    talk.kill(0);
    talk.session
        .disconnected(talk.now_ns, Disconnect::Refused, &mut talk.recorder);
    let end_ns = profile().window().grace_end_ns;
    talk.session.finish(end_ns, &mut talk.recorder);
    let ledger = &talk.recorder.ledger;
    assert_eq!((ledger.sessions_started, ledger.sessions_died), (1, 1));
    assert!(ledger.reasons.contains_key(NOT_BACK), "{ledger:?}");
    assert_eq!(ledger.frames_due, 10);
    assert!(ledger.is_whole(), "{ledger:?}");
    assert_eq!(talk.recorder.sessions_open, 0);
    // Before the kill, the end of a connection is a death as ever.
    let mut talk = Talk::with(&words, Fault::None);
    for _ in 0..500 {
        talk.look();
    }
    talk.session
        .disconnected(talk.now_ns, Disconnect::Reset, &mut talk.recorder);
    assert_eq!(talk.session.unconnected(talk.now_ns), Unconnected::Over);
    assert_eq!(talk.recorder.ledger.sessions_died, 1);
}

#[test]
fn a_slow_callers_turns_are_counted_apart() {
    let mut talk = Talk::of("slow", Fault::None);
    assert_eq!(
        talk.session.reads_bytes_per_s(),
        Some(slow::READS_BYTES_PER_S)
    );
    let tally = talk.run_to_the_end();
    let ledger = &talk.recorder.ledger;
    assert_eq!(
        (tally.turns, ledger.frames_due, ledger.frames_sent),
        (0, 0, 0)
    );
    let slow = tally.slow.expect("slow callers");
    assert_eq!((slow.callers, slow.turns, slow.died), (1, 10, 0));
    assert_eq!(slow.complete, 10);
    assert!(slow.check().holds);
    // What it heard is in the accounts.
    assert_eq!(tally.heard.finals, 10);
    assert_eq!(
        Talk::of("talk", Fault::None).session.reads_bytes_per_s(),
        None
    );
}

#[test]
fn a_slow_callers_death_is_shown_and_is_nobodys_gate() {
    let mut talk = Talk::of("slow", Fault::None);
    for _ in 0..1_000 {
        talk.look();
    }
    talk.session
        .disconnected(talk.now_ns, Disconnect::Closed, &mut talk.recorder);
    assert_eq!(talk.session.phase(), Phase::Ended);
    let end_ns = profile().window().grace_end_ns;
    talk.session.finish(end_ns, &mut talk.recorder);
    let ledger = &talk.recorder.ledger;
    assert_eq!((ledger.sessions_died, ledger.frames_lost), (0, 0));
    let told = "slow caller: connection closed by the target";
    assert_eq!(ledger.reasons.get(told), Some(&1));
    let tally = Tally::of(&talk.recorder.claims, None);
    let slow = tally.slow.expect("a slow caller");
    assert_eq!((slow.died, slow.turns), (1, 10));
    assert!(slow.complete < 10);
}
