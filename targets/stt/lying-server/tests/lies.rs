//! The program itself over real sockets: its start, its end, and the lies that only sockets and processes can show.
//!
//! Sessions flush every 50 ms and are answered 10 ms later, so that each test takes a second or two. Times are only asserted from
//! below: a slow machine makes them longer.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{Client, Server};
use tungstenite::Message;

#[test]
fn an_honest_server_names_every_frame_in_order_and_drains() {
    let mut server = Server::start(&[]);
    assert_eq!(server.start_line["lie"], "none");
    assert!(server.start_line["versions"]["rustc"].is_string());
    assert_eq!(
        server.start_line["versions"]["mio"]
            .as_str()
            .unwrap()
            .split('.')
            .count(),
        3
    );
    let mut client = Client::connect(&server);
    client.speak(1);
    let golden = client.next_partial();
    assert_eq!(golden["checksum"], 1_745_339_397);
    assert_eq!(golden["transcript"], "now");
    client.speak(39);
    assert_eq!(client.named_until(40), (2..=40).collect::<Vec<_>>());
    let metrics = server.get("/metrics");
    assert!(metrics.contains("stt_frames_total 40\n"), "{metrics}");
    server.terminate();
    assert_eq!(client.close_code(), Some(1001));
    assert_eq!(server.exit_status(), Some(0));
}

