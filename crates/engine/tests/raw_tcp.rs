//! The engine over real sockets with a workload that is neither speech nor WebSocket: fixed messages over bare TCP,
//! each sent back. This tests the boundary between engine and workload, and each fate of a connection as the engine
//! sees it.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow::{Break, Continue};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_core::latency::Series;
use plimsoll_core::ledger::{FrameLedger, Naming};
use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile, Window};
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::sanity::{Residence, kernel_bytes, littles_law};
use plimsoll_core::schedule::{Arrivals, Periodic, SessionPlan, Spacing};
use plimsoll_core::session::{Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit};
use plimsoll_engine::{Options, Report, run};

const MESSAGE_BYTES: usize = 4096;
static MESSAGE: [u8; MESSAGE_BYTES] = [7; MESSAGE_BYTES];

/// Messages of 4 KiB every 10 ms, over bare TCP.
struct Ticks;

struct TickSession {
    phase: Phase,
    connect_at_ns: u64,
    /// When it began to connect.
    began_ns: Option<u64>,
    schedule: Periodic,
    next_due_ns: u64,
    window: Window,
    ledger: FrameLedger,
    /// Bytes that came back.
    returned: usize,
    /// When each message was written.
    written_ns: Vec<u64>,
}

impl SessionMachines for Ticks {
    type Session = TickSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> TickSession {
        let schedule = Periodic {
            first_ns: plan.first_due_ns,
            period_ns: 10 * NS_PER_MS,
        };
        let first = schedule.due_before(plan.window.start_ns) + 1;
        let end = schedule.due_before(plan.window.end_ns) + 1;
        TickSession {
            phase: Phase::Opening,
            connect_at_ns: plan.connect_at_ns,
            began_ns: None,
            schedule,
            next_due_ns: schedule.first_ns,
            window: plan.window,
            ledger: FrameLedger::new(first..end),
            returned: 0,
            written_ns: Vec::new(),
        }
    }
}

impl Session for TickSession {
    type Claim = ();

    fn phase(&self) -> Phase {
        self.phase
    }

    fn next_due_ns(&self) -> Option<u64> {
        Some(self.next_due_ns)
    }

    fn owed(&self, now_ns: u64) -> u64 {
        self.ledger
            .unsent_measured(self.schedule.due_before(now_ns))
    }

