//! Several requests in one write: each is answered, in their order.

use std::time::Duration;

use plimsoll_conformance::Verdict;

use super::exchange::{Exchange, body};
use super::offer::{LARGEST, Offer, Route, Sizes};
use super::routes::{host, pages};
use super::talk::Line;
use super::{Case, Site, case};

/// Requests in one write.
const TOGETHER: usize = 16;

/// Behind the last answer nothing comes for this long.
const SILENCE: Duration = Duration::from_millis(100);

/// A connection that ends must have ended by then.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    let mut cases = vec![
        case(
            "pipelining-sixteen",
            "Requests that come in one write are answered in their order",
            "the answers to 16 GETs in one write, in order, and no more",
            sixteen,
        ),
        case(
            "pipelining-close",
            "A request with Connection: close is the last that is answered",
            "of five requests in one write, of which the third says close: three answers, then the end within 1 s",
            close_in_the_third,
        ),
    ];
    if offer.has(Route::Bytes) {
        cases.push(case(
            "pipelining-bytes",
            "Answers of different lengths come in the order of their requests",
            "16 answers of /bytes in order, from /bytes/1 to /bytes/16 or of the sizes that there are",
            lengths,
        ));
    }
    if offer.has(Route::Sum) {
        cases.push(case(
            "pipelining-post",
            "A request behind a body in the same write is answered",
            "the answers to GET, POST and GET in one write, in order",
            get_post_get,
        ));
    }
    cases
}

/// Sends all in one write; each answer must come, in order, and nothing else.
fn together(site: &Site<'_>, exchanges: &[Exchange]) -> Verdict {
    let mut line = Line::open(site)?;
    let all: Vec<&[u8]> = exchanges.iter().map(Exchange::request).collect();
    line.send(&all.concat())?;
    for (number, exchange) in (1..).zip(exchanges) {
        line.expect(exchange)
            .map_err(|seen| format!("answer {number}: {seen}"))?;
    }
    line.expect_silence(SILENCE)?;
    Ok(format!("{} answers", exchanges.len()))
}

fn sixteen(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let mut pages = pages(site);
    // What is answered in the same way would not show a wrong order.
    pages.push(Exchange::unknown(&host, "/nothing"));
    let in_turn = pages.iter().cycle().take(TOGETHER);
    together(site, &in_turn.cloned().collect::<Vec<_>>())
}

fn lengths(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let sizes: Vec<usize> = match &site.suite.offer.sizes {
        Sizes::All => (1..=TOGETHER).collect(),
        Sizes::Files(files) => {
            // Without the largest: 16 MiB would be no case of order.
            let small = files.iter().copied().filter(|size| *size < LARGEST);
            small.cycle().take(TOGETHER).collect()
        }
    };
    let exchanges = sizes.iter().map(|size| Exchange::bytes(&host, *size));
    together(site, &exchanges.collect::<Vec<_>>())
}

fn get_post_get(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let first = Exchange::root(&host);
    // Another one than the first, if there is one: a wrong order is seen by it.
    let last = pages(site).pop().unwrap_or_else(|| first.clone());
    for len in [1, 100, 5000] {
        let post = Exchange::sum(&host, &body(len, 7));
        together(site, &[first.clone(), post, last.clone()])?;
    }
    Ok("three answers, for bodies of 1 B to 5,000 B".to_owned())
}

fn close_in_the_third(site: &Site<'_>) -> Verdict {
    let root = Exchange::root(&host(site));
    let last = root.clone().with(&["Connection: close"]);
    let requests = [&root, &root, &last, &root, &root].map(Exchange::request);
    let mut line = Line::open(site)?;
    line.send(&requests.concat())?;
    for number in 1..=3 {
        line.expect(&root)
            .map_err(|seen| format!("answer {number}: {seen}"))?;
    }
    let took = line.expect_end(CLOSED_WITHIN)?;
    Ok(format!(
        "three answers, and the end after {} ms",
        took.as_millis()
    ))
}
