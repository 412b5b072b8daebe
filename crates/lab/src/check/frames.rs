//! Section 3.2 of the contract: what a session must take, and how it is ended.

use std::time::{Duration, Instant};

use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::client::{AT_ONCE, Connection, Incoming, Session, Verdict, close_frame, describe};
use super::registry::{Case, Site, accepted, case};

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

/// A synthetic frame in fragments of the given sizes; the last takes the rest.
fn in_fragments(payload: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = payload;
    let mut frames = Vec::new();
    let mut opcode = Opcode::Binary;
    for size in sizes {
        let (part, tail) = rest.split_at(*size);
        let fragment = RawFrame {
            fin: false,
            ..RawFrame::new(opcode, part)
        };
        frames.push(fragment.to_vec());
        (rest, opcode) = (tail, Opcode::Continuation);
    }
    frames.push(RawFrame::new(opcode, rest).to_vec());
    frames
}

fn fragments(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    for sizes in [&[320][..], &[1, 638], &[640], &[0, 100, 0, 200]] {
        let payload = session.next_payload();
        for fragment in in_fragments(&payload, sizes) {
            session.send(&fragment)?;
        }
        session
            .until_all_named(site.patience())
            .map_err(|seen| format!("fragments of {sizes:?} and the rest: {seen}"))?;
    }
    Ok("one frame, four times".to_owned())
}

/// Passes when the next thing that comes is a pong with this payload. Messages are passed over.
fn expect_pong(session: &mut Session, payload: &[u8]) -> Result<(), String> {
    let deadline = Instant::now() + AT_ONCE;
    loop {
        match session.next_within(deadline.saturating_duration_since(Instant::now()))? {
            None => return Err(format!("no pong within {} ms", AT_ONCE.as_millis())),
            Some((_, Incoming::Pong(seen))) if seen == payload => return Ok(()),
            Some((_, Incoming::Pong(seen))) => {
                return Err(format!("a pong with {seen:02x?} instead of {payload:02x?}"));
            }
            Some((_, Incoming::Text(_))) => {}
            Some((_, other)) => return Err(format!("{} instead of a pong", describe(&other))),
        }
    }
}

fn ping(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let longest: Vec<u8> = (0..125).collect();
    for payload in [&b""[..], b"load line", &longest] {
        session.send(&RawFrame::new(Opcode::Ping, payload).to_vec())?;
        expect_pong(&mut session, payload)?;
    }
    Ok("pongs of 0, 9 and 125 bytes".to_owned())
}

fn ping_between_fragments(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let payload = session.next_payload();
    let fragments = in_fragments(&payload, &[200, 200]);
    for (number, fragment) in fragments.iter().enumerate() {
        session.send(fragment)?;
        if number < 2 {
            let payload = [b'a', b'0' + u8::try_from(number).unwrap_or(0)];
            session.send(&RawFrame::new(Opcode::Ping, &payload).to_vec())?;
            expect_pong(&mut session, &payload)?;
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
        ..Connection::default()
    };
    let mut session = accepted(site.upgrade(&slowly)?)?;
    let mut bytes = RawFrame::new(Opcode::Text, super::client::START.as_bytes()).to_vec();
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
    expect_answered_close(&mut session, code)
}

fn expect_answered_close(session: &mut Session, code: Option<u16>) -> Verdict {
    let since = Instant::now();
    let seen = loop {
        match session.next_within(AT_ONCE.saturating_sub(since.elapsed()))? {
            None => return Err(format!("no close within {} ms", AT_ONCE.as_millis())),
            Some((_, Incoming::Text(_))) => {}
            Some((_, Incoming::Close(seen))) => break seen,
            Some((_, other)) => return Err(format!("{} instead of a close", describe(&other))),
        }
    };
    let as_expected = seen == code || (code.is_none() && seen == Some(1000));
    let text = format!(
        "{} after {} ms",
        describe(&Incoming::Close(seen)),
        since.elapsed().as_millis()
    );
    if !as_expected {
        return Err(text);
    }
    // RFC 6455, section 7.1.1: the server ends the connection, at once.
    session.expect_end(Duration::from_secs(2))?;
    Ok(text)
}

fn close_before_start(site: &Site<'_>) -> Verdict {
    let mut session = site.connect()?;
    session.send(&close_frame(1000))?;
    expect_answered_close(&mut session, Some(1000))
}

fn close_owes_nothing(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(5)?;
    session.send(&close_frame(1000))?;
    expect_answered_close(&mut session, Some(1000))
}
