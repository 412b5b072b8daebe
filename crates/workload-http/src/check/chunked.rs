//! Bodies in chunks, and `Expect: 100-continue`.

use plimsoll_conformance::{AT_ONCE, Verdict};

use super::answer::Asked;
use super::exchange::{Exchange, body, in_chunks};
use super::offer::{Offer, Route};
use super::refusal::{only_refused, refused};
use super::routes::host;
use super::talk::{Came, Line};
use super::{Case, Site, case};

const CHUNKED: &str = "Transfer-Encoding: chunked";

/// What is no size of a chunk.
const BAD_SIZES: [&str; 6] = ["", "x", "5x", "-5", "+5", "0x5"];

/// A size that is 5 to a reader that loses the bits above 64.
const HUGE_SIZE: &str = "10000000000000005";

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    if !offer.has(Route::Sum) {
        return Vec::new();
    }
    [well_formed(), refusals(), expectations()]
        .into_iter()
        .flatten()
        .collect()
}

fn well_formed() -> Vec<Case> {
    vec![
        case(
            "chunked-one",
            "A body in one chunk is read",
            "the right sum, and GET on the same connection is answered",
            |site| reads(site, &body(1000, 1), &in_chunks(&body(1000, 1), &[])),
        ),
        case(
            "chunked-many",
            "A body in many chunks is read",
            "the right sums of 1,000 chunks of 1 B and of chunks of 1 B to 65,536 B",
            many,
        ),
        case(
            "chunked-empty",
            "A chunked body may be empty",
            "the sum of no bytes",
            |site| reads(site, b"", b"0\r\n\r\n"),
        ),
        case(
            "chunked-size-digits",
            "The size of a chunk is hexadecimal, in upper or lower case, with or without leading zeros",
            "the right sum for the sizes a, A and 000a",
            digits,
        ),
        case(
            "chunked-extension",
            "An extension of a chunk is ignored",
            "the right sum",
            |site| {
                let carried =
                    b"5;name=value\r\nhello\r\n6;other;q=\"a;b\"\r\n world\r\n0;last\r\n\r\n";
                reads(site, b"hello world", carried)
            },
        ),
        case(
            "chunked-trailer",
            "A trailer behind the last chunk is read and ignored",
            "the right sum, and GET on the same connection is answered",
            |site| {
                let carried = b"5\r\nhello\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n";
                reads(site, b"hello", carried)
            },
        ),
    ]
}

fn refusals() -> Vec<Case> {
    const EXPECTED: &str = "4xx, 5xx or close, never 200 or two answers";
    vec![
        case(
            "chunked-bad-size",
            "A size that is no hexadecimal number is refused",
            "4xx, 5xx or close for no digits, x, 5x, -5, +5 and 0x5",
            bad_sizes,
        ),
        case(
            "chunked-huge-size",
            "A size of more than 64 bits is refused",
            EXPECTED,
            |site| chunks_refused(site, chunk(HUGE_SIZE, "\r\n").as_bytes()),
        ),
        case(
            "chunked-no-line-end",
            "A chunk without a line end behind its bytes is refused",
            EXPECTED,
            |site| chunks_refused(site, chunk("5", "xx").as_bytes()),
        ),
        case(
            "chunked-cut-off",
            "A body that is cut off has no sum",
            "4xx, 5xx or close when the client ends in a chunk, and others are answered",
            cut_off,
        ),
    ]
}

fn expectations() -> Vec<Case> {
    vec![
        case(
            "chunked-expect-continue",
            "A client that expects 100 before it sends its body gets it",
            "100 within 500 ms, then the right sum, for a body with a length and one in chunks",
            expect_continue,
        ),
        case(
            "chunked-expect-unawaited",
            "A client that expects 100 need not wait for it",
            "the right sum, behind 100 or without",
            expect_unawaited,
        ),
    ]
}

