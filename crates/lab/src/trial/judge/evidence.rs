//! What a trial shows about its own soundness, gathered for [`plimsoll_core::caveat::doubts`].

use plimsoll_core::broken_gate;
use plimsoll_core::caveat::{Driver, Evidence, GateSamples, Starved, Watcher};
use plimsoll_core::latency::{LatencySet, Series};
use plimsoll_core::outright::Outright;
use plimsoll_core::record::{Agent, Client, CompanionWindow, GateResult, TargetResources};
use plimsoll_core::slo::{Gate, Metric, Slo};
use plimsoll_host::isolation::Wanted;

use super::{Showed, bounds, resources};
use crate::fleet::boot;
use crate::fleet::observer::Observed;
use crate::trial::Measured;
use crate::trial::conditions::Conditions;
use crate::trial::stage::Staged;

/// What the three parties used.
#[derive(Clone, Copy)]
pub(super) struct Used<'a> {
    pub(super) client: &'a Client,
    pub(super) target: Option<&'a TargetResources>,
    pub(super) companion: Option<&'a CompanionWindow>,
}

/// The evidence for a verdict by `slo`, with `gates` as the results of its gates.
pub(super) fn evidence(
    conditions: &Conditions,
    stage: &Staged,
    showed: &Showed<'_>,
    slo: &Slo,
    gates: &[GateResult],
) -> Evidence {
    let Showed { measured, used, .. } = *showed;
    let report = &measured.report;
    // Lost or duplicated frames, dead sessions and a dead target already fail the trial: no account and no number of
    // samples makes that better or worse.
    let a_count_failed = slo.a_count_failed(gates) || Outright::among(gates).is_some();
    // What an agent did that was lost is in the target's account and not in ours.
    let lost = Agent::one_is_lost(&measured.agents);
    Evidence {
        drivers: drivers(used.client, measured),
        observer: measured.observed.as_ref().map(watcher),
        achieved_share: used.client.achieved_share,
        companion_gone: stage.companion.is_some() && measured.companion.is_none(),
        companion_lateness_p99_ms: used
            .companion
            .and_then(|used| ms(used.answer_lateness.p99_us)),
        companion_queue_p99_ms: used.companion.and_then(|used| ms(used.queue_wait.p99_us)),
        target_steal_share: target_steal_share(conditions, measured),
        target_starved: broken_gate::by_lateness(gates)
            .then(|| target_starved(conditions, stage, measured, used.target))
            .flatten(),
        clock_jump: measured.soundness.clock_jump,
        shared_cores: shared_cores(conditions, measured),
        machine_bound: bounds::machine_bound(conditions, stage, measured, used.target, gates),
        sanity: if a_count_failed || lost {
            Vec::new()
        } else {
            measured.soundness.checks.clone()
        },
        read_and_processed: measured.soundness.read_and_processed,
        opaque_format: showed.opaque_format.clone(),
        back_end_unchecked: measured.soundness.back_end_unchecked,
        no_quota: no_quota(conditions, stage),
        on_loopback: stage
            .network_record(conditions)
            .and_then(|network| network.why),
        no_resources: used.target.is_none(),
        interrupted: report.interrupted,
        samples: if a_count_failed {
            Vec::new()
        } else {
            slo.gates
                .iter()
                .filter_map(|gate| samples(gate, &report.latency))
                .collect()
        },
    }
}

/// Whoever drove the load: the client, or each of its agents.
fn drivers(client: &Client, measured: &Measured) -> Vec<Driver> {
    let report = &measured.report;
    let opening = |share: Option<f64>| share.filter(|_| report.ledger.sessions_failed > 0);
    if client.agents.is_empty() {
        return vec![Driver {
            agent: None,
            send_lag_p999_us: client.send_lag.p999_us,
            busy_share: client.cpu_share,
            wait_share: longest(client.run_queue_wait_share, client.receive_wait_share),
            opening_wait_share: opening(report.longest_opening_wait_share),
            steal_share: client.steal_share,
            faults: client.faults.clone(),
            clock_error_ms: None,
            lost: None,
            others: measured.soundness.others.clone(),
        }];
    }
    let of_agent = |agent: &Agent| Driver {
        agent: Some(agent.name()),
        send_lag_p999_us: agent.send_lag.p999_us,
        busy_share: agent.cpu_share,
        wait_share: longest(agent.run_queue_wait_share, agent.receive_wait_share),
        opening_wait_share: opening(agent.opening_wait_share),
        steal_share: agent.steal_share,
        faults: agent.faults.clone(),
        clock_error_ms: Some(agent.clock_error_us / 1e3),
        lost: agent.lost.clone(),
        others: Vec::new(),
    };
    client.agents.iter().map(of_agent).collect()
}

