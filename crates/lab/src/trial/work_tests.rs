//! Every workload, driven by one process and by two.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit};
use plimsoll_engine::clock::Clock;
use plimsoll_engine::{Company, Part, Report, Unsettled};
use plimsoll_workload_ws::Format;
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use super::*;
use crate::find::tests::conditions;

const SESSIONS: u32 = 10;

/// Everything that sessions may do.
pub(in crate::trial) fn all(address: SocketAddr) -> Vec<Work> {
    let url = TargetUrl::at(address, "/?x=%22");
    let mut conditions = conditions();
    let mut loads = vec![
        conditions.load.clone(),
        Load::Echo {
            message_bytes: 64,
            period_ms: 10,
        },
    ];
    for dialect in Dialect::ALL {
        for test in Test::ALL {
            let mut ws = WsLoad::new(test, dialect);
            ws.connections = SESSIONS;
            ws.closed_loop = matches!(test, Test::Ping | Test::Throughput);
            if dialect == Dialect::Wse {
                ws.format = Format::Msgpack;
            }
            loads.push(Load::Ws(Box::new(ws)));
        }
    }
    let mut works = Vec::new();
    for load in loads {
        conditions.load = load;
        works.push(Work::of(&conditions, SESSIONS, &url).expect("work"));
        works.extend(Work::closed_loop(&conditions, &url).expect("work"));
    }
    // Also what is known of a target that we did not start.
    conditions.load = Load::Stt {
        audio: AudioSource::File("a.wav".into()),
    };
    conditions.configured = false;
    works.push(Work::of(&conditions, SESSIONS, &url).expect("work"));
    works
}

/// An address where nobody listens, and a socket that keeps it from everybody else.
fn nobody() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).expect("bind");
    let address = socket.local_addr().expect("an address");
    (socket, address.as_socket().expect("an IP address"))
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
        let machines = work.machines(&options).expect("machines");
        let stop = AtomicBool::new(false);
        let part = machines.run_part(&two, &options, &stop, &mut |_| {});
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
    let (_socket, address) = nobody();
    let options = options(address);
    for work in all(address) {
        let name = format!("{work:?}");
        if matches!(&work, Work::Stt { audio, .. } if *audio != AudioSource::Synthetic) {
            continue;
        }
        let machines = work.machines(&options).expect("machines");
        let two = machines.settle(parts(&work, &options)).expect("settled");
        assert_eq!(two.sessions, u64::from(SESSIONS), "{name}");
        let never = AtomicBool::new(false);
        let one = machines.run(&options, &never, &mut |_| {});
        let one: Report = one.expect("it runs");
        assert_eq!(two.ledger.reasons, one.ledger.reasons, "{name}");
        assert_eq!(
            two.ledger.sessions_failed, one.ledger.sessions_failed,
            "{name}"
        );
        let closed = matches!(work, Work::ClosedLoop { .. });
        assert_eq!(machines.findings().closed_loop.is_some(), closed, "{name}");
    }
}

#[test]
fn what_every_part_found_out_is_added_up() {
    let (_socket, address) = nobody();
    let mut conditions = conditions();
    let mut ws = WsLoad::new(Test::Throughput, Dialect::Wse);
    ws.closed_loop = true;
    conditions.load = Load::Ws(Box::new(ws));
    let url = TargetUrl::at(address, "/");
    let options = options(address);
    let settled = |work: &Work, claims: &str| {
        let machines = work.machines(&options).expect("machines");
        let mut parts = Unsettled::empty(Clock::start());
        parts.claims = serde_json::from_str(claims).expect("JSON");
        machines.settle(parts).map(|_| machines.findings())
    };
    let work = Work::of(&conditions, SESSIONS, &url).expect("work");
    let claims = r#"[{"answered":true},{"answered":false},{"answered":true}]"#;
    let decode = settled(&work, claims).expect("claims").decode;
    let decode = decode.expect("it was asked");
    assert_eq!((decode.asked, decode.answered), (3, 2));
    // Both sides are this program.
    let error = settled(&work, "[7]").expect_err("no claim");
    assert_eq!(error.exit_code(), 70, "{error}");

    let flood = Work::closed_loop(&conditions, &url).expect("work");
    let flood = flood.expect("it was asked for");
    let found = settled(&flood, r#"[{"HandedOver":5},{"HandedOver":7}]"#).expect("claims");
    let record = found.closed_loop.expect("it is one");
    // In a window of 0.1 s.
    assert_eq!(record.messages_per_second, Some(120.0));
}

#[test]
fn a_closed_loops_pings_and_messages_are_told_apart() {
    let mut told = ClosedLoop {
        pings_answered: 9,
        pings_given_up: 1,
        ..ClosedLoop::default()
    };
    told.round_trip.p99_ms = Some(2.5);
    let pings = record_of_pings(&told);
    assert_eq!((pings.pings_answered, pings.pings_given_up), (9, 1));
    assert_eq!((pings.p99_ms, pings.messages_per_second), (Some(2.5), None));
    told.messages_per_second = 100.0;
    let messages = record_of_messages(&told);
    assert_eq!(messages.messages_per_second, Some(100.0));
    assert_eq!((messages.pings_answered, messages.p99_ms), (0, None));
}

#[test]
fn only_a_wse_server_is_given_a_token() {
    let endpoint = Endpoint {
        host: "127.0.0.1:1".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
    };
    for dialect in Dialect::ALL {
        let ws = WsLoad::new(Test::Ping, dialect);
        let asked = with_token(&ws, endpoint.clone());
        assert_eq!(asked.headers.is_empty(), dialect == Dialect::Echo);
        asked.check().expect("can be asked for");
    }
}

/// A client process gets the token and not the secret that signs it.
#[test]
fn an_order_has_no_token_secret() {
    let mut conditions = conditions();
    let mut ws = WsLoad::new(Test::Ping, Dialect::Wse);
    let secret = "a secret of more than thirty-two bytes";
    ws.credentials.secret = plimsoll_core::secret::Secret::new(secret);
    conditions.load = Load::Ws(Box::new(ws));
    let address = ([127, 0, 0, 1], 9).into();
    let work = Work::of(&conditions, 1, &TargetUrl::at(address, "/")).expect("work");
    let order = serde_json::to_string(&work).expect("JSON");
    assert!(order.contains("access_token="));
    assert!(!order.contains(secret));
}

struct Panics;

impl Workload for Panics {
    type Session = Self;

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
    let (_socket, address) = nobody();
    let options = options(address);
    let run = machines(Panics).run(&options, &AtomicBool::new(false), &mut |_| {});
    let error = run.expect_err("it panics");
    assert_eq!(error.exit_code(), 70, "{error}");
    assert!(error.to_string().contains("please report"), "{error}");
}
