//! Sessions whose protocol holds a due frame back: one request at a time, as in HTTP/1.1, or a window of unconfirmed
//! messages, as with a broker. The time that the server takes to free the session is send wait, never send lag.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow::Continue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::latency::Series;
use plimsoll_core::ledger::{FrameLedger, Naming};
use plimsoll_core::profile::{NS_PER_MS, Profile, Window};
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::schedule::{Periodic, SessionPlan};
use plimsoll_core::session::{Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit};
use plimsoll_engine::{Options, Report, run};

const REQUEST: [u8; 8] = *b"request\n";
const PERIOD_NS: u64 = 10 * NS_PER_MS;

/// A request every 10 ms, with at most so many unanswered at once.
struct Requests {
    unanswered_max: usize,
    /// How often the engine asked a session what to write.
    asked: Arc<AtomicU64>,
}

struct RequestSession {
    phase: Phase,
    schedule: Periodic,
    window: Window,
    ledger: FrameLedger,
    unanswered_max: usize,
    /// When each request was written.
    written_ns: Vec<u64>,
    bytes_back: usize,
    /// When an answer last made room for a request.
    freed_at_ns: Option<u64>,
    asked: Arc<AtomicU64>,
}

impl RequestSession {
    fn next_ns(&self) -> u64 {
        self.schedule.due_ns(self.written_ns.len() as u64)
    }

    fn held(&self) -> bool {
        self.written_ns.len() - self.bytes_back / REQUEST.len() >= self.unanswered_max
    }
}

impl SessionMachines for Requests {
    type Session = RequestSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> RequestSession {
        let schedule = Periodic {
            first_ns: plan.first_due_ns,
            period_ns: PERIOD_NS,
        };
        let first = schedule.due_before(plan.window.start_ns) + 1;
        let end = schedule.due_before(plan.window.end_ns) + 1;
        RequestSession {
            phase: Phase::Opening,
            schedule,
            window: plan.window,
            ledger: FrameLedger::new(first..end),
            unanswered_max: self.unanswered_max,
            written_ns: Vec::new(),
            bytes_back: 0,
            freed_at_ns: None,
            asked: Arc::clone(&self.asked),
        }
    }
}

impl Session for RequestSession {
    type Claim = ();

    fn phase(&self) -> Phase {
        self.phase
    }

    fn next_due_ns(&self) -> Option<u64> {
        (!self.held()).then(|| self.next_ns())
    }

