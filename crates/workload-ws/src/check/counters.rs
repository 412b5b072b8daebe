//! Section 2 of the contract, for an echo: the metrics agree with what the checker did.

use std::time::Duration;

use plimsoll_conformance::Verdict;
use plimsoll_conformance::case::{Series, value};
use plimsoll_conformance::socket::{Socket, Upgrade, in_fragments};
use plimsoll_host::http::Metrics;
use plimsoll_protocol::websocket::Opcode;

use super::setup::COUNTERS;
use super::talk::{bytes, connect, echoed, expect_echo, message, usual};
use super::{Case, Site};

/// A counter may follow what it counts a little later.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

const RECEIVED: Series = ("ws_messages_received_total", &[]);
const RECEIVED_BYTES: Series = ("ws_bytes_received_total", &[]);
const SENT: Series = ("ws_messages_sent_total", &[]);
const REFUSED: Series = ("ws_connections_refused_total", &[]);

pub(super) fn cases() -> Vec<Case> {
    [
        Case::new(
            "metrics-messages",
            "Messages, their bytes and the echoes are counted over all workers",
            "+40 messages received, +2,400 bytes, +40 sent",
            &COUNTERS,
            messages,
        ),
        Case::new(
            "metrics-whole-messages",
            "Whole messages are counted: not fragments, pings, pongs or closes",
            "+1 message received, +640 bytes, +1 sent",
            &COUNTERS,
            whole_messages,
        ),
        Case::new(
            "metrics-refused",
            "Requests for a WebSocket that were answered otherwise are counted",
            "+1 refused",
            &COUNTERS,
            refused,
        ),
    ]
    .map(Case::only_when_started)
    .into()
}

/// Waits until every expected growth is there; the text lists what was seen of each.
fn grown(site: &Site<'_>, before: &Metrics, expected: &[(Series, f64)]) -> Verdict {
    let growth = |now: &Metrics, series: Series| value(now, series) - value(before, series);
    let (scrape, _) = site.metrics_within(COUNTED_WITHIN, |now| {
        expected
            .iter()
            .all(|(series, by)| growth(now, *series) >= *by)
    })?;
    let seen: Vec<String> = expected
        .iter()
        .map(|(series, _)| format!("{} {:+}", series.0, growth(&scrape, *series)))
        .collect();
    let exact = expected
        .iter()
        .all(|(series, by)| growth(&scrape, *series) == *by);
    if exact {
        Ok(seen.join(", "))
    } else {
        Err(seen.join(", "))
    }
}

fn messages(site: &Site<'_>) -> Verdict {
    let before = site.metrics()?;
    let mut sockets = [
        connect(site)?,
        connect(site)?,
        connect(site)?,
        connect(site)?,
    ];
    for socket in &mut sockets {
        for _ in 0..5 {
            echoed(socket, Opcode::Text, &super::talk::text(100))?;
            echoed(socket, Opcode::Binary, &bytes(20))?;
        }
    }
    sockets.into_iter().try_for_each(Socket::close)?;
    grown(
        site,
        &before,
        &[(RECEIVED, 40.0), (RECEIVED_BYTES, 2400.0), (SENT, 40.0)],
    )
}

fn whole_messages(site: &Site<'_>) -> Verdict {
    let before = site.metrics()?;
    let mut socket = connect(site)?;
    let payload = bytes(640);
    for fragment in in_fragments(Opcode::Binary, &payload, &[100, 0, 200]) {
        socket.send(&message(Opcode::Ping, b"between"))?;
        socket.expect_pong(b"between")?;
        socket.send(&fragment)?;
    }
    expect_echo(&mut socket, Opcode::Binary, &payload)?;
    socket.send(&message(Opcode::Pong, b"unasked"))?;
    socket.close()?;
    grown(
        site,
        &before,
        &[(RECEIVED, 1.0), (RECEIVED_BYTES, 640.0), (SENT, 1.0)],
    )
}

fn refused(site: &Site<'_>) -> Verdict {
    let before = site.metrics()?;
    let number = site.next_number();
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\n\r\n";
    match Socket::open_with(site.address, &usual(site), request.as_bytes(), number)? {
        Upgrade::Done(_) => return Err("a request without a key was answered 101".to_owned()),
        Upgrade::Refused { .. } => {}
    }
    grown(site, &before, &[(REFUSED, 1.0)])
}
