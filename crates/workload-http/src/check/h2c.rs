//! HTTP/2 without TLS, with prior knowledge (RFC 9113).

use std::time::{Duration, Instant};

use plimsoll_conformance::{AT_ONCE, Verdict};

use super::exchange::{Exchange, body as some_bytes};
use super::h2_line::{H2Line, body};
use super::life::{can_be_busy, exits};
use super::offer::{LARGEST, Offer, Protocol, Route, Sizes};
use super::routes::{host, one_of_each};
use super::setup::{BASE, DRAIN};
use super::{Case, Site};
use crate::h2::ErrorCode;
use crate::h2::frame::{append_header, append_reset, flag, kind, setting};

/// Streams at a time.
const STREAMS: usize = 100;

/// A body of so many DATA frames of one byte each.
const MANY_FRAMES: usize = 1000;

/// Among them, one that is empty and one with padding after each so many.
const ODD_FRAME_EACH: usize = 100;

/// A server that was to send nothing has sent nothing by then.
const NOTHING_WITHIN: Duration = Duration::from_millis(200);

/// The code of a stream that nobody wants any more.
const CANCEL: ErrorCode = ErrorCode::CANCEL;

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    if !offer.protocols.contains(&Protocol::H2c) {
        return Vec::new();
    }
    let mut cases = of_everybody();
    if offer.has(Route::Sum) {
        cases.extend(of_bodies());
    }
    if offer.has(Route::Bytes) {
        cases.push(window_of_a_stream());
    }
    if offer.has_bytes(LARGEST) {
        cases.extend(of_large_answers());
    }
    if can_be_busy(offer) {
        cases.push(
        Case::new(
            "h2c-goaway",
            "At the stop signal the target sends GOAWAY, and answers the streams that are open",
            "GOAWAY that leaves the stream open, the right answer, the end, and exit code 0 within 2,000 ms",
            &DRAIN,
            goaway,
        )
        .in_setup(&DRAIN),
    );
    }
    cases
}

/// A case of the usual setup.
fn case(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    Case::new(id, title, expected, &BASE, run)
}

fn of_everybody() -> Vec<Case> {
    vec![
        case(
            "h2c-routes",
            "The routes answer as over HTTP/1.1: GET, HEAD, POST, and 404",
            "the right answers on one connection, and on a second at the same time",
            routes,
        ),
        case(
            "h2c-streams",
            "100 streams at a time are served, and each gets its own answer",
            "at least 100 streams allowed; 100 right answers to 100 requests that are open at once",
            streams,
        ),
        case(
            "h2c-ping",
            "A PING is answered with the same payload, also while a stream is open",
            "two answers at once",
            ping,
        )
        .failed_by_delay_of(AT_ONCE),
        case(
            "h2c-continuation",
            "A head may go on in CONTINUATION frames",
            "the right answer to a head in 5 frames that divide its fields",
            continuation,
        ),
        case(
            "h2c-table-size",
            "The target obeys SETTINGS_HEADER_TABLE_SIZE",
            "right answers without a table after the setting 0, and again after 4,096",
            table_size,
        ),
        case(
            "h2c-own-table-size",
            "The target follows changes of the client's table",
            "right answers before and after the client empties its table",
            own_table_size,
        ),
    ]
}

fn of_bodies() -> Vec<Case> {
    vec![
        case(
            "h2c-many-data",
            "A body may come in many DATA frames, with empty and padded ones among them",
            "the right sum of 1,000 B in frames of 1 B",
            many_data,
        ),
        case(
            "h2c-large-body",
            "The target opens its windows while it reads",
            "the right sum of 1 MiB",
            |site| {
                let exchange = Exchange::sum(&host(site), &some_bytes(LARGEST, 5));
                H2Line::open(site)?.ask(&exchange)?;
                Ok("the right sum".to_owned())
            },
        ),
        case(
            "h2c-reset-of-a-request",
            "RST_STREAM in a body ends its stream and no other",
            "the right sum on a stream that was open meanwhile, and on a later one",
            reset_of_a_request,
        ),
    ]
}

