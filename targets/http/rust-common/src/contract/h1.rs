//! HTTP/1.1.

use std::io::{ErrorKind, Write};
use std::thread;
use std::time::Duration;

use super::{Answer, Client, Program, Target, crc32};
use crate::routes::pattern;

/// A body in which every byte's place shows.
pub(super) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 % 251).to_le_bytes()[0]).collect()
}

/// What `/sum` answers for a body.
pub(super) fn sum(body: &[u8]) -> String {
    format!("{:08x} {}", crc32(body), body.len())
}

/// What `/json/K` answers.
pub(super) fn item(number: u64) -> String {
    let even = number.is_multiple_of(2);
    format!(r#"{{"id":{number},"name":"item {number}","even":{even}}}"#)
}

fn expect(answer: &Answer, content_type: &str, body: &[u8]) {
    assert_eq!(answer.status, 200);
    let seen = answer.field("content-type").expect("a type");
    assert!(seen == content_type || seen.starts_with(&format!("{content_type};")), "{seen}");
    assert!(answer.body == body, "{:?}", String::from_utf8_lossy(&answer.body));
    assert!(!answer.closes());
}

pub(super) fn routes(program: Program) {
    let target = Target::start(program, &[]);
    assert!(target.line.starts_with('{') && target.line.contains("rustc 1."), "{}", target.line);
    let pattern = pattern();
    let mut client = target.client();
    expect(&client.get("/"), "text/plain", b"ok");
    expect(&client.get("/?x=1&y=/bytes/7"), "text/plain", b"ok");
    expect(&client.get("/healthz"), "text/plain", b"ok");
    for count in [1, 2, 15, 16, 17, 4096, 65_536, 1_048_576] {
        expect(&client.get(&format!("/bytes/{count}?q")), "application/octet-stream", &pattern[..count]);
    }
    for number in [0, 1, 7, 1_000_000, (1 << 53) - 1] {
        expect(&client.get(&format!("/json/{number}")), "application/json", item(number).as_bytes());
    }
    assert_eq!(target.metric("http_connections_open"), 2);
    assert_eq!(target.metric("http_requests_total"), 1 + 3 + 8 + 5 + 2, "each look at the metrics is one, too");
    assert_eq!(target.metric("http_connections_accepted_total"), 1 + 1 + 3);
}

pub(super) fn bodies(program: Program) {
    let target = Target::start(program, &[]);
    let mut client = target.client();
    for length in [0, 1, 1024, 20_000, 65_536, 1_048_576, 3] {
        let body = body(length);
        expect(&client.post("/sum?x", &body), "text/plain", sum(&body).as_bytes());
    }
    // A body where none is expected is read past.
    assert_eq!(client.post("/healthz", b"hello").status / 100, 4);
    client.send("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    expect(&client.receive(), "text/plain", b"ok");
    expect(&client.get("/"), "text/plain", b"ok");
    let target = Target::start(program, &[("MAX_BODY_BYTES", "1000")]);
    expect(&target.client().post("/sum", &body(1000)), "text/plain", sum(&body(1000)).as_bytes());
    let head = "POST /sum HTTP/1.1\r\nHost: x\r\n";
    for (fields, body) in [
        ("Content-Length: 1001\r\n\r\n", body(1001)),
        ("Transfer-Encoding: chunked\r\n\r\n", [b"3e9\r\n", body(1001).as_slice(), b"\r\n0\r\n\r\n"].concat()),
        ("Content-Length: 99999999999999\r\n\r\n", body(10)),
    ] {
        let mut client = target.client();
        client.send([head.as_bytes(), fields.as_bytes(), &body].concat());
        if let Some(answer) = client.try_receive(true) {
            assert_eq!(answer.status, 413, "{fields}");
        }
    }
}

pub(super) fn head(program: Program) {
    let target = Target::start(program, &[]);
    let mut client = target.client();
    for path in ["/", "/bytes/65536", "/json/12", "/healthz"] {
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let mut head = client.receive_head();
        let mut get = client.get(path);
        assert_eq!(get.body.len().to_string(), head.field("content-length").expect("a length"));
        get.body.clear();
        for answer in [&mut head, &mut get] {
            answer.fields.retain(|(name, _)| name != "date");
            answer.fields.sort();
        }
        assert_eq!(head, get);
    }
    client.send("HEAD /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.receive_head().status, 404);
    expect(&client.get("/"), "text/plain", b"ok");
}

pub(super) fn refusals(program: Program) {
    let target = Target::start(program, &[]);
    let mut client = target.client();
    for path in [
        "/nowhere",
        "/bytes",
        "/bytes/",
        "/bytes/0",
        "/bytes/01",
        "/bytes/+1",
        "/bytes/-1",
        "/bytes/x",
        "/bytes/1048577",
        "/bytes/99999999999999999999",
        "/bytes/1/2",
        "/json/",
        "/json/x",
        "/json/9007199254740992",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    for request in ["POST /", "PUT /bytes/1", "DELETE /json/1", "GET /sum", "PATCH /sum", "OPTIONS /", "BREW /"] {
        client.send(format!("{request} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
        let answer = client.receive();
        assert!([404, 405, 501].contains(&answer.status) && !answer.closes(), "{request}: {answer:?}");
    }
    expect(&client.get("/"), "text/plain", b"ok");
}

pub(super) fn keep_alive(program: Program) {
    let target = Target::start(program, &[]);
    let mut client = target.client();
    for number in 0..1_000 {
        expect(&client.get(&format!("/json/{number}")), "application/json", item(number).as_bytes());
    }
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let answer = client.receive();
    assert!(answer.status == 200 && answer.closes());
    client.expect_end();
    let mut client = target.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.receive_of_1_0().body, b"ok");
    client.expect_end();
}

impl Client {
    /// An answer to HTTP/1.0, which may be in that version.
    fn receive_of_1_0(&mut self) -> Answer {
        let version = self.read(8);
        assert!(version == b"HTTP/1.0" || version == b"HTTP/1.1");
        self.unread(b"HTTP/1.1");
        self.receive()
    }
}

pub(super) fn pipelining(program: Program) {
    let target = Target::start(program, &[]);
    let pattern = pattern();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut client = target.client();
    client.send((1..=16).map(|count| get(&format!("/bytes/{count}"))).collect::<String>());
    for count in 1..=16 {
        expect(&client.receive(), "application/octet-stream", &pattern[..count]);
    }
    let post = "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    client.send([&get("/"), post, &get("/json/3")].concat());
    expect(&client.receive(), "text/plain", b"ok");
    expect(&client.receive(), "text/plain", sum(b"hello").as_bytes());
    expect(&client.receive(), "application/json", item(3).as_bytes());
    // Answers far beyond what the sockets hold, while nobody reads.
    client.send(get("/bytes/1048576").repeat(40));
    for _ in 0..40 {
        expect(&client.receive(), "application/octet-stream", &pattern);
    }
    let close = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    client.send([&get("/"), &get("/"), close, &get("/"), &get("/")].concat());
    assert!(!client.receive().closes() && !client.receive().closes() && client.receive().closes());
    client.expect_end();
}

pub(super) fn chunked(program: Program) {
    let target = Target::start(program, &[]);
    let head = "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n";
    let mut client = target.client();
    for (body, whole) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("1\r\nh\r\n004\r\nello\r\nA\r\n0123456789\r\n0\r\n\r\n", "hello0123456789"),
        ("5;name=value;other=\"a b\"\r\nhello\r\n0;last\r\n\r\n", "hello"),
        ("5\r\nhello\r\n0\r\nX-Trailer: value\r\nY: z\r\n\r\n", "hello"),
    ] {
        client.send(format!("{head}\r\n{body}"));
        expect(&client.receive(), "text/plain", sum(whole.as_bytes()).as_bytes());
    }
    for bad in [
        "x\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloworld\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nx",
    ] {
        let mut client = target.client();
        client.send(format!("{head}\r\n{bad}"));
        refused(&mut client, bad);
    }
    // Cut off: nobody is there to be answered, and the server lives.
    target.client().send(format!("{head}\r\n5\r\nhel"));
    client.send(format!("{head}Expect: 100-continue\r\n\r\n"));
    assert_eq!(client.receive().status, 100);
    client.send("5\r\nhello\r\n0\r\n\r\n");
    expect(&client.receive(), "text/plain", sum(b"hello").as_bytes());
    client.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.receive().status, 100);
    client.send("hello");
    expect(&client.receive(), "text/plain", sum(b"hello").as_bytes());
}

/// One answer at most, not 200, and the end.
fn refused(client: &mut Client, what: &str) {
    if let Some(answer) = client.try_receive(true) {
        assert!(answer.status >= 400, "{what:?}: {answer:?}");
        client.expect_end();
    }
}

pub(super) fn fragments(program: Program) {
    let target = Target::start(program, &[]);
    let chunked =
        "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: v\r\n\r\n";
    let counted = "POST /sum?q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";
    let asked = "GET /json/44 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nX-Long: a b c\r\n\r\n";
    for (request, whole) in [(asked, item(44)), (counted, sum(b"hello")), (chunked, sum(b"hello"))] {
        let mut client = target.client();
        for cut in 1..request.len() {
            client.send(&request[..cut]);
            // Long enough for the server to have read it, nearly always.
            thread::sleep(Duration::from_micros(300));
            client.send(&request[cut..]);
            assert_eq!(String::from_utf8(client.receive().body), Ok(whole.clone()), "cut at {cut}");
        }
        for byte in request.as_bytes().chunks(1) {
            client.send(byte);
            thread::sleep(Duration::from_micros(100));
        }
        assert_eq!(String::from_utf8(client.receive().body), Ok(whole));
    }
}

/// Requests that must not be answered with 200, by name.
const BROKEN: [(&str, &str); 20] = [
    ("cl-and-te", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("te-and-cl", "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    ("two-cl", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    ("same-cl-twice", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    ("cl-list", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello"),
    ("cl-plus", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello"),
    ("cl-minus", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nhello"),
    ("cl-empty", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\nhello"),
    ("unknown-te", "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: smoke\r\n\r\n0\r\n\r\n"),
    ("te-not-last", "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
    ("te-of-1-0", "POST /sum HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("space-before-colon", "GET / HTTP/1.1\r\nHost: x\r\nX-A : b\r\n\r\n"),
    ("space-before-cl-colon", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello"),
    ("folded", "GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n"),
    ("no-host", "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n"),
    ("two-hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
    ("version", "GET / HTTP/3.7\r\nHost: x\r\n\r\n"),
    ("no-version", "GET /\r\nHost: x\r\n\r\n"),
    ("zero-in-field", "GET / HTTP/1.1\r\nHost: x\r\nX-A: b\0c\r\n\r\n"),
    ("no-request", "\x16\x03\x01\x02\x00\x01\x00\x01\u{7c}\x03\x03\r\n\r\n"),
];

pub(super) fn framing(program: Program) {
    let target = Target::start(program, &[]);
    for (name, request) in BROKEN {
        let mut client = target.client();
        client.send([request, "GET /json/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"].concat());
        let mut answers = Vec::new();
        while let Some(answer) = client.try_receive(true) {
            answers.push(answer.status);
        }
        if program.lax.contains(&name) {
            assert_eq!(answers.first(), Some(&200), "{name} is refused after all");
        } else {
            // The connection may live behind what is merely not to be understood, but then in step.
            assert!(answers.len() <= 1 || answers == [400, 200], "{name}: {answers:?}");
            assert!(answers.first().is_none_or(|status| *status >= 400), "{name}: {answers:?}");
        }
    }
    expect(&target.client().get("/"), "text/plain", b"ok");
}

pub(super) fn limits(program: Program) {
    let target = Target::start(program, &[]);
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "a".repeat(65_536));
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(10_000));
    let path = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(65_536));
    for request in [long, many, path] {
        let mut client = target.client();
        // The server may answer and close while the rest is still on its way.
        let _ = client.socket.write_all(request.as_bytes());
        refused(&mut client, &request[..40]);
    }
    // What a browser sends is none of that.
    let fields: String = (0..40).map(|number| format!("X-Field-{number}: {}\r\n", "v".repeat(100))).collect();
    let mut client = target.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
    expect(&client.receive(), "text/plain", b"ok");
    let half: Vec<Client> = (0..200)
        .map(|number| {
            let mut client = target.client();
            client.send(
                ["GET / HTTP/1.1\r\nHo", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"][number % 2],
            );
            client
        })
        .collect();
    expect(&client.get("/"), "text/plain", b"ok");
    drop(half);
    expect(&client.get("/"), "text/plain", b"ok");
}

/// Clients that ask and do not read: memory stays bounded, and others are served.
pub(super) fn deaf_clients(program: Program) {
    let target = Target::start(program, &[]);
    target.client().get("/bytes/1048576");
    let before = target.memory_kib();
    let requests = "GET /bytes/1048576 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    let deaf: Vec<Client> = (0..50)
        .map(|_| {
            let mut client = target.client();
            client.socket.set_nonblocking(true).expect("set");
            for _ in 0..100 {
                match client.socket.write(requests.as_bytes()) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
            client
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    let mut client = target.client();
    expect(&client.get("/"), "text/plain", b"ok");
    let grown = target.memory_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB for {} clients", deaf.len());
}