    fn owed(&self, now_ns: u64) -> u64 {
        if self.held() {
            return 0;
        }
        self.ledger
            .unsent_measured(self.schedule.due_before(now_ns))
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.phase = Phase::Open;
        let due_ns = self.next_ns();
        (!self.held() && due_ns <= now_ns).then_some(Transmit {
            head: &REQUEST,
            body: &[],
            due_ns: Some(due_ns),
            held_until_ns: self.freed_at_ns,
            measured: self.window.contains(due_ns),
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<()>) {
        self.ledger.send(&mut recorder.ledger);
        self.written_ns.push(write_ns);
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<()>) {
        let was_held = self.held();
        let before = self.bytes_back / REQUEST.len();
        self.bytes_back += bytes.len();
        for number in before..self.bytes_back / REQUEST.len() {
            let seq = number as u64 + 1;
            let named = self
                .ledger
                .name(seq, seq, Naming::Answered, &mut recorder.ledger);
            let ages = Ages {
                from_schedule_ns: now_ns.saturating_sub(self.schedule.due_ns(seq - 1)),
                from_write_ns: now_ns.saturating_sub(self.written_ns[number]),
            };
            recorder.answered(named.measured.then_some(ages), None);
        }
        if was_held && !self.held() {
            self.freed_at_ns = Some(now_ns);
        }
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, recorder: &mut Recorder<()>) {
        recorder.session_died(how.reason());
        self.phase = Phase::Ended;
    }

    fn settled(&self) -> bool {
        self.ledger.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        let due = self.schedule.due_before(now_ns + 1);
        let schedule = self.schedule;
        let interval = &mut recorder.interval;
        self.ledger.finish(due, &mut recorder.ledger, |seq| {
            let waited_ns = now_ns.saturating_sub(schedule.due_ns(seq - 1));
            interval.record_unanswered(waited_ns, waited_ns);
        });
    }
}

/// A server that takes `answer_after` for each request, one after the other.
fn serve(answer_after: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let answer = move |mut stream: TcpStream| {
        let mut request = REQUEST;
        while stream.read_exact(&mut request).is_ok() {
            std::thread::sleep(answer_after);
            if stream.write_all(&request).is_err() {
                return;
            }
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

/// Two sessions, each with 100 requests in the window. Returns how often the engine asked them what to write.
fn drive(unanswered_max: usize, answer_after_ms: u64) -> (Report, u64) {
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.1, 0.2);
    (profile.measured_s, profile.grace_s) = (1.0, 1.0);
    profile.session_start_spread_ms = 100.0;
    let address = serve(Duration::from_millis(answer_after_ms));
    let workload = Requests {
        unanswered_max,
        asked: Arc::default(),
    };
    let options = Options::new(address, 2, profile);
    let report = run(&workload, &options, &AtomicBool::new(false), |_| {
        Continue(())
    })
    .expect("it runs");
    assert_eq!(report.ledger.frames_due, 200);
    assert_eq!(report.ledger.sessions_died, 0);
    (report, workload.asked.load(Ordering::Relaxed))
}

/// What the target held back is wait, and its latency counts from the schedule.
#[track_caller]
fn expect_wait_and_no_lag(report: &Report) {
    let at = |series, q| report.latency.histogram(series).value_at_quantile(q);
    let (lag, wait) = (at(Series::SendLag, 0.5), at(Series::SendWait, 0.5));
    // A request is held for longer the later it is due, in the end for more than half a second.
    assert!(wait > 100_000, "waited {wait} µs");
    // A tick, and room for a busy machine.
    assert!(lag < 10_000, "late by {lag} µs");
    // Most requests are never answered and count the same in both records, so look at those that are.
    let from_schedule = at(Series::NewestFromSchedule, 0.1);
    let from_write = at(Series::NewestFromWrite, 0.1);
    assert!(
        from_schedule > from_write + 100_000,
        "{from_schedule} µs, {from_write} µs from the write"
    );
    // What was never written because the server was slow is the server's loss, not the client's debt.
    assert!(report.ledger.frames_lost > 0, "{:?}", report.ledger);
    let share = report.achieved_share().expect("the window ended");
    assert!((0.95..=1.0).contains(&share), "{share}");
}

#[test]
fn a_request_that_awaits_the_answer_before_it_is_send_wait() {
    // 100 requests a second are due, and 30 are answered.
    let (report, asked) = drive(1, 33);
    expect_wait_and_no_lag(&report);
    // The session is woken by its answer: it is asked before and after each write, and after each answer.
    let answered = report.ledger.frames_answered_in_all;
    assert!(answered > 0);
    let seconds_open = 2 * 3;
    assert!(
        asked < 8 * answered + 100 * seconds_open,
        "asked {asked} times for {answered} requests"
    );
}

#[test]
fn a_full_window_of_unanswered_messages_is_send_wait() {
    let (report, _) = drive(5, 33);
    expect_wait_and_no_lag(&report);
}

#[test]
fn a_server_that_keeps_up_makes_no_request_wait() {
    let (report, _) = drive(1, 1);
    let wait = report.latency.histogram(Series::SendWait);
    assert_eq!((wait.len(), wait.value_at_quantile(0.5)), (200, 0));
    assert_eq!(report.ledger.frames_lost, 0);
    let share = report.achieved_share().expect("the window ended");
    assert!((0.95..=1.0).contains(&share), "{share}");
}