fn window_of_a_stream() -> Case {
    case(
        "h2c-window-of-a-byte",
        "The target sends no more than a stream's window allows, and goes on when it opens by a byte",
        "no body in a window of 0, then a byte for each of 64 bytes of window",
        window_of_a_byte,
    )
}

/// A smaller answer is sent before a window or a reset can stop it.
fn of_large_answers() -> Vec<Case> {
    vec![
        case(
            "h2c-window-of-the-connection",
            "The target sends no more than the connection's window allows, and goes on when it opens",
            "65,535 bytes of 1 MiB, and the rest once the window opens",
            window_of_the_connection,
        ),
        case(
            "h2c-reset-of-an-answer",
            "RST_STREAM in an answer ends its stream and no other",
            "the right answer on a later stream",
            reset_of_an_answer,
        ),
    ]
}

fn routes(site: &Site<'_>) -> Verdict {
    let host = host(site);
    let mut all = one_of_each(site);
    all.push(Exchange::root(&host).head());
    all.push(Exchange::unknown(&host, "/nothing"));
    if site.suite.offer.has_bytes(LARGEST) {
        all.push(Exchange::bytes(&host, LARGEST));
    }
    let mut lines = [H2Line::open(site)?, H2Line::open(site)?];
    for exchange in &all {
        for line in &mut lines {
            line.ask(exchange)?;
        }
    }
    Ok(format!("{} answers", all.len() * lines.len()))
}

/// Requests that have different answers, as far as the target has such.
fn different(site: &Site<'_>) -> Vec<Exchange> {
    let (host, offer) = (host(site), &site.suite.offer);
    (0..STREAMS)
        .map(|number| {
            if offer.has(Route::Sum) {
                Exchange::sum(&host, &some_bytes(200, number as u64))
            } else if offer.has(Route::Bytes) && offer.sizes == Sizes::All {
                Exchange::bytes(&host, number + 1)
            } else {
                Exchange::root(&host)
            }
        })
        .collect()
}

fn streams(site: &Site<'_>) -> Verdict {
    let mut line = H2Line::open(site)?;
    let allowed = line.allowed.get(&setting::MAX_CONCURRENT_STREAMS).copied();
    if let Some(allowed) = allowed.filter(|allowed| (*allowed as usize) < STREAMS) {
        return Err(format!("only {allowed} streams are allowed"));
    }
    let mut open = Vec::new();
    for exchange in different(site) {
        open.push((line.head(&exchange)?, exchange));
    }
    // The bodies come last to first, so that all streams are open at once.
    for (stream, exchange) in open.iter().rev() {
        if !body(exchange).is_empty() {
            line.data(*stream, body(exchange), true)?;
        }
    }
    for (stream, exchange) in &open {
        line.expect(*stream, exchange)?;
    }
    Ok(format!("{} answers", open.len()))
}

fn ping(site: &Site<'_>) -> Verdict {
    let mut line = H2Line::open(site)?;
    let root = Exchange::root(&host(site));
    line.ping(*b"plimsoll")?;
    let stream = line.request(&root)?;
    line.ping([0, 1, 2, 3, 255, 254, 253, 252])?;
    let sent = [*b"plimsoll", [0, 1, 2, 3, 255, 254, 253, 252]];
    line.holds_within(AT_ONCE, |line| line.pongs.len() == sent.len())?;
    if line.pongs != sent {
        return Err(format!("the answers {:02x?}", line.pongs));
    }
    line.expect(stream, &root)?;
    Ok("two answers".to_owned())
}

