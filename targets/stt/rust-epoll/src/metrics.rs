//! Metrics: each worker counts in plain memory of its own and publishes now and then; a scrape adds the workers up.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::failure::Kind;

/// Why a tick that had something to do did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// The last request has not come back.
    InFlight,
    /// `MAX_INFLIGHT_JOBS` are in flight.
    Jobs,
    /// `OUTBOX_MESSAGES` are unsent.
    Outbox,
}

impl Deferral {
    const LABELS: [&str; 3] = ["inflight", "jobs", "outbox"];
}

const BUFFER_FRAMES: Histogram =
    Histogram { at: 16, bounds: &[1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500], unit: 1.0 };
const FLUSH_LATENESS: Histogram = Histogram {
    at: BUFFER_FRAMES.end(),
    bounds: &[500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 250_000, 500_000, 1_000_000],
    unit: 1e6,
};
const INFERENCE: Histogram = Histogram {
    at: FLUSH_LATENESS.end(),
    bounds: &[
        10_000, 25_000, 50_000, 75_000, 100_000, 125_000, 150_000, 200_000, 300_000, 500_000, 750_000, 1_000_000,
        2_500_000, 5_000_000,
    ],
    unit: 1e6,
};

const SESSIONS: usize = 0;
const REJECTED: usize = 1;
const FRAMES: usize = 2;
const DROPPED: usize = 3;
const PARTIALS: usize = 4;
const ERRORS: usize = 5;
const DEFERRED: usize = ERRORS + Kind::ALL.len();
const CELLS: usize = INFERENCE.end();
const _: () = assert!(DEFERRED + Deferral::LABELS.len() <= BUFFER_FRAMES.at);

/// Where a histogram has its cells: one per bound, one for what is above the last, and the sum.
struct Histogram {
    at: usize,
    /// Inclusive upper bounds, in whole units of which `unit` make one of those that are shown.
    bounds: &'static [u64],
    unit: f64,
}

impl Histogram {
    const fn end(&self) -> usize {
        self.at + self.bounds.len() + 2
    }

    fn observe(&self, cells: &mut [u64; CELLS], value: u64) {
        cells[self.at + self.bounds.partition_point(|bound| *bound < value)] += 1;
        cells[self.end() - 1] += value;
    }

    fn render(&self, cells: &[u64; CELLS], name: &str, text: &mut String) -> std::fmt::Result {
        writeln!(text, "# TYPE {name} histogram")?;
        let mut count = 0;
        for (bound, cell) in self.bounds.iter().zip(&cells[self.at..]) {
            count += cell;
            writeln!(text, "{name}_bucket{{le=\"{}\"}} {count}", *bound as f64 / self.unit)?;
        }
        count += cells[self.end() - 2];
        let sum = cells[self.end() - 1] as f64 / self.unit;
        writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}")
    }
}

/// One worker's counts.
#[derive(Debug)]
pub struct Tally([u64; CELLS]);

impl Default for Tally {
    fn default() -> Self {
        Self([0; CELLS])
    }
}

impl Tally {
    /// A session was opened.
    pub fn session(&mut self) {
        self.0[SESSIONS] += 1;
    }

    /// An upgrade was refused for want of room.
    pub fn rejected(&mut self) {
        self.0[REJECTED] += 1;
    }

    /// A frame was accepted.
    pub fn frame(&mut self) {
        self.0[FRAMES] += 1;
    }

    /// A frame was dropped.
    pub fn dropped(&mut self) {
        self.0[DROPPED] += 1;
    }

    /// A `partial` was written.
    pub fn partial(&mut self) {
        self.0[PARTIALS] += 1;
    }

    /// An `error` was written.
    pub fn error(&mut self, kind: Kind) {
        self.0[ERRORS + kind as usize] += 1;
    }

    /// A tick was deferred.
    pub fn deferred(&mut self, reason: Deferral) {
        self.0[DEFERRED + reason as usize] += 1;
    }

    /// A buffer was flushed.
    pub fn flush(&mut self, frames: u64, lateness: Duration) {
        BUFFER_FRAMES.observe(&mut self.0, frames);
        FLUSH_LATENESS.observe(&mut self.0, microseconds(lateness));
    }

