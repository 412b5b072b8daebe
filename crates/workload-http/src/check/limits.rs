//! What a server bounds: heads that are too large, requests without an end, clients that do not read or that vanish.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::Verdict;
use plimsoll_conformance::socket::connect;
use plimsoll_host::http::Metrics;

use super::answer::Asked;
use super::exchange::{Exchange, body, host_line, request};
use super::offer::{Offer, Route};
use super::routes::host;
use super::setup::{DEAF, IN_TURN, UNFINISHED};
use super::talk::{Came, Line, PATIENCE};
use super::{Case, Site, case};

/// A head of one such field is too large.
const LARGE_BYTES: usize = 64 * 1024;

/// Fields that are too many.
const MANY_FIELDS: usize = 10_000;

/// Clients in the middle of a request.
const UNFINISHED_CLIENTS: usize = 200;

/// A target has accepted them by then.
const ACCEPTED_WITHIN: Duration = Duration::from_millis(300);

/// Others are served within this time.
const SERVED_WITHIN: Duration = Duration::from_secs(1);

/// A target whose own limit is the same closes a little later. In a whole minute, shorter delays are usual.
const CLOSE_MARGIN: Duration = Duration::from_secs(5);

/// Between two bytes of a slow client, and how many it sends.
const SLOW_PAUSE: Duration = Duration::from_millis(10);
const SLOW_BYTES: usize = 300;

/// Clients that do not read.
const DEAF_CLIENTS: usize = 50;

/// What they ask for, again and again.
const DEAF_ANSWER_BYTES: usize = 65_536;

/// Requests of each client, and how many of them it writes at once. A server that keeps every answer would need 300 MiB
/// more for each hundred.
const DEAF_REQUESTS: usize = 2000;
const DEAF_AT_ONCE: usize = 100;

/// Between two looks at what a server took, and what it needs for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A server that has taken nothing for this long takes nothing more. A busy machine makes it slow: it must not pass by that.
const DEAF_QUIET: Duration = Duration::from_secs(1);

/// However slow it is, the case ends after this time.
const DEAF_MOST: Duration = Duration::from_secs(20);

/// More memory than this is not bounded: 5 MiB a client. A server that stops reading has read 64 KiB at once before, which
/// are a thousand requests. Node.js 20 needed 145 MiB for those, however many more were asked.
const DEAF_BYTES_MAX: u64 = 256 << 20;

/// Clients that vanish, of each kind.
const VANISHED: usize = 20;

const OPEN: &str = "http_connections_open";

/// A gauge may follow what it counts a little later.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    let mut cases = of_heads();
    if offer.has(Route::Sum) {
        cases.extend(of_bodies());
    }
    if offer.has_bytes(DEAF_ANSWER_BYTES) {
        cases.push(
            Case::new(
                "limits-deaf-clients",
                "The memory that clients take who do not read is bounded",
                "at most 256 MiB more for 50 clients that ask for 64 KiB up to 2,000 times; an answer to another within 1 s",
                &DEAF,
                deaf,
            )
            .only_when_started(),
        );
    }
    cases.push(Case::new(
        "limits-vanished",
        "Clients that vanish in the middle of a request or an answer disturb nobody else, and are no longer open",
        "an answer within 1 s; the gauge of open connections, where there is one, comes back",
        &IN_TURN,
        vanished,
    ));
    cases
}

fn of_heads() -> Vec<Case> {
    vec![
        case(
            "limits-large-field",
            "A head of 64 KiB is refused",
            "4xx or close",
            |site| too_large(site, &[&format!("X-Large: {}", "a".repeat(LARGE_BYTES))]),
        ),
        case(
            "limits-many-fields",
            "A head of 10,000 fields is refused",
            "4xx or close",
            |site| {
                let lines: Vec<String> = (0..MANY_FIELDS).map(|n| format!("X-{n}: {n}")).collect();
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                too_large(site, &lines)
            },
        ),
        Case::new(
            "limits-unfinished-heads",
            "Clients in the middle of a head delay nobody else",
            "an answer within 1 s beside 200 heads without an end",
            &IN_TURN,
            |site| beside_unfinished(site, &unfinished_head(site)),
        )
        .failed_by_delay_of(SERVED_WITHIN),
        Case::new(
            "limits-unfinished-heads-closed",
            "A head that stays unfinished is closed within 60 s",
            "the end of each of 200 connections within 60 s",
            &UNFINISHED,
            |site| closed(site, &unfinished_head(site)),
        )
        .failed_by_delay_of(CLOSE_MARGIN)
        .should()
        .slow(),
    ]
}

