//! `/metrics`: what the target counts, summed over its workers.

use std::cell::Cell;
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

/// The metrics of the contract.
const METRICS: [(&str, &str); 3] = [
    (REQUESTS, "counter"),
    (ACCEPTED, "counter"),
    (OPEN, "gauge"),
];

/// A counter may follow what it counts a little later.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

/// Connections of a case, and requests on each.
const CONNECTIONS: u32 = 10;
const ON_EACH: u32 = 10;

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    if !offer.metrics {
        return Vec::new();
    }
    let cases = vec![
        case(
            "metrics-names",
            "GET /metrics has every metric with its type, as Prometheus text 0.0.4",
            "status 200, text/plain, and all three",
            names,
        ),
        Case::new(
            "metrics-count",
            "Requests and connections are counted over all workers",
            "10 connections with 10 requests each: the counters grow by as many, the gauge by 10 and back",
            &IN_TURN,
            count,
        ),
    ];
    cases.into_iter().map(Case::only_when_started).collect()
}

fn names(site: &Site<'_>) -> Verdict {
    let page = Exchange::page(&host(site), "/metrics", "").answered(&[200]);
    Line::open(site)?.ask(&page.of_type("text/plain"))?;
    let metrics = site.metrics()?;
    let mut wrong = Vec::new();
    for (name, kind) in METRICS {
        match metrics.type_of(name) {
            Some(declared) if declared == kind => {}
            declared => wrong.push(format!(
                "{name} is declared as {}",
                declared.unwrap_or("nothing")
            )),
        }
        if metrics.get(name, &[]).is_none() {
            wrong.push(format!("{name} has no sample"));
        }
    }
    if wrong.is_empty() {
        Ok("all three".to_owned())
    } else {
        Err(wrong.join("; "))
    }
}

/// How much a metric grew.
fn grown(name: &str, now: &Metrics, before: &Metrics) -> f64 {
    let value = |metrics: &Metrics| metrics.get(name, &[]).unwrap_or_default();
    value(now) - value(before)
}

fn count(site: &Site<'_>) -> Verdict {
    let connections = f64::from(CONNECTIONS);
    let before = at_rest(site)?;
    let root = Exchange::root(&host(site));
    let mut lines = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut line = Line::open(site)?;
        for _ in 0..ON_EACH {
            line.ask(&root)?;
        }
        lines.push(line);
    }
    let (during, open) = site.metrics_within(COUNTED_WITHIN, |now| {
        grown(OPEN, now, &before) == connections
    })?;
    let [requests, accepted] = [REQUESTS, ACCEPTED].map(|name| grown(name, &during, &before));
    let seen = format!(
        "{REQUESTS} {requests:+}, {ACCEPTED} {accepted:+}, {OPEN} {:+}",
        grown(OPEN, &during, &before)
    );
    drop(lines);
    let (after, closed) =
        site.metrics_within(COUNTED_WITHIN, |now| grown(OPEN, now, &before) == 0.0)?;
    if !closed {
        let left = grown(OPEN, &after, &before);
        return Err(format!("{seen}; {OPEN} {left:+} when they were closed"));
    }
    // Each look at the metrics is a request on a connection of its own, and there may be 150 of them.
    let right = |grown: f64, least: f64| (least..=least + 200.0).contains(&grown);
    let asked = f64::from(CONNECTIONS * ON_EACH);
    if open && right(requests, asked) && right(accepted, connections) {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// The metrics once the gauge stands still: what an earlier case closed may be counted a little later.
fn at_rest(site: &Site<'_>) -> Result<Metrics, String> {
    let last = Cell::new(None);
    let (metrics, rests) = site.metrics_within(COUNTED_WITHIN, |now| {
        let open = now.get(OPEN, &[]);
        // Nothing but the connection that asks, and not every server counts that one before it has answered.
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
