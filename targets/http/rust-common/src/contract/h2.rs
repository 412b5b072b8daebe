//! HTTP/2 with prior knowledge, frame by frame.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use super::h1::{body, item, sum};
use super::{Client, Program, Target};
use crate::routes::pattern;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// END_STREAM, and ACK.
const END: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const WITH_PRIORITY: u8 = 0x20;

const INITIAL_WINDOW_SIZE: u16 = 4;
const HEADER_TABLE_SIZE: u16 = 1;

/// What became of a stream.
#[derive(Debug, Default)]
struct Stream {
    status: u16,
    body: Vec<u8>,
    data_frames: usize,
    has_ended: bool,
    was_reset: bool,
    /// What may still be sent on it, beyond the initial window.
    credit: i64,
}

/// One connection.
struct H2 {
    client: Client,
    streams: HashMap<u32, Stream>,
    /// What may still be sent on all streams.
    credit: i64,
    /// The server's initial window.
    initial: i64,
    pings: Vec<Vec<u8>>,
    goaway: Option<u32>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

fn window_update(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

fn string(text: &str) -> Vec<u8> {
    [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat()
}

/// A request's block; 2 is `:method: GET`, 3 is `:method: POST`.
fn block(method: u8, path: &str) -> Vec<u8> {
    [&[0x80 | method, 0x86, 0x04][..], &string(path), &[0x01], &string("localhost")].concat()
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END | END_HEADERS, stream, &block(2, path))
}

impl H2 {
    /// Connects; `settings` go first.
    fn open(target: &Target, settings: &[u8]) -> Self {
        let mut client = target.client();
        let settings = if settings.is_empty() { frame(SETTINGS, 0, 0, &[]) } else { settings.to_vec() };
        client.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings.as_slice()].concat());
        Self { client, streams: HashMap::new(), credit: 65_535, initial: 65_535, pings: Vec::new(), goaway: None }
    }

    /// Reads one frame.
    fn step(&mut self) {
        let head = self.client.read(9);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let payload = self.client.read(length);
        let number = |at: usize| payload.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().expect("four")));
        match kind {
            SETTINGS if flags & END == 0 => {
                for setting in payload.chunks(6) {
                    if setting[..2] == INITIAL_WINDOW_SIZE.to_be_bytes() {
                        self.initial = i64::from(u32::from_be_bytes(setting[2..].try_into().expect("four")));
                    }
                }
                self.client.send(frame(SETTINGS, END, 0, &[]));
            }
            SETTINGS => {}
            WINDOW_UPDATE if id == 0 => self.credit += i64::from(number(0).expect("a number")),
            WINDOW_UPDATE => self.stream(id).credit += i64::from(number(0).expect("a number")),
            PING if flags & END != 0 => self.pings.push(payload),
            PING => self.client.send(frame(PING, END, 0, &payload)),
            GOAWAY => self.goaway = number(4),
            RST_STREAM => {
                let stream = self.stream(id);
                stream.was_reset = true;
                stream.has_ended = true;
            }
            HEADERS => {
                assert_ne!(flags & END_HEADERS, 0, "an answer's head is short");
                let stream = self.stream(id);
                // Behind changes of the table's size.
                let status = payload.iter().find(|byte| **byte & 0xE0 != 0x20).expect("a status");
                stream.status = match status {
                    0x88 => 200,
                    0x8C => 400,
                    0x8D => 404,
                    _ => 1,
                };
                stream.has_ended = flags & END != 0;
            }
            DATA => {
                let stream = self.stream(id);
                assert!(stream.status > 0 && !stream.has_ended);
                stream.data_frames += 1;
                stream.body.extend(payload);
                stream.has_ended = flags & END != 0;
            }
            kind => panic!("a frame of kind {kind}"),
        }
    }

    fn stream(&mut self, id: u32) -> &mut Stream {
        self.streams.entry(id).or_default()
    }

    /// Reads until a stream has ended.
    fn answer(&mut self, id: u32) -> Stream {
        while !self.stream(id).has_ended {
            self.step();
        }
        self.streams.remove(&id).expect("a stream")
    }

    fn expect(&mut self, id: u32, body: &[u8]) {
        let stream = self.answer(id);
        assert_eq!((stream.status, stream.was_reset), (200, false), "stream {id}");
        assert!(stream.body == body, "{:?}", String::from_utf8_lossy(&stream.body));
    }

    /// Sends a body in frames of at most `most` bytes, as far as the windows allow, and waits for more.
    fn send_body(&mut self, id: u32, body: &[u8], most: usize) {
        let mut sent = 0;
        while sent < body.len() {
            let sent_signed = i64::try_from(sent).expect("small");
            let window = self.credit.min(self.initial + self.stream(id).credit - sent_signed);
            let length = most.min(body.len() - sent).min(usize::try_from(window).unwrap_or(0));
            if length == 0 {
                self.step();
                continue;
            }
            let end = if sent + length == body.len() { END } else { 0 };
            self.client.send(frame(DATA, end, id, &body[sent..sent + length]));
            self.credit -= i64::try_from(length).expect("small");
            sent += length;
        }
    }

    /// Expects the end; with a goodbye before it, if there is one, that names an error or none.
    fn expect_goodbye(mut self, is_error: bool) {
        loop {
            let mut ahead = [0];
            if self.client.socket_peek(&mut ahead) == 0 {
                assert!(self.goaway.is_none_or(|code| (code > 0) == is_error), "{:?}", self.goaway);
                return;
            }
            self.step();
        }
    }
}

