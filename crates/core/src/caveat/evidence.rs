//! What a trial shows about its own soundness, what is still allowed, and the doubts that follow.

use std::collections::BTreeMap;

use super::{ClockJump, Doubt, Party};
use crate::record::{GateResult, SanityCheck};
use crate::sanity::Account;

/// What a trial shows about its own soundness.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Client's send lag, 99.9th percentile.
    pub send_lag_p999_us: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub client_busy_share: f64,
    /// Share of the window that the client waited for its core: the engine thread that waited most, or the kernel thread that receives for it. `None` where the kernel does not
    /// report it.
    pub client_wait_share: Option<f64>,
    /// Share of the load that the client wrote, or that the target did not take; `None` when the trial ended before that can be told.
    pub achieved_share: Option<f64>,
    /// There was a simulator of ours, and it did not live to the window's end.
    pub inference_gone: bool,
    /// Lateness of the simulator's answers, 99th percentile; `None` without a simulator of ours.
    pub inference_lateness_p99_ms: Option<f64>,
    /// Time that requests waited for a place in it, 99th percentile.
    pub inference_queue_p99_ms: Option<f64>,
    /// Faults of the client's own machine.
    pub client_faults: BTreeMap<String, u64>,
    /// Share of the time of the client's CPUs that the hypervisor took.
    pub client_steal_share: Option<f64>,
    /// The same of the target's; `None` when it is not known where it runs.
    pub target_steal_share: Option<f64>,
    /// What others used of the CPU time that the target was given, where that can be why it would fail.
    pub target_starved: Option<Starved>,
    /// A clock that was set, or sleep.
    pub clock_jump: Option<ClockJump>,
    /// Target and client share cores.
    pub shared_cores: bool,
    /// What the machine ran out of, for the client or for the target, each so that "the machine ran out of …" is a sentence.
    pub machine_bound: Vec<String>,
    /// Accounts kept twice; those that do not hold are doubts. Empty where a count decided already.
    pub sanity: Vec<SanityCheck>,
    /// Messages that the target is proven to have read, and those that its application was handed, where both are known.
    pub read_and_processed: Option<(u64, u64)>,
    /// A format that messages were sent in and that nothing shows the target to decode.
    pub opaque_format: Option<String>,
    /// The target says that it never asks its back end.
    pub back_end_unchecked: bool,
    /// A quota that was needed and could not be set: what was asked for, and why not.
    pub no_quota: Option<(f64, String)>,
    /// The target that we started is on the loopback: why.
    pub on_loopback: Option<String>,
    /// The target's resources are unknown.
    pub no_resources: bool,
    /// The trial was ended early.
    pub interrupted: bool,
    /// The samples that each gated percentile rests on; empty when the verdict does not rest on percentiles.
    pub samples: Vec<GateSamples>,
}

/// A party that others kept from its cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Starved {
    /// Share of the CPU time it was given that others used.
    pub taken_share: f64,
    /// Time that its threads, or the kernel thread that receives for it, were ready and waited for a core, as a share of the window.
    pub wait_share: f64,
}

impl Starved {
    /// What others took of a party that was given the time of `given` CPUs out of `cpus`, when they used `others_share` of all that those had.
    ///
    /// Where it was given less than its CPUs have, others may use what is over: it lacks only what they used beyond.
    #[must_use]
    pub fn of(others_share: f64, cpus: f64, given: f64, wait_share: f64) -> Self {
        let lacking = (others_share * cpus - (cpus - given)).max(0.0);
        Self {
            taken_share: lacking / given,
            wait_share,
        }
    }
}

/// What a gated percentile rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateSamples {
    /// The gate's name.
    pub gate: String,
    /// Samples in its record.
    pub samples: u64,
    /// The least that its percentile needs.
    pub needed: u64,
}

/// What is still allowed. `docs/explanation/verdict.md` and `docs/reference/caveats.md` give the reasons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Send lag, 99.9th percentile.
    pub send_lag_p999_us: f64,
    /// Share of a core.
    pub client_busy_share: f64,
    /// Share of the window.
    pub client_wait_share: f64,
    /// The least share of the load.
    pub achieved_share: f64,
    /// Lateness and queueing of the simulator.
    pub inference_p99_ms: f64,
    /// Share of CPU time, the client's or the target's.
    pub steal_share: f64,
    /// Share of the target's CPU time, and of the window that it waited.
    pub target_starved_share: f64,
}

