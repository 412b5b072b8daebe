//! What a trial shows besides its ledger and its latencies.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::latency::Series;
use plimsoll_core::record::{Sections, Storage};
use plimsoll_document::words::{count, percent};
use plimsoll_engine::Unread;
use plimsoll_workload::{Outcome, Seen};

use crate::dialect::Shape;
use crate::load::{BrokerLoad, Spoken};
use crate::machines::Found;
use crate::record::{BrokerFault, BrokerRecord, SECTION};
use crate::replay::Replay;
use crate::session::unread_max_bytes;
use crate::speaker::MESSAGES;
use crate::word::{Blame, Figures, Storage as Used};

/// The share of looks at readers' sockets in which too much may lie unread.
const BEHIND_SHARE: f64 = 0.01;
/// From this lateness on, a message counts as late.
const LATE_US: u64 = 10_000;

/// What the trial showed.
pub(crate) fn outcome(load: &BrokerLoad, seen: &Seen<'_>) -> Outcome {
    let found = Found::of(seen.findings);
    let per_second = |count| seen.window.per_second(count);
    let published_per_s = per_second(found.tally.published);
    let tally = &found.tally;
    let delivery = tally.delivery.as_ref();
    let per_reader = delivery.and_then(|delivery| delivery.least_and_most());
    let per_reader = per_reader.filter(|_| load.shape() == Shape::Stream);
    let readers = delivery.map_or(0, |delivery| delivery.readers.len());
    let storage = seen.storage.map(|storage| over_a_crash(load, storage));
    let storage = storage.as_ref();
    let replayed = found.replayed.as_ref();
    let replay = replayed.zip(seen.crashed).zip(load.crash.as_ref());
    let record = BrokerRecord {
        guarantee: load.guarantee(),
        writers: load.writers,
        readers: u32::try_from(readers).unwrap_or(u32::MAX),
        offered_per_s: per_second(tally.offered),
        published_per_s,
        confirmed_per_s: per_second(tally.confirmed_in_window),
        delivered_per_s: delivery.map(|of| per_second(of.arrived_in_window)),
        delivered_per_reader_per_s: per_reader
            .map(|(least, most)| [per_second(least), per_second(most)]),
        messages: tally.clone(),
        waits: found.waits,
        backlog_slope: found.slope,
        backlog: found.backlog.clone(),
        depth_at_end: depth(seen),
        storage: storage.cloned(),
        written_per_payload_byte: written_per_byte(load, published_per_s, storage),
        flushes_per_1000: flushes_per_1000(published_per_s, storage),
        judged: figures(load, &found, seen).judged(),
        closed_loop: found.closed_loop,
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
        caveats: caveats(load, &found, seen.report.unread)
            .into_iter()
            .chain(over_crash_doubt(&found, seen))
            .collect(),
        ..Outcome::default()
    }
}

/// The broker's own count of what it held at the end.
fn depth(seen: &Seen<'_>) -> Option<u64> {
    seen.account
        .get(MESSAGES)
        .and_then(serde_json::Value::as_u64)
}

/// What the queue still held at the end. A stream keeps what was delivered, and what mosquitto counts is not the queue alone.
fn held(load: &BrokerLoad, seen: &Seen<'_>) -> Option<u64> {
    let counts_queue = load.shape() == Shape::Queue && load.spoken != Some(Spoken::Mqtt);
    depth(seen).filter(|_| counts_queue)
}

/// What makes the trial say nothing about the broker.
fn caveats(load: &BrokerLoad, found: &Found, unread: Unread) -> Vec<Caveat> {
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
    caveats.extend(reader_behind(load, unread));
    caveats.extend(preload_late(load, found));
    caveats
}

/// Doubt about test `replay`: what is lost may only be late.
fn over_crash_doubt(found: &Found, seen: &Seen<'_>) -> Option<Caveat> {
    let (replayed, crashed) = found.replayed.as_ref().zip(seen.crashed)?;
    let lost = found.confirmed_lost.unwrap_or(0);
    replayed.doubt(lost, &seen.window, crashed)
}

/// Doubt about test `drain`: what was still being published was not drained.
fn preload_late(load: &BrokerLoad, found: &Found) -> Option<Caveat> {
    let preloaded = found.closed_loop?.preloaded?;
    (preloaded < load.preload).then(|| Caveat {
        id: "preload-late".to_owned(),
        blocking: true,
        text: format!(
            "only {} of {} messages were confirmed when the readers began; give the writers more time (--warm-up), or preload fewer messages (--preload)",
            count(preloaded),
            count(load.preload)
        ),
    })
}