    /// A request ended.
    pub fn inference(&mut self, elapsed: Duration) {
        INFERENCE.observe(&mut self.0, microseconds(elapsed));
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What a worker has published. It alone writes here, so plain stores will do.
#[derive(Debug)]
pub struct Published([AtomicU64; CELLS]);

impl Default for Published {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; CELLS])
    }
}

impl Published {
    /// Publishes.
    pub fn store(&self, tally: &Tally) {
        for (cell, count) in self.0.iter().zip(tally.0) {
            cell.store(count, Ordering::Relaxed);
        }
    }
}

/// The Prometheus text of all workers together.
pub fn render<'a>(workers: impl Iterator<Item = &'a Published>, sessions: usize, jobs: usize) -> String {
    let mut cells = [0; CELLS];
    for worker in workers {
        for (sum, cell) in cells.iter_mut().zip(&worker.0) {
            *sum += cell.load(Ordering::Relaxed);
        }
    }
    let mut text = String::with_capacity(8 * 1024);
    write(&mut text, &cells, sessions as u64, jobs as u64).expect("a String takes all");
    text
}

fn write(text: &mut String, cells: &[u64; CELLS], sessions: u64, jobs: u64) -> std::fmt::Result {
    for (name, kind, value) in [
        ("stt_sessions", "gauge", sessions),
        ("stt_sessions_total", "counter", cells[SESSIONS]),
        ("stt_sessions_rejected_total", "counter", cells[REJECTED]),
        ("stt_frames_total", "counter", cells[FRAMES]),
        ("stt_frames_dropped_total", "counter", cells[DROPPED]),
        ("stt_partials_total", "counter", cells[PARTIALS]),
        ("stt_jobs_inflight", "gauge", jobs),
    ] {
        writeln!(text, "# TYPE {name} {kind}\n{name} {value}")?;
    }
    writeln!(text, "# TYPE stt_errors_total counter")?;
    for (kind, count) in Kind::ALL.iter().zip(&cells[ERRORS..]) {
        let (stage, kind, _) = kind.row();
        writeln!(text, "stt_errors_total{{stage=\"{stage}\",kind=\"{kind}\"}} {count}")?;
    }
    writeln!(text, "# TYPE stt_ticks_deferred_total counter")?;
    for (reason, count) in Deferral::LABELS.iter().zip(&cells[DEFERRED..]) {
        writeln!(text, "stt_ticks_deferred_total{{reason=\"{reason}\"}} {count}")?;
    }
    BUFFER_FRAMES.render(cells, "stt_buffer_frames", text)?;
    FLUSH_LATENESS.render(cells, "stt_flush_lateness_seconds", text)?;
    INFERENCE.render(cells, "stt_inference_seconds", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_added_up() {
        let mut tally = Tally::default();
        (0..51).for_each(|_| tally.frame());
        tally.partial();
        tally.error(Kind::Http5xx);
        tally.deferred(Deferral::Jobs);
        tally.flush(51, Duration::from_micros(700));
        tally.inference(Duration::from_secs(9));
        let workers = [Published::default(), Published::default()];
        workers.iter().for_each(|worker| worker.store(&tally));
        let text = render(workers.iter(), 4, 5);
        for line in [
            "stt_sessions 4",
            "stt_sessions_total 0",
            "stt_jobs_inflight 5",
            "stt_frames_total 102",
            "stt_partials_total 2",
            "stt_errors_total{stage=\"inference_request\",kind=\"http_5xx\"} 2",
            "stt_errors_total{stage=\"input_buffer\",kind=\"overflow\"} 0",
            "stt_ticks_deferred_total{reason=\"jobs\"} 2",
            "stt_ticks_deferred_total{reason=\"outbox\"} 0",
            "stt_buffer_frames_bucket{le=\"50\"} 0",
            "stt_buffer_frames_bucket{le=\"55\"} 2",
            "stt_buffer_frames_sum 102",
            "stt_flush_lateness_seconds_bucket{le=\"0.0005\"} 0",
            "stt_flush_lateness_seconds_bucket{le=\"0.001\"} 2",
            "stt_flush_lateness_seconds_sum 0.0014",
            "stt_inference_seconds_bucket{le=\"5\"} 0",
            "stt_inference_seconds_bucket{le=\"+Inf\"} 2",
            "stt_inference_seconds_count 2",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
        }
    }
}