pub(super) fn routes(program: Program) {
    let target = Target::start(program, &[]);
    let mut h2 = H2::open(&target, &[]);
    let pattern = pattern();
    let mut id = 1;
    let mut ask = |h2: &mut H2, path: &str| {
        h2.client.send(get(id, path));
        id += 2;
        h2.answer(id - 2)
    };
    for (path, body) in [
        ("/", &b"ok"[..]),
        ("/?x=1", b"ok"),
        ("/healthz", b"ok"),
        ("/bytes/1", b"0"),
        ("/bytes/60000?q", &pattern[..60_000]),
        ("/json/12", item(12).as_bytes()),
    ] {
        let stream = ask(&mut h2, path);
        assert_eq!((stream.status, stream.body == body), (200, true), "{path}");
        // Gives back what it has used.
        h2.client.send(window_update(0, u32::try_from(body.len()).expect("small")));
    }
    for path in ["/nowhere", "/bytes/0", "/bytes/1048577", "/json/x"] {
        assert_eq!(ask(&mut h2, path).status, 404, "{path}");
    }
    // HEAD is not in the table.
    h2.client.send(frame(
        HEADERS,
        END | END_HEADERS,
        101,
        &[&[0x02][..], &string("HEAD"), &block(2, "/bytes/9")[1..]].concat(),
    ));
    let stream = h2.answer(101);
    assert_eq!((stream.status, stream.body.len()), (200, 0));
    for (id, length, most) in [(103, 0, 1), (105, 5, 1), (107, 3000, 300), (109, 1_048_576, 16_384)] {
        let body = body(length);
        let end = if length == 0 { END } else { 0 };
        h2.client.send(frame(HEADERS, END_HEADERS | end, id, &block(3, "/sum")));
        h2.send_body(id, &body, most);
        h2.expect(id, sum(&body).as_bytes());
    }
    // Trailers, and padding.
    h2.client.send(frame(HEADERS, END_HEADERS, 111, &block(3, "/sum")));
    h2.client.send(frame(DATA, PADDED, 111, b"\x03hello\0\0\0"));
    h2.client.send(frame(HEADERS, END | END_HEADERS, 111, b"\x00\x03x-t\x01v"));
    h2.expect(111, sum(b"hello").as_bytes());
    let target = Target::start(program, &[("MAX_BODY_BYTES", "10")]);
    let mut small = H2::open(&target, &[]);
    small.client.send(frame(HEADERS, END_HEADERS, 1, &block(3, "/sum")));
    small.send_body(1, &body(11), 11);
    assert_ne!(small.answer(1).status, 200, "a body over the limit");
}

pub(super) fn streams(program: Program) {
    let target = Target::start(program, &[]);
    let mut h2 = H2::open(&target, &[]);
    let ids: Vec<u32> = (0..100).map(|number| 2 * number + 1).collect();
    h2.client.send(ids.iter().flat_map(|id| get(*id, &format!("/json/{id}"))).collect::<Vec<u8>>());
    for id in &ids {
        h2.expect(*id, item(u64::from(*id)).as_bytes());
    }
    // Bodies that come in turns.
    let ids: Vec<u32> = (200..250).map(|number| 2 * number + 1).collect();
    for id in &ids {
        h2.client.send(frame(HEADERS, END_HEADERS, *id, &block(3, "/sum")));
    }
    for piece in 0..10 {
        for id in &ids {
            let bytes = format!("{id:>8}.{piece:>3}");
            h2.client.send(frame(DATA, if piece == 9 { END } else { 0 }, *id, bytes.as_bytes()));
        }
    }
    for id in &ids {
        let whole: String = (0..10).map(|piece| format!("{id:>8}.{piece:>3}")).collect();
        h2.expect(*id, sum(whole.as_bytes()).as_bytes());
    }
    assert_eq!(target.metric("http_requests_total"), 1 + 100 + 50 + 1);
}