/// Steal on the target's cores, where these are known.
fn target_steal_share(conditions: &Conditions, measured: &Measured) -> Option<f64> {
    let cpus = measured.soundness.target_cpus.as_ref()?;
    resources::target_machine(conditions, measured)?.steal_share(|cpu| cpus.contains(cpu))
}

/// What others took of the target's CPU time.
fn target_starved(
    conditions: &Conditions,
    stage: &Staged,
    measured: &Measured,
    target: Option<&TargetResources>,
) -> Option<Starved> {
    let target = target?;
    let cpus = measured.soundness.target_cpus.as_ref()?.vcpu();
    let held = stage.group().is_some() && no_quota(conditions, stage).is_none();
    let given = if held {
        conditions.placement.vcpu.min(cpus)
    } else {
        cpus
    };
    let others_share = target.others_cpu_share?;
    let wait_share = longest(target.run_queue_wait_share, target.receive_wait_share)?;
    Some(Starved::of(others_share, cpus, given, wait_share))
}

/// Whether the target may run where a driver of the load runs. Equal numbers of CPUs are the same ones only on one machine.
fn shared_cores(conditions: &Conditions, measured: &Measured) -> bool {
    let Some(target) = &measured.soundness.target_cpus else {
        return false;
    };
    let observed = measured.observed.as_ref();
    let here = boot();
    let there = observed.map_or(&here, |seen| &seen.boot);
    match conditions.agents() {
        Some(fleet) => fleet.present().iter().any(|agent| {
            let (boot, cpus) = agent.place();
            boot == there && target.overlaps(cpus)
        }),
        None => *there == here && target.overlaps(&conditions.placement.client_cpus),
    }
}

/// What the observer shows about itself.
fn watcher(observed: &Observed) -> Watcher {
    Watcher {
        host: observed.by.host.clone(),
        clock_error_ms: observed.by.clock_error_us / 1e3,
        lost: observed.by.lost.clone(),
    }
}

/// The samples behind a gate's percentile; `None` if the gate looks at no percentile.
fn samples(gate: &Gate, latency: &LatencySet) -> Option<GateSamples> {
    let series = match gate.metric {
        // A workload's own percentile has a sample for each answer.
        Metric::Newest(_) | Metric::WorstSecond | Metric::Own(_) => Series::NewestFromSchedule,
        Metric::Oldest(_) => Series::OldestFromSchedule,
        Metric::Confirm(_) => Series::ConfirmFromSchedule,
        _ => return None,
    };
    Some(GateSamples {
        gate: gate.metric.name(),
        samples: latency.histogram(series).len(),
        needed: gate.metric.samples_needed()?,
    })
}

fn no_quota(conditions: &Conditions, stage: &Staged) -> Option<(f64, String)> {
    let missing = stage.group()?.missing();
    let quota = missing
        .iter()
        .find(|missing| missing.what == Wanted::Quota)?;
    Some((conditions.placement.vcpu, quota.why.clone()))
}

/// The longer of the two waits, as far as they are known. Packets that wait for the kernel's thread are as late as
/// packets that wait for the program's.
fn longest(of_program: Option<f64>, of_receive: Option<f64>) -> Option<f64> {
    of_program.into_iter().chain(of_receive).reduce(f64::max)
}

fn ms(us: Option<f64>) -> Option<f64> {
    us.map(|us| us / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::slo::Percentile;

    #[test]
    fn each_gate_has_the_samples_of_its_own_end() {
        let mut latency = LatencySet::new();
        for _ in 0..5 {
            latency.record_ns(Series::NewestFromSchedule, 1_000_000);
        }
        latency.record_ns(Series::OldestFromSchedule, 1_000_000);
        for _ in 0..3 {
            latency.record_ns(Series::ConfirmFromSchedule, 1_000_000);
        }
        let of = |metric| {
            let gate = Gate {
                metric,
                threshold: 1.0,
            };
            samples(&gate, &latency).map(|few| (few.gate, few.samples, few.needed))
        };
        let expected = |name: &str, samples, needed| Some((name.to_owned(), samples, needed));
        assert_eq!(
            of(Metric::Newest(Percentile::P95)),
            expected("newest_p95_ms", 5, 200)
        );
        assert_eq!(
            of(Metric::Oldest(Percentile::P50)),
            expected("oldest_p50_ms", 1, 20)
        );
        assert_eq!(
            of(Metric::Confirm(Percentile::P99)),
            expected("confirm_p99_ms", 3, 1_000)
        );
        assert_eq!(of(Metric::FramesLost), None);
        assert_eq!(of(Metric::BacklogSlope), None);
    }
}
