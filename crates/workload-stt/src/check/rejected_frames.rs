//! Section 3.2 of the contract: what a session must not take. Each violation is answered within 500 ms.

use std::sync::LazyLock;

use plimsoll_conformance::case::AT_ONCE;
use plimsoll_conformance::socket::Incoming;
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use serde::Deserialize;

use super::client::describe;
use super::registry::{Case, Site, Verdict, case};

/// The golden vectors that every gateway's own tests read, too.
static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<Vector>,
    }
    let text = include_str!("../../../../targets/stt/vectors/frames.json");
    serde_json::from_str::<File>(text).map_or_else(|_| Vec::new(), |file| file.cases)
});

#[derive(Debug, Deserialize)]
struct Vector {
    id: String,
    opcode: String,
    length: u64,
    close: Option<u16>,
}

/// Over this declared length a frame is refused from its header alone.
const REFUSED_UNREAD_BYTES: u64 = 64 * 1024;

pub(super) fn cases() -> Vec<Case> {
    let by_size = VECTORS.iter().filter_map(by_vector);
    let by_bit = (1..=3).map(reserved_bit);
    by_size
        .chain(of_the_contract())
        .chain(by_bit)
        .chain(of_the_protocol())
        .collect()
}

/// Violations that the contract names.
fn of_the_contract() -> [Case; 5] {
    [
        case(
            "fragments-of-wrong-size",
            "Fragments that are not 640 bytes together close with 1003",
            "close 1003 within 500 ms",
            fragments_of_wrong_size,
        ),
        case(
            "fragments-without-end",
            "Fragments over 64 KiB together are not buffered",
            "close 1009 or 1003 within 500 ms, the message unfinished",
            fragments_without_end,
        ),
        case(
            "unmasked",
            "An unmasked frame closes with 1002",
            "close 1002 within 500 ms",
            unmasked,
        ),
        case(
            "bad-opcode",
            "A reserved opcode closes with 1002",
            "close 1002 within 500 ms, each",
            bad_opcodes,
        ),
        case(
            "violation-hurts-nobody-else",
            "A violation ends its own session only",
            "the other session goes on",
            neighbour,
        ),
    ]
}

/// A frame with one of RSV1 to RSV3 set.
fn reserved_bit(number: u8) -> Case {
    case(
        format!("reserved-bit-{number}"),
        format!("A frame with RSV{number} set closes with 1002"),
        "close 1002 within 500 ms",
        move |site: &Site<'_>| {
            let mut frame = RawFrame::new(Opcode::Binary, &[0; 640]);
            frame.reserved_bits = 0b1000 >> number;
            violation(site, &frame.to_vec(), 1002)
        },
    )
}

/// Violations of RFC 6455 that the contract does not name, hence with its usual close code.
fn of_the_protocol() -> [Case; 6] {
    let fails = |id, what: &str, run: fn(&Site<'_>) -> Verdict| {
        case(
            id,
            format!("{what} ends the session as a violation"),
            FAILS,
            run,
        )
    };
    [
        fails(
            "close-code-illegal",
            "A close with a code that may not be sent",
            |site| {
                let code = 1005_u16.to_be_bytes();
                protocol_error(site, &[RawFrame::new(Opcode::Close, &code)])
            },
        ),
        fails("control-fragmented", "A fragmented control frame", |site| {
            protocol_error(site, &[unfinished(Opcode::Ping, b"half")])
        }),
        fails(
            "control-oversize",
            "A control frame over 125 bytes",
            |site| protocol_error(site, &[RawFrame::new(Opcode::Ping, &[0; 126])]),
        ),
        fails(
            "continuation-orphaned",
            "A continuation of nothing",
            |site| protocol_error(site, &[RawFrame::new(Opcode::Continuation, &[0; 640])]),
        ),
        fails(
            "message-interleaved",
            "A message inside a fragmented one",
            |site| {
                let first = unfinished(Opcode::Binary, &[0; 320]);
                protocol_error(site, &[first, RawFrame::new(Opcode::Binary, &[0; 640])])
            },
        ),
        case(
            "text-not-utf8",
            "A text that is not UTF-8 ends the session as a violation",
            "close 1002 or 1007 within 500 ms",
            |site| {
                let mut session = site.session()?;
                let frame = RawFrame::new(Opcode::Text, &[0xC3, 0x28]);
                session.send_what_may_be_refused(&frame.to_vec());
                session.expect_close(&[1002, 1007], AT_ONCE)
            },
        ),
    ]
}

