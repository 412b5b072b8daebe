//! The connection against a client that is written out frame by frame. What a client sees through a socket is tested by
//! the contract's tests.

use proptest::prelude::*;

use super::frame::{HEADER_BYTES, write_number, write_settings};
use super::*;
use crate::server::Server;
use http_target::config::Config;

struct Bench {
    connection: Connection,
    output: Output,
    server: std::sync::Arc<Server>,
}

impl Bench {
    /// A connection whose client has spoken.
    fn new(settings: &[(u16, u32)]) -> Self {
        let mut output = Output::default();
        let connection = Connection::new(&mut output);
        let config = Config::read(|name| (name == "MAX_BODY_BYTES").then(|| "1000".into())).expect("good");
        let mut bench = Self { connection, output, server: Server::new(config).expect("descriptors") };
        let kinds: Vec<u8> = bench.written().iter().map(|(header, _)| header.kind).collect();
        assert_eq!(kinds, [kind::SETTINGS, kind::WINDOW_UPDATE]);
        let mut bytes = Vec::new();
        write_settings(&mut bytes, settings);
        assert_eq!(bench.receive(&bytes), Ok(()));
        assert_eq!(bench.written().len(), 1, "an acknowledgement");
        bench
    }

    fn receive(&mut self, mut bytes: &[u8]) -> Result<(), Code> {
        let (date, mut scratch) = (Date::default(), Vec::new());
        loop {
            let mut context = Context {
                output: &mut self.output,
                pattern: &self.server.pattern,
                date: &date,
                scratch: &mut scratch,
                body_bytes_max: self.server.config.body_bytes_max,
                server: &self.server,
                counters: &self.server.counters[0],
            };
            let has_more = self.connection.receive(&mut bytes, &mut context).map_err(|lost| lost.code)?;
            if !has_more {
                self.connection.pump(&mut context);
                return Ok(());
            }
            // A client that does not read.
            self.output.take(&self.server.pattern);
        }
    }

    /// What is written now, in frames.
    fn written(&mut self) -> Vec<(Header, Vec<u8>)> {
        let bytes = self.output.take(&self.server.pattern);
        let (mut rest, mut frames) = (bytes.as_slice(), Vec::new());
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = Header::read(header);
            let (payload, behind) = behind.split_at(header.length);
            frames.push((header, payload.to_vec()));
            rest = behind;
        }
        assert_eq!(rest, b"");
        frames
    }

    /// What is written now, in short: kind, flags, stream, length.
    fn shapes(&mut self) -> Vec<(u8, u8, u32, usize)> {
        self.written()
            .into_iter()
            .map(|(header, _)| (header.kind, header.flags, header.stream, header.length))
            .collect()
    }
}

