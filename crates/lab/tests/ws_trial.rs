//! Trials of workload `ws` against a server in this process that echoes and counts. They test how the laboratory
//! handles a load whose unit is not sessions, a target's own counters, and a closed loop.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::record::{LoadUnit, Trial};
use plimsoll_host::isolation::{CpuList, Placement};
use plimsoll_host::machine::MachineFacts;
use plimsoll_host::signals::Stop;
use plimsoll_lab::trial::{self, BackEnd, Conditions, NetworkPlan, Subject, TargetUrl};
use plimsoll_protocol::websocket::handshake::accept_for;
use plimsoll_protocol::websocket::{Opcode, RawFrame, mask_in_place};
use plimsoll_workload::{Value, Values, Workload};
use plimsoll_workload_ws::Ws;
use plimsoll_workload_ws::record::{SECTION, WsRecord};

/// The server's own counters.
#[derive(Default)]
struct Counters {
    accepted: AtomicU64,
    received: AtomicU64,
}

/// Starts a server that runs as long as the process. Returns its address.
fn echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address").to_string();
    let counters = Arc::new(Counters::default());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counters = Arc::clone(&counters);
            std::thread::spawn(move || serve(stream, &counters));
        }
    });
    address
}

/// Serves one connection to its end.
fn serve(mut stream: TcpStream, counters: &Counters) -> Option<()> {
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::new();
    let head = loop {
        read_more(&mut stream, &mut bytes)?;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            break String::from_utf8_lossy(&bytes.drain(..end + 4).collect::<Vec<_>>())
                .into_owned();
        }
    };
    if head.starts_with("GET /metrics") {
        let body = format!(
            "ws_messages_received_total {}\nws_connections_accepted_total {}\n",
            counters.received.load(Ordering::SeqCst),
            counters.accepted.load(Ordering::SeqCst)
        );
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        return stream.write_all(answer.as_bytes()).ok();
    }
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let (_, key) = fields.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))?;
    counters.accepted.fetch_add(1, Ordering::SeqCst);
    let accept = accept_for(key);
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).ok()?;
    loop {
        let mut out = Vec::new();
        while let Some((opcode, payload)) = take_frame(&mut bytes) {
            if matches!(opcode, Opcode::Text | Opcode::Binary) {
                counters.received.fetch_add(1, Ordering::SeqCst);
            }
            RawFrame::server(opcode, &payload).append_to(&mut out);
            if opcode == Opcode::Close {
                return stream.write_all(&out).ok();
            }
        }
        stream.write_all(&out).ok()?;
        read_more(&mut stream, &mut bytes)?;
    }
}

fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 16 * 1024];
    let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
    bytes.extend_from_slice(&chunk[..read]);
    Some(())
}

/// Takes a complete client frame from the front and unmasks it. No test here has a frame of 64 KiB.
fn take_frame(bytes: &mut Vec<u8>) -> Option<(Opcode, Vec<u8>)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (length, at) = match second & 0x7F {
        126 => (
            usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
            4,
        ),
        short => (usize::from(short), 2),
    };
    let mask: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    let mut payload = bytes.get(at + 4..at + 4 + length)?.to_vec();
    mask_in_place(&mut payload, mask, 0);
    bytes.drain(..at + 4 + length);
    Some((Opcode::from_bits(first & 0x0F)?, payload))
}

/// Runs a short trial of the load against a fresh server.
fn trial_of(values: &[(&str, Value)], load: u32, logs: &Path) -> Trial {
    let address = echo_server();
    let values = values.iter().cloned();
    let values = values.fold(Values::default(), |values, (name, value)| {
        values.with(name, value)
    });
    let plan = (&Ws as &dyn Workload).planned(values).expect("a plan");
    let mut profile = Profile {
        name: "custom".to_owned(),
        ramp_s: 0.3,
        warm_up_s: 0.5,
        measured_s: 1.5,
        grace_s: 2.0,
        ..Profile::quick()
    };
    plan.unit().shape(&mut profile);
    let conditions = Conditions {
        slo: plan.slo(),
        further_slos: Vec::new(),
        profile,
        seed: 1,
        nodelay: true,
        tick_us: 500,
        headers: Vec::new(),
        secrets: plimsoll_core::secret::Secrets::default(),
        trust: plimsoll_tls::Trust::default(),
        placement: Placement::choose(1.0, &CpuList::allowed_to_us().expect("CPUs"), None, None)
            .expect("a placement"),
        probe: None,
        network: NetworkPlan::Loopback {
            why: "a test".to_owned(),
        },
        quota_period_us: 10_000,
        back_end: BackEnd::None,
        configured: false,
        log_folder: logs.to_path_buf(),
        machine: MachineFacts::of_this_machine(),
        build: plimsoll_core::record::Build::default(),
        plan,
    };
    let subject = Subject::Running {
        url: TargetUrl::parse(&format!("ws://{address}"), &conditions.plan.told().path)
            .expect("a URL"),
        resources: None,
    };
    let outcome = trial::run(
        &conditions,
        &subject,
        load,
        Length::Full,
        &Stop::new(),
        &mut |_| {},
    );
    let trial = outcome.expect("a trial").trial;
    let ledger = &trial.ledger;
    assert!(ledger.frames_due > 0, "{ledger:?}");
    assert_eq!(ledger.frames_lost + ledger.frames_errored, 0, "{ledger:?}");
    assert_eq!(
        ledger.sessions_failed + ledger.sessions_died,
        0,
        "{ledger:?}"
    );
    let of_target = |name: &str| name.starts_with("metrics_");
    let mut told = trial.sanity.iter().filter(|check| of_target(&check.name));
    assert!(told.all(|check| check.holds), "{:?}", trial.sanity);
    trial
}

