//! What was measured, turned into a record with its verdict.

use plimsoll_core::caveat::{Caveat, Doubt, Evidence, Limits, doubts};
use plimsoll_core::latency::{LagQuantiles, Series};
use plimsoll_core::record::{
    Client, Environment, GateResult, Inference, SCHEMA_VERSION, TargetResources, Trial, Verdict,
};
use plimsoll_engine::Report;

use super::conditions::Conditions;
use super::stage::{SIMULATOR, Stage, TARGET};
use super::timeline::nanoseconds_between;
use super::{Measured, Outcome};
use crate::isolation::{How, Wanted};
use crate::simulator::Quantiles;

pub(super) fn judge(
    conditions: &Conditions,
    stage: &Stage,
    sessions: u32,
    started_at: String,
    measured: Measured,
) -> Outcome {
    let report = &measured.report;
    let latency = report.latency.summary();
    let gates = conditions.slo.judge(&report.ledger, &latency);
    let target_resources = target_resources(conditions, stage, &measured);
    let client = client(conditions, &measured);
    let inference = inference(conditions, &measured);
    let evidence = Evidence {
        send_lag_p999_us: client.send_lag.p999_us,
        client_busy_share: client.cpu_share,
        inference_gone: stage.simulator.is_some() && measured.inference.is_none(),
        inference_lateness_p99_ms: inference
            .as_ref()
            .and_then(|i| ms(i.answer_lateness.p99_us)),
        inference_queue_p99_ms: inference.as_ref().and_then(|i| ms(i.queue_wait.p99_us)),
        client_faults: report.client_faults.clone(),
        steal_share: client.steal_share,
        shared_cores: stage.group().is_some() && conditions.placement.shared(),
        no_quota: no_quota(conditions, stage),
        no_resources: target_resources.is_none(),
        interrupted: report.interrupted,
        samples: samples(conditions, report, &gates),
    };
    let found = doubts(&evidence, &Limits::for_gate(conditions.slo.tightest_ms()));
    let caveats: Vec<_> = found.iter().map(Caveat::from).collect();
    let trial = Trial {
        schema_version: SCHEMA_VERSION,
        verdict: Verdict::of(&gates, &caveats),
        gates,
        caveats,
        workload: conditions.load.name().to_owned(),
        profile: conditions.profile.name.clone(),
        phases: conditions.profile.clone(),
        slo: conditions.slo.name.clone(),
        sessions,
        target: stage.target.clone(),
        vcpu: stage.group().map(|_| conditions.placement.vcpu),
        environment: environment(conditions, stage, report),
        seed: conditions.seed,
        started_at,
        interrupted: report.interrupted,
        ledger: report.ledger.clone(),
        latency,
        client,
        target_resources,
        inference,
    };
    Outcome {
        trial,
        seconds: measured.seconds,
        intervals: measured.intervals,
        client_ran_out: found.iter().any(Doubt::client_ran_out),
    }
}

/// The samples that the percentiles rest on, and how many they need; `None` when a count decided already.
fn samples(conditions: &Conditions, report: &Report, gates: &[GateResult]) -> Option<(u64, u64)> {
    if conditions.slo.a_count_failed(gates) {
        return None;
    }
    let samples = report.latency.histogram(Series::NewestFromSchedule).len();
    Some((samples, conditions.slo.samples_needed()))
}

fn no_quota(conditions: &Conditions, stage: &Stage) -> Option<(f64, String)> {
    let missing = stage.group()?.missing();
    let quota = missing
        .iter()
        .find(|missing| missing.what == Wanted::Quota)?;
    Some((conditions.placement.vcpu, quota.why.clone()))
}

fn environment(conditions: &Conditions, stage: &Stage, report: &Report) -> Environment {
    let cpus = |list: &[u32]| list.iter().map(|cpu| *cpu as usize).collect();
    let placed = stage.group().is_some();
    let isolation = match stage.group().map(|group| group.means().cpus) {
        Some(How::CgroupV1) => "cgroup v1",
        Some(How::CgroupV2) => "cgroup v2",
        Some(_) => "affinity",
        None => "none",
    };
    Environment {
        machine: conditions.machine.facts(),
        client_cpus: cpus(conditions.placement.client_cpus.as_slice()),
        target_cpus: if placed {
            cpus(conditions.placement.target_cpus.as_slice())
        } else {
            Vec::new()
        },
        isolation: isolation.to_owned(),
        quota_period_ms: stage
            .group()
            .filter(|group| matches!(group.means().quota, How::CgroupV1 | How::CgroupV2))
            .map(|_| float(conditions.quota_period_us) / 1e3),
        plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
        engine_backend: report.backend.to_owned(),
        engine_tick_us: conditions.tick_us,
        nodelay: conditions.nodelay,
    }
}

