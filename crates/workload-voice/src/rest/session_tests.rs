use plimsoll_core::latency::Series;
use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::session_plan;
use plimsoll_core::session::Endpoint;

use super::*;
use crate::marks::ReplyMark;
use crate::rest::record;
use crate::rest::request::Kind;
use crate::rest::visit;
use crate::script::BLOCK_NS;
use crate::wire::Providers;

const OK: &str = r#"{"status":"OK"}"#;
const SEED: u64 = 9;

fn plan(id: u32) -> SessionPlan {
    session_plan(id, 100, &Profile::quick(), 7)
}

/// A connection and its gateway, which says what a test tells it.
struct Rig {
    session: RestSession,
    recorder: Recorder<Claim>,
    now_ns: u64,
}

impl Rig {
    fn new(book: Book, plan: &SessionPlan, visit: VecDeque<Asked>) -> Self {
        let endpoint = Endpoint {
            host: "127.0.0.1:3001".to_owned(),
            path: "/ws".to_owned(),
            headers: Vec::new(),
        };
        let providers = Providers {
            stt: "deepgram".to_owned(),
            tts: "deepgram".to_owned(),
        };
        let form = Form::new(&endpoint, &providers);
        let shared = Arc::new(Shared { form, book });
        Self {
            session: RestSession::new(&shared, plan, visit),
            recorder: Recorder::default(),
            now_ns: plan.window.start_ns,
        }
    }

    /// A connection of a pool, which is open.
    fn pool() -> Self {
        let mut rig = Self::new(Book::Ledger, &plan(0), VecDeque::new());
        rig.connect();
        rig
    }

    /// A visit that has begun.
    fn visit(kinds: &[Kind]) -> Self {
        let plan = plan(0);
        let start_ns = plan.window.start_ns;
        let visit = (0..).zip(kinds);
        let visit = visit.map(|(place, kind)| asked(*kind, start_ns + place * 300 * NS_PER_MS));
        let mut rig = Self::new(Book::Apart, &plan, visit.collect());
        rig.connect();
        rig
    }

    fn connect(&mut self) {
        self.session.connecting(self.now_ns, &mut self.recorder);
        self.session.connected(self.now_ns, &mut self.recorder);
    }

    fn later(&mut self, ms: u64) {
        self.now_ns += ms * NS_PER_MS;
        if self
            .session
            .next_due_ns()
            .is_some_and(|due| due <= self.now_ns)
        {
            self.session.woke(self.now_ns, &mut self.recorder);
        }
    }

    /// What it writes now.
    fn written(&mut self) -> String {
        let mut all = Vec::new();
        while let Some(transmit) = self.session.transmit(self.now_ns) {
            all.extend_from_slice(transmit.head);
            self.session.sent(self.now_ns, &mut self.recorder);
        }
        String::from_utf8(all).expect("text")
    }

    fn say(&mut self, bytes: &[u8]) {
        self.session
            .received(self.now_ns, bytes, &mut self.recorder);
    }

