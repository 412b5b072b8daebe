//! A session that reads slowly: over real sockets it takes no more than its pace, what it leaves stays at the server, and no
//! other session notices.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow::Continue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit};
use plimsoll_engine::{Options, run};

const PACE_BYTES_PER_S: u32 = 20_000;
/// What the server would send to each session.
const ALL_BYTES: usize = 64 << 20;

/// Sessions that only read; the first one slowly.
struct Readers;

struct Reader {
    id: u32,
    phase: Phase,
    read: u64,
}

impl SessionMachines for Readers {
    type Session = Reader;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> Reader {
        Reader {
            id: plan.id,
            phase: Phase::Opening,
            read: 0,
        }
    }
}

impl Session for Reader {
    type Claim = (u32, u64);

    fn phase(&self) -> Phase {
        self.phase
    }

    fn next_due_ns(&self) -> Option<u64> {
        None
    }

    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn connected(&mut self, _now_ns: u64, _recorder: &mut Recorder<Self::Claim>) {
        self.phase = Phase::Open;
    }

    fn transmit(&mut self, _now_ns: u64) -> Option<Transmit<'_>> {
        None
    }

    fn sent(&mut self, _write_ns: u64, _recorder: &mut Recorder<Self::Claim>) {}

    fn received(&mut self, _now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Self::Claim>) {
        self.read += bytes.len() as u64;
        if self.id > 0 {
            recorder.ledger.because("read at once");
        }
    }

    fn reads_bytes_per_s(&self) -> Option<u32> {
        (self.id == 0).then_some(PACE_BYTES_PER_S)
    }

    fn disconnected(
        &mut self,
        _now_ns: u64,
        how: Disconnect,
        recorder: &mut Recorder<Self::Claim>,
    ) {
        recorder.ledger.because(how.reason());
        self.phase = Phase::Ended;
    }

    fn settled(&self) -> bool {
        false
    }

    fn finish(&mut self, _now_ns: u64, recorder: &mut Recorder<Self::Claim>) {
        let who = if self.id == 0 { "slow" } else { "quick" };
        recorder
            .ledger
            .reasons
            .insert(format!("{who} {}", self.id), self.read);
    }
}

/// A server that writes to each connection as much as it takes. Returns its address, and what the slowest connection took.
fn server(sessions: usize, stop: &Arc<AtomicBool>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let (least, stop) = (Arc::new(AtomicUsize::new(ALL_BYTES)), Arc::clone(stop));
    let taken = Arc::clone(&least);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten().take(sessions) {
            let (taken, stop) = (Arc::clone(&taken), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut stream = stream;
                stream.set_nonblocking(true).expect("set");
                let (chunk, mut sent) = ([7; 4096], 0);
                while sent < ALL_BYTES && !stop.load(Ordering::Relaxed) {
                    match stream.write(&chunk) {
                        Ok(count) => sent += count,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            std::thread::sleep(Duration::from_millis(5));
                        }
                        Err(_) => break,
                    }
                }
                taken.fetch_min(sent, Ordering::Relaxed);
            });
        }
    });
    (address, least)
}

#[test]
fn a_slow_session_takes_its_pace_and_the_others_all_that_comes() {
    let stop = Arc::new(AtomicBool::new(false));
    let (address, least) = server(2, &stop);
    let mut profile = Profile::quick();
    profile.ramp_s = 0.0;
    profile.warm_up_s = 0.5;
    profile.measured_s = 2.0;
    profile.grace_s = 0.5;
    let options = Options::new(address, 2, profile);
    let never = AtomicBool::new(false);
    let started = Instant::now();
    let report = run(&Readers, &options, &never, |_| Continue(())).expect("a run");
    let at_most = started.elapsed().as_secs_f64() * f64::from(PACE_BYTES_PER_S) + 4_000.0;
    stop.store(true, Ordering::Relaxed);
    let reasons = &report.ledger.reasons;
    let (slow, quick) = (reasons["slow 0"], reasons["quick 1"]);
    // 3 s of 20,000 B/s. A busy machine reads less of both, and ends later; never more than the pace.
    assert!(slow > 0 && slow as f64 <= at_most, "{slow} bytes");
    assert!(quick > 10 * slow, "{reasons:?}");
    // What it did not read is at the server, but for what the kernel holds.
    std::thread::sleep(Duration::from_millis(50));
    let taken = least.load(Ordering::Relaxed);
    assert!(taken < 8 << 20, "the kernel took {taken} bytes");
    assert!(report.client_faults.is_empty());
}
