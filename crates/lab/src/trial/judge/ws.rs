//! What a trial of workload `ws` adds, and what its server or the machine left undone.

use std::net::IpAddr;

use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::record::{GateResult, Sections, TargetResources};
use plimsoll_engine::Report;
use plimsoll_host::machine::Limits;
use plimsoll_workload_ws::record::{
    ClosedLoopRecord, DecodeRecord, Delivered, SECTION, WsOutcome, WsRecord,
};
use plimsoll_workload_ws::{ArrivalOutcome, DecodeProof, Test};

use crate::trial::Measured;
use crate::trial::WsLoad;
use crate::trial::conditions::{Conditions, Load};
use crate::trial::stage::Staged;

/// The lowest share of the machine's memory that must be available. Below this, it is memory that ends a load: the
/// kernel and the page cache need the rest.
const MEMORY_SHARE_MIN: f64 = 0.05;
/// From this share of its open files on, a process is at its limit.
const FILES_SHARE: f64 = 0.99;

/// The section of such a trial; none for other workloads.
pub(super) fn sections(conditions: &Conditions, stage: &Staged, measured: &Measured) -> Sections {
    let Some(ws) = of(conditions) else {
        return Sections::default();
    };
    let mut record = record_of(
        ws,
        &measured.report,
        measured.soundness.processed,
        measured.decode,
        measured.closed_loop,
    );
    let from = stage.source_addresses(conditions);
    record.source_addresses = from.iter().map(IpAddr::to_string).collect();
    Sections::of(SECTION, &record)
}

fn of(conditions: &Conditions) -> Option<&WsLoad> {
    match &conditions.load {
        Load::Ws(ws) => Some(ws),
        Load::Stt { .. } | Load::Echo { .. } => None,
    }
}

fn record_of(
    ws: &WsLoad,
    report: &Report,
    processed: Option<u64>,
    decode: Option<DecodeProof>,
    closed_loop: Option<ClosedLoopRecord>,
) -> WsRecord {
    let ledger = &report.ledger;
    WsRecord {
        test: ws.test.name().to_owned(),
        dialect: ws.dialect.name().to_owned(),
        connections: ws.streams().then_some(ws.connections),
        message_bytes: ws.bytes_of_a_message().map(|bytes| bytes as u64),
        format: ws.streams().then(|| ws.format.name().to_owned()),
        period_ms: ws.pings().then(|| ms(ws.period_ns)),
        published_per_s: (ws.test == Test::Fanout).then_some(ws.rate_per_s),
        linger_ms: (ws.test == Test::Storm).then(|| ms(ws.linger_ns)),
        spacing: (ws.test == Test::Storm).then(|| ws.spacing.name().to_owned()),
        source_addresses: Vec::new(),
        delivered: Delivered {
            offered: ledger.frames_due,
            written: ledger.frames_sent,
            read: ledger.frames_answered,
            // What each connection asks in its format may also be handed over as a message. The accounts say whether
            // too much is counted.
            processed: processed.map(|processed| processed.min(ledger.frames_sent_in_all)),
            written_in_all: ledger.frames_sent_in_all,
        },
        outcomes: if ws.test == Test::Storm {
            outcomes(report)
        } else {
            Vec::new()
        },
        decode: decode.map(|proof| DecodeRecord {
            asked: proof.asked,
            answered: proof.answered,
            proven: proof.holds(),
        }),
        closed_loop,
    }
}

#[expect(clippy::cast_precision_loss, reason = "flags are in milliseconds")]
fn ms(ns: u64) -> f64 {
    ns as f64 / NS_PER_MS as f64
}

/// What became of arrivals that did not open, the most frequent outcome first. The ledger also lists what ended an open
/// connection, and what a server said wrong.
fn outcomes(report: &Report) -> Vec<WsOutcome> {
    let of_target = report.ledger.reasons.iter();
    let of_target = of_target
        .filter(|(reason, _)| is_outcome(reason))
        .map(|(reason, count)| (reason.clone(), *count));
    let local = report.client_faults.iter();
    let local = local.map(|(what, count)| (format!("local_{what}"), *count));
    let mut all: Vec<WsOutcome> = of_target
        .chain(local)
        .map(|(name, count)| WsOutcome { name, count })
        .collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    all
}

fn is_outcome(reason: &str) -> bool {
    let named = [
        ArrivalOutcome::TcpRefused,
        ArrivalOutcome::ClosedBeforeHttp,
        ArrivalOutcome::BadHandshake,
        ArrivalOutcome::Auth4401,
        ArrivalOutcome::NoServerReady,
        ArrivalOutcome::Timeout,
    ];
    reason.starts_with("http_status ") || named.iter().any(|outcome| outcome.name() == reason)
}

/// The format, if nothing shows that the server decodes it. An echo shows this of no format: it sends back what it need
/// not read.
pub(super) fn opaque_format(conditions: &Conditions, measured: &Measured) -> Option<String> {
    opaque(of(conditions)?, measured.decode)
}

fn opaque(ws: &WsLoad, decode: Option<DecodeProof>) -> Option<String> {
    let shown = decode.is_some_and(|proof| proof.holds() || proof.asked == 0);
    (ws.asks_for_decoding() && !shown).then(|| ws.format.name().to_owned())
}

