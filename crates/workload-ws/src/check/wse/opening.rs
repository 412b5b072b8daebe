//! How a session is opened, and closed.

use std::collections::BTreeSet;

use plimsoll_conformance::socket::{Connection, Incoming, close_frame, describe};
use plimsoll_conformance::{AT_ONCE, Verdict};
use plimsoll_protocol::websocket::Opcode;
use serde_json::Value;

use super::session::{self, HELLO, lacks, next_of, open, open_as, with_token, without_token};
use super::{Case, Site, case};
use crate::check::talk::{PATIENCE, to, upgrade};
use crate::formats::Format;
use crate::wse::path;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "opening",
            "Server: server_ready; client: client_hello; server: server_hello",
            "both messages of the server, in this order",
            |site| open(site).map(|_| "server_ready, then server_hello".to_owned()),
        ),
        case(
            "server-ready-first",
            "The server sends server_ready before the client says anything",
            "server_ready",
            ready_first,
        ),
        case(
            "server-ready-fields",
            "server_ready has p.details.{connection_id, features, server_time, user_id, version}, and id, seq, ts",
            "all of them",
            ready_fields,
        ),
        case(
            "server-hello-fields",
            "server_hello has p.features, p.limits, p.ping_interval and p.server_version",
            "all of them, with a ping_interval of 25000",
            hello_fields,
        ),
        case(
            "server-hello-limits",
            "server_hello has p.limits.{max_message_size, rate_limit_capacity, rate_limit_refill}",
            "all of them, as numbers; max_message_size 1048576",
            hello_limits,
        ),
        case(
            "connection-ids",
            "Each connection has an id of its own",
            "ten ids, all different",
            connection_ids,
        ),
        case(
            "upgrade-any-path",
            "Any path upgrades",
            "sessions at /, /wse and /a/b",
            any_path,
        ),
        case(
            "session-of-msgpack",
            "format=msgpack in the query makes a msgpack session",
            "a session",
            msgpack_session,
        ),
        case(
            "upgrade-byte-by-byte",
            "A request that comes byte by byte is understood",
            "a session",
            byte_by_byte,
        ),
        case(
            "close-normal",
            "A close is answered with a close",
            "close 1000 within 500 ms, then the end",
            closed,
        ),
        case(
            "ping-of-the-protocol",
            "A ping of RFC 6455 is answered with a pong of the same payload",
            "pongs of 0, 9 and 125 bytes, each within 500 ms",
            protocol_ping,
        ),
    ]
}

fn ready_first(site: &Site<'_>) -> Verdict {
    let how = with_token(site, without_token(site));
    let mut socket = upgrade(site, &how)?.accepted()?;
    next_of(&mut socket, "server_ready").map(|_| "server_ready".to_owned())
}

/// The verdict on what is lacking.
fn nothing_lacks(lacking: &[String], of: &Value) -> Verdict {
    if lacking.is_empty() {
        Ok("all of them".to_owned())
    } else {
        Err(format!("no {} in {of}", lacking.join(", ")))
    }
}

fn ready_fields(site: &Site<'_>) -> Verdict {
    let ready = open(site)?.ready;
    let mut lacking = lacks(&ready, &["id", "seq", "ts"]);
    lacking.extend(lacks(
        &ready["p"]["details"],
        &[
            "connection_id",
            "features",
            "server_time",
            "user_id",
            "version",
        ],
    ));
    nothing_lacks(&lacking, &ready)
}

fn hello_fields(site: &Site<'_>) -> Verdict {
    let hello = open(site)?.hello;
    let fields = ["features", "limits", "ping_interval", "server_version"];
    nothing_lacks(&lacks(&hello["p"], &fields), &hello)?;
    if hello["p"]["ping_interval"] == 25_000 {
        Ok("all of them".to_owned())
    } else {
        Err(format!(
            "a ping_interval of {}",
            hello["p"]["ping_interval"]
        ))
    }
}

fn hello_limits(site: &Site<'_>) -> Verdict {
    let hello = open(site)?.hello;
    let limits = &hello["p"]["limits"];
    for name in ["rate_limit_capacity", "rate_limit_refill"] {
        if !limits[name].is_number() {
            return Err(format!("{name} is {} in {hello}", limits[name]));
        }
    }
    if limits["max_message_size"] == 1_048_576 {
        Ok(limits.to_string())
    } else {
        Err(limits.to_string())
    }
}

fn connection_ids(site: &Site<'_>) -> Verdict {
    let mut sessions = Vec::new();
    for _ in 0..10 {
        sessions.push(open(site)?);
    }
    let ids: BTreeSet<String> = sessions
        .iter()
        .map(|session| session.ready["p"]["details"]["connection_id"].to_string())
        .collect();
    let seen = format!("{} ids", ids.len());
    if ids.len() == sessions.len() {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn any_path(site: &Site<'_>) -> Verdict {
    for path in ["/", "/wse", "/a/b"] {
        let how = to(&format!("{path}?compression=false&protocol_version=1"));
        open_as(site, &with_token(site, how)).map_err(|seen| format!("{path}: {seen}"))?;
    }
    Ok("three sessions".to_owned())
}

/// The server's own messages may be packed on such a session, so only the upgrade and the first of them are looked at.
fn msgpack_session(site: &Site<'_>) -> Verdict {
    let how = with_token(site, to(path(Format::Msgpack)));
    let mut socket = upgrade(site, &how)?.accepted()?;
    match socket.next_within(PATIENCE)? {
        Some((_, Incoming::Text(text))) => {
            let first = session::object(&text)?;
            if first["t"] != "server_ready" {
                return Err(format!("{first} instead of server_ready"));
            }
        }
        Some((_, Incoming::Binary(bytes))) if bytes.starts_with(b"M:") => {}
        other => return Err(format!("{other:?} instead of server_ready")),
    }
    socket.say(Opcode::Text, HELLO.as_bytes())?;
    Ok("server_ready".to_owned())
}

fn byte_by_byte(site: &Site<'_>) -> Verdict {
    let how = Connection {
        byte_by_byte: true,
        ..with_token(site, without_token(site))
    };
    open_as(site, &how).map(|_| "a session".to_owned())
}

fn closed(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?.socket;
    socket.send(&close_frame(1000))?;
    socket.expect_answered_close(Some(1000))
}

fn protocol_ping(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?.socket;
    let longest: Vec<u8> = (0..125).collect();
    for payload in [&b""[..], b"load line", &longest] {
        socket.say(Opcode::Ping, payload)?;
        // The engine answers twice; RFC 6455 allows a pong that nobody asked for.
        loop {
            match socket.next_within(AT_ONCE)? {
                Some((_, Incoming::Pong(seen))) if seen == payload => break,
                Some((_, Incoming::Pong(_))) => {}
                Some((_, other)) => return Err(format!("{} instead of a pong", describe(&other))),
                None => return Err(format!("no pong of {} bytes", payload.len())),
            }
        }
    }
    Ok("pongs of 0, 9 and 125 bytes".to_owned())
}
