//! Lies of the whole process.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::lying;
use super::mocks::{Manner, Mocks};
use super::program::{Gateway, UPGRADE};

#[test]
fn a_stall_stops_everything_again_and_again() {
    let numbers = [("LIE_AFTER_MS", "300"), ("LIE_MS", "400"), ("LIE_PERIOD_MS", "800")];
    let (_mocks, gateway, mut caller) = lying("stall", &numbers, Manner { blocks: 1, ..Manner::default() });
    let began = Instant::now();
    let mut long = Vec::new();
    for turn in 1.. {
        let asked = Instant::now();
        caller.reply(turn);
        assert_eq!(gateway.get("/").status, 200);
        long.extend(Some(asked.elapsed()).filter(|time| *time > Duration::from_millis(300)));
        if began.elapsed() > Duration::from_millis(1900) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // At 0.3 and 1.1 s, and perhaps the beginning of that at 1.9 s.
    assert!((2..=3).contains(&long.len()), "{long:?}");
}

#[test]
fn slow_accept_makes_each_connection_wait() {
    let gateway = Gateway::start("http://127.0.0.1:1", &[("LIE", "slow_accept"), ("LIE_MS", "150")]);
    let began = Instant::now();
    let mut streams: Vec<_> = (0..4).map(|_| gateway.connect()).collect();
    for stream in &mut streams {
        stream.write_all(UPGRADE.as_bytes()).expect("written");
    }
    for stream in &mut streams {
        assert!(super::program::read_head(stream).starts_with("HTTP/1.1 101 "));
    }
    assert!(began.elapsed() >= Duration::from_millis(450), "{:?}", began.elapsed());
}

#[test]
fn silent_reads_and_never_answers() {
    let gateway = Gateway::start("http://127.0.0.1:1", &[("LIE", "silent")]);
    assert_eq!(gateway.get("/").status, 200, "it is up");
    for request in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /other HTTP/1.1\r\nHost: x\r\n\r\n", UPGRADE] {
        let mut stream = gateway.connect();
        stream.write_all(request.as_bytes()).expect("written");
        stream.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        let seen = stream.read(&mut [0]).map_err(|error| error.kind());
        assert!(matches!(seen, Err(ErrorKind::WouldBlock)), "{seen:?}");
    }
    assert_eq!(gateway.get("/metrics").status, 200);
}

#[test]
fn spin_costs_more_with_every_session() {
    let (mocks, gateway, mut caller) = lying("spin", &[("LIE_US", "20000")], Manner::default());
    let time = |caller: &mut Caller| {
        let began = Instant::now();
        caller.utterance(5);
        began.elapsed()
    };
    let alone = time(&mut caller);
    let _others: Vec<_> = (2..=5).map(|number| Caller::start(&gateway, number)).collect();
    let with_four = time(&mut caller);
    // Five messages, 20 ms each for each session.
    assert!(alone >= Duration::from_millis(100), "{alone:?}");
    assert!(with_four >= Duration::from_millis(500), "{with_four:?}");
    assert_eq!(mocks.heard().len(), 10);
}

#[test]
fn leaked_memory_is_resident() {
    let (mocks, gateway, mut caller) = lying("leak_memory", &[("LIE_BYTES", "8388608")], Manner::default());
    let before = gateway.resident_kib();
    caller.say(4);
    mocks.await_heard(4);
    assert!(gateway.resident_kib() >= before + 4 * 8192, "{before}, {}", gateway.resident_kib());
}

#[test]
fn die_exits_with_1() {
    let (_mocks, mut gateway, mut caller) = lying("die", &[("LIE_AFTER_MS", "300")], Manner::default());
    let began = Instant::now();
    assert_eq!(caller.end(), None);
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(gateway.exit_code(), Some(1));
}

#[test]
fn nothing_dies_before_its_first_session() {
    let mocks = Mocks::start(Manner::default());
    let gateway = Gateway::start(&mocks.url, &[("LIE", "die"), ("LIE_AFTER_MS", "0")]);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(gateway.get("/").status, 200);
}
