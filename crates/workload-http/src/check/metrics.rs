//! `/metrics`: what the target counts, summed over its workers.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use plimsoll_conformance::Verdict;
use plimsoll_host::http::Metrics;

use super::exchange::Exchange;
use super::offer::Offer;
use super::routes::host;
use super::setup::IN_TURN;
use super::talk::Line;
use super::{Case, Site, case};

const REQUESTS: &str = "http_requests_total";
const ACCEPTED: &str = "http_connections_accepted_total";
const OPEN: &str = "http_connections_open";

/// A counter may follow what it counts a little later.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

/// The same, for one look.
const COUNTED_SOON: Duration = Duration::from_millis(300);

/// Connections of a case, and requests on each.
const CONNECTIONS: u32 = 10;
const ON_EACH: u32 = 10;

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    if !offer.metrics {
        return Vec::new();
    }
    let cases = vec![
        case(
            "metrics-text",
            "GET /metrics answers Prometheus text 0.0.4",
            "status 200, text/plain, lines that can be read",
            |site| {
                let page = Exchange::page(&host(site), "/metrics", "").answered(&[200]);
                Line::open(site)?.ask(&page.of_type("text/plain"))?;
                site.metrics().map(|_| "text".to_owned())
            },
        ),
        // A library may not tell its connections, so requests have a case of their own.
        Case::new(
            "metrics-requests",
            "http_requests_total counts requests over all workers",
            "a counter that grows by 100 with 10 requests on each of 10 connections",
            &IN_TURN,
            requests,
        ),
        Case::new(
            "metrics-connections",
            "http_connections_accepted_total and http_connections_open count connections over all workers",
            "a counter that grows by 10 with 10 connections, and a gauge that does and comes back",
            &IN_TURN,
            connections,
        ),
    ];
    cases.into_iter().map(Case::only_when_started).collect()
}

/// Connections, each with some answers.
fn load(site: &Site<'_>) -> Result<Vec<Line>, String> {
    let root = Exchange::root(&host(site));
    let one = |_| -> Result<Line, String> {
        let mut line = Line::open(site)?;
        for _ in 0..ON_EACH {
            line.ask(&root)?;
        }
        Ok(line)
    };
    (0..CONNECTIONS).map(one).collect()
}

/// The value of a metric that is declared as it should be.
fn declared(metrics: &Metrics, name: &str, kind: &str) -> Result<f64, String> {
    let known = metrics.type_of(name).unwrap_or("nothing");
    if known != kind {
        return Err(format!("{name} is declared as {known}"));
    }
    let value = metrics.get(name, &[]);
    value.ok_or_else(|| format!("{name} has no sample"))
}

/// Passes when a counter grew by so many, and by what the looks at it may have added.
fn grew(name: &str, before: f64, now: f64, by: u32, looks: u32) -> Verdict {
    let grown = now - before;
    let seen = format!("{name} {grown:+}");
    if (f64::from(by)..=f64::from(by + looks)).contains(&grown) {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn requests(site: &Site<'_>) -> Verdict {
    let before = declared(&site.metrics()?, REQUESTS, "counter")?;
    load(site)?;
    // Not again and again: each look is a request, too.
    thread::sleep(COUNTED_SOON);
    let now = declared(&site.metrics()?, REQUESTS, "counter")?;
    grew(REQUESTS, before, now, CONNECTIONS * ON_EACH, 2)
}

fn connections(site: &Site<'_>) -> Verdict {
    let first = site.metrics()?;
    declared(&first, ACCEPTED, "counter")?;
    declared(&first, OPEN, "gauge")?;
    let before = at_rest(site)?;
    let value = |metrics: &Metrics, name| metrics.get(name, &[]).unwrap_or_default();
    let (accepted, open) = (value(&before, ACCEPTED), value(&before, OPEN));
    let lines = load(site)?;
    let all = f64::from(CONNECTIONS);
    let looks = Cell::new(1);
    let (during, counted) = site.metrics_within(COUNTED_WITHIN, |now| {
        looks.set(looks.get() + 1);
        value(now, OPEN) - open == all
    })?;
    let now = value(&during, ACCEPTED);
    let seen = grew(ACCEPTED, accepted, now, CONNECTIONS, looks.get())?;
    let seen = format!("{seen}, {OPEN} {:+}", value(&during, OPEN) - open);
    drop(lines);
    if !counted {
        return Err(seen);
    }
    let (after, back) = site.metrics_within(COUNTED_WITHIN, |now| value(now, OPEN) == open)?;
    let seen = format!("{seen}, then {:+}", value(&after, OPEN) - open);
    if back { Ok(seen) } else { Err(seen) }
}

/// The metrics once the gauge stands still: what an earlier case closed may be counted a little later.
fn at_rest(site: &Site<'_>) -> Result<Metrics, String> {
    let last = Cell::new(None);
    let (metrics, rests) = site.metrics_within(COUNTED_WITHIN, |now| {
        let open = now.get(OPEN, &[]);
        // Nothing but the connection that asks, and not every server counts that one.
        let rests = last.get() == Some(open) && open.is_some_and(|open| open <= 1.0);
        last.set(Some(open));
        rests
    })?;
    if rests {
        return Ok(metrics);
    }
    let open = metrics.get(OPEN, &[]).unwrap_or_default();
    Err(format!("{OPEN} is {open} without a connection"))
}
