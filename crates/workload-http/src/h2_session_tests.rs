//! Connections of HTTP/2 with a made-up clock, against our own other side.

use std::sync::Arc;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{SessionPlan, session_plan};
use plimsoll_core::session::{Disconnect, Phase, Session, Unconnected};
use plimsoll_workload::Values;

use crate::account::Counts;
use crate::arrivals::Connection;
use crate::ask::Ask;
use crate::h1::{Method, Path, RequestSpec};
use crate::h2::{Answer, ErrorCode, RequestEvent, Server, Template};
use crate::h2_session::H2Session;
use crate::load::HttpLoad;
use crate::parameters::PARAMETERS;
use crate::rig::profile;
use crate::schedule::Due;
use crate::session::{Shared, Speaks};

/// A connection of two streams, and its server.
struct Rig {
    session: H2Session,
    server: Server,
    recorder: Recorder<Counts>,
    /// The streams whose requests have arrived.
    asked: Vec<u32>,
    /// Of each first write of a request: since when it was held back.
    held_until_ns: Vec<Option<u64>>,
    number: u64,
}

fn server() -> Server {
    Server::new([Answer::new(200, &[], b"ok"), Answer::new(503, &[], b"")].into())
}

impl Rig {
    /// Open since 0, with the server's settings read.
    fn open() -> Self {
        let spec = RequestSpec {
            method: Method::Get,
            path: Path::Fixed("/"),
            host: "h",
            fields: &[],
            body_bytes: None,
            close: false,
        };
        let load = HttpLoad::of(&Values::default().or_usual(&PARAMETERS)).expect("a load");
        let shared = Shared {
            ask: Ask::new(&load, true, 0),
            template: Arc::from([Template::new(&spec).expect("a request")]),
            a_connection_each: false,
            may_ask_again: true,
        };
        let window = Window {
            start_ns: 0,
            end_ns: 10 * NS_PER_S,
            grace_end_ns: 20 * NS_PER_S,
        };
        let plan = SessionPlan {
            window,
            ..session_plan(0, 1, &profile(), 1)
        };
        let mut rig = Self {
            session: H2Session::new(Arc::new(shared), &plan, 2),
            server: server(),
            recorder: Recorder::default(),
            asked: Vec::new(),
            held_until_ns: Vec::new(),
            number: 0,
        };
        rig.connect(0);
        rig
    }

    fn connect(&mut self, now_ns: u64) {
        self.server = server();
        self.asked.clear();
        self.session.connecting(now_ns, &mut self.recorder);
        self.session.connected(now_ns, &mut self.recorder);
        self.exchange(now_ns);
    }

    /// A request that is due at `due_ns` is handed out at `now_ns`.
    fn take(&mut self, due_ns: u64, now_ns: u64) {
        let due = Due {
            number: self.number,
            at_ns: due_ns,
            measured: true,
        };
        self.number += 1;
        self.recorder.ledger.frames_due += 1;
        self.session.take(due);
        self.exchange(now_ns);
    }

    /// Moves bytes until nobody has more to say.
    fn exchange(&mut self, now_ns: u64) {
        let mut bytes = Vec::new();
        loop {
            while let Some(transmit) = self.session.transmit(now_ns) {
                bytes.clear();
                bytes.extend_from_slice(transmit.head);
                bytes.extend_from_slice(transmit.body);
                if transmit.due_ns.is_some() {
                    self.held_until_ns.push(transmit.held_until_ns);
                }
                self.session.sent(now_ns, &mut self.recorder);
                let asked = &mut self.asked;
                let heard = self.server.received(&bytes, |event| {
                    if let RequestEvent::End { stream } = event {
                        asked.push(stream);
                    }
                });
                heard.expect("the client keeps the rules");
            }
            if !self.server.has_output() {
                return;
            }
            bytes.clear();
            self.server.take_output(&mut bytes);
            self.session.received(now_ns, &bytes, &mut self.recorder);
        }
    }

    /// The oldest request is answered.
    fn answer(&mut self, kind: usize, now_ns: u64) {
        let stream = self.asked.remove(0);
        self.server.answer(stream, kind, false);
        self.exchange(now_ns);
    }

    fn finish(&mut self, now_ns: u64) -> ([u64; 4], Counts) {
        self.session.finish(now_ns, &mut self.recorder);
        let ledger = &self.recorder.ledger;
        assert!(ledger.is_whole(), "{ledger:?}");
        let account = [
            ledger.frames_due,
            ledger.frames_answered,
            ledger.frames_errored,
            ledger.frames_lost,
        ];
        (account, self.recorder.claims[0])
    }