/// Doubt about the client: what arrived lay unread, so that its age is the client's doing.
fn reader_behind(load: &BrokerLoad, unread: Unread) -> Option<Caveat> {
    let share = unread
        .behind_share()
        .filter(|share| *share > BEHIND_SHARE)?;
    Some(Caveat {
        id: "reader-behind".to_owned(),
        blocking: true,
        text: format!(
            "for {} of the window, more than {} KiB lay unread in the readers' sockets, allowed {}; give the client more cores (--client-cpus), or use fewer messages per second",
            percent(share),
            unread_max_bytes(load.message_bytes) >> 10,
            percent(BEHIND_SHARE),
        ),
    })
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
fn figures(load: &BrokerLoad, found: &Found, seen: &Seen<'_>) -> Figures {
    let report = seen.report;
    let tally = &found.tally;
    let delivery = tally.delivery.as_ref();
    let unpublished = tally.offered - tally.published;
    let owed = report.frames_owed.unwrap_or(0).min(unpublished);
    let late = |series| {
        let histogram = report.latency.histogram(series);
        histogram.len() - histogram.count_between(0, LATE_US)
    };
    let replayed = found.replayed.as_ref();
    let by_broker = |messages: u64| replayed.map_or(messages, |_| 0);
    let open_missing = replayed.map_or(0, |replayed| replayed.crossed.open_missing);
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
        lost: match replayed {
            Some(_) => found.confirmed_lost,
            None => delivery.map(|of| of.lost),
        },
        held: held(load, seen),
        slope: found.slope,
        storage: seen.storage.and_then(used),
    }
}

/// Messages that were published while the storage was watched.
fn published_in(published_per_s: f64, storage: &Storage) -> Option<f64> {
    let published = published_per_s * storage.seconds;
    (published > 0.0).then_some(published)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a trial, far below 2^53"
)]
fn written_per_byte(
    load: &BrokerLoad,
    published_per_s: f64,
    storage: Option<&Storage>,
) -> Option<f64> {
    let storage = storage?;
    let payload = published_in(published_per_s, storage)? * load.message_bytes as f64;
    Some(storage.target_written_bytes? as f64 / payload)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below 2^53 in any trial"
)]
fn flushes_per_1000(published_per_s: f64, storage: Option<&Storage>) -> Option<f64> {
    let storage = storage?;
    let published = published_in(published_per_s, storage)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PARAMETERS;
    use crate::record::ClosedLoop;
    use plimsoll_workload::{Value, Values};

    #[test]
    fn a_late_client_or_a_late_preload_makes_the_trial_invalid() {
        let load = |bytes| {
            let values = Values::default().with("message_bytes", Value::Whole(bytes));
            BrokerLoad::of(&values.or_usual(&PARAMETERS)).unwrap()
        };
        let behind = |bytes, behind| {
            let unread = Unread {
                watched_ns: 1_000,
                behind_ns: behind,
            };
            let all = caveats(&load(bytes), &Found::default(), unread);
            all.into_iter().next()
        };
        assert_eq!(behind(1_024, 10), None, "1 % is allowed");
        let caveat = behind(1_024, 11).expect("a caveat");
        assert!(caveat.client_ran_out() && caveat.blocking);
        let told = "for 1.1 % of the window, more than 64 KiB lay unread in the readers' sockets";
        assert!(caveat.text.starts_with(told), "{}", caveat.text);
        let long = behind(1 << 20, 500).expect("a caveat");
        assert!(long.text.contains("more than 2048 KiB"), "{}", long.text);
        let mut found = Found {
            closed_loop: Some(ClosedLoop {
                preloaded: Some(99_999),
                ..ClosedLoop::default()
            }),
            ..Found::default()
        };
        let late = caveats(&load(1_024), &found, Unread::default());
        let told = "only 99,999 of 100,000 messages were confirmed when the readers began";
        assert!(late[0].blocking && late[0].text.starts_with(told));
        found.closed_loop = None;
        let nobody = caveats(&load(1_024), &found, Unread::default());
        assert_eq!(nobody, []);
    }
}
