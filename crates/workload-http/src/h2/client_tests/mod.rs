mod bodies;
mod rules;

use proptest::prelude::*;

use super::super::frame::{
    FRAME_HEADER_BYTES, FRAME_MAX_BYTES, WINDOW_MAX, append_header, flag, kind,
};
use super::super::hpack::{HpackFlaw, Indexing};
use super::*;
use crate::h1::{Method, Path, RequestSpec};

const GET: usize = 0;
const HEAD: usize = 1;
const POST: usize = 2;
const JSON: usize = 3;

/// GET, HEAD, POST of 100,000 bytes, and a numbered path.
fn templates() -> Arc<[Template]> {
    let spec = |method, path, body_bytes| RequestSpec {
        method,
        path,
        host: "a:80",
        fields: &[("User-Agent", "test")],
        body_bytes,
        close: false,
    };
    [
        spec(Method::Get, Path::Fixed("/"), None),
        spec(Method::Head, Path::Fixed("/"), None),
        spec(Method::Post, Path::Fixed("/sum"), Some(100_000)),
        spec(Method::Get, Path::Numbered("/json/"), None),
    ]
    .iter()
    .map(|spec| Template::new(spec).unwrap())
    .collect()
}

/// An event that owns its bytes; body bytes of a stream that follow each other are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Head(u32, u16, Option<u64>),
    Body(u32, Vec<u8>),
    Other(String),
}

fn note(seen: &mut Vec<Seen>, event: Event<'_>) {
    match event {
        Event::Head {
            stream,
            status,
            content_length,
            ..
        } => {
            seen.push(Seen::Head(stream, status, content_length));
        }
        Event::Body { stream, bytes } => {
            assert!(!bytes.is_empty());
            match seen.last_mut() {
                Some(Seen::Body(last, body)) if *last == stream => body.extend_from_slice(bytes),
                _ => seen.push(Seen::Body(stream, bytes.to_vec())),
            }
        }
        other => seen.push(Seen::Other(format!("{other:?}"))),
    }
}

/// What the server's bytes give on a connection with these requests, and what the client writes then.
fn read_pieces<'a>(
    requests: &[usize],
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Seen>, Option<Violation>, Vec<u8>) {
    let mut client = Client::new(templates());
    for (i, kind) in requests.iter().enumerate() {
        assert_eq!(client.open(*kind, i as u64), Some(2 * i as u32 + 1));
    }
    let mut out = Vec::new();
    client.take_output(&mut out);
    let (mut seen, mut violation) = (Vec::new(), None);
    for piece in pieces {
        violation = client.received(piece, |event| note(&mut seen, event)).err();
        if violation.is_some() {
            let again = client.received(b"x", |_| panic!("an event after a violation"));
            assert_eq!(again.err(), violation);
            assert!(client.is_ending() && client.room() == 0);
            break;
        }
    }
    client.closed(|event| note(&mut seen, event));
    client.take_output(&mut out);
    (seen, violation, out)
}

#[track_caller]
fn read(requests: &[usize], bytes: &[u8]) -> (Vec<Seen>, Option<Violation>, Vec<u8>) {
    let whole = read_pieces(requests, [bytes]);
    assert_eq!(
        read_pieces(requests, bytes.chunks(1)),
        whole,
        "byte by byte"
    );
    assert_eq!(read_pieces(requests, bytes.chunks(7)), whole, "by sevens");
    whole
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append_header(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

/// A block of literals that enter no table.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    for (name, value) in fields {
        encoder.field(
            name.as_bytes(),
            value.as_bytes(),
            Indexing::Without,
            &mut out,
        );
    }
    out
}

fn headers(stream: u32, fields: &[(&str, &str)], ends: bool) -> Vec<u8> {
    let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
    frame(kind::HEADERS, flags, stream, &block(fields))
}

fn data(stream: u32, bytes: &[u8], ends: bool) -> Vec<u8> {
    frame(kind::DATA, u8::from(ends), stream, bytes)
}

fn settings_frame(list: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    append_settings(&mut out, list);
    out
}

fn after_settings(frames: &[Vec<u8>]) -> Vec<u8> {
    [settings_frame(&[]), frames.concat()].concat()
}