fn continuation(site: &Site<'_>) -> Verdict {
    const FRAMES: usize = 5;
    let mut line = H2Line::open(site)?;
    let root = Exchange::root(&host(site)).with(&["X-One: 0123456789", "X-Two: abcdefghij"]);
    let (stream, block) = line.begin(&root);
    let mut bytes = Vec::new();
    let parts = block.chunks(block.len().div_ceil(FRAMES));
    let last = parts.len() - 1;
    for (number, part) in parts.enumerate() {
        let (kind, mut flags) = match number {
            0 => (kind::HEADERS, flag::END_STREAM),
            _ => (kind::CONTINUATION, 0),
        };
        if number == last {
            flags |= flag::END_HEADERS;
        }
        append_header(&mut bytes, part.len(), kind, flags, stream);
        bytes.extend_from_slice(part);
    }
    line.send(&bytes)?;
    line.expect(stream, &root)?;
    line.ask(&root)?;
    Ok(format!("the right answer to a head in {} frames", last + 1))
}

fn table_size(site: &Site<'_>) -> Verdict {
    let mut line = H2Line::open(site)?;
    let all = one_of_each(site);
    let ask_all = |line: &mut H2Line| all.iter().try_for_each(|exchange| line.ask(exchange));
    ask_all(&mut line)?;
    line.set(&[(setting::HEADER_TABLE_SIZE, 0)])?;
    line.empty_table()?;
    for _ in 0..2 {
        ask_all(&mut line).map_err(|seen| format!("after the setting 0: {seen}"))?;
    }
    line.set(&[(setting::HEADER_TABLE_SIZE, 4096)])?;
    line.no_table = false;
    for _ in 0..2 {
        ask_all(&mut line).map_err(|seen| format!("after the setting 4,096: {seen}"))?;
    }
    Ok(format!("{} answers", 5 * all.len()))
}

fn own_table_size(site: &Site<'_>) -> Verdict {
    let mut line = H2Line::open(site)?;
    let root = Exchange::root(&host(site)).with(&["X-Again: and again"]);
    line.ask(&root)?;
    line.ask(&root)?;
    // As RFC 7541 has it, both sizes stand before the next block: the smallest, and the last.
    let allowed = line.allowed.get(&setting::HEADER_TABLE_SIZE).copied();
    line.encoder.set_peer_limit(0);
    line.encoder.set_peer_limit(allowed.unwrap_or(4096));
    for _ in 0..3 {
        let asked = line.ask(&root);
        asked.map_err(|seen| format!("after the change: {seen}"))?;
    }
    Ok("5 answers".to_owned())
}

fn many_data(site: &Site<'_>) -> Verdict {
    let exchange = Exchange::sum(&host(site), &some_bytes(MANY_FRAMES, 9));
    let mut line = H2Line::open(site)?;
    let stream = line.head(&exchange)?;
    for (number, byte) in body(&exchange).chunks(1).enumerate() {
        match number % ODD_FRAME_EACH {
            1 => line.data_frame(stream, b"", None, false)?,
            2 => {
                line.data_frame(stream, byte, Some(7), false)?;
                continue;
            }
            _ => {}
        }
        line.data(stream, byte, false)?;
    }
    line.data_frame(stream, b"", None, true)?;
    line.expect(stream, &exchange)?;
    Ok(format!("the right sum of {MANY_FRAMES} frames"))
}

fn reset(line: &mut H2Line, stream: u32) -> Result<(), String> {
    let mut frame = Vec::new();
    append_reset(&mut frame, stream, CANCEL);
    line.streams.remove(&stream);
    line.send(&frame)
}

fn reset_of_a_request(site: &Site<'_>) -> Verdict {
    let mut line = H2Line::open(site)?;
    let sums = [1, 2, 3].map(|number| Exchange::sum(&host(site), &some_bytes(1000, number)));
    let (given_up, kept) = (line.head(&sums[0])?, line.head(&sums[1])?);
    for (stream, sum) in [(given_up, &sums[0]), (kept, &sums[1])] {
        line.data(stream, &body(sum)[..500], false)?;
    }
    reset(&mut line, given_up)?;
    line.data(kept, &body(&sums[1])[500..], true)?;
    line.expect(kept, &sums[1])?;
    line.ask(&sums[2])?;
    Ok("two sums".to_owned())
}