fn of_bodies() -> Vec<Case> {
    vec![
        Case::new(
            "limits-unfinished-bodies",
            "Clients in the middle of a body delay nobody else",
            "an answer within 1 s beside 200 bodies without an end",
            &IN_TURN,
            |site| beside_unfinished(site, &unfinished_body(site)),
        )
        .failed_by_delay_of(SERVED_WITHIN),
        Case::new(
            "limits-unfinished-bodies-closed",
            "A body that stays unfinished is closed within 60 s",
            "the end of each of 200 connections within 60 s",
            &UNFINISHED,
            |site| closed(site, &unfinished_body(site)),
        )
        .failed_by_delay_of(CLOSE_MARGIN)
        .should()
        .slow(),
        case(
            "limits-slow-body",
            "A body may come at a byte per 10 ms",
            "the right sum of 300 B in 3 s",
            slow_body,
        ),
    ]
}

/// Passes when a GET with these fields is refused. Without them it must be answered: a server that refuses both refuses
/// for another reason.
fn too_large(site: &Site<'_>, fields: &[&str]) -> Verdict {
    let right = Exchange::root(&host(site));
    Line::open(site)?.ask(&right)?;
    let mut line = Line::open(site)?;
    line.send_what_may_be_refused(right.clone().with(fields).request());
    let seen = match line.next_within(Asked::Other, PATIENCE)? {
        Came::Answer(answer) if (400..500).contains(&answer.status) => {
            format!("status {}", answer.status)
        }
        Came::Answer(answer) => return Err(answer.describe()),
        Came::End | Came::Reset => "the connection closed".to_owned(),
        Came::Nothing => return Err("neither an answer nor a close".to_owned()),
    };
    // The refusal is of one client.
    Line::open(site)?.ask(&right)?;
    Ok(seen)
}

/// A head without its end.
fn unfinished_head(site: &Site<'_>) -> Vec<u8> {
    let mut head = Exchange::root(&host(site)).request().to_vec();
    head.truncate(head.len() - 2);
    head
}

/// Half a body.
fn unfinished_body(site: &Site<'_>) -> Vec<u8> {
    let fields = [&*host_line(&host(site)), "Content-Length: 1000"];
    request("POST /sum HTTP/1.1", &fields, &body(500, 1))
}

/// Connections on which this was sent.
fn unfinished(site: &Site<'_>, bytes: &[u8]) -> Result<Vec<Line>, String> {
    let open = |_| {
        let mut line = Line::open(site)?;
        line.send(bytes).map(|()| line)
    };
    (0..UNFINISHED_CLIENTS).map(open).collect()
}

fn beside_unfinished(site: &Site<'_>, bytes: &[u8]) -> Verdict {
    let held = unfinished(site, bytes)?;
    // Until all are accepted: a client that meets a full queue tries again after a second.
    thread::sleep(ACCEPTED_WITHIN);
    let served = served(site);
    drop(held);
    served
}

/// Passes when another client is served at once: on a new connection, and again on the same.
fn served(site: &Site<'_>) -> Verdict {
    let begun = Instant::now();
    let mut line = Line::open(site)?;
    let root = Exchange::root(&host(site));
    line.ask(&root)?;
    line.ask(&root)?;
    let took = begun.elapsed();
    let seen = format!("two answers after {} ms", took.as_millis());
    if took <= SERVED_WITHIN {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn closed(site: &Site<'_>, bytes: &[u8]) -> Verdict {
    let begun = Instant::now();
    let limit = site.suite.unfinished;
    let mut open = 0;
    for mut line in unfinished(site, bytes)? {
        open += usize::from(!ends(&mut line, begun + limit + CLOSE_MARGIN)?);
    }
    if open == 0 {
        let took = begun.elapsed().as_secs();
        Ok(format!("all closed after {took} s"))
    } else {
        Err(format!("{open} are still open after {} s", limit.as_secs()))
    }
}

/// Whether the connection ends before the deadline. An answer before the end says why.
fn ends(line: &mut Line, deadline: Instant) -> Result<bool, String> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match line.next_within(Asked::Other, left)? {
            Came::Answer(answer) if answer.status < 400 => return Err(answer.describe()),
            Came::Answer(_) => {}
            Came::End | Came::Reset => return Ok(true),
            Came::Nothing => return Ok(false),
        }
    }
}