/// A frame without the FIN bit.
fn unfinished(opcode: Opcode, payload: &[u8]) -> RawFrame<'_> {
    RawFrame {
        fin: false,
        ..RawFrame::new(opcode, payload)
    }
}

fn unmasked(site: &Site<'_>) -> Verdict {
    let mut frame = RawFrame::new(Opcode::Binary, &[0; 640]);
    frame.mask = None;
    violation(site, &frame.to_vec(), 1002)
}

/// RFC 6455 lets an endpoint fail such a connection with or without a close frame.
const FAILS: &str = "close 1002, or the end of the connection, within 500 ms";

/// A case of a vector that must be refused.
fn by_vector(vector: &'static Vector) -> Option<Case> {
    let code = vector.close?;
    let unread = vector.length > REFUSED_UNREAD_BYTES;
    let how = if unread { "from its header alone" } else { "" };
    Some(case(
        format!("message-{}", vector.id),
        format!(
            "A {} message of {} bytes closes with {code} {how}",
            vector.opcode, vector.length
        )
        .trim()
        .to_owned(),
        format!("close {code} within 500 ms"),
        move |site: &Site<'_>| {
            let opcode = if vector.opcode == "text" {
                Opcode::Text
            } else {
                Opcode::Binary
            };
            let body_len = if unread {
                0
            } else {
                usize::try_from(vector.length).unwrap_or(0)
            };
            let body = vec![b' '; body_len];
            let frame = RawFrame {
                declared_len: Some(vector.length),
                ..RawFrame::new(opcode, &body)
            };
            violation(site, &frame.to_vec(), code)
        },
    ))
}

/// Sends bytes that break a rule in a started session, and expects the close.
fn violation(site: &Site<'_>, bytes: &[u8], code: u16) -> Verdict {
    let mut session = site.session()?;
    session.send_what_may_be_refused(bytes);
    session.expect_close(&[code], AT_ONCE)
}

fn bad_opcodes(site: &Site<'_>) -> Verdict {
    for opcode_bits in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        let frame = RawFrame::new(Opcode::Binary, &[]);
        violation(
            site,
            &RawFrame {
                opcode_bits,
                ..frame
            }
            .to_vec(),
            1002,
        )
        .map_err(|seen| format!("opcode {opcode_bits}: {seen}"))?;
    }
    Ok("close 1002 for 3 to 7 and 11 to 15".to_owned())
}

fn fragments_of_wrong_size(site: &Site<'_>) -> Verdict {
    let first = unfinished(Opcode::Binary, &[0; 320]);
    let mut bytes = first.to_vec();
    RawFrame::new(Opcode::Continuation, &[0; 321]).append_to(&mut bytes);
    violation(site, &bytes, 1003)
}

fn fragments_without_end(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let piece = [0; 16 * 1024];
    let mut opcode = Opcode::Binary;
    for _ in 0..5 {
        session.send_what_may_be_refused(&unfinished(opcode, &piece).to_vec());
        opcode = Opcode::Continuation;
    }
    session.expect_close(&[1009, 1003], AT_ONCE)
}

/// A violation of RFC 6455 that the contract does not name: the connection fails, with 1002 or without a word.
fn protocol_error(site: &Site<'_>, frames: &[RawFrame<'_>]) -> Verdict {
    let mut session = site.session()?;
    let bytes: Vec<u8> = frames.iter().flat_map(RawFrame::to_vec).collect();
    session.send_what_may_be_refused(&bytes);
    match session.next_within(AT_ONCE)? {
        None => Err("nothing within 500 ms".to_owned()),
        Some((_, incoming)) => {
            let seen = describe(&incoming);
            match incoming {
                Incoming::Close(Some(1002)) | Incoming::End | Incoming::Reset => Ok(seen),
                _ => Err(seen),
            }
        }
    }
}

fn neighbour(site: &Site<'_>) -> Verdict {
    let mut other = site.session()?;
    other.send_audio(2)?;
    violation(site, &RawFrame::new(Opcode::Text, b"{}").to_vec(), 1002)?;
    other.send_audio(2)?;
    other.until_all_named(site.patience())?;
    other.close()?;
    Ok("the other session went on".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_have_every_size_that_the_contract_speaks_of() {
        for (length, close) in [
            (0, 1003),
            (639, 1003),
            (641, 1003),
            (1280, 1003),
            (65_536, 1003),
            (65_537, 1009),
        ] {
            let known = |vector: &Vector| vector.length == length && vector.close == Some(close);
            assert!(VECTORS.iter().any(known), "{length}");
        }
        assert!(VECTORS.iter().any(|vector| vector.opcode == "text"));
    }
}
