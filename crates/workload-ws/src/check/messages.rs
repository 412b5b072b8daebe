//! Section 3 of the contract: each message comes back with the same opcode and payload, in order.

use std::thread;
use std::time::Duration;

use plimsoll_conformance::socket::{Connection, Socket, in_fragments};
use plimsoll_conformance::{AT_ONCE, Verdict};
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::talk::{
    MESSAGE_MAX_BYTES, bytes, connect, echoed, expect_echo, message, text, upgrade, usual,
};
use super::{Case, Site, case};

/// Lengths around those where the header of a frame changes its form, and some more.
const LENGTHS: [usize; 8] = [1, 125, 126, 127, 4096, 65_535, 65_536, 100_000];

/// Text with characters of one to four bytes.
const CHARACTERS: &str = "Plimsoll: \u{df}\u{20ac}\u{1f6a2} \u{10ffff}\0 end";

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "echo-text",
            "Each text message comes back with the same opcode and payload",
            "texts of 1 to 100,000 bytes",
            |site| echoes(site, Opcode::Text, text),
        ),
        case(
            "echo-binary",
            "Each binary message comes back with the same opcode and payload",
            "binary messages of 1 to 100,000 bytes",
            |site| echoes(site, Opcode::Binary, bytes),
        ),
        case(
            "echo-empty",
            "An empty message comes back, too",
            "an empty text, then an empty binary message",
            empty,
        ),
        case(
            "echo-longest",
            "The longest message comes back",
            "1,048,576 bytes",
            longest,
        ),
        case(
            "echo-characters",
            "Text is UTF-8, with characters of any length",
            "characters of 1 to 4 bytes and U+0000",
            characters,
        ),
        case(
            "echo-characters-in-fragments",
            "A character may be divided between fragments",
            "the text, whole, wherever it was divided",
            divided_characters,
        ),
        case(
            "echo-fragments",
            "A fragmented message comes back whole",
            "text and binary, with empty fragments at either end and between",
            fragments,
        ),
        case(
            "echo-many-fragments",
            "A fragmented message comes back whole, however many fragments it has",
            "200 bytes in 200 fragments",
            many_fragments,
        ),
        case(
            "echo-order",
            "Messages come back in order, never merged and never twice",
            "300 messages of two kinds and different lengths, sent in one write",
            order,
        ),
        case(
            "echo-never-twice",
            "A message does not come back twice",
            "silence after the echo",
            never_twice,
        ),
        case(
            "echo-byte-by-byte",
            "Bytes that come one by one are understood",
            "the echo of a text and a binary message",
            byte_by_byte,
        ),
        case(
            "echo-split-header",
            "A frame may be divided anywhere, in its header too",
            "the echo of 300 bytes, divided after each of the first 9",
            split_header,
        ),
        case(
            "echo-masks",
            "Any mask is taken off",
            "the echo of payloads under four masks, one of zeros",
            masks,
        ),
        case(
            "echo-apart",
            "A message comes back to its sender only",
            "each of two connections gets its own",
            apart,
        ),
    ]
}

fn echoes(site: &Site<'_>, opcode: Opcode, make: fn(usize) -> Vec<u8>) -> Verdict {
    let mut socket = connect(site)?;
    for len in LENGTHS {
        echoed(&mut socket, opcode, &make(len))?;
    }
    Ok(format!("{} echoes", LENGTHS.len()))
}

fn empty(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    echoed(&mut socket, Opcode::Text, b"")?;
    echoed(&mut socket, Opcode::Binary, b"")?;
    Ok("both".to_owned())
}

fn longest(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    echoed(&mut socket, Opcode::Binary, &bytes(MESSAGE_MAX_BYTES))?;
    Ok(format!("{MESSAGE_MAX_BYTES} bytes"))
}

fn characters(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    echoed(&mut socket, Opcode::Text, CHARACTERS.as_bytes())?;
    Ok(format!("{} bytes", CHARACTERS.len()))
}

fn send_fragments(
    socket: &mut Socket,
    opcode: Opcode,
    payload: &[u8],
    sizes: &[usize],
) -> Result<(), String> {
    for fragment in in_fragments(opcode, payload, sizes) {
        socket.send(&fragment)?;
    }
    expect_echo(socket, opcode, payload)
        .map_err(|seen| format!("fragments of {sizes:?} and the rest: {seen}"))
}

