//! Connections persist, until one side says that they end.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::Verdict;

use super::exchange::{Exchange, body, request};
use super::offer::{Offer, Route};
use super::routes::{host, one_of_each};
use super::setup::{IDLE, IN_TURN};
use super::talk::Line;
use super::{Case, Site, case};

/// Requests on one connection.
const MANY: usize = 10_000;

/// A connection that ends must have ended by then.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Requests in turn.
const IN_A_ROW: usize = 50;

/// A segment that waits for the acknowledgement of another waits 40 ms.
const STALL: Duration = Duration::from_millis(35);

/// A machine that is busy delays an answer now and then; a server that stalls does so again and again.
const STALLS_MAX: usize = 4;

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    let mut cases = vec![
        Case::new(
            "keep-alive-many",
            "A connection has no limit on requests",
            "10,000 answers to GET / on one connection",
            &IN_TURN,
            many,
        ),
        case(
            "keep-alive-close",
            "A request with Connection: close is answered, and the connection closes within 1 s",
            "the answer, and the end within 1 s; close in any case",
            close,
        ),
        case(
            "keep-alive-http-1-0",
            "A request of HTTP/1.0 is answered, and the connection closes within 1 s",
            "the answer, and the end within 1 s",
            http_1_0,
        ),
        Case::new(
            "keep-alive-idle",
            "An idle connection stays open",
            "an answer on a connection that was idle for 10 s",
            &IDLE,
            idle,
        )
        .should(),
        Case::new(
            "keep-alive-no-stall",
            "An answer does not wait for the acknowledgement of its first part",
            "of 50 requests in turn to each route, at most 4 answers after 35 ms or more",
            &IN_TURN,
            no_stall,
        )
        .failed_by_delay_of(STALL)
        .should(),
    ];
    if offer.has(Route::Sum) {
        cases.push(case(
            "keep-alive-bodies",
            "Each body ends where its length says, and the next request begins there",
            "the answers to 200 requests on one connection, with bodies and without in turn",
            bodies,
        ));
    }
    cases
}

fn many(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let root = Exchange::root(&host(site));
    for number in 1..=MANY {
        let answer = line.ask(&root);
        let answer = answer.map_err(|seen| format!("request {number}: {seen}"))?;
        if answer.announces_close() {
            return Err(format!("answer {number} says that the connection closes"));
        }
    }
    Ok(format!("{MANY} answers"))
}

/// Passes when this is answered and then the connection ends.
fn answered_and_closed(site: &Site<'_>, exchange: &Exchange) -> Result<Duration, String> {
    let mut line = Line::open(site)?;
    line.ask(exchange)?;
    line.expect_end(CLOSED_WITHIN)
        .map_err(|seen| exchange.told(&seen))
}

fn close(site: &Site<'_>) -> Verdict {
    let mut slowest = Duration::ZERO;
    for exchange in one_of_each(site) {
        for field in ["Connection: close", "connection: Close"] {
            let took = answered_and_closed(site, &exchange.clone().with(&[field]))?;
            slowest = slowest.max(took);
        }
    }
    Ok(format!("closed within {} ms", slowest.as_millis()))
}

fn http_1_0(site: &Site<'_>) -> Verdict {
    let old = request("GET / HTTP/1.0", &[], b"");
    let root = Exchange::root(&host(site))
        .named("GET / HTTP/1.0")
        .sent_as(old);
    let took = answered_and_closed(site, &root)?;
    Ok(format!("closed within {} ms", took.as_millis()))
}

fn idle(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let root = Exchange::root(&host(site));
    line.ask(&root)?;
    thread::sleep(site.suite.idle);
    line.ask(&root)?;
    Ok("an answer".to_owned())
}

fn no_stall(site: &Site<'_>) -> Verdict {
    let mut slowest = Duration::ZERO;
    for exchange in one_of_each(site) {
        let mut line = Line::open(site)?;
        let mut stalls = 0;
        for _ in 0..IN_A_ROW {
            let begun = Instant::now();
            line.ask(&exchange)?;
            let took = begun.elapsed();
            slowest = slowest.max(took);
            stalls += usize::from(took >= STALL);
            if stalls > STALLS_MAX {
                let last = format!(
                    "{stalls} answers were slow, the last took {} ms",
                    took.as_millis()
                );
                return Err(exchange.told(&last));
            }
        }
    }
    Ok(format!("the slowest took {} us", slowest.as_micros()))
}

fn bodies(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let mut line = Line::open(site)?;
    for number in 0..100 {
        line.ask(&Exchange::sum(&host, &body(number * 37, number as u64)))?;
        line.ask(&Exchange::root(&host))?;
    }
    Ok("200 answers".to_owned())
}