    fn answer(&mut self, status: u16, body: &str) {
        let length = body.len();
        self.say(
            format!("HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes(),
        );
    }

    fn lose(&mut self, how: Disconnect) {
        self.session
            .disconnected(self.now_ns, how, &mut self.recorder);
    }

    /// Asks this of a pool's connection, a millisecond ago.
    fn ask(&mut self, kind: Kind) {
        self.recorder.ledger.frames_due += 1;
        self.session.take(asked(kind, self.now_ns));
        self.later(1);
        assert!(!self.written().is_empty());
    }

    fn finish(&mut self) {
        self.session.finish(self.now_ns, &mut self.recorder);
        assert!(
            self.recorder.ledger.is_whole(),
            "{:?}",
            self.recorder.ledger
        );
    }

    fn requests(&self) -> Vec<record::Claim> {
        let claims = self.recorder.claims.iter();
        let requests = claims.filter_map(|claim| match claim {
            Claim::Request(request) => Some(*request),
            _ => None,
        });
        requests.collect()
    }

    fn because(&self, reason: &str) -> Option<u64> {
        self.recorder.ledger.reasons.get(reason).copied()
    }
}

fn asked(kind: Kind, at_ns: u64) -> Asked {
    Asked {
        kind,
        vu: 7,
        seed: SEED,
        at_ns,
        measured: true,
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const END: &[u8] = b"0\r\n\r\n";

/// The chunk with this block of the reply to caller `vu`.
fn block(vu: u32, number: u32) -> Vec<u8> {
    let mark = ReplyMark {
        vu,
        turn: 0,
        request: 1,
        block: number,
        blocks: asked(Kind::Speak, 0).reply_blocks(),
        read_ns: 1_000,
        handed_ns: 1_000 + 80 * NS_PER_MS,
    };
    let mut audio = Vec::new();
    mark.append_block(&mut audio);
    [format!("{:x}\r\n", audio.len()).as_bytes(), &audio, b"\r\n"].concat()
}

/// A reply in real time that begins 100 ms after its text, with these blocks.
fn speak(rig: &mut Rig, blocks: impl Iterator<Item = u32>) {
    rig.later(99);
    rig.say(HEAD);
    for number in blocks {
        rig.say(&block(7, number));
        rig.later(BLOCK_NS / NS_PER_MS);
    }
}

fn all_blocks() -> std::ops::RangeInclusive<u32> {
    1..=asked(Kind::Speak, 0).reply_blocks()
}

#[test]
fn a_right_answer_counts_from_its_schedule() {
    let mut rig = Rig::pool();
    rig.ask(Kind::Root);
    rig.later(4);
    rig.answer(200, OK);
    assert!(rig.session.is_free() && rig.session.settled());
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.frames_answered, ledger.content_wrong), (1, 0));
    // Histograms have three digits.
    let newest = |series| rig.recorder.interval.histogram(series).max();
    assert!((5_000..5_005).contains(&newest(Series::NewestFromSchedule)));
    assert!((4_000..4_005).contains(&newest(Series::NewestFromWrite)));
    assert!(rig.requests().is_empty(), "the ledger says all");
}

/// Fault of a report: a status below 500 was a success, for bodies without required fields.
#[test]
fn a_status_alone_is_no_success() {
    let mut rig = Rig::pool();
    for (status, body) in [(200, "{}"), (200, ""), (404, OK), (503, OK)] {
        rig.ask(Kind::Root);
        rig.answer(status, body);
    }
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.frames_answered, ledger.frames_errored), (0, 4));
    assert_eq!(ledger.content_wrong, 2);
    assert_eq!(rig.because("GET /: wrong_body"), Some(2));
    assert_eq!(rig.because("GET /: http_status 503"), Some(1));
    assert_eq!(
        rig.recorder
            .interval
            .histogram(Series::NewestFromSchedule)
            .len(),
        0
    );
}

#[test]
fn what_never_comes_is_lost_with_the_time_we_waited() {
    let mut rig = Rig::pool();
    rig.ask(Kind::Root);
    rig.later(10_000);
    assert_eq!(rig.session.phase(), Phase::Ended);
    assert_eq!(rig.because("GET /: timeout"), Some(1));
    let connects = rig.session.unconnected(rig.now_ns);
    assert!(
        matches!(connects, Unconnected::Connects { .. }),
        "{connects:?}"
    );
    rig.finish();
    let newest = rig.recorder.interval.histogram(Series::NewestFromSchedule);
    assert!(newest.max() >= 10_000_000);
    assert_eq!(rig.recorder.ledger.frames_lost, 1);
}