fn divided_characters(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    for place in 0..CHARACTERS.len() {
        send_fragments(&mut socket, Opcode::Text, CHARACTERS.as_bytes(), &[place])?;
    }
    Ok(format!("divided at {} places", CHARACTERS.len()))
}

fn fragments(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let divisions = [&[320][..], &[1, 638], &[640], &[0, 100, 0, 200], &[0, 640]];
    for sizes in divisions {
        send_fragments(&mut socket, Opcode::Binary, &bytes(640), sizes)?;
        send_fragments(&mut socket, Opcode::Text, &text(640), sizes)?;
    }
    Ok(format!("whole, {} times", 2 * divisions.len()))
}

fn many_fragments(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    send_fragments(&mut socket, Opcode::Binary, &bytes(200), &[1; 199])?;
    Ok("whole".to_owned())
}

fn order(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let messages: Vec<(Opcode, Vec<u8>)> = (0..300)
        .map(|number| {
            let opcode = [Opcode::Text, Opcode::Binary][number % 2];
            let mut payload = format!("{number} ").into_bytes();
            payload.extend(text(number * 7 % 400));
            (opcode, payload)
        })
        .collect();
    let mut all = Vec::new();
    for (opcode, payload) in &messages {
        RawFrame::new(*opcode, payload).append_to(&mut all);
    }
    socket.send(&all)?;
    for (number, (opcode, payload)) in messages.iter().enumerate() {
        expect_echo(&mut socket, *opcode, payload)
            .map_err(|seen| format!("message {number}: {seen}"))?;
    }
    Ok(format!("{} echoes", messages.len()))
}

fn never_twice(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    echoed(&mut socket, Opcode::Text, b"once")?;
    socket.expect_silence(AT_ONCE)?;
    Ok("one echo, then silence".to_owned())
}

fn byte_by_byte(site: &Site<'_>) -> Verdict {
    let slowly = Connection {
        byte_by_byte: true,
        ..usual(site)
    };
    let mut socket = upgrade(site, &slowly)?.accepted()?;
    for (opcode, payload) in [(Opcode::Text, text(200)), (Opcode::Binary, bytes(200))] {
        for byte in message(opcode, &payload) {
            socket.send(&[byte])?;
        }
        expect_echo(&mut socket, opcode, &payload)?;
    }
    Ok("both".to_owned())
}

fn split_header(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let payload = bytes(300);
    let frame = message(Opcode::Binary, &payload);
    for place in 1..10 {
        let (first, rest) = frame.split_at(place);
        socket.send(first)?;
        // Both parts in one segment would divide nothing.
        thread::sleep(Duration::from_millis(5));
        socket.send(rest)?;
        expect_echo(&mut socket, Opcode::Binary, &payload)
            .map_err(|seen| format!("divided after {place} bytes: {seen}"))?;
    }
    Ok("nine echoes".to_owned())
}

fn masks(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let payload = bytes(1001);
    for mask in [[0; 4], [0xFF; 4], [1, 2, 3, 4], [0x80, 0, 0x7F, 0xFF]] {
        let frame = RawFrame {
            mask: Some(mask),
            ..RawFrame::new(Opcode::Binary, &payload)
        };
        socket.send(&frame.to_vec())?;
        expect_echo(&mut socket, Opcode::Binary, &payload)
            .map_err(|seen| format!("mask {mask:02x?}: {seen}"))?;
    }
    Ok("four echoes".to_owned())
}

fn apart(site: &Site<'_>) -> Verdict {
    let (mut one, mut other) = (connect(site)?, connect(site)?);
    // A server may have answered the upgrade and not yet know the connection: it has to serve both first.
    for socket in [&mut one, &mut other] {
        echoed(socket, Opcode::Text, b"here")?;
    }
    for number in 0..20 {
        one.send(&message(Opcode::Text, format!("one {number}").as_bytes()))?;
        other.send(&message(Opcode::Text, format!("other {number}").as_bytes()))?;
    }
    for number in 0..20 {
        expect_echo(&mut one, Opcode::Text, format!("one {number}").as_bytes())?;
        expect_echo(
            &mut other,
            Opcode::Text,
            format!("other {number}").as_bytes(),
        )?;
    }
    Ok("20 echoes each, its own".to_owned())
}
