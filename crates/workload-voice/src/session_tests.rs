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
    let endpoint = Endpoint {
        host: "127.0.0.1:3001".to_owned(),
        path: "/ws".to_owned(),
        headers: Vec::new(),
    };
    let test = Value::Word(test.to_owned());
    let values = Values::default().with("test", test).or_usual(&PARAMETERS);
    let load = VoiceLoad::of(&values).expect("a load");
    Callers::new(endpoint, &load, 1, &profile())
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
}

const LOOK_NS: u64 = 20 * NS_PER_MS;

impl Talk {
    fn new(fault: Fault) -> Self {
        Self::of("talk", fault)
    }

    fn of(test: &str, fault: Fault) -> Self {
        let plan = session_plan(0, 1, &profile(), 7);
        Self {
            accepts_at_ns: 0,
            unread: Vec::new(),
            session: callers(test).session(&plan),
            gateway: Toy::upgraded(fault),
            recorder: Recorder::default(),
            now_ns: 0,
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
    fn run(fault: Fault) -> (Recorder<Claim>, crate::tally::Tally) {
        Self::new(fault).to_the_end()
    }

    fn to_the_end(self) -> (Recorder<Claim>, crate::tally::Tally) {
        let mut talk = self;
        let end_ns = profile().window().grace_end_ns;
        while talk.now_ns < end_ns
            && !(talk.now_ns > profile().window().end_ns && talk.session.settled())
        {
            talk.look();
        }
        talk.session.finish(talk.now_ns, &mut talk.recorder);
        let ledger = &talk.recorder.ledger;
        assert!(ledger.is_whole(), "{ledger:?}");
        assert_eq!(ledger.frames_due, 10, "a turn each eight seconds");
        let tally = crate::tally::Tally::of(&talk.recorder.claims, None);
        assert_eq!(tally.turns, 10);
        (talk.recorder, tally)
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
    let slow = Talk {
        accepts_at_ns: 400 * NS_PER_MS,
        ..Talk::new(Fault::None)
    };
    let (recorder, slow) = slow.to_the_end();
    assert_eq!(recorder.ledger.sessions_started, 1);
    assert_eq!(quick.connect.max_ms, Some(20.0));
    assert_eq!(slow.connect.max_ms, Some(400.0));
    assert_eq!(slow.ready, quick.ready);
    // The script begins when the session is ready, so turns fall otherwise between two looks; nothing else moves them.
    for legs in [slow.overhead, quick.overhead] {
        assert!(legs.max_ms <= Some(2.0 * 20.0), "{legs:?}");
    }
    assert_eq!((slow.turns, slow.good), (quick.turns, quick.good));
}

#[test]
fn a_trial_is_settled_into_its_own_metrics() {
    let (recorder, tally) = Talk::run(Fault::None);
    let machines = callers("talk");
    let mut ledger = recorder.ledger.clone();
    let mut latency = plimsoll_core::latency::LatencySet::new();
    let account = Account {
        ledger: &mut ledger,
        latency: &mut latency,
    };
    machines.settle(&recorder.claims, account);
    assert_eq!(machines.tally(), Some(&tally));
    assert_eq!(ledger.own, tally.metrics());
    let legs: Option<Leg> = recorder.claims.iter().find_map(|claim| match claim {
        Claim::Turn(turn) => turn.result,
        Claim::Ready { .. } | Claim::Request(_) | Claim::Session(_) => None,
    });
    assert!(legs.is_some());
}