fn other(event: Event<'_>) -> Seen {
    Seen::Other(format!("{event:?}"))
}

const NO_LIMIT: Event<'_> = Event::Settings {
    max_concurrent_streams: None,
};

#[track_caller]
fn assert_violates(frames: &[Vec<u8>], expected: Violation) {
    assert_violates_with(&[GET, GET], frames, expected);
}

#[track_caller]
fn assert_violates_with(requests: &[usize], frames: &[Vec<u8>], expected: Violation) {
    let (_, violation, out) = read(requests, &after_settings(frames));
    assert_eq!(violation, Some(expected));
    let mut goaway = Vec::new();
    append_goaway(&mut goaway, 0, expected.code());
    assert!(out.ends_with(&goaway), "{out:x?}");
}

#[track_caller]
fn assert_malformed(frames: &[Vec<u8>], expected: Malformed) {
    let (seen, violation, out) = read(&[GET, HEAD], &after_settings(frames));
    assert_eq!(violation, None);
    let malformed = |stream| {
        other(Event::Malformed {
            stream,
            why: expected,
        })
    };
    assert!(
        seen.contains(&malformed(1)) || seen.contains(&malformed(3)),
        "{seen:?}"
    );
    let mut reset = Vec::new();
    append_reset(&mut reset, 1, ErrorCode::PROTOCOL_ERROR);
    reset.truncate(4);
    assert!(out.windows(4).any(|four| four == reset), "no RST_STREAM");
}

const OK: &[(&str, &str)] = &[(":status", "200"), ("content-length", "2")];

#[test]
fn answers_come_in_any_order_and_with_padding() {
    let padded = frame(
        kind::DATA,
        flag::PADDED | flag::END_STREAM,
        3,
        b"\x03ok\0\0\0",
    );
    let mut padded_head = vec![2, 0, 0, 0, 0, 16];
    padded_head.extend(block(OK));
    padded_head.extend([0, 0]);
    let flags = flag::PADDED | flag::PRIORITY | flag::END_HEADERS;
    let bytes = after_settings(&[
        frame(kind::HEADERS, flags, 3, &padded_head),
        headers(1, OK, false),
        data(1, b"a", false),
        padded,
        frame(99, 0xFF, 7, b"unknown"),
        data(1, b"", false),
        data(1, b"b", false),
        frame(kind::PRIORITY, 0, 1, &[0; 5]),
        headers(1, &[("x-trailer", "1")], true),
        headers(5, &[(":status", "100")], false),
        headers(5, &[(":status", "200"), ("content-length", "999")], true),
    ]);
    let expected = vec![
        other(NO_LIMIT),
        Seen::Head(3, 200, Some(2)),
        Seen::Head(1, 200, Some(2)),
        Seen::Body(1, b"a".to_vec()),
        Seen::Body(3, b"ok".to_vec()),
        other(Event::End { stream: 3 }),
        Seen::Body(1, b"b".to_vec()),
        other(Event::End { stream: 1 }),
        Seen::Head(5, 200, Some(999)),
        other(Event::End { stream: 5 }),
    ];
    let (seen, violation, out) = read(&[GET, JSON, HEAD], &bytes);
    assert_eq!((seen, violation), (expected, None));
    assert_eq!(out, frame(kind::SETTINGS, flag::ACK, 0, b""));
}

#[test]
fn continuations_are_joined_up_to_a_limit() {
    let block = block(OK);
    let (a, b) = block.split_at(2);
    let split = |ends| {
        vec![
            frame(kind::HEADERS, flag::END_STREAM, 1, a),
            frame(kind::CONTINUATION, 0, 1, b""),
            frame(kind::CONTINUATION, ends, 1, b),
        ]
    };
    let (seen, violation, _) = read(&[HEAD], &after_settings(&split(flag::END_HEADERS)));
    assert_eq!((&seen[1], violation), (&Seen::Head(1, 200, Some(2)), None));
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    assert_violates(&[split(0), vec![ping]].concat(), Violation::Interrupted);
    let other_stream = frame(kind::CONTINUATION, 0, 3, b);
    assert_violates(
        &[split(0), vec![other_stream]].concat(),
        Violation::Interrupted,
    );
    assert_violates(
        &[frame(kind::CONTINUATION, 4, 1, b)],
        Violation::LoneContinuation,
    );
    let empty = vec![frame(kind::CONTINUATION, 0, 1, b""); 40];
    assert_violates(&[split(0), empty].concat(), Violation::BlockTooLarge);
    let long = vec![frame(kind::CONTINUATION, 0, 1, &[0; 16_000]); 5];
    assert_violates(&[split(0), long].concat(), Violation::BlockTooLarge);
}

