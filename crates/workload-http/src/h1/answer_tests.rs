use std::ops::Range;

use proptest::prelude::*;

use super::*;

/// An event that owns its bytes; body bytes up to the next event are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Head(u16, Framing, bool),
    Body(Vec<u8>),
    End,
}

fn note(seen: &mut Vec<Seen>, event: Event<'_>) {
    match event {
        Event::Head(head) => seen.push(Seen::Head(head.status, head.framing, head.closes)),
        Event::Body(bytes) => {
            assert!(!bytes.is_empty());
            match seen.last_mut() {
                Some(Seen::Body(body)) => body.extend_from_slice(bytes),
                _ => seen.push(Seen::Body(bytes.to_vec())),
            }
        }
        Event::End => seen.push(Seen::End),
    }
}

/// What answers to `asked` requests give, and then the end of the connection. `heads` of them are HEAD.
fn read_pieces<'a>(
    asked: u32,
    heads: Range<u32>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Seen>, Option<Fault>) {
    let mut reader = AnswerReader::new();
    for i in 0..asked {
        assert!(reader.ask(heads.contains(&i)));
    }
    let mut seen = Vec::new();
    for piece in pieces {
        if let Err(fault) = reader.received(piece, |event| note(&mut seen, event)) {
            assert_eq!(
                reader.received(b"x", |_| panic!("an event after a fault")),
                Err(fault)
            );
            assert!(reader.is_closing());
            return (seen, Some(fault));
        }
    }
    let fault = reader.closed(|event| note(&mut seen, event)).err();
    (seen, fault)
}

#[track_caller]
fn read(asked: u32, heads: Range<u32>, bytes: &[u8]) -> (Vec<Seen>, Option<Fault>) {
    let whole = read_pieces(asked, heads.clone(), [bytes]);
    let single = read_pieces(asked, heads.clone(), bytes.chunks(1));
    assert_eq!(single, whole, "byte by byte");
    for cut in 0..bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(
            read_pieces(asked, heads.clone(), [a, b]),
            whole,
            "cut at {cut}"
        );
    }
    whole
}

#[track_caller]
fn assert_flaw(bytes: &str, flaw: Flaw) {
    let expected = (vec![], Some(Fault::BadAnswer(flaw)));
    assert_eq!(read(1, 0..0, bytes.as_bytes()), expected, "{bytes:?}");
}

fn head(status: u16, framing: Framing) -> Seen {
    Seen::Head(status, framing, framing == Framing::UntilClose)
}

fn body(bytes: &[u8]) -> Seen {
    Seen::Body(bytes.to_vec())
}

#[test]
fn a_usual_answer() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
    let expected = vec![head(200, Framing::Length(2)), body(b"ok"), Seen::End];
    assert_eq!(read(1, 0..0, bytes), (expected, None));
}

#[test]
fn nothing_is_copied_or_allocated_for_a_whole_answer() {
    let bytes = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 2\r\n\r\nok";
    let range = bytes.as_ptr_range();
    let mut reader = AnswerReader::new();
    assert!(reader.ask(false));
    let mut fields = 0;
    let result = reader.received(bytes, |event| match event {
        Event::Head(head) => {
            assert!(range.contains(&head.fields.as_bytes().as_ptr()));
            assert_eq!(head.fields.get("SERVER"), Some(&b"x"[..]));
            assert_eq!(head.content_length, Some(2));
            fields = head.fields.iter().count();
        }
        Event::Body(body) => assert!(range.contains(&body.as_ptr())),
        Event::End => {}
    });
    assert_eq!((result, fields, reader.held_bytes()), (Ok(()), 2, 0));
    assert!(
        size_of::<AnswerReader>() <= 160,
        "{}",
        size_of::<AnswerReader>()
    );
}

#[test]
fn pipelined_answers_come_in_order_and_heads_have_no_body() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\
        HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n";
    let expected = vec![
        head(200, Framing::Length(1)),
        body(b"a"),
        Seen::End,
        head(200, Framing::Empty),
        Seen::End,
        head(204, Framing::Empty),
        Seen::End,
        head(304, Framing::Empty),
        Seen::End,
        head(404, Framing::Length(0)),
        Seen::End,
    ];
    assert_eq!(read(5, 1..2, bytes), (expected, None));
}

#[test]
fn interim_answers_are_skipped_but_not_without_end() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let expected = vec![head(200, Framing::Length(0)), Seen::End];
    assert_eq!(
        read(1, 0..0, (interim.to_owned() + last).as_bytes()),
        (expected, None)
    );
    assert_flaw(&interim.repeat(17), Flaw::TooManyInterim);
    assert_flaw(
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        Flaw::SwitchesProtocols,
    );
    let (seen, fault) = read(1, 0..0, interim.as_bytes());
    assert_eq!((seen, fault), (vec![], Some(Fault::ClosedInAnswer)));
}

