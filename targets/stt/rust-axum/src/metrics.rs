//! Prometheus metrics. Sessions count for themselves and fold their counts in here about once per flush, so that no
//! frame touches a shared cache line; `stt_frames_total` therefore lags by up to one flush interval.

use std::time::Duration;

use crate::exposition::{Counter, plain, put};
use crate::failure::FailureKind;
use crate::session::tally::{Deferral, Tally};

const MICROSECONDS_PER_SECOND: u32 = 1_000_000;

/// Everything that is counted; gauges are read from the gateway's limits when the text is made.
#[derive(Debug)]
pub struct Metrics {
    /// Sessions opened.
    pub sessions: Counter,
    /// Sessions refused for want of room.
    pub sessions_rejected: Counter,
    frames: Counter,
    frames_dropped: Counter,
    partials: Counter,
    errors: [Counter; FailureKind::ALL.len()],
    deferred: [Counter; Deferral::ALL.len()],
    buffer_frames: Histogram,
    flush_lateness: Histogram,
    inference: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            sessions: Counter::default(),
            sessions_rejected: Counter::default(),
            frames: Counter::default(),
            frames_dropped: Counter::default(),
            partials: Counter::default(),
            errors: Default::default(),
            deferred: Default::default(),
            buffer_frames: Histogram::new(&[1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500], 1),
            flush_lateness: Histogram::new(
                &[500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000, 500_000, 1_000_000],
                MICROSECONDS_PER_SECOND,
            ),
            inference: Histogram::new(
                &[
                    10_000, 25_000, 50_000, 75_000, 100_000, 125_000, 150_000, 200_000, 300_000, 500_000, 750_000,
                    1_000_000, 2_500_000, 5_000_000,
                ],
                MICROSECONDS_PER_SECOND,
            ),
        }
    }
}

impl Metrics {
    /// Adds what a session counted since it last did.
    pub fn fold(&self, tally: &Tally) {
        self.frames.add(tally.frames);
        self.frames_dropped.add(tally.frames_dropped);
        self.partials.add(tally.partials);
        for (total, count) in self.errors.iter().zip(tally.errors) {
            total.add(count);
        }
        for (total, count) in self.deferred.iter().zip(tally.deferred) {
            total.add(count);
        }
        if let Some((frames, lateness)) = tally.flush {
            self.buffer_frames.observe(frames);
            self.flush_lateness.observe(microseconds(lateness));
        }
        if let Some(elapsed) = tally.inference {
            self.inference.observe(microseconds(elapsed));
        }
    }

    /// The Prometheus text format, version 0.0.4.
    pub fn render(&self, sessions_open: usize, jobs_inflight: usize) -> String {
        let mut text = String::with_capacity(6 * 1024);
        plain(&mut text, "stt_sessions", "gauge", sessions_open as u64);
        plain(&mut text, "stt_sessions_total", "counter", self.sessions.get());
        plain(&mut text, "stt_sessions_rejected_total", "counter", self.sessions_rejected.get());
        plain(&mut text, "stt_frames_total", "counter", self.frames.get());
        plain(&mut text, "stt_frames_dropped_total", "counter", self.frames_dropped.get());
        plain(&mut text, "stt_partials_total", "counter", self.partials.get());
        put(&mut text, format_args!("# TYPE stt_errors_total counter\n"));
        for (kind, total) in FailureKind::ALL.iter().zip(&self.errors) {
            let (stage, name) = (kind.stage(), kind.name());
            put(&mut text, format_args!("stt_errors_total{{stage=\"{stage}\",kind=\"{name}\"}} {}\n", total.get()));
        }
        plain(&mut text, "stt_jobs_inflight", "gauge", jobs_inflight as u64);
        put(&mut text, format_args!("# TYPE stt_ticks_deferred_total counter\n"));
        for (reason, total) in Deferral::ALL.iter().zip(&self.deferred) {
            let name = reason.name();
            put(&mut text, format_args!("stt_ticks_deferred_total{{reason=\"{name}\"}} {}\n", total.get()));
        }
        self.buffer_frames.render(&mut text, "stt_buffer_frames");
        self.flush_lateness.render(&mut text, "stt_flush_lateness_seconds");
        self.inference.render(&mut text, "stt_inference_seconds");
        text
    }
}

/// A histogram over whole numbers, in frames or microseconds, that is rendered in frames or seconds.
#[derive(Debug)]
struct Histogram {
    /// Inclusive upper bounds, ascending.
    bounds: &'static [u64],
    /// One per bound, and one for all that is above the last; not cumulative.
    buckets: Box<[Counter]>,
    sum: Counter,
    /// Counted units per rendered unit.
    scale: u32,
}

impl Histogram {
    fn new(bounds: &'static [u64], scale: u32) -> Self {
        let buckets = (0..=bounds.len()).map(|_| Counter::default()).collect();
        Self { bounds, buckets, sum: Counter::default(), scale }
    }

    fn observe(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.buckets[bucket].add(1);
        self.sum.add(value);
    }

    fn render(&self, text: &mut String, name: &str) {
        put(text, format_args!("# TYPE {name} histogram\n"));
        let mut count = 0;
        for (bound, bucket) in self.bounds.iter().zip(&self.buckets) {
            count += bucket.get();
            let bound = self.scaled(*bound);
            put(text, format_args!("{name}_bucket{{le=\"{bound}\"}} {count}\n"));
        }
        count += self.buckets[self.bounds.len()].get();
        put(text, format_args!("{name}_bucket{{le=\"+Inf\"}} {count}\n"));
        put(text, format_args!("{name}_sum {}\n{name}_count {count}\n", self.scaled(self.sum.get())));
    }

    fn scaled(&self, value: u64) -> f64 {
        value as f64 / f64::from(self.scale)
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_what_was_folded() {
        let metrics = Metrics::default();
        let mut tally = Tally { frames: 51, partials: 1, ..Tally::default() };
        tally.errors[FailureKind::Http5xx as usize] = 2;
        tally.deferred[Deferral::Jobs as usize] = 3;
        tally.flush = Some((51, Duration::from_micros(700)));
        tally.inference = Some(Duration::from_secs(9));
        metrics.fold(&tally);
        let text = metrics.render(4, 5);
        for line in [
            "stt_sessions 4",
            "stt_jobs_inflight 5",
            "stt_frames_total 51",
            "stt_partials_total 1",
            "stt_errors_total{stage=\"inference_request\",kind=\"http_5xx\"} 2",
            "stt_errors_total{stage=\"input_buffer\",kind=\"overflow\"} 0",
            "stt_ticks_deferred_total{reason=\"jobs\"} 3",
            "stt_buffer_frames_bucket{le=\"50\"} 0",
            "stt_buffer_frames_bucket{le=\"55\"} 1",
            "stt_buffer_frames_sum 51",
            "stt_flush_lateness_seconds_bucket{le=\"0.0005\"} 0",
            "stt_flush_lateness_seconds_bucket{le=\"0.001\"} 1",
            "stt_flush_lateness_seconds_sum 0.0007",
            "stt_inference_seconds_bucket{le=\"5\"} 0",
            "stt_inference_seconds_bucket{le=\"+Inf\"} 1",
            "stt_inference_seconds_count 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }
}