#[test]
fn pings_are_answered_and_windows_opened_in_large_steps() {
    let (_, violation, out) = read(
        &[GET],
        &after_settings(&[frame(kind::PING, 0, 0, b"12345678")]),
    );
    let ack = frame(kind::PING, flag::ACK, 0, b"12345678");
    assert!(violation.is_none() && out.ends_with(&ack));
    // A body of 1 MiB needs no WINDOW_UPDATE.
    let chunk = data(1, &[7; FRAME_MAX_BYTES], false);
    let body = |mib: usize| {
        let mut bytes = after_settings(&[headers(1, &[(":status", "200")], false)]);
        bytes.extend(chunk.repeat(mib * 64));
        bytes
    };
    let settings_ack = frame(kind::SETTINGS, flag::ACK, 0, b"");
    let (_, violation, out) = read_pieces(&[GET], [&body(1)[..]]);
    assert_eq!((violation, out), (None, settings_ack.clone()));
    let mut expected = settings_ack;
    append_window_update(&mut expected, 1, STREAM_WINDOW / 2);
    let (_, violation, out) = read_pieces(&[GET], [&body(3)[..]]);
    assert_eq!((violation, out), (None, expected));
}

#[test]
fn resets_and_goaway_are_told_stream_by_stream() {
    let reset = frame(kind::RST_STREAM, 0, 3, &8u32.to_be_bytes());
    let goaway = frame(
        kind::GOAWAY,
        0,
        0,
        &[0, 0, 0, 1, 0, 0, 0, 11, b'w', b'h', b'y'],
    );
    let bytes = after_settings(&[
        reset.clone(),
        reset,
        goaway,
        headers(5, OK, false),
        headers(1, OK, false),
    ]);
    let code = ErrorCode::CANCEL;
    let expected = vec![
        other(NO_LIMIT),
        other(Event::Reset { stream: 3, code }),
        other(Event::Goaway {
            last_stream: 1,
            code: ErrorCode::ENHANCE_YOUR_CALM,
        }),
        other(Event::Dropped { stream: 5 }),
        other(Event::Dropped { stream: 7 }),
        Seen::Head(1, 200, Some(2)),
        other(Event::Closed {
            stream: 1,
            in_answer: true,
        }),
    ];
    let (seen, violation, _) = read(&[GET, GET, GET, GET], &bytes);
    assert_eq!((seen, violation), (expected, None));
}

#[test]
fn a_stream_that_we_gave_up_is_silent() {
    let mut client = Client::new(templates());
    let (one, two) = (client.open(GET, 0).unwrap(), client.open(GET, 0).unwrap());
    let mut out = Vec::new();
    client.take_output(&mut out);
    client.reset(one, ErrorCode::CANCEL);
    client.reset(one, ErrorCode::CANCEL);
    client.take_output(&mut out);
    assert_eq!(out, frame(kind::RST_STREAM, 0, one, &8u32.to_be_bytes()));
    let bytes = after_settings(&[
        headers(one, OK, false),
        data(one, b"ok", true),
        headers(two, OK, false),
    ]);
    let mut seen = Vec::new();
    client
        .received(&bytes, |event| note(&mut seen, event))
        .unwrap();
    assert_eq!(seen, [other(NO_LIMIT), Seen::Head(two, 200, Some(2))]);
    assert_eq!(client.open_streams(), 1);
}

#[test]
fn room_is_what_the_server_allows() {
    let mut client = Client::new(templates());
    assert_eq!(
        (client.room(), client.is_open()),
        (STREAMS_BEFORE_SETTINGS, false)
    );
    let limit = settings_frame(&[(setting::MAX_CONCURRENT_STREAMS, 2)]);
    client.received(&limit, |_| {}).unwrap();
    assert!(client.is_open());
    assert_eq!(
        (
            client.open(GET, 0),
            client.open(GET, 0),
            client.open(GET, 0)
        ),
        (Some(1), Some(3), None)
    );
    client
        .received(&headers(1, &[(":status", "204")], true), |_| {})
        .unwrap();
    assert_eq!((client.room(), client.open(GET, 0)), (1, Some(5)));
}

