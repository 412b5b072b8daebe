//! Work that belongs to no session until it is due: it goes to whichever session is free, over real sockets. What a
//! server holds back is send wait, sessions may connect again, or only with their work.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow::Continue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile, Window};
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::schedule::{SessionPlan, session_plan};
use plimsoll_core::session::{
    Arrivals, Disconnect, Phase, Session, SessionMachines, Share, Transmit, Unconnected,
};
use plimsoll_engine::{Options, Report, run};

const REQUEST: [u8; 8] = *b"request\n";
const PERIOD_NS: u64 = 10 * NS_PER_MS;
/// The requests of a window of 1 s.
const DUE: u64 = 100;

/// A request every 10 ms of the window, and sessions that take one at a time.
struct Requests {
    /// Whether a session connects for each request, and closes after its answer.
    connects_with_work: bool,
}

/// A request that a session has.
#[derive(Clone, Copy)]
struct InHand {
    due_ns: u64,
    free_since_ns: u64,
    written_ns: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It connects then; [`SessionPlan::WITH_WORK`] if it waits for a request.
    Closed(u64),
    Opening,
    Open,
    Ended,
}

struct RequestSession {
    connects_with_work: bool,
    window: Window,
    stage: Stage,
    in_hand: Option<InHand>,
    /// Whether the request has still to be written on this connection.
    unwritten: bool,
    bytes_back: usize,
    free_since_ns: u64,
}

impl RequestSession {
    fn is_free(&self) -> bool {
        let waits = self.stage == Stage::Closed(SessionPlan::WITH_WORK);
        self.in_hand.is_none() && (self.stage == Stage::Open || waits)
    }

    fn take(&mut self, due_ns: u64) {
        self.in_hand = Some(InHand {
            due_ns,
            free_since_ns: self.free_since_ns,
            written_ns: None,
        });
        self.unwritten = true;
        if self.stage != Stage::Open {
            self.stage = Stage::Closed(0);
        }
    }

    fn without_connection(&mut self, now_ns: u64) {
        self.bytes_back = 0;
        // A request that has no answer is asked again.
        self.unwritten = self.in_hand.is_some();
        let waits = self.connects_with_work && self.in_hand.is_none();
        self.stage = Stage::Closed(if waits {
            SessionPlan::WITH_WORK
        } else {
            now_ns
        });
    }
}

/// The requests of a thread, and its free sessions in the order in which they became free.
struct Queue {
    share: Share,
    window: Window,
    number: u64,
    free: VecDeque<u32>,
}

impl Queue {
    /// When the next request is due, if one is left.
    fn peek(&self) -> Option<u64> {
        let due_ns = self.window.start_ns + self.number * PERIOD_NS;
        (due_ns < self.window.end_ns).then_some(due_ns)
    }

    fn take(&mut self) -> Option<u64> {
        let due_ns = self.peek()?;
        self.number += u64::from(self.share.of);
        Some(due_ns)
    }
}

impl Arrivals<RequestSession> for Queue {
    fn next_due_ns(&self) -> Option<u64> {
        self.peek().filter(|_| !self.free.is_empty())
    }

    fn next(&mut self, now_ns: u64, _recorder: &mut Recorder<()>) -> Option<u32> {
        self.peek().filter(|due_ns| *due_ns <= now_ns)?;
        self.free.front().copied()
    }

    fn hand_out(&mut self, place: u32, session: &mut RequestSession, recorder: &mut Recorder<()>) {
        assert_eq!(self.free.front(), Some(&place), "asked for just before");
        if let Some(due_ns) = self.take() {
            recorder.ledger.frames_due += 1;
            session.take(due_ns);
        }
    }

    fn look(&mut self, place: u32, session: &RequestSession) {
        let known = self.free.contains(&place);
        match (session.is_free(), known) {
            (true, false) => self.free.push_back(place),
            (false, true) => self.free.retain(|known| *known != place),
            _ => {}
        }
    }

    fn owed(&self, now_ns: u64) -> u64 {
        if self.free.is_empty() {
            return 0;
        }
        let left = self.peek().filter(|due_ns| *due_ns < now_ns);
        left.map_or(0, |due_ns| (now_ns - due_ns).div_ceil(PERIOD_NS))
    }

    fn settled(&self) -> bool {
        self.peek().is_none()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        while let Some(due_ns) = self.peek().filter(|due_ns| *due_ns <= now_ns) {
            self.take();
            recorder.ledger.frames_due += 1;
            recorder.ledger.frames_lost += 1;
            let waited_ns = now_ns - due_ns;
            recorder.interval.record_unanswered(waited_ns, 0);
        }
    }
}