#[test]
fn chunks_with_extensions_and_trailers() {
    let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n00a ;x=\"a;b\"\r\n0123456789\r\n0;last\r\nT: v\r\nU:\r\n\r\n\
        HTTP/1.1 200 OK\r\ntransfer-encoding:chunked\r\n\r\n0\r\n\r\n";
    let expected = vec![
        head(200, Framing::Chunked),
        body(b"hello0123456789"),
        Seen::End,
        head(200, Framing::Chunked),
        Seen::End,
    ];
    assert_eq!(read(2, 0..0, bytes), (expected, None));
}

#[test]
fn malformed_chunks_are_faults() {
    for (chunks, flaw) in [
        ("x\r\n", Flaw::ChunkSize),
        ("\r\n", Flaw::ChunkSize),
        ("-1\r\n", Flaw::ChunkSize),
        ("0x5\r\n", Flaw::ChunkSize),
        ("1000000000000000\r\n", Flaw::ChunkSize),
        ("5\n", Flaw::ChunkSize),
        ("5 \r\n", Flaw::ChunkLine),
        ("5;a\rb\n", Flaw::ChunkLine),
        ("5;a\n", Flaw::ChunkLine),
        ("0\r\n x: y\r\n\r\n", Flaw::Trailer),
        ("0\r\nx\r\n\r\n", Flaw::Trailer),
        ("0\r\n\rx", Flaw::Trailer),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let expected = (
            vec![head(200, Framing::Chunked)],
            Some(Fault::BadAnswer(flaw)),
        );
        assert_eq!(read(1, 0..0, bytes.as_bytes()), expected, "{chunks:?}");
    }
    let long = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n";
    let expected = vec![head(200, Framing::Chunked), body(b"ab")];
    assert_eq!(
        read(1, 0..0, long.as_bytes()),
        (expected, Some(Fault::BadAnswer(Flaw::ChunkEnd)))
    );
}

#[test]
fn extensions_and_trailers_have_a_limit() {
    for line in ["1;xxxxxxxxxxxxxxx\r\na\r\n", "0\r\nx: xxxxxxxxxxxxxx\r\n"] {
        let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        bytes.extend(
            line.repeat(if line.starts_with('0') { 1 } else { 5000 })
                .as_bytes(),
        );
        bytes.extend("y: xxxxxxxxxxxx\r\n".repeat(5000).as_bytes());
        let (_, fault) = read_pieces(1, 0..0, [&bytes[..]]);
        assert_eq!(
            fault,
            Some(Fault::BadAnswer(Flaw::ChunkLinesTooLarge)),
            "{line:?}"
        );
    }
}

#[test]
fn a_body_can_end_with_the_connection() {
    let bytes = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nall of this";
    let expected = vec![
        head(200, Framing::UntilClose),
        body(b"all of this"),
        Seen::End,
    ];
    assert_eq!(read(1, 0..0, bytes), (expected.clone(), None));
    assert_eq!(
        read(2, 0..0, bytes),
        (expected, Some(Fault::ClosedBeforeAnswer))
    );
}

#[test]
fn who_closes_is_known() {
    for (version, connection, closes) in [
        ("1.1", "", false),
        ("1.1", "Connection: close\r\n", true),
        ("1.1", "connection: Upgrade,\t CLOSE\r\n", true),
        (
            "1.1",
            "Connection: keep-alive\r\nConnection: close\r\n",
            true,
        ),
        ("1.1", "Connection: closed\r\n", false),
        ("1.0", "", true),
        ("1.0", "Connection: Keep-Alive\r\n", false),
        ("1.0", "Connection: keep-alive, close\r\n", true),
    ] {
        let bytes = format!("HTTP/{version} 200 OK\r\n{connection}Content-Length: 0\r\n\r\n");
        let expected = vec![Seen::Head(200, Framing::Length(0), closes), Seen::End];
        assert_eq!(
            read(1, 0..0, bytes.as_bytes()),
            (expected, None),
            "{version} {connection:?}"
        );
    }
}

