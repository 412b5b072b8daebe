//! What a trial shows besides its ledger and its latencies.

use plimsoll_core::profile::Window;
use plimsoll_core::record::Sections;
use plimsoll_engine::Report;
use plimsoll_workload::{Outcome, Seen};

use crate::load::HttpLoad;
use crate::machines::Found;
use crate::outcome::{RequestOutcome, UNASKED_ANSWER};
use crate::plan::content_unchecked;
use crate::record::{HttpClosedLoop, HttpConnections, HttpOutcome, HttpRecord, SECTION};

/// What the trial showed.
pub(crate) fn outcome(load: &HttpLoad, seen: &Seen<'_>) -> Outcome {
    let found = Found::of(seen.findings);
    let per_second = |count| seen.window.per_second(count);
    let counts = found.counts;
    let ledger = &seen.report.ledger;
    let record = HttpRecord {
        request: load.request(seen.path),
        offered_per_s: per_second(ledger.frames_due),
        achieved_per_s: per_second(counts.written_in_window),
        completed_per_s: per_second(counts.answered_in_window),
        found_all_busy: counts.found_all_busy,
        outcomes: outcomes(seen.report),
        connections: HttpConnections {
            opened: counts.connections_opened,
            failed: counts.connections_failed,
            closed_announced: counts.closed_announced,
            closed_idle: counts.closed_idle,
            asked_again: counts.asked_again,
            left_open: counts.left_open,
        },
        bytes_per_answer: share(ledger.bytes_received, ledger.frames_answered_in_all),
        closed_loop: seen
            .afterwards
            .map(|found| closed_loop(&Found::of(found), &seen.window)),
    };
    let unchecked = counts.bodies_unchecked > 0;
    Outcome {
        sections: Sections::of(SECTION, &record),
        caveats: unchecked.then(content_unchecked).into_iter().collect(),
        ..Outcome::default()
    }
}

fn closed_loop(found: &Found, window: &Window) -> HttpClosedLoop {
    let from_write = found.from_write.clone().unwrap_or_default();
    HttpClosedLoop {
        completed_per_s: window.per_second(found.counts.answered_in_window),
        p50_ms: from_write.p50_ms,
        p99_ms: from_write.p99_ms,
        max_ms: from_write.max_ms,
    }
}

/// Why measured requests failed or got lost, and answers that nobody asked for, the most frequent first.
fn outcomes(report: &Report) -> Vec<HttpOutcome> {
    let of_target = report.ledger.reasons.iter();
    let is_outcome = |name: &str| RequestOutcome::is_name(name) || name == UNASKED_ANSWER;
    let of_target = of_target.filter(|(reason, _)| is_outcome(reason));
    let of_target = of_target.map(|(reason, count)| (reason.clone(), *count));
    let local = report.client_faults.iter();
    let local = local.map(|(what, count)| (format!("local_{what}"), *count));
    let mut all: Vec<HttpOutcome> = of_target
        .chain(local)
        .map(|(name, count)| HttpOutcome { name, count })
        .collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    all
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below 2^53 in any trial"
)]
fn share(of: u64, among: u64) -> Option<f64> {
    (among > 0).then(|| of as f64 / among as f64)
}
