//! The connection against a server that is written out frame by frame.

use std::io::IoSlice;

use proptest::prelude::*;

use super::frame::{HEADER_BYTES, Header, PREFACE, write_number, write_settings};
use super::*;

type Body = VecDeque<Vec<u8>>;

/// What became of requests, to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Answer(u32, u16, Vec<u8>),
    TooLong(u32),
    Reset(u32),
}

struct Client(Connection<Vec<u8>>);

impl Client {
    /// A client that has written its first words; the server has not spoken.
    fn silent() -> Self {
        let mut client = Self(Connection::new(Target::new("host:1", "/infer", 4)));
        let mut bytes = Vec::new();
        client.write(&mut bytes);
        assert!(bytes.starts_with(PREFACE));
        let first: Vec<u8> = frames(&bytes[PREFACE.len()..]).iter().map(|(header, _)| header.kind).collect();
        assert_eq!(first, [kind::SETTINGS, kind::WINDOW_UPDATE]);
        client
    }

    /// A client of a server with these settings.
    fn new(settings: &[(u16, u32)]) -> Self {
        let mut client = Self::silent();
        assert_eq!(client.receive(&server_settings(settings)), Ok(vec![]));
        assert_eq!(client.written(), [(kind::SETTINGS, flag::ACK, 0, vec![])]);
        client
    }

    fn request(&mut self, tag: u32, bytes: usize) -> u32 {
        self.0.request(tag, Body::from([vec![7; bytes]]))
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Seen>, Code> {
        let mut seen = Vec::new();
        let mut keep = |event: Event<'_>| {
            seen.push(match event {
                Event::Answer { tag, status, body } => Seen::Answer(tag, status, body.to_vec()),
                Event::TooLong { tag } => Seen::TooLong(tag),
                Event::Reset { tag } => Seen::Reset(tag),
            });
        };
        let received = self.0.receive(bytes, &mut keep, &mut drop);
        received.map(|()| seen).map_err(|lost| lost.code)
    }

    fn write(&mut self, bytes: &mut Vec<u8>) {
        loop {
            let output = self.0.output();
            let mut slices = [IoSlice::new(&[]); 5];
            let used = output.slices(&mut slices);
            let before = bytes.len();
            slices[..used].iter().for_each(|slice| bytes.extend_from_slice(slice));
            output.advance(bytes.len() - before, drop);
            if bytes.len() == before {
                return;
            }
        }
    }

    /// What is written now, in frames: kind, flags, stream, payload.
    fn written(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        let parts = |(header, payload): (Header, Vec<u8>)| (header.kind, header.flags, header.stream, payload);
        frames(&bytes).into_iter().map(parts).collect()
    }

    /// What is written now, in short: kind, stream, length.
    fn lengths(&mut self) -> Vec<(u8, u32, usize)> {
        self.written().into_iter().map(|(kind, _, stream, payload)| (kind, stream, payload.len())).collect()
    }
}

fn frames(mut bytes: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() {
        let header = Header::read(header);
        let (payload, rest) = rest.split_at(header.length);
        frames.push((header, payload.to_vec()));
        bytes = rest;
    }
    assert_eq!(bytes, b"");
    frames
}

fn server_settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_settings(&mut bytes, settings);
    bytes
}