/// A latency of so many times its gate's threshold is far beyond it.
const FAR_EXCEEDED: f64 = 3.0;
/// What a target must lack for it to be why it lost answers or sessions; a twentieth makes it late, and no more.
const MUCH_STARVED: f64 = 0.25;

impl Limits {
    /// Limits for a verdict that rests on these gates, held against an SLO whose tightest latency gate is `tightest_ms`.
    ///
    /// A pass is in doubt when the client and the simulator may have bent what is measured by more than a twentieth of the tightest gate. So is a fail by a
    /// little. But a latency that is several times what its gate allows is not explained by a client that was late by a twentieth of
    /// *that*: then this is the limit, for one such gate is enough for a fail. The client's own lateness is in its reading as in its writing, so
    /// latencies that come of a starved client are of the size of its send lag, and stay far from twenty times it.
    #[must_use]
    pub fn for_verdict(tightest_ms: Option<f64>, gates: &[GateResult]) -> Self {
        let far_exceeded_ms = |gate: &GateResult| {
            let observed = gate.observed.filter(|_| gate.is_on_latency())?;
            (!gate.pass && observed >= gate.threshold * FAR_EXCEEDED).then_some(observed)
        };
        let worst_ms = gates.iter().filter_map(far_exceeded_ms).reduce(f64::max);
        let strict = Self::for_gate(tightest_ms);
        let relaxed = Self::for_gate(worst_ms);
        let mut limits = match worst_ms {
            Some(_) if relaxed.send_lag_p999_us > strict.send_lag_p999_us => relaxed,
            _ => strict,
        };
        if gates.iter().any(|gate| !gate.pass && !gate.is_on_latency()) {
            limits.target_starved_share = MUCH_STARVED;
        }
        limits
    }

    /// Limits for an SLO whose tightest latency gate is `tightest_ms`: the client and the simulator may bend what is measured by a twentieth of it,
    /// but 2 ms are always allowed, for below that a shared machine's scheduler is all that is seen.
    #[must_use]
    pub fn for_gate(tightest_ms: Option<f64>) -> Self {
        let twentieth_ms = tightest_ms.map_or(10.0, |ms| (ms / 20.0).max(2.0));
        Self {
            send_lag_p999_us: twentieth_ms * 1e3,
            client_busy_share: 0.95,
            client_wait_share: 0.25,
            achieved_share: 0.999,
            inference_p99_ms: twentieth_ms,
            steal_share: 0.05,
            target_starved_share: 0.05,
        }
    }
}

/// The reasons for doubt in this evidence: first those about the client, then the simulator, the machine, the accounts, the record.
#[must_use]
pub fn doubts(evidence: &Evidence, limits: &Limits) -> Vec<Doubt> {
    let mut found = Vec::new();
    if evidence.interrupted {
        found.push(Doubt::Interrupted);
    }
    client(evidence, limits, &mut found);
    simulator(evidence, limits, &mut found);
    machine(evidence, limits, &mut found);
    accounts(evidence, &mut found);
    if !evidence.interrupted {
        found.extend(too_few(&evidence.samples).map(Doubt::TooFewSamples));
    }
    work_undone(evidence, &mut found);
    if evidence.back_end_unchecked {
        found.push(Doubt::BackEndUnchecked);
    }
    if let Some((vcpu, why)) = &evidence.no_quota {
        found.push(Doubt::NoQuota {
            vcpu: *vcpu,
            why: why.clone(),
        });
    }
    if let Some(why) = &evidence.on_loopback {
        found.push(Doubt::ClientPaysReceive { why: why.clone() });
    }
    if evidence.no_resources {
        found.push(Doubt::NoResources);
    }
    found
}

fn over(value: Option<f64>, limit: f64) -> Option<f64> {
    value.filter(|value| *value > limit)
}