    fn connecting(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        recorder.ledger.because(if self.began_ns.is_some() {
            "begun again"
        } else if now_ns < self.connect_at_ns {
            "begun early"
        } else if now_ns < self.window.start_ns {
            "begun before the window"
        } else {
            "begun in the window"
        });
        self.began_ns = Some(now_ns);
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        // The engine asks what to write, so the session is connected.
        self.phase = Phase::Open;
        (self.next_due_ns <= now_ns).then_some(Transmit {
            head: &MESSAGE[..8],
            body: &MESSAGE[8..],
            due_ns: Some(self.next_due_ns),
            held_until_ns: None,
            measured: self.window.contains(self.next_due_ns),
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<()>) {
        if self.began_ns.is_none_or(|began_ns| began_ns > write_ns) {
            recorder.ledger.because("written before it began");
        }
        self.ledger.send(&mut recorder.ledger);
        self.written_ns.push(write_ns);
        self.next_due_ns += self.schedule.period_ns;
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<()>) {
        let before = self.returned / MESSAGE_BYTES;
        self.returned += bytes.len();
        for seq in before + 1..=self.returned / MESSAGE_BYTES {
            let before = seq - 1;
            let seq = seq as u64;
            let named = self
                .ledger
                .name(seq, seq, Naming::Answered, &mut recorder.ledger);
            let ages = Ages {
                from_schedule_ns: now_ns - self.schedule.due_ns(seq - 1),
                // The turn's time can be before the write, if both are in one turn.
                from_write_ns: now_ns.saturating_sub(self.written_ns[before]),
            };
            if named.measured {
                recorder.resided(1, u128::from(ages.from_write_ns));
            }
            recorder.answered(named.measured.then_some(ages), None);
        }
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, recorder: &mut Recorder<()>) {
        match self.phase {
            Phase::Opening => recorder.session_failed(how.reason()),
            _ => recorder.session_died(how.reason()),
        }
        self.phase = Phase::Ended;
    }

    fn settled(&self) -> bool {
        self.ledger.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        let due = self.schedule.due_before(now_ns + 1);
        self.ledger.finish(due, &mut recorder.ledger, |_| {});
    }
}

/// Like [`Ticks`], but the sessions come one by one, also in the window.
struct Arriving(Arrivals);

impl SessionMachines for Arriving {
    type Session = TickSession;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        self.0.plan(id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> TickSession {
        Ticks.session(plan)
    }
}

/// Like [`Ticks`], but nothing is written from the middle of the window on.
struct Forgetful;

struct ForgetfulSession(TickSession);

impl SessionMachines for Forgetful {
    type Session = ForgetfulSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> ForgetfulSession {
        ForgetfulSession(Ticks.session(plan))
    }
}

impl Session for ForgetfulSession {
    type Claim = ();

    fn phase(&self) -> Phase {
        self.0.phase()
    }

    fn next_due_ns(&self) -> Option<u64> {
        let next_ns = self.0.next_due_ns()?;
        (next_ns < self.0.window.start_ns.midpoint(self.0.window.end_ns)).then_some(next_ns)
    }

    fn owed(&self, now_ns: u64) -> u64 {
        self.0.owed(now_ns)
    }

    fn connecting(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.0.connecting(now_ns, recorder);
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.next_due_ns()?;
        self.0.transmit(now_ns)
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<()>) {
        self.0.sent(write_ns, recorder);
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<()>) {
        self.0.received(now_ns, bytes, recorder);
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<()>) {
        self.0.disconnected(now_ns, how, recorder);
    }

    fn settled(&self) -> bool {
        self.0.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.0.finish(now_ns, recorder);
    }
}

fn options(address: SocketAddr, sessions: u32) -> Options {
    let mut profile = Profile::quick();
    profile.ramp_s = 0.1;
    profile.warm_up_s = 0.2;
    profile.measured_s = 1.0;
    profile.grace_s = 1.0;
    profile.session_start_spread_ms = 100.0;
    Options::new(address, sessions, profile)
}

/// Accepts forever and gives each connection to a thread.
fn serve(handle: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handle = handle.clone();
            std::thread::spawn(move || handle(stream));
        }
    });
    address
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

/// A machine with other things to do may be late with the window's last few frames.
#[track_caller]
fn expect_nearly_all_achieved(report: &Report) {
    let share = report.achieved_share().expect("the window ended");
    assert!((0.95..=1.0).contains(&share), "{share}");
}

fn run_to_end(options: &Options) -> Report {
    run(&Ticks, options, &AtomicBool::new(false), |_| Continue(())).unwrap()
}

#[test]
fn every_message_is_accounted_for_by_two_threads() {
    let mut options = options(serve(echo), 7);
    options.cpus = vec![0, 0];
    let mut seconds = 0;
    let report = run(&Ticks, &options, &AtomicBool::new(false), |_| {
        seconds += 1;
        Continue(())
    })
    .unwrap();
    let ledger = &report.ledger;
    assert_eq!(ledger.frames_due, 7 * 100);
    assert_eq!(ledger.frames_answered, 7 * 100);
    assert_eq!(ledger.frames_lost, 0);
    assert_eq!(
        report.latency.histogram(Series::NewestFromSchedule).len(),
        700
    );
    assert_eq!(report.latency.histogram(Series::SendLag).len(), 700);
    assert_eq!(report.latency.histogram(Series::SendWait).len(), 700);
    assert!(ledger.bytes_received >= 700 * MESSAGE_BYTES as u64);
    // The accounts that are kept twice agree: everything was written, the kernel counts the same bytes, and Little's
    // law holds.
    expect_nearly_all_achieved(&report);
    let kernel = report.kernel_bytes.expect("every session lived");
    for check in kernel_bytes(&kernel, ledger.bytes_sent, ledger.bytes_received) {
        assert!(check.holds, "{check:?}");
    }
    let law = littles_law(&report.residence, 0, NS_PER_S, 500_000).expect("frames");
    assert!(law.holds && report.residence.frames == 700, "{law:?}");
    assert!(report.cpu_us_per_frame().is_some_and(|us| us > 0.0));
    assert!(seconds >= 1);
    assert!(!report.interrupted);
}

#[test]
fn a_workload_makes_the_plan_and_is_told_when_connecting_begins() {
    let arrivals = Arrivals {
        rate_per_s: 20.0,
        spacing: Spacing::Even,
        open_within_ns: NS_PER_S,
    };
    let mut options = options(serve(echo), 0);
    options.profile.ramp_s = 0.0;
    options.sessions = arrivals.count(&options.profile);
    assert_eq!(options.sessions, 24);
    let report = run(
        &Arriving(arrivals),
        &options,
        &AtomicBool::new(false),
        |_| Continue(()),
    )
    .unwrap();
    let reasons = &report.ledger.reasons;
    // Four slots are in the warm-up; a late loop may begin one of these in the window.
    let in_window = reasons["begun in the window"];
    let before = reasons.get("begun before the window").copied();
    assert_eq!(in_window + before.unwrap_or(0), 24, "{reasons:?}");
    assert!(in_window >= 20, "{reasons:?}");
    assert!(reasons.keys().all(|reason| reason.starts_with("begun ")));
    assert!(!reasons.contains_key("begun again") && !reasons.contains_key("begun early"));
    assert_eq!(report.ledger.frames_lost, 0);
}

#[test]
fn sessions_come_from_the_source_addresses_in_turn() {
    let peers: &'static Mutex<Vec<IpAddr>> = Box::leak(Box::new(Mutex::new(Vec::new())));
    let address = serve(move |stream| {
        let peer = stream.peer_addr().unwrap();
        peers.lock().unwrap().push(peer.ip());
        echo(stream);
    });
    let mut options = options(address, 6);
    // Two sessions in each of three threads: what counts is a session's number in the trial, not its number in its
    // thread.
    options.cpus = vec![0; 3];
    let sources = [1, 2, 3].map(|host| IpAddr::from([127, 0, 1, host]));
    options.source_addresses = sources.to_vec();
    let report = run_to_end(&options);
    assert!(report.client_faults.is_empty());
    assert_eq!(report.ledger.frames_answered, 6 * 100);
    let mut seen = peers.lock().unwrap().clone();
    seen.sort_unstable();
    let [a, b, c] = sources;
    assert_eq!(seen, [a, a, b, b, c, c]);
}

#[test]
fn a_full_socket_is_send_wait_and_never_stops_the_others() {
    // The first connection is not read for 1.3 s; the other one is served at once. 400 KB/s fill the socket buffers of
    // both sides within that time.
    let first: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(true)));
    let address = serve(move |stream| {
        if first.swap(false, Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1_300));
        }
        echo(stream);
    });
    let mut options = options(address, 2);
    options.profile.measured_s = 2.0;
    let report = run_to_end(&options);
    assert_eq!(report.ledger.frames_due, 2 * 200);
    assert_eq!(report.ledger.frames_lost, 0);
    let lag = report.latency.histogram(Series::SendLag);
    let wait = report.latency.histogram(Series::SendWait);
    assert_eq!((lag.len(), wait.len()), (400, 400));
    assert!(wait.max() > 100_000, "waited {} µs at most", wait.max());
    // What a full socket refused is wait, not the client's own lag. The served connection waits for nothing.
    assert!(lag.max() < wait.max() / 2, "lag {} µs", lag.max());
    assert_eq!(wait.value_at_quantile(0.5), 0);
    // The client does not owe what the socket refused.
    expect_nearly_all_achieved(&report);
    // Little's law holds for the latencies from the writes. It does not hold for those from the schedule, which differ
    // by the wait.
    let law = |residence| littles_law(&residence, 0, 2 * NS_PER_S, 500_000).expect("frames");
    let from_write = report.residence;
    assert!(law(from_write).holds, "{:?}", law(from_write));
    let waited_ns = wait.mean() * wait.len() as f64 * 1_000.0;
    let from_schedule = Residence {
        latency_frame_ns: from_write.latency_frame_ns + waited_ns as u128,
        ..from_write
    };
    let told = law(from_schedule);
    assert!(!told.holds && told.observed < told.low, "{told:?}");
}