fn a_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header { length: payload.len(), kind, flags, stream }.write(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// `:status 200`, or a literal.
fn status(stream: u32, flags: u8, status: &str) -> Vec<u8> {
    let mut block = Vec::new();
    match status {
        "200" => hpack::indexed(&mut block, 8),
        _ => hpack::literal(&mut block, 8, status.as_bytes()),
    }
    a_frame(kind::HEADERS, flag::END_HEADERS | flags, stream, &block)
}

fn answer(stream: u32, body: &[u8]) -> Vec<u8> {
    [status(stream, 0, "200"), a_frame(kind::DATA, flag::END_STREAM, stream, body)].concat()
}

fn number(kind: u8, stream: u32, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_number(&mut bytes, kind, stream, number);
    bytes
}

#[test]
fn a_request_and_its_answer() {
    let mut client = Client::new(&[(setting::MAX_FRAME_SIZE, 65_536)]);
    let id = client.0.request(5, Body::from([vec![1; 600], vec![2; 400]]));
    let [(kind::HEADERS, flag::END_HEADERS, 1, block), (kind::DATA, flag::END_STREAM, 1, data)] = &client.written()[..]
    else {
        panic!("not a request");
    };
    assert_eq!((id, data), (1, &[vec![1; 600], vec![2; 400]].concat()));
    let mut fields = Vec::new();
    let keep = |name: &[u8], value: &[u8]| {
        fields.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
    };
    hpack::Decoder::default().decode(block, keep).expect("a good block");
    let expected = [
        ":method=POST",
        ":scheme=http",
        ":path=/infer",
        ":authority=host:1",
        "content-type=application/octet-stream",
        "x-cpu-passes=4",
        "content-length=1000",
    ];
    assert_eq!(fields, expected);
    assert_eq!(client.receive(&answer(1, b"{}")), Ok(vec![Seen::Answer(5, 200, b"{}".to_vec())]));
    assert!(client.0.is_idle());
}

#[test]
fn answers_of_every_shape() {
    let mut client = Client::new(&[]);
    for tag in 0..6 {
        client.request(tag, 10);
    }
    client.written();
    let bytes = [
        // In several frames, one of them padded, behind an early hint, with trailers.
        status(1, 0, "103"),
        status(1, 0, "200"),
        a_frame(kind::DATA, 0, 1, b"ab"),
        a_frame(kind::DATA, flag::PADDED, 1, b"\x03cd\0\0\0"),
        a_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, b"\x00\x01x\x01y"),
        // A header block in three frames, with a priority.
        a_frame(kind::HEADERS, flag::PRIORITY, 3, &[0, 0, 0, 0, 9, 0x88, 0x00]),
        a_frame(kind::CONTINUATION, 0, 3, b"\x01x"),
        a_frame(kind::CONTINUATION, flag::END_HEADERS, 3, b"\x01y"),
        a_frame(kind::DATA, flag::END_STREAM, 3, b"two"),
        // Statuses that say it all, with a body and without.
        status(5, 0, "503"),
        a_frame(kind::DATA, flag::END_STREAM, 5, b"busy"),
        status(7, flag::END_STREAM, "429"),
        // Given up; and something of a kind that nobody knows.
        number(kind::RST_STREAM, 9, 2),
        a_frame(0x42, 0xFF, 11, b"?"),
    ]
    .concat();
    let expected = vec![
        Seen::Answer(0, 200, b"abcd".to_vec()),
        Seen::Answer(1, 200, b"two".to_vec()),
        Seen::Answer(2, 503, vec![]),
        Seen::Answer(3, 429, vec![]),
        Seen::Reset(4),
    ];
    assert_eq!(client.receive(&bytes), Ok(expected));
    // The rest of an answer that is known by its status is not wanted.
    assert_eq!(client.lengths(), [(kind::RST_STREAM, 5, 4)]);
}

#[test]
fn bodies_wait_for_windows() {
    let mut client = Client::new(&[(setting::INITIAL_WINDOW_SIZE, 20_000)]);
    client.request(0, 30_000);
    client.request(1, 30_000);
    // Frames of 16,384 at most; windows of the streams of 20,000.
    let headers = client.lengths()[0].2;
    client.request(2, 60_000);
    assert_eq!(client.lengths(), [(kind::HEADERS, 5, headers), (kind::DATA, 5, 16_384), (kind::DATA, 5, 3616)]);
    assert_eq!(client.receive(&number(kind::WINDOW_UPDATE, 3, 5000)), Ok(vec![]));
    assert_eq!(client.lengths(), [(kind::DATA, 3, 5000)]);
    // The connection's window of 65,535 is nearly used up by now.
    assert_eq!(client.receive(&server_settings(&[(setting::INITIAL_WINDOW_SIZE, 100_000)])), Ok(vec![]));
    assert_eq!(client.lengths(), [(kind::SETTINGS, 0, 0), (kind::DATA, 1, 535)]);
    assert_eq!(client.receive(&number(kind::WINDOW_UPDATE, 0, 100_000)), Ok(vec![]));
    let sent: usize = client.lengths().iter().map(|(_, _, length)| length).sum();
    assert_eq!(sent, 120_000 - 65_535);
    // Shrinking may make a window negative.
    assert_eq!(client.receive(&server_settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])), Ok(vec![]));
    client.request(3, 10);
    assert_eq!(client.lengths(), [(kind::SETTINGS, 0, 0), (kind::HEADERS, 7, headers - 3)]);
}