#[test]
fn pings_and_a_closed_loop_beside_them() {
    let logs = tempfile::tempdir().expect("temp");
    let values = [
        ("period_ms", Value::Whole(100)),
        ("closed_loop", Value::Flag(true)),
    ];
    let trial = trial_of(&values, 10, logs.path());
    assert_eq!(
        (trial.sessions, trial.load_unit),
        (10, LoadUnit::CONNECTIONS)
    );
    assert_eq!(trial.ledger.sessions_started, 10);
    let names: Vec<_> = trial
        .sanity
        .iter()
        .map(|check| check.name.as_str())
        .collect();
    assert!(
        names.contains(&"metrics_frames") && names.contains(&"metrics_sessions"),
        "{names:?}"
    );
    let record = trial.sections.get::<WsRecord>(SECTION).expect("a record");
    let delivered = record.delivered;
    assert_eq!(delivered.read, delivered.offered);
    let processed = delivered.processed.expect("it counts");
    // Neither account has what the closed loop sent afterwards.
    assert!(
        (trial.ledger.frames_answered_in_all..=delivered.written_in_all).contains(&processed),
        "{delivered:?}"
    );
    let closed_loop = record.closed_loop.expect("asked for");
    assert_eq!(
        (closed_loop.pings_answered, closed_loop.pings_given_up),
        (10 * 50, 0)
    );
    assert!(closed_loop.p50_ms.is_some() && closed_loop.messages_per_second.is_none());
}

#[test]
fn messages_at_a_rate_and_a_flood_beside_them() {
    let logs = tempfile::tempdir().expect("temp");
    let values = [
        ("test", Value::Word("throughput".to_owned())),
        ("connections", Value::Whole(5)),
        ("closed_loop", Value::Flag(true)),
    ];
    let trial = trial_of(&values, 500, logs.path());
    assert_eq!(
        (trial.sessions, trial.load_unit),
        (500, LoadUnit::MESSAGES_PER_SECOND)
    );
    assert_eq!(trial.ledger.sessions_started, 5);
    // Messages for 1.5 s. The exact count depends on where each connection's schedule begins.
    assert!((745..=755).contains(&trial.ledger.frames_due));
    let record = trial.sections.get::<WsRecord>(SECTION).expect("a record");
    assert_eq!(
        (record.connections, record.message_bytes),
        (Some(5), Some(175))
    );
    assert_eq!(
        (record.format.as_deref(), record.decode),
        (Some("json"), None)
    );
    let flood = record.closed_loop.expect("asked for");
    assert!(flood.messages_per_second.is_some_and(|rate| rate > 500.0));
}

#[test]
fn arrivals_at_a_rate() {
    let logs = tempfile::tempdir().expect("temp");
    let values = [
        ("test", Value::Word("storm".to_owned())),
        ("linger_ms", Value::Whole(100)),
    ];
    let trial = trial_of(&values, 40, logs.path());
    assert_eq!(
        (trial.sessions, trial.load_unit),
        (40, LoadUnit::CONNECTIONS_PER_SECOND)
    );
    // There is no ramp: connections arrive in warm-up and window.
    assert_eq!(trial.phases.ramp_s.to_bits(), 0.0_f64.to_bits());
    assert_eq!(trial.ledger.sessions_started, 80);
    assert!((59..=61).contains(&trial.ledger.frames_due));
    let record = trial.sections.get::<WsRecord>(SECTION).expect("a record");
    assert_eq!(record.outcomes, []);
    assert_eq!(record.delivered.processed, None);
}
