//! The contract of an echo target, through real sockets.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use support::{BINARY, CLOSE, Client, PING, PONG, TEXT, Target, connect, frame, header, program, upgrade};

/// A payload in which every byte's place shows.
fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| ((index + seed) * 31 % 251).to_le_bytes()[0]).collect()
}

#[test]
fn the_http_surface() {
    let target = Target::start(&[]);
    assert!(target.line.contains(r#""tungstenite":"0."#), "{}", target.line);
    for (request, status) in [
        ("GET /healthz", "200"),
        ("GET /metrics", "200"),
        ("GET /", "426"),
        ("GET /fanout", "426"),
        ("POST /healthz", "405"),
    ] {
        let answer = target.http(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    assert!(target.http("GET /metrics").contains("\r\ncontent-type: text/plain; version=0.0.4"));
    assert_eq!(target.metric("ws_connections_refused_total"), 0);
    let mut socket = connect(target.port);
    let of_another_version =
        upgrade("/").replace("Version: 13", "Version: 8").replace("Host: x", "Host: x\r\nConnection: close");
    socket.write_all(of_another_version.as_bytes()).expect("written");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert_eq!(target.metric("ws_connections_refused_total"), 1);
    let mut socket = connect(target.port);
    socket
        .write_all(b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        .expect("written");
    let mut answers = String::new();
    socket.read_to_string(&mut answers).expect("answers");
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 2, "{answers}");
}

#[test]
fn messages_of_every_size() {
    let target = Target::start(&[]);
    let mut client = Client::open(target.port, "/any/path?x=1");
    for length in [0, 1, 125, 126, 1_000, 65_535, 65_536, 200_000, 1_048_576] {
        let payload = bytes(length, length);
        client.send(BINARY, &payload);
        client.expect(BINARY, &payload);
        let text = "\u{e9}x\u{20ac}".repeat(length / 6);
        client.send(TEXT, text.as_bytes());
        client.expect(TEXT, text.as_bytes());
    }
    client.barrier();
    assert_eq!(target.metric("ws_messages_received_total"), 18);
    assert_eq!(target.metric("ws_messages_sent_total"), 18);
    assert_eq!((target.metric("ws_connections_open"), target.metric("ws_connections_accepted_total")), (1, 1));
    drop(client);
    let begun = Instant::now();
    while target.metric("ws_connections_open") != 0 {
        assert!(begun.elapsed() < Duration::from_secs(5), "still open");
    }
}

#[test]
fn a_stream_of_messages_in_order_and_not_merged() {
    let target = Target::start(&[("WORKER_THREADS", "2")]);
    let sizes = [0, 175, 3, 4_000, 70_000, 125, 126, 30_000];
    let talk = |seed: usize| {
        let payloads: Vec<_> = (0..400).map(|turn| bytes(sizes[turn % sizes.len()], turn + seed)).collect();
        let mut client = Client::open(target.port, "/");
        let mut socket = client.socket.try_clone().expect("cloned");
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| frame(BINARY, payload)).collect();
        thread::scope(|scope| {
            scope.spawn(move || socket.write_all(&stream).expect("written"));
            payloads.iter().for_each(|payload| client.expect(BINARY, payload));
        });
        client.barrier();
        payloads.iter().map(Vec::len).sum::<usize>() as u64
    };
    let payload_bytes: u64 = thread::scope(|scope| {
        let talks: Vec<_> = (0..6).map(|seed| scope.spawn(move || talk(seed))).collect();
        talks.into_iter().map(|talk| talk.join().expect("echoes")).sum()
    });
    assert_eq!(target.metric("ws_messages_received_total"), 6 * 400);
    assert_eq!(target.metric("ws_bytes_received_total"), payload_bytes);
}

#[test]
fn fragments_and_what_comes_between_them() {
    let target = Target::start(&[]);
    let mut client = Client::open(target.port, "/");
    let long = bytes(300_000, 0);
    client.write(&frame(0x02, &long[..100_000]));
    client.send(PING, b"between");
    client.write(&frame(0x00, &[]));
    client.write(&[frame(0x80, &long[100_000..]), frame(TEXT, b"behind")].concat());
    client.expect(PONG, b"between");
    client.expect(BINARY, &long);
    client.expect(TEXT, b"behind");
    assert_eq!(target.metric("ws_messages_received_total"), 2);
}

#[test]
fn violations_and_their_codes() {
    let target = Target::start(&[("MAX_MESSAGE_BYTES", "1000")]);
    let cases: [(&str, Vec<u8>, u16); 14] = [
        ("no mask", vec![0x82, 2, 0, 0], 1002),
        ("a reserved bit", frame(0xC2, b"x"), 1002),
        ("an opcode that is none", frame(0x83, b""), 1002),
        ("a continuation of nothing", frame(0x80, b"x"), 1002),
        ("a message in a message", [frame(0x02, b"x"), frame(BINARY, b"y")].concat(), 1002),
        ("a fragment of a ping", frame(0x09, b""), 1002),
        ("a long ping", frame(PING, &[0; 126]), 1002),
        ("a close with half a code", frame(CLOSE, &[3]), 1002),
        ("a close with a code that may not be sent", frame(CLOSE, &1005_u16.to_be_bytes()), 1002),
        ("text that is none", frame(TEXT, b"\xFF"), 1007),
        ("fragments that end within a character", [frame(0x01, b"x"), frame(0x80, b"\xC3")].concat(), 1007),
        ("too long, by the header alone", header(BINARY, 1_001), 1009),
        ("much too long", [&[0x82, 0xFF][..], &[0xFF; 8]].concat(), 1009),
        ("fragments that are too long", [frame(0x02, &[0; 600]), frame(0x80, &[0; 600])].concat(), 1009),
    ];
    for (name, violation, code) in cases {
        let mut client = Client::open(target.port, "/");
        // The close must arrive although there is more that nobody reads.
        client.write(&[frame(TEXT, b"before"), violation, vec![0; 10_000]].concat());
        client.expect(TEXT, b"before");
        assert_eq!(client.receive_close(), Some(code), "{name}");
    }
    let mut client = Client::open(target.port, "/");
    client.send(BINARY, &[7; 1_000]);
    client.expect(BINARY, &[7; 1_000]);
}

#[test]
fn closes_are_answered() {
    let target = Target::start(&[]);
    for code in [Some(1000), Some(1001), Some(4321), None] {
        let mut client = Client::open(target.port, "/");
        client.send(TEXT, b"last words");
        client.send(CLOSE, &code.map(|code: u16| code.to_be_bytes().to_vec()).unwrap_or_default());
        client.expect(TEXT, b"last words");
        assert_eq!(client.receive_close(), code);
    }
}

#[test]
fn what_comes_with_the_handshake_is_not_lost() {
    let target = Target::start(&[]);
    let mut client = Client::open_with(target.port, "/", &frame(TEXT, b"early"));
    client.expect(TEXT, b"early");
}

/// Sends `bytes` again and again until nothing is taken for a while; how many bytes were.
fn fill(mut socket: &TcpStream, bytes: &[u8]) -> usize {
    socket.set_nonblocking(true).expect("set");
    let (mut sent, mut idle_since) = (0, Instant::now());
    while idle_since.elapsed() < Duration::from_millis(500) {
        match socket.write(&bytes[sent % bytes.len()..]) {
            Ok(length) => (sent, idle_since) = (sent + length, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    }
    socket.set_nonblocking(false).expect("set");
    sent
}

#[test]
fn who_does_not_read_is_not_read() {
    let target = Target::start(&[]);
    let mut client = Client::open(target.port, "/");
    let message = frame(BINARY, &bytes(50_000, 0));
    let sent = fill(&client.socket, &message);
    let received = target.metric("ws_bytes_received_total");
    assert!(sent < 100 << 20, "{sent} bytes were taken");
    // The rest of a message that was cut.
    let messages = sent.div_ceil(message.len());
    let rest = message[message.len() - (messages * message.len() - sent)..].to_vec();
    let mut socket = client.socket.try_clone().expect("cloned");
    let writer = thread::spawn(move || socket.write_all(&rest).expect("written"));
    // Another one is served meanwhile.
    Client::open(target.port, "/").barrier();
    assert_eq!(target.metric("ws_bytes_received_total"), received);
    for _ in 0..messages {
        client.expect(BINARY, &bytes(50_000, 0));
    }
    writer.join().expect("written");
    client.barrier();
    assert_eq!(target.metric("ws_messages_received_total"), messages as u64);
}

#[test]
fn the_hub_reaches_all_in_one_order() {
    let target = Target::start(&[("WORKER_THREADS", "2")]);
    let mut echo = Client::open(target.port, "/");
    let mut clients: Vec<Client> = (0..8).map(|_| Client::open(target.port, "/fanout")).collect();
    // All senders at once; each listens, too.
    for (number, client) in clients.iter_mut().enumerate() {
        let messages: Vec<u8> = (0..50).flat_map(|turn| frame(TEXT, format!("{number}/{turn}").as_bytes())).collect();
        client.write(&messages);
    }
    let heard: Vec<Vec<Vec<u8>>> =
        clients.iter_mut().map(|client| (0..400).map(|_| client.receive().1).collect()).collect();
    assert!(heard.iter().all(|it| *it == heard[0]), "another order");
    for number in 0..8 {
        let prefix = format!("{number}/");
        let own: Vec<_> = heard[0].iter().filter(|text| text.starts_with(prefix.as_bytes())).collect();
        let expected: Vec<_> = (0..50).map(|turn| format!("{number}/{turn}").into_bytes()).collect();
        assert!(own.into_iter().eq(&expected), "sender {number}");
    }
    // Pongs and closes are for the one that asked.
    clients[3].send(PING, b"?");
    clients[3].expect(PONG, b"?");
    clients[3].send(CLOSE, &1000_u16.to_be_bytes());
    assert_eq!(clients[3].receive_close(), Some(1000));
    clients[0].send(BINARY, b"to those who are left");
    for number in [0, 1, 2, 4, 5, 6, 7] {
        clients[number].expect(BINARY, b"to those who are left");
    }
    echo.barrier();
    assert_eq!(target.metric("ws_messages_received_total"), 401);
    assert_eq!(target.metric("ws_messages_sent_total"), 400 * 8 + 7);
    assert_eq!(target.metric("ws_messages_dropped_total"), 0);
}

#[test]
fn the_hub_does_not_wait_for_who_does_not_read() {
    let target = Target::start(&[]);
    let _deaf = Client::open(target.port, "/fanout");
    let mut client = Client::open(target.port, "/fanout");
    let payload = bytes(1 << 20, 3);
    for _ in 0..64 {
        client.send(BINARY, &payload);
        client.expect(BINARY, &payload);
    }
    let (sent, dropped) = (target.metric("ws_messages_sent_total"), target.metric("ws_messages_dropped_total"));
    assert!((128 - 16..=128).contains(&(sent + dropped)), "{sent} sent, {dropped} dropped; what waits is neither");
    assert!((8..48).contains(&dropped), "{dropped} of 64 dropped, of which 16 are kept and some are in the kernel");
}

#[test]
fn a_crowd_comes_and_goes() {
    let target = Target::start(&[("WORKER_THREADS", "2")]);
    let mut clients: Vec<Client> = (0..400).map(|_| Client::open(target.port, "/")).collect();
    clients.iter_mut().for_each(|client| client.send(TEXT, b"all at once"));
    clients.iter_mut().for_each(|client| client.expect(TEXT, b"all at once"));
    assert_eq!(target.metric("ws_connections_open"), 400);
}

#[test]
fn the_end_is_orderly() {
    let target = Target::start(&[("WORKER_THREADS", "2"), ("DRAIN_TIMEOUT_MS", "3000")]);
    let mut clients: Vec<Client> =
        (0..8).map(|number| Client::open(target.port, ["/", "/fanout"][number % 2])).collect();
    clients[0].barrier();
    let begun = Instant::now();
    target.terminate();
    for client in &mut clients {
        assert_eq!(client.receive_close(), Some(1001));
    }
    while TcpStream::connect(("127.0.0.1", target.port)).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(2), "connections are accepted");
    }
    drop(clients);
    assert_eq!(target.wait().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn the_end_does_not_wait_for_who_does_not_answer() {
    let target = Target::start(&[("DRAIN_TIMEOUT_MS", "500")]);
    let _silent = Client::open(target.port, "/");
    let deaf = Client::open(target.port, "/");
    fill(&deaf.socket, &frame(BINARY, &bytes(50_000, 0)));
    let begun = Instant::now();
    target.terminate();
    assert_eq!(target.wait().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
}

#[test]
fn a_bad_value_is_one_line_and_exit_code_2() {
    for (name, value) in [("PORT", "http"), ("WORKER_THREADS", "0"), ("MAX_MESSAGE_BYTES", "1k")] {
        let output = program().env(name, value).output().expect("run");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.starts_with(&format!("{name}=")) && output.stdout.is_empty(), "{stderr}");
    }
}