impl SessionMachines for Requests {
    type Session = RequestSession;
    type Arrivals = Queue;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        let mut plan = session_plan(id, sessions, profile, seed);
        if self.connects_with_work {
            plan.connect_at_ns = SessionPlan::WITH_WORK;
        }
        plan
    }

    fn session(&self, plan: &SessionPlan) -> RequestSession {
        RequestSession {
            connects_with_work: self.connects_with_work,
            window: plan.window,
            stage: Stage::Closed(plan.connect_at_ns),
            in_hand: None,
            unwritten: false,
            bytes_back: 0,
            free_since_ns: 0,
        }
    }

    fn arrivals(
        &self,
        share: Share,
        _sessions: u32,
        profile: &Profile,
        _seed: u64,
    ) -> Option<Queue> {
        Some(Queue {
            share,
            window: profile.window(),
            number: share.index.into(),
            free: VecDeque::new(),
        })
    }
}

impl Session for RequestSession {
    type Claim = ();

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Closed(_) | Stage::Opening => Phase::Opening,
            Stage::Open => Phase::Open,
            Stage::Ended => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        None
    }

    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn connecting(&mut self, _now_ns: u64, _recorder: &mut Recorder<()>) {
        self.stage = Stage::Opening;
    }

    fn connected(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.stage = Stage::Open;
        self.free_since_ns = now_ns;
        recorder.session_started();
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        if self.stage == Stage::Ended {
            self.without_connection(now_ns);
        }
        match self.stage {
            Stage::Closed(SessionPlan::WITH_WORK) => Unconnected::Waits,
            Stage::Closed(at_ns) if now_ns < self.window.end_ns || self.in_hand.is_some() => {
                Unconnected::Connects {
                    at_ns,
                    open_by_ns: now_ns + NS_PER_S,
                }
            }
            _ => Unconnected::Over,
        }
    }

    fn transmit(&mut self, _now_ns: u64) -> Option<Transmit<'_>> {
        let in_hand = self.in_hand.filter(|_| self.unwritten)?;
        Some(Transmit {
            head: &REQUEST,
            body: &[],
            due_ns: in_hand.written_ns.is_none().then_some(in_hand.due_ns),
            held_until_ns: Some(in_hand.free_since_ns),
            measured: true,
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<()>) {
        self.unwritten = false;
        if let Some(in_hand) = &mut self.in_hand
            && in_hand.written_ns.is_none()
        {
            in_hand.written_ns = Some(write_ns);
            recorder.ledger.frames_sent += 1;
            recorder.ledger.frames_sent_in_all += 1;
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<()>) {
        self.bytes_back += bytes.len();
        if self.bytes_back < REQUEST.len() {
            return;
        }
        self.bytes_back = 0;
        self.free_since_ns = now_ns;
        let in_hand = self.in_hand.take().expect("only requests are answered");
        let ages = Ages {
            from_schedule_ns: now_ns - in_hand.due_ns,
            from_write_ns: now_ns - in_hand.written_ns.expect("it was written"),
        };
        recorder.ledger.frames_answered += 1;
        recorder.answered(Some(ages), None);
        if self.connects_with_work {
            recorder.sessions_open -= 1;
            self.stage = Stage::Ended;
        }
    }

    fn disconnected(&mut self, now_ns: u64, _how: Disconnect, recorder: &mut Recorder<()>) {
        if self.stage == Stage::Open {
            recorder.sessions_open -= 1;
        }
        self.without_connection(now_ns);
    }

    fn settled(&self) -> bool {
        self.in_hand.is_none()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        if let Some(in_hand) = self.in_hand.take() {
            let waited_ns = now_ns - in_hand.due_ns;
            recorder.ledger.frames_lost += 1;
            recorder.interval.record_unanswered(waited_ns, waited_ns);
        }
    }
}

/// What a server does with each of its connections, by their number.
type Behaviour = fn(TcpStream, u64);

/// Sends every request back.
fn answer_all(mut stream: TcpStream, after: Duration) {
    let mut request = REQUEST;
    while stream.read_exact(&mut request).is_ok() {
        std::thread::sleep(after);
        if stream.write_all(&request).is_err() {
            return;
        }
    }
}

/// A server, and how many connections it has accepted.
fn serve(behaviour: Behaviour) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let accepted = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&accepted);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || behaviour(stream, number));
        }
    });
    (address, accepted)
}

