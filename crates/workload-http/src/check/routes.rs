//! The routes: status, type, length, body and date of each answer.

use std::thread;
use std::time::{Duration, SystemTime};

use plimsoll_conformance::Verdict;

use super::answer::{Answer, Framing};
use super::exchange::{Exchange, WRONG_METHOD};
use super::offer::{FILES, Offer, Route};
use super::talk::Line;
use super::{Case, Site, case};

/// The largest K of `/json/K`: above it, not every runtime has whole numbers.
const LARGEST_NUMBER: u64 = (1 << 53) - 1;

/// What is no size of `/bytes`, whatever sizes it has.
const NO_SIZES: [&str; 9] = [
    "0",
    "1048577",
    "064",
    "+64",
    "-64",
    "64.0",
    "6e1",
    "abc",
    "18446744073709551680",
];

/// Between the two dates that are compared.
const BETWEEN_DATES: Duration = Duration::from_millis(1500);

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    let mut cases = of_everybody();
    if offer.has(Route::Bytes) {
        cases.extend(of_bytes());
    }
    if offer.has(Route::Json) {
        cases.push(case(
            "routes-json",
            "GET /json/K answers the item K as JSON",
            "status 200, application/json, for K of 0, 1, 4711 and 2^53-1 exactly the bytes of the contract",
            json,
        ));
    }
    cases.extend(in_general());
    cases
}

fn of_everybody() -> Vec<Case> {
    vec![
        case(
            "routes-health",
            "GET /healthz answers 200 `ok` once requests are served",
            "status 200, ok",
            |site| {
                let health = Exchange::page(&host(site), "/healthz", "ok");
                status_of(site, &health)
            },
        ),
        case(
            "routes-root",
            "GET / answers `ok`",
            "status 200, text/plain, the 2 bytes ok",
            |site| status_of(site, &Exchange::root(&host(site)).of_type("text/plain")),
        ),
    ]
}

fn of_bytes() -> Vec<Case> {
    vec![
        case(
            "routes-bytes",
            "GET /bytes/N answers the first N bytes of 0123456789abcdef repeated",
            "status 200 and exactly these bytes, from the least to the largest N",
            bytes,
        ),
        case(
            "routes-bytes-type",
            "The type of GET /bytes/N is application/octet-stream",
            "application/octet-stream",
            |site| {
                let bytes = Exchange::bytes(&host(site), 1024);
                status_of(site, &bytes.of_type("application/octet-stream"))
            },
        ),
        case(
            "routes-bytes-other-size",
            "What is no N gets 404",
            "status 404 for 0, 1048577, 064, +64, -64, 64.0, 6e1, abc and more than 2^64",
            other_sizes,
        ),
    ]
}

fn in_general() -> Vec<Case> {
    vec![
        case(
            "routes-length",
            "Every answer has Content-Length, and none is chunked",
            "Content-Length in the answer of each route, and of 404",
            length,
        ),
        case(
            "routes-date",
            "Every answer has the date",
            "Date as RFC 9110 writes it, in the answer of each route, and later after 1.5 s",
            dates,
        ),
        case(
            "routes-query",
            "Queries are ignored",
            "the same answer with a query behind the path",
            query,
        ),
        case(
            "routes-field-names",
            "Names of fields are read in any case",
            "the answer, for names in upper, lower and mixed case",
            field_names,
        ),
        case(
            "routes-head",
            "HEAD is answered as GET, without a body",
            "the same status, type and length, and no body",
            head,
        ),
        case(
            "routes-get-after-head",
            "A connection lives after HEAD",
            "GET on the same connection is answered",
            |site| survives(site, &heads(site)),
        ),
        case(
            "routes-unknown-path",
            "An unknown path gets 404, and the connection lives",
            "status 404 four times, and GET on the same connection is answered",
            |site| survives(site, &unknown_paths(site)),
        ),
        case(
            "routes-wrong-method",
            "A method that a path does not have gets 404, 405 or 501, and the connection lives",
            "404, 405 or 501 with and without a body, and GET on the same connection is answered",
            |site| survives(site, &wrong_methods(site)),
        ),
    ]
}

/// What stands in `Host`.
pub(super) fn host(site: &Site<'_>) -> String {
    site.address.to_string()
}