/// The measured window on the samples' clock; shorter when the trial was interrupted.
fn window_ns(conditions: &Conditions, measured: &Measured) -> (u64, u64) {
    let window = conditions.profile.window();
    let offset_ns = nanoseconds_between(measured.sampling_epoch, measured.report.clock.epoch());
    let over_ns = nanoseconds_between(measured.sampling_epoch, measured.over);
    (
        offset_ns + window.start_ns,
        over_ns.min(offset_ns + window.end_ns),
    )
}

fn client(conditions: &Conditions, measured: &Measured) -> Client {
    let report = &measured.report;
    let (from_ns, to_ns) = window_ns(conditions, measured);
    let lag = |series| LagQuantiles::of(report.latency.histogram(series));
    let steal = measured.recorded.machine.between(from_ns, to_ns);
    Client {
        cpu_us_per_frame: report.cpu_us_per_frame(),
        cpu_share: report.busiest_share,
        send_lag: lag(Series::SendLag),
        send_wait: lag(Series::SendWait),
        steal_share: steal.map(|times| times.total().steal_share()),
        faults: report.client_faults.clone(),
    }
}

fn target_resources(
    conditions: &Conditions,
    stage: &Stage,
    measured: &Measured,
) -> Option<TargetResources> {
    let (from_ns, to_ns) = window_ns(conditions, measured);
    let usage = measured
        .recorded
        .series
        .get(TARGET)?
        .between(from_ns, to_ns)?;
    let ledger = &measured.report.ledger;
    let open = float(ledger.sessions_started.saturating_sub(ledger.sessions_died));
    let session_seconds = open * usage.wall_us / 1e6;
    let given = stage.group().map_or(1.0, |_| conditions.placement.vcpu);
    let grown = stage
        .rss_idle_bytes()
        .map(|idle| float(usage.rss_last_bytes) - float(idle));
    Some(TargetResources {
        cpu_us_per_session_second: (session_seconds > 0.0).then(|| usage.cpu_us / session_seconds),
        cpu_share: usage.share_of(given),
        cpu_user_us: whole(usage.cpu_user_us),
        cpu_system_us: whole(usage.cpu_system_us),
        rss_peak_bytes: usage.rss_peak_bytes,
        rss_bytes_per_session: grown.filter(|_| open > 0.0).map(|grown| grown / open),
        throttled_share: usage.throttled_share,
        run_queue_wait_share: usage.runqueue_wait_share,
        source: stage.source_name().unwrap_or("unknown").to_owned(),
    })
}

/// The simulator's own statistics, and its CPU time as the kernel counted it.
fn inference(conditions: &Conditions, measured: &Measured) -> Option<Inference> {
    let stats = measured.inference.as_ref()?;
    let (from_ns, to_ns) = window_ns(conditions, measured);
    let series = measured.recorded.series.get(SIMULATOR);
    let usage = series.and_then(|series| series.between(from_ns, to_ns));
    Some(Inference {
        requests: stats.requests,
        busy_share: usage.map_or_else(|| stats.busy_share(), |usage| usage.cpus_busy),
        cpu_us_per_request: usage
            .filter(|_| stats.requests > 0)
            .map(|usage| usage.cpu_us / float(stats.requests)),
        queue_wait: lag_quantiles(stats.queue_wait),
        answer_lateness: lag_quantiles(stats.answer_lateness),
    })
}

/// The simulator tells no 99.9th percentile.
fn lag_quantiles(quantiles: Quantiles) -> LagQuantiles {
    LagQuantiles {
        p50_us: Some(float(quantiles.p50_us)),
        p99_us: Some(float(quantiles.p99_us)),
        p999_us: None,
        max_us: Some(float(quantiles.max_us)),
    }
}

fn ms(us: Option<f64>) -> Option<f64> {
    us.map(|us| us / 1e3)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds and bytes of a trial are far below 2^53"
)]
fn float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds of a trial, not negative"
)]
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}