/// Passes when these bytes are read as this body, and the connection lives.
fn reads(site: &Site<'_>, body: &[u8], carried: &[u8]) -> Verdict {
    let host = host(site);
    let mut line = Line::open(site)?;
    let answer = line.ask(&Exchange::sum_as(&host, &[CHUNKED], carried, body))?;
    line.ask(&Exchange::root(&host))
        .map_err(|seen| format!("behind the chunks: {seen}"))?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

fn many(site: &Site<'_>) -> Verdict {
    let small = body(1000, 2);
    reads(site, &small, &in_chunks(&small, &[1; 999]))?;
    let large = body(150_000, 3);
    reads(
        site,
        &large,
        &in_chunks(&large, &[1, 65_536, 15, 16, 17, 4096, 255, 256]),
    )
}

fn digits(site: &Site<'_>) -> Verdict {
    let mut seen = String::new();
    for size in ["a", "A", "000a"] {
        let carried = format!("{size}\r\n0123456789\r\n0\r\n\r\n");
        seen = reads(site, b"0123456789", carried.as_bytes())
            .map_err(|seen| format!("size {size}: {seen}"))?;
    }
    Ok(seen)
}

/// A chunk of this size with 5 bytes and this behind them, and the last chunk.
fn chunk(size: &str, end: &str) -> String {
    format!("{size}\r\nhello{end}0\r\n\r\n")
}

fn chunks_refused(site: &Site<'_>, carried: &[u8]) -> Verdict {
    let host = host(site);
    let right = Exchange::sum_in_chunks(&host, b"hello", &[]);
    let wrong = Exchange::sum_as(&host, &[CHUNKED], carried, b"hello");
    refused(site, &right, wrong.request())
}

fn bad_sizes(site: &Site<'_>) -> Verdict {
    let mut all = Vec::new();
    for size in BAD_SIZES {
        let seen = chunks_refused(site, chunk(size, "\r\n").as_bytes());
        all.push(seen.map_err(|seen| format!("size {size:?}: {seen}"))?);
    }
    Ok(all.join(", "))
}

fn cut_off(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let mut line = Line::open(site)?;
    let whole = Exchange::sum_in_chunks(&host, b"hello world", &[5]);
    let (sent, _) = whole.request().split_at(whole.request().len() - 10);
    line.send(sent)?;
    line.finish_sending()?;
    let seen = only_refused(&mut line)?;
    Line::open(site)?.ask(&whole)?;
    Ok(seen)
}

/// The same body with a length and in chunks, each as its head and the rest.
fn expecting(site: &Site<'_>) -> [(Exchange, usize); 2] {
    let host = host(site);
    let body = body(3000, 4);
    let both = [
        Exchange::sum(&host, &body),
        Exchange::sum_in_chunks(&host, &body, &[1000; 2]),
    ];
    both.map(|exchange| {
        let exchange = exchange.with(&["Expect: 100-continue"]);
        let head = exchange
            .request()
            .windows(4)
            .position(|four| four == b"\r\n\r\n");
        (exchange, head.map_or(0, |end| end + 4))
    })
}

fn expect_continue(site: &Site<'_>) -> Verdict {
    for (exchange, head_len) in expecting(site) {
        let mut line = Line::open(site)?;
        let (head, rest) = exchange.request().split_at(head_len);
        line.send(head)?;
        match line.next_within(Asked::Other, AT_ONCE)? {
            Came::Answer(answer) if answer.status == 100 => {}
            Came::Answer(answer) => return Err(exchange.told(&answer.describe())),
            Came::End | Came::Reset => return Err(exchange.told("the connection ended")),
            Came::Nothing => {
                let limit = AT_ONCE.as_millis();
                return Err(exchange.told(&format!("no 100 within {limit} ms")));
            }
        }
        line.send(rest)?;
        line.expect(&exchange)?;
    }
    Ok("100, then the sum".to_owned())
}

fn expect_unawaited(site: &Site<'_>) -> Verdict {
    let mut seen = Vec::new();
    for (exchange, _) in expecting(site) {
        let mut line = Line::open(site)?;
        line.send(exchange.request())?;
        let first = line.next_within(Asked::Other, super::talk::PATIENCE)?;
        match first {
            Came::Answer(answer) if answer.status == 100 => {
                line.expect(&exchange)?;
                seen.push("100 and the sum");
            }
            Came::Answer(answer) => {
                exchange.accept(&answer)?;
                seen.push("the sum");
            }
            other => return Err(exchange.told(&format!("{other:?} instead of an answer"))),
        }
    }
    Ok(seen.join(", "))
}