fn a_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header { length: payload.len(), kind, flags, stream }.write(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn number(kind: u8, stream: u32, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_number(&mut bytes, kind, stream, number);
    bytes
}

/// 2: GET, 3: POST.
fn request(stream: u32, flags: u8, method: u8, path: &str) -> Vec<u8> {
    let mut block = vec![0x80 | method, 0x86, 0x04, u8::try_from(path.len()).expect("short")];
    block.extend_from_slice(path.as_bytes());
    a_frame(kind::HEADERS, frame::flag::END_HEADERS | flags, stream, &block)
}

const END: u8 = frame::flag::END_STREAM;
const HEADS: u8 = frame::flag::END_HEADERS;

#[test]
fn an_answer_in_full() {
    let mut bench = Bench::new(&[(setting::HEADER_TABLE_SIZE, 0)]);
    assert_eq!(bench.receive(&request(1, END, 2, "/json/7")), Ok(()));
    let frames = bench.written();
    let mut fields = Vec::new();
    assert_eq!(frames[0].1[0], hpack::NO_TABLE);
    let keep = |name: &[u8], value: &[u8]| {
        fields.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
    };
    hpack::Decoder::default().decode(&frames[0].1, keep).expect("a good block");
    let expected =
        [":status: 200", "content-type: application/json", "date: Thu, 01 Jan 1970 00:00:00 GMT", "content-length: 37"];
    assert_eq!(fields, expected);
    assert_eq!(frames[1].1, br#"{"id":7,"name":"item 7","even":false}"#);
    assert_eq!((frames[1].0.flags, frames.len()), (END, 2));
    assert!(bench.connection.is_idle());
    assert_eq!(bench.receive(&request(3, END, 2, "/json/7")), Ok(()));
    assert_eq!(bench.written()[0].1[0], 0x88, "the table's size is said once");
}

#[test]
fn answers_wait_for_windows_and_take_turns() {
    let mut bench = Bench::new(&[(setting::INITIAL_WINDOW_SIZE, 20_000)]);
    let both = [request(1, END, 2, "/bytes/30000"), request(3, END, 2, "/bytes/30000")].concat();
    assert_eq!(bench.receive(&both), Ok(()));
    let sent: Vec<_> = bench.shapes().into_iter().filter(|(kind, ..)| *kind == kind::DATA).collect();
    let expected = [(1, 16_384), (1, 3616), (3, 16_384), (3, 3616)].map(|(id, length)| (kind::DATA, 0, id, length));
    assert_eq!(sent, expected);
    assert_eq!(bench.receive(&number(kind::WINDOW_UPDATE, 3, 5000)), Ok(()));
    assert_eq!(bench.shapes(), [(kind::DATA, 0, 3, 5000)]);
    let mut more = Vec::new();
    write_settings(&mut more, &[(setting::INITIAL_WINDOW_SIZE, 60_000)]);
    assert_eq!(bench.receive(&more), Ok(()));
    let shapes = bench.shapes();
    assert_eq!(shapes, [(kind::SETTINGS, 1, 0, 0), (kind::DATA, END, 1, 10_000), (kind::DATA, END, 3, 5000)]);
    assert!(bench.connection.is_idle());
    assert_eq!(bench.connection.send_window, 65_535 - 60_000);
}

#[test]
fn a_short_answer_waits_too() {
    let mut bench = Bench::new(&[(setting::INITIAL_WINDOW_SIZE, 1)]);
    assert_eq!(bench.receive(&request(1, END, 2, "/")), Ok(()));
    assert_eq!(bench.shapes().last(), Some(&(kind::DATA, 0, 1, 1)));
    assert_eq!(bench.receive(&number(kind::WINDOW_UPDATE, 1, 1)), Ok(()));
    assert_eq!(bench.written().last().map(|(header, body)| (header.flags, body.clone())), Some((END, b"k".to_vec())));
}

#[test]
fn bodies_that_are_not_right() {
    let long = [request(1, 0, 3, "/sum"), a_frame(kind::DATA, 0, 1, &[0; 1001])].concat();
    let mut bench = Bench::new(&[]);
    assert_eq!(bench.receive(&long), Ok(()));
    let kinds: Vec<u8> = bench.shapes().iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [kind::HEADERS, kind::RST_STREAM]);
    // A length that is not the body's.
    let mut block = vec![0x83, 0x86, 0x04, 4];
    block.extend_from_slice(b"/sum");
    hpack::decimal(&mut block, hpack::index::CONTENT_LENGTH, 5);
    let short = [a_frame(kind::HEADERS, HEADS, 3, &block), a_frame(kind::DATA, END, 3, b"four")].concat();
    assert_eq!(bench.receive(&short), Ok(()));
    assert_eq!(bench.shapes(), [(kind::RST_STREAM, 0, 3, 4)]);
    assert!(bench.connection.is_idle());
}

#[test]
fn credit_is_renewed() {
    let mut bench = Bench::new(&[]);
    bench.receive(&request(1, 0, 3, "/sum")).expect("good");
    let padding = [&[255][..], &[0; 255]].concat();
    let frame = a_frame(kind::DATA, frame::flag::PADDED, 1, &padding);
    let mut renewed = 0;
    for _ in 0..40_000 {
        bench.receive(&frame).expect("good");
        for (header, payload) in bench.written() {
            assert_eq!(header.kind, kind::WINDOW_UPDATE);
            renewed += if header.stream == 1 { frame::u31(&payload).expect("a number") } else { 0 };
        }
    }
    assert!(renewed > 40_000 * 256 - STREAM_CREDIT_BYTES, "{renewed}");
}

#[test]
fn no_more_streams_than_are_allowed() {
    let mut bench = Bench::new(&[]);
    for number in 0..STREAMS_MAX {
        bench.receive(&request(u32::try_from(2 * number + 1).expect("small"), 0, 3, "/sum")).expect("good");
    }
    assert_eq!(bench.shapes(), []);
    bench.receive(&request(1001, 0, 3, "/sum")).expect("good");
    assert_eq!(bench.shapes(), [(kind::RST_STREAM, 0, 1001, 4)]);
}

#[test]
fn a_goodbye_leaves_what_is_open() {
    let mut bench = Bench::new(&[]);
    bench.receive(&request(5, 0, 3, "/sum")).expect("good");
    bench.connection.say_goodbye(Code::No, &mut bench.output);
    bench.connection.say_goodbye(Code::No, &mut bench.output);
    let [(Header { kind: kind::GOAWAY, .. }, payload)] = &bench.written()[..] else { panic!("one goodbye") };
    assert_eq!(payload, &[0, 0, 0, 5, 0, 0, 0, 0]);
    bench.receive(&request(7, END, 2, "/")).expect("good");
    assert_eq!(bench.shapes(), [], "too late");
    bench.receive(&a_frame(kind::DATA, END, 5, b"x")).expect("good");
    assert_eq!(bench.written().last().map(|(_, body)| body.clone()), Some(b"8cdc1683 1".to_vec()));
    assert!(bench.connection.is_idle());
}

#[test]
fn what_ends_a_connection() {
    let settings = |name, value| {
        let mut bytes = Vec::new();
        write_settings(&mut bytes, &[(name, value)]);
        bytes
    };
    for (bytes, code) in [
        (a_frame(kind::DATA, 0, 1, b""), Code::Protocol),
        (request(2, END, 2, "/"), Code::Protocol),
        ([request(3, END, 2, "/"), request(1, END, 2, "/")].concat(), Code::StreamClosed),
        (a_frame(kind::PUSH_PROMISE, 0, 1, &[0; 5]), Code::Protocol),
        (a_frame(kind::CONTINUATION, HEADS, 1, b""), Code::Protocol),
        ([a_frame(kind::HEADERS, 0, 1, b"\x82"), a_frame(kind::DATA, 0, 1, b"")].concat(), Code::Protocol),
        (
            [a_frame(kind::HEADERS, 0, 1, b"\x82"), a_frame(kind::CONTINUATION, 0, 1, b"")].concat(),
            Code::EnhanceYourCalm,
        ),
        (a_frame(kind::HEADERS, HEADS, 1, b"\xFF\xFF\xFF\xFF\xFF\xFF"), Code::Compression),
        (a_frame(kind::PING, 0, 0, b"short"), Code::FrameSize),
        (a_frame(kind::SETTINGS, 0, 0, &[0; 5]), Code::FrameSize),
        (settings(setting::INITIAL_WINDOW_SIZE, 1 << 31), Code::FlowControl),
        (settings(setting::MAX_FRAME_SIZE, 100), Code::Protocol),
        (number(kind::WINDOW_UPDATE, 0, 0), Code::FlowControl),
        (number(kind::WINDOW_UPDATE, 0, 0x7FFF_FFFF), Code::FlowControl),
        (vec![0x00, 0x40, 0x01, 0, 0, 0, 0, 0, 0], Code::FrameSize),
    ] {
        assert_eq!(Bench::new(&[]).receive(&bytes), Err(code), "{bytes:?}");
    }
}

/// A frame that may or may not make sense.
fn strange_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(b"\x82\x86\x84".to_vec()),
        1 => Just(vec![0, 0, 0, 9]),
    ];
    prop_oneof![
        3 => (0..11_u8, any::<u8>(), 0..9_u32, payload)
            .prop_map(|(kind, flags, stream, payload)| a_frame(kind, flags, stream, &payload)),
        1 => (0..9_u32, any::<bool>()).prop_map(|(id, ends)| request(id, u8::from(ends), 3, "/sum")),
    ]
}

proptest! {
    /// Whatever a client sends: no panic, and no more is remembered than allowed.
    #[test]
    fn strange_clients(frames in prop::collection::vec(strange_frame(), 0..60), noise: Vec<u8>) {
        let mut bench = Bench::new(&[(setting::INITIAL_WINDOW_SIZE, 15)]);
        for bytes in frames.into_iter().chain([noise]) {
            if bench.receive(&bytes).is_err() {
                break;
            }
            prop_assert!(bench.connection.open_streams() <= STREAMS_MAX);
            bench.written();
        }
    }
}
