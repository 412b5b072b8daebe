//! Section 3 of the contract: what a connection is closed for, and with which code.

use std::time::Duration;

use plimsoll_conformance::socket::in_fragments;
use plimsoll_conformance::{AT_ONCE, Verdict};
use plimsoll_protocol::websocket::frame::LengthForm;
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::setup::{BASE, SHORT_MESSAGES};
use super::talk::{MESSAGE_MAX_BYTES, bytes, connect, echoed, expect_echo, message};
use super::{Case, Site, case};

/// Protocol error.
const BROKEN: u16 = 1002;

/// Text that is not UTF-8.
const NOT_UTF8: u16 = 1007;

/// A message over the limit.
const TOO_LONG: u16 = 1009;

/// The longest message in the setup of short ones.
const SHORT: usize = 4096;

/// After its close a target may wait for ours, which comes at once; then it ends the connection.
const END_LIMIT: Duration = Duration::from_secs(2);

pub(super) fn cases() -> Vec<Case> {
    [protocol_errors(), texts(), lengths()]
        .into_iter()
        .flatten()
        .chain([case(
            "violation-hurts-nobody-else",
            "A violation ends its own connection only",
            "another connection goes on",
            hurts_nobody_else,
        )])
        .collect()
}

/// Cases of close 1002, each with several violations of one kind.
fn protocol_errors() -> Vec<Case> {
    let text = || RawFrame::new(Opcode::Text, b"hello");
    let one = |frame: RawFrame<'_>| vec![frame.to_vec()];
    let opcodes = |bits: &[u8]| -> Vec<Vec<u8>> {
        bits.iter()
            .map(|bits| {
                RawFrame {
                    opcode_bits: *bits,
                    ..text()
                }
                .to_vec()
            })
            .collect()
    };
    let reserved = |opcode: Opcode| -> Vec<Vec<u8>> {
        [4, 2, 1]
            .iter()
            .map(|bits| {
                RawFrame {
                    reserved_bits: *bits,
                    ..RawFrame::new(opcode, b"hello")
                }
                .to_vec()
            })
            .collect()
    };
    let unfinished = RawFrame {
        fin: false,
        ..text()
    }
    .to_vec();
    let then = |frame: Vec<u8>| [unfinished.clone(), frame].concat();
    let long_ping = [7; 126];
    vec![
        broken(
            "unmasked",
            "An unmasked frame",
            one(RawFrame {
                mask: None,
                ..text()
            }),
        ),
        broken(
            "reserved-bits",
            "A reserved bit in a message",
            reserved(Opcode::Text),
        ),
        broken(
            "reserved-bits-of-control",
            "A reserved bit in a ping",
            reserved(Opcode::Ping),
        ),
        broken("bad-opcode", "A bad opcode of data", opcodes(&[3, 7])),
        broken(
            "bad-opcode-of-control",
            "A bad opcode of control",
            opcodes(&[11, 15]),
        ),
        broken(
            "continuation-orphaned",
            "A continuation of nothing",
            one(RawFrame::new(Opcode::Continuation, b"hello")),
        ),
        broken(
            "message-interleaved",
            "A message within another message's fragments",
            vec![
                then(text().to_vec()),
                then(message(Opcode::Binary, b"hello")),
            ],
        ),
        broken(
            "control-fragmented",
            "A fragmented ping",
            one(RawFrame {
                fin: false,
                ..RawFrame::new(Opcode::Ping, b"hello")
            }),
        ),
        broken(
            "control-oversize",
            "A ping over 125 bytes",
            one(RawFrame::new(Opcode::Ping, &long_ping)),
        ),
    ]
}

/// A case whose violations each end a connection with 1002.
fn broken(id: &'static str, what: &str, violations: Vec<Vec<u8>>) -> Case {
    Case::new(
        id,
        format!("{what} gets close 1002"),
        "close 1002 within 500 ms, then the end",
        &BASE,
        move |site| {
            let mut seen = String::new();
            for violation in &violations {
                seen = refused(site, violation, &[BROKEN])?;
            }
            Ok(seen)
        },
    )
}

