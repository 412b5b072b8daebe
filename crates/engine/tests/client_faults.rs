//! What the client's machine refuses is never the target's fault. This file has only one test, because limits apply to
//! the whole process.

use std::fs::File;
use std::net::TcpListener;
use std::ops::ControlFlow::Continue;
use std::sync::atomic::AtomicBool;

use plimsoll_core::profile::Profile;
use plimsoll_engine::{Options, run};
use plimsoll_protocol::connection::Endpoint;
use plimsoll_workload_echo::Echoes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn sessions_without_a_descriptor_are_the_clients_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.1, 0.1);
    (profile.measured_s, profile.grace_s) = (0.2, 0.1);
    profile.session_start_spread_ms = 50.0;
    let options = Options::new(address, 20, profile);
    let endpoint = Endpoint {
        host: address.to_string(),
        path: "/".to_owned(),
        headers: Vec::new(),
    };
    let workload = Echoes::new(endpoint, 64, 10);

    let before = getrlimit(Resource::Nofile);
    let lowered = Rlimit {
        current: Some(64),
        ..before
    };
    setrlimit(Resource::Nofile, lowered).expect("lowering is always allowed");
    // All descriptors are taken except one, which the engine's own epoll gets.
    let mut taken: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    taken.pop();
    let report = run(&workload, &options, &AtomicBool::new(false), |_| {
        Continue(())
    });
    drop(taken);
    setrlimit(Resource::Nofile, before).expect("back to what it was");

    let report = report.expect("the engine itself could start");
    assert_eq!(report.client_faults["EMFILE"], 20);
    // None of this is charged to the target: no session failed, nothing was due, nothing was lost.
    let ledger = &report.ledger;
    assert_eq!((ledger.sessions_failed, ledger.sessions_died), (0, 0));
    assert_eq!((ledger.frames_due, ledger.frames_lost), (0, 0));
    assert!(ledger.reasons.is_empty(), "{:?}", ledger.reasons);
    assert_eq!(report.achieved_share(), Some(0.0));
}
