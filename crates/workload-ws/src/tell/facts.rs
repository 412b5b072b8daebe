//! What a trial says besides its ledger and its latencies, in words: how far its load came, what happened to arrivals,
//! whether the server decodes, and what a closed loop says about the same server.

use plimsoll_core::record::Trial;

use plimsoll_document::words::{self, UNKNOWN, count, maybe, near_whole, number, plain};

use crate::record::{DecodeRecord, WsOutcome, WsRecord};

/// The heading of this part.
pub(super) const HEADING: &str = "How far the load came";

/// The columns of [`delivered`].
pub(super) const DELIVERED_COLUMNS: [&str; 3] = ["what", ">count", "share"];

/// The columns of [`closed_loop`].
pub(super) const CLOSED_LOOP_COLUMNS: [&str; 3] = ["what", ">open loop", ">closed loop"];

/// The note under the comparison with the closed loop.
pub(super) const CLOSED_LOOP: &str = "The closed loop sends a ping only when the last one was answered, omits pings that it gave up from its percentiles, and counts messages when they are handed to a socket. It does not affect the verdict and is shown only for comparison.";

/// What was tested, in a line: `test throughput, dialect wse, 100 connections, 175 B a message, in json`.
pub(super) fn conditions(ws: &WsRecord) -> String {
    let mut told = vec![
        format!("test {}", plain(&ws.test)),
        format!("dialect {}", plain(&ws.dialect)),
    ];
    let connections = ws.connections;
    let connections = connections.map(|number| words::counted(number.into(), "connection"));
    told.extend(connections);
    let bytes = ws.message_bytes;
    told.extend(bytes.map(|bytes| format!("{} B a message", count(bytes))));
    let format = ws.format.as_deref();
    told.extend(format.map(|format| format!("in {}", plain(format))));
    told.extend(pace(ws));
    let addresses = ws.source_addresses.len();
    told.extend((addresses > 0).then(|| format!("from {addresses} addresses")));
    told.join(", ")
}

/// When things are due, as far as you can choose that for the test.
fn pace(ws: &WsRecord) -> impl Iterator<Item = String> {
    let period = ws.period_ms;
    let period = period.map(|ms| format!("a ping every {} ms", number(ms)));
    let rate = ws.published_per_s;
    let rate = rate.map(|rate| format!("{} published a second", number(rate)));
    let spacing = ws.spacing.as_deref();
    let spacing = spacing.map(|spacing| format!("{} arrivals", plain(spacing)));
    let linger = ws.linger_ms;
    let linger = linger.map(|ms| format!("each open for {} ms", number(ms)));
    [period, rate, spacing, linger].into_iter().flatten()
}

/// The names of the steps that a load takes: written, and proven to have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    /// It left the client.
    pub(super) written: &'static str,
    /// It is known to have arrived.
    pub(super) read: &'static str,
    /// What proves it.
    pub(super) proof: &'static str,
}

/// The steps of a test.
pub(super) fn steps(test: &str) -> Steps {
    let of = |written, read, proof| Steps {
        written,
        read,
        proof,
    };
    match test {
        "storm" => of(
            "begun",
            "opened",
            "Opened: upgraded and, in dialect wse, ready.",
        ),
        "fanout" => of(
            "published",
            "delivered",
            "Published: for each receiver. Delivered: received, by its number.",
        ),
        "ping" | "hold" | "limit" => of(
            "written",
            "answered",
            "Answered: its own pong or echo came, by its number.",
        ),
        _ => of(
            "written",
            "read by the server",
            "Read by the server: echoed, or before a barrier that was answered. That does not say that its application was handed it: processed does, by the application's own count.",
        ),
    }
}

/// One step that the load takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepReached {
    /// The name of the step.
    pub(super) name: &'static str,
    /// How much of the load got there.
    pub(super) count: String,
    /// The same as a share, and of what; empty for the first step.
    pub(super) share: String,
}

/// How far the load came, step by step.
pub(super) fn delivered(ws: &WsRecord) -> Vec<StepReached> {
    let Steps { written, read, .. } = steps(&ws.test);
    let delivered = &ws.delivered;
    let of_offered = |part| {
        let share = near_whole(share(part, delivered.offered));
        format!("{share} of those offered")
    };
    let step = |name, number, share| StepReached {
        name,
        count: count(number),
        share,
    };
    let mut told = vec![
        step(
            "offered in the measured window",
            delivered.offered,
            String::new(),
        ),
        step(written, delivered.written, of_offered(delivered.written)),
        step(read, delivered.read, of_offered(delivered.read)),
    ];
    told.extend(delivered.processed.map(|processed| {
        let of_written = near_whole(share(processed, delivered.written_in_all));
        let written = count(delivered.written_in_all);
        step(
            "processed in the whole trial",
            processed,
            format!("{of_written} of the {written} written in the whole trial"),
        )
    }));
    told
}