#[test]
fn what_nobody_asked_for_is_a_fault() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let one = vec![head(200, Framing::Length(0)), Seen::End];
    assert_eq!(read(0, 0..0, b"x"), (vec![], Some(Fault::UnaskedAnswer)));
    let two = answer.repeat(2);
    assert_eq!(
        read(1, 0..0, two.as_bytes()),
        (one, Some(Fault::UnaskedAnswer))
    );
    let closing = answer
        .replace("Content", "Connection: close\r\nContent")
        .repeat(2);
    let expected = vec![Seen::Head(200, Framing::Length(0), true), Seen::End];
    assert_eq!(
        read(2, 0..0, closing.as_bytes()),
        (expected, Some(Fault::UnaskedAnswer))
    );
}

#[test]
fn the_end_of_the_connection_says_what_it_broke() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(read(0, 0..0, b""), (vec![], None));
    assert_eq!(
        read(1, 0..0, b""),
        (vec![], Some(Fault::ClosedBeforeAnswer))
    );
    assert_eq!(
        read(1, 0..0, &answer.as_bytes()[..3]),
        (vec![], Some(Fault::ClosedInAnswer))
    );
    let (_, fault) = read(1, 0..0, &answer.as_bytes()[..answer.len() - 1]);
    assert_eq!(fault, Some(Fault::ClosedInAnswer));
    assert_eq!(fault.unwrap().name(), "closed_in_answer");
    let (_, fault) = read(2, 0..0, answer.as_bytes());
    assert_eq!(fault, Some(Fault::ClosedBeforeAnswer));
}

#[test]
fn malformed_heads_are_faults() {
    for (bytes, flaw) in [
        ("hello\r\n", Flaw::StatusLine),
        ("\r\n", Flaw::StatusLine),
        ("HTTP/1.1 20 OK\r\n", Flaw::StatusLine),
        ("HTTP/1.1 2000\r\n", Flaw::StatusLine),
        ("HTTP/1.1  200 OK\r\n", Flaw::StatusLine),
        ("HTTP/1.1 099 OK\r\n", Flaw::Status),
        ("HTTP/1.1 600 OK\r\n", Flaw::Status),
        ("HTTP/3.7 200 OK\r\n", Flaw::Version),
        ("HTTP/1.1 200 OK\n\n", Flaw::BareLineFeed),
        ("HTTP/1.1 200 OK\r\nA: b\n\n", Flaw::BareLineFeed),
        ("HTTP/1.1 200 OK\r\n\n", Flaw::BareLineFeed),
        ("HTTP/1.1 200 O\rK\r\n", Flaw::BareCarriageReturn),
        ("HTTP/1.1 200 OK\r\n\rA: b\r\n", Flaw::BareCarriageReturn),
        ("HTTP/1.1 200 OK\r\nA: b\0c\r\n", Flaw::ControlCharacter),
        ("HTTP/1.1 200 OK\r\nA: b\x7fc\r\n", Flaw::ControlCharacter),
        ("HTTP/1.1 200 OK\r\nA : b\r\n", Flaw::SpaceBeforeColon),
        ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n", Flaw::FoldedLine),
        ("HTTP/1.1 200 OK\r\n: b\r\n", Flaw::FieldName),
        ("HTTP/1.1 200 OK\r\nA\r\n", Flaw::FieldName),
        ("HTTP/1.1 200 OK\r\nA(b): c\r\n", Flaw::FieldName),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n",
            Flaw::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
            Flaw::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n",
            Flaw::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length:\r\n",
            Flaw::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5\r\n",
            Flaw::RepeatedContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
            Flaw::TransferEncoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n",
            Flaw::TransferEncoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Flaw::TransferEncoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            Flaw::LengthAndEncoding,
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            Flaw::EncodingInHttp10,
        ),
    ] {
        assert_flaw(bytes, flaw);
    }
}

#[test]
fn a_head_has_a_limit_however_it_comes() {
    let start = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
    let fill = |len: usize| {
        let value = "x".repeat(len - start.len() - 4);
        format!("{start}{value}\r\n\r\n").into_bytes()
    };
    let longest = fill(HEAD_MAX_BYTES);
    let expected = (vec![head(200, Framing::Length(0)), Seen::End], None);
    assert_eq!(read_pieces(1, 0..0, [&longest[..]]), expected);
    assert_eq!(read_pieces(1, 0..0, longest.chunks(1)), expected);
    let expected = (vec![], Some(Fault::BadAnswer(Flaw::HeadTooLarge)));
    for bytes in [fill(HEAD_MAX_BYTES + 1), vec![b'x'; HEAD_MAX_BYTES + 1]] {
        for piece in [1, 1000, bytes.len()] {
            assert_eq!(
                read_pieces(1, 0..0, bytes.chunks(piece)),
                expected,
                "pieces of {piece}"
            );
        }
    }
}