fn texts() -> Vec<Case> {
    vec![
        case(
            "text-not-utf8",
            "Text that is not UTF-8 gets close 1007",
            "close 1007 within 500 ms, then the end",
            |site| {
                let mut seen = String::new();
                // A byte that begins nothing, an overlong form, a surrogate, and a character without its end.
                for text in [&b"ab\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"ab\xe2\x82"] {
                    seen = refused(site, &message(Opcode::Text, text), &[NOT_UTF8])?;
                }
                Ok(seen)
            },
        ),
        case(
            "text-not-utf8-in-fragments",
            "Text that is not UTF-8 gets close 1007, in fragments too",
            "close 1007 within 500 ms of the last fragment, then the end",
            |site| {
                let fragments = in_fragments(Opcode::Text, b"ab\xe2\x82-", &[3]);
                refused(site, &fragments.concat(), &[NOT_UTF8])
            },
        ),
        case(
            "binary-not-utf8",
            "Binary messages need not be UTF-8",
            "the echo",
            |site| {
                let mut socket = connect(site)?;
                echoed(&mut socket, Opcode::Binary, b"ab\xff\xc0\xaf")?;
                Ok("the echo".to_owned())
            },
        ),
    ]
}

fn lengths() -> Vec<Case> {
    vec![
        case(
            "message-at-the-limit",
            "A message of MAX_MESSAGE_BYTES is accepted",
            "the echo of 4,096 bytes, in one frame and in fragments",
            at_the_limit,
        )
        .in_setup(&SHORT_MESSAGES),
        case(
            "message-over-the-limit",
            "A message longer than MAX_MESSAGE_BYTES gets close 1009",
            "close 1009 within 500 ms, then the end",
            |site| {
                refused(
                    site,
                    &message(Opcode::Binary, &bytes(SHORT + 1)),
                    &[TOO_LONG],
                )
            },
        )
        .in_setup(&SHORT_MESSAGES),
        case(
            "fragments-over-the-limit",
            "MAX_MESSAGE_BYTES is for all fragments together",
            "close 1009 within 500 ms, then the end",
            |site| {
                let sizes = [SHORT / 2, SHORT / 2];
                let payload = bytes(SHORT + 1);
                let fragments = in_fragments(Opcode::Binary, &payload, &sizes);
                refused(site, &fragments.concat(), &[TOO_LONG])
            },
        )
        .in_setup(&SHORT_MESSAGES),
        case(
            "length-over-the-limit",
            "A message longer than MAX_MESSAGE_BYTES gets close 1009 as soon as its headers say so",
            "close 1009 within 500 ms of a header without a payload",
            |site| {
                refused(
                    site,
                    &only_header(MESSAGE_MAX_BYTES as u64 + 1),
                    &[TOO_LONG],
                )
            },
        ),
        case(
            "length-absurd",
            "A length of 2^62 bytes gets close 1009 at once",
            "close 1009 within 500 ms of a header without a payload",
            |site| refused(site, &only_header(1 << 62), &[TOO_LONG]),
        ),
    ]
}

/// The header of a binary message of this length.
fn only_header(len: u64) -> Vec<u8> {
    let frame = RawFrame {
        declared_len: Some(len),
        length_form: LengthForm::Bits64,
        ..RawFrame::new(Opcode::Binary, b"")
    };
    frame.to_vec()
}

/// Passes when these bytes get one of the close codes at once, and the connection ends.
fn refused(site: &Site<'_>, bytes: &[u8], codes: &[u16]) -> Verdict {
    let mut socket = connect(site)?;
    echoed(&mut socket, Opcode::Text, b"before")?;
    socket.send_what_may_be_refused(bytes);
    let seen = socket
        .expect_close(codes, AT_ONCE)
        .map_err(|seen| format!("{seen} for {}", in_short(bytes)))?;
    socket.expect_end(END_LIMIT)?;
    Ok(seen)
}

/// The first bytes, in hexadecimal.
fn in_short(bytes: &[u8]) -> String {
    let first: String = bytes
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{} bytes: {first}", bytes.len())
}

fn at_the_limit(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let payload = bytes(SHORT);
    echoed(&mut socket, Opcode::Binary, &payload)?;
    let sizes = [SHORT / 2];
    let fragments = in_fragments(Opcode::Binary, &payload, &sizes);
    socket.send(&fragments.concat())?;
    expect_echo(&mut socket, Opcode::Binary, &payload)?;
    Ok("both echoes".to_owned())
}

fn hurts_nobody_else(site: &Site<'_>) -> Verdict {
    let mut others = [connect(site)?, connect(site)?, connect(site)?];
    for other in &mut others {
        echoed(other, Opcode::Text, b"before")?;
    }
    refused(site, &message(Opcode::Text, b"\xff"), &[NOT_UTF8])?;
    for other in &mut others {
        echoed(other, Opcode::Text, b"after")?;
    }
    Ok("three others went on".to_owned())
}