/// The same in a line: `10,000 offered, 10,000 written (100 %), 9,990 read by the server (99.9 %); 20,000 processed of
/// 20,002 written in the whole trial`.
pub(super) fn delivered_in_a_line(ws: &WsRecord) -> String {
    let Steps { written, read, .. } = steps(&ws.test);
    let delivered = &ws.delivered;
    let with_share = |part: u64, name: &str| {
        let share = near_whole(share(part, delivered.offered));
        format!("{} {name} ({share})", count(part))
    };
    let processed = delivered.processed.map_or_else(String::new, |processed| {
        format!(
            "; {} processed of {} written in the whole trial",
            count(processed),
            count(delivered.written_in_all)
        )
    });
    format!(
        "{} offered, {}, {}{processed}",
        count(delivered.offered),
        with_share(delivered.written, written),
        with_share(delivered.read, read)
    )
}

/// A part of a whole; `None` where the whole is 0.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a trial, far below 2^53"
)]
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The number per second of the measured window; `None` where a signal cut the window short.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a trial, far below 2^53"
)]
pub(super) fn per_second(number: u64, trial: &Trial) -> Option<f64> {
    let measured_s = trial.phases.measured_s;
    (!trial.interrupted && measured_s > 0.0).then(|| number as f64 / measured_s)
}

/// The sentence before [`outcomes`].
pub(super) const OUTCOMES: &str = "Arrivals that did not open, by outcome:";

/// What happened to arrivals that did not open, and how many there were of each outcome.
pub(super) fn outcomes(ws: &WsRecord) -> Vec<(String, String)> {
    let fact = |outcome: &WsOutcome| (plain(&outcome.name), count(outcome.count));
    ws.outcomes.iter().map(fact).collect()
}

/// The same in a line: `3 × tcp_refused, 1 × timeout`.
pub(super) fn outcomes_in_a_line(ws: &WsRecord) -> String {
    let told = outcomes(ws);
    let told: Vec<_> = told
        .iter()
        .map(|(name, times)| format!("{times} × {name}"))
        .collect();
    told.join(", ")
}

/// Whether the server decodes what it receives, in a sentence; `None` where the trial did not test this.
pub(super) fn decode(ws: &WsRecord) -> Option<String> {
    let DecodeRecord {
        asked,
        answered,
        proven,
    } = ws.decode?;
    let asked_so = format!(
        "{} of {} connections that asked in the very format of the messages were answered",
        count(answered),
        count(asked)
    );
    Some(if proven {
        format!("Decoded: {asked_so}.")
    } else {
        format!("Opaque: {asked_so}, so nothing shows that the server decodes it.")
    })
}

/// The same in one word, for a column.
pub(super) fn decode_in_a_word(ws: &WsRecord) -> &'static str {
    match ws.decode {
        Some(decode) if decode.proven => "decoded",
        Some(_) => "opaque",
        // An echo server just receives bytes, whatever they mean.
        None if ws.format.is_some() => "opaque",
        None => UNKNOWN,
    }
}

/// The closed loop beside the open one: the quantity, its value in the trial, and its value in the closed loop; `None`
/// where no closed loop was asked for.
pub(super) fn closed_loop(trial: &Trial, ws: &WsRecord) -> Option<Vec<[String; 3]>> {
    let closed = ws.closed_loop.as_ref()?;
    let open = &trial.latency.newest.from_schedule;
    let row = |what: &str, open: String, closed: String| [what.to_owned(), open, closed];
    let mut rows = Vec::new();
    if closed.pings_answered > 0 || closed.pings_given_up > 0 {
        let given_up = format!("{} left out", count(closed.pings_given_up));
        let waited = format!("{} counted with the time waited", count(open.censored));
        let answered = open.count.saturating_sub(open.censored);
        rows.push(row(
            "answered",
            count(answered),
            count(closed.pings_answered),
        ));
        rows.push(row("unanswered", waited, given_up));
        let digits = |value| maybe(value, number);
        for (what, open, closed) in [
            ("p50 in ms", open.p50_ms, closed.p50_ms),
            ("p95 in ms", open.p95_ms, closed.p95_ms),
            ("p99 in ms", open.p99_ms, closed.p99_ms),
            ("max in ms", open.max_ms, closed.max_ms),
        ] {
            rows.push(row(what, digits(open), digits(closed)));
        }
    }
    if let Some(handed_over) = closed.messages_per_second {
        let read = maybe(per_second(ws.delivered.read, trial), number);
        rows.push(row(
            "messages per second",
            format!("{read} read by the server"),
            format!("{} handed to sockets", number(handed_over)),
        ));
    }
    Some(rows)
}

