//! What each of the three parties used in the measured window.

use plimsoll_core::latency::{LagQuantiles, Series};
use plimsoll_core::record::{Agent, Client, CompanionWindow, ProcessResources, TargetResources};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::resources::{Passed, Usage};

use super::{float, whole};
use crate::trial::Measured;
use crate::trial::conditions::Conditions;
use crate::trial::stage::{CLIENT, COMPANION, Staged, TARGET};
use crate::trial::timeline::{nanoseconds_between, open_at, open_between};

/// The measured window on the samples' clock. It is shorter if the trial was interrupted.
fn window_ns(conditions: &Conditions, measured: &Measured) -> (u64, u64) {
    let window = conditions.profile.window();
    let offset_ns = nanoseconds_between(measured.sampling_epoch, measured.report.clock.epoch());
    let over_ns = nanoseconds_between(measured.sampling_epoch, measured.over);
    (
        offset_ns + window.start_ns,
        over_ns.min(offset_ns + window.end_ns),
    )
}

/// The same on the trial's clock.
fn trial_window_ns(conditions: &Conditions, measured: &Measured) -> (u64, u64) {
    let (from_ns, to_ns) = window_ns(conditions, measured);
    let trial_ns = nanoseconds_between(measured.sampling_epoch, measured.report.clock.epoch());
    (from_ns - trial_ns, to_ns.saturating_sub(trial_ns))
}

/// What the machine's CPUs did in the measured window.
pub(super) fn machine(conditions: &Conditions, measured: &Measured) -> Option<Passed> {
    let (from_ns, to_ns) = window_ns(conditions, measured);
    measured.recorded.machine.between(from_ns, to_ns)
}

/// What the CPUs of the target's machine did in the measured window.
pub(super) fn target_machine(conditions: &Conditions, measured: &Measured) -> Option<Passed> {
    let (from_ns, to_ns) = window_ns(conditions, measured);
    measured.target_machine().between(from_ns, to_ns)
}

/// What the samples with this name show about the measured window.
fn usage(conditions: &Conditions, measured: &Measured, name: &str) -> Option<Usage> {
    let (from_ns, to_ns) = window_ns(conditions, measured);
    measured.recorded.series.get(name)?.between(from_ns, to_ns)
}

/// The CPU time of each of so many per second, in µs.
fn cost_us((usage, per_second): (&Usage, f64)) -> f64 {
    usage.cpus_busy * 1e6 / per_second
}

pub(crate) fn process(usage: &Usage) -> ProcessResources {
    ProcessResources {
        cpu_user_us: whole(usage.cpu_user_us),
        cpu_system_us: whole(usage.cpu_system_us),
        cpus_busy: usage.cpus_busy,
        rss_peak_bytes: usage.rss_max_bytes,
        run_queue_wait_share: usage.runqueue_wait_share,
        voluntary_switches_per_s: usage.voluntary_switches_per_s,
        involuntary_switches_per_s: usage.involuntary_switches_per_s,
        fds_peak: usage.fds_max,
        threads_peak: Some(usage.threads_max),
    }
}

/// How many of what the load counts there were in each second of the measured window: what each message or connection
/// costs is told for a rate; otherwise, what an open session costs each second.
fn per_second(conditions: &Conditions, load: u32, measured: &Measured) -> Option<f64> {
    if conditions.plan.unit().is_rate() {
        return Some(f64::from(load));
    }
    let (from_ns, to_ns) = trial_window_ns(conditions, measured);
    open_between(&measured.seconds, from_ns, to_ns).filter(|open| *open > 0.0)
}

