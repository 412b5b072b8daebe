//! What client, target and simulator used.

use std::collections::BTreeMap;

use plimsoll_core::latency::LagQuantiles;
use plimsoll_core::record::{Inference, TargetResources, Trial};

use super::{Page, Table, escape};
use crate::facts::{self, Row};
use crate::words::{self, bytes, count, maybe, number, percent, us, whole_bytes};

/// The load engine: whether it was on time, and what that cost.
pub(super) fn client(page: &mut Page, trial: &Trial) {
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
    let known = [
        (
            "offered load that it achieved",
            client.achieved_share.map(|s| facts::near_whole(Some(s))),
        ),
        (
            "time that its busiest thread waited for a core, share of the window",
            client.run_queue_wait_share.map(percent),
        ),
    ];
    rows(
        &mut table,
        known.into_iter().filter_map(facts::row_if_known),
    );
    rows(&mut table, client.resources.iter().flat_map(facts::process));
    page.table(&table);
    page.paragraph("Send lag is the client's own lateness; send wait is the time that due frames waited for a full socket, the target's back-pressure.");
    reasons(page, "Faults of the client's own machine:", &client.faults);
}

/// The target.
pub(super) fn target(page: &mut Page, trial: &Trial) {
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
        ("CPU in user mode", facts::cpu_time(resources.cpu_user_us)),
        (
            "CPU in kernel mode",
            facts::cpu_time(resources.cpu_system_us),
        ),
        ("RSS, peak", whole_bytes(resources.rss_peak_bytes)),
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
    rows(&mut table, more_of_target(resources));
    rows(
        &mut table,
        resources.sockets.iter().flat_map(facts::sockets),
    );
    page.table(&table);
    page.paragraph(&format!("Source: {}.", escape(&resources.source)));
}

/// What is shown where it could be read.
fn more_of_target(resources: &TargetResources) -> impl Iterator<Item = Row> {
    [
        ("CPUs kept busy", resources.cpus_busy.map(number)),
        (
            "busiest thread, share of one core",
            resources.busiest_thread_share.map(percent),
        ),
        (
            "CPUs given up, per second",
            resources.voluntary_switches_per_s.map(number),
        ),
        (
            "CPUs taken away, per second",
            resources.involuntary_switches_per_s.map(number),
        ),
        ("open files, peak", resources.fds_peak.map(count)),
        ("threads, peak", resources.threads_peak.map(count)),
        (
            "memory that it may use",
            resources.memory_limit_bytes.map(whole_bytes),
        ),
        (
            "times that memory was refused or reclaimed",
            resources.memory_pressure_events.map(count),
        ),
        (
            "memory of the machine available, least",
            resources.machine_memory_available_share.map(percent),
        ),
    ]
    .into_iter()
    .filter_map(facts::row_if_known)
}

/// The inference simulator.
pub(super) fn inference(page: &mut Page, inference: &Inference) {
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
    let bytes = inference.request_bytes.map(whole_bytes);
    rows(
        &mut table,
        facts::row_if_known(("audio received", bytes)).into_iter(),
    );
    rows(
        &mut table,
        inference.resources.iter().flat_map(facts::process),
    );
    page.table(&table);
}

/// What happened how often, and why.
pub(super) fn reasons(page: &mut Page, title: &str, reasons: &BTreeMap<String, u64>) {
    if !reasons.is_empty() {
        page.paragraph(title);
        let item =
            |(reason, times): (&String, &u64)| format!("{} × {}", count(*times), escape(reason));
        let items: Vec<_> = reasons.iter().map(item).collect();
        page.list(&items);
    }
}

fn rows(table: &mut Table, rows: impl Iterator<Item = Row>) {
    for (name, value) in rows {
        table.row([name, &value]);
    }
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
