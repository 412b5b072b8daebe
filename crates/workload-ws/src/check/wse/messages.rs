//! Messages for the application: counted, and fanned out.

use std::time::Duration;

use plimsoll_conformance::case::{Series, value};
use plimsoll_conformance::socket::Socket;
use plimsoll_conformance::{AT_ONCE, Verdict};
use plimsoll_host::http::Metrics;
use plimsoll_protocol::websocket::Opcode;

use super::session::{next, next_of, open, ping};
use super::{Case, Site, case};
use crate::check::setup::{COUNTERS, ONE_WORKER};

/// A counter may follow what it counts a little later: the application takes its messages from a queue.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

const RECEIVED: Series = ("ws_messages_received_total", &[]);
const ENGINE_RECEIVED: Series = ("wse_messages_received_total", &[]);

/// A message that the engine hands to the application.
const DATA: &[u8] = br#"{"t":"data","p":{"n":1}}"#;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "message-no-echo",
            "Everything but client_hello, ping and pong goes to the application, and none of it comes back",
            "silence after a message, then a PONG",
            no_echo,
        ),
        case(
            "message-binary",
            "Binary messages are opaque bytes on a plain session",
            "a PONG after M: and MessagePack, MessagePack, C: and zlib, and bytes that are nothing",
            binary,
        ),
        case(
            "message-prefixes",
            "The prefixes WSE, S and U before the brace are tolerated",
            "a PONG after each",
            prefixes,
        ),
        counted(
            "metrics-messages",
            "ws_messages_received_total counts what the application received",
            "+20 for 20 messages of 2 connections",
            messages_counted,
        ),
        counted(
            "metrics-not-pings",
            "ws_messages_received_total counts no hello and no ping",
            "+1 for a hello, ten pings and one message",
            pings_not_counted,
        ),
        counted(
            "metrics-of-the-engine-count-all",
            "wse_messages_received_total counts hellos and pings, too",
            "+12 or more for a hello, ten pings and one message",
            engine_counts_all,
        ),
        hub(
            "fanout-everybody",
            "{t: fanout} is broadcast to every connection as {c: U, t: fanout}, the sender's too",
            "each of three gets it, with the same p",
            everybody,
        ),
        hub(
            "fanout-order",
            "Messages of the hub come in the order of arrival",
            "100 messages of one sender, in order, at each of three",
            order,
        ),
        hub(
            "fanout-leaves",
            "A connection that is closed is no receiver any more",
            "the others go on",
            leaves,
        ),
    ]
}