#[test]
fn bad_values_end_with_one_line_and_status_2() {
    for (name, value, known) in [
        ("LIE", "fib", "stall_once"),
        ("CPU_PASSES", "many", "CPU_PASSES"),
    ] {
        let output = Server::command(&[(name, value)]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains(name) && text.contains(known), "{text}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn it_lists_its_lies_and_takes_no_other_argument() {
    let listed = Server::command(&[]).arg("--lies").output().unwrap();
    assert_eq!(listed.status.code(), Some(0));
    let names = String::from_utf8(listed.stdout).unwrap();
    assert!(names.lines().any(|name| name == "slow_accept"), "{names}");
    let refused = Server::command(&[]).arg("--lie").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("--lies"), "{text}");
}

#[test]
fn a_taken_port_ends_with_one_line_and_status_2() {
    let server = Server::start(&[]);
    let port = server.port.to_string();
    let output = Server::command(&[("PORT", &port)]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains(&port));
}

#[test]
fn stall_once_is_silent_and_then_answers_the_backlog() {
    let server = Server::start(&[
        ("LIE", "stall_once"),
        ("LIE_AFTER_MS", "300"),
        ("LIE_MS", "1000"),
    ]);
    let mut client = Client::connect(&server);
    let (mut sent, mut named, mut longest) = (0, 0, Duration::ZERO);
    let (began, mut last) = (Instant::now(), Instant::now());
    while began.elapsed() < Duration::from_millis(1800) || named < sent {
        if began.elapsed() < Duration::from_millis(1800) {
            client.speak(1);
            sent += 1;
        }
        if let Some(partial) = client.partial_within(Duration::from_millis(20)) {
            assert_eq!(partial["oldest_frame_seq"], named + 1);
            named = partial["newest_frame_seq"].as_u64().unwrap();
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
    }
    assert!(longest >= Duration::from_millis(1000), "{longest:?}");
}

#[test]
fn a_stalled_server_still_obeys_sigterm() {
    let mut server = Server::start(&[
        ("LIE", "stall_once"),
        ("LIE_AFTER_MS", "0"),
        ("LIE_MS", "600000"),
    ]);
    let mut client = Client::connect(&server);
    client.speak(1);
    assert!(client.partial_within(Duration::from_millis(300)).is_none());
    server.terminate();
    assert_eq!(server.exit_status(), Some(0));
}

#[test]
fn stop_reading_fills_the_clients_socket() {
    let server = Server::start(&[("LIE", "stop_reading"), ("LIE_AFTER_MS", "200")]);
    let mut client = Client::connect(&server);
    client.outlast(Duration::from_millis(200));
    // Far more than both kernels' buffers hold, were it not read: the socket fills before that.
    assert!(client.blocks_within_bytes(64 << 20));
    assert!(server.get("/metrics").contains("stt_frames_total 1\n"));
}

#[test]
fn read_slowly_reads_on_but_behind() {
    let server = Server::start(&[
        ("LIE", "read_slowly"),
        ("LIE_AFTER_MS", "200"),
        ("LIE_MS", "40"),
    ]);
    let began = Instant::now();
    let mut client = Client::connect(&server);
    client.outlast(Duration::from_millis(200));
    client.speak(20);
    assert_eq!(client.named_until(21), (2..=21).collect::<Vec<_>>());
    // 200 ms, then 40 ms for each of the 20 frames.
    assert!(began.elapsed() >= Duration::from_millis(1000));
}

#[test]
fn half_close_ends_the_stream_and_goes_on_reading() {
    let server = Server::start(&[("LIE", "half_close"), ("LIE_AFTER_MS", "200")]);
    let mut client = Client::connect(&server);
    let mut rest = Vec::new();
    client.stream().read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    client.speak(3);
    server.await_frames(3);
}

#[test]
fn reset_mid_frame_resets() {
    let server = Server::start(&[("LIE", "reset_mid_frame"), ("LIE_AFTER_MS", "0")]);
    let mut client = Client::connect(&server);
    client.speak(1);
    let mut bytes = Vec::new();
    let error = client.stream().read_to_end(&mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // A text frame was announced and broken off.
    assert_eq!(bytes[0], 0x81);
    assert!(bytes.len() > 100 && bytes.len() < 300, "{}", bytes.len());
}

#[test]
fn never_upgrade_accepts_and_says_nothing() {
    let server = Server::start(&[("LIE", "never_upgrade")]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.write_all(common::UPGRADE).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    assert!(server.get("/health").starts_with("HTTP/1.1 200 "));
}

#[test]
fn slow_accept_lets_the_second_connection_wait() {
    let server = Server::start(&[("LIE", "slow_accept"), ("LIE_MS", "300")]);
    let mut first = Client::connect(&server);
    first.speak(1);
    assert_eq!(first.next_partial()["newest_frame_seq"], 1);
    // The pause begins with a connection: the second one is taken at once, and the third waits for it.
    server.get("/health");
    let began = Instant::now();
    assert!(server.get("/health").starts_with("HTTP/1.1 200 "));
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn foreign_load_counts_sessions_that_nobody_here_opened() {
    let server = Server::start(&[("LIE", "foreign_load"), ("LIE_SESSIONS", "3")]);
    let mut client = Client::connect(&server);
    client.speak(1);
    assert_eq!(client.next_partial()["newest_frame_seq"], 1);
    server.await_line("stt_sessions 4");
    let frames = |metrics: &str| {
        let line = metrics
            .lines()
            .find(|line| line.starts_with("stt_frames_total "));
        line.unwrap()["stt_frames_total ".len()..]
            .parse::<u64>()
            .unwrap()
    };
    let before = frames(&server.get("/metrics"));
    let began = Instant::now();
    while frames(&server.get("/metrics")) < before + 30 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn die_exits() {
    let mut server = Server::start(&[("LIE", "die"), ("LIE_AFTER_MS", "200")]);
    let mut client = Client::connect(&server);
    client.end();
    assert_eq!(server.exit_status(), Some(1));
}

#[test]
fn restart_drops_sessions_and_listens_again() {
    let server = Server::start(&[
        ("LIE", "restart"),
        ("LIE_AFTER_MS", "200"),
        ("LIE_MS", "100"),
    ]);
    let mut client = Client::connect(&server);
    client.end();
    server.await_ready();
    assert!(server.get("/metrics").contains("stt_sessions_total 0\n"));
    let mut second = Client::connect(&server);
    second.speak(1);
    assert_eq!(second.next_partial()["newest_frame_seq"], 1);
}

#[test]
fn leak_memory_is_resident() {
    let server = Server::start(&[("LIE", "leak_memory"), ("LIE_BYTES", "33554432")]);
    let before = server.resident_kib();
    let mut client = Client::connect(&server);
    client.speak(1);
    client.next_partial();
    assert!(server.resident_kib() >= before + 32_000);
}

#[test]
fn burn_core_burns() {
    let server = Server::start(&[("LIE", "burn_core")]);
    let _client = Client::connect(&server);
    // Ten ticks of a hundredth of a second: however busy the machine, a spinning thread gets there.
    let began = Instant::now();
    while server.cpu_ticks() < 10 {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn oversize_and_garbage_reach_the_client() {
    for (lie, least_bytes) in [("oversize", 2 << 20), ("garbage", 1)] {
        let server = Server::start(&[("LIE", lie), ("LIE_EVERY", "1")]);
        let mut client = Client::connect(&server);
        client.speak(1);
        let Message::Text(noise) = client.next_message() else {
            panic!("no text");
        };
        assert!(noise.len() >= least_bytes);
        assert_eq!(client.next_partial()["newest_frame_seq"], 1);
    }
}

#[test]
fn flood_repeats_one_answer() {
    let server = Server::start(&[("LIE", "flood"), ("LIE_AFTER_MS", "0"), ("LIE_SHARE", "1")]);
    let mut client = Client::connect(&server);
    client.speak(1);
    for _ in 0..200 {
        assert_eq!(client.next_partial()["newest_frame_seq"], 1);
    }
}
