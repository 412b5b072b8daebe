//! What a trial shows besides its ledger and its latencies.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_S, Window};
use plimsoll_core::record::{Sections, Storage};
use plimsoll_workload::{Outcome, Seen};

use crate::load::BrokerLoad;
use crate::machines::Found;
use crate::marks::Tally;
use crate::record::{BrokerFault, BrokerRecord, SECTION};
use crate::replay::Replay;
use crate::speaker::MESSAGES;
use crate::word::{Blame, Figures, Percentile, Storage as Used};

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
    let storage = seen.storage.map(|storage| over_a_crash(load, storage));
    let storage = storage.as_ref();
    let replayed = found.replayed.as_ref();
    let replay = replayed.zip(seen.crashed).zip(load.crash.as_ref());
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
        storage: storage.cloned(),
        written_per_payload_byte: written_per_byte(load, tally, seconds, storage),
        flushes_per_1000: flushes_per_1000(tally, seconds, storage),
        judged: figures(&found, seen).judged(),
        faults: found
            .faults
            .iter()
            .map(|(name, count)| BrokerFault {
                name: name.clone(),
                count: *count,
            })
            .collect(),
        compared: found.compared,
        replay: replay.map(|((replayed, crashed), crash)| Replay::of(crash, replayed, crashed)),
    };
    Outcome {
        sections: Sections::of(SECTION, &record),
        opaque_format: None,
        caveats: caveats(&found, seen),
    }
}

/// The broker's own count of what it held at the end.
fn depth(seen: &Seen<'_>) -> Option<u64> {
    seen.account
        .get(MESSAGES)
        .and_then(serde_json::Value::as_u64)
}

/// What makes the trial say nothing about the broker.
fn caveats(found: &Found, seen: &Seen<'_>) -> Vec<Caveat> {
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
    let lost = found.confirmed_lost.unwrap_or(0);
    let replayed = found.replayed.as_ref().zip(seen.crashed);
    caveats.extend(
        replayed.and_then(|(replayed, crashed)| replayed.doubt(lost, &seen.window, crashed)),
    );
    caveats
}

/// What the storage did. Over a crash, what the killed processes wrote is known only in part, and what the disk flushed
/// was also for the start.
fn over_a_crash(load: &BrokerLoad, storage: &Storage) -> Storage {
    let mut storage = storage.clone();
    if load.crash.is_some() {
        storage.target_written_bytes = None;
        storage.device_flushes = None;
    }
    storage
}

/// The figures from which the trial's word follows. Over a crash, what was open then is not missing, and what was late
/// was late by our doing.
fn figures(found: &Found, seen: &Seen<'_>) -> Figures {
    let report = seen.report;
    let tally = &found.tally;
    let delivery = tally.delivery.as_ref();
    let unpublished = tally.offered - tally.published;
    let owed = report.frames_owed.unwrap_or(0).min(unpublished);
    let late = |series| {
        let histogram = report.latency.histogram(series);
        histogram.len() - histogram.count_between(0, LATE_US)
    };
    let by_broker = |messages: u64| found.replayed.as_ref().map_or(messages, |_| 0);
    let replayed = found.replayed.as_ref();
    let open_missing = replayed.map_or(0, |replayed| replayed.crossed.open_missing);
    let deliver_p99 = report.latency.summary().newest.from_schedule.p99_ms;
    Figures {
        offered: tally.offered,
        unpublished: Blame {
            client: owed,
            broker: by_broker(unpublished - owed),
        },
        late: Blame {
            client: late(Series::SendLag),
            broker: by_broker(late(Series::SendWait)),
        },
        missing: delivery.map(|of| of.missing.saturating_sub(open_missing)),
        lost: match &found.replayed {
            Some(_) => found.confirmed_lost,
            None => delivery.map(|of| of.lost),
        },
        slope: found.slope,
        deliver_p99: deliver_p99
            .filter(|_| delivery.is_some())
            .map(|ms| Percentile {
                ms,
                at_least: report.latency.censored() > 0,
            }),
        lowest_rate_p99: None,
        storage: seen.storage.and_then(used),
    }
}

/// Messages that were published while the storage was watched.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below 2^53 in any trial"
)]
fn published_in(tally: &Tally, seconds: f64, storage: &Storage) -> Option<f64> {
    let published = tally.published as f64 / seconds * storage.seconds;
    (published > 0.0).then_some(published)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a trial, far below 2^53"
)]
fn written_per_byte(
    load: &BrokerLoad,
    tally: &Tally,
    seconds: f64,
    storage: Option<&Storage>,
) -> Option<f64> {
    let storage = storage?;
    let payload = published_in(tally, seconds, storage)? * load.message_bytes as f64;
    Some(storage.target_written_bytes? as f64 / payload)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below 2^53 in any trial"
)]
fn flushes_per_1000(tally: &Tally, seconds: f64, storage: Option<&Storage>) -> Option<f64> {
    let storage = storage?;
    let published = published_in(tally, seconds, storage)?;
    Some(storage.device_flushes? as f64 * 1e3 / published)
}

/// What the disk did, beside what it can do.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below 2^53 in any trial"
)]
fn used(storage: &Storage) -> Option<Used> {
    let probe = storage.probe.as_ref()?;
    let per_s = |count: u64| count as f64 / storage.seconds;
    Some(Used {
        bytes_per_s: per_s(storage.device_written_bytes?),
        flushes_per_s: per_s(storage.device_flushes.unwrap_or(0)),
        probe_bytes_per_s: probe.sequential_mb_per_s * 1e6,
        probe_flushes_per_s: probe.device_flushes_per_s.unwrap_or(probe.flushes_per_s),
    })
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
