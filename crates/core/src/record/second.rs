//! One second of a trial.

/// One second of a trial: a row of `trial-*.csv`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// Seconds since the trial began, at the row's end.
    pub at_s: u64,
    /// `ramp`, `warm_up`, `measured` or `grace`.
    pub phase: &'static str,
    /// Sessions open at the row's end.
    pub sessions_open: u64,
    /// Frames written in this second, measured or not.
    pub frames_sent: u64,
    /// Partials in this second that covered measured frames.
    pub partials: u64,
    /// Errors in this second that named measured frames.
    pub errors: u64,
    /// Protocol faults in this second.
    pub protocol_faults: u64,
    /// Sessions that failed or died in this second.
    pub sessions_lost: u64,
    /// Newest-frame latency, 50th percentile from the schedule.
    pub newest_p50_ms: Option<f64>,
    /// Newest-frame latency, 95th percentile from the schedule.
    pub newest_p95_ms: Option<f64>,
    /// Newest-frame latency, maximum from the schedule.
    pub newest_max_ms: Option<f64>,
    /// Oldest-frame latency, 50th percentile from the schedule.
    pub oldest_p50_ms: Option<f64>,
    /// Oldest-frame latency, 95th percentile from the schedule.
    pub oldest_p95_ms: Option<f64>,
    /// The client's send lag, 99th percentile.
    pub send_lag_p99_us: Option<f64>,
    /// Time that frames waited for the target, 99th percentile.
    pub send_wait_p99_us: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub client_cpu_share: f64,
    /// CPU time of the target in this second, in cores; `None` if unknown.
    pub target_cpu_cores: Option<f64>,
    /// Resident set of the target.
    pub target_rss_bytes: Option<u64>,
    /// Share of this second's quota periods in which the target was throttled; `None` without a quota.
    pub target_throttled_share: Option<f64>,
    /// Time that the target's threads waited for a core, per unit of time.
    pub target_run_queue_wait_share: Option<f64>,
    /// Open files of the target.
    pub target_fds: Option<u64>,
    /// CPU time of the inference simulator in this second, in cores.
    pub inference_cpu_cores: Option<f64>,
}
