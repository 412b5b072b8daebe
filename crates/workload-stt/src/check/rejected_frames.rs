//! Section 3.2 of the contract: what a session must not take. Each violation is answered within 500 ms.

use std::sync::LazyLock;

use plimsoll_conformance::case::AT_ONCE;
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use serde::Deserialize;

use super::client::VIOLATION_ENDS;
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

/// A longer message is refused, at the latest when more than this has come of it.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024;

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
            "Fragments that are not 640 bytes together end the session",
            VIOLATION_ENDS,
            fragments_of_wrong_size,
        ),
        case(
            "fragments-without-end",
            "Fragments over 64 KiB together are not buffered",
            "the same end as for a violation, the message unfinished",
            fragments_without_end,
        ),
        case(
            "unmasked",
            "An unmasked frame ends the session",
            VIOLATION_ENDS,
            unmasked,
        ),
        case(
            "bad-opcode",
            "A reserved opcode ends the session",
            VIOLATION_ENDS,
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
        format!("A frame with RSV{number} set ends the session"),
        VIOLATION_ENDS,
        move |site: &Site<'_>| {
            let mut frame = RawFrame::new(Opcode::Binary, &[0; 640]);
            frame.reserved_bits = 0b1000 >> number;
            violation(site, &frame.to_vec())
        },
    )
}

/// Violations of RFC 6455 that the contract does not name.
fn of_the_protocol() -> [Case; 6] {
    let fails = |id, what: &str, run: fn(&Site<'_>) -> Verdict| {
        case(
            id,
            format!("{what} ends the session as a violation"),
            VIOLATION_ENDS,
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
        fails("text-not-utf8", "A text that is not UTF-8", |site| {
            protocol_error(site, &[RawFrame::new(Opcode::Text, &[0xC3, 0x28])])
        }),
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
    violation(site, &frame.to_vec())
}

/// A case of a vector that must be refused.
fn by_vector(vector: &'static Vector) -> Option<Case> {
    vector.close?;
    let sent = vector.length.min(MESSAGE_BYTES_MAX + 1);
    let how = if sent < vector.length {
        "before it has come"
    } else {
        ""
    };
    Some(case(
        format!("message-{}", vector.id),
        format!(
            "A {} message of {} bytes ends the session {how}",
            vector.opcode, vector.length
        )
        .trim()
        .to_owned(),
        VIOLATION_ENDS,
        move |site: &Site<'_>| {
            let opcode = if vector.opcode == "text" {
                Opcode::Text
            } else {
                Opcode::Binary
            };
            let body = vec![b' '; usize::try_from(sent).unwrap_or(0)];
            let frame = RawFrame {
                declared_len: Some(vector.length),
                ..RawFrame::new(opcode, &body)
            };
            violation(site, &frame.to_vec())
        },
    ))
}

/// Sends bytes that break a rule in a started session, and expects its end.
fn violation(site: &Site<'_>, bytes: &[u8]) -> Verdict {
    let mut session = site.session()?;
    session.send_what_may_be_refused(bytes);
    session.expect_violation_ends(AT_ONCE)
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
        )
        .map_err(|seen| format!("opcode {opcode_bits}: {seen}"))?;
    }
    Ok("ended by 3 to 7 and 11 to 15".to_owned())
}

fn fragments_of_wrong_size(site: &Site<'_>) -> Verdict {
    let first = unfinished(Opcode::Binary, &[0; 320]);
    let mut bytes = first.to_vec();
    RawFrame::new(Opcode::Continuation, &[0; 321]).append_to(&mut bytes);
    violation(site, &bytes)
}

fn fragments_without_end(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let piece = [0; 16 * 1024];
    let mut opcode = Opcode::Binary;
    for _ in 0..5 {
        session.send_what_may_be_refused(&unfinished(opcode, &piece).to_vec());
        opcode = Opcode::Continuation;
    }
    session.expect_violation_ends(AT_ONCE)
}

fn protocol_error(site: &Site<'_>, frames: &[RawFrame<'_>]) -> Verdict {
    let bytes: Vec<u8> = frames.iter().flat_map(RawFrame::to_vec).collect();
    violation(site, &bytes)
}

fn neighbour(site: &Site<'_>) -> Verdict {
    let mut other = site.session()?;
    other.send_audio(2)?;
    violation(site, &RawFrame::new(Opcode::Text, b"{}").to_vec())?;
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
