//! Start and end.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::h1::{body, sum};
use super::{Client, Program, Target, command};

pub(super) fn drain(program: Program) {
    let target = Target::start(program, &[("WORKER_THREADS", "2"), ("DRAIN_TIMEOUT_MS", "4000")]);
    let body = body(2000);
    let mut idle = target.client();
    assert_eq!(idle.get("/").status, 200);
    let mut busy: Vec<Client> = (0..4).map(|_| target.client()).collect();
    for client in &mut busy {
        client.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n");
        client.send(&body[..1000]);
    }
    // Until all of it has been read.
    thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    target.terminate();
    idle.expect_end();
    while TcpStream::connect(("127.0.0.1", target.port)).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(2), "connections are accepted");
        thread::sleep(Duration::from_millis(5));
    }
    // Until every connection knows.
    thread::sleep(Duration::from_millis(100));
    for client in &mut busy {
        client.send(&body[1000..]);
        let answer = client.receive();
        assert_eq!((answer.status, String::from_utf8(answer.body.clone())), (200, Ok(sum(&body))));
        assert!(answer.closes(), "{answer:?}");
        client.expect_end();
    }
    assert_eq!(target.wait().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());

    // A request that never ends is not waited for longer than that.
    let target = Target::start(program, &[("DRAIN_TIMEOUT_MS", "500")]);
    let mut client = target.client();
    client.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\nabc");
    thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    target.terminate();
    assert_eq!(target.wait().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
}

pub(super) fn workers(program: Program) {
    let target = Target::start(program, &[("WORKER_THREADS", "2")]);
    let ask = |first: u64| {
        let mut clients: Vec<Client> = (0..50).map(|_| target.client()).collect();
        for number in first..first + 500 {
            let client = &mut clients[usize::try_from(number).expect("small") % 50];
            assert_eq!(client.get(&format!("/json/{number}")).body, super::h1::item(number).as_bytes());
        }
    };
    thread::scope(|scope| {
        for first in [0, 10_000, 20_000] {
            scope.spawn(move || ask(first));
        }
    });
    assert_eq!(target.metric("http_requests_total"), 1 + 1500 + 1);
    assert_eq!(target.metric("http_connections_accepted_total"), 1 + 150 + 2);
    let begun = Instant::now();
    while target.metric("http_connections_open") != 1 {
        assert!(begun.elapsed() < Duration::from_secs(5), "connections stay open");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn bad_variables(program: Program) {
    for (name, value) in [
        ("PORT", "http"),
        ("PORT", "65536"),
        ("PORT", ""),
        ("WORKER_THREADS", "0"),
        ("WORKER_THREADS", "2.5"),
        ("DRAIN_TIMEOUT_MS", "-1"),
        ("MAX_BODY_BYTES", "1k"),
    ] {
        let output = command(program).env(name, value).output().expect("run");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.starts_with(&format!("{name}=")) && output.stdout.is_empty(), "{stderr}");
    }
    // A port that is taken.
    let target = Target::start(program, &[]);
    let taken = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let output = command(program).env("PORT", port).output().expect("run");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    drop(target);
}
