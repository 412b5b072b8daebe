//! A range of ports that is used up is the client's fault and never the target's. This file has only one test, which
//! starts itself again: there are more ports than one process may have descriptors, so other processes hold them.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::ops::ControlFlow::Continue;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use plimsoll_core::profile::Profile;
use plimsoll_engine::{Options, run};
use plimsoll_protocol::connection::Endpoint;
use plimsoll_workload_echo::Echoes;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The address whose ports are taken; nobody else uses it.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 77, 0, 1));
/// Set for a process that only holds ports: the first and the last port.
const HOLDS: &str = "PLIMSOLL_TEST_HOLDS_PORTS";
const HELD: &str = "all are held";
/// Descriptors that a holder needs besides those for its ports.
const FURTHER_DESCRIPTORS: u64 = 100;

fn two_ports(text: &str) -> (u16, u16) {
    let mut ports = text
        .split_whitespace()
        .map(|port| port.parse().expect("a port"));
    let mut next = || ports.next().expect("two ports");
    (next(), next())
}

/// Takes a port of [`SOURCE`], unless it is already taken.
fn take(port: u16) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
    let socket = socket.expect("a descriptor");
    match bind(&socket, &SocketAddr::new(SOURCE, port)) {
        Ok(()) => Some(socket),
        // Another process listens on this port on all addresses.
        Err(Errno::ADDRINUSE) => None,
        Err(error) => panic!("port {port}: {error}"),
    }
}

/// What a holder does: takes its ports, says so, and keeps them until nobody needs them any more.
fn hold(ports: &str) {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        ..before
    };
    setrlimit(Resource::Nofile, raised).expect("up to the hard limit");
    let (low, high) = two_ports(ports);
    let taken: Vec<OwnedFd> = (low..=high).filter_map(take).collect();
    println!("{HELD}");
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(taken);
}

fn start_holder(low: u16, high: u16) -> Child {
    let this = std::env::current_exe().expect("this program");
    let mut holder = Command::new(this)
        .args(["--nocapture", "sessions_without_a_port"])
        .env(HOLDS, format!("{low} {high}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started again");
    let said = holder.stdout.as_mut().expect("piped");
    let mut lines = BufReader::new(said).lines().map_while(Result::ok);
    assert!(
        lines.any(|line| line.contains(HELD)),
        "a holder ended without its ports"
    );
    holder
}

/// Starts processes that together hold all ports that the kernel would choose from.
fn start_holders() -> Vec<Child> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let (low, high) = two_ports(&range.expect("procfs"));
    let ports: Vec<u16> = (low..=high).collect();
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 16);
    let each = usize::try_from(descriptors - FURTHER_DESCRIPTORS).expect("fits");
    ports
        .chunks(each)
        .map(|share| start_holder(share[0], share[share.len() - 1]))
        .collect()
}

fn options(address: SocketAddr) -> Options {
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.1, 0.1);
    (profile.measured_s, profile.grace_s) = (0.2, 0.1);
    profile.session_start_spread_ms = 50.0;
    Options {
        source_addresses: vec![SOURCE],
        ..Options::new(address, 20, profile)
    }
}

#[test]
fn sessions_without_a_port_are_the_clients_fault() {
    if let Ok(ports) = std::env::var(HOLDS) {
        return hold(&ports);
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let endpoint = Endpoint {
        host: address.to_string(),
        path: "/".to_owned(),
        headers: Vec::new(),
    };
    let workload = Echoes::new(endpoint, 64, 10);
    let mut holders = start_holders();
    let options = options(address);
    let report = run(&workload, &options, &AtomicBool::new(false), |_| {
        Continue(())
    });
    for holder in &mut holders {
        // The holder's input ends, and so does the holder.
        drop(holder.stdin.take());
        holder.wait().expect("a holder of ours");
    }

    let report = report.expect("the engine itself could start");
    assert_eq!(report.client_faults["EADDRINUSE"], 20);
    // None of this is charged to the target: no session failed, nothing was due, nothing was lost.
    let ledger = &report.ledger;
    assert_eq!((ledger.sessions_failed, ledger.sessions_died), (0, 0));
    assert_eq!((ledger.frames_due, ledger.frames_lost), (0, 0));
    assert!(ledger.reasons.is_empty(), "{:?}", ledger.reasons);
    assert_eq!(report.achieved_share(), Some(0.0));
}
