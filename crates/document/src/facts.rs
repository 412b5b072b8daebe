//! Facts of what our own programs used and how late they were, as rows: for the client, and for what ran beside the
//! target.

use plimsoll_core::latency::LagQuantiles;
use plimsoll_core::record::ProcessResources;

use crate::words::{count, maybe, number, percent, us, whole_bytes};

/// A name and its value.
pub type Row = (&'static str, String);

/// The resources that one of our processes used.
#[must_use]
pub fn process(process: &ProcessResources) -> Vec<Row> {
    let mut rows = vec![
        ("process: CPU in user mode", cpu_time(process.cpu_user_us)),
        (
            "process: CPU in kernel mode",
            cpu_time(process.cpu_system_us),
        ),
        ("process: CPUs kept busy", number(process.cpus_busy)),
        ("process: RSS, peak", whole_bytes(process.rss_peak_bytes)),
    ];
    let known = [
        (
            "process: time waited for a core, share of the window",
            process.run_queue_wait_share.map(percent),
        ),
        (
            "process: voluntary context switches per second",
            process.voluntary_switches_per_s.map(number),
        ),
        (
            "process: involuntary context switches per second",
            process.involuntary_switches_per_s.map(number),
        ),
        ("process: open files, peak", process.fds_peak.map(count)),
        ("process: threads, peak", process.threads_peak.map(count)),
    ];
    rows.extend(known.into_iter().filter_map(row_if_known));
    rows
}

/// CPU time of a whole window.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "CPU time of a window, far below 2^53 µs"
)]
pub fn cpu_time(total_us: u64) -> String {
    format!("{} s", number(total_us as f64 / 1e6))
}

/// A row, if its value is known.
#[must_use]
pub fn row_if_known((name, value): (&'static str, Option<String>)) -> Option<Row> {
    value.map(|value| (name, value))
}

/// The percentiles of how late something was.
#[must_use]
pub fn lag(name: &str, lag: &LagQuantiles) -> Vec<(String, String)> {
    let of = |(percentile, value): (&str, Option<f64>)| {
        (format!("{name}, {percentile}"), maybe(value, us))
    };
    [
        ("p50", lag.p50_us),
        ("p99", lag.p99_us),
        ("p99.9", lag.p999_us),
        ("max", lag.max_us),
    ]
    .map(of)
    .into()
}
