//! The section of one trial.

use std::collections::BTreeMap;

use plimsoll_core::latency::LagQuantiles;
use plimsoll_core::record::Trial;

use super::{Page, Table, code, escape, evidence};
use crate::folder::StoredTrial;
use crate::words::{self, bytes, count, maybe, ms_digits, number, percent, us};

/// Everything about one trial: verdict in words, whether it can be believed, gates, ledger, latencies, costs, how to repeat it.
pub(super) fn section(page: &mut Page, stored: &StoredTrial) {
    let trial = &stored.trial;
    page.heading(
        1,
        &format!(
            "{} at {}: {}",
            escape(&trial.target.name),
            words::sessions(trial.sessions),
            trial.verdict.word()
        ),
    );
    page.paragraph(&format!(
        "**{}**: {}.",
        trial.verdict.word(),
        escape(&words::outcome(trial))
    ));
    if trial.interrupted {
        page.paragraph("The trial was interrupted: this is what was measured until then.");
    }
    page.heading(2, "Can it be believed?");
    caveats(page, trial);
    page.heading(2, "Gates");
    gates(page, trial);
    page.heading(2, "Ledger");
    ledger(page, trial);
    page.heading(2, "Latency");
    latency(page, trial);
    page.heading(2, "Client");
    client(page, trial);
    page.heading(2, "Resources of the target");
    resources(page, trial);
    if let Some(inference) = &trial.inference {
        page.heading(2, "Inference simulator");
        let mut table = Table::new(&["what", ">value"]);
        table.row(["requests", &count(inference.requests)]);
        table.row(["share of one core", &percent(inference.busy_share)]);
        table.row(["CPU per request", &maybe(inference.cpu_us_per_request, us)]);
        lag_rows(&mut table, "queue wait", &inference.queue_wait);
        lag_rows(
            &mut table,
            "answers later than drawn",
            &inference.answer_lateness,
        );
        page.table(&table);
    }
    page.heading(2, "Environment");
    evidence::environment(page, trial);
    page.heading(2, "How to repeat");
    evidence::repeat(page, trial, "run", Some(trial.sessions), trial.seed);
    page.paragraph(&format!(
        "Measured at {}; every second in `{stem}.csv`, histograms in `{stem}.hlog`.",
        escape(&trial.started_at),
        stem = code(&stored.stem)
    ));
}

fn caveats(page: &mut Page, trial: &Trial) {
    let caveat = |caveat: &plimsoll_core::caveat::Caveat| {
        let blocking = if caveat.blocking { " (blocking)" } else { "" };
        format!(
            "**{}**{blocking}: {}",
            escape(&caveat.id),
            escape(&caveat.text)
        )
    };
    let mut items: Vec<_> = trial.caveats.iter().map(caveat).collect();
    items.extend(words::ledger_gap(trial).map(|gap| format!("**ledger**: {gap}")));
    if items.is_empty() {
        page.paragraph("Nothing speaks against it: no caveats.");
    } else {
        page.paragraph("What speaks against it, with the remedy:");
        page.list(&items);
    }
}

fn gates(page: &mut Page, trial: &Trial) {
    let mut table = Table::new(&["gate", ">observed", ">at most", "held"]);
    for gate in &trial.gates {
        let held = if gate.pass { "yes" } else { "**no**" };
        let name = format!("`{}`", code(&gate.name));
        table.row([&name, &words::observed(gate), &number(gate.threshold), held]);
    }
    page.table(&table);
}

fn ledger(page: &mut Page, trial: &Trial) {
    let ledger = &trial.ledger;
    let mut table = Table::new(&["what", ">count"]);
    for (name, value) in [
        ("frames due in the measured window", ledger.frames_due),
        ("frames sent", ledger.frames_sent),
        ("frames answered", ledger.frames_answered),
        ("frames errored", ledger.frames_errored),
        ("frames lost", ledger.frames_lost),
        ("frames duplicated", ledger.frames_duplicated),
        ("frames out of order", ledger.frames_out_of_order),
        ("sessions started", ledger.sessions_started),
        ("sessions failed", ledger.sessions_failed),
        ("sessions died", ledger.sessions_died),
        ("partials", ledger.partials),
        ("errors", ledger.errors),
        ("protocol faults", ledger.protocol_faults),
        ("answers recomputed", ledger.content_checked),
        ("answers wrong", ledger.content_wrong),
        ("frames sent in the whole trial", ledger.frames_sent_in_all),
        ("bytes sent in the whole trial", ledger.bytes_sent),
        ("bytes received in the whole trial", ledger.bytes_received),
    ] {
        table.row([name, &count(value)]);
    }
    page.table(&table);
    reasons(
        page,
        "Why sessions failed or died, and what the protocol faults were:",
        &ledger.reasons,
    );
}