/// One exchange for each route that the target has.
pub(super) fn one_of_each(site: &Site<'_>) -> Vec<Exchange> {
    let (host, offer) = (host(site), &site.suite.offer);
    let bytes = || Exchange::bytes(&host, 1024).of_type("application/octet-stream");
    let json = || Exchange::json(&host, 4711).of_type("application/json");
    let sum = || Exchange::sum(&host, b"one of each").of_type("text/plain");
    let root = Exchange::root(&host).of_type("text/plain");
    [
        Some(root),
        offer.has(Route::Bytes).then(bytes),
        offer.has(Route::Json).then(json),
        offer.has(Route::Sum).then(sum),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn status_of(site: &Site<'_>, exchange: &Exchange) -> Verdict {
    let answer = Line::open(site)?.ask(exchange)?;
    Ok(answer.describe())
}

fn bytes(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let sizes = site.suite.offer.sizes.sample();
    for size in sizes {
        line.ask(&Exchange::bytes(&host(site), *size))?;
    }
    Ok(format!("{} sizes", sizes.len()))
}

fn other_sizes(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let sizes = &site.suite.offer.sizes;
    let no_file = FILES
        .into_iter()
        .chain([63])
        .filter(|size| !sizes.has(*size));
    let no_file = no_file.map(|size| size.to_string());
    for size in NO_SIZES.map(str::to_owned).into_iter().chain(no_file) {
        let path = format!("/bytes/{size}");
        line.ask(&Exchange::unknown(&host(site), &path))?;
    }
    Ok("status 404".to_owned())
}

fn json(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    for number in [0, 1, 4711, LARGEST_NUMBER] {
        let item = Exchange::json(&host(site), number);
        line.ask(&item.of_type("application/json"))?;
    }
    Ok("four items".to_owned())
}

/// Each route, and what is no route.
fn one_of_each_and_404(site: &Site<'_>) -> Vec<Exchange> {
    let mut all = one_of_each(site);
    all.push(Exchange::unknown(&host(site), "/nothing"));
    all
}

fn length(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let all = one_of_each_and_404(site);
    for exchange in &all {
        let framing = line.ask(exchange)?.framing;
        if framing != Framing::Length {
            return Err(exchange.told(match framing {
                Framing::Chunked => "a chunked answer",
                _ => "no Content-Length",
            }));
        }
    }
    Ok(format!("Content-Length {} times", all.len()))
}

/// When an answer says that it was made, in seconds since 1970.
fn dated(exchange: &Exchange, answer: &Answer) -> Result<u64, String> {
    let value = answer.field("date");
    let value = value.ok_or_else(|| exchange.told("no Date"))?;
    seconds(value).ok_or_else(|| exchange.told(&format!("Date: {value}")))
}

/// The seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`. `None` if it is written otherwise, as in the two obsolete
/// formats that the library reads, or names another day of the week.
fn seconds(text: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    let as_written = httpdate::fmt_http_date(date) == text;
    let since_1970 = date.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    as_written.then_some(since_1970.as_secs())
}

fn dates(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let mut first = None;
    for exchange in one_of_each_and_404(site) {
        let answer = line.ask(&exchange)?;
        let at = dated(&exchange, &answer)?;
        first.get_or_insert(at);
    }
    thread::sleep(BETWEEN_DATES);
    let root = Exchange::root(&host(site));
    let answer = line.ask(&root)?;
    let last = dated(&root, &answer)?;
    let later = last.saturating_sub(first.unwrap_or(last));
    // A server may keep a date for a second.
    if !(1..=4).contains(&later) {
        return Err(format!(
            "the date grew by {later} s in {} ms",
            BETWEEN_DATES.as_millis()
        ));
    }
    // A machine elsewhere may have another clock.
    if site.started.is_some() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_err(|error| error.to_string())?.as_secs();
        if now.abs_diff(last) > 3 {
            let wrong_by = now.abs_diff(last);
            return Err(format!("the date is wrong by {wrong_by} s"));
        }
    }
    Ok(answer.field("date").unwrap_or_default().to_owned())
}

fn query(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let offer = &site.suite.offer;
    let mut line = Line::open(site)?;
    line.ask(&Exchange::page(&host, "/?a=b&c=/bytes/1", "ok"))?;
    line.ask(&Exchange::page(&host, "/?", "ok"))?;
    if offer.has(Route::Bytes) {
        let plain = Exchange::bytes(&host, 64);
        let request = String::from_utf8_lossy(plain.request()).replace("/64 ", "/64?x=1&y ");
        line.ask(&plain.sent_as(request.into_bytes()))?;
    }
    if offer.has(Route::Json) {
        let plain = Exchange::json(&host, 12);
        let request = String::from_utf8_lossy(plain.request()).replace("/12 ", "/12?id=13 ");
        line.ask(&plain.sent_as(request.into_bytes()))?;
    }
    Ok("the same answers".to_owned())
}

fn field_names(site: &Site<'_>) -> Verdict {
    let mut line = Line::open(site)?;
    let asked = one_of_each(site);
    for exchange in &asked {
        let text = String::from_utf8_lossy(exchange.request()).into_owned();
        for (host, length) in [
            ("HOST:", "CONTENT-LENGTH:"),
            ("host:", "content-length:"),
            ("hOsT:", "cOnTeNt-LeNgTh:"),
        ] {
            let text = text
                .replace("Host:", host)
                .replace("Content-Length:", length);
            line.ask(&exchange.clone().sent_as(text.into_bytes()))?;
        }
    }
    Ok(format!("{} answers", 3 * asked.len()))
}

/// What can be asked by GET.
pub(super) fn pages(site: &Site<'_>) -> Vec<Exchange> {
    let all = one_of_each(site).into_iter();
    all.filter(|exchange| exchange.name().starts_with("GET"))
        .collect()
}

fn heads(site: &Site<'_>) -> Vec<Exchange> {
    pages(site).into_iter().map(Exchange::head).collect()
}

fn head(site: &Site<'_>) -> Verdict {
    let mut seen = Vec::new();
    for page in pages(site) {
        // What follows the answer to HEAD would be its body: each has a connection of its own, so that this is seen.
        let mut line = Line::open(site)?;
        let whole = line.ask(&page)?;
        let page = page.head();
        let head = line.ask(&page)?;
        for name in ["Content-Type", "Content-Length"] {
            let (with, without) = (whole.field(name), head.field(name));
            if with != without {
                return Err(page.told(&format!("{name} {without:?} instead of {with:?}")));
            }
        }
        line.expect_silence(Duration::from_millis(100))
            .map_err(|seen| page.told(&seen))?;
        seen.push(page.name().to_owned());
    }
    Ok(seen.join(", "))
}

fn unknown_paths(site: &Site<'_>) -> Vec<Exchange> {
    let paths = ["/nothing", "/byte/64", "/bytes", "/healthz/more"];
    let host = host(site);
    paths.map(|path| Exchange::unknown(&host, path)).to_vec()
}

fn wrong_methods(site: &Site<'_>) -> Vec<Exchange> {
    let (host, offer) = (host(site), &site.suite.offer);
    let mut all = vec![
        Exchange::wrong_method(&host, "DELETE", "/", b""),
        Exchange::wrong_method(&host, "POST", "/", b"hello"),
    ];
    if offer.has(Route::Bytes) {
        all.push(Exchange::wrong_method(&host, "PUT", "/bytes/64", b"hello"));
    }
    if offer.has(Route::Json) {
        all.push(Exchange::wrong_method(&host, "POST", "/json/1", b"{}"));
    }
    if offer.has(Route::Sum) {
        all.push(Exchange::page(&host, "/sum", "").answered(WRONG_METHOD));
    }
    all
}

/// Passes when these are answered as wanted on one connection, each with a GET behind it.
fn survives(site: &Site<'_>, exchanges: &[Exchange]) -> Verdict {
    let mut line = Line::open(site)?;
    let root = Exchange::root(&host(site));
    let mut statuses = Vec::new();
    for exchange in exchanges {
        let answer = line.ask(exchange)?;
        statuses.push(answer.status.to_string());
        line.ask(&root)
            .map_err(|seen| format!("behind {}: {seen}", exchange.name()))?;
    }
    Ok(format!(
        "status {}, each with a GET behind",
        statuses.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn dates_are_read() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Mon, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 UTC", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 8:49:37 GMT", None),
            ("1994-11-06T08:49:37Z", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
