//! What the simulator says of itself: counters and distributions, as JSON for a window and as Prometheus text for
//! its whole life. Pure: the clocks are the caller's.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use plimsoll_core::latency::Percentiles;
use plimsoll_workload_stt::simulator::Stats as Window;

use crate::faults::Fault;

/// The clocks at one moment, all since the process started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clocks {
    /// Wall time.
    pub uptime: Duration,
    /// Wall time that the event loop was not parked waiting for events. Its share of the wall time says how close
    /// to saturation the simulator is, even where it shares its core.
    pub loop_busy: Duration,
    /// CPU time of the process, user and system.
    pub process_cpu: Duration,
}

/// Everything counted.
#[derive(Debug)]
pub struct Stats {
    inflight: u64,
    life: Counters<Buckets>,
    window: Counters<Histogram<u64>>,
    window_start: Clocks,
}

#[derive(Debug)]
struct Counters<Distribution> {
    requests: u64,
    request_bytes: u64,
    faults: [u64; Fault::ALL.len()],
    inflight_max: u64,
    queue_wait: Distribution,
    answer_lateness: Distribution,
}

impl<Distribution> Counters<Distribution> {
    fn new(distribution: impl Fn() -> Distribution) -> Self {
        Self {
            requests: 0,
            request_bytes: 0,
            faults: [0; Fault::ALL.len()],
            inflight_max: 0,
            queue_wait: distribution(),
            answer_lateness: distribution(),
        }
    }
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            inflight: 0,
            life: Counters::new(Buckets::default),
            window: Counters::new(window_histogram),
            window_start: Clocks::default(),
        }
    }
}

/// 1 µs to an hour, to three significant digits.
fn window_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("constant, valid bounds")
}

impl Stats {
    /// A request to `/infer` with a body of so many bytes has been read. Gives the number in flight, itself included.
    pub fn request_read(&mut self, body_bytes: u64) -> u64 {
        self.inflight += 1;
        self.life.requests += 1;
        self.window.requests += 1;
        self.life.request_bytes += body_bytes;
        self.window.request_bytes += body_bytes;
        self.life.inflight_max = self.life.inflight_max.max(self.inflight);
        self.window.inflight_max = self.window.inflight_max.max(self.inflight);
        self.inflight
    }

    /// A request has been answered, or its client is gone.
    pub fn request_over(&mut self) {
        debug_assert!(self.inflight > 0, "more requests ended than began");
        self.inflight -= 1;
    }

    /// A request got its turn after waiting this long for one of `MODEL_MAX_CONCURRENT` places.
    pub fn queue_waited(&mut self, wait: Duration) {
        self.life.queue_wait.record(wait);
        self.window.queue_wait.saturating_record(as_us(wait));
    }

    /// An answer was handed over this long after its drawn deadline.
    pub fn answered_late(&mut self, lateness: Duration) {
        self.life.answer_lateness.record(lateness);
        self.window
            .answer_lateness
            .saturating_record(as_us(lateness));
    }

    /// A request met a fault.
    pub fn fault(&mut self, fault: Fault) {
        self.life.faults[fault as usize] += 1;
        self.window.faults[fault as usize] += 1;
    }

    /// Starts a new window. What is in flight stays in flight.
    pub fn reset_window(&mut self, now: Clocks) {
        self.window = Counters::new(window_histogram);
        self.window.inflight_max = self.inflight;
        self.window_start = now;
    }

    /// The window so far.
    #[must_use]
    pub fn window(&self, now: Clocks) -> Window {
        Window {
            requests: self.window.requests,
            request_bytes: self.window.request_bytes,
            request_bytes_in_all: self.life.request_bytes,
            busy_us: as_us(now.loop_busy.saturating_sub(self.window_start.loop_busy)),
            window_us: as_us(now.uptime.saturating_sub(self.window_start.uptime)),
            cpu_us: as_us(now.process_cpu),
            uptime_us: as_us(now.uptime),
            queue_wait: Percentiles::of(&self.window.queue_wait),
            answer_lateness: Percentiles::of(&self.window.answer_lateness),
            inflight: self.inflight,
            inflight_max: self.window.inflight_max,
            faults: Fault::ALL
                .iter()
                .map(|&fault| (fault.name().to_owned(), self.window.faults[fault as usize]))
                .collect(),
        }
    }

    /// The whole life, in the Prometheus text format.
    #[must_use]
    pub fn prometheus(&self, now: Clocks) -> String {
        let life = &self.life;
        let mut text = String::with_capacity(4096);
        // Writing to a String cannot fail, here and below.
        let mut plain = |name: &str, kind: &str, help: &str, value: f64| {
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            );
        };
        plain(
            "inference_requests_total",
            "counter",
            "Requests to /infer that were read.",
            as_float(life.requests),
        );
        plain(
            "inference_request_bytes_total",
            "counter",
            "Bytes of the bodies of these requests.",
            as_float(life.request_bytes),
        );
        plain(
            "inference_busy_seconds_total",
            "counter",
            "Wall time that the event loop was not waiting.",
            now.loop_busy.as_secs_f64(),
        );
        plain(
            "inference_cpu_seconds_total",
            "counter",
            "CPU time of the process.",
            now.process_cpu.as_secs_f64(),
        );
        plain(
            "inference_inflight",
            "gauge",
            "Requests read and not answered.",
            as_float(self.inflight),
        );
        plain(
            "inference_inflight_max",
            "gauge",
            "The most requests in flight so far.",
            as_float(life.inflight_max),
        );
        let _ = writeln!(
            text,
            "# HELP inference_faults_total Requests that met a fault on demand.\n# TYPE inference_faults_total counter"
        );
        for fault in Fault::ALL {
            let count = life.faults[fault as usize];
            let _ = writeln!(
                text,
                "inference_faults_total{{kind=\"{}\"}} {count}",
                fault.name()
            );
        }
        life.queue_wait.write(
            &mut text,
            "inference_queue_wait_seconds",
            "Time waited for a place to be worked on.",
        );
        life.answer_lateness.write(
            &mut text,
            "inference_answer_lateness_seconds",
            "Time from the drawn deadline to the handing over of the answer.",
        );
        text
    }
}

