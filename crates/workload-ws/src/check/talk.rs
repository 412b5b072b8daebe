//! What cases are written with: an open connection of either dialect, and the echo of a message.

use std::time::Duration;

use plimsoll_conformance::socket::{Connection, Incoming, Socket, Upgrade, describe};
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::{Site, wse};
use crate::Dialect;

/// How long a message may take to come back. The contract sets no time: an echo that takes longer is not one.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// The contract's longest message.
pub(super) const MESSAGE_MAX_BYTES: usize = 1024 * 1024;

/// A connection to this path.
pub(super) fn to(path: &str) -> Connection {
    Connection {
        path: path.to_owned(),
        message_max_bytes: 2 * 1024 * 1024,
        ..Connection::default()
    }
}

/// A connection to where the server is an echo.
pub(super) fn usual(site: &Site<'_>) -> Connection {
    to(site.path.unwrap_or("/"))
}

/// The answer to an upgrade.
pub(super) fn upgrade(site: &Site<'_>, how: &Connection) -> Result<Upgrade<Socket>, String> {
    site.upgrade(how, site.next_number())
}

/// A socket, upgraded.
pub(super) fn connect(site: &Site<'_>) -> Result<Socket, String> {
    upgrade(site, &usual(site))?.accepted()
}

/// A connection that can be used: upgraded, and in dialect `wse` greeted.
pub(super) fn open(site: &Site<'_>) -> Result<Socket, String> {
    match site.suite.dialect {
        Dialect::Echo => connect(site),
        Dialect::Wse => Ok(wse::session::open(site)?.socket),
    }
}

/// Passes when the connection still answers a message.
pub(super) fn answers(site: &Site<'_>, socket: &mut Socket) -> Result<(), String> {
    match site.suite.dialect {
        Dialect::Echo => echoed(socket, Opcode::Text, b"still there?"),
        Dialect::Wse => wse::session::ping(socket, 4711).map(|_| ()),
    }
}

/// The bytes of one whole message.
pub(super) fn message(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    RawFrame::new(opcode, payload).to_vec()
}

/// Sends a message, which must come back.
pub(super) fn echoed(socket: &mut Socket, opcode: Opcode, payload: &[u8]) -> Result<(), String> {
    socket.send(&message(opcode, payload))?;
    expect_echo(socket, opcode, payload)
}

/// Passes when the next thing that comes is this message.
pub(super) fn expect_echo(
    socket: &mut Socket,
    opcode: Opcode,
    payload: &[u8],
) -> Result<(), String> {
    let name = if opcode == Opcode::Text {
        "text"
    } else {
        "binary"
    };
    let wanted = format!("the {name} message of {} bytes", payload.len());
    let same = match socket.next_within(PATIENCE)? {
        None => return Err(format!("{wanted} did not come back")),
        Some((_, Incoming::Text(seen))) if opcode == Opcode::Text => seen.as_bytes() == payload,
        Some((_, Incoming::Binary(seen))) if opcode == Opcode::Binary => seen == payload,
        Some((_, other)) => return Err(format!("{} instead of {wanted}", describe(&other))),
    };
    if same {
        Ok(())
    } else {
        Err(format!("{wanted} came back changed"))
    }
}

/// Text of this many bytes that differs from place to place.
pub(super) fn text(len: usize) -> Vec<u8> {
    (0..len).map(|place| b'a' + (place % 26) as u8).collect()
}

/// Bytes of all values, this many, that differ from place to place.
pub(super) fn bytes(len: usize) -> Vec<u8> {
    (0..len)
        .map(|place| (place * 31 + place / 256) as u8)
        .collect()
}