    fn reasons(&self) -> Vec<(&str, u64)> {
        let reasons = self.recorder.ledger.reasons.iter();
        reasons
            .map(|(name, count)| (name.as_str(), *count))
            .collect()
    }
}

const MS: u64 = NS_PER_MS;

/// While a stream is left, an answer holds nothing back: a late write is the client's own doing.
#[test]
fn only_a_full_connection_holds_a_request_back() {
    let mut rig = Rig::open();
    rig.take(10 * MS, 10 * MS);
    assert_eq!(rig.session.free(), Some(1));
    rig.answer(0, 25 * MS);
    // Due while a stream was left; the client is late.
    rig.take(20 * MS, 26 * MS);
    rig.take(27 * MS, 27 * MS);
    assert_eq!(rig.session.free(), None);
    rig.answer(0, 40 * MS);
    // Due while both streams were in use.
    rig.take(30 * MS, 40 * MS);
    assert_eq!(
        rig.held_until_ns,
        [Some(0), Some(0), Some(0), Some(40 * MS)]
    );
    let (account, counts) = rig.finish(50 * MS);
    assert_eq!(account, [4, 2, 0, 2]);
    assert_eq!(counts.found_all_busy, 1);
    assert_eq!(rig.reasons(), [("unanswered", 2)]);
}

#[test]
fn a_status_or_a_reset_is_the_error_of_its_own_stream() {
    let mut rig = Rig::open();
    rig.take(MS, MS);
    rig.take(2 * MS, 2 * MS);
    rig.answer(1, 3 * MS);
    let stream = rig.asked.remove(0);
    rig.server.reset(stream, ErrorCode::REFUSED_STREAM);
    rig.exchange(4 * MS);
    rig.take(5 * MS, 5 * MS);
    rig.answer(0, 6 * MS);
    let (account, counts) = rig.finish(10 * MS);
    assert_eq!(account, [3, 1, 2, 0]);
    assert_eq!(
        rig.reasons(),
        [("http_status 503", 1), ("stream_reset 7", 1)]
    );
    assert_eq!(
        (counts.connections_opened, counts.answered_in_window),
        (1, 1)
    );
}

#[test]
fn an_answer_that_takes_2_s_resets_its_stream_and_no_other() {
    let mut rig = Rig::open();
    rig.take(MS, MS);
    rig.take(500 * MS, 500 * MS);
    let overdue_ns = rig.session.next_due_ns();
    assert_eq!(overdue_ns, Some(2_001 * MS));
    rig.session.woke(2_001 * MS, &mut rig.recorder);
    rig.exchange(2_001 * MS);
    assert_eq!(rig.session.phase(), Phase::Open);
    let _gone = rig.asked.remove(0);
    rig.answer(0, 2_100 * MS);
    let (account, _) = rig.finish(3_000 * MS);
    assert_eq!(account, [2, 1, 0, 1]);
    assert_eq!(rig.reasons(), [("timeout", 1)]);
}

#[test]
fn what_a_server_did_not_process_before_it_went_away_is_asked_once_more() {
    let mut rig = Rig::open();
    rig.take(MS, MS);
    rig.take(2 * MS, 2 * MS);
    // The first stream is the last one that it answers.
    let first = rig.asked[0];
    rig.server.say_goaway(first, ErrorCode::NO_ERROR);
    rig.exchange(3 * MS);
    rig.answer(0, 4 * MS);
    assert_eq!(rig.session.phase(), Phase::Ended, "after its last answer");
    let again = rig.session.unconnected(4 * MS);
    assert!(matches!(again, Unconnected::Connects { .. }), "{again:?}");
    rig.connect(5 * MS);
    rig.answer(0, 6 * MS);
    let (account, counts) = rig.finish(10 * MS);
    assert_eq!(account, [2, 2, 0, 0]);
    assert_eq!((counts.asked_again, counts.closed_announced), (1, 1));
    assert_eq!((counts.closed_idle, counts.connections_opened), (0, 2));
}

#[test]
fn a_connection_that_ends_under_its_requests_fails_those_that_may_have_been_processed() {
    let mut rig = Rig::open();
    rig.take(MS, MS);
    rig.session
        .disconnected(2 * MS, Disconnect::Reset, &mut rig.recorder);
    let (account, counts) = rig.finish(10 * MS);
    assert_eq!(account, [1, 0, 1, 0]);
    assert_eq!(rig.reasons(), [("closed_before_answer", 1)]);
    assert_eq!((counts.asked_again, rig.recorder.sessions_open), (0, 0));
}
