//! Requests that come in pieces: the pieces make no difference.

use std::thread;
use std::time::Duration;

use plimsoll_conformance::Verdict;

use super::exchange::{Exchange, body};
use super::offer::{Offer, Route};
use super::routes::host;
use super::talk::Line;
use super::{Case, Site, case};

/// Between two pieces: both in one segment would divide nothing.
const PAUSE: Duration = Duration::from_millis(2);

/// Between two bytes, where each comes alone.
const SHORT_PAUSE: Duration = Duration::from_micros(200);

/// Connections that are in the middle of a request at a time, each divided at another place.
const AT_ONCE: usize = 16;

/// The fields of a browser.
const BROWSER: [&str; 12] = [
    "Connection: keep-alive",
    "Cache-Control: max-age=0",
    "Upgrade-Insecure-Requests: 1",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Sec-Fetch-Site: none",
    "Sec-Fetch-Mode: navigate",
    "Sec-Fetch-User: ?1",
    "Sec-Fetch-Dest: document",
    "Accept-Encoding: identity",
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8",
    "Cookie: session=0123456789abcdef; theme=dark",
];

const WITH_TRAILER: &str = "fragments-trailer";

/// What is sent at a time: one request, or several that follow each other.
type Shape = Vec<Exchange>;

/// A shape's name, what it needs, and how it is made.
struct Form {
    id: &'static str,
    title: &'static str,
    needs: Route,
    make: fn(&str) -> Shape,
}

const FORMS: [Form; 9] = [
    Form {
        id: "fragments-get",
        title: "A GET may be divided anywhere",
        needs: Route::Root,
        make: |host| vec![Exchange::root(host)],
    },
    Form {
        id: "fragments-fields",
        title: "A GET with the fields of a browser may be divided anywhere",
        needs: Route::Root,
        make: |host| vec![Exchange::root(host).with(&BROWSER)],
    },
    Form {
        id: "fragments-head",
        title: "A HEAD may be divided anywhere",
        needs: Route::Root,
        make: |host| vec![Exchange::root(host).head()],
    },
    Form {
        id: "fragments-unknown-path",
        title: "A GET of an unknown path with a query may be divided anywhere",
        needs: Route::Root,
        make: |host| vec![Exchange::unknown(host, "/nothing?at=all")],
    },
    Form {
        id: "fragments-pair",
        title: "Two requests in a row may be divided anywhere",
        needs: Route::Bytes,
        make: |host| vec![Exchange::bytes(host, 64), Exchange::root(host)],
    },
    Form {
        id: "fragments-json",
        title: "A GET of an item may be divided anywhere",
        needs: Route::Json,
        make: |host| vec![Exchange::json(host, 4711)],
    },
    Form {
        id: "fragments-length",
        title: "A POST with a length may be divided anywhere, in its body too",
        needs: Route::Sum,
        make: |host| vec![Exchange::sum(host, &body(40, 1))],
    },
    Form {
        id: "fragments-chunked",
        title: "A POST in chunks may be divided anywhere, in the sizes too",
        needs: Route::Sum,
        make: |host| vec![Exchange::sum_in_chunks(host, &body(40, 2), &[1, 16, 20])],
    },
    Form {
        id: WITH_TRAILER,
        title: "A POST in chunks with extensions and a trailer, and a GET behind it, may be divided anywhere",
        needs: Route::Sum,
        make: with_trailer,
    },
];

fn with_trailer(host: &str) -> Shape {
    let carried = b"5;name=value\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n";
    let chunked = ["Transfer-Encoding: chunked"];
    vec![
        Exchange::sum_as(host, &chunked, carried, b"hello"),
        Exchange::root(host),
    ]
}

/// The shapes of request that the target can answer.
fn forms(offer: &Offer) -> impl Iterator<Item = &'static Form> {
    let has = |form: &&Form| form.needs == Route::Root || offer.has(form.needs);
    FORMS.iter().filter(has)
}

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    let divided = forms(offer).map(|form| {
        case(
            form.id,
            form.title,
            "the right answer, divided behind each of its bytes",
            |site| at_each_byte(site, &(form.make)(&host(site))),
        )
    });
    let mut cases: Vec<Case> = divided.collect();
    cases.push(case(
        "fragments-byte-by-byte",
        "Bytes that come one by one are understood",
        "the right answer to each shape of request without a trailer, on one connection",
        byte_by_byte,
    ));
    cases
}

fn bytes_of(shape: &Shape) -> Vec<u8> {
    let all: Vec<&[u8]> = shape.iter().map(Exchange::request).collect();
    all.concat()
}

fn at_each_byte(site: &Site<'_>, shape: &Shape) -> Verdict {
    let bytes = bytes_of(shape);
    let mut lines = (0..AT_ONCE)
        .map(|_| Line::open(site))
        .collect::<Result<Vec<_>, _>>()?;
    let places: Vec<usize> = (1..bytes.len()).collect();
    for places in places.chunks(AT_ONCE) {
        for (line, place) in lines.iter_mut().zip(places) {
            line.send(&bytes[..*place])?;
        }
        thread::sleep(PAUSE);
        for (line, place) in lines.iter_mut().zip(places) {
            line.send(&bytes[*place..])?;
        }
        for (line, place) in lines.iter_mut().zip(places) {
            for exchange in shape {
                line.expect(exchange)
                    .map_err(|seen| format!("divided behind {place} bytes: {seen}"))?;
            }
        }
    }
    Ok(format!("{} places", places.len()))
}

fn byte_by_byte(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let mut shapes = 0;
    let forms = forms(&site.suite.offer);
    // Several servers read no trailers. That has cases of its own and must not hide what bytes one by one do.
    for form in forms.filter(|form| form.id != WITH_TRAILER) {
        let shape = (form.make)(&host(site));
        for byte in bytes_of(&shape) {
            line.send(&[byte])?;
            thread::sleep(SHORT_PAUSE);
        }
        for exchange in &shape {
            line.expect(exchange)
                .map_err(|seen| format!("{}: {seen}", form.id))?;
        }
        shapes += 1;
    }
    Ok(format!("{shapes} shapes"))
}
