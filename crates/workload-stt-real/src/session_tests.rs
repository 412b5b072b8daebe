use plimsoll_core::latency::LatencySet;
use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::session::{self, Endpoint, SessionMachines};
use plimsoll_core::speaker::{After, Speaker};
use plimsoll_protocol::server::{ClientFrames, Upgraded};
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use plimsoll_speech::plan::FrameLength;
use serde_json::json;

use super::*;
use crate::corpus::Speech;
use crate::dialect::{Options, by_name};
use crate::machines::Streams;
use crate::tally::Tally;

const SEED: u64 = 7;
const FRAME_MS: u32 = 40;
/// Two sides look at each other this often.
const LOOK_NS: u64 = 20 * NS_PER_MS;

fn profile() -> Profile {
    Profile {
        ramp_s: 1.0,
        warm_up_s: 2.0,
        measured_s: 40.0,
        grace_s: 8.0,
        ..Profile::quick()
    }
}

fn streams(dialect: &str) -> Streams {
    let endpoint = Endpoint {
        host: "127.0.0.1:3001".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
    };
    let dialect = by_name(dialect, &Options::default()).expect("a dialect");
    let frame = FrameLength::of_ms(FRAME_MS).expect("a length");
    let clips = Speech::built_in().clips;
    let shared = Shared::new(endpoint, dialect, (&clips, frame), 1, &profile());
    Streams::new(shared, (&profile(), SEED), None)
}

/// What a server does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// One utterance is in no final.
    LosesOne,
    /// Each final comes twice.
    Doubles,
    /// Finals have other words.
    Garbles,
    /// Finals come when the audio is over.
    LateForAll,
    /// The server leaves with an error.
    Leaves,
    /// No word comes.
    Silent,
}

/// A server of the deepgram dialect that knows what will be said: an utterance is final half a second after its end.
struct Toy {
    frames: ClientFrames,
    fault: Fault,
    /// Onset, end and words of what was not final yet, the next one last.
    rest: Vec<(u64, u64, String)>,
    heard_ns: u64,
    cursor_ns: u64,
    finals: u32,
}

impl Toy {
    fn finals(&mut self, upto_ns: u64, out: &mut Vec<u8>) {
        while let Some((_, end_ns, words)) = self.rest.last().cloned()
            && end_ns + 500 * NS_PER_MS <= upto_ns
        {
            self.rest.pop();
            self.finals += 1;
            let said = match self.fault {
                Fault::Silent => continue,
                Fault::LosesOne if self.finals == 4 => {
                    self.cursor_ns = end_ns;
                    continue;
                }
                Fault::Garbles => "seven bright purple trains went sideways yesterday".to_owned(),
                _ => words,
            };
            let times = if self.fault == Fault::Doubles { 2 } else { 1 };
            let seconds = |ns: u64| ns as f64 / 1e9;
            for _ in 0..times {
                let message = json!({
                    "type": "Results", "is_final": true, "speech_final": true,
                    "start": seconds(self.cursor_ns), "duration": seconds(end_ns - self.cursor_ns),
                    "channel": {"alternatives": [{"transcript": said, "words": []}]},
                });
                say(out, &message);
            }
            self.cursor_ns = end_ns;
        }
    }
}

fn say(out: &mut Vec<u8>, message: &serde_json::Value) {
    RawFrame::server(Opcode::Text, message.to_string().as_bytes()).append_to(out);
}

impl Speaker for Toy {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let mut frames = std::mem::take(&mut self.frames);
        let after = frames.take(bytes, |frame| match frame.opcode {
            Opcode::Binary => {
                self.heard_ns += u64::from(FRAME_MS) * NS_PER_MS;
                if self.fault == Fault::Leaves && self.heard_ns > 20_000 * NS_PER_MS {
                    RawFrame::server(Opcode::Close, &1011_u16.to_be_bytes()).append_to(out);
                    return After::Close;
                }
                if self.fault != Fault::LateForAll {
                    self.finals(self.heard_ns, out);
                }
                After::GoOn
            }
            Opcode::Text => {
                self.finals(u64::MAX, out);
                say(out, &json!({"type": "Metadata"}));
                After::GoOn
            }
            _ => After::Close,
        });
        self.frames = frames;
        after
    }
}

