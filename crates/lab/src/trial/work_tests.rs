//! Every workload, driven by one process and by two.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit};
use plimsoll_core::session::{NoArrivals, SessionMachines};
use plimsoll_engine::clock::Clock;
use plimsoll_engine::{Company, Options, Part, Report, Unsettled};
use plimsoll_testing::{nobody_listens, side_by_side};
use plimsoll_workload::machines;
use plimsoll_workload_http::account::Counts;
use serde_json::Value;

use super::*;
use crate::find::tests::{WORKLOADS, conditions, plan};

const SESSIONS: u32 = 10;

/// Everything that sessions may do, each with its plan.
pub(in crate::trial) fn all(address: SocketAddr) -> Vec<(Work, Arc<dyn Plan>)> {
    let url = TargetUrl::at(address, "/?x=%22");
    let mut conditions = conditions();
    let mut lines = vec![
        "stt".to_owned(),
        "echo message_bytes=64 period_ms=10".to_owned(),
    ];
    for dialect in ["echo", "wse format=msgpack"] {
        for test in [
            "storm",
            "ping closed_loop=true",
            "throughput closed_loop=true",
            "matrix",
            "formats",
            "hold",
            "limit",
            "fanout",
        ] {
            lines.push(format!(
                "ws test={test} connections={SESSIONS} dialect={dialect}"
            ));
        }
    }
    for test in [
        "rate closed_loop=true",
        "rate protocol=h2c closed_loop=true",
        "post",
        "json dispatch=fixed",
        "connect",
        "sizes",
    ] {
        lines.push(format!("http test={test} connections={SESSIONS}"));
    }
    for test in ["steady", "fanout", "slow"] {
        lines.push(format!(
            "broker test={test} dialect=fibril writers=4 readers=6"
        ));
    }
    lines.push("voice".to_owned());
    lines.push("stt-real".to_owned());
    let mut works = Vec::new();
    for line in lines {
        conditions.plan = plan(&line);
        let work = Work::of(&conditions, SESSIONS, &url).expect("work");
        if conditions.plan.afterwards().is_some() {
            works.push((work.clone().afterwards(), Arc::clone(&conditions.plan)));
        }
        works.push((work, Arc::clone(&conditions.plan)));
    }
    // Also what is known of a target that we did not start.
    conditions.plan = plan("stt");
    conditions.configured = false;
    let work = Work::of(&conditions, SESSIONS, &url).expect("work");
    works.push((work, Arc::clone(&conditions.plan)));
    // And a server with TLS.
    conditions.plan = plan("echo period_ms=10");
    conditions.trust = plimsoll_tls::Trust::Anyone;
    let url = TargetUrl::parse(&format!("wss://{address}"), "/").expect("a URL");
    let work = Work::of(&conditions, SESSIONS, &url).expect("work");
    assert!(work.tls.is_some());
    works.push((work, Arc::clone(&conditions.plan)));
    works
}

fn options(address: SocketAddr) -> Options {
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.0, 0.05);
    (profile.measured_s, profile.grace_s) = (0.1, 0.2);
    Options::new(address, SESSIONS, profile)
}

/// Two processes, which are threads here.
struct Two {
    clock: Clock,
    settled: AtomicUsize,
}

impl Company for Two {
    fn begin(&self) -> std::io::Result<Clock> {
        Ok(self.clock)
    }

