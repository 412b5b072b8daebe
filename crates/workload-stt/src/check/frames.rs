//! Section 3.2 of the contract: what a session must take, and how it is ended.

use plimsoll_conformance::socket::{close_frame, in_fragments};
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::client::{Connection, START, usual};
use super::registry::{Case, Site, Verdict, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "numbering",
            "Frames are numbered from 1 in the order received",
            "frames 1 to 40, each once",
            numbering,
        ),
        case(
            "fragments",
            "A frame in fragments is one frame",
            "one partial for one frame",
            fragments,
        ),
        case(
            "ping",
            "A ping is answered with a pong of the same payload",
            "the same payload within 500 ms",
            ping,
        ),
        case(
            "ping-between-fragments",
            "A ping between fragments is answered, and the fragments are one frame",
            "the pong before the message ends, then a partial",
            ping_between_fragments,
        ),
        case(
            "pong-unasked",
            "A pong that nobody asked for is ignored",
            "the session goes on",
            pong_unasked,
        ),
        case(
            "byte-by-byte",
            "Bytes that come one by one are understood",
            "a partial for the one frame",
            byte_by_byte,
        ),
        case(
            "one-segment",
            "Many frames in one segment are all taken",
            "frames 1 to 60, each once",
            one_segment,
        ),
        case(
            "close-normal",
            "A client's close 1000 is answered at once with 1000",
            "close 1000, then the end",
            |site| client_close(site, &close_frame(1000), Some(1000)),
        ),
        case(
            "close-private-code",
            "A client's close 4321 is answered at once with 4321",
            "close 4321, then the end",
            |site| client_close(site, &close_frame(4321), Some(4321)),
        ),
        case(
            "close-without-code",
            "A client's close without a code is answered at once",
            "a close without a code, or 1000; then the end",
            |site| client_close(site, &RawFrame::new(Opcode::Close, &[]).to_vec(), None),
        ),
        case(
            "close-before-start",
            "A client's close before its start is answered at once",
            "close 1000, then the end",
            close_before_start,
        ),
        case(
            "close-owes-no-partial",
            "After a client's close no partial is owed for audio that waits",
            "the close comes at once, with audio in the buffer",
            close_owes_nothing,
        ),
    ]
}

fn numbering(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    for _ in 0..4 {
        session.send_audio(10)?;
        session.until_all_named(site.patience())?;
    }
    Ok("frames 1 to 40, each once".to_owned())
}

fn fragments(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    for sizes in [&[320][..], &[1, 638], &[640], &[0, 100, 0, 200]] {
        let payload = session.next_payload();
        for fragment in in_fragments(Opcode::Binary, &payload, sizes) {
            session.send(&fragment)?;
        }
        session
            .until_all_named(site.patience())
            .map_err(|seen| format!("fragments of {sizes:?} and the rest: {seen}"))?;
    }
    Ok("one frame, four times".to_owned())
}

fn ping(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let longest: Vec<u8> = (0..125).collect();
    for payload in [&b""[..], b"load line", &longest] {
        session.send(&RawFrame::new(Opcode::Ping, payload).to_vec())?;
        session.expect_pong(payload)?;
    }
    Ok("pongs of 0, 9 and 125 bytes".to_owned())
}

fn ping_between_fragments(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let payload = session.next_payload();
    let fragments = in_fragments(Opcode::Binary, &payload, &[200, 200]);
    for (number, fragment) in fragments.iter().enumerate() {
        session.send(fragment)?;
        if number < 2 {
            let payload = [b'a', b'0' + u8::try_from(number).unwrap_or(0)];
            session.send(&RawFrame::new(Opcode::Ping, &payload).to_vec())?;
            session.expect_pong(&payload)?;
        }
    }
    session.until_all_named(site.patience())?;
    Ok("two pongs, then a partial".to_owned())
}

fn pong_unasked(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send(&RawFrame::new(Opcode::Pong, b"nobody asked").to_vec())?;
    session.send_audio(1)?;
    session.until_all_named(site.patience())?;
    Ok("the session went on".to_owned())
}

fn byte_by_byte(site: &Site<'_>) -> Verdict {
    let slowly = Connection {
        byte_by_byte: true,
        ..usual()
    };
    let mut session = site.upgrade(&slowly)?.accepted()?;
    let mut bytes = RawFrame::new(Opcode::Text, START.as_bytes()).to_vec();
    bytes.extend(session.next_frames(1));
    for byte in bytes {
        session.send(&[byte])?;
    }
    session.until_all_named(site.patience())?;
    Ok("a partial for the one frame".to_owned())
}

fn one_segment(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(60)?;
    session.until_all_named(site.patience())?;
    Ok("frames 1 to 60, each once".to_owned())
}

/// The close itself must come at once; whether a gateway repeats an absent code as absent or as 1000 is left to it.
fn client_close(site: &Site<'_>, frame: &[u8], code: Option<u16>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(1)?;
    session.until_all_named(site.patience())?;
    session.send(frame)?;
    session.expect_answered_close(code)
}

fn close_before_start(site: &Site<'_>) -> Verdict {
    let mut session = site.connect()?;
    session.send(&close_frame(1000))?;
    session.expect_answered_close(Some(1000))
}

fn close_owes_nothing(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(5)?;
    session.send(&close_frame(1000))?;
    session.expect_answered_close(Some(1000))
}
