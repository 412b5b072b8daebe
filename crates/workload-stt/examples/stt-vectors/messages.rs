//! What a client may send: start messages and the messages after them.

use serde::Serialize;

/// Close code: protocol error.
const PROTOCOL_ERROR: u16 = 1002;
/// Close code: data that the gateway does not take.
const UNSUPPORTED_DATA: u16 = 1003;
/// Close code: too big.
const TOO_BIG: u16 = 1009;

#[derive(Serialize)]
pub(crate) struct Start {
    id: &'static str,
    text: &'static str,
    ok: bool,
    close: Option<u16>,
}

pub(crate) fn starts() -> Vec<Start> {
    let good = [
        ("plain", r#"{"type":"start"}"#),
        ("white-space-inside", "{ \"type\" :\t\"start\" }"),
        ("white-space-around", " \r\n\t{\"type\":\"start\"}\r\n "),
        ("escaped-letter-in-value", r#"{"type":"st\u0061rt"}"#),
        (
            "escaped-letters-in-value",
            r#"{"type":"\u0073\u0074\u0061\u0072\u0074"}"#,
        ),
        ("escaped-letter-in-name", r#"{"\u0074ype":"start"}"#),
    ];
    let bad = [
        ("empty", ""),
        ("only-white-space", "  \n"),
        ("not-json", "start"),
        ("null", "null"),
        ("number", "1"),
        ("string", r#""start""#),
        ("array-empty", "[]"),
        ("array-of-value", r#"["start"]"#),
        ("array-around-object", r#"[{"type":"start"}]"#),
        ("missing-type", "{}"),
        ("unknown-type", r#"{"type":"stop"}"#),
        ("type-in-capitals", r#"{"type":"START"}"#),
        ("type-with-a-space", r#"{"type":"start "}"#),
        ("type-empty", r#"{"type":""}"#),
        ("type-null", r#"{"type":null}"#),
        ("type-number", r#"{"type":1}"#),
        ("type-array", r#"{"type":["start"]}"#),
        ("type-object", r#"{"type":{"type":"start"}}"#),
        ("name-in-capitals", r#"{"Type":"start"}"#),
        ("unknown-field", r#"{"type":"start","language":"en"}"#),
        ("unknown-field-first", r#"{"language":"en","type":"start"}"#),
        ("unknown-field-null", r#"{"type":"start","language":null}"#),
        ("duplicate-type", r#"{"type":"start","type":"start"}"#),
        (
            "duplicate-type-last-is-good",
            r#"{"type":"stop","type":"start"}"#,
        ),
        (
            "duplicate-type-escaped",
            r#"{"type":"start","typ\u0065":"start"}"#,
        ),
        ("trailing-garbage", r#"{"type":"start"}x"#),
        ("trailing-object", r#"{"type":"start"}{"type":"start"}"#),
        ("trailing-comma", r#"{"type":"start",}"#),
        ("trailing-nul", "{\"type\":\"start\"}\0"),
        ("truncated", r#"{"type":"start""#),
        ("truncated-in-value", r#"{"type":"sta"#),
        ("single-quotes", "{'type':'start'}"),
        ("name-without-quotes", r#"{type:"start"}"#),
        ("comment", r#"{"type":"start"}/* audio follows */"#),
        ("bad-escape", r#"{"type":"st\x61rt"}"#),
        ("no-break-space-around", "\u{a0}{\"type\":\"start\"}"),
    ];
    let good = good.map(|(id, text)| Start {
        id,
        text,
        ok: true,
        close: None,
    });
    let bad = bad.map(|(id, text)| Start {
        id,
        text,
        ok: false,
        close: Some(PROTOCOL_ERROR),
    });
    good.into_iter().chain(bad).collect()
}

#[derive(Serialize)]
pub(crate) struct Frame {
    id: &'static str,
    opcode: &'static str,
    length: u64,
    ok: bool,
    close: Option<u16>,
}

pub(crate) fn frames() -> Vec<Frame> {
    let binary = |id, length, close: Option<u16>| Frame {
        id,
        opcode: "binary",
        length,
        ok: close.is_none(),
        close,
    };
    let text = |id, length, close| Frame {
        id,
        opcode: "text",
        length,
        ok: false,
        close: Some(close),
    };
    vec![
        binary("one-frame", 640, None),
        binary("empty", 0, Some(UNSUPPORTED_DATA)),
        binary("one-byte", 1, Some(UNSUPPORTED_DATA)),
        binary("small-length-limit", 125, Some(UNSUPPORTED_DATA)),
        binary("medium-length-start", 126, Some(UNSUPPORTED_DATA)),
        binary("one-byte-short", 639, Some(UNSUPPORTED_DATA)),
        binary("one-byte-long", 641, Some(UNSUPPORTED_DATA)),
        binary("two-frames", 1280, Some(UNSUPPORTED_DATA)),
        binary("medium-length-limit", 65_535, Some(UNSUPPORTED_DATA)),
        binary("at-the-limit", 65_536, Some(UNSUPPORTED_DATA)),
        binary("over-the-limit", 65_537, Some(TOO_BIG)),
        binary("one-mebibyte", 1 << 20, Some(TOO_BIG)),
        binary("over-32-bits", 1 << 32, Some(TOO_BIG)),
        // The largest length that a JavaScript number holds exactly.
        binary("over-52-bits", (1 << 53) - 1, Some(TOO_BIG)),
        text("text-empty", 0, PROTOCOL_ERROR),
        text("text-small", 16, PROTOCOL_ERROR),
        text("text-as-long-as-a-frame", 640, PROTOCOL_ERROR),
        text("text-at-the-limit", 65_536, PROTOCOL_ERROR),
        text("text-over-the-limit", 65_537, TOO_BIG),
    ]
}