/// The same in a line: `p50 0.3 ms, p99 1.2 ms over 5,000 pings, 3 given up`.
pub(super) fn closed_loop_in_a_line(ws: &WsRecord) -> Option<String> {
    let closed = ws.closed_loop.as_ref()?;
    let mut told = Vec::new();
    if closed.pings_answered > 0 || closed.pings_given_up > 0 {
        told.push(format!(
            "p50 {} ms, p99 {} ms over {} pings, {} given up",
            maybe(closed.p50_ms, number),
            maybe(closed.p99_ms, number),
            count(closed.pings_answered),
            count(closed.pings_given_up)
        ));
    }
    let messages = closed.messages_per_second;
    told.extend(messages.map(|rate| format!("{} messages per second", number(rate))));
    Some(told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Delivered;

    fn record(test: &str) -> WsRecord {
        WsRecord {
            test: test.to_owned(),
            dialect: "wse".to_owned(),
            connections: Some(100),
            message_bytes: Some(175),
            format: Some("json".to_owned()),
            delivered: Delivered {
                offered: 10_000,
                written: 10_000,
                read: 9_999,
                processed: Some(0),
                written_in_all: 20_000,
            },
            ..WsRecord::default()
        }
    }

    #[test]
    fn what_was_not_read_never_rounds_away() {
        let told = delivered(&record("throughput"));
        let shares: Vec<_> = told.iter().map(|step| step.share.as_str()).collect();
        assert_eq!(
            shares,
            [
                "",
                "100 % of those offered",
                "99.99 % of those offered",
                "0 % of the 20,000 written in the whole trial"
            ]
        );
        assert_eq!(told[2].name, "read by the server");
        let nothing = WsRecord {
            delivered: Delivered::default(),
            ..record("storm")
        };
        assert_eq!(delivered(&nothing)[2].share, "– of those offered");
        assert_eq!(delivered(&nothing)[2].name, "opened");
    }

    #[test]
    fn a_format_is_opaque_unless_shown_otherwise() {
        let mut ws = record("formats");
        assert_eq!(decode_in_a_word(&ws), "opaque");
        assert_eq!(decode(&ws), None);
        ws.decode = Some(DecodeRecord {
            asked: 100,
            answered: 99,
            proven: false,
        });
        assert_eq!(decode_in_a_word(&ws), "opaque");
        assert!(decode(&ws).unwrap().starts_with("Opaque: 99 of 100"));
        ws.decode = Some(DecodeRecord {
            asked: 100,
            answered: 100,
            proven: true,
        });
        assert_eq!(decode_in_a_word(&ws), "decoded");
        ws.decode = None;
        ws.format = None;
        assert_eq!(decode_in_a_word(&ws), UNKNOWN);
    }

    #[test]
    fn conditions_and_outcomes_are_one_line_each() {
        let mut ws = record("throughput");
        assert_eq!(
            conditions(&ws),
            "test throughput, dialect wse, 100 connections, 175 B a message, in json"
        );
        let outcome = |name: &str, count| WsOutcome {
            name: name.to_owned(),
            count,
        };
        ws = record("storm");
        (ws.connections, ws.message_bytes, ws.format) = (None, None, None);
        ws.spacing = Some("poisson".to_owned());
        ws.linger_ms = Some(1_000.0);
        ws.source_addresses = vec!["127.0.0.1".to_owned(), "127.0.0.2".to_owned()];
        assert_eq!(
            conditions(&ws),
            "test storm, dialect wse, poisson arrivals, each open for 1,000 ms, from 2 addresses"
        );
        ws.outcomes = vec![outcome("tcp_refused", 3_000), outcome("a\nb", 1)];
        assert_eq!(outcomes_in_a_line(&ws), "3,000 × tcp_refused, 1 × a b");
    }
}