pub(super) fn client(conditions: &Conditions, load: u32, measured: &Measured) -> Client {
    let report = &measured.report;
    let usage = usage(conditions, measured, CLIENT);
    let per_second = per_second(conditions, load, measured);
    let lag = |series| LagQuantiles::of(report.latency.histogram(series));
    let machine = machine(conditions, measured);
    let ours = |cpu| conditions.placement.client_cpus.contains(cpu);
    let client = Client {
        cpu_us_per_frame: report.cpu_us_per_frame(),
        tls_us_per_frame: report.tls_us_per_frame(),
        tls_handshake_us: report.tls.handshakes.mean_us(),
        cpu_us_per_session_second: usage.as_ref().zip(per_second).map(cost_us),
        cpu_share: report.busy.busiest(),
        send_lag: lag(Series::SendLag),
        send_wait: lag(Series::SendWait),
        steal_share: machine.as_ref().and_then(|passed| passed.steal_share(ours)),
        faults: report.client_faults.clone(),
        achieved_share: report.achieved_share(),
        run_queue_wait_share: report.longest_wait_share,
        receive_wait_share: machine
            .as_ref()
            .and_then(|passed| passed.receive_wait_share(ours)),
        cores_awake_share: machine.as_ref().and_then(|passed| passed.awake_share(ours)),
        cpus_kept_awake: Some(measured.client_cpus_awake).filter(|cpus| *cpus > 0),
        resources: usage.map(|usage| process(&usage)),
        processes: Some(measured.client_processes).filter(|processes| *processes > 1),
        agents: Vec::new(),
    };
    if measured.agents.is_empty() {
        client
    } else {
        of_agents(client, &measured.agents, per_second)
    }
}

/// The client, if agents drove the load: the command itself sent nothing, so what its machine did says nothing about the
/// client.
fn of_agents(client: Client, agents: &[Agent], per_second: Option<f64>) -> Client {
    let most = |share: fn(&Agent) -> Option<f64>| agents.iter().filter_map(share).reduce(f64::max);
    let busy = agents
        .iter()
        .map(|agent| agent.resources.as_ref().map(|used| used.cpus_busy));
    let busy: Option<f64> = busy.sum();
    Client {
        cpu_us_per_session_second: busy
            .zip(per_second)
            .map(|(cpus, per_second)| cpus * 1e6 / per_second),
        steal_share: most(|agent| agent.steal_share),
        receive_wait_share: most(|agent| agent.receive_wait_share),
        cores_awake_share: None,
        resources: None,
        agents: agents.to_vec(),
        ..client
    }
}

/// How many of the target's CPUs were not idle, on average. Known only if they are whole CPUs that the target does not
/// share.
fn cores_awake(conditions: &Conditions, stage: &Staged, measured: &Measured) -> Option<f64> {
    stage.group()?;
    let placement = &conditions.placement;
    let cpus = &placement.target_cpus;
    let whole = (placement.vcpu - cpus.vcpu()).abs() < 1e-9;
    if !whole || placement.shared() {
        return None;
    }
    let share = machine(conditions, measured)?.awake_share(|cpu| cpus.contains(cpu))?;
    Some(share * cpus.vcpu())
}

/// How long the kernel's receive threads on the target's CPUs waited for them, as a share of the window.
fn receive_wait_share(conditions: &Conditions, measured: &Measured) -> Option<f64> {
    let cpus = measured.soundness.target_cpus.as_ref()?;
    target_machine(conditions, measured)?.receive_wait_share(|cpu| cpus.contains(cpu))
}

/// What the kernel took at most of the time of the target's CPUs to write to disks, as a share. Its threads run where they
/// like, and the disks are everybody's.
fn kernel_writes_cpu_share(measured: &Measured) -> Option<f64> {
    let cpus = measured.soundness.target_cpus.as_ref()?;
    let storage = measured.storage.as_ref()?;
    let share = float(storage.kernel_cpu_us?) / 1e6 / storage.seconds / cpus.vcpu();
    Some(share.clamp(0.0, 1.0))
}

