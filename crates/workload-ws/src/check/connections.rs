//! Connections of either dialect: many, slow ones, and those that vanish.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use plimsoll_conformance::Verdict;

use super::setup::{BASE, COUNTERS};
use super::talk::{answers, open};
use super::{Case, Site};

const MANY: usize = 200;

const OPEN: &str = "ws_connections_open";
const ACCEPTED: &str = "ws_connections_accepted_total";

/// A counter may follow what it counts a little later.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "many-connections",
            "Many connections are open at once, and each is answered",
            "200 connections, each with an answer",
            &BASE,
            many,
        ),
        Case::new(
            "slow-upgrade-delays-nobody",
            "A connection that has not sent its whole request delays nobody else",
            "an answer, beside 20 requests without an end",
            &BASE,
            slow_upgrade,
        ),
        Case::new(
            "vanished-clients",
            "A client that goes away without a close disturbs nobody else, and is no longer open",
            "an answer on the connection that stays; the gauge comes back",
            &COUNTERS,
            vanished,
        )
        .only_when_started(),
        Case::new(
            "metrics-connections",
            "Open connections and upgrades answered with 101 are counted over all workers",
            "ws_connections_open +5, then back; ws_connections_accepted_total +5",
            &COUNTERS,
            counted,
        )
        .only_when_started(),
    ]
}

fn many(site: &Site<'_>) -> Verdict {
    let mut sockets = (0..MANY)
        .map(|_| open(site))
        .collect::<Result<Vec<_>, _>>()?;
    for (number, socket) in sockets.iter_mut().enumerate() {
        answers(site, socket).map_err(|seen| format!("connection {number}: {seen}"))?;
    }
    Ok(format!("{MANY} answers"))
}

fn slow_upgrade(site: &Site<'_>) -> Verdict {
    let mut slow = Vec::new();
    for _ in 0..20 {
        let error = |error: std::io::Error| format!("cannot connect: {error}");
        let mut stream = TcpStream::connect(site.address).map_err(error)?;
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: ")
            .map_err(error)?;
        slow.push(stream);
    }
    let mut socket = open(site)?;
    answers(site, &mut socket)?;
    Ok("an answer".to_owned())
}

/// The metrics once nothing is open any more: what an earlier case closed may be counted a little later.
fn at_rest(site: &Site<'_>) -> Result<f64, String> {
    let gauge = |now: &plimsoll_host::http::Metrics| now.get(OPEN, &[]);
    let (metrics, rests) = site.metrics_within(COUNTED_WITHIN, |now| gauge(now) == Some(0.0))?;
    if rests {
        return Ok(metrics.get(ACCEPTED, &[]).unwrap_or_default());
    }
    let open = gauge(&metrics).unwrap_or_default();
    Err(format!("{OPEN} is {open} without a connection"))
}

/// Waits until this many are open.
fn until_open(site: &Site<'_>, count: f64) -> Result<f64, String> {
    let (metrics, reached) =
        site.metrics_within(COUNTED_WITHIN, |now| now.get(OPEN, &[]) == Some(count))?;
    if reached {
        return Ok(metrics.get(ACCEPTED, &[]).unwrap_or_default());
    }
    let open = metrics.get(OPEN, &[]).unwrap_or_default();
    Err(format!("{OPEN} is {open}, not {count}"))
}

fn vanished(site: &Site<'_>) -> Verdict {
    at_rest(site)?;
    let mut stays = open(site)?;
    let sockets = (0..20).map(|_| open(site)).collect::<Result<Vec<_>, _>>()?;
    until_open(site, 21.0)?;
    for socket in sockets {
        socket.vanish();
    }
    // The target may see some of them with its next write only; these must not keep it.
    thread::sleep(Duration::from_millis(50));
    answers(site, &mut stays)?;
    until_open(site, 1.0)?;
    Ok("20 vanished, and the gauge came back".to_owned())
}

fn counted(site: &Site<'_>) -> Verdict {
    let before = at_rest(site)?;
    let sockets = (0..5).map(|_| open(site)).collect::<Result<Vec<_>, _>>()?;
    let accepted = until_open(site, 5.0)? - before;
    for socket in sockets {
        socket.close()?;
    }
    until_open(site, 0.0)?;
    let seen = format!("{OPEN} +5, then 0; {ACCEPTED} {accepted:+}");
    if accepted == 5.0 { Ok(seen) } else { Err(seen) }
}
