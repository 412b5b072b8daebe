//! The block for one trial.

use plimsoll_core::latency::Quantiles;
use plimsoll_core::record::{GateResult, Inference, TargetResources, Trial};

use super::table::{Align, Table};
use super::{Paint, join, ms_cell, ws};
use crate::facts;
use crate::words::{self, bytes, count, maybe, number, percent, plain, us};

/// The block for one trial: verdict, gates, latencies from both starting points, ledger, costs, caveats with their
/// remedies.
#[must_use]
pub fn trial(trial: &Trial, color: bool) -> String {
    let paint = Paint { color };
    let word = trial.verdict.word().to_uppercase();
    let mut lines = vec![
        format!(
            "{}  {}",
            paint.verdict(trial.verdict, &word),
            paint.bold(&words::outcome(trial))
        ),
        format!(
            "{}, {}profile {}, measured for {} s, seed {}",
            plain(&trial.workload),
            facts::length(trial.length),
            plain(&trial.profile),
            number(trial.phases.measured_s),
            trial.seed
        ),
    ];
    if let Some(bottleneck) = &trial.bottleneck {
        lines.push(format!("bottleneck: {}", plain(bottleneck)));
    }
    lines.push(String::new());
    lines.extend(gates(&trial.gates, paint).lines());
    for further in &trial.further_slos {
        let word = paint.verdict(further.verdict, &further.verdict.word().to_uppercase());
        lines.push(String::new());
        lines.push(format!("  by the SLO {}: {word}", plain(&further.slo)));
        lines.extend(gates(&further.gates, paint).lines());
    }
    lines.push(String::new());
    lines.extend(latencies(trial).lines());
    lines.push(String::new());
    lines.extend(ws::lines(trial));
    lines.extend(ledger(trial));
    lines.push(client(trial));
    lines.push(target(trial));
    lines.extend(sockets(trial));
    lines.extend(trial.inference.as_ref().map(inference));
    lines.extend(drift(trial));
    lines.extend(sanity(trial));
    if !trial.caveats.is_empty() {
        lines.extend([String::new(), "caveats".to_owned()]);
    }
    for caveat in &trial.caveats {
        let blocking = if caveat.blocking { " (blocking)" } else { "" };
        let (id, text) = (plain(&caveat.id), plain(&caveat.text));
        lines.push(format!("  {id}{blocking}: {text}"));
    }
    join(&lines)
}

/// How latency and memory changed over the window.
fn drift(trial: &Trial) -> Vec<String> {
    facts::drift_of(trial)
        .enumerate()
        .map(|(index, row)| {
            let head = if index == 0 { "drift" } else { "" };
            let facts::DriftRow {
                name,
                slope,
                interval,
                reading,
            } = row;
            format!("  {head:<9}  {name}: {reading}, {slope} ({interval})")
        })
        .collect()
}

/// Accounts kept twice: only their names where they agree, with their numbers where they do not.
fn sanity(trial: &Trial) -> Vec<String> {
    let holding = trial.sanity.iter().filter(|check| check.holds);
    let names: Vec<_> = holding.map(|check| plain(&check.name)).collect();
    let mut lines = Vec::new();
    if !names.is_empty() {
        lines.push(format!("  accounts   agree: {}", names.join(", ")));
    }
    for check in facts::disagreeing(trial) {
        lines.push(format!(
            "  accounts   DO NOT AGREE: {}: {}",
            plain(&check.name),
            facts::sanity(check)
        ));
    }
    lines
}

fn gates(gates: &[GateResult], paint: Paint) -> Table {
    let mut table = Table::new(&[
        ("gate", Align::Left),
        ("observed", Align::Right),
        ("at most", Align::Right),
        ("", Align::Left),
    ]);
    for gate in gates {
        let (word, verdict) = if gate.pass {
            ("held", plimsoll_core::record::Verdict::Pass)
        } else {
            ("DID NOT HOLD", plimsoll_core::record::Verdict::Fail)
        };
        table.row(vec![
            plain(&gate.name).into(),
            words::observed(gate).into(),
            number(gate.threshold).into(),
            (word.to_owned(), paint.verdict(verdict, word)).into(),
        ]);
    }
    table
}