/// Requests in a window of 1 s, shared by so many sessions.
fn drive(address: SocketAddr, sessions: u32, connects_with_work: bool, tick_us: u64) -> Report {
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.1, 0.2);
    (profile.measured_s, profile.grace_s) = (1.0, 1.0);
    let options = Options {
        tick_us,
        ..Options::new(address, sessions, profile)
    };
    let workload = Requests { connects_with_work };
    let report = run(&workload, &options, &AtomicBool::new(false), |_| {
        Continue(())
    })
    .expect("it runs");
    let ledger = &report.ledger;
    assert!(ledger.is_whole(), "{ledger:?}");
    assert_eq!(ledger.frames_due, DUE, "{ledger:?}");
    report
}

/// The median of a series in microseconds.
fn median_us(report: &Report, series: Series) -> u64 {
    report.latency.histogram(series).value_at_quantile(0.5)
}

#[test]
fn work_goes_to_whichever_session_is_free() {
    // The first connection never answers. It gets one request, and the other connection all the rest.
    let (address, _) = serve(|stream, number| match number {
        0 => answer_all(stream, Duration::from_secs(60)),
        _ => answer_all(stream, Duration::ZERO),
    });
    let report = drive(address, 2, false, 500);
    let ledger = &report.ledger;
    assert_eq!((ledger.frames_answered, ledger.frames_lost), (DUE - 1, 1));
    let share = report.achieved_share().expect("the window ended");
    assert!(share > 0.999, "{share}");
}

#[test]
fn a_slow_server_makes_work_wait_and_the_client_owes_nothing() {
    // 100 requests a second are due, and 60 are answered.
    let (address, _) = serve(|stream, _| answer_all(stream, Duration::from_millis(33)));
    let report = drive(address, 2, false, 500);
    let (lag_us, wait_us) = (
        median_us(&report, Series::SendLag),
        median_us(&report, Series::SendWait),
    );
    // The later a request is due, the longer it waits: in the end for half a second.
    assert!(wait_us > 50_000, "waited {wait_us} µs");
    assert!(lag_us < 10_000, "late by {lag_us} µs");
    let schedule_us = median_us(&report, Series::NewestFromSchedule);
    let write_us = median_us(&report, Series::NewestFromWrite);
    assert!(
        schedule_us > write_us + 50_000,
        "{schedule_us}, {write_us} µs from the write"
    );
    assert_eq!(report.achieved_share(), Some(1.0));
}

#[test]
fn sessions_connect_again_after_the_server_has_closed() {
    let (address, accepted) = serve(|mut stream, _| {
        let mut request = REQUEST;
        if stream.read_exact(&mut request).is_ok() {
            let _ = stream.write_all(&request);
        }
    });
    let report = drive(address, 2, false, 500);
    let ledger = &report.ledger;
    assert_eq!(ledger.frames_answered, DUE, "{ledger:?}");
    assert!(ledger.sessions_started >= DUE, "{ledger:?}");
    assert_eq!(accepted.load(Ordering::Relaxed), ledger.sessions_started);
    assert_eq!((ledger.sessions_died, ledger.sessions_failed), (0, 0));
}

#[test]
fn sessions_that_connect_with_their_work_connect_once_for_each() {
    let (address, accepted) = serve(|stream, _| answer_all(stream, Duration::ZERO));
    let report = drive(address, 20, true, 500);
    let ledger = &report.ledger;
    assert_eq!(ledger.frames_answered, DUE, "{ledger:?}");
    assert_eq!(ledger.sessions_started, DUE, "{ledger:?}");
    assert_eq!(accepted.load(Ordering::Relaxed), DUE);
}

#[test]
fn without_a_tick_work_is_handed_out_when_it_is_due() {
    let (address, _) = serve(|stream, _| answer_all(stream, Duration::ZERO));
    // With a tick of 200 ms, 20 requests are handed out together, on average half a tick late.
    let coarse = drive(address, 40, false, 200_000);
    let fine = drive(address, 40, false, 0);
    let coarse_us = median_us(&coarse, Series::SendLag);
    assert!(coarse_us > 50_000, "late by {coarse_us} µs");
    let fine_us = median_us(&fine, Series::SendLag);
    // Loose, for a busy machine: on an idle one it is the time to wake up.
    assert!(fine_us < coarse_us / 2, "late by {fine_us} µs");
    assert_eq!(fine.ledger.frames_answered, DUE);
}