/// A whole trial of one session.
fn trial(fault: Fault) -> (Recorder<Claim>, Tally) {
    let streams = streams("deepgram");
    let plan = streams.plan(0, 1, &profile(), SEED);
    let mut session = streams.session(&plan);
    let mut recorder = Recorder::default();
    let mut server: Option<Upgraded<Toy>> = None;
    let end_ns = profile().window().grace_end_ns;
    let mut now_ns = plan.connect_at_ns;
    session.connected(now_ns, &mut recorder);
    while now_ns < end_ns {
        now_ns += LOOK_NS;
        if session.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            session.woke(now_ns, &mut recorder);
        }
        let mut out = Vec::new();
        while let Some(transmit) = session.transmit(now_ns) {
            out.extend_from_slice(transmit.head);
            out.extend_from_slice(transmit.body);
            session.sent(now_ns, &mut recorder);
        }
        let server = server.get_or_insert_with(|| Upgraded::new(toy(&session, fault, now_ns)));
        let mut back = Vec::new();
        if !out.is_empty() && session.phase() != Phase::Ended {
            server.heard(&mut out, &mut back);
        }
        if !back.is_empty() {
            session.received(now_ns, &back, &mut recorder);
        }
    }
    session.finish(end_ns, &mut recorder);
    let mut latency = LatencySet::new();
    let account = session::Account {
        ledger: &mut recorder.ledger,
        latency: &mut latency,
        began_ns: Some(0),
    };
    streams.settle(&recorder.claims, account);
    let tally = streams.tally().expect("a tally").clone();
    (recorder, tally)
}

/// A server that knows what the session will say if it is open at this time.
fn toy(session: &StreamSession, fault: Fault, open_ns: u64) -> Toy {
    let Stream { shared, plan, .. } = &session.stream;
    let script = shared.scripts.of(plan, open_ns);
    let clips = shared.scripts.clips();
    let mut rest: Vec<_> = script
        .audio
        .utterances()
        .iter()
        .map(|said| (said.onset_ns, said.end_ns, clips[said.clip].words.join(" ")))
        .collect();
    rest.reverse();
    Toy {
        frames: ClientFrames::default(),
        fault,
        rest,
        heard_ns: 0,
        cursor_ns: 0,
        finals: 0,
    }
}

#[test]
fn an_honest_server_answers_every_frame_and_every_word() {
    let (recorder, tally) = trial(Fault::None);
    let ledger = &recorder.ledger;
    assert_eq!(ledger.frames_due, 1_000);
    assert!(ledger.is_whole());
    assert_eq!((ledger.frames_sent, ledger.frames_answered), (1_000, 1_000));
    assert_eq!((ledger.frames_lost, ledger.frames_duplicated), (0, 0));
    assert_eq!((ledger.sessions_started, ledger.sessions_died), (1, 0));
    assert!(ledger.reasons.is_empty(), "{:?}", ledger.reasons);
    assert!(tally.utterances > 6, "{}", tally.utterances);
    assert_eq!(tally.final_result.unanswered, 0);
    let final_ms = tally.final_result.p50_ms.unwrap();
    assert!((480.0..600.0).contains(&final_ms), "{final_ms}");
    assert_eq!(tally.wer.unwrap().value, 0.0);
    assert_eq!((tally.speech_uncovered_ms, tally.sessions_silent), (0, 0));
    // Longer than an utterance nobody is behind.
    assert!(tally.lag.max_ms.unwrap() < 6_000.0);
    assert_eq!(tally.metrics()["lag_growth_ms_per_s"], 0.0);
    // Written once, answered once: Little's law can be checked.
    assert_eq!(recorder.residence.frames, 1_000);
}

#[test]
fn a_lost_utterance_is_speech_that_no_final_covers() {
    let (recorder, tally) = trial(Fault::LosesOne);
    assert!(recorder.ledger.is_whole());
    assert!(
        recorder.ledger.frames_lost > 20,
        "{}",
        recorder.ledger.frames_lost
    );
    assert_eq!(tally.speech_uncovered_ms, 40 * recorder.ledger.frames_lost);
    assert_eq!(tally.final_result.unanswered, 1);
    assert!(tally.words.deletions > 3);
    assert_eq!(
        recorder.interval.summary().newest.from_schedule.censored,
        recorder.ledger.frames_lost
    );
}