fn reset_of_an_answer(site: &Site<'_>) -> Verdict {
    let mut line = H2Line::open(site)?;
    let host = host(site);
    let stream = line.request(&Exchange::bytes(&host, LARGEST))?;
    line.until("the beginning of an answer", |line| {
        line.streams
            .get(&stream)
            .is_some_and(|stream| !stream.body.is_empty())
    })?;
    reset(&mut line, stream)?;
    for _ in 0..3 {
        line.ask(&Exchange::bytes(&host, 65_536))?;
    }
    Ok("three answers".to_owned())
}

/// How much of an answer's body has come.
fn received(line: &H2Line, stream: u32) -> usize {
    line.streams
        .get(&stream)
        .map_or(0, |stream| stream.body.len())
}

fn window_of_a_byte(site: &Site<'_>) -> Verdict {
    const SIZE: usize = 64;
    let mut line = H2Line::open_with(site, &[(setting::INITIAL_WINDOW_SIZE, 0)])?;
    line.opens_windows = false;
    let exchange = Exchange::bytes(&host(site), SIZE);
    let stream = line.request(&exchange)?;
    line.holds_within(NOTHING_WITHIN, |line| received(line, stream) > 0)?;
    for wanted in 1..=SIZE {
        line.open_window(stream, 1)?;
        line.until(&format!("byte {wanted} of the body"), |line| {
            received(line, stream) == wanted
        })?;
    }
    line.expect(stream, &exchange)?;
    Ok(format!("{SIZE} bytes, one by one"))
}

fn window_of_the_connection(site: &Site<'_>) -> Verdict {
    const WINDOW: usize = 65_535;
    let mut line = H2Line::open_with(site, &[(setting::INITIAL_WINDOW_SIZE, 4 << 20)])?;
    line.opens_windows = false;
    let exchange = Exchange::bytes(&host(site), LARGEST);
    let stream = line.request(&exchange)?;
    line.until("65,535 bytes", |line| received(line, stream) == WINDOW)?;
    // More than that would be an error.
    line.holds_within(NOTHING_WITHIN, |line| received(line, stream) > WINDOW)?;
    line.open_connection((LARGEST - WINDOW) as u32)?;
    line.expect(stream, &exchange)?;
    Ok("1 MiB, in two windows".to_owned())
}

fn goaway(site: &Site<'_>) -> Verdict {
    let mut line = H2Line::open(site)?;
    let host = host(site);
    let (exchange, stream) = if site.suite.offer.has(Route::Sum) {
        let exchange = Exchange::sum(&host, &some_bytes(1000, 4));
        let stream = line.head(&exchange)?;
        line.data(stream, &body(&exchange)[..500], false)?;
        (exchange, stream)
    } else {
        // What the window does not allow is in flight.
        line.opens_windows = false;
        let exchange = Exchange::bytes(&host, LARGEST);
        let stream = line.request(&exchange)?;
        line.until("the beginning of an answer", |line| {
            received(line, stream) > 0
        })?;
        (exchange, stream)
    };
    line.holds_within(NOTHING_WITHIN, |_| false)?;
    let begun = Instant::now();
    site.server()?.terminate()?;
    line.until("GOAWAY", |line| line.goaway.is_some())?;
    if let Some((last, code)) = line.goaway
        && (last < stream || code != ErrorCode::NO_ERROR.0)
    {
        return Err(format!(
            "GOAWAY up to stream {last} with code {code}; {stream} is open"
        ));
    }
    if body(&exchange).is_empty() {
        line.opens_windows = true;
        line.open_connection(LARGEST as u32)?;
        line.open_window(stream, LARGEST as u32)?;
    } else {
        line.data(stream, &body(&exchange)[500..], true)?;
    }
    line.expect(stream, &exchange)?;
    if !line.holds_within(site.millis("DRAIN_TIMEOUT_MS", 5000), |line| line.over)? {
        return Err("the connection is still open".to_owned());
    }
    exits(site, begun, site.millis("DRAIN_TIMEOUT_MS", 5000))
}