fn reasons(page: &mut Page, title: &str, reasons: &BTreeMap<String, u64>) {
    if !reasons.is_empty() {
        page.paragraph(title);
        let item =
            |(reason, times): (&String, &u64)| format!("{} × {}", count(*times), escape(reason));
        let items: Vec<_> = reasons.iter().map(item).collect();
        page.list(&items);
    }
}

fn latency(page: &mut Page, trial: &Trial) {
    let mut table = Table::new(&[
        "in ms",
        ">p50",
        ">p90",
        ">p95",
        ">p99",
        ">p99.9",
        ">max",
        ">samples",
        ">unanswered",
    ]);
    for (name, quantiles) in words::latency_rows(&trial.latency) {
        let values = [
            quantiles.p50_ms,
            quantiles.p90_ms,
            quantiles.p95_ms,
            quantiles.p99_ms,
            quantiles.p999_ms,
            quantiles.max_ms,
        ];
        let mut cells = vec![name.to_owned()];
        cells.extend(values.map(|value| maybe(value, ms_digits)));
        cells.extend([count(quantiles.count), count(quantiles.censored)]);
        table.row(cells);
    }
    page.table(&table);
    page.paragraph("Gates look at the latency from the schedule. An unanswered frame counts with the time that was waited for it, so its latency is at least that.");
}

fn client(page: &mut Page, trial: &Trial) {
    let client = &trial.client;
    let mut table = Table::new(&["what", ">value"]);
    table.row([
        "share of its core, busiest engine thread",
        &percent(client.cpu_share),
    ]);
    table.row(["CPU per frame", &maybe(client.cpu_us_per_frame, us)]);
    table.row([
        "CPU time taken by the hypervisor",
        &maybe(client.steal_share, percent),
    ]);
    lag_rows(&mut table, "send lag", &client.send_lag);
    lag_rows(&mut table, "send wait", &client.send_wait);
    page.table(&table);
    page.paragraph("Send lag is the client's own lateness; send wait is the time that due frames waited for a full socket, the target's back-pressure.");
    reasons(page, "Faults of the client's own machine:", &client.faults);
}

fn lag_rows(table: &mut Table, name: &str, lag: &LagQuantiles) {
    for (percentile, value) in [
        ("p50", lag.p50_us),
        ("p99", lag.p99_us),
        ("p99.9", lag.p999_us),
        ("max", lag.max_us),
    ] {
        table.row([&format!("{name}, {percentile}"), &maybe(value, us)]);
    }
}

fn resources(page: &mut Page, trial: &Trial) {
    let Some(resources) = &trial.target_resources else {
        page.paragraph("Not measured.");
        return;
    };
    let mut table = Table::new(&["what", ">value"]);
    let share_of = format!("CPU, share of {}", words::given(trial.vcpu));
    for (name, value) in [
        (
            "CPU per session-second",
            maybe(resources.cpu_us_per_session_second, us),
        ),
        (&share_of, percent(resources.cpu_share)),
        ("CPU in user mode", us_total(resources.cpu_user_us)),
        ("CPU in kernel mode", us_total(resources.cpu_system_us)),
        ("RSS, peak", words::whole_bytes(resources.rss_peak_bytes)),
        (
            "RSS per session",
            maybe(resources.rss_bytes_per_session, bytes),
        ),
        (
            "quota periods in which it was held back",
            maybe(resources.throttled_share, percent),
        ),
        (
            "time waited for a core, share of the window",
            maybe(resources.run_queue_wait_share, percent),
        ),
    ] {
        table.row([name, &value]);
    }
    page.table(&table);
    page.paragraph(&format!("Source: {}.", escape(&resources.source)));
}

/// CPU time of a whole window.
#[expect(
    clippy::cast_precision_loss,
    reason = "CPU time of a window, far below 2^53 µs"
)]
fn us_total(total_us: u64) -> String {
    format!("{} s", number(total_us as f64 / 1e6))
}
