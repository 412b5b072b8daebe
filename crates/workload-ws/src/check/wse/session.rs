//! A session of the dialect: upgraded with a token, greeted.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_conformance::socket::{Connection, Incoming, Socket, describe};
use plimsoll_protocol::websocket::Opcode;
use serde_json::Value;

use crate::check::Site;
use crate::check::talk::{PATIENCE, to, upgrade};
use crate::formats::Format;
use crate::jwt::Credentials;
use crate::wse::path;

pub(in crate::check) const HELLO: &str =
    r#"{"t":"client_hello","p":{"client_version":"plimsoll","protocol_version":1}}"#;

/// What the server said while a session was opened.
pub(in crate::check) struct Opened {
    pub(in crate::check) socket: Socket,
    pub(super) ready: Value,
    pub(super) hello: Value,
}

/// A token of the contract's default credentials.
pub(super) fn token(credentials: &Credentials) -> String {
    credentials.token(now_s())
}

/// Seconds since 1970.
pub(in crate::check) fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// A connection to the usual path without a token.
pub(super) fn without_token(site: &Site<'_>) -> Connection {
    to(site.path.unwrap_or(path(Format::Json)))
}

/// A connection with a token: the user's, or one of the contract's default credentials.
pub(super) fn with_token(site: &Site<'_>, mut how: Connection) -> Connection {
    if site.token.is_none() {
        let cookie = format!("access_token={}", token(&Credentials::default()));
        how.headers.push(("Cookie", cookie));
    }
    how
}

/// Opens the usual session.
pub(in crate::check) fn open(site: &Site<'_>) -> Result<Opened, String> {
    open_as(site, &with_token(site, without_token(site)))
}

/// Opens a session in this way.
pub(super) fn open_as(site: &Site<'_>, how: &Connection) -> Result<Opened, String> {
    let mut socket = upgrade(site, how)?.accepted()?;
    let ready = next_of(&mut socket, "server_ready")?;
    socket.say(Opcode::Text, HELLO.as_bytes())?;
    let hello = next_of(&mut socket, "server_hello")?;
    Ok(Opened {
        socket,
        ready,
        hello,
    })
}

/// The object of a message, without the prefix that may stand before its brace.
pub(super) fn object(text: &str) -> Result<Value, String> {
    let brace = text
        .find('{')
        .ok_or_else(|| format!("no object in {text}"))?;
    let (prefix, object) = text.split_at(brace);
    if !["", "WSE", "S", "U"].contains(&prefix) {
        return Err(format!("the unknown prefix {prefix:?} in {text}"));
    }
    serde_json::from_str(object).map_err(|error| format!("{error} in {text}"))
}

/// The next message, which must be an object.
pub(super) fn next(socket: &mut Socket, limit: Duration) -> Result<Option<Value>, String> {
    match socket.next_within(limit)? {
        None => Ok(None),
        Some((_, Incoming::Text(text))) => object(&text).map(Some),
        Some((_, other)) => Err(format!("{} instead of a message", describe(&other))),
    }
}

/// The next message, which must be of this type. Pings of the server are passed over.
pub(super) fn next_of(socket: &mut Socket, kind: &str) -> Result<Value, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match next(socket, left)? {
            None => return Err(format!("no {kind} within {} s", PATIENCE.as_secs())),
            Some(message) if message["t"] == kind => return Ok(message),
            Some(message) if message["t"] == "ping" => {}
            Some(message) => return Err(format!("{message} instead of {kind}")),
        }
    }
}

/// Sends an application ping; its answer, which must be the next message.
pub(in crate::check) fn ping(socket: &mut Socket, timestamp: i64) -> Result<Value, String> {
    let ping = format!(r#"{{"t":"ping","p":{{"timestamp":{timestamp}}}}}"#);
    socket.say(Opcode::Text, ping.as_bytes())?;
    expect_pong(socket, timestamp)
}

/// Passes when the next message answers this ping.
pub(super) fn expect_pong(socket: &mut Socket, timestamp: i64) -> Result<Value, String> {
    let pong = next_of(socket, "PONG")?;
    if pong["p"]["client_timestamp"] == timestamp {
        Ok(pong)
    } else {
        Err(format!("{pong} for the ping {timestamp}"))
    }
}

/// Which of these fields the object lacks.
pub(super) fn lacks(object: &Value, fields: &[&str]) -> Vec<String> {
    fields
        .iter()
        .filter(|field| object.get(**field).is_none_or(Value::is_null))
        .map(|field| (*field).to_owned())
        .collect()
}