#[test]
fn frames_that_a_full_socket_withholds_for_good_are_the_targets() {
    let address = serve(|stream| {
        // Accepts the connection and never reads.
        std::thread::sleep(Duration::from_secs(10));
        drop(stream);
    });
    let mut options = options(address, 1);
    options.profile.measured_s = 3.0;
    let report = run_to_end(&options);
    assert!(report.ledger.frames_sent < report.ledger.frames_due * 9 / 10);
    expect_nearly_all_achieved(&report);
}

#[test]
fn frames_that_the_client_never_came_to_write_are_owed() {
    // Sessions that are open, whose sockets take bytes, and that no longer ask to write: as if the loop had never come
    // to them.
    let mut options = options(serve(echo), 2);
    options.profile.grace_s = 0.2;
    let report = run(&Forgetful, &options, &AtomicBool::new(false), |_| {
        Continue(())
    })
    .unwrap();
    let share = report.achieved_share().expect("the window ended");
    assert_eq!(report.ledger.frames_due, 200);
    assert!((share - 0.5).abs() < 0.02, "{share}");
    assert!(report.client_faults.is_empty());
}

#[test]
fn nobody_listening_is_a_failed_session() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let report = run_to_end(&options(address, 3));
    assert_eq!(report.ledger.sessions_failed, 3);
    assert_eq!(report.ledger.reasons["connection refused"], 3);
    assert!(report.client_faults.is_empty());
}

