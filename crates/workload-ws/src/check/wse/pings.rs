//! The application ping, by which a client knows what the engine has read.

use plimsoll_conformance::Verdict;
use plimsoll_conformance::socket::in_fragments;
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use serde_json::Value;

use super::session::{expect_pong, next_of, open, ping};
use super::{Case, Site, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "app-ping",
            "A ping is answered with a PONG whose client_timestamp is the ping's timestamp",
            "three PONGs with their own timestamps",
            |site| {
                let mut socket = open(site)?.socket;
                for timestamp in [1, 1_700_000_000_000, 1_000_000_000_000_000] {
                    ping(&mut socket, timestamp)?;
                }
                Ok("three PONGs".to_owned())
            },
        ),
        case(
            "app-ping-any-i64",
            "The timestamp is an i64 and comes back as it was",
            "0, a negative one, and the least and the greatest",
            |site| {
                let mut socket = open(site)?.socket;
                for timestamp in [0, -1, i64::MAX, i64::MIN] {
                    ping(&mut socket, timestamp)?;
                }
                Ok("four PONGs".to_owned())
            },
        ),
        case(
            "app-ping-fields",
            "A PONG is {c: WSE, t: PONG, p: {client_timestamp, server_timestamp, latency}, v: 1}",
            "all of them",
            fields,
        ),
        case(
            "app-ping-other-name",
            "The field must be called timestamp: any other name gives client_timestamp 0",
            "client_timestamp 0",
            |site| {
                let mut socket = open(site)?.socket;
                socket.say(Opcode::Text, br#"{"t":"ping","p":{"time":4711}}"#)?;
                expect_pong(&mut socket, 0).map(|_| "client_timestamp 0".to_owned())
            },
        ),
        case(
            "app-ping-prefixes",
            "The prefixes WSE, S and U before the brace are tolerated",
            "a PONG for each",
            prefixes,
        ),
        case(
            "app-ping-order",
            "The engine reads a connection in order",
            "100 PONGs in the order of their pings, sent in one write",
            order,
        ),
        case(
            "app-ping-fragments",
            "A message may come in fragments",
            "a PONG",
            |site| {
                let mut socket = open(site)?.socket;
                let text = br#"{"t":"ping","p":{"timestamp":4711}}"#;
                socket.send(&in_fragments(Opcode::Text, text, &[0, 5, 20]).concat())?;
                expect_pong(&mut socket, 4711).map(|_| "a PONG".to_owned())
            },
        ),
        case(
            "app-ping-byte-by-byte",
            "Bytes that come one by one are understood",
            "a PONG",
            |site| {
                let mut socket = open(site)?.socket;
                let text = br#"{"t":"ping","p":{"timestamp":4711}}"#;
                for byte in RawFrame::new(Opcode::Text, text).to_vec() {
                    socket.send(&[byte])?;
                }
                expect_pong(&mut socket, 4711).map(|_| "a PONG".to_owned())
            },
        ),
        case(
            "app-ping-apart",
            "A PONG goes to the connection that asked",
            "each of two connections gets its own",
            apart,
        ),
    ]
}

fn fields(site: &Site<'_>) -> Verdict {
    let pong = ping(&mut open(site)?.socket, 4711)?;
    let numbers = ["client_timestamp", "server_timestamp", "latency"];
    let complete = numbers.iter().all(|name| pong["p"][name].is_number());
    if complete && pong["c"] == "WSE" && pong["v"] == 1 {
        Ok(pong.to_string())
    } else {
        Err(pong.to_string())
    }
}

fn prefixes(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?.socket;
    for (prefix, timestamp) in [("WSE", 1), ("S", 2), ("U", 3), ("", 4)] {
        let text = format!(r#"{prefix}{{"t":"ping","p":{{"timestamp":{timestamp}}}}}"#);
        socket.say(Opcode::Text, text.as_bytes())?;
        expect_pong(&mut socket, timestamp).map_err(|seen| format!("{prefix:?}: {seen}"))?;
    }
    Ok("four PONGs".to_owned())
}

fn order(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?.socket;
    let mut all = Vec::new();
    for number in 1..=100 {
        let text = format!(r#"{{"t":"ping","p":{{"timestamp":{number}}}}}"#);
        RawFrame::new(Opcode::Text, text.as_bytes()).append_to(&mut all);
    }
    socket.send(&all)?;
    for number in 1..=100 {
        expect_pong(&mut socket, number)?;
    }
    Ok("100 PONGs".to_owned())
}

fn apart(site: &Site<'_>) -> Verdict {
    let (mut one, mut other) = (open(site)?.socket, open(site)?.socket);
    for (socket, timestamp) in [(&mut one, 1), (&mut other, 2)] {
        let text = format!(r#"{{"t":"ping","p":{{"timestamp":{timestamp}}}}}"#);
        socket.say(Opcode::Text, text.as_bytes())?;
    }
    let stamps = [next_of(&mut one, "PONG")?, next_of(&mut other, "PONG")?]
        .map(|pong: Value| pong["p"]["client_timestamp"].to_string());
    if stamps == ["1", "2"] {
        Ok("each its own".to_owned())
    } else {
        Err(format!("timestamps {stamps:?}"))
    }
}
