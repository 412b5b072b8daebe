//! Counters and their Prometheus text (contract, section 8; the names are fixed). The counters that this target can have: it never
//! asks an inference server, so it has no errors, drops or job caps to count.

use std::fmt::Write as _;

/// What has been counted since the process (or its pretended restart) began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sessions upgraded.
    pub sessions_total: u64,
    /// Frames accepted.
    pub frames_total: u64,
    /// Partials sent, true or false.
    pub partials_total: u64,
    /// Ticks that found a request in flight.
    pub ticks_deferred: u64,
}

/// What is counted only when asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions open.
    pub sessions: u64,
    /// Requests in flight.
    pub jobs_inflight: u64,
}

/// The body of `GET /metrics`.
#[must_use]
pub fn render(counters: &Counters, gauges: Gauges) -> String {
    let mut text = String::new();
    let mut metric = |kind: &str, name: &str, labels: &str, value: u64| {
        writeln!(text, "# TYPE {name} {kind}\n{name}{labels} {value}")
            .expect("writing to a string cannot fail");
    };
    metric("gauge", "stt_sessions", "", gauges.sessions);
    metric("counter", "stt_sessions_total", "", counters.sessions_total);
    metric("counter", "stt_frames_total", "", counters.frames_total);
    metric("counter", "stt_partials_total", "", counters.partials_total);
    metric("gauge", "stt_jobs_inflight", "", gauges.jobs_inflight);
    metric(
        "counter",
        "stt_ticks_deferred_total",
        r#"{reason="inflight"}"#,
        counters.ticks_deferred,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_a_type_and_a_value() {
        let counters = Counters {
            sessions_total: 3,
            frames_total: 150,
            partials_total: 2,
            ticks_deferred: 1,
        };
        let gauges = Gauges {
            sessions: 2,
            jobs_inflight: 1,
        };
        let text = render(&counters, gauges);
        for line in [
            "# TYPE stt_frames_total counter",
            "stt_frames_total 150",
            "stt_sessions 2",
            "stt_sessions_total 3",
            "stt_partials_total 2",
            "stt_jobs_inflight 1",
            r#"stt_ticks_deferred_total{reason="inflight"} 1"#,
        ] {
            assert!(text.lines().any(|have| have == line), "{line}");
        }
    }
}
