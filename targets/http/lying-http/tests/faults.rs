//! Each fault, as a client sees it: it is there, and there is no other.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use http_target::contract::{Client, Program, Target, command};
use http_target::routes::pattern;

const PROGRAM: Program = Program { path: env!("CARGO_BIN_EXE_lying-http"), lax: &[] };

fn start(fault: &str, variables: &[(&str, &str)]) -> Target {
    Target::start(PROGRAM, &[&[("FAULT", fault)], variables].concat())
}

/// Nothing comes, and the connection does not end.
fn expect_silence(client: &mut Client) {
    client.socket.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
    let seen = client.socket.peek(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(seen, Err(ErrorKind::WouldBlock)), "{seen:?}");
}

fn time(client: &mut Client) -> Duration {
    let begun = Instant::now();
    assert_eq!(client.get("/").body, b"ok");
    begun.elapsed()
}

#[test]
fn fast_503_answers_its_share_with_503() {
    let target = start("fast_503", &[("SHARE", "0.1")]);
    let mut client = target.client();
    let statuses: Vec<u16> = (0..100).map(|number| client.get(&format!("/json/{number}")).status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 10);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 90);
}

#[test]
fn drop_never_answers_its_share() {
    let target = start("drop", &[("SHARE", "0.5")]);
    let mut client = target.client();
    assert_eq!(client.get("/").status, 200);
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_silence(&mut client);
    let mut other = target.client();
    assert_eq!(other.get("/").status, 200);
    assert_eq!(target.metric("http_requests_total"), 5, "what follows a dropped request is not read");
}

#[test]
fn short_body_cuts_the_body_and_closes() {
    let target = start("short_body", &[("SHARE", "1")]);
    for (path, length) in [("/bytes/1001", 1001), ("/bytes/100000", 100_000), ("/", 2)] {
        let mut client = target.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let head = client.receive_head();
        assert_eq!((head.status, head.field("content-length")), (200, Some(length.to_string().as_str())));
        assert!(!head.closes());
        assert_eq!(client.read(length / 2), pattern_or_ok(path, length / 2));
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut client.socket, &mut rest).expect("an end");
        assert_eq!(rest, b"");
    }
}

fn pattern_or_ok(path: &str, length: usize) -> Vec<u8> {
    if path == "/" { b"o".to_vec() } else { pattern()[..length].to_vec() }
}

#[test]
fn wrong_body_is_framed_rightly() {
    let target = start("wrong_body", &[("SHARE", "1")]);
    let mut client = target.client();
    assert_eq!(client.get("/").body, b"ko");
    assert_eq!(client.get("/bytes/1").body, b"1");
    for length in [2, 64, 4096, 100_000] {
        let body = client.get(&format!("/bytes/{length}")).body;
        assert!(body.len() == length && body[0] == b'1' && body[length - 1] == b'0', "{length}");
    }
    assert_ne!(client.get("/json/1").body, br#"{"id":1,"name":"item 1","even":false}"#);
    assert_eq!(client.get("/json/22").body, br#"{"id":1,"name":"item 1","even":false}"#);
    client.post("/sum", b"one");
    assert_eq!(client.post("/sum", b"two").body, b"7a6c86f1 3", "the sum of one");
    let target = start("wrong_body", &[("SHARE", "0.5")]);
    let mut client = target.client();
    let right = (0..100).filter(|_| client.get("/").body == b"ok").count();
    assert_eq!(right, 50);
}

#[test]
fn slow_start_is_slow_for_the_life_of_the_process() {
    for (coin, low_ms, high_ms) in [("low", 5, 40), ("high", 200, 300)] {
        let target = start("slow_start", &[("COIN", coin)]);
        let mut client = target.client();
        for _ in 0..3 {
            let time = time(&mut client);
            assert!(time >= Duration::from_millis(low_ms) && time < Duration::from_millis(high_ms), "{time:?}");
        }
    }
}

#[test]
fn delay_is_exact() {
    let target = start("delay", &[]);
    let mut client = target.client();
    let mut times: Vec<Duration> = (0..1000).map(|_| time(&mut client)).collect();
    times.sort_unstable();
    println!("p0 {:?}, p10 {:?}, p50 {:?}, p90 {:?}", times[0], times[100], times[500], times[900]);
    assert!(times[0] >= Duration::from_micros(300), "{:?}", times[0]);
    // Most, because other tests run beside this one.
    assert!(times[100] < Duration::from_micros(500), "{:?}", times[100]);
    // What is pipelined waits no longer.
    let begun = Instant::now();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(50));
    (0..50).for_each(|_| assert_eq!(client.receive().body, b"ok"));
    assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
}

#[test]
fn stop_makes_everything_wait() {
    let target = start("stop", &[("STOP_MS", "200"), ("EVERY_MS", "600")]);
    let mut client = target.client();
    let begun = Instant::now();
    let mut times = Vec::new();
    while begun.elapsed() < Duration::from_millis(1750) {
        times.push(time(&mut client));
        std::thread::sleep(Duration::from_millis(1));
    }
    let long: Vec<_> = times.iter().filter(|time| **time > Duration::from_millis(150)).collect();
    assert!((2..=3).contains(&long.len()), "{long:?}");
    assert!(long.iter().all(|time| **time < Duration::from_millis(300)), "{long:?}");
    assert!(times.len() > 300, "{} requests", times.len());
}

#[test]
fn dies_exits_with_1() {
    let begun = Instant::now();
    let target = start("dies", &[("DIE_AFTER_S", "1")]);
    let mut client = target.client();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(target.wait().code(), Some(1));
    assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
    client.expect_end();
}

#[test]
fn dead_answers_nothing_but_the_first_request() {
    let target = start("dead", &[]);
    assert_eq!(target.client().get("/").status, 200);
    for path in ["/", "/metrics", "/bytes/3"] {
        let mut client = target.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        expect_silence(&mut client);
    }
    assert_eq!(target.client().get("/healthz").status, 200);
}

#[test]
fn close_early_closes_without_a_word() {
    let target = start("close_early", &[("CLOSE_AFTER", "3")]);
    for _ in 0..3 {
        let mut client = target.client();
        for _ in 0..3 {
            let answer = client.get("/");
            assert!(answer.status == 200 && !answer.closes());
        }
        client.expect_end();
    }
}

#[test]
fn extra_answer_comes_unasked() {
    let target = start("extra_answer", &[("SHARE", "1")]);
    let mut client = target.client();
    assert_eq!(client.get("/json/3").body, client.receive().body);
    expect_silence(&mut client);
}

#[test]
fn the_end_comes_in_time_with_a_request_that_is_never_answered() {
    let target = start("drop", &[("SHARE", "1"), ("DRAIN_TIMEOUT_MS", "500")]);
    let mut client = target.client();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_silence(&mut client);
    let begun = Instant::now();
    target.terminate();
    assert_eq!(target.wait().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
}

#[test]
fn a_bad_fault_is_one_line_and_exit_code_2() {
    for (variables, name) in [
        (&[("FAULT", "sloth")][..], "FAULT="),
        (&[("FAULT", "drop"), ("SHARE", "2")], "SHARE="),
        (&[("SHARE", "1")], "SHARE="),
    ] {
        let output = command(PROGRAM).envs(variables.iter().copied()).output().expect("run");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.starts_with(name) && output.stdout.is_empty(), "{stderr}");
    }
}
