//! What a trial shows besides its ledger and its latencies.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_S, Window};
use plimsoll_core::record::Sections;
use plimsoll_engine::Report;
use plimsoll_workload::{Outcome, Seen};

use crate::load::BrokerLoad;
use crate::machines::Found;
use crate::speaker::MESSAGES;
use crate::record::{BrokerFault, BrokerRecord, SECTION};
use crate::word::{Blame, Figures, Percentile};

/// From this lateness on, a message counts as late.
const LATE_US: u64 = 10_000;

/// What the trial showed.
pub(crate) fn outcome(load: &BrokerLoad, seen: &Seen<'_>) -> Outcome {
    let found = Found::of(seen.findings);
    let seconds = seconds(seen.window);
    let tally = &found.tally;
    let delivery = tally.delivery.as_ref();
    let per_reader = delivery.and_then(|delivery| delivery.least_and_most());
    let per_reader = per_reader.filter(|_| load.shape() == crate::dialect::Shape::Stream);
    let readers = delivery.map_or(0, |delivery| delivery.readers.len());
    let record = BrokerRecord {
        guarantee: load.guarantee(),
        writers: load.writers,
        readers: u32::try_from(readers).unwrap_or(u32::MAX),
        offered_per_s: per_second(tally.offered, seconds),
        published_per_s: per_second(tally.published, seconds),
        confirmed_per_s: per_second(tally.confirmed_in_window, seconds),
        delivered_per_s: delivery.map(|of| per_second(of.arrived_in_window, seconds)),
        delivered_per_reader_per_s: per_reader
            .map(|(least, most)| [per_second(least, seconds), per_second(most, seconds)]),
        messages: tally.clone(),
        waits: found.waits,
        backlog_slope: found.slope,
        backlog: found.backlog.clone(),
        depth_at_end: depth(seen),
        judged: figures(&found, seen.report).judged(),
        faults: found
            .faults
            .iter()
            .map(|(name, count)| BrokerFault {
                name: name.clone(),
                count: *count,
            })
            .collect(),
        compared: found.compared,
    };
    Outcome {
        sections: Sections::of(SECTION, &record),
        opaque_format: None,
        caveats: caveats(&found),
    }
}

/// The broker's own count of what it held at the end.
fn depth(seen: &Seen<'_>) -> Option<u64> {
    seen.account.get(MESSAGES).and_then(serde_json::Value::as_u64)
}

/// What makes the trial say nothing about the broker.
fn caveats(found: &Found) -> Vec<Caveat> {
    let delivery = found.tally.delivery.as_ref();
    let never_due = delivery.map_or(0, |of| of.never_due) + found.tally.answers_never_due;
    let leftover = found.faults.get("leftover").copied().unwrap_or(0);
    let foreign = never_due + leftover + found.faults.get("foreign").copied().unwrap_or(0);
    let mut caveats = Vec::new();
    if foreign > 0 {
        caveats.push(Caveat {
            id: "foreign-messages".to_owned(),
            blocking: true,
            text: format!(
                "{foreign} messages or answers are of no message of this trial; somebody else uses the broker, or it kept messages of another trial: give it to the trial alone"
            ),
        });
    }
    if found.absent > 0 {
        caveats.push(Caveat {
            id: "account-incomplete".to_owned(),
            blocking: true,
            text: format!(
                "{} connections handed over no account, so nothing can be said about losses; run again",
                found.absent
            ),
        });
    }
    caveats
}

/// The figures from which the trial's word follows.
fn figures(found: &Found, report: &Report) -> Figures {
    let tally = &found.tally;
    let delivery = tally.delivery.as_ref();
    let unpublished = tally.offered - tally.published;
    let owed = report.frames_owed.unwrap_or(0).min(unpublished);
    let late = |series| {
        let histogram = report.latency.histogram(series);
        histogram.len() - histogram.count_between(0, LATE_US)
    };
    let deliver_p99 = report.latency.summary().newest.from_schedule.p99_ms;
    Figures {
        offered: tally.offered,
        unpublished: Blame {
            client: owed,
            broker: unpublished - owed,
        },
        late: Blame {
            client: late(Series::SendLag),
            broker: late(Series::SendWait),
        },
        missing: delivery.map(|of| of.missing),
        lost: delivery.map(|of| of.lost),
        slope: found.slope,
        deliver_p99: deliver_p99.filter(|_| delivery.is_some()).map(|ms| Percentile {
            ms,
            at_least: report.latency.censored() > 0,
        }),
        lowest_rate_p99: None,
        storage: None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a window")]
fn seconds(window: Window) -> f64 {
    (window.end_ns - window.start_ns) as f64 / NS_PER_S as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below 2^53 in any trial"
)]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}
