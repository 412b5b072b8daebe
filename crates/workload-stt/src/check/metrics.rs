//! Section 8 of the contract: the metrics agree with what the checker did. One case at a time, so that counters are its own.

use plimsoll_conformance::case::{Series, value};
use plimsoll_host::http::Metrics;
use serde_json::json;

use super::registry::{Case, Site, Verdict, case};
use super::setup::COUNTERS;

pub(super) fn cases() -> Vec<Case> {
    [
        case(
            "metrics-sessions",
            "Sessions are counted, and the gauge follows them",
            "stt_sessions +2, then back; stt_sessions_total +2",
            sessions,
        ),
        case(
            "metrics-frames-and-partials",
            "Frames and partials are counted",
            "stt_frames_total +7, stt_partials_total as many as came",
            frames_and_partials,
        ),
        case(
            "metrics-errors",
            "Errors are counted by stage and kind",
            "stt_errors_total{stage=\"inference_request\",kind=\"http_5xx\"} as many as came, no partial",
            errors,
        ),
        case(
            "metrics-jobs-inflight",
            "Requests in flight are a gauge that comes back to 0",
            "stt_jobs_inflight 0 when nothing is in flight",
            jobs_inflight,
        ),
        case(
            "metrics-histograms",
            "The histograms have one observation for each flush",
            "each count grows by the partials that came, stt_buffer_frames_sum by the frames",
            histograms,
        ),
    ]
    .map(|case| case.in_setup(&COUNTERS))
    .into()
}

/// Waits until every expected growth is there; the text lists what was seen of each.
fn grown(site: &Site<'_>, before: &Metrics, expected: &[(Series, f64)]) -> Verdict {
    let growth = |now: &Metrics, series: Series| value(now, series) - value(before, series);
    let (scrape, _) = site.metrics_until(|now| {
        expected
            .iter()
            .all(|(series, by)| growth(now, *series) >= *by)
    })?;
    let seen: Vec<String> = expected
        .iter()
        .map(|(series, _)| format!("{} {:+}", text(*series), growth(&scrape, *series)))
        .collect();
    let exact = expected
        .iter()
        .all(|(series, by)| growth(&scrape, *series) == *by);
    if exact {
        Ok(seen.join(", "))
    } else {
        Err(seen.join(", "))
    }
}

/// A series as the exposition writes it.
fn text((name, labels): Series) -> String {
    if labels.is_empty() {
        return name.to_owned();
    }
    let labels: Vec<String> = labels
        .iter()
        .map(|(label, value)| format!("{label}=\"{value}\""))
        .collect();
    format!("{name}{{{}}}", labels.join(","))
}

const OPEN: Series = ("stt_sessions", &[]);
const JOBS: Series = ("stt_jobs_inflight", &[]);

/// The metrics once what earlier cases began has ended, its requests included: they are counted when they are answered. Where that takes too long, as they are.
fn at_rest(site: &Site<'_>) -> Result<Metrics, String> {
    let rests = |now: &Metrics| value(now, OPEN) == 0.0 && value(now, JOBS) == 0.0;
    site.metrics_until(rests).map(|(metrics, _)| metrics)
}

fn sessions(site: &Site<'_>) -> Verdict {
    // Sessions of an earlier case may still be ending.
    let (before, quiet) = site.metrics_until(|now| value(now, OPEN) == 0.0)?;
    if !quiet {
        return Err(format!(
            "stt_sessions is {} without a session",
            value(&before, OPEN)
        ));
    }
    let sessions = [site.session()?, site.session()?];
    let up = grown(
        site,
        &before,
        &[(OPEN, 2.0), (("stt_sessions_total", &[]), 2.0)],
    )?;
    for session in sessions {
        session.close()?;
    }
    let (after, back) = site.metrics_until(|now| value(now, OPEN) == 0.0)?;
    let seen = format!("{up}; then stt_sessions {}", value(&after, OPEN));
    if back { Ok(seen) } else { Err(seen) }
}

fn frames_and_partials(site: &Site<'_>) -> Verdict {
    let before = at_rest(site)?;
    let mut session = site.session()?;
    session.send_audio(4)?;
    let mut partials = session.until_all_named(site.patience())?.len();
    session.send_audio(3)?;
    partials += session.until_all_named(site.patience())?.len();
    session.close()?;
    grown(
        site,
        &before,
        &[
            (("stt_frames_total", &[]), 7.0),
            (("stt_partials_total", &[]), partials as f64),
            (("stt_frames_dropped_total", &[]), 0.0),
        ],
    )
}

fn errors(site: &Site<'_>) -> Verdict {
    let before = at_rest(site)?;
    let mut session = site.session()?;
    site.simulator()?.set_faults(&json!({ "http_503": 1.0 }))?;
    let named = session
        .send_audio(2)
        .and_then(|()| session.until_all_named(site.patience()));
    site.simulator()?.set_faults(&json!({}))?;
    let count = named?.len() as f64;
    session.close()?;
    grown(
        site,
        &before,
        &[
            (
                (
                    "stt_errors_total",
                    &[("stage", "inference_request"), ("kind", "http_5xx")],
                ),
                count,
            ),
            (("stt_partials_total", &[]), 0.0),
            (("stt_frames_total", &[]), 2.0),
        ],
    )
}

fn jobs_inflight(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    site.simulator()?.set_faults(&json!({ "never": 1.0 }))?;
    let sent = session.send_audio(1);
    let up = sent.and_then(|()| site.metrics_until(|now| value(now, JOBS) == 1.0));
    let named = session.until_all_named(site.patience());
    site.simulator()?.set_faults(&json!({}))?;
    let ((_, was_one), _) = (up?, named?);
    let (scrape, back) = site.metrics_until(|now| value(now, JOBS) == 0.0)?;
    let seen = format!(
        "1 while in flight: {was_one}, then {}",
        value(&scrape, JOBS)
    );
    if was_one && back { Ok(seen) } else { Err(seen) }
}

fn histograms(site: &Site<'_>) -> Verdict {
    let before = at_rest(site)?;
    let mut session = site.session()?;
    session.send_audio(6)?;
    let partials = session.until_all_named(site.patience())?.len() as f64;
    session.close()?;
    grown(
        site,
        &before,
        &[
            (("stt_buffer_frames_count", &[]), partials),
            (("stt_buffer_frames_sum", &[]), 6.0),
            (("stt_flush_lateness_seconds_count", &[]), partials),
            (("stt_inference_seconds_count", &[]), partials),
            (
                ("stt_inference_seconds_bucket", &[("le", "+Inf")]),
                partials,
            ),
        ],
    )
}