fn client(evidence: &Evidence, limits: &Limits, found: &mut Vec<Doubt>) {
    for (what, count) in &evidence.client_faults {
        found.push(Doubt::ClientFault {
            what: what.clone(),
            count: *count,
        });
    }
    let limit = limits.client_busy_share;
    if let Some(share) = over(Some(evidence.client_busy_share), limit) {
        found.push(Doubt::ClientBusy { share, limit });
    }
    let limit = limits.client_wait_share;
    if let Some(share) = over(evidence.client_wait_share, limit) {
        found.push(Doubt::ClientStarved { share, limit });
    }
    let limit_us = limits.send_lag_p999_us;
    if let Some(p999_us) = over(evidence.send_lag_p999_us, limit_us) {
        found.push(Doubt::SendLag { p999_us, limit_us });
    }
    let limit = limits.achieved_share;
    if let Some(share) = evidence.achieved_share.filter(|share| *share < limit) {
        found.push(Doubt::AchievedLoad { share, limit });
    }
}

fn simulator(evidence: &Evidence, limits: &Limits, found: &mut Vec<Doubt>) {
    if evidence.inference_gone {
        found.push(Doubt::InferenceGone);
    }
    let limit_ms = limits.inference_p99_ms;
    if let Some(lateness_p99_ms) = over(evidence.inference_lateness_p99_ms, limit_ms) {
        found.push(Doubt::InferenceSaturated {
            lateness_p99_ms,
            limit_ms,
        });
    }
    if let Some(wait_p99_ms) = over(evidence.inference_queue_p99_ms, limit_ms) {
        found.push(Doubt::InferenceQueued {
            wait_p99_ms,
            limit_ms,
        });
    }
}

fn machine(evidence: &Evidence, limits: &Limits, found: &mut Vec<Doubt>) {
    let bound = evidence.machine_bound.iter().cloned();
    found.extend(bound.map(|what| Doubt::MachineBound { what }));
    if evidence.shared_cores {
        found.push(Doubt::SharedCores);
    }
    let limit = limits.steal_share;
    let shares = [
        (Party::Client, evidence.client_steal_share),
        (Party::Target, evidence.target_steal_share),
    ];
    for (party, share) in shares {
        if let Some(share) = over(share, limit) {
            found.push(Doubt::Steal {
                party,
                share,
                limit,
            });
        }
    }
    let limit = limits.target_starved_share;
    // Both: others on its cores while it rests take nothing from it, and its own threads wait for one another.
    let starved = |s: &Starved| s.taken_share > limit && s.wait_share > limit;
    if let Some(starved) = evidence.target_starved.filter(starved) {
        found.push(Doubt::TargetStarved {
            taken_share: starved.taken_share,
            wait_share: starved.wait_share,
            limit,
        });
    }
    found.extend(evidence.clock_jump.map(Doubt::ClockJump));
}

fn accounts(evidence: &Evidence, found: &mut Vec<Doubt>) {
    let starved = |doubt: &Doubt| matches!(doubt, Doubt::ClientStarved { .. });
    let client_starved = found.iter().any(starved);
    for check in evidence.sanity.iter().filter(|check| !check.holds) {
        let account = Account::of(check);
        // Seen with engine threads that were kept from their core: the two sides of the law are stamped at moments that then lie apart. No fault of the account.
        let account =
            account.filter(|account| !(client_starved && *account == Account::LittlesLaw));
        found.extend(account.map(|account| Doubt::AccountsDisagree {
            account,
            check: check.clone(),
        }));
    }
}

/// What the target answered for without doing it.
fn work_undone(evidence: &Evidence, found: &mut Vec<Doubt>) {
    if let Some((read, processed)) = evidence.read_and_processed
        && processed < read
    {
        found.push(Doubt::Unprocessed { read, processed });
    }
    let opaque = evidence.opaque_format.clone();
    found.extend(opaque.map(|format| Doubt::FormatOpaque { format }));
}

/// The gate that lacks the greatest share of the samples it needs, if any lacks some: what cures it cures the others.
fn too_few(gates: &[GateSamples]) -> Option<GateSamples> {
    let lacking = gates.iter().filter(|gate| gate.samples < gate.needed);
    let by_share =
        |a: &&GateSamples, b: &&GateSamples| (a.samples * b.needed).cmp(&(b.samples * a.needed));
    lacking.min_by(by_share).cloned()
}
