//! Section 3 of the contract: a client that does not read.

use std::time::{Duration, Instant};

use plimsoll_conformance::Verdict;
use plimsoll_conformance::socket::{Incoming, Socket, describe};
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::setup::DEAF_CLIENTS;
use super::talk::{bytes, connect, echoed};
use super::{Case, Site};

/// Nothing that a target may hold is as much: kernel buffers on both sides take some 10 MiB, a target's page states its
/// own bound.
const FLOOD_BYTES: usize = 64 * 1024 * 1024;

/// Messages of the flood.
const MESSAGE_BYTES: usize = 32 * 1024;

/// A target that takes nothing for this long has stopped reading.
const STOPPED: Duration = Duration::from_millis(700);

/// How long reading everything again may take.
const RECOVERY: Duration = Duration::from_secs(30);

pub(super) fn cases() -> Vec<Case> {
    [
        Case::new(
            "deaf-client",
            "If a client does not read, the target stops reading from it, and nothing is lost",
            "it stops before 64 MiB; when the client reads again, every echo comes",
            &DEAF_CLIENTS,
            deaf_client,
        ),
        Case::new(
            "deaf-client-hurts-nobody-else",
            "A client that does not read delays nobody else",
            "50 echoes of another connection, each within a second",
            &DEAF_CLIENTS,
            hurts_nobody_else,
        ),
    ]
    .map(Case::only_when_started)
    .into()
}

/// Message `number` of the flood.
fn message(number: usize) -> Vec<u8> {
    let mut payload = bytes(MESSAGE_BYTES);
    payload[..8].copy_from_slice(&(number as u64).to_be_bytes());
    payload
}

/// Floods the target until it takes no more: the messages that it got or will get, and what of the last is unsent.
fn flood(socket: &mut Socket) -> Result<(usize, Vec<u8>), String> {
    for number in 0..FLOOD_BYTES / MESSAGE_BYTES {
        let frame = RawFrame::new(Opcode::Binary, &message(number)).to_vec();
        let taken = socket.send_what_is_taken(&frame, STOPPED)?;
        if taken < frame.len() {
            return Ok((number + 1, frame[taken..].to_vec()));
        }
    }
    Err(format!(
        "it read {} MiB from a client that read nothing",
        FLOOD_BYTES >> 20
    ))
}

fn deaf_client(site: &Site<'_>) -> Verdict {
    let mut socket = connect(site)?;
    let (count, mut unsent) = flood(&mut socket)?;
    let begun = Instant::now();
    let mut next = 0;
    while next < count {
        if begun.elapsed() > RECOVERY {
            return Err(format!(
                "{next} of {count} echoes within {} s",
                RECOVERY.as_secs()
            ));
        }
        // The rest of the last message can be written once the echoes before it are read.
        let limit = if unsent.is_empty() {
            RECOVERY
        } else {
            Duration::from_millis(20)
        };
        match socket.next_within(limit)? {
            Some((_, Incoming::Binary(echo))) if echo == message(next) => next += 1,
            Some((_, Incoming::Binary(_))) => {
                return Err(format!("echo {next} of {count} is another message"));
            }
            Some((_, other)) => return Err(format!("{} as echo {next}", describe(&other))),
            None => {}
        }
        if !unsent.is_empty() {
            let taken = socket.send_what_is_taken(&unsent, Duration::from_millis(1))?;
            unsent.drain(..taken);
        }
    }
    let mib = (count * MESSAGE_BYTES) >> 20;
    Ok(format!("it stopped after {mib} MiB, and every echo came"))
}

fn hurts_nobody_else(site: &Site<'_>) -> Verdict {
    let (mut deaf, mut other) = (connect(site)?, connect(site)?);
    flood(&mut deaf)?;
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let begun = Instant::now();
        echoed(&mut other, Opcode::Text, b"not deaf")?;
        worst = worst.max(begun.elapsed());
    }
    let seen = format!("50 echoes, the last of them after {} ms", worst.as_millis());
    if worst < Duration::from_secs(1) {
        Ok(seen)
    } else {
        Err(seen)
    }
}