#[test]
fn no_more_streams_than_are_allowed() {
    let mut client = Client::new(&[(setting::MAX_CONCURRENT_STREAMS, 2)]);
    let ids: Vec<u32> = (0..4).map(|tag| client.request(tag, 10)).collect();
    let opened = |client: &mut Client| -> Vec<u32> {
        client.lengths().iter().filter(|(kind, ..)| *kind == kind::HEADERS).map(|(_, stream, _)| *stream).collect()
    };
    assert_eq!(opened(&mut client), [1, 3]);
    // One that waits is given up without a word on the wire.
    client.0.cancel(ids[2], drop);
    assert_eq!(client.lengths(), []);
    assert_eq!(client.receive(&answer(1, b"")), Ok(vec![Seen::Answer(0, 200, vec![])]));
    assert_eq!(opened(&mut client), [7]);
    client.0.cancel(ids[1], drop);
    assert_eq!(client.written(), [(kind::RST_STREAM, 0, 3, (Code::Cancel as u32).to_be_bytes().to_vec())]);
    assert_eq!(client.receive(&answer(3, b"late")), Ok(vec![]), "an answer that nobody waits for");
}

#[test]
fn pings_are_answered_and_credit_is_renewed() {
    let mut client = Client::new(&[]);
    assert_eq!(client.receive(&a_frame(kind::PING, 0, 0, b"12345678")), Ok(vec![]));
    assert_eq!(client.receive(&a_frame(kind::PING, flag::ACK, 0, b"12345678")), Ok(vec![]));
    assert_eq!(client.written(), [(kind::PING, flag::ACK, 0, b"12345678".to_vec())]);
    let body = [b' '; 16_000];
    let mut renewed = 0;
    for tag in 0..1200 {
        let id = client.request(tag, 1);
        let written = client.written();
        client.receive(&answer(id, &body)).expect("within credit");
        for (kind, _, stream, payload) in written {
            if kind == kind::WINDOW_UPDATE {
                assert_eq!(stream, 0);
                renewed += frame::u31(&payload).expect("a number");
            }
        }
    }
    assert!(renewed > CONNECTION_CREDIT_BYTES / 2, "{renewed}");
}

#[test]
fn a_goodbye_leaves_what_it_covers() {
    let mut client = Client::new(&[]);
    for tag in 0..3 {
        client.request(tag, 10);
    }
    client.written();
    let goodbye = a_frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(client.receive(&goodbye), Ok(vec![Seen::Reset(2)]));
    assert!(!client.0.takes_requests() && !client.0.is_idle());
    let answers = [answer(1, b"a"), answer(3, b"b")].concat();
    assert_eq!(client.receive(&answers).map(|seen| seen.len()), Ok(2));
    assert!(client.0.is_idle());
}

#[test]
fn an_answer_without_end_is_refused() {
    let mut client = Client::new(&[]);
    client.request(9, 1);
    client.written();
    client.receive(&status(1, 0, "200")).expect("good");
    let piece = a_frame(kind::DATA, 0, 1, &[b' '; 16_384]);
    assert_eq!(client.receive(&piece.repeat(4)), Ok(vec![]));
    assert_eq!(client.receive(&piece), Ok(vec![Seen::TooLong(9)]));
    assert_eq!(client.lengths(), [(kind::RST_STREAM, 1, 4)]);
}