/// What the machine ran out of, for client or target, so that this ended the load.
pub(super) fn machine_bound(
    conditions: &Conditions,
    stage: &Staged,
    measured: &Measured,
    target: Option<&TargetResources>,
    gates: &[GateResult],
) -> Vec<String> {
    if of(conditions).is_none() {
        return Vec::new();
    }
    let mut found: Vec<String> = measured.short_of.iter().cloned().collect();
    let faults = measured.report.client_faults.keys();
    found.extend(faults.filter_map(|what| lacked(what)).map(str::to_owned));
    // A target that passes had enough of everything.
    if let Some(target) = target
        && gates.iter().any(|gate| !gate.pass)
    {
        let ledger = &measured.report.ledger;
        let refused = ledger.sessions_failed + ledger.sessions_died > 0;
        let limit = Limits::of_this_process().fd_soft;
        // A target that we started has our limit.
        if refused && stage.group().is_some() && at_its_last_file(target.fds_peak, limit) {
            found.push("open files of the target".to_owned());
        }
        if target
            .machine_memory_available_share
            .is_some_and(|share| share < MEMORY_SHARE_MIN)
        {
            found.push("memory".to_owned());
        }
    }
    found.dedup();
    found
}

/// What the client's machine lacked if a call failed with `fault`.
fn lacked(fault: &str) -> Option<&'static str> {
    match fault {
        "EMFILE" | "ENFILE" => Some("open files"),
        "EADDRNOTAVAIL" => Some("ports"),
        "ENOBUFS" | "ENOMEM" => Some("memory for sockets"),
        _ => None,
    }
}

/// Whether a process has all the files that it may have. A higher number belongs to several processes, about which
/// nothing is known.
fn at_its_last_file(open: Option<u64>, limit: u64) -> bool {
    let share = open.map(|open| super::float(open) / super::float(limit));
    share.is_some_and(|share| (FILES_SHARE..=1.0).contains(&share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::ledger::Ledger;
    use plimsoll_engine::clock::Clock;
    use plimsoll_workload_ws::{Dialect, Format};

    fn report() -> Report {
        let mut ledger = Ledger {
            frames_due: 100,
            frames_sent: 99,
            frames_answered: 90,
            frames_sent_in_all: 130,
            ..Ledger::default()
        };
        for (reason, count) in [
            ("http_status 503", 3),
            ("timeout", 5),
            ("tcp_refused", 3),
            ("connection closed by the target", 7),
            ("no_server_hello", 8),
        ] {
            ledger.reasons.insert(reason.to_owned(), count);
        }
        Report {
            ledger,
            client_faults: [("EMFILE".to_owned(), 4)].into(),
            ..Report::empty(Clock::start())
        }
    }

    #[test]
    fn a_storms_failures_are_told_by_kind() {
        let storm = WsLoad::new(Test::Storm, Dialect::Wse);
        let record = record_of(&storm, &report(), None, None, None);
        let outcomes: Vec<_> = record
            .outcomes
            .iter()
            .map(|outcome| (outcome.name.as_str(), outcome.count))
            .collect();
        assert_eq!(
            outcomes,
            [
                ("timeout", 5),
                ("local_EMFILE", 4),
                ("http_status 503", 3),
                ("tcp_refused", 3)
            ]
        );
        assert_eq!((record.connections, record.message_bytes), (None, None));
        assert_eq!((record.format, record.decode), (None, None));
        let ping = WsLoad::new(Test::Ping, Dialect::Wse);
        let record = record_of(&ping, &report(), None, None, None);
        assert_eq!(record.outcomes, []);
    }

    #[test]
    fn how_far_messages_came() {
        let stream = WsLoad::new(Test::Throughput, Dialect::Wse);
        let proof = DecodeProof {
            asked: 100,
            answered: 100,
        };
        let closed_loop = ClosedLoopRecord {
            messages_per_second: Some(1e6),
            ..ClosedLoopRecord::default()
        };
        let record = record_of(&stream, &report(), Some(0), Some(proof), Some(closed_loop));
        assert_eq!(
            record.delivered,
            Delivered {
                offered: 100,
                written: 99,
                read: 90,
                processed: Some(0),
                written_in_all: 130,
            }
        );
        let record_of_more = record_of(&stream, &report(), Some(140), Some(proof), None);
        assert_eq!(record_of_more.delivered.processed, Some(130));
        assert_eq!(record.connections, Some(100));
        assert_eq!(record.message_bytes, Some(175));
        assert_eq!(record.format.as_deref(), Some("json"));
        assert!(record.decode.is_some_and(|decode| decode.proven));
        assert_eq!(record.closed_loop, Some(closed_loop));
    }

    #[test]
    fn a_format_is_opaque_until_the_server_shows_otherwise() {
        let asked = |answered| {
            Some(DecodeProof {
                asked: 10,
                answered,
            })
        };
        let mut wse = WsLoad::new(Test::Formats, Dialect::Wse);
        wse.format = Format::Zlib;
        assert_eq!(opaque(&wse, asked(0)).as_deref(), Some("zlib"));
        assert_eq!(opaque(&wse, asked(10)), None);
        // No session was open to ask.
        let nobody = DecodeProof {
            asked: 0,
            answered: 0,
        };
        assert_eq!(opaque(&wse, Some(nobody)), None);
        let echo = WsLoad::new(Test::Formats, Dialect::Echo);
        assert_eq!(opaque(&echo, None).as_deref(), Some("json"));
        assert_eq!(
            opaque(&WsLoad::new(Test::Matrix, Dialect::Echo), None),
            None
        );
        assert_eq!(opaque(&WsLoad::new(Test::Ping, Dialect::Wse), None), None);
    }

    #[test]
    fn the_end_of_the_files_is_that_of_one_process() {
        assert!(at_its_last_file(Some(1_000), 1_000) && at_its_last_file(Some(990), 1_000));
        assert!(!at_its_last_file(Some(989), 1_000) && !at_its_last_file(Some(4_000), 1_000));
        assert!(!at_its_last_file(None, 1_000));
        assert_eq!(lacked("EADDRNOTAVAIL"), Some("ports"));
        assert_eq!(lacked("EPERM"), None);
    }
}
