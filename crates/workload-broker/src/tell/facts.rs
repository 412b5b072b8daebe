//! What a trial says besides its ledger and its latencies, in words: what was promised, what was sent, the rates, what
//! became of the messages, and what the broker held.

use plimsoll_core::record::Trial;
use plimsoll_document::words::{UNKNOWN, count, counted, near_whole, number, percent, plain, us};

use crate::record::BrokerRecord;
use crate::word::Word;

/// The columns of [`rates`].
pub(super) const RATE_COLUMNS: [&str; 3] = ["rate", ">per second", "share of the offered rate"];

/// The note under [`rates`].
pub(super) const RATES: &str = "Offered: due by the schedule. Published: taken by a socket. Confirmed: the broker's yes came inside the window. Delivered: arrived for the first time inside the window, in a stream at all readers together; what came after it is drained, not delivered.";

/// The note under [`closed_loop`].
pub(super) const CLOSED_LOOP: &str = "A closed loop: messages go as fast as the broker takes them. It has no latency that would mean anything, and decides nothing but whether messages are missing, doubled or reordered.";

/// The caption of [`messages`].
pub(super) const MESSAGES: &str = "What became of the measured messages";

/// What is promised for a message: `durable: at least once, confirmed when on disk …`.
pub(super) fn guarantee(trial: &Trial, broker: &BrokerRecord) -> String {
    let on_tmpfs = trial.environment.data_file_system.as_deref() == Some("tmpfs");
    broker.guarantee.map_or_else(
        || "nobody said what the broker promises".to_owned(),
        |guarantee| guarantee.words(on_tmpfs),
    )
}

/// What was sent, and by whom: `of 1,024 B from 2 writers to 2 readers, at most 1,024 unconfirmed each`.
pub(super) fn sent(trial: &Trial, broker: &BrokerRecord) -> String {
    let mut told = String::new();
    if let Some(bytes) = trial.whole_parameter("message_bytes") {
        told = format!("of {} B ", count(bytes));
    }
    told += &format!("from {}", counted(broker.writers.into(), "writer"));
    if broker.readers > 0 {
        let each = if trial.word_parameter("test") == Some("fanout") {
            "each of "
        } else {
            ""
        };
        told += &format!(" to {each}{}", counted(broker.readers.into(), "reader"));
    }
    let unconfirmed = trial.parameters.get("unconfirmed");
    if unconfirmed.and_then(serde_json::Value::as_bool) == Some(true) {
        told += ", unconfirmed";
    } else if let Some(window) = trial.whole_parameter("confirm") {
        told += &format!(", at most {} of a writer unconfirmed", count(window));
    }
    told
}

/// The rates, each with its share of the offered one.
pub(super) fn rates(broker: &BrokerRecord) -> Vec<[String; 3]> {
    let offered = broker.offered_per_s;
    let of_offered = |rate: f64| near_whole((offered > 0.0).then(|| rate / offered));
    let row = |name: &str, rate: f64| [name.to_owned(), number(rate), of_offered(rate)];
    let mut rows = vec![
        ["offered".to_owned(), number(offered), String::new()],
        row("published", broker.published_per_s),
        row("confirmed", broker.confirmed_per_s),
    ];
    // Each reader of a stream should get all that is offered.
    let each = broker.delivered_per_reader_per_s.is_some();
    let arrivals = if each { broker.readers.max(1) } else { 1 };
    rows.extend(broker.delivered_per_s.map(|rate| {
        let share = of_offered(rate / f64::from(arrivals));
        ["delivered".to_owned(), number(rate), share]
    }));
    if let Some([least, most]) = broker.delivered_per_reader_per_s {
        rows.push(row("delivered to the reader with the least", least));
        rows.push(row("delivered to the reader with the most", most));
    }
    rows
}

/// The same in a line.
pub(super) fn rates_in_a_line(broker: &BrokerRecord) -> String {
    let told = rates(broker).into_iter().map(|[name, rate, share]| {
        if share.is_empty() {
            format!("{rate} {name}")
        } else {
            format!("{rate} {name} ({share})")
        }
    });
    let told: Vec<String> = told.collect();
    format!("{} per second", told.join(", "))
}

