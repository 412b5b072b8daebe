use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::session_plan;
use plimsoll_core::session::{Account, Disconnect, Endpoint, Phase, Session, SessionMachines};
use plimsoll_core::speaker::{After, Speaker};
use plimsoll_protocol::server::{ClientFrames, Upgraded};
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use serde_json::{Value, json};

use super::*;
use crate::machines::Callers;
use crate::marks::{
    CALLER_BLOCK_BYTES, CallerMark, REPLY_BLOCK_BYTES, ReplyMark, SpeakMark, TranscriptMark,
};
use crate::script::BLOCKS_PER_CHAR;
use crate::turns::Leg;
use crate::wire::Providers;

/// What the toy gateway does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    NeverSpeaks,
    AnswersAnother,
    SpeaksTwice,
    GoesOnAfterClear,
    FailsReplies,
}

/// A gateway with mock providers in it, which take no time.
struct Toy {
    frames: ClientFrames,
    fault: Fault,
    from: Option<u32>,
    /// What is left of a reply, a block a look.
    rest: Vec<ReplyMark>,
}

impl Toy {
    fn new(fault: Fault) -> Self {
        Self {
            frames: ClientFrames::default(),
            fault,
            from: None,
            rest: Vec::new(),
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        let message: Value = serde_json::from_str(text).expect("JSON");
        match message["type"].as_str() {
            Some("config") => say(
                out,
                &json!({"type": "ready", "stream_id": message["stream_id"]}),
            ),
            Some("speak") => self.speak(message["text"].as_str().expect("a text"), out),
            Some("clear") if self.fault == Fault::GoesOnAfterClear => {}
            Some("clear") => self.rest.clear(),
            other => panic!("{other:?}"),
        }
    }

    fn speak(&mut self, text: &str, out: &mut Vec<u8>) {
        let SpeakMark { vu, turn } = SpeakMark::read(text).expect("a mark");
        match self.fault {
            Fault::NeverSpeaks => return,
            Fault::FailsReplies => {
                return say(
                    out,
                    &json!({"type": "error", "message": "no", "kind": "tts_failed"}),
                );
            }
            _ => {}
        }
        let vu = if self.fault == Fault::AnswersAnother {
            vu + 1
        } else {
            vu
        };
        let blocks = u32::try_from(text.chars().count()).expect("few") * BLOCKS_PER_CHAR;
        let again = if self.fault == Fault::SpeaksTwice {
            2
        } else {
            1
        };
        self.rest = (1..=blocks)
            .flat_map(|block| std::iter::repeat_n(block, again))
            .map(|block| ReplyMark {
                vu,
                turn,
                request: 1,
                block,
                blocks,
                read_ns: 1_000,
                handed_ns: 1_000,
            })
            .rev()
            .collect();
    }

    fn audio(&mut self, audio: &[u8], out: &mut Vec<u8>) {
        for block in audio.chunks(CALLER_BLOCK_BYTES) {
            let mark = CallerMark::read(block).expect("a mark");
            if mark.speech {
                self.from.get_or_insert(mark.block);
            }
            if mark.last {
                let transcript = TranscriptMark {
                    vu: mark.vu,
                    from: self.from.take().expect("speech"),
                    to: mark.block,
                    read_ns: 5,
                    handed_ns: 5,
                };
                say(
                    out,
                    &json!({
                        "type": "stt_result", "transcript": format!("{transcript}hello"), "is_final": true,
                        "is_speech_final": true, "confidence": 0.9,
                    }),
                );
            }
        }
    }
}

fn say(out: &mut Vec<u8>, message: &Value) {
    RawFrame::server(Opcode::Text, message.to_string().as_bytes()).append_to(out);
}

impl Speaker for Toy {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let mut frames = std::mem::take(&mut self.frames);
        let after = frames.take(bytes, |frame| {
            match frame.opcode {
                Opcode::Text => {
                    let text = std::str::from_utf8(frame.unmasked())
                        .expect("UTF-8")
                        .to_owned();
                    self.text(&text, out);
                }
                Opcode::Binary => self.audio(frame.unmasked(), out),
                _ => return After::Close,
            }
            After::GoOn
        });
        self.frames = frames;
        after
    }

    fn unasked(&mut self, _now_ns: u64, _profile: &Profile, out: &mut Vec<u8>) {
        if let Some(mark) = self.rest.pop() {
            let mut block = mark.bytes().to_vec();
            block.resize(REPLY_BLOCK_BYTES, 0);
            RawFrame::server(Opcode::Binary, &block).append_to(out);
        }
    }
}

fn profile() -> Profile {
    Profile {
        ramp_s: 1.0,
        warm_up_s: 1.0,
        measured_s: 80.0,
        grace_s: 10.0,
        ..Profile::quick()
    }
}

fn callers() -> Callers {
    let endpoint = Endpoint {
        host: "127.0.0.1:3001".to_owned(),
        path: "/ws".to_owned(),
        headers: Vec::new(),
    };
    let providers = Providers {
        stt: "deepgram".to_owned(),
        tts: "deepgram".to_owned(),
    };
    Callers::new(endpoint, 5, providers)
}

/// A caller and a gateway, each with 20 ms between two looks.
struct Talk {
    session: CallerSession,
    gateway: Upgraded<Toy>,
    recorder: Recorder<Claim>,
    now_ns: u64,
}

const LOOK_NS: u64 = 20 * NS_PER_MS;

impl Talk {
    fn new(fault: Fault) -> Self {
        let plan = session_plan(0, 1, &profile(), 7);
        Self {
            session: callers().session(&plan),
            gateway: Upgraded::new(Toy::new(fault)),
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
        let mut back = Vec::new();
        if !out.is_empty() {
            assert_eq!(self.gateway.heard(&mut out, &mut back), After::GoOn);
        }
        self.gateway.unasked(self.now_ns, &profile(), &mut back);
        if !back.is_empty() {
            self.session
                .received(self.now_ns, &back, &mut self.recorder);
        }
    }

    /// The whole trial.
    fn run(fault: Fault) -> (Recorder<Claim>, crate::tally::Tally) {
        let mut talk = Self::new(fault);
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
        let tally = crate::tally::Tally::of(&talk.recorder.claims);
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
    // A look of 20 ms is all that anything takes here.
    assert!(
        tally.result.overhead.max_ms <= Some(20.0),
        "{:?}",
        tally.result
    );
    assert!(
        tally.first_audio.overhead.max_ms <= Some(20.0),
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
fn a_trial_is_settled_into_its_own_metrics() {
    let (recorder, tally) = Talk::run(Fault::None);
    let machines = callers();
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
        Claim::Ready { .. } => None,
    });
    assert!(legs.is_some());
}