fn counted(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: fn(&Site<'_>) -> Verdict,
) -> Case {
    Case::new(id, title, expected, &COUNTERS, run).only_when_started()
}

fn hub(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: fn(&Site<'_>) -> Verdict,
) -> Case {
    case(id, title, expected, run).in_setup(&ONE_WORKER)
}

fn no_echo(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?.socket;
    socket.say(Opcode::Text, DATA)?;
    socket.expect_silence(AT_ONCE)?;
    ping(&mut socket, 1)?;
    Ok("silence, then a PONG".to_owned())
}

fn binary(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?.socket;
    // MessagePack of {"t": "data"}; an empty zlib stream.
    let packed = b"\x81\xa1t\xa4data";
    let empty_zlib = b"C:\x78\x9c\x03\x00\x00\x00\x00\x01";
    let messages = [
        &[b"M:", &packed[..]].concat()[..],
        packed,
        empty_zlib,
        b"\xff\x00\x01",
    ];
    for (message, number) in messages.iter().zip(1..) {
        socket.say(Opcode::Binary, message)?;
        ping(&mut socket, number).map_err(|seen| format!("after {message:02x?}: {seen}"))?;
    }
    Ok("four PONGs".to_owned())
}

fn prefixes(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?.socket;
    for (prefix, number) in [("WSE", 1), ("S", 2), ("U", 3)] {
        let text = [prefix.as_bytes(), DATA].concat();
        socket.say(Opcode::Text, &text)?;
        ping(&mut socket, number).map_err(|seen| format!("{prefix}: {seen}"))?;
    }
    Ok("three PONGs".to_owned())
}

/// What a series grew by, once it grew by as much as expected or the time is over.
fn growth(site: &Site<'_>, before: &Metrics, series: Series, by: f64) -> Result<f64, String> {
    let grown = |now: &Metrics| value(now, series) - value(before, series);
    let (scrape, _) = site.metrics_within(COUNTED_WITHIN, |now| grown(now) >= by)?;
    Ok(grown(&scrape))
}

/// Passes when the application's counter grew by exactly this.
fn received(site: &Site<'_>, before: &Metrics, by: f64) -> Verdict {
    let grown = growth(site, before, RECEIVED, by)?;
    let seen = format!("{} {grown:+}", RECEIVED.0);
    if grown == by { Ok(seen) } else { Err(seen) }
}

fn messages_counted(site: &Site<'_>) -> Verdict {
    let before = site.metrics()?;
    let mut sockets = [open(site)?.socket, open(site)?.socket];
    for socket in &mut sockets {
        for _ in 0..10 {
            socket.say(Opcode::Text, DATA)?;
        }
        // The pong proves that the engine read them all.
        ping(socket, 1)?;
    }
    sockets.into_iter().try_for_each(Socket::close)?;
    received(site, &before, 20.0)
}

/// A hello, ten pings and one message.
fn one_message_among_pings(site: &Site<'_>) -> Result<(), String> {
    let mut socket = open(site)?.socket;
    for timestamp in 0..10 {
        ping(&mut socket, timestamp)?;
    }
    socket.say(Opcode::Text, DATA)?;
    socket.close()
}

fn pings_not_counted(site: &Site<'_>) -> Verdict {
    let before = site.metrics()?;
    one_message_among_pings(site)?;
    received(site, &before, 1.0)
}

fn engine_counts_all(site: &Site<'_>) -> Verdict {
    let before = site.metrics()?;
    one_message_among_pings(site)?;
    let grown = growth(site, &before, ENGINE_RECEIVED, 12.0)?;
    let seen = format!("{} {grown:+}", ENGINE_RECEIVED.0);
    if grown >= 12.0 { Ok(seen) } else { Err(seen) }
}

fn join(site: &Site<'_>, count: usize) -> Result<Vec<Socket>, String> {
    (0..count).map(|_| Ok(open(site)?.socket)).collect()
}

fn publish(sender: &mut Socket, number: usize) -> Result<(), String> {
    let text = format!(r#"{{"t":"fanout","p":{{"number":{number}}}}}"#);
    sender.say(Opcode::Text, text.as_bytes())
}

/// Passes when the next message is this one of the hub.
fn hears(receiver: &mut Socket, number: usize) -> Result<(), String> {
    let message = next_of(receiver, "fanout")?;
    if message["p"]["number"] == number && message["c"] == "U" {
        Ok(())
    } else {
        Err(format!("{message} instead of number {number}"))
    }
}

fn everybody(site: &Site<'_>) -> Verdict {
    let mut receivers = join(site, 3)?;
    for sender in 0..receivers.len() {
        publish(&mut receivers[sender], sender)?;
        for (place, receiver) in receivers.iter_mut().enumerate() {
            hears(receiver, sender).map_err(|seen| format!("from {sender} to {place}: {seen}"))?;
        }
    }
    // Nobody hears it twice.
    for receiver in &mut receivers {
        if let Some(more) = next(receiver, Duration::from_millis(100))? {
            return Err(format!("{more}, though nothing was due"));
        }
    }
    Ok("nine deliveries".to_owned())
}

fn order(site: &Site<'_>) -> Verdict {
    let mut receivers = join(site, 3)?;
    for number in 0..100 {
        publish(&mut receivers[0], number)?;
    }
    for receiver in &mut receivers {
        for number in 0..100 {
            hears(receiver, number)?;
        }
    }
    Ok("300 deliveries".to_owned())
}

fn leaves(site: &Site<'_>) -> Verdict {
    let mut receivers = join(site, 3)?;
    receivers.pop().map_or(Ok(()), Socket::close)?;
    if let Some(gone) = receivers.pop() {
        gone.vanish();
    }
    for number in 0..5 {
        publish(&mut receivers[0], number)?;
        hears(&mut receivers[0], number)?;
    }
    Ok("the other went on".to_owned())
}
