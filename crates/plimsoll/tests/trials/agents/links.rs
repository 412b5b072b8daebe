//! A bad way to the coordinator: slow, or longer in one direction. It changes nothing of what is measured.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{conclusive, records, undisturbed_call};
use plimsoll_testing::measures;

use super::machines::{Machines, tc};
use super::{Door, Fleet};

/// So long every word of the coordinator is on its way.
const DELAY: Duration = Duration::from_millis(40);

/// Copies until one side closes, each piece after `delay`.
fn copy(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (pieces, due) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
    let writer = std::thread::spawn(move || {
        for (at, piece) in due {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut piece = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let due_at = Instant::now() + delay;
        if pieces.send((due_at, piece[..length].to_vec())).is_err() {
            break;
        }
    }
    drop(pieces);
    let _ = writer.join();
}

/// A way to `door` on which what comes from there takes longer. Returns its address.
fn delayed(door: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let door = door.to_owned();
    std::thread::spawn(move || {
        for agent in listener.incoming().flatten() {
            let Ok(coordinator) = TcpStream::connect(&door) else {
                break;
            };
            for stream in [&agent, &coordinator] {
                stream.set_nodelay(true).expect("set");
            }
            let (to, from) = (coordinator.try_clone(), agent.try_clone());
            let (to, from) = (to.expect("cloned"), from.expect("cloned"));
            std::thread::spawn(move || copy(agent, to, Duration::ZERO));
            std::thread::spawn(move || copy(coordinator, from, DELAY));
        }
    });
    address
}

#[test]
#[measures]
fn a_clock_that_is_40_ms_away_one_way_is_a_caveat_and_no_latency() {
    let fleet = Fleet::new();
    let ended = conclusive!(undisturbed_call(&[], || {
        let (coordinator, door) = fleet.coordinator("--agents 1 --sessions 10", 3);
        let through = Door {
            address: delayed(&door.address),
            fingerprint: door.fingerprint.clone(),
        };
        let pinned = format!("--fingerprint {}", door.fingerprint);
        let agent = fleet.agent(&through, &pinned).start();
        let ended = coordinator.wait();
        agent.wait().expect_code(0);
        ended
    }));
    ended.expect_code(0);
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_flawless_ledger();
    assert!(trial.caveats().contains(&"clock-error"));
    let error_us = trial.at("client.agents")[0]["clock_error_us"].as_f64();
    assert!(error_us >= Some(20_000.0), "{error_us:?}");
    let p50_ms = trial.at("latency.newest.from_schedule.p50_ms").as_f64();
    assert!(p50_ms < Some(20.0), "{p50_ms:?}");
}

#[test]
#[measures]
fn a_control_connection_of_1_mbit_per_s_is_enough() {
    let Some(machines) = Machines::or_skip("s", 4) else {
        return;
    };
    // The load has a way of its own: only what goes to the coordinator's machine is slow.
    let hub = machines.name(0);
    let slow = format!("-n {hub} qdisc add dev m1 root tbf rate 1mbit burst 16kb latency 400ms");
    let back = "qdisc add dev card root tbf rate 1mbit burst 16kb latency 400ms";
    let back = format!("-n {} {back}", machines.name(1));
    for line in [slow, back] {
        tc(&line).expect("a queue");
    }
    let ended = conclusive!(undisturbed_call(&[], || machines.run(2, "--sessions 40")));
    ended.expect_code(0);
    let trial = ended.trial();
    trial.expect_flawless_ledger();
    let agents = trial.at("client.agents").as_array().expect("a list");
    assert!(agents.iter().all(|agent| agent["lost"].is_null()));
}
