//! An account that spans sessions: each message is delivered to another session than the one that sent it, as a queue
//! does with its consumers. It can be kept only when the claims of all threads and processes are settled together.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow::Continue;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_core::ledger::FrameLedger;
use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{Periodic, SessionPlan};
use plimsoll_core::session::{
    Account, Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit,
};
use plimsoll_engine::clock::Clock;
use plimsoll_engine::{Company, Options, Part, Report, Unsettled, run, run_in};
use serde::{Deserialize, Serialize};

const SESSIONS: u32 = 4;
const MESSAGE_BYTES: usize = 8;
const PERIOD_NS: u64 = 10 * NS_PER_MS;

/// Producers that are consumers, too.
struct Queue;

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Claim {
    /// These messages of this session are due in the window.
    Measured(u32, Range<u32>),
    /// This message of this session was delivered.
    Delivered(u32, u32),
}

struct QueueSession {
    id: u32,
    phase: Phase,
    schedule: Periodic,
    measured: Range<u64>,
    ledger: FrameLedger,
    message: [u8; MESSAGE_BYTES],
    inbox: Vec<u8>,
}

impl SessionMachines for Queue {
    type Session = QueueSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> QueueSession {
        let schedule = Periodic {
            first_ns: plan.first_due_ns,
            period_ns: PERIOD_NS,
        };
        let first = schedule.due_before(plan.window.start_ns) + 1;
        let measured = first..schedule.due_before(plan.window.end_ns) + 1;
        QueueSession {
            id: plan.id,
            phase: Phase::Opening,
            schedule,
            measured: measured.clone(),
            ledger: FrameLedger::new(measured),
            message: [0; MESSAGE_BYTES],
            inbox: Vec::new(),
        }
    }

    /// To its own session, every message is lost. What any session received is not.
    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        let mut measured = BTreeMap::new();
        for claim in claims {
            if let Claim::Measured(session, messages) = claim {
                measured.insert(session, messages);
            }
        }
        let mut delivered = BTreeSet::new();
        for claim in claims {
            if let Claim::Delivered(session, number) = claim
                && measured[session].contains(number)
                && !delivered.insert((session, number))
            {
                account.ledger.frames_duplicated += 1;
            }
        }
        account.ledger.frames_answered += delivered.len() as u64;
        account.ledger.frames_lost -= delivered.len() as u64;
    }
}

impl Session for QueueSession {
    type Claim = Claim;

    fn phase(&self) -> Phase {
        self.phase
    }

    fn next_due_ns(&self) -> Option<u64> {
        Some(self.schedule.due_ns(self.ledger.sent()))
    }

    fn owed(&self, now_ns: u64) -> u64 {
        self.ledger
            .unsent_measured(self.schedule.due_before(now_ns))
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.phase = Phase::Open;
        let due_ns = self.schedule.due_ns(self.ledger.sent());
        let number = u32::try_from(self.ledger.sent() + 1).expect("few");
        self.message[..4].copy_from_slice(&self.id.to_le_bytes());
        self.message[4..].copy_from_slice(&number.to_le_bytes());
        (due_ns <= now_ns).then_some(Transmit {
            head: &self.message,
            body: &[],
            due_ns: Some(due_ns),
            held_until_ns: None,
            measured: self.measured.contains(&u64::from(number)),
        })
    }

    fn sent(&mut self, _write_ns: u64, recorder: &mut Recorder<Claim>) {
        self.ledger.send(&mut recorder.ledger);
    }

    fn received(&mut self, _now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Claim>) {
        self.inbox.extend_from_slice(bytes);
        let whole = self.inbox.len() / MESSAGE_BYTES * MESSAGE_BYTES;
        for message in self.inbox.drain(..whole).as_slice().chunks(MESSAGE_BYTES) {
            let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four"));
            let (session, number) = (number(&message[..4]), number(&message[4..]));
            recorder.claims.push(Claim::Delivered(session, number));
        }
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        recorder.session_died(how.reason());
    }

    fn settled(&self) -> bool {
        false
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        let due = self.schedule.due_before(now_ns + 1);
        self.ledger.finish(due, &mut recorder.ledger, |_| {});
        let number = |seq: u64| u32::try_from(seq).expect("few");
        let measured = number(self.measured.start)..number(self.measured.end);
        recorder.claims.push(Claim::Measured(self.id, measured));
    }
}

/// A server that delivers what comes from one connection to the next one, and every tenth message twice.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let deliver = |mut from: TcpStream, mut to: TcpStream| {
        let mut message = [0; MESSAGE_BYTES];
        while from.read_exact(&mut message).is_ok() {
            let twice = message[4] % 10 == 0;
            for _ in 0..=u8::from(twice) {
                if to.write_all(&message).is_err() {
                    return;
                }
            }
        }
    };
    std::thread::spawn(move || {
        let all = listener.incoming().flatten().take(SESSIONS as usize);
        let all: Vec<TcpStream> = all.collect();
        for (place, from) in all.iter().enumerate() {
            let to = &all[(place + 1) % all.len()];
            let (from, to) = (from.try_clone(), to.try_clone());
            std::thread::spawn(move || deliver(from.expect("a socket"), to.expect("a socket")));
        }
    });
    address
}

fn options() -> Options {
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.1, 0.2);
    (profile.measured_s, profile.grace_s) = (1.0, 0.5);
    profile.session_start_spread_ms = 100.0;
    Options::new(serve(), SESSIONS, profile)
}

#[track_caller]
fn expect_every_message_delivered(report: &Report) {
    let ledger = &report.ledger;
    assert_eq!(report.sessions, u64::from(SESSIONS));
    assert_eq!(ledger.frames_due, u64::from(SESSIONS) * 100);
    assert_eq!(ledger.frames_answered, ledger.frames_due, "{ledger:?}");
    assert_eq!(ledger.frames_lost, 0);
    assert!(
        (30..=50).contains(&ledger.frames_duplicated),
        "one in ten came twice: {ledger:?}"
    );
}

#[test]
fn messages_reach_sessions_of_other_threads() {
    let mut options = options();
    // Neighbours are in different threads.
    options.cpus = vec![0, 0];
    let report = run(&Queue, &options, &AtomicBool::new(false), |_| Continue(())).expect("it runs");
    expect_every_message_delivered(&report);
}

/// Runs that begin at the same time.
struct Together(Clock);

impl Company for Together {
    fn begin(&self) -> std::io::Result<Clock> {
        Ok(self.0)
    }

    fn settled(&self) {}

    fn may_end(&self) -> bool {
        true
    }
}

#[test]
fn messages_reach_sessions_of_other_processes() {
    let options = options();
    let together = Together(Clock::start_in(Duration::from_millis(100)));
    let never = AtomicBool::new(false);
    let part = |index| {
        let options = Options {
            part: Part { index, of: 2 },
            ..options.clone()
        };
        let part = run_in(&together, &Queue, &options, &never, |_| Continue(())).expect("it runs");
        // As a client process sends it.
        serde_json::to_string(&part).expect("it can be sent")
    };
    let told: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..2)
            .map(|index| scope.spawn(move || part(index)))
            .collect();
        let told = parts.into_iter().map(|part| part.join().expect("no panic"));
        told.collect()
    });
    assert!(!never.load(Ordering::Relaxed));
    let mut all = Unsettled::empty(together.0);
    for part in told {
        all.merge(serde_json::from_str(&part).expect("it can be read"));
    }
    expect_every_message_delivered(&all.settle(&Queue, true));
}