#[test]
fn doubled_garbled_and_silent_are_told_apart() {
    let (_, doubled) = trial(Fault::Doubles);
    assert!(doubled.speech_duplicated_ms > 10_000);
    let (_, garbled) = trial(Fault::Garbles);
    assert!(garbled.wer.unwrap().value > 0.8);
    assert_eq!(
        (garbled.speech_uncovered_ms, garbled.speech_duplicated_ms),
        (0, 0)
    );
    let (recorder, silent) = trial(Fault::Silent);
    assert_eq!(silent.sessions_silent, 1);
    assert!(recorder.ledger.is_whole() && recorder.ledger.frames_lost > 500);
}

#[test]
fn lag_that_grows_is_certain_after_a_while() {
    let (_, tally) = trial(Fault::LateForAll);
    let growth = tally.lag_growth_ms_per_s.unwrap();
    assert!((500.0..1_100.0).contains(&growth), "{growth}");
    assert_eq!(tally.speech_uncovered_ms, 0);
    assert!(tally.final_result.max_ms.unwrap() > 30_000.0);
}

#[test]
fn whoever_is_left_by_the_server_died_and_its_speech_is_lost() {
    let (recorder, tally) = trial(Fault::Leaves);
    let ledger = &recorder.ledger;
    assert_eq!((ledger.sessions_died, ledger.frames_due), (1, 1_000));
    assert!(ledger.is_whole() && ledger.frames_lost > 300);
    assert!(
        ledger.reasons.contains_key("ended by the server: internal"),
        "{:?}",
        ledger.reasons
    );
    assert!(tally.final_result.unanswered > 2);
}

#[test]
fn a_refused_session_has_failed_by_its_kind() {
    let streams = streams("deepgram");
    let plan = streams.plan(0, 1, &profile(), SEED);
    for (status, reason) in [
        (401, "refused: auth"),
        (429, "refused: rate"),
        (503, "refused: capacity"),
    ] {
        let mut session = streams.session(&plan);
        let mut recorder = Recorder::default();
        session.connected(0, &mut recorder);
        while session.transmit(0).is_some() {
            session.sent(0, &mut recorder);
        }
        let answer = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
        session.received(1, answer.as_bytes(), &mut recorder);
        assert_eq!(session.phase(), Phase::Ended);
        assert_eq!(recorder.ledger.sessions_failed, 1);
        assert!(
            recorder.ledger.reasons.contains_key(reason),
            "{:?}",
            recorder.ledger.reasons
        );
    }
}

/// Each turn of a lane is a session that arrives by the clock and ends with its transcript.
#[test]
fn a_turn_is_a_session_with_a_connection_of_its_own() {
    let streams = streams("wyoming");
    let planned = (0..40).map(|id| streams.plan(id, 40, &profile(), SEED));
    let planned: Vec<SessionPlan> = planned
        .filter(|plan| plan.connect_at_ns != SessionPlan::WITH_WORK)
        .collect();
    assert!((8..20).contains(&planned.len()), "{}", planned.len());
    assert!(
        planned
            .windows(2)
            .all(|two| two[0].first_due_ns + 1_400 * NS_PER_MS < two[1].first_due_ns)
    );
    let plan = planned[4];
    let mut session = streams.session(&plan);
    let mut recorder = Recorder::default();
    let mut now_ns = plan.connect_at_ns;
    session.connected(now_ns, &mut recorder);
    let mut written = Vec::new();
    while !written.ends_with(b"{\"type\":\"audio-stop\"}\n") {
        now_ns += LOOK_NS;
        while let Some(transmit) = session.transmit(now_ns) {
            written.extend_from_slice(transmit.head);
            written.extend_from_slice(transmit.body);
            session.sent(now_ns, &mut recorder);
        }
        assert!(now_ns < plan.first_due_ns + 10_000 * NS_PER_MS);
    }
    let transcript = b"{\"type\":\"transcript\",\"data\":{\"text\":\"some words\"}}\n";
    session.received(now_ns + 1, transcript, &mut recorder);
    assert_eq!(session.phase(), Phase::Ended);
    session.finish(now_ns + 2, &mut recorder);
    let ledger = &recorder.ledger;
    assert!(ledger.frames_due > 30 && ledger.frames_answered == ledger.frames_due);
    assert_eq!((ledger.sessions_started, ledger.sessions_died), (1, 0));
    assert_eq!(recorder.claims[0].account.utterances.len(), 1);
}