/// What other programs used of the time of the target's CPUs, as a share. The kernel's writing to disks is the target's own
/// doing, if it has data.
fn others_cpu_share(conditions: &Conditions, measured: &Measured) -> Option<f64> {
    let cpus = measured.soundness.target_cpus.as_ref()?;
    let passed = target_machine(conditions, measured)?;
    let ours = |cpu| cpus.contains(cpu);
    let all = passed.threads_share(ours).or(passed.busy_share(ours))?;
    // Over exactly the same time.
    let target = measured.recorded.series.get(TARGET)?;
    let used = target.between(passed.from_ns, passed.to_ns)?;
    let writes = kernel_writes_cpu_share(measured).unwrap_or(0.0);
    Some((all - used.share_of(cpus.vcpu()) - writes).clamp(0.0, 1.0))
}

pub(super) fn target(
    conditions: &Conditions,
    stage: &Staged,
    load: u32,
    measured: &Measured,
) -> Option<TargetResources> {
    let (from_ns, to_ns) = window_ns(conditions, measured);
    let recorded = &measured.recorded;
    let usage = usage(conditions, measured, TARGET)?;
    let given = stage.group().map_or(1.0, |_| conditions.placement.vcpu);
    let (_, to_trial_ns) = trial_window_ns(conditions, measured);
    let open_last = open_at(&measured.seconds, to_trial_ns).filter(|open| *open > 0.0);
    let per_second = per_second(conditions, load, measured);
    let grown = stage
        .rss_idle_bytes()
        .map(|idle| float(usage.rss_last_bytes) - float(idle))
        // A garbage collector that freed more of its heap than the sessions need says nothing about them.
        .filter(|grown| *grown > 0.0);
    Some(TargetResources {
        cpu_us_per_session_second: per_second.map(|per_second| cost_us((&usage, per_second))),
        core_us_per_session_second: cores_awake(conditions, stage, measured)
            .zip(per_second)
            .map(|(cores, per_second)| cores * 1e6 / per_second),
        cpu_share: usage.share_of(given),
        cpu_user_us: whole(usage.cpu_user_us),
        cpu_system_us: whole(usage.cpu_system_us),
        rss_peak_bytes: usage.rss_peak_bytes,
        memory: Some(measured.memory),
        rss_bytes_per_session: grown.zip(open_last).map(|(grown, open)| grown / open),
        throttled_share: usage.throttled_share,
        run_queue_wait_share: usage.runqueue_wait_share,
        receive_wait_share: receive_wait_share(conditions, measured),
        others_cpu_share: others_cpu_share(conditions, measured),
        kernel_writes_cpu_share: kernel_writes_cpu_share(measured),
        source: stage.source_name().unwrap_or_else(|| "unknown".to_owned()),
        cpus_busy: Some(usage.cpus_busy),
        cpus_allowed: measured.soundness.target_cpus.as_ref().map(CpuList::vcpu),
        voluntary_switches_per_s: usage.voluntary_switches_per_s,
        involuntary_switches_per_s: usage.involuntary_switches_per_s,
        fds_peak: usage.fds_max,
        threads_peak: Some(usage.threads_max),
        memory_limit_bytes: recorded.memory_limits_bytes.get(TARGET).copied(),
        memory_pressure_events: usage.memory_events.map(whole),
        sockets: recorded.sockets.between(from_ns, to_ns),
        busiest_thread_share: usage.busiest_thread_share,
        machine_memory_available_share: measured
            .target_machine()
            .memory_available_least(from_ns, to_ns),
    })
}

/// The companion's own statistics, and its CPU time as counted by the kernel.
pub(super) fn companion(
    conditions: &Conditions,
    load: u32,
    measured: &Measured,
) -> Option<CompanionWindow> {
    let window = measured.companion.as_ref()?.window.clone();
    let usage = usage(conditions, measured, COMPANION);
    let per_second = per_second(conditions, load, measured);
    Some(CompanionWindow {
        cpu_us_per_session_second: usage.as_ref().zip(per_second).map(cost_us),
        busy_share: usage.map_or(window.busy_share, |usage| usage.cpus_busy),
        cpu_us_per_request: usage
            .filter(|_| window.requests > 0)
            .map(|usage| usage.cpu_us / float(window.requests)),
        resources: usage.map(|usage| process(&usage)),
        ..window
    })
}