#[test]
fn a_whole_reply_is_right_and_its_first_byte_counts() {
    let mut rig = Rig::pool();
    rig.ask(Kind::Speak);
    speak(&mut rig, all_blocks());
    rig.say(END);
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.frames_answered, ledger.content_wrong), (1, 0));
    let [request] = rig.requests()[..] else {
        panic!("{:?}", rig.requests())
    };
    let leg = request.leg.expect("a first byte");
    assert_eq!(leg.end_to_end_ns, 100 * NS_PER_MS);
    assert_eq!(leg.overhead_ns(), Some(20 * NS_PER_MS));
    assert!(request.right && !request.gap);
    // It lasts for seconds, and nobody calls that a latency.
    let newest = rig.recorder.interval.histogram(Series::NewestFromSchedule);
    assert!(
        (99_900..100_200).contains(&newest.max()),
        "{}",
        newest.max()
    );
    let heard = rig.recorder.claims.iter().find_map(|claim| match claim {
        Claim::Session(heard) => Some(*heard),
        _ => None,
    });
    let heard = heard.expect("the connection's account");
    assert_eq!((heard.speaks, heard.replies), (1, 1));
    assert_eq!(heard.reply_blocks, u64::from(*all_blocks().end()));
    assert_eq!(heard.replies_provider_ns, 80 * NS_PER_MS);
}

#[test]
fn a_reply_that_is_not_whole_or_not_ours_is_wrong() {
    let last = *all_blocks().end();
    // Without the last block, and with the body's end; a block missing; one twice; two in the wrong order.
    let short: Vec<u32> = (1..last).collect();
    let missing: Vec<u32> = all_blocks().filter(|number| *number != 9).collect();
    let twice: Vec<u32> = [1].into_iter().chain(all_blocks()).collect();
    let swapped: Vec<u32> = [1, 3, 2].into_iter().chain(4..=last).collect();
    for (blocks, wrong, doubled, reordered) in [
        (short, 1, 0, 0),
        (missing, 1, 0, 0),
        (twice, 0, 1, 0),
        (swapped, 1, 0, 1),
        (Vec::new(), 1, 0, 0),
    ] {
        let mut rig = Rig::pool();
        rig.ask(Kind::Speak);
        speak(&mut rig, blocks.iter().copied());
        rig.say(END);
        rig.finish();
        let ledger = &rig.recorder.ledger;
        assert_eq!(
            (ledger.frames_answered, ledger.frames_errored),
            (0, 1),
            "{blocks:?}"
        );
        let seen = (
            ledger.content_wrong,
            ledger.frames_duplicated,
            ledger.frames_out_of_order,
        );
        assert!(
            seen.0 >= wrong && seen.1 >= doubled && seen.2 >= reordered,
            "{seen:?}"
        );
        assert!(!rig.requests()[0].right);
    }
    let mut rig = Rig::pool();
    rig.ask(Kind::Speak);
    rig.say(HEAD);
    rig.say(&block(8, 1));
    rig.say(END);
    rig.finish();
    assert_eq!(rig.because("audio of another caller or turn"), Some(1));
    assert_eq!(rig.recorder.ledger.frames_errored, 1);
    let mut rig = Rig::pool();
    rig.ask(Kind::Speak);
    rig.answer(200, "{}");
    assert_eq!(rig.recorder.ledger.content_wrong, 1, "no audio at all");
}

#[test]
fn a_cut_body_fails_and_a_late_block_is_a_gap() {
    let mut rig = Rig::pool();
    rig.ask(Kind::Speak);
    speak(&mut rig, 1..=5);
    rig.later(200);
    rig.say(&block(7, 6));
    rig.lose(Disconnect::Closed);
    rig.finish();
    assert_eq!(rig.because("POST /speak: closed_in_answer"), Some(1));
    let request = rig.requests()[0];
    assert!(request.gap && !request.right && request.leg.is_some());
}

