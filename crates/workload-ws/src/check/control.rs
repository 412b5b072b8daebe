//! Section 3 of the contract: pings, pongs, closes.

use plimsoll_conformance::socket::{Incoming, close_frame, describe, in_fragments};
use plimsoll_conformance::{AT_ONCE, Verdict};
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::talk::{bytes, connect, echoed, expect_echo, message};
use super::{Case, Site, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "ping",
            "A ping is answered with a pong of the same payload",
            "pongs of 0, 9 and 125 bytes, each within 500 ms",
            ping,
        ),
        case(
            "ping-between-fragments",
            "A ping is answered between the fragments of a message too",
            "two pongs before the message ends, then its echo",
            ping_between_fragments,
        ),
        case(
            "ping-between-messages",
            "A ping between messages disturbs no echo",
            "ten echoes and ten pongs",
            ping_between_messages,
        ),
        case(
            "ping-none-of-its-own",
            "A target sends no ping of its own",
            "silence for a second, and then an echo",
            silence,
        ),
        case(
            "pong-unasked",
            "A pong that nobody asked for is ignored",
            "an echo after it, and nothing else",
            pong_unasked,
        ),
        case(
            "close-normal",
            "A close is answered with a close of the same code, and the connection ends",
            "close 1000 within 500 ms, then the end",
            |site| client_close(site, &close_frame(1000), Some(1000)),
        ),
        case(
            "close-private-code",
            "A close is answered with a close of the same code, a private code too",
            "close 4321 within 500 ms, then the end",
            |site| client_close(site, &close_frame(4321), Some(4321)),
        ),
        case(
            "close-without-code",
            "A close without a code is answered with a close",
            "a close without a code, or 1000; then the end",
            |site| client_close(site, &message(Opcode::Close, b""), None),
        ),
        case(
            "close-with-reason",
            "A close may have a reason",
            "close 1001 within 500 ms, then the end",
            |site| {
                let mut payload = 1001_u16.to_be_bytes().to_vec();
                payload.extend("going, \u{20ac}".as_bytes());
                client_close(site, &message(Opcode::Close, &payload), Some(1001))
            },
        ),
        case(
            "close-at-first",
            "A close is answered on a connection that said nothing else",
            "close 1000 within 500 ms, then the end",
            |site| {
                let mut socket = connect(site)?;
                socket.send(&close_frame(1000))?;
                socket.expect_answered_close(Some(1000))
            },
        ),
        case(
            "close-ends-it",
            "What follows a close is not a message any more",
            "close 1000 and no echo",
            close_ends_it,
        ),
    ]
}

fn ping(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    for payload in [&b""[..], b"load line", &bytes(125)] {
        socket.send(&message(Opcode::Ping, payload))?;
        socket.expect_pong(payload)?;
    }
    Ok("pongs of 0, 9 and 125 bytes".to_owned())
}

fn ping_between_fragments(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let payload = bytes(640);
    let fragments = in_fragments(Opcode::Binary, &payload, &[200, 200]);
    for (number, fragment) in fragments.iter().enumerate() {
        socket.send(fragment)?;
        if number < 2 {
            let ping = format!("ping {number}");
            socket.send(&message(Opcode::Ping, ping.as_bytes()))?;
            socket.expect_pong(ping.as_bytes())?;
        }
    }
    expect_echo(&mut socket, Opcode::Binary, &payload)?;
    Ok("two pongs, then the echo".to_owned())
}

fn ping_between_messages(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    for number in 0..10 {
        let payload = format!("number {number}");
        echoed(&mut socket, Opcode::Text, payload.as_bytes())?;
        socket.send(&message(Opcode::Ping, payload.as_bytes()))?;
        socket.expect_pong(payload.as_bytes())?;
    }
    Ok("ten echoes and ten pongs".to_owned())
}

fn silence(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    socket.expect_silence(2 * AT_ONCE)?;
    echoed(&mut socket, Opcode::Text, b"after a second")?;
    Ok("silence, then an echo".to_owned())
}

fn pong_unasked(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    socket.send(&message(Opcode::Pong, b"nobody asked"))?;
    echoed(&mut socket, Opcode::Text, b"go on")?;
    Ok("the echo came".to_owned())
}

/// The close itself must come at once; whether a server repeats an absent code as absent or as 1000 is left to it.
fn client_close(site: &Site<'_>, frame: &[u8], code: Option<u16>) -> Verdict {
    let mut socket = connect(site)?;
    echoed(&mut socket, Opcode::Text, b"before the close")?;
    socket.send(frame)?;
    socket.expect_answered_close(code)
}

fn close_ends_it(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let mut all = close_frame(1000);
    RawFrame::new(Opcode::Text, b"too late").append_to(&mut all);
    socket.send(&all)?;
    match socket.next_within(AT_ONCE)? {
        Some((_, Incoming::Close(Some(1000)))) => {}
        Some((_, other)) => return Err(format!("{} instead of close 1000", describe(&other))),
        None => return Err("nothing instead of close 1000".to_owned()),
    }
    socket.expect_end(4 * AT_ONCE)?;
    Ok("close 1000, then the end".to_owned())
}
