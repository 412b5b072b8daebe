//! `POST /sum`: the checksum of a body, of any length up to the limit.

use std::thread;

use plimsoll_conformance::Verdict;

use super::answer::Asked;
use super::exchange::{Exchange, body};
use super::offer::{LARGEST, Offer, Route};
use super::routes::host;
use super::setup::SHORT_BODIES;
use super::talk::{Came, Line, PATIENCE};
use super::{Case, Site, case};

/// The longest body of [`SHORT_BODIES`].
const SHORT: usize = 4096;

/// Connections that ask at a time.
const CLIENTS: u64 = 8;

/// Requests of each.
const REQUESTS: u64 = 20;

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    if !offer.has(Route::Sum) {
        return Vec::new();
    }
    vec![
        case(
            "routes-sum",
            "POST /sum answers the CRC-32 of the body and its length",
            "status 200, text/plain, the right sum of 1 B to 100,000 B",
            |site| sums(site, &[1, 9, 1024, 65_536, 100_000]),
        ),
        case(
            "routes-sum-empty",
            "The sum of no bytes is 00000000 0",
            "status 200, 00000000 0",
            |site| sums(site, &[0]),
        ),
        case(
            "routes-sum-largest",
            "A body of MAX_BODY_BYTES is taken",
            "status 200, the right sum of 1 MiB",
            |site| sums(site, &[LARGEST]),
        ),
        case(
            "routes-sum-apart",
            "Each client gets the sum of its own body",
            "the right sums, on 8 connections at once",
            apart,
        ),
        case(
            "routes-sum-over-the-limit",
            "A body over MAX_BODY_BYTES, 1 MiB by default, gets 413, or the connection closes",
            "413 or close for 1 MiB and a byte",
            |site| too_long(site, &Exchange::sum(&host(site), &body(LARGEST + 1, 0))),
        ),
        case(
            "routes-sum-limit",
            "MAX_BODY_BYTES sets the limit",
            "with MAX_BODY_BYTES=4096: 200 for 4,096 B, 413 or close for 4,097 B",
            limit,
        )
        .in_setup(&SHORT_BODIES),
        case(
            "routes-sum-limit-chunked",
            "MAX_BODY_BYTES holds for a chunked body, too",
            "with MAX_BODY_BYTES=4096: 200 for 4,096 B, 413 or close for 4,097 B, in chunks of 1,000 B",
            limit_in_chunks,
        )
        .in_setup(&SHORT_BODIES),
    ]
}

fn sums(site: &Site<'_>, lengths: &[usize]) -> Verdict {
    let mut line = Line::open(site)?;
    let mut seen = Vec::new();
    for (number, length) in (0..).zip(lengths) {
        let exchange = Exchange::sum(&host(site), &body(*length, number));
        let answer = line.ask(&exchange.of_type("text/plain"))?;
        seen.push(String::from_utf8_lossy(&answer.body).into_owned());
    }
    Ok(seen.join(", "))
}

fn apart(site: &Site<'_>) -> Verdict {
    let one = |client: u64| -> Result<(), String> {
        let mut line = Line::open(site)?;
        for number in 0..REQUESTS {
            let number = client * REQUESTS + number;
            line.ask(&Exchange::sum(&host(site), &body(1024, number)))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || one(client)))
            .collect();
        let ended = clients.into_iter().map(|client| {
            let ended = client.join();
            ended.unwrap_or_else(|_| Err("a client of the checker failed".to_owned()))
        });
        ended.collect::<Result<Vec<()>, String>>()
    })?;
    Ok(format!("{} sums", CLIENTS * REQUESTS))
}

fn limit(site: &Site<'_>) -> Verdict {
    let host = host(site);
    Line::open(site)?.ask(&Exchange::sum(&host, &body(SHORT, 1)))?;
    too_long(site, &Exchange::sum(&host, &body(SHORT + 1, 2)))
}

fn limit_in_chunks(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let chunked = |length| Exchange::sum_in_chunks(&host, &body(length, 3), &[1000; 4]);
    Line::open(site)?.ask(&chunked(SHORT))?;
    too_long(site, &chunked(SHORT + 1))
}

/// Passes when this is answered 413, or the connection ends.
fn too_long(site: &Site<'_>, exchange: &Exchange) -> Verdict {
    let mut line = Line::open(site)?;
    line.send_what_may_be_refused(exchange.request());
    match line.next_within(Asked::Other, PATIENCE)? {
        Came::Answer(answer) if answer.status == 413 => Ok("status 413".to_owned()),
        Came::Answer(answer) => Err(exchange.told(&answer.describe())),
        Came::End | Came::Reset => Ok("the connection closed".to_owned()),
        Came::Nothing => Err(exchange.told("neither an answer nor a close")),
    }
}
