//! The metrics of the contract.

use prometheus::{
    Histogram, IntCounter, IntCounterVec, IntGauge, Registry, Result, TextEncoder, histogram_opts,
    register_histogram_with_registry, register_int_counter_vec_with_registry, register_int_counter_with_registry,
    register_int_gauge_with_registry,
};

use crate::failure::FailureKind;

const FRAMES: [f64; 12] = [1.0, 5.0, 10.0, 25.0, 40.0, 50.0, 60.0, 75.0, 100.0, 150.0, 300.0, 500.0];
const SECONDS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0];

pub struct Metrics {
    registry: Registry,
    sessions_open: IntGauge,
    jobs_inflight: IntGauge,
    pub sessions: IntCounter,
    pub sessions_rejected: IntCounter,
    pub frames: IntCounter,
    pub frames_dropped: IntCounter,
    pub partials: IntCounter,
    errors: IntCounterVec,
    ticks_deferred: IntCounterVec,
    pub buffer_frames: Histogram,
    pub flush_lateness: Histogram,
    pub inference: Histogram,
}

impl Metrics {
    pub fn new() -> Result<Self> {
        let registry = Registry::new();
        let gauge = |name, help| register_int_gauge_with_registry!(name, help, registry);
        let counter = |name, help| register_int_counter_with_registry!(name, help, registry);
        let counters =
            |name, help, labels: &[&str]| register_int_counter_vec_with_registry!(name, help, labels, registry);
        let histogram = |name, help, buckets: &[f64]| {
            register_histogram_with_registry!(histogram_opts!(name, help, buckets.to_vec()), registry)
        };
        let metrics = Self {
            sessions_open: gauge("stt_sessions", "Open sessions")?,
            jobs_inflight: gauge("stt_jobs_inflight", "Requests in flight")?,
            sessions: counter("stt_sessions_total", "Sessions opened")?,
            sessions_rejected: counter("stt_sessions_rejected_total", "Sessions refused at MAX_SESSIONS")?,
            frames: counter("stt_frames_total", "Frames accepted")?,
            frames_dropped: counter("stt_frames_dropped_total", "Frames dropped by the overflow policy")?,
            partials: counter("stt_partials_total", "Partials")?,
            errors: counters("stt_errors_total", "Errors", &["stage", "kind"])?,
            ticks_deferred: counters("stt_ticks_deferred_total", "Ticks that left their audio waiting", &["reason"])?,
            buffer_frames: histogram("stt_buffer_frames", "Frames in the buffer at a flush", &FRAMES)?,
            flush_lateness: histogram("stt_flush_lateness_seconds", "Flush after its scheduled time", &SECONDS)?,
            inference: histogram("stt_inference_seconds", "From a request to its answer", &SECONDS)?,
            registry: registry.clone(),
        };
        // Every series is there from the start, so that a rate can be taken of its first event.
        FailureKind::ALL.into_iter().for_each(|kind| metrics.errors(kind).inc_by(0));
        ["inflight", "jobs", "outbox"].into_iter().for_each(|reason| metrics.ticks_deferred(reason).inc_by(0));
        Ok(metrics)
    }

    pub fn errors(&self, kind: FailureKind) -> IntCounter {
        let (stage, kind, _) = kind.row();
        self.errors.with_label_values(&[stage, kind])
    }

    pub fn ticks_deferred(&self, reason: &str) -> IntCounter {
        self.ticks_deferred.with_label_values(&[reason])
    }

    /// The Prometheus text. The gauges are read from the gateway's limits.
    pub fn render(&self, sessions_open: usize, jobs_inflight: usize) -> Result<String> {
        self.sessions_open.set(sessions_open as i64);
        self.jobs_inflight.set(jobs_inflight as i64);
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}
