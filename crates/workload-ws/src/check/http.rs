//! Sections 1 and 2 of the contract: what the target prints and answers over HTTP.

use plimsoll_conformance::Verdict;

use super::{Case, Site, case};
use crate::Dialect;

/// The cases; the address of a URL is not that of a separate metrics port, so none runs against a URL.
pub(super) fn cases(dialect: Dialect) -> Vec<Case> {
    let mut cases = vec![
        case(
            "start-line",
            "On start a target prints one JSON object on one line, with the versions of its runtime and libraries",
            "a first line that is a JSON object with versions in it",
            |site| plimsoll_conformance::start_line::check(&site.server()?.output()),
        ),
        case(
            "health-ready",
            "GET /healthz answers 200 `ok` once WebSockets are accepted",
            "status 200, and ok",
            health_ready,
        ),
        case(
            "metrics-text",
            "GET /metrics answers Prometheus text format 0.0.4",
            "status 200, content type text/plain",
            metrics_text,
        ),
        case(
            "metrics-names",
            "GET /metrics has every metric with its type",
            "all seven",
            metrics_names,
        ),
        case(
            "http-anything-else",
            "Anything else gets a status that is not 2xx",
            "no status 2xx for /, /health, /metric and /healthz/more",
            anything_else,
        ),
    ];
    if dialect == Dialect::Wse {
        cases.push(case(
            "metrics-of-the-engine",
            "Beside those of section 2 there are the engine's own metrics",
            "wse_messages_received_total and wse_inbound_dropped_total",
            engine_metrics,
        ));
    }
    cases.into_iter().map(Case::only_when_started).collect()
}

fn health_ready(site: &Site<'_>) -> Verdict {
    let answer = site.get("/healthz")?;
    let seen = format!("status {} and {:?}", answer.status, answer.body.trim());
    if answer.status == 200 && answer.body.trim() == "ok" {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn metrics_text(site: &Site<'_>) -> Verdict {
    let answer = site.get("/metrics")?;
    let content_type = answer.header("content-type").unwrap_or_default();
    let seen = format!("status {}, content type {content_type:?}", answer.status);
    let text = content_type.split(';').next().unwrap_or_default().trim() == "text/plain";
    if text && answer.status == 200 {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// Section 2.
const METRICS: [(&str, &str); 7] = [
    ("ws_connections_open", "gauge"),
    ("ws_connections_accepted_total", "counter"),
    ("ws_connections_refused_total", "counter"),
    ("ws_messages_received_total", "counter"),
    ("ws_bytes_received_total", "counter"),
    ("ws_messages_sent_total", "counter"),
    ("ws_messages_dropped_total", "counter"),
];

fn metrics_names(site: &Site<'_>) -> Verdict {
    let scrape = site.metrics()?;
    let mut wrong = Vec::new();
    for (name, kind) in METRICS {
        match scrape.type_of(name) {
            Some(declared) if declared == kind => {}
            declared => wrong.push(format!(
                "{name} is declared as {}",
                declared.unwrap_or("nothing")
            )),
        }
        if scrape.get(name, &[]).is_none() {
            wrong.push(format!("{name} has no sample"));
        }
    }
    if wrong.is_empty() {
        Ok(format!("all {}", METRICS.len()))
    } else {
        Err(wrong.join("; "))
    }
}

fn engine_metrics(site: &Site<'_>) -> Verdict {
    let scrape = site.metrics()?;
    for name in ["wse_messages_received_total", "wse_inbound_dropped_total"] {
        if scrape.get(name, &[]).is_none() {
            return Err(format!("{name} has no sample"));
        }
    }
    Ok("both".to_owned())
}

fn anything_else(site: &Site<'_>) -> Verdict {
    let mut seen = Vec::new();
    for path in ["/", "/health", "/metric", "/healthz/more"] {
        let status = site.get(path)?.status;
        if (200..300).contains(&status) {
            return Err(format!("GET {path}: status {status}"));
        }
        seen.push(status.to_string());
    }
    Ok(format!("status {}", seen.join(", ")))
}
