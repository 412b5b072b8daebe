//! What the trials here share: an echo server that counts, and the conditions of a short trial.
#![allow(dead_code)] // Each test file uses only a part.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::profile::Profile;
use plimsoll_host::isolation::{CpuList, Placement};
use plimsoll_host::machine::MachineFacts;
use plimsoll_lab::trial::{BackEnd, Conditions, NetworkPlan};
use plimsoll_protocol::websocket::handshake::accept_for;
use plimsoll_protocol::websocket::{Opcode, RawFrame, mask_in_place};
use plimsoll_workload::Plan;

/// The conditions of a short trial on the loopback, of a server that runs already.
pub(crate) fn conditions(plan: Arc<dyn Plan>, logs: &Path) -> Conditions {
    let mut profile = Profile {
        name: "custom".to_owned(),
        ramp_s: 0.3,
        warm_up_s: 0.5,
        measured_s: 1.5,
        grace_s: 2.0,
        ..Profile::quick()
    };
    plan.unit().shape(&mut profile);
    Conditions {
        slo: plan.slo(),
        further_slos: Vec::new(),
        goals: None,
        profile,
        seed: 1,
        nodelay: true,
        tick_us: 500,
        headers: Vec::new(),
        secrets: plimsoll_core::secret::Secrets::default(),
        trust: plimsoll_tls::Trust::default(),
        sni: None,
        placement: Placement::choose(1.0, &CpuList::allowed_to_us().expect("CPUs"), None, None)
            .expect("a placement"),
        probe: None,
        fleet: None,
        network: NetworkPlan::Loopback {
            why: "a test".to_owned(),
        },
        quota_period_us: 10_000,
        back_end: BackEnd::None,
        configured: false,
        log_folder: logs.to_path_buf(),
        machine: MachineFacts::of_this_machine(),
        build: plimsoll_core::record::Build::default(),
        baseline: None,
        plan,
    }
}

/// The server's own counters.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) received: AtomicU64,
    /// How long it waits before it answers the message of this number; not at all if there is nothing.
    pub(crate) delay: Option<fn(u64) -> Duration>,
}

/// Starts a server that runs as long as the process. Returns its address.
pub(crate) fn echo_server() -> String {
    echo_server_that(None)
}

/// The same, of a server that may wait before it answers: for a time that depends on the number of the message.
pub(crate) fn echo_server_that(delay: Option<fn(u64) -> Duration>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address").to_string();
    let counters = Arc::new(Counters {
        delay,
        ..Counters::default()
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counters = Arc::clone(&counters);
            std::thread::spawn(move || serve(stream, &counters));
        }
    });
    address
}

/// Serves one connection to its end.
pub(crate) fn serve(mut stream: TcpStream, counters: &Counters) -> Option<()> {
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
                let number = counters.received.fetch_add(1, Ordering::SeqCst);
                if let Some(delay) = counters.delay {
                    std::thread::sleep(delay(number));
                }
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