#[test]
fn a_target_that_closes_is_a_dead_session_whose_frames_are_lost() {
    let address = serve(|stream| {
        std::thread::sleep(Duration::from_millis(600));
        drop(stream);
    });
    let report = run_to_end(&options(address, 3));
    assert_eq!(report.ledger.sessions_died, 3);
    assert_eq!(report.ledger.frames_due, 300);
    assert_eq!(report.ledger.frames_lost, 300);
}

#[test]
fn whoever_gets_the_seconds_ends_the_run() {
    let mut options = options(serve(echo), 4);
    options.cpus = vec![0, 0];
    options.profile.measured_s = 3_600.0;
    let mut seconds = Vec::new();
    let report = run(&Ticks, &options, &AtomicBool::new(false), |second| {
        seconds.push(second.index);
        if second.index < 1 {
            Continue(())
        } else {
            Break(())
        }
    })
    .unwrap();
    // It was not interrupted: nobody from outside asked for it.
    assert!(!report.interrupted);
    assert!(report.ledger.frames_answered > 0);
    assert_eq!(seconds[..2], [0, 1]);
    assert!(seconds.len() <= 4, "{seconds:?}");
}

#[test]
fn a_stop_ends_the_run_and_keeps_what_was_measured() {
    let stop = AtomicBool::new(false);
    let mut options = options(serve(echo), 2);
    options.profile.measured_s = 3_600.0;
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(800));
            stop.store(true, Ordering::Relaxed);
        });
        run(&Ticks, &options, &stop, |_| Continue(())).unwrap()
    });
    assert!(report.interrupted);
    assert!(report.ledger.frames_answered > 0);
    // Only what was due by then is counted.
    assert!(report.ledger.frames_due < 1_000);
}