/// What a closed loop shows.
pub(super) fn closed_loop(trial: &Trial, broker: &BrokerRecord) -> Vec<(String, String)> {
    let Some(closed) = &broker.closed_loop else {
        return Vec::new();
    };
    let seconds = |value: Option<f64>| known(value, |s| format!("{} s", number(s)));
    let cpu = known(cpu_us_per_message(trial, broker), us);
    if let Some(preloaded) = closed.preloaded {
        return [
            ("confirmed before the readers began", count(preloaded)),
            (
                "read, messages per second",
                known(closed.drained_per_s, number),
            ),
            ("read in", seconds(closed.drain_s)),
            ("CPU of the broker for a message that is read", cpu),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
    }
    [
        (
            "published, most in a second",
            count(closed.published_peak_per_s),
        ),
        (
            "confirmed, most in a second",
            count(closed.confirmed_peak_per_s),
        ),
        (
            "delivered, most in a second",
            count(closed.delivered_peak_per_s),
        ),
        (
            "held when the writers stopped, by the client's account",
            closed.backlog_at_window_end.to_string(),
        ),
        ("the rest arrived in", seconds(closed.drain_s)),
        ("CPU of the broker for a message", cpu),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// CPU time of the broker in the window for each message that arrived in it, in µs; `None` if nobody saw it.
#[expect(
    clippy::cast_precision_loss,
    reason = "messages of a trial, far below 2^53"
)]
pub(super) fn cpu_us_per_message(trial: &Trial, broker: &BrokerRecord) -> Option<f64> {
    let used = trial.target_resources.as_ref()?;
    let per_load = used.cpu_us_per_session_second?;
    if broker.closed_loop.is_none() {
        return Some(per_load);
    }
    // The load is readers: what they cost together each second, in the window's messages.
    let arrived = broker.messages.delivery.as_ref()?.arrived_in_window;
    let all_us = per_load * f64::from(trial.sessions) * trial.phases.measured_s;
    (arrived > 0).then(|| all_us / arrived as f64)
}

/// What became of the messages, what did not happen left out but for losses.
pub(super) fn messages(broker: &BrokerRecord) -> Vec<(String, String)> {
    let of = &broker.messages;
    let mut rows = vec![
        ("offered", of.offered, true),
        ("published", of.published, true),
        ("confirmed", of.confirmed, true),
        ("refused", of.refused, false),
        ("refused without a name", of.refused_unnamed, false),
        ("confirmed and refused", of.contradicted, false),
    ];
    if let Some(delivery) = &of.delivery {
        rows.extend([
            ("delivered in the window", delivery.in_window, true),
            ("drained after it", delivery.drained, true),
            ("missing", delivery.missing, true),
            ("lost: missing and confirmed", delivery.lost, true),
            ("duplicated", delivery.duplicated, true),
            (
                "redelivered, by the broker's own mark",
                delivery.redelivered,
                false,
            ),
            ("reordered", delivery.reordered, true),
            (
                "delivered without a confirm",
                delivery.without_confirm,
                false,
            ),
            (
                "delivered in spite of a refusal",
                delivery.in_spite_of_refusal,
                false,
            ),
        ]);
    }
    let shown = rows
        .into_iter()
        .filter(|(_, number, always)| *always || *number > 0);
    let mut shown: Vec<(String, String)> = shown
        .map(|(name, number, _)| (name.to_owned(), count(number)))
        .collect();
    let faults = broker.faults.iter();
    shown.extend(faults.map(|fault| {
        (
            format!("payloads: {}", plain(&fault.name)),
            count(fault.count),
        )
    }));
    shown.push(("compared byte by byte".to_owned(), count(broker.compared)));
    shown
}

/// The same in a line: `50,000 published, 50,000 confirmed, 0 missing, 0 lost, 0 duplicated, 0 reordered`.
pub(super) fn messages_in_a_line(broker: &BrokerRecord) -> String {
    let of = &broker.messages;
    let mut told = vec![
        format!("{} published", count(of.published)),
        format!("{} confirmed", count(of.confirmed)),
    ];
    if of.refused > 0 {
        told.push(format!("{} refused", count(of.refused)));
    }
    if let Some(delivery) = &of.delivery {
        let counts = [
            (delivery.drained, "drained"),
            (delivery.missing, "missing"),
            (delivery.lost, "of them lost"),
            (delivery.duplicated, "duplicated"),
            (delivery.reordered, "reordered"),
        ];
        told.extend(counts.map(|(number, what)| format!("{} {what}", count(number))));
    }
    told.join(", ")
}

/// Why messages waited, and what the broker held.
pub(super) fn backlog(broker: &BrokerRecord) -> Vec<(String, String)> {
    let waits = &broker.waits;
    let mut rows = vec![
        (
            "waited for the confirm window".to_owned(),
            waited(waits.window_messages, waits.window_ns),
        ),
        (
            "waited for the broker's flow control".to_owned(),
            waited(waits.flow_control_messages, waits.flow_control_ns),
        ),
        ("backlog grows by".to_owned(), slope(broker)),
        (
            "backlog at the end, by the client's account".to_owned(),
            known(broker.backlog.last(), |held| held.to_string()),
        ),
        (
            "held at the end, as the broker says".to_owned(),
            known(broker.depth_at_end, count),
        ),
        (
            "bytes written for a byte of messages".to_owned(),
            known(broker.written_per_payload_byte, number),
        ),
        (
            "flushes of the disk for 1,000 messages".to_owned(),
            known(broker.flushes_per_1000, number),
        ),
        (
            "the disk, by a probe before the trial".to_owned(),
            probe(broker),
        ),
    ];
    if waits.crash_messages > 0 {
        let waited = waited(waits.crash_messages, waits.crash_ns);
        rows.insert(
            2,
            ("waited for a connection after the crash".to_owned(), waited),
        );
    }
    rows
}

/// `ext4: 1,234 flushes per second, p50 0.8 ms, p99 2 ms; 512 MB/s`.
fn probe(broker: &BrokerRecord) -> String {
    let storage = broker.storage.as_ref();
    known(
        storage.and_then(|storage| storage.probe.as_ref()),
        |probe| {
            format!(
                "{}: {} flushes per second, p50 {} ms, p99 {} ms; {} MB/s",
                plain(&probe.file_system.kind),
                number(probe.flushes_per_s),
                number(probe.flush_p50_us / 1e3),
                number(probe.flush_p99_us / 1e3),
                number(probe.sequential_mb_per_s)
            )
        },
    )
}

/// The same in a line.
pub(super) fn backlog_in_a_line(broker: &BrokerRecord) -> String {
    let depth = broker.depth_at_end;
    let depth = depth.map_or_else(String::new, |held| {
        format!("; the broker holds {} at the end", counted(held, "message"))
    });
    format!("grows by {}{depth}", slope(broker))
}

/// `0.02 % of the rate (-0.1 % to 0.1 %)`.
fn slope(broker: &BrokerRecord) -> String {
    known(broker.backlog_slope, |slope| {
        format!(
            "{} of the rate ({} to {})",
            percent(slope.share()),
            percent(slope.low_share()),
            percent(slope.high_share())
        )
    })
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a trial")]
fn waited(messages: u64, all_ns: u64) -> String {
    if messages == 0 {
        return "none".to_owned();
    }
    let mean_ms = all_ns as f64 / messages as f64 / 1e6;
    format!(
        "{}, {} ms on average",
        counted(messages, "message"),
        number(mean_ms)
    )
}

/// The word, and what is said beside it.
pub(super) fn word(broker: &BrokerRecord) -> String {
    beside(broker.judged.word, broker.judged.storage_bound)
}

/// A word, and what is said beside it.
pub(super) fn beside(word: Word, storage_bound: Option<bool>) -> String {
    let bound = storage_bound == Some(true);
    let bound = if bound { ", storage bound" } else { "" };
    format!("{}{bound}", word.text())
}

/// A value in words, or the mark for one that is unknown.
pub(super) fn known<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), words)
}