pub(super) fn windows(program: Program) {
    let target = Target::start(program, &[]);
    let pattern = pattern();
    // A byte at a time.
    let mut h2 = H2::open(&target, &setting(INITIAL_WINDOW_SIZE, 1));
    h2.client.send(get(1, "/bytes/20"));
    for _ in 1..20 {
        h2.client.send(window_update(1, 1));
    }
    h2.expect(1, &pattern[..20]);
    // None at all, then all of it by a setting.
    let mut h2 = H2::open(&target, &setting(INITIAL_WINDOW_SIZE, 0));
    h2.client.send([get(1, "/bytes/40000"), get(3, "/bytes/20000")].concat());
    h2.client.send(frame(PING, 0, 0, b"12345678"));
    while h2.pings.is_empty() {
        h2.step();
    }
    assert!(h2.streams.values().all(|stream| stream.body.is_empty()), "data without a window");
    h2.client.send(setting(INITIAL_WINDOW_SIZE, 65_535));
    h2.expect(1, &pattern[..40_000]);
    h2.expect(3, &pattern[..20_000]);
    // What the connection allows, then more.
    let mut h2 = H2::open(&target, &setting(INITIAL_WINDOW_SIZE, 2_000_000));
    h2.client.send(get(1, "/bytes/1048576"));
    while h2.stream(1).body.len() < 65_535 {
        h2.step();
    }
    assert_eq!(h2.stream(1).body.len(), 65_535);
    h2.client.send(window_update(0, 2_000_000));
    h2.expect(1, &pattern);
}

pub(super) fn frames(program: Program) {
    let target = Target::start(program, &[]);
    let mut h2 = H2::open(&target, &[]);
    h2.client.send(frame(PING, 0, 0, b"abcdefgh"));
    // A block in three frames, with a priority; a frame of a kind that nobody knows; a priority alone.
    let whole = block(2, "/json/5");
    h2.client.send(frame(HEADERS, END | WITH_PRIORITY, 1, &[&[0, 0, 0, 0, 9], &whole[..4]].concat()));
    h2.client.send(frame(CONTINUATION, 0, 1, &whole[4..6]));
    h2.client.send(frame(CONTINUATION, END_HEADERS, 1, &whole[6..]));
    h2.client.send([frame(0x42, 0xFF, 0, b"?"), frame(2, 0, 3, &[0, 0, 0, 0, 9])].concat());
    h2.expect(1, item(5).as_bytes());
    assert_eq!(h2.pings, [b"abcdefgh"]);
    // Names and values that both sides remember, then forget, then remember in a smaller table.
    let remembered = [&[0x82, 0x86, 0x44][..], &string("/json/6"), &[0x41], &string("localhost")].concat();
    h2.client.send(frame(HEADERS, END | END_HEADERS, 3, &remembered));
    h2.expect(3, item(6).as_bytes());
    h2.client.send(frame(HEADERS, END | END_HEADERS, 5, &[0x82, 0x86, 0xBF, 0xBE]));
    h2.expect(5, item(6).as_bytes());
    h2.client.send(frame(HEADERS, END | END_HEADERS, 7, &[&[0x20, 0x3F, 0xE1, 0x1F][..], &remembered].concat()));
    h2.expect(7, item(6).as_bytes());
    h2.client.send(setting(HEADER_TABLE_SIZE, 0));
    h2.client.send(get(9, "/json/9"));
    h2.expect(9, item(9).as_bytes());
    // Given up by the client: the connection lives.
    h2.client.send(frame(HEADERS, END_HEADERS, 11, &block(3, "/sum")));
    h2.client.send(frame(RST_STREAM, 0, 11, &8_u32.to_be_bytes()));
    h2.client.send(get(13, "/"));
    h2.expect(13, b"ok");
    for (bytes, what) in [
        (frame(DATA, 0, 1, b"x"), "data on a stream that is not open"),
        (frame(HEADERS, END | END_HEADERS, 2, &whole), "a stream of an even number"),
        (frame(CONTINUATION, END_HEADERS, 1, b""), "a continuation of nothing"),
        (frame(PING, 0, 0, b"short"), "half a ping"),
        (frame(SETTINGS, 0, 0, &[0; 5]), "settings cut short"),
        (frame(HEADERS, END | END_HEADERS, 1, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), "a broken block"),
        (window_update(0, 0x7FFF_FFFF), "a window beyond the end"),
        (vec![0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1], "a frame beyond the limit"),
    ] {
        let mut h2 = H2::open(&target, &[]);
        h2.client.send(bytes);
        println!("{what}");
        h2.expect_goodbye(true);
    }
}

pub(super) fn goaway(program: Program) {
    let target = Target::start(program, &[]);
    let mut idle = H2::open(&target, &[]);
    idle.client.send(get(1, "/"));
    idle.expect(1, b"ok");
    let mut h2 = H2::open(&target, &[]);
    h2.client.send(frame(HEADERS, END_HEADERS, 1, &block(3, "/sum")));
    h2.client.send(frame(DATA, 0, 1, b"hel"));
    thread::sleep(Duration::from_millis(200));
    target.terminate();
    while h2.goaway.is_none() {
        h2.step();
    }
    h2.client.send(frame(DATA, END, 1, b"lo"));
    h2.expect(1, sum(b"hello").as_bytes());
    h2.expect_goodbye(false);
    idle.expect_goodbye(false);
    assert_eq!(target.wait().code(), Some(0));
}
