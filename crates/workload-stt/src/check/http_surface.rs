//! Section 2 of the contract: what the gateway answers over HTTP; and its start line.

use plimsoll_conformance::socket::Upgrade;

use super::client::{Connection, PATH, usual};
use super::registry::{Case, Site, Verdict, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "health-ready",
            "GET /health answers 200 when ready",
            "status 200",
            health_ready,
        ),
        case(
            "metrics-names",
            "GET /metrics has every fixed name with its type",
            "all of them",
            metrics_names,
        ),
        case(
            "metrics-text",
            "GET /metrics is Prometheus text",
            "content type text/plain",
            metrics_text,
        ),
        case(
            "upgrade-accepted",
            "GET /ws/stt with a valid upgrade answers 101",
            "a correct 101",
            upgrade_accepted,
        ),
        case(
            "upgrade-demanded",
            "GET /ws/stt without an upgrade is refused",
            "status 426, 400, 404 or 405",
            upgrade_demanded,
        ),
        case(
            "path-unknown",
            "Any other path answers 404",
            "status 404",
            path_unknown,
        ),
        case(
            "upgrade-path-unknown",
            "An upgrade of any other path is refused",
            "status 404, 400, 403, 405 or 426",
            upgrade_path_unknown,
        ),
        case(
            "start-line",
            "On start the gateway prints one JSON line naming its runtime and library versions",
            "a first line that is a JSON object with versions in it",
            start_line,
        )
        .only_when_started(),
    ]
}

/// Passes when `GET path` gives the status.
fn expect_status(site: &Site<'_>, path: &str, status: u16) -> Verdict {
    let seen = site.get(path)?.status;
    let text = format!("status {seen}");
    if seen == status { Ok(text) } else { Err(text) }
}

/// Passes when the status is one that the contract or a framework has for this refusal.
fn among(status: u16, refusals: &[u16]) -> Verdict {
    let text = format!("status {status}");
    if refusals.contains(&status) {
        Ok(text)
    } else {
        Err(text)
    }
}

fn health_ready(site: &Site<'_>) -> Verdict {
    expect_status(site, "/health", 200)
}

fn upgrade_demanded(site: &Site<'_>) -> Verdict {
    let status = site.get(PATH)?.status;
    among(status, &[426, 400, 404, 405])
}

fn path_unknown(site: &Site<'_>) -> Verdict {
    for path in ["/", "/ws", "/healthy", "/ws/stt/more"] {
        expect_status(site, path, 404).map_err(|seen| format!("GET {path}: {seen}"))?;
    }
    Ok("status 404".to_owned())
}

fn upgrade_accepted(site: &Site<'_>) -> Verdict {
    site.connect()?;
    Ok("101, accepted".to_owned())
}

fn upgrade_path_unknown(site: &Site<'_>) -> Verdict {
    let elsewhere = Connection {
        path: "/ws/other".to_owned(),
        ..usual()
    };
    match site.upgrade(&elsewhere)? {
        Upgrade::Done(_) => Err("status 101".to_owned()),
        Upgrade::Refused { status, .. } => among(status, &[404, 400, 403, 405, 426]),
    }
}

fn metrics_text(site: &Site<'_>) -> Verdict {
    let answer = site.get("/metrics")?;
    let content_type = answer.header("content-type").unwrap_or_default();
    let seen = format!("status {}, content type {content_type:?}", answer.status);
    let text = content_type
        .split(';')
        .next()
        .is_some_and(|kind| kind.trim() == "text/plain");
    if text && answer.status == 200 {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// Section 8. A counter with labels has no sample before its first event, so that only its type is looked for.
const METRICS: [(&str, &str); 12] = [
    ("stt_sessions", "gauge"),
    ("stt_sessions_total", "counter"),
    ("stt_sessions_rejected_total", "counter"),
    ("stt_frames_total", "counter"),
    ("stt_frames_dropped_total", "counter"),
    ("stt_partials_total", "counter"),
    ("stt_errors_total", "labelled counter"),
    ("stt_jobs_inflight", "gauge"),
    ("stt_ticks_deferred_total", "labelled counter"),
    ("stt_buffer_frames", "histogram"),
    ("stt_flush_lateness_seconds", "histogram"),
    ("stt_inference_seconds", "histogram"),
];

fn metrics_names(site: &Site<'_>) -> Verdict {
    let scrape = site.metrics()?;
    let mut wrong = Vec::new();
    for (name, kind) in METRICS {
        let declared = scrape.type_of(name);
        if declared != kind.split(' ').next_back() {
            wrong.push(format!(
                "{name} is declared as {}",
                declared.unwrap_or("nothing")
            ));
            continue;
        }
        let samples: &[String] = &match kind {
            "labelled counter" => vec![],
            "histogram" => vec![format!("{name}_sum"), format!("{name}_count")],
            _ => vec![name.to_owned()],
        };
        let absent = samples
            .iter()
            .filter(|name| scrape.get(name, &[]).is_none());
        wrong.extend(absent.map(|name| format!("{name} has no sample")));
        if kind == "histogram"
            && scrape
                .get(&format!("{name}_bucket"), &[("le", "+Inf")])
                .is_none()
        {
            wrong.push(format!("{name} has no bucket le=\"+Inf\""));
        }
    }
    if wrong.is_empty() {
        Ok(format!("all {}", METRICS.len()))
    } else {
        Err(wrong.join("; "))
    }
}

fn start_line(site: &Site<'_>) -> Verdict {
    plimsoll_conformance::start_line::check(&site.server()?.output())
}