fn slow_body(site: &Site<'_>) -> Verdict {
    let exchange = Exchange::sum(&host(site), &body(SLOW_BYTES, 7));
    let bytes = exchange.request();
    let (head, body) = bytes.split_at(bytes.len() - SLOW_BYTES);
    let mut line = Line::open(site)?;
    line.send(head)?;
    for byte in body.chunks(1) {
        thread::sleep(SLOW_PAUSE);
        line.send(byte)?;
    }
    let answer = line.expect(&exchange)?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

/// A client that writes and does not read.
struct Deaf {
    stream: TcpStream,
    /// The bytes of requests that the server took.
    taken: usize,
}

impl Deaf {
    fn to(site: &Site<'_>) -> Result<Self, String> {
        // With small buffers on this side the server feels after some ten kilobytes that nobody reads.
        let stream = connect(site.address, Some(2048))?;
        let set = stream.set_nonblocking(true);
        set.map_err(|error| format!("the connection is gone: {error}"))?;
        Ok(Self { stream, taken: 0 })
    }

    /// Writes what the server takes of these requests, each of this length; false if the connection is gone.
    fn ask(&mut self, requests: &[u8], len: usize) -> bool {
        let mut at = self.taken % len;
        while at < requests.len() && self.taken < DEAF_REQUESTS * len {
            match self.stream.write(&requests[at..]) {
                Ok(n) => {
                    at += n;
                    self.taken += n;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        true
    }
}

fn deaf(site: &Site<'_>) -> Verdict {
    let server = site.server()?;
    let memory = || server.memory_bytes().ok_or("its memory is not known");
    let exchange = Exchange::bytes(&host(site), DEAF_ANSWER_BYTES);
    Line::open(site)?.ask(&exchange)?;
    let before = memory()?;
    let len = exchange.request().len();
    let requests = exchange.request().repeat(DEAF_AT_ONCE);
    let clients = (0..DEAF_CLIENTS).map(|_| Deaf::to(site));
    let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let (mut taken, mut most, mut moved) = (0, 0, began);
    while moved.elapsed() < DEAF_QUIET && began.elapsed() < DEAF_MOST {
        // A server may also close such a connection.
        clients.retain_mut(|client| client.ask(&requests, len));
        thread::sleep(LOOK_EVERY);
        let more = memory()?.saturating_sub(before);
        let now_taken = clients.iter().map(|client| client.taken).sum();
        if more > DEAF_BYTES_MAX {
            let asked = now_taken / len;
            return Err(format!("{} MiB more after {asked} requests", more >> 20));
        }
        // What a kernel or a collector of garbage does meanwhile is little.
        if now_taken > taken || more > most + (1 << 20) {
            moved = Instant::now();
        }
        (taken, most) = (taken.max(now_taken), most.max(more));
    }
    let served = served(site)?;
    Ok(format!("{} MiB more; {served}", most >> 20))
}

fn vanished(site: &Site<'_>) -> Verdict {
    let gauge = || -> Result<Option<f64>, String> {
        let there = site.suite.offer.metrics;
        let metrics = there.then(|| site.metrics()).transpose()?;
        Ok(metrics.and_then(|metrics| metrics.get(OPEN, &[])))
    };
    let before = gauge()?;
    let mut beginnings = vec![unfinished_head(site)];
    if site.suite.offer.has(Route::Sum) {
        beginnings.push(unfinished_body(site));
    }
    if site.suite.offer.has_bytes(super::LARGEST) {
        // Who closes with bytes unread resets the connection.
        beginnings.push(
            Exchange::bytes(&host(site), super::LARGEST)
                .request()
                .to_vec(),
        );
    }
    for bytes in &beginnings {
        let lines = (0..VANISHED).map(|_| {
            let mut line = Line::open(site)?;
            line.send(bytes).map(|()| line)
        });
        let lines = lines.collect::<Result<Vec<Line>, String>>()?;
        thread::sleep(Duration::from_millis(50));
        drop(lines);
    }
    let seen = served(site)?;
    let Some(before) = before else {
        return Ok(seen);
    };
    let reached = |now: &Metrics| now.get(OPEN, &[]).is_some_and(|open| open <= before);
    let (metrics, back) = site.metrics_within(COUNTED_WITHIN, reached)?;
    let open = metrics.get(OPEN, &[]).unwrap_or_default();
    let seen = format!("{seen}; {OPEN} {before}, then {open}");
    if back { Ok(seen) } else { Err(seen) }
}
