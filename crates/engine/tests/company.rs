//! Runs that share a trial, as processes do: they begin together, each drives its part, and they end together.

use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow::Continue;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::profile::Profile;
use plimsoll_engine::clock::Clock;
use plimsoll_engine::{Company, Options, Part, Seconds, Unsettled, run, run_in};
use plimsoll_protocol::connection::Endpoint;
use plimsoll_workload_echo::Echoes;

const SESSIONS: u32 = 25;

fn options(address: SocketAddr) -> Options {
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.1, 0.1);
    (profile.measured_s, profile.grace_s) = (0.2, 2.0);
    Options::new(address, SESSIONS, profile)
}

fn workload(address: SocketAddr) -> Echoes {
    let endpoint = Endpoint {
        host: address.to_string(),
        path: "/".to_owned(),
        headers: Vec::new(),
    };
    Echoes::new(endpoint, 64, 10)
}

/// The runs of this process, and one more that is slow to end.
struct Others {
    clock: Clock,
    begun: AtomicUsize,
    settled: AtomicUsize,
    /// How many must have settled.
    all: usize,
    last_settled: AtomicBool,
}

impl Company for Others {
    fn begin(&self) -> std::io::Result<Clock> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(self.clock)
    }

    fn settled(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    fn may_end(&self) -> bool {
        self.settled.load(Ordering::Relaxed) == self.all
            && self.last_settled.load(Ordering::Relaxed)
    }
}

/// Nobody listens, so every session fails at once and is settled. The test checks who drives which sessions, and when
/// the runs end.
#[test]
fn parts_begin_and_end_together_and_are_the_whole() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = closed.local_addr().expect("address");
    drop(closed);
    let never = AtomicBool::new(false);
    let whole = run(&workload(address), &options(address), &never, |_| {
        Continue(())
    })
    .expect("it runs");
    assert_eq!(whole.sessions, u64::from(SESSIONS));

    let others = Others {
        clock: Clock::start_in(Duration::from_millis(100)),
        begun: AtomicUsize::new(0),
        settled: AtomicUsize::new(0),
        all: 3,
        last_settled: AtomicBool::new(false),
    };
    let part = |index| {
        let mut options = options(address);
        options.part = Part { index, of: 3 };
        let mut seconds = Vec::new();
        let on_second = |second| {
            seconds.push(second);
            Continue(())
        };
        let report = run_in(&others, &workload(address), &options, &never, on_second);
        (report.expect("it runs"), seconds, Instant::now())
    };
    let last_at = others.clock.epoch() + Duration::from_millis(1_200);
    let parts: Vec<_> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..3)
            .map(|index| scope.spawn(move || part(index)))
            .collect();
        std::thread::sleep(last_at.saturating_duration_since(Instant::now()));
        // All settled long ago, within 0.4 s.
        assert_eq!(others.settled.load(Ordering::Relaxed), 3);
        others.last_settled.store(true, Ordering::Relaxed);
        parts
            .into_iter()
            .map(|part| part.join().expect("no panic"))
            .collect()
    });
    assert_eq!(others.begun.load(Ordering::Relaxed), 3);

    let mut merged = Unsettled::empty(others.clock);
    let mut seconds = Seconds::new(3);
    let mut failed = Vec::new();
    for (index, (report, told, ended_at)) in parts.into_iter().enumerate() {
        assert!(ended_at >= last_at, "it ended before the others");
        merged.merge(report);
        let mut complete = Vec::new();
        for second in told {
            complete.extend(seconds.told(index, second));
        }
        complete.extend(seconds.over(index));
        failed.extend(complete.iter().map(|second| second.ledger.sessions_failed));
    }
    let merged = merged.settle(&workload(address), true);
    assert_eq!(merged.ledger, whole.ledger);
    assert_eq!(merged.sessions, whole.sessions);
    assert_eq!(failed.first(), Some(&u64::from(SESSIONS)));
    assert!(failed.len() >= 2, "{failed:?}");
}
