//! Tokens of RESP. The texts are the examples of `protocol/RESP3.md` in redis/redis-specifications.

use proptest::prelude::*;

use super::*;
use crate::pieces::LINE_MAX_BYTES;

fn read(pieces: &[&[u8]]) -> Result<Vec<String>, Flaw> {
    let mut reader = TokenReader::new();
    let mut found = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while let Some((used, token)) = reader.next(rest)? {
            if token != Token::Part {
                found.push(shown(token));
            }
            rest = &rest[used..];
        }
    }
    Ok(found)
}

fn shown(token: Token<'_>) -> String {
    let text = String::from_utf8_lossy;
    match token {
        Token::Simple(bytes) => format!("+{}", text(bytes)),
        Token::Error(bytes) => format!("-{}", text(bytes)),
        Token::Bulk(bytes) => format!("${}", text(bytes)),
        Token::Other(bytes) => format!("?{}", text(bytes)),
        other => format!("{other:?}"),
    }
}

const EXAMPLES: &[u8] = b"$11\r\nhello world\r\n$0\r\n\r\n+hello world\r\n-ERR this is the error description\r\n\
    :1234\r\n:-7\r\n:+7\r\n_\r\n$-1\r\n*-1\r\n,1.23\r\n,inf\r\n#t\r\n#f\r\n!21\r\nSYNTAX invalid syntax\r\n\
    =15\r\ntxt:Some string\r\n(3492890328409238509324850943850943825024385\r\n\
    *3\r\n%2\r\n~5\r\n|1\r\n>4\r\n:9223372036854775807\r\n:-9223372036854775808\r\n";

const TOKENS: [&str; 24] = [
    "$hello world",
    "$",
    "+hello world",
    "-ERR this is the error description",
    "Number(1234)",
    "Number(-7)",
    "Number(7)",
    "Null",
    "Null",
    "Null",
    "?1.23",
    "?inf",
    "?t",
    "?f",
    "-SYNTAX invalid syntax",
    "$Some string",
    "?3492890328409238509324850943850943825024385",
    "Array(3)",
    "Map(2)",
    "Array(5)",
    "Attribute(1)",
    "Push(4)",
    "Number(9223372036854775807)",
    "Number(-9223372036854775808)",
];

#[test]
fn the_examples_of_the_specification_are_read() {
    assert_eq!(read(&[EXAMPLES]).unwrap(), TOKENS);
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    for at in 0..=EXAMPLES.len() {
        let (a, b) = EXAMPLES.split_at(at);
        assert_eq!(read(&[a, b]).unwrap(), TOKENS, "split at {at}");
    }
    let single: Vec<&[u8]> = EXAMPLES.chunks(1).collect();
    assert_eq!(read(&single).unwrap(), TOKENS);
}

#[test]
fn what_no_server_sends_is_a_flaw() {
    let cases: [(&[u8], Flaw); 14] = [
        (b"hello\r\n", Flaw::UnknownType(b'h')),
        (b"\r\n", Flaw::UnknownType(b'\r')),
        (b"+OK\n", Flaw::Line(LineFlaw::End)),
        (b":\r\n", Flaw::Number),
        (b":1.5\r\n", Flaw::Number),
        (b":9223372036854775808\r\n", Flaw::Number),
        (b"$-2\r\n", Flaw::Number),
        (b"$?\r\n", Flaw::Number),
        (b"*x\r\n", Flaw::Number),
        (b"$16777217\r\n", Flaw::BulkTooLong),
        (b"*1048577\r\n", Flaw::TooManyElements),
        (b"%99999999999\r\n", Flaw::TooManyElements),
        (b"$2\r\nabcd", Flaw::BulkEnd),
        (b"=3\r\ntxt\r\n", Flaw::Verbatim),
    ];
    for (bytes, flaw) in cases {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(read(&[bytes]), Err(flaw), "{text}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), Err(flaw), "{text} in single bytes");
    }
}

#[test]
fn nothing_is_gathered_without_a_limit() {
    let long = vec![b'+'; LINE_MAX_BYTES + 1];
    assert_eq!(read(&[&long]), Err(Flaw::Line(LineFlaw::TooLong)));
    let mut reader = TokenReader::new();
    let flaw = long.chunks(100).find_map(|piece| reader.next(piece).err());
    assert_eq!(flaw, Some(Flaw::Line(LineFlaw::TooLong)));
    // An announced size takes no memory before its bytes come.
    let mut reader = TokenReader::new();
    reader.next(b"$16777216\r\nx").unwrap();
    assert!(reader.held_bytes() < 1024);
}

proptest! {
    #[test]
    fn texts_are_read_in_any_pieces(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..8),
        piece in 1usize..400,
    ) {
        let mut wire = Vec::new();
        for text in &texts {
            wire.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
            wire.extend_from_slice(text);
            wire.extend_from_slice(b"\r\n");
        }
        let mut reader = TokenReader::new();
        let mut at = 0;
        for chunk in wire.chunks(piece) {
            let mut rest = chunk;
            while let Some((used, token)) = reader.next(rest).unwrap() {
                if let Token::Bulk(found) = token {
                    prop_assert_eq!(found, &texts[at][..]);
                    at += 1;
                }
                rest = &rest[used..];
            }
        }
        prop_assert_eq!(at, texts.len());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&[&bytes]);
    }
}