#[test]
fn a_long_heads_buffer_is_not_kept_and_a_reader_can_start_over() {
    let mut reader = AnswerReader::new();
    assert!(reader.ask(true));
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let (a, b) = long.split_at(10_000);
    reader.received(a.as_bytes(), |_| {}).unwrap();
    assert!(reader.held_bytes() >= 10_000 && reader.is_in_answer());
    reader.received(b.as_bytes(), |_| {}).unwrap();
    assert_eq!((reader.held_bytes(), reader.waiting()), (0, 0));
    assert!(reader.received(b"x", |_| {}).is_err());
    reader.reset();
    assert!(reader.ask(false) && !reader.is_closing() && !reader.is_in_answer());
    let mut ended = false;
    reader
        .received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", |event| {
            ended |= event == Event::End;
        })
        .unwrap();
    assert!(ended);
}

#[test]
fn so_many_requests_can_wait_and_no_more() {
    let mut reader = AnswerReader::new();
    for i in 0..64 {
        assert!(reader.ask(i == 63));
    }
    assert!(!reader.ask(true));
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    let bytes = answer.repeat(64);
    let mut ends = 0;
    reader
        .received(&bytes[..bytes.len() - 1], |event| {
            ends += u32::from(event == Event::End)
        })
        .unwrap();
    assert_eq!((ends, reader.waiting()), (64, 0));
}

/// Pieces of answers, right and wrong, whose concatenations reach every state.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 404 \r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 204\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Connection: close\r\n",
        "X: y\r\n",
        "\r\n",
        "\n",
        "\r",
        "5\r\n",
        "hello",
        "0\r\n\r\n",
        "0;x\r\n",
        ":",
        " ",
        "\0",
    ]);
    prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat().into_bytes())
}

/// Cuts `bytes` at the given places.
fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        bytes in pieces(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        asked in 0u32..4,
    ) {
        let whole = read_pieces(asked, 1..2, [&bytes[..]]);
        prop_assert_eq!(read_pieces(asked, 1..2, bytes.chunks(1)), whole.clone());
        prop_assert_eq!(read_pieces(asked, 1..2, cut(&bytes, &cuts)), whole);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_pieces(3, 1..2, bytes.chunks(7));
        let with_start = [&b"HTTP/1.1 200 OK\r\n"[..], &bytes].concat();
        read_pieces(3, 1..2, [&with_start[..]]);
    }

    #[test]
    fn what_is_written_is_read(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for one in &bodies {
            bytes.extend(answer(200, "OK", &[("Date", "now")], one, false));
            expected.push(head(200, Framing::Length(one.len() as u64)));
            if !one.is_empty() {
                expected.push(body(one));
            }
            expected.push(Seen::End);
        }
        prop_assert_eq!(read_pieces(bodies.len() as u32, 0..0, cut(&bytes, &cuts)), (expected, None));
    }

    /// Whatever we take for a head, `httparse` takes too, with the same status and fields. It takes more: bare line
    /// feeds, for example.
    #[test]
    fn httparse_agrees(
        lines in prop::collection::vec(
            prop_oneof![
                "[A-Za-z-]{1,12}:[ \t]?[ -~]{0,20}\r\n",
                "[A-Za-z!#()\t ]{0,6}: [\x01-\u{ff}]{0,6}\r\n",
                "[ -~]{0,12}\r\n",
            ],
            0..5,
        ),
    ) {
        let bytes = format!("HTTP/1.1 299 \r\n{}\r\n", lines.concat()).into_bytes();
        let mut reader = AnswerReader::new();
        prop_assert!(reader.ask(true));
        let mut ours = None;
        let result = reader.received(&bytes, |event| {
            if let Event::Head(head) = event {
                let fields = head.fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
                ours = Some((head.status, fields.collect::<Vec<_>>()));
            }
        });
        let mut storage = [httparse::EMPTY_HEADER; 16];
        let mut theirs = httparse::Response::new(&mut storage);
        let parsed = theirs.parse(&bytes);
        if let Some((status, fields)) = ours {
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            prop_assert_eq!(parsed, Ok(httparse::Status::Complete(end)));
            prop_assert_eq!(theirs.code, Some(status));
            let theirs: Vec<_> = theirs.headers.iter().map(|field| (field.name.as_bytes().to_vec(), field.value.to_vec())).collect();
            prop_assert_eq!(fields, theirs);
        } else if parsed.is_ok_and(|status| status.is_complete()) {
            // We alone refuse a line feed without its carriage return.
            prop_assert_eq!(result, Err(Fault::BadAnswer(Flaw::BareLineFeed)));
        }
    }
}