    fn settled(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    fn may_end(&self) -> bool {
        self.settled.load(Ordering::Relaxed) == 2
    }
}

/// What each part reports, as lines from process to process.
fn parts(work: &Work, options: &Options) -> Unsettled<Value> {
    let two = Two {
        clock: Clock::start_in(Duration::from_millis(50)),
        settled: AtomicUsize::new(0),
    };
    let order = serde_json::to_string(work).expect("an order is JSON");
    let part = |index| {
        let options = Options {
            part: Part { index, of: 2 },
            ..options.clone()
        };
        let work: Work = serde_json::from_str(&order).expect("an order can be read");
        let plan = work.plan(WORKLOADS).expect("a plan");
        let machines = work.machines(&*plan, &options.profile).expect("machines");
        let stop = AtomicBool::new(false);
        let part = machines.run_part(&two, &options, &stop, &mut |_| ControlFlow::Continue(()));
        serde_json::to_string(&part.expect("it runs")).expect("a report is JSON")
    };
    let mut all = Unsettled::empty(two.clock);
    std::thread::scope(|scope| {
        for part in [0, 1].map(|index| scope.spawn(move || part(index))) {
            let told = part.join().expect("no panic");
            all.merge(serde_json::from_str(&told).expect("a report can be read"));
        }
    });
    all
}

/// Nobody listens, so every session fails at once; but each is somebody's, and none is two's.
#[test]
fn every_work_can_be_divided() {
    let (_socket, address) = nobody_listens();
    let options = options(address);
    side_by_side(8, all(address), |(work, plan)| {
        let name = format!("{work:?}");
        let machines = work.machines(&*plan, &options.profile).expect("machines");
        let two = machines
            .settle(parts(&work, &options), true)
            .expect("settled");
        assert_eq!(two.sessions, u64::from(SESSIONS), "{name}");
        let never = AtomicBool::new(false);
        let one = machines.run(&options, &never, &mut |_| ControlFlow::Continue(()));
        let one: Report = one.expect("it runs");
        // Connections of http try again while the trial lasts, so how often is a matter of time. On a busy machine a session may
        // have waited too long for its core before it was refused, so that its reason is another.
        let times = plan.workload().about().name != "http";
        let told = |report: &Report| {
            let reasons: u64 = report.ledger.reasons.values().sum();
            let failed = report.ledger.sessions_failed;
            let failed = if times { failed } else { failed.min(1) };
            (reasons * u64::from(times), failed)
        };
        assert_eq!(told(&two), told(&one), "{name}");
        assert_eq!(two.ledger.frames_due, one.ledger.frames_due, "{name}");
        let findings = machines.findings();
        let mut of_a_closed_loop = ["closed_loop", "from_write"].into_iter();
        let closed =
            of_a_closed_loop.any(|found| findings.get(found).is_some_and(|found| !found.is_null()));
        assert_eq!(closed, work.afterwards, "{name}");
    });
}

#[test]
fn what_every_part_found_out_is_added_up() {
    let (_socket, address) = nobody_listens();
    let mut conditions = conditions();
    conditions.plan = plan("ws test=throughput dialect=wse closed_loop=true");
    let url = TargetUrl::at(address, "/");
    let options = options(address);
    let settled = |work: &Work, claims: &str| {
        let machines = work.machines(&*conditions.plan, &options.profile);
        let machines = machines.expect("machines");
        let mut parts = Unsettled::empty(Clock::start());
        parts.claims = serde_json::from_str(claims).expect("JSON");
        let settled = machines.settle(parts, true).map(|_| machines.findings());
        settled.map_err(Error::from)
    };
    let work = Work::of(&conditions, SESSIONS, &url).expect("work");
    let claims = r#"[{"answered":true},{"answered":false},{"answered":true}]"#;
    let found = settled(&work, claims).expect("claims");
    let decode = &found["decode"];
    assert_eq!(
        (decode["asked"].as_u64(), decode["answered"].as_u64()),
        (Some(3), Some(2))
    );
    assert_eq!(conditions.plan.asides(&found), 3);
    // Both sides are this program.
    let error = settled(&work, "[7]").expect_err("no claim");
    assert_eq!(error.exit_code(), 70, "{error}");

    let flood = work.afterwards();
    let found = settled(&flood, r#"[{"HandedOver":5},{"HandedOver":7}]"#).expect("claims");
    // In a window of 0.1 s.
    assert_eq!(found["closed_loop"]["messages_per_second"], 120.0);

    conditions.plan = plan("http");
    let work = Work::of(&conditions, SESSIONS, &url).expect("work");
    let machines = work.machines(&*conditions.plan, &options.profile);
    let machines = machines.expect("machines");
    let mut parts = Unsettled::empty(Clock::start());
    let opened = |connections_opened| Counts {
        connections_opened,
        ..Counts::default()
    };
    let claims = serde_json::to_value([opened(1), opened(2)]).expect("JSON");
    parts.claims = serde_json::from_value(claims).expect("claims");
    machines.settle(parts, true).expect("settled");
    assert_eq!(machines.findings()["counts"]["connections_opened"], 3);
}

/// A client process gets the token and not the secret that signs it.
#[test]
fn an_order_has_no_token_secret() {
    let mut conditions = conditions();
    let secret = "a-secret-of-more-than-thirty-two-bytes";
    conditions.plan = plan(&format!("ws dialect=wse token_secret={secret}"));
    let address = ([127, 0, 0, 1], 9).into();
    let work = Work::of(&conditions, 1, &TargetUrl::at(address, "/")).expect("work");
    let order = serde_json::to_string(&work).expect("JSON");
    assert!(order.contains("access_token="));
    assert!(!order.contains(secret));
    assert!(!format!("{:?}", conditions.plan).contains(secret));
}

struct Panics;

impl SessionMachines for Panics {
    type Session = Self;
    type Arrivals = NoArrivals;

    fn session(&self, _plan: &SessionPlan) -> Self {
        Self
    }
}

impl Session for Panics {
    type Claim = ();

    fn phase(&self) -> Phase {
        Phase::Opening
    }

    fn next_due_ns(&self) -> Option<u64> {
        None
    }

    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn transmit(&mut self, _now_ns: u64) -> Option<Transmit<'_>> {
        None
    }

    fn sent(&mut self, _write_ns: u64, _recorder: &mut Recorder<()>) {}

    fn received(&mut self, _now_ns: u64, _bytes: &[u8], _recorder: &mut Recorder<()>) {}

    fn disconnected(&mut self, _now_ns: u64, _how: Disconnect, _recorder: &mut Recorder<()>) {
        panic!("of this test");
    }

    fn settled(&self) -> bool {
        true
    }

    fn finish(&mut self, _now_ns: u64, _recorder: &mut Recorder<()>) {}
}

#[test]
fn a_panic_of_an_engine_thread_is_plimsolls_own_fault() {
    let (_socket, address) = nobody_listens();
    let options = options(address);
    let run = machines(Panics).run(&options, &AtomicBool::new(false), &mut |_| {
        ControlFlow::Continue(())
    });
    let error = Error::from(run.expect_err("it panics"));
    assert_eq!(error.exit_code(), 70, "{error}");
    assert!(error.to_string().contains("please report"), "{error}");
}
