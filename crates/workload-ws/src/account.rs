//! What a trial of workload `ws` shows besides its ledger and its latencies.

use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::record::Sections;
use plimsoll_engine::Report;
use plimsoll_workload::{Findings, Outcome, Seen};
use serde::{Deserialize, Serialize};

use crate::closed_loop::ClosedLoop;
use crate::load::WsLoad;
use crate::record::{ClosedLoopRecord, DecodeRecord, Delivered, SECTION, WsOutcome, WsRecord};
use crate::{ArrivalOutcome, DecodeProof, Test};

/// What the sessions found out in addition to their report.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Whether the server decodes what it was sent, if it was asked.
    pub(crate) decode: Option<DecodeProof>,
    /// What a closed loop shows, if that was driven.
    pub(crate) closed_loop: Option<ClosedLoopRecord>,
}

impl Found {
    /// As the session machines hand it over.
    pub(crate) fn findings(&self) -> Findings {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What they handed over.
    pub(crate) fn of(findings: &Findings) -> Self {
        serde_json::from_value(findings.clone()).unwrap_or_default()
    }

    /// What pings in a closed loop found.
    pub(crate) fn of_pings(told: &ClosedLoop) -> Self {
        Self::of_closed_loop(ClosedLoopRecord {
            pings_answered: told.pings_answered,
            pings_given_up: told.pings_given_up,
            p50_ms: told.round_trip.p50_ms,
            p95_ms: told.round_trip.p95_ms,
            p99_ms: told.round_trip.p99_ms,
            max_ms: told.round_trip.max_ms,
            messages_per_second: None,
        })
    }

    /// What messages in a closed loop found.
    pub(crate) fn of_messages(told: &ClosedLoop) -> Self {
        Self::of_closed_loop(ClosedLoopRecord {
            messages_per_second: Some(told.messages_per_second),
            ..ClosedLoopRecord::default()
        })
    }

    fn of_closed_loop(record: ClosedLoopRecord) -> Self {
        Self {
            decode: None,
            closed_loop: Some(record),
        }
    }
}

/// What the trial showed.
pub(crate) fn outcome(load: &WsLoad, seen: &Seen<'_>) -> Outcome {
    let decode = Found::of(seen.findings).decode;
    let closed_loop = seen
        .afterwards
        .and_then(|found| Found::of(found).closed_loop);
    let mut record = record_of(load, seen.report, seen.processed, decode, closed_loop);
    let from = seen.source_addresses.iter();
    record.source_addresses = from.map(ToString::to_string).collect();
    Outcome {
        sections: Sections::of(SECTION, &record),
        opaque_format: opaque(load, decode),
        ..Outcome::default()
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
fn opaque(ws: &WsLoad, decode: Option<DecodeProof>) -> Option<String> {
    let shown = decode.is_some_and(|proof| proof.holds() || proof.asked == 0);
    (ws.asks_for_decoding() && !shown).then(|| ws.format.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Format};
    use plimsoll_core::ledger::Ledger;
    use plimsoll_engine::clock::Clock;

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
}