#[test]
fn ids_come_to_an_end() {
    let mut client = Client::new(templates());
    client.core.next_stream = LAST_STREAM;
    assert_eq!(client.open(GET, 0), Some(LAST_STREAM));
    assert_eq!((client.open(GET, 0), client.is_ending()), (None, true));
}

#[test]
fn a_repeated_request_is_few_bytes_and_allocates_nothing() {
    let mut client = Client::new(templates());
    let (mut out, mut lengths) = (Vec::with_capacity(4096), Vec::new());
    let answer = |stream| [headers(stream, OK, false), data(stream, b"ok", true)].concat();
    client.received(&after_settings(&[]), |_| {}).unwrap();
    for i in 0..4 {
        let stream = client.open(GET, i).unwrap();
        client.take_output(&mut out);
        lengths.push(out.len());
        client.received(&answer(stream), |_| {}).unwrap();
    }
    // Header, then GET, http, host, path, user-agent: five indices.
    assert_eq!(lengths[2..], [FRAME_HEADER_BYTES + 5; 2]);
    assert!(client.held_bytes() < 20_000, "{}", client.held_bytes());
}

/// A block that enters the table is decoded each time, even if the same bytes come again.
#[test]
fn equal_blocks_can_change_the_table() {
    let enters = [0x88, 0x40, 1, b'x', 1, b'y'];
    let head = |stream, block: &[u8]| {
        frame(
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            stream,
            block,
        )
    };
    let mut frames = vec![head(1, &enters), head(3, &enters), head(5, &enters)];
    // The oldest of three entries, then one too many.
    frames.push(head(7, &[0x88, 0xC0]));
    let (seen, violation, _) = read(&[GET; 5], &after_settings(&frames));
    assert_eq!((seen.len(), violation), (1 + 4 * 2 + 1, None));
    frames.push(head(9, &[0x88, 0xC1]));
    assert_violates_with(&[GET; 5], &frames, Violation::Hpack(HpackFlaw::Index(65)));
}

/// Frames that a server may send or not, whose sequences reach most states.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop::sample::select(vec![1u32, 1, 3, 5, 7]);
    let one = (stream, any::<bool>(), 0usize..16).prop_map(|(stream, ends, which)| {
        let id = stream.to_be_bytes();
        match which {
            0..4 => headers(stream, OK, ends),
            4 => headers(stream, &[(":status", "204")], true),
            5..9 => data(stream, b"ok", ends),
            9 => frame(
                kind::DATA,
                flag::PADDED | u8::from(ends),
                stream,
                b"\x02ok\0\0",
            ),
            10 => data(stream, b"", ends),
            11 => frame(kind::HEADERS, u8::from(ends), stream, &block(OK)[..3]),
            12 => frame(kind::CONTINUATION, 4, stream, &block(OK)[3..]),
            13 => frame(kind::RST_STREAM, 0, stream, &id),
            14 => frame(kind::GOAWAY, 0, 0, &[id, [0; 4]].concat()),
            _ => frame(kind::WINDOW_UPDATE, 0, stream, &id),
        }
    });
    prop::collection::vec(one, 0..12).prop_map(|frames| after_settings(&frames))
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        bytes in frames(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let requests = [GET, HEAD, POST, JSON];
        let whole = read_pieces(&requests, [&bytes[..]]);
        prop_assert_eq!(read_pieces(&requests, bytes.chunks(1)), whole.clone());
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(read_pieces(&requests, pieces), whole);
    }

    #[test]
    fn garbage_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0u8..10,
        flags in any::<u8>(),
        stream in 0u32..8,
    ) {
        read_pieces(&[GET, POST], bytes.chunks(5));
        let bytes = after_settings(&[frame(kind, flags, stream, &bytes), bytes]);
        read_pieces(&[GET, POST], [&bytes[..]]);
    }
}