fn latencies(trial: &Trial) -> Table {
    let mut table = Table::new(&[
        ("latency in ms", Align::Left),
        ("p50", Align::Right),
        ("p90", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
        ("samples", Align::Right),
        ("unanswered", Align::Right),
    ]);
    for (name, quantiles) in words::latency_rows(&trial.latency) {
        let Quantiles {
            p50_ms,
            p90_ms,
            p95_ms,
            p99_ms,
            p999_ms,
            max_ms,
            count: samples,
            censored,
        } = quantiles;
        let mut row = vec![name.into()];
        let values = [p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms];
        row.extend(values.map(|value| ms_cell(*value).into()));
        row.extend([count(*samples).into(), count(*censored).into()]);
        table.row(row);
    }
    table
}

fn ledger(trial: &Trial) -> Vec<String> {
    let ledger = &trial.ledger;
    let frames = words::frames(trial);
    let (started, partials) = match trial.ws {
        Some(_) => ("connected", "messages"),
        None => ("sessions", "partials"),
    };
    let mut lines = vec![
        format!(
            "  {frames:<10} {} due, {} sent, {} answered, {} errored, {} lost, {} duplicated, {} out of order",
            count(ledger.frames_due),
            count(ledger.frames_sent),
            count(ledger.frames_answered),
            count(ledger.frames_errored),
            count(ledger.frames_lost),
            count(ledger.frames_duplicated),
            count(ledger.frames_out_of_order),
        ),
        format!(
            "  {started:<10} {} started, {} failed, {} died",
            count(ledger.sessions_started),
            count(ledger.sessions_failed),
            count(ledger.sessions_died),
        ),
        format!(
            "  answers    {} {partials}, {} errors, {} protocol faults, {} recomputed, {} of them wrong",
            count(ledger.partials),
            count(ledger.errors),
            count(ledger.protocol_faults),
            count(ledger.content_checked),
            count(ledger.content_wrong),
        ),
    ];
    for (reason, times) in &ledger.reasons {
        lines.push(format!(
            "             {} × {}",
            count(*times),
            plain(reason)
        ));
    }
    lines.extend(words::ledger_gap(trial).map(|gap| format!("             {gap}")));
    lines
}

fn client(trial: &Trial) -> String {
    let client = &trial.client;
    let steal = client.steal_share.map_or_else(String::new, |share| {
        format!(", {} stolen by the hypervisor", percent(share))
    });
    let achieved = client.achieved_share.map_or_else(String::new, |share| {
        let share = facts::near_whole(Some(share));
        format!(", achieved {share} of the offered load")
    });
    format!(
        "  client     {} of its busiest core, {} per frame, send lag p99.9 {}, send wait p99.9 {}{steal}{achieved}",
        percent(client.cpu_share),
        maybe(client.cpu_us_per_frame, us),
        maybe(client.send_lag.p999_us, us),
        maybe(client.send_wait.p999_us, us),
    )
}

fn target(trial: &Trial) -> String {
    let Some(resources) = &trial.target_resources else {
        return "  target     resources not measured".to_owned();
    };
    let TargetResources {
        cpu_us_per_session_second,
        cpu_share,
        rss_peak_bytes,
        rss_bytes_per_session,
        throttled_share,
        ..
    } = resources;
    let per_session = rss_bytes_per_session.map_or_else(String::new, |per_session| {
        let holder = words::holder(trial.load_unit);
        format!(" ({} per {holder})", bytes(per_session))
    });
    let throttled = throttled_share.map_or_else(String::new, |share| {
        format!(", throttled in {} of periods", percent(share))
    });
    let core = resources
        .core_us_per_session_second
        .map_or_else(String::new, |core_us| {
            let beyond = words::beyond_charged(resources)
                .map_or_else(String::new, |text| format!(": {text}"));
            format!(" ({} of its cores{beyond})", us(core_us))
        });
    format!(
        "  target     {} CPU {}{core}, {} of {}, RSS peak {}{per_session}{throttled}",
        maybe(*cpu_us_per_session_second, us),
        words::per_one_and_second(trial.load_unit),
        percent(*cpu_share),
        words::given(trial.vcpu),
        words::whole_bytes(*rss_peak_bytes),
    )
}

/// The target's ends of the connections: what each side left unread, and what was lost on the way.
fn sockets(trial: &Trial) -> Option<String> {
    let sockets = trial.target_resources.as_ref()?.sockets.as_ref()?;
    let again = sockets.retransmits.map_or_else(String::new, |segments| {
        format!(", {} segments retransmitted", count(segments))
    });
    Some(format!(
        "  sockets    {} connections, unread by the target {} at most, not acknowledged by the client {} at most{again}",
        count(sockets.connections_peak),
        words::whole_bytes(sockets.receive_queue_peak_bytes),
        words::whole_bytes(sockets.send_queue_peak_bytes),
    ))
}

fn inference(inference: &Inference) -> String {
    format!(
        "  inference  {} requests, {} of a core, queue wait p99 {}, answers later than drawn p99 {}",
        count(inference.requests),
        percent(inference.busy_share),
        maybe(inference.queue_wait.p99_us, us),
        maybe(inference.answer_lateness.p99_us, us),
    )
}