#[test]
fn what_ends_a_connection() {
    for (bytes, code, what) in [
        (a_frame(kind::DATA, 0, 1, b""), Code::Protocol, "a stream that was not opened"),
        (a_frame(kind::DATA, 0, 2, b""), Code::Protocol, "a stream of the server's"),
        (a_frame(kind::PING, 0, 0, b"short"), Code::FrameSize, "half a ping"),
        (a_frame(kind::PUSH_PROMISE, 0, 1, &[0; 5]), Code::Protocol, "a push"),
        (a_frame(kind::CONTINUATION, 0, 1, b""), Code::Protocol, "a continuation of nothing"),
        (a_frame(kind::SETTINGS, 0, 0, &[0; 5]), Code::FrameSize, "settings cut short"),
        (server_settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)]), Code::FlowControl, "a huge window"),
        (server_settings(&[(setting::MAX_FRAME_SIZE, 100)]), Code::Protocol, "tiny frames"),
        (number(kind::WINDOW_UPDATE, 0, 0x7FFF_FFFF), Code::FlowControl, "a window beyond the end"),
        (number(kind::WINDOW_UPDATE, 0, 0), Code::FlowControl, "a window that does not grow"),
        (a_frame(kind::GOAWAY, 0, 0, b"bye"), Code::FrameSize, "half a goodbye"),
        (vec![0x00, 0x40, 0x01, 0, 0, 0, 0, 0, 0], Code::FrameSize, "a frame beyond the limit"),
    ] {
        assert_eq!(Client::new(&[]).receive(&bytes), Err(code), "{what}");
    }
    assert_eq!(Client::silent().receive(&a_frame(kind::PING, 0, 0, &[0; 8])), Err(Code::Protocol), "no settings");
    let mut client = Client::new(&[]);
    client.request(0, 1);
    client.written();
    let torn = [a_frame(kind::HEADERS, 0, 1, b"\x88"), a_frame(kind::DATA, 0, 1, b"")].concat();
    assert_eq!(client.receive(&torn), Err(Code::Protocol), "a header block torn");
}

/// A frame that may or may not make sense.
fn strange_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(vec![0x88]),
        1 => Just(vec![0, 0, 0, 0]),
        1 => Just(vec![0, 1, 0, 0, 0, 0, 0, 0]),
    ];
    (0..11_u8, any::<u8>(), 0..9_u32, payload)
        .prop_map(|(kind, flags, stream, payload)| a_frame(kind, flags, stream, &payload))
}

proptest! {
    #[test]
    fn cuts_make_no_difference(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..20),
        cuts in prop::collection::vec(1..500_usize, 1..20),
    ) {
        let mut client = Client::new(&[]);
        let mut stream = Vec::new();
        for (tag, body) in (0..).zip(&bodies) {
            let id = client.request(tag, 10);
            stream.extend(answer(id, body));
        }
        client.written();
        let (mut rest, mut seen) = (stream.as_slice(), Vec::new());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            seen.extend(client.receive(now).expect("a good server"));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let expected: Vec<Seen> = (0..).zip(bodies).map(|(tag, body)| Seen::Answer(tag, 200, body)).collect();
        prop_assert_eq!(seen, expected);
        prop_assert!(client.0.is_idle());
    }

    /// Whatever a server sends: no panic, and every request ends exactly once.
    #[test]
    fn strange_servers(
        frames in prop::collection::vec(strange_frame(), 0..60),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        cancelled in 0..4_u32,
    ) {
        let mut client = Client::new(&[(setting::INITIAL_WINDOW_SIZE, 15)]);
        let ids: Vec<u32> = (0..4).map(|tag| client.request(tag, 20)).collect();
        client.written();
        client.0.cancel(ids[cancelled as usize], drop);
        let mut ended = Vec::new();
        for bytes in frames.into_iter().chain([noise]) {
            match client.receive(&bytes) {
                Ok(seen) => ended.extend(seen),
                Err(_) => break,
            }
            client.written();
        }
        let mut tags: Vec<u32> = ended
            .into_iter()
            .map(|seen| match seen {
                Seen::Answer(tag, ..) | Seen::TooLong(tag) | Seen::Reset(tag) => tag,
            })
            .collect();
        client.0.fail(
            |event| match event {
                Event::Reset { tag } => tags.push(tag),
                _ => panic!("all are reset"),
            },
            drop,
        );
        tags.sort_unstable();
        let expected: Vec<u32> = (0..4).filter(|tag| *tag != cancelled).collect();
        prop_assert_eq!(tags, expected);
    }
}
