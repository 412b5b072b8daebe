//! Requests whose end, or whose meaning, two readers could see differently. Each is refused: what one reader takes for a
//! body, another takes for a request.

use std::time::Duration;

use plimsoll_conformance::Verdict;

use super::answer::Asked;
use super::exchange::{Exchange, host_line, request, sum};
use super::offer::{Offer, Route};
use super::refusal::refused;
use super::routes::host;
use super::talk::{Came, Line, PATIENCE};
use super::{Case, Site, case};

const EXPECTED: &str = "4xx, 5xx or close, never 200 or two answers";

/// A connection that ends must have ended by then.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// The body of these requests.
const BODY: &[u8] = b"hello";

pub(super) fn cases(_: &Offer) -> Vec<Case> {
    vec![
        broken(
            "framing-length-and-chunked",
            "A request with both Content-Length and Transfer-Encoding is refused",
            |site| {
                let (right, wrong) = both(site);
                refused(site, &right, wrong.request())
            },
        ),
        case(
            "framing-length-and-chunked-once",
            "A request with both Content-Length and Transfer-Encoding is the last on its connection",
            "one answer at most, and the connection closes",
            |site| {
                let (right, wrong) = both(site);
                Line::open(site)?.ask(&right)?;
                once(site, wrong.request())
            },
        ),
        broken(
            "framing-two-content-lengths",
            "A request with two different lengths is refused",
            two_lengths,
        ),
        broken(
            "framing-content-length-plus",
            "A length with a plus sign is refused",
            |site| of_length(site, "Content-Length: +5"),
        ),
        broken(
            "framing-content-length-minus",
            "A negative length is refused",
            |site| of_length(site, "Content-Length: -1"),
        ),
        broken(
            "framing-unknown-coding",
            "A transfer coding that nobody knows is refused",
            unknown_coding,
        ),
        broken(
            "framing-space-before-colon",
            "A space between a field's name and its colon is refused",
            |site| of_length(site, "Content-Length : 5"),
        ),
        broken(
            "framing-no-host",
            "A request of HTTP/1.1 without Host is refused",
            |site| of_get(site, "GET / HTTP/1.1", &["X-Host: nobody"]),
        ),
        broken(
            "framing-unknown-version",
            "A version that nobody knows is refused",
            |site| of_get(site, "GET / HTTP/3.7", &[&host_line(&host(site))]),
        ),
    ]
}

fn broken(
    id: &'static str,
    title: &'static str,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    case(id, title, EXPECTED, run)
}

/// A request with a body: to `/sum`, or to the root of a target that has no sums.
fn carrier(site: &Site<'_>, fields: &[&str], carried: &[u8]) -> Exchange {
    let host = host(site);
    let (start, answer) = if site.suite.offer.has(Route::Sum) {
        ("POST /sum HTTP/1.1", sum(BODY))
    } else {
        ("GET / HTTP/1.1", "ok".to_owned())
    };
    let host_line = host_line(&host);
    let fields: Vec<&str> = [&*host_line]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    Exchange::page(&host, "/", answer)
        .named(start)
        .sent_as(request(start, &fields, carried))
}

/// A request that looks like the end of a body, or the other way round.
fn inner(site: &Site<'_>) -> Vec<u8> {
    Exchange::root(&host(site)).request().to_vec()
}

/// Refused with this line in place of the right length.
fn of_length(site: &Site<'_>, line: &str) -> Verdict {
    let right = carrier(site, &["Content-Length: 5"], BODY);
    let wrong = carrier(site, &[line], BODY);
    refused(site, &right, wrong.request())
}

/// A chunked request, and one that has a length, too. By the length all is one body; by the chunks it ends at once, and a
/// second request follows.
fn both(site: &Site<'_>) -> (Exchange, Exchange) {
    let chunked = "Transfer-Encoding: chunked";
    let right = carrier(site, &[chunked], b"5\r\nhello\r\n0\r\n\r\n");
    let carried = [b"0\r\n\r\n".to_vec(), inner(site)].concat();
    let length = format!("Content-Length: {}", carried.len());
    (right, carrier(site, &[&length, chunked], &carried))
}

/// Passes when this gets one answer, whatever it is, or none, and then the connection closes. RFC 9112 lets a server read
/// the chunks, but not another request behind them.
fn once(site: &Site<'_>, request: &[u8]) -> Verdict {
    let mut line = Line::open(site)?;
    line.send_what_may_be_refused(request);
    match line.next_within(Asked::Other, PATIENCE)? {
        Came::End | Came::Reset => Ok("the connection closed".to_owned()),
        Came::Nothing => Err("neither an answer nor a close".to_owned()),
        Came::Answer(answer) => {
            line.expect_end(CLOSED_WITHIN)
                .map_err(|seen| format!("{}, then {seen}", answer.describe()))?;
            Ok(format!("{} and close", answer.describe()))
        }
    }
}

/// By the first length a second request follows; by the second all is one body.
fn two_lengths(site: &Site<'_>) -> Verdict {
    let right = carrier(site, &["Content-Length: 5"], BODY);
    let carried = [BODY.to_vec(), inner(site)].concat();
    let longer = format!("Content-Length: {}", carried.len());
    let wrong = carrier(site, &["Content-Length: 5", &longer], &carried);
    refused(site, &right, wrong.request())
}

/// Nobody knows where this body ends.
fn unknown_coding(site: &Site<'_>) -> Verdict {
    let right = carrier(
        site,
        &["Transfer-Encoding: chunked"],
        b"5\r\nhello\r\n0\r\n\r\n",
    );
    let wrong = carrier(site, &["Transfer-Encoding: plimsoll"], &inner(site));
    refused(site, &right, wrong.request())
}

/// Refused with this head in place of the right one.
fn of_get(site: &Site<'_>, start: &str, fields: &[&str]) -> Verdict {
    let right = Exchange::root(&host(site));
    refused(site, &right, &request(start, fields, b""))
}