#[test]
fn a_get_is_asked_again_on_a_connection_that_was_just_closed_and_a_post_is_not() {
    for (kind, again) in [(Kind::Root, true), (Kind::Speak, false)] {
        let mut rig = Rig::pool();
        rig.ask(Kind::Root);
        rig.answer(200, OK);
        rig.ask(kind);
        rig.lose(Disconnect::Reset);
        assert_eq!(rig.recorder.ledger.frames_errored, u64::from(!again));
        rig.session.unconnected(rig.now_ns);
        rig.connect();
        assert_eq!(!rig.written().is_empty(), again);
        if again {
            rig.answer(200, OK);
        }
        rig.finish();
        assert_eq!(rig.recorder.ledger.frames_answered, 1 + u64::from(again));
        assert_eq!(
            rig.recorder.ledger.frames_sent_in_all, 2,
            "written once more, counted once"
        );
    }
}

#[test]
fn what_nobody_asked_for_is_a_fault() {
    let mut rig = Rig::pool();
    rig.answer(200, OK);
    assert_eq!(rig.recorder.ledger.protocol_faults, 1);
    let mut rig = Rig::pool();
    rig.ask(Kind::Root);
    rig.say(b"SMTP ready\r\n");
    rig.finish();
    assert_eq!(rig.because("GET /: bad_answer"), Some(1));
}

#[test]
fn a_visit_asks_one_after_the_other_and_is_no_turn() {
    let mut rig = Rig::visit(&[Kind::Root, Kind::Voices]);
    let first = rig.written();
    assert!(first.starts_with("GET / ") && !first.contains("Connection: close"));
    // The answer is late, and the next request has been due for 100 ms.
    rig.later(400);
    assert_eq!(rig.written(), "");
    assert_eq!(rig.session.owed(rig.now_ns), 0, "the gateway holds it back");
    rig.answer(200, OK);
    assert_eq!(rig.session.owed(rig.now_ns), 1);
    let second = rig.written();
    assert!(second.starts_with("GET /voices ") && second.contains("Connection: close"));
    rig.later(5);
    rig.answer(
        200,
        r#"{"deepgram":[{"id":"v","name":"V","language":"","gender":"","accent":"","sample":""}]}"#,
    );
    let requests = rig.requests();
    let took_ms = |request: &record::Claim| request.leg.map(|leg| leg.end_to_end_ns / NS_PER_MS);
    assert!(requests.iter().all(|request| request.right));
    assert_eq!(
        requests.iter().map(took_ms).collect::<Vec<_>>(),
        [Some(400), Some(105)]
    );
    let ledger = &rig.recorder.ledger;
    assert_eq!(
        (
            ledger.frames_due,
            ledger.frames_answered,
            ledger.frames_sent
        ),
        (0, 0, 0)
    );
    assert_eq!(
        rig.recorder
            .interval
            .histogram(Series::NewestFromSchedule)
            .len(),
        0
    );
    assert_eq!(
        (ledger.sessions_started, rig.recorder.sessions_open),
        (0, 0)
    );
    // The gateway closes first, or the visitor does after a while.
    assert_eq!(
        (rig.session.phase(), rig.session.settled()),
        (Phase::Open, true)
    );
    rig.later(1_000);
    assert_eq!(rig.session.phase(), Phase::Ended);
    assert_eq!(rig.session.unconnected(rig.now_ns), Unconnected::Over);
}

#[test]
fn a_visit_that_ends_early_has_failed_in_all_that_it_still_had_to_ask() {
    let mut rig = Rig::visit(&[Kind::Root, Kind::Voices, Kind::Speak]);
    rig.written();
    rig.lose(Disconnect::Reset);
    rig.finish();
    let requests = rig.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| !request.right));
    // And one that never got in.
    let plan = plan(0);
    let visit = visit::requests(&plan);
    let asked = visit.len();
    let mut rig = Rig::new(Book::Apart, &plan, visit);
    rig.now_ns = plan.first_due_ns;
    rig.lose(Disconnect::Refused);
    assert_eq!(rig.session.unconnected(rig.now_ns), Unconnected::Over);
    assert!(rig.session.settled());
    assert_eq!((rig.recorder.ledger.sessions_failed, asked > 0), (0, true));
}
