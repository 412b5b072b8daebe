//! Commands of the NATS protocol. The texts are the examples of the protocol's documentation ("Client Protocol", and
//! ADR-13 of nats-io/nats-architecture-and-design for those of pull requests).

use proptest::prelude::*;

use super::*;
use crate::pieces::LINE_MAX_BYTES;

/// Something readable of each command, in order.
fn read(pieces: &[&[u8]]) -> Result<Vec<String>, Flaw> {
    let mut reader = FrameReader::new();
    let mut found = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while let Some((used, frame)) = reader.next(rest)? {
            if frame != Frame::Part {
                found.push(shown(frame));
            }
            rest = &rest[used..];
        }
    }
    Ok(found)
}

fn shown(frame: Frame<'_>) -> String {
    let text = String::from_utf8_lossy;
    match frame {
        Frame::Info(json) => format!("INFO {}", text(json)),
        Frame::Message(m) => format!(
            "{} {} {} [{}] {}",
            text(m.subject),
            m.sid,
            m.reply.map_or("-".into(), text),
            text(m.headers).replace("\r\n", "|"),
            text(m.payload)
        ),
        other => format!("{other:?}"),
    }
}

const EXAMPLES: &[u8] =
    b"INFO {\"server_id\":\"Zk0GQ3JBSrg3oyxCRRlE09\",\"version\":\"1.2.0\"}\r\n\
    MSG FOO.BAR 9 11\r\nHello World\r\n\
    MSG FOO.BAR 9 GREETING.34 11\r\nHello World\r\n\
    HMSG FOO.BAR 9 34 45\r\nNATS/1.0\r\nFoodGroup: vegetable\r\n\r\nHello World\r\n\
    HMSG FOO.BAR 9 BAZ.69 34 45\r\nNATS/1.0\r\nFoodGroup: vegetable\r\n\r\nHello World\r\n\
    HMSG _INBOX.x7.OgY4M7 2 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n\
    PING\r\nPONG\r\n+OK\r\n-ERR 'Unknown Protocol Operation'\r\n\
    MSG empty 1 0\r\n\r\n";

fn examples() -> Vec<&'static str> {
    vec![
        r#"INFO {"server_id":"Zk0GQ3JBSrg3oyxCRRlE09","version":"1.2.0"}"#,
        "FOO.BAR 9 - [] Hello World",
        "FOO.BAR 9 GREETING.34 [] Hello World",
        "FOO.BAR 9 - [NATS/1.0|FoodGroup: vegetable||] Hello World",
        "FOO.BAR 9 BAZ.69 [NATS/1.0|FoodGroup: vegetable||] Hello World",
        "_INBOX.x7.OgY4M7 2 - [NATS/1.0 404 No Messages||] ",
        "Ping",
        "Pong",
        "Ok",
        r#"Error("Unknown Protocol Operation")"#,
        "empty 1 - [] ",
    ]
}

#[test]
fn the_examples_of_the_documents_are_read() {
    assert_eq!(read(&[EXAMPLES]).unwrap(), examples());
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    for at in 0..=EXAMPLES.len() {
        let (a, b) = EXAMPLES.split_at(at);
        assert_eq!(read(&[a, b]).unwrap(), examples(), "split at {at}");
    }
    let single: Vec<&[u8]> = EXAMPLES.chunks(1).collect();
    assert_eq!(read(&single).unwrap(), examples());
}

#[test]
fn names_have_any_case_and_gaps_any_width() {
    assert_eq!(
        read(&[b"ping\r\nMSG  a\t 1   2\r\nhi\r\n"]).unwrap(),
        ["Ping", "a 1 - [] hi"]
    );
}

#[test]
fn what_no_server_sends_is_a_flaw() {
    let cases: [(&[u8], Flaw); 12] = [
        (b"HELLO\r\n", Flaw::UnknownCommand),
        (b"\r\n", Flaw::UnknownCommand),
        (b"PING\n", Flaw::Line(LineFlaw::End)),
        (b"MSG a 1\r\n", Flaw::MessageFields),
        (b"MSG a 1 r 2 3\r\n", Flaw::MessageFields),
        (b"MSG a 1 r x s 2 3\r\n", Flaw::MessageFields),
        (b"MSG a x 2\r\n", Flaw::MessageFields),
        (b"MSG a 1 -2\r\n", Flaw::MessageFields),
        (b"HMSG a 1 3 2\r\n", Flaw::MessageFields),
        (b"MSG a 1 16777217\r\n", Flaw::MessageTooLarge),
        (b"MSG a 1 99999999999999999999\r\n", Flaw::MessageFields),
        (b"MSG a 1 2\r\nhi..", Flaw::PayloadEnd),
    ];
    for (bytes, flaw) in cases {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(read(&[bytes]), Err(flaw), "{text}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), Err(flaw), "{text} in single bytes");
    }
}

#[test]
fn a_line_without_an_end_is_not_gathered_for_ever() {
    let long = vec![b'x'; LINE_MAX_BYTES + 1];
    assert_eq!(read(&[&long]), Err(Flaw::Line(LineFlaw::TooLong)));
    let mut reader = FrameReader::new();
    let flaw = long.chunks(100).find_map(|piece| reader.next(piece).err());
    assert_eq!(flaw, Some(Flaw::Line(LineFlaw::TooLong)));
    assert!(reader.held_bytes() <= 2 * LINE_MAX_BYTES);
}

#[test]
fn an_announced_size_takes_no_memory_before_its_bytes_come() {
    let mut reader = FrameReader::new();
    reader.next(b"MSG a 1 16777216\r\nx").unwrap();
    assert!(reader.held_bytes() < 1024);
}

fn message() -> impl Strategy<Value = (String, u64, Option<String>, Vec<u8>)> {
    (
        "[a-zA-Z0-9_$.]{1,40}",
        any::<u64>(),
        prop::option::of("[A-Z0-9_$.]{1,60}"),
        prop::collection::vec(any::<u8>(), 0..300),
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_in_any_pieces(
        messages in prop::collection::vec(message(), 1..8),
        piece in 1usize..400,
    ) {
        let mut wire = Vec::new();
        for (subject, sid, reply, payload) in &messages {
            let reply = reply.as_ref().map(|reply| format!("{reply} ")).unwrap_or_default();
            wire.extend_from_slice(format!("MSG {subject} {sid} {reply}{}\r\n", payload.len()).as_bytes());
            wire.extend_from_slice(payload);
            wire.extend_from_slice(b"\r\n");
        }
        let mut reader = FrameReader::new();
        let mut at = 0;
        for chunk in wire.chunks(piece) {
            let mut rest = chunk;
            while let Some((used, frame)) = reader.next(rest).unwrap() {
                if let Frame::Message(found) = frame {
                    let (subject, sid, reply, payload) = &messages[at];
                    prop_assert_eq!(found.subject, subject.as_bytes());
                    prop_assert_eq!(found.sid, *sid);
                    prop_assert_eq!(found.reply, reply.as_ref().map(String::as_bytes));
                    prop_assert_eq!(found.payload, &payload[..]);
                    at += 1;
                }
                rest = &rest[used..];
            }
        }
        prop_assert_eq!(at, messages.len());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&[&bytes]);
    }
}