/// A Prometheus histogram.
#[derive(Debug, Default)]
struct Buckets {
    counts: [u64; Self::BOUNDS_US.len() + 1],
    sum: Duration,
}

impl Buckets {
    /// Upper bounds, µs, 1-2-5 from a tenth of a millisecond to ten seconds.
    const BOUNDS_US: [u64; 16] = [
        100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
        1_000_000, 2_000_000, 5_000_000, 10_000_000,
    ];

    fn record(&mut self, value: Duration) {
        // Compared as durations: a value just over a bound is over it.
        let place = Self::BOUNDS_US.partition_point(|&bound| Duration::from_micros(bound) < value);
        self.counts[place] += 1;
        self.sum = self.sum.saturating_add(value);
    }

    fn write(&self, text: &mut String, name: &str, help: &str) {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bound, count) in Self::BOUNDS_US.iter().zip(&self.counts) {
            below += count;
            let _ = writeln!(
                text,
                "{name}_bucket{{le=\"{}\"}} {below}",
                Duration::from_micros(*bound).as_secs_f64()
            );
        }
        below += self.counts[Self::BOUNDS_US.len()];
        let sum = self.sum.as_secs_f64();
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {below}\n{name}_sum {sum}\n{name}_count {below}"
        );
    }
}

fn as_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
const fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn clocks(uptime_ms: u32, busy_ms: u32, cpu_ms: u32) -> Clocks {
        Clocks {
            uptime: MS * uptime_ms,
            loop_busy: MS * busy_ms,
            process_cpu: MS * cpu_ms,
        }
    }

    #[test]
    fn a_window_counts_from_its_reset_and_life_goes_on() {
        let mut stats = Stats::default();
        for _ in 0..3 {
            stats.request_read(640);
        }
        stats.fault(Fault::Reset);
        stats.queue_waited(MS * 9);
        stats.request_over();
        let first = stats.window(clocks(1000, 100, 90));
        assert_eq!(
            (first.requests, first.inflight, first.inflight_max),
            (3, 2, 3)
        );
        assert_eq!(
            (
                first.busy_us,
                first.window_us,
                first.cpu_us,
                first.uptime_us
            ),
            (100_000, 1_000_000, 90_000, 1_000_000)
        );
        assert_eq!(first.faults["reset"], 1);

        stats.reset_window(clocks(1000, 100, 90));
        stats.request_read(1280);
        let second = stats.window(clocks(3000, 600, 500));
        assert_eq!(
            (second.requests, second.inflight, second.inflight_max),
            (1, 3, 3)
        );
        assert_eq!(
            (
                first.request_bytes,
                second.request_bytes,
                second.request_bytes_in_all
            ),
            (1920, 1280, 3200)
        );
        assert_eq!(
            (second.busy_us, second.window_us, second.cpu_us),
            (500_000, 2_000_000, 500_000)
        );
        assert_eq!(second.queue_wait, Percentiles::default());
        assert!(second.faults.values().all(|count| *count == 0));

        let text = stats.prometheus(clocks(3000, 600, 500));
        for line in [
            "inference_requests_total 4",
            "inference_request_bytes_total 3200",
            "inference_busy_seconds_total 0.6",
            "inference_cpu_seconds_total 0.5",
            "inference_inflight 3",
            "inference_faults_total{kind=\"reset\"} 1",
            "inference_queue_wait_seconds_bucket{le=\"0.01\"} 1",
            "inference_queue_wait_seconds_sum 0.009",
        ] {
            assert!(
                text.lines().any(|seen| seen == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn buckets_are_cumulative_and_bounds_belong_to_them() {
        let mut buckets = Buckets::default();
        for us in [0, 100, 101, 20_000_000] {
            buckets.record(Duration::from_micros(us));
        }
        let mut text = String::new();
        buckets.write(&mut text, "x", "y");
        for line in [
            "x_bucket{le=\"0.0001\"} 2",
            "x_bucket{le=\"0.0002\"} 3",
            "x_bucket{le=\"10\"} 3",
            "x_bucket{le=\"+Inf\"} 4",
            "x_count 4",
        ] {
            assert!(
                text.lines().any(|seen| seen == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn percentiles_are_of_what_was_recorded() {
        let mut stats = Stats::default();
        for ms in 1..=100 {
            stats.answered_late(MS * ms);
        }
        let seen = stats.window(Clocks::default()).answer_lateness;
        let near = |seen: u64, expected: u64| seen.abs_diff(expected) * 1000 <= expected;
        assert!(
            near(seen.p50_us, 50_000) && near(seen.p99_us, 99_000) && near(seen.max_us, 100_000),
            "{seen:?}"
        );
    }
}
