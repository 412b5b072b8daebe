//! What a trial shows about its own soundness, the limits that apply, and the doubts that follow.

use std::collections::BTreeMap;

use super::{ClockJump, Doubt, Party};
use crate::record::{GateResult, SanityCheck};
use crate::sanity::Account;

/// What a trial shows about its own soundness.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Whoever drove the load: the client, or each of its agents.
    pub drivers: Vec<Driver>,
    /// The observer of the target, if there is one.
    pub observer: Option<Watcher>,
    /// Share of the load that the client wrote or that the target did not take; `None` if the trial ended before this
    /// was known.
    pub achieved_share: Option<f64>,
    /// Whether we ran a companion that did not last until the window's end.
    pub companion_gone: bool,
    /// Lateness of the companion's answers, 99th percentile, in ms; `None` without a companion of ours.
    pub companion_lateness_p99_ms: Option<f64>,
    /// Time that requests waited for a free place in the companion, 99th percentile, in ms.
    pub companion_queue_p99_ms: Option<f64>,
    /// Share of the time of the target's CPUs that the hypervisor took; `None` if it is not known where the target runs.
    pub target_steal_share: Option<f64>,
    /// What others used of the CPU time given to the target, if that may explain why it fails.
    pub target_starved: Option<Starved>,
    /// A clock that was set, or a machine that slept.
    pub clock_jump: Option<ClockJump>,
    /// Whether target and client share cores.
    pub shared_cores: bool,
    /// What the machine ran out of, for the client or for the target. Each entry completes the sentence "the machine
    /// ran out of …".
    pub machine_bound: Vec<String>,
    /// Accounts kept twice. Those that do not hold become doubts. Empty if a count has already decided the verdict.
    pub sanity: Vec<SanityCheck>,
    /// Messages that the target is proven to have read, and messages handed to its application, where both are known.
    pub read_and_processed: Option<(u64, u64)>,
    /// A format in which messages were sent, if nothing shows that the target decodes it.
    pub opaque_format: Option<String>,
    /// Whether the target says that it never asks its back end.
    pub back_end_unchecked: bool,
    /// A quota that was needed and could not be set: the vCPU asked for, and why it could not be set.
    pub no_quota: Option<(f64, String)>,
    /// Why the target that we started is on the loopback, if it is.
    pub on_loopback: Option<String>,
    /// Whether the target's resources are unknown.
    pub no_resources: bool,
    /// Whether the trial ended early.
    pub interrupted: bool,
    /// The samples behind each gated percentile; empty if the verdict does not rest on percentiles.
    pub samples: Vec<GateSamples>,
}

/// What one driver of the load shows about itself.
#[derive(Debug, Clone, Default)]
pub struct Driver {
    /// Which agent it is; `None` for the client of a trial without agents.
    pub agent: Option<String>,
    /// Its send lag, 99.9th percentile, in µs.
    pub send_lag_p999_us: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub busy_share: f64,
    /// Share of the window that it waited for its core: the wait of the engine thread that waited most, or of the kernel
    /// thread that receives for it. `None` where the kernel does not report it.
    pub wait_share: Option<f64>,
    /// Share of the time before the window that the engine thread that waited most waited for its core, if a session was
    /// not open in time.
    pub opening_wait_share: Option<f64>,
    /// Share of the time of its CPUs that the hypervisor took.
    pub steal_share: Option<f64>,
    /// Faults of its own machine, each with its count.
    pub faults: BTreeMap<String, u64>,
    /// How wrong its clock may be beside the coordinator's, in ms; `None` if it is the same clock.
    pub clock_error_ms: Option<f64>,
    /// Why it did not carry its part to the end, if it did not.
    pub lost: Option<String>,
    /// The busiest programs of others that may have run on its CPUs.
    pub others: Vec<OtherProgram>,
}

/// A program of somebody else, or a thread of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherProgram {
    /// Its name.
    pub name: String,
    /// Its process ID.
    pub pid: i32,
    /// CPU time that it used during the trial, as a share of one core's.
    pub core_share: f64,
}

/// What the observer of the target shows about itself.
#[derive(Debug, Clone, Default)]
pub struct Watcher {
    /// The name of its machine.
    pub host: String,
    /// How wrong its clock may be beside the coordinator's, in ms.
    pub clock_error_ms: f64,
    /// Why it did not watch to the end, if it did not.
    pub lost: Option<String>,
}

/// How far others kept a party from its cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Starved {
    /// Of the CPU time that the party was given, the share that others used.
    pub taken_share: f64,
    /// Time that its threads, or the kernel thread that receives for it, were ready and waited for a core, as a share
    /// of the window.
    pub wait_share: f64,
}

impl Starved {
    /// What others took from a party that was given the time of `given` CPUs out of `cpus`. Others used `others_share`
    /// of the time of all these CPUs.
    ///
    /// If the party was given less time than its CPUs have, others may use the rest. The party lacks only what they
    /// used beyond that.
    #[must_use]
    pub fn of(others_share: f64, cpus: f64, given: f64, wait_share: f64) -> Self {
        let lacking = (others_share * cpus - (cpus - given)).max(0.0);
        Self {
            taken_share: lacking / given,
            wait_share,
        }
    }
}

/// The samples behind a gated percentile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateSamples {
    /// The gate's name.
    pub gate: String,
    /// The number of samples recorded.
    pub samples: u64,
    /// The fewest samples that its percentile needs.
    pub needed: u64,
}

/// What is still allowed. `docs/explanation/verdict.md` and `docs/reference/caveats.md` give the reasons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The client's send lag, 99.9th percentile, in µs.
    pub send_lag_p999_us: f64,
    /// The share of its core that the busiest engine thread may use.
    pub client_busy_share: f64,
    /// The share of the window, or of the time before it, that the client may wait for its core.
    pub client_wait_share: f64,
    /// The smallest share of the load that must be achieved.
    pub achieved_share: f64,
    /// Lateness and queueing of the companion, 99th percentile, in ms.
    pub companion_p99_ms: f64,
    /// The share of CPU time that the hypervisor may take, from the client or from the target.
    pub steal_share: f64,
    /// The share of the target's CPU time that others may use, and the share of the window that the target may wait.
    pub target_starved_share: f64,
}

/// From this error of an agent's clock on, its part begins noticeably earlier or later than the others.
const CLOCK_ERROR_MS: f64 = 5.0;
/// From this error on, the ramp is not the one that was asked for.
const CLOCK_ERROR_BLOCKING_MS: f64 = 50.0;
/// A client that is late by this share of what a latency is beyond its gate does not explain it. Its lateness counts
/// twice, when it writes and when it reads, and once more by the clump that it writes then.
const EXPLAINS_LITTLE: f64 = 0.1;
/// The share of the load that the client may owe at the window's end, if it may be late by the usual distortion. It owes
/// as much more as it may be later.
const OWED_SHARE: f64 = 0.001;
/// The most of it, however late the client may be.
const OWED_SHARE_MOST: f64 = 0.05;
/// How much a target must lack before that explains lost answers or sessions. Lacking a twentieth only makes it late.
const MUCH_STARVED: f64 = 0.25;

impl Limits {
    /// The limits for a verdict that rests on these gates, by an SLO whose tightest latency gate is `tightest_ms`.
    ///
    /// A pass is in doubt if the client and the companion may have distorted the measurement by more than a twentieth
    /// of the tightest gate. So is a narrow fail. But a client that was late by a tenth of what a latency is *beyond its
    /// gate* does not explain that fail. Then this tenth is the limit, because one such gate is enough for a fail. The
    /// client's own lateness affects its reading as much as its writing. So latencies caused by a starved client are
    /// about as large as its send lag, and stay far from ten times it.
    ///
    /// A client that is late when the window ends owes the frames of that time. So the share that it must have written
    /// follows its lateness. A target that failed with nearly all of the load would not have passed with all of it.
    #[must_use]
    pub fn for_verdict(tightest_ms: Option<f64>, gates: &[GateResult]) -> Self {
        let excess_ms = |gate: &GateResult| {
            let observed = gate.observed.filter(|_| gate.is_on_latency())?;
            (!gate.pass).then_some(observed - gate.threshold)
        };
        let worst_ms = gates.iter().filter_map(excess_ms).fold(0.0, f64::max);
        let usual_ms = usual_distortion_ms(tightest_ms);
        let allowed_ms = usual_ms.max(worst_ms * EXPLAINS_LITTLE);
        let mut limits = Self::of_distortion(allowed_ms);
        limits.achieved_share = 1.0 - (OWED_SHARE * allowed_ms / usual_ms).min(OWED_SHARE_MOST);
        if gates.iter().any(|gate| !gate.pass && !gate.is_on_latency()) {
            limits.target_starved_share = MUCH_STARVED;
        }
        limits
    }

    /// The limits for an SLO whose tightest latency gate is `tightest_ms`. The client and the companion may distort the
    /// measurement by a twentieth of that gate. 2 ms are always allowed, because below that only the scheduler of a
    /// shared machine shows.
    #[must_use]
    pub fn for_gate(tightest_ms: Option<f64>) -> Self {
        Self::of_distortion(usual_distortion_ms(tightest_ms))
    }

    /// Client and companion may each distort the measurement by as much.
    fn of_distortion(distortion_ms: f64) -> Self {
        Self {
            send_lag_p999_us: distortion_ms * 1e3,
            client_busy_share: 0.95,
            client_wait_share: 0.25,
            achieved_share: 1.0 - OWED_SHARE,
            companion_p99_ms: distortion_ms,
            steal_share: 0.05,
            target_starved_share: 0.05,
        }
    }
}

/// The distortion that is allowed whatever the latencies are.
fn usual_distortion_ms(tightest_ms: Option<f64>) -> f64 {
    tightest_ms.map_or(10.0, |ms| (ms / 20.0).max(2.0))
}

/// The reasons for doubt in this evidence: first those about the client, then the companion, the machine, the accounts
/// and the record.
#[must_use]
pub fn doubts(evidence: &Evidence, limits: &Limits) -> Vec<Doubt> {
    let mut found = Vec::new();
    if evidence.interrupted {
        found.push(Doubt::Interrupted);
    }
    client(evidence, limits, &mut found);
    if let Some(watcher) = &evidence.observer {
        observer(watcher, &mut found);
    }
    companion(evidence, limits, &mut found);
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

/// What makes a driver of the load doubtful, whatever the others do.
fn driver(driver: &Driver, limits: &Limits) -> Vec<Doubt> {
    let mut found = Vec::new();
    if let Some(why) = &driver.lost {
        found.push(Doubt::AgentLost { why: why.clone() });
    }
    for (what, count) in &driver.faults {
        found.push(Doubt::ClientFault {
            what: what.clone(),
            count: *count,
        });
    }
    let limit = limits.client_busy_share;
    if let Some(share) = over(Some(driver.busy_share), limit) {
        found.push(Doubt::ClientBusy { share, limit });
    }
    let others = || driver.others.clone();
    let limit = limits.client_wait_share;
    let starved = |share, of| Doubt::ClientStarved {
        share,
        of,
        limit,
        others: others(),
    };
    if let Some(share) = over(driver.wait_share, limit) {
        found.push(starved(share, "the window"));
    } else if let Some(share) = over(driver.opening_wait_share, limit) {
        found.push(starved(share, "the time in which sessions were to open"));
    }
    let limit_us = limits.send_lag_p999_us;
    if let Some(p999_us) = over(driver.send_lag_p999_us, limit_us) {
        let others = others();
        found.push(Doubt::SendLag {
            p999_us,
            limit_us,
            others,
        });
    }
    let limit_ms = CLOCK_ERROR_MS;
    if let Some(error_ms) = over(driver.clock_error_ms, limit_ms) {
        let blocking = error_ms > CLOCK_ERROR_BLOCKING_MS;
        found.push(Doubt::ClockError {
            error_ms,
            limit_ms,
            blocking,
        });
    }
    let limit = limits.steal_share;
    if let Some(share) = over(driver.steal_share, limit) {
        let party = Party::Client;
        found.push(Doubt::Steal {
            party,
            share,
            limit,
        });
    }
    found
}

fn client(evidence: &Evidence, limits: &Limits, found: &mut Vec<Doubt>) {
    for who in &evidence.drivers {
        let doubts = driver(who, limits).into_iter();
        found.extend(doubts.map(|doubt| match &who.agent {
            Some(agent) => doubt.at(agent),
            None => doubt,
        }));
    }
    let limit = limits.achieved_share;
    if let Some(share) = evidence.achieved_share.filter(|share| *share < limit) {
        found.push(Doubt::AchievedLoad { share, limit });
    }
}

fn observer(watcher: &Watcher, found: &mut Vec<Doubt>) {
    let host = || watcher.host.clone();
    if let Some(why) = &watcher.lost {
        let (host, why) = (host(), why.clone());
        found.push(Doubt::ObserverLost { host, why });
    }
    let limit_ms = CLOCK_ERROR_MS;
    if let Some(error_ms) = over(Some(watcher.clock_error_ms), limit_ms) {
        found.push(Doubt::ObserverClock {
            host: host(),
            error_ms,
            limit_ms,
        });
    }
}

fn companion(evidence: &Evidence, limits: &Limits, found: &mut Vec<Doubt>) {
    if evidence.companion_gone {
        found.push(Doubt::CompanionGone);
    }
    let limit_ms = limits.companion_p99_ms;
    if let Some(lateness_p99_ms) = over(evidence.companion_lateness_p99_ms, limit_ms) {
        found.push(Doubt::CompanionSaturated {
            lateness_p99_ms,
            limit_ms,
        });
    }
    if let Some(wait_p99_ms) = over(evidence.companion_queue_p99_ms, limit_ms) {
        found.push(Doubt::CompanionQueued {
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
    if let Some(share) = over(evidence.target_steal_share, limit) {
        let party = Party::Target;
        found.push(Doubt::Steal {
            party,
            share,
            limit,
        });
    }
    let limit = limits.target_starved_share;
    // Both are required: others on the target's cores take nothing from it while it rests, and its own threads wait for
    // one another.
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
    let late = |doubt: &Doubt| {
        matches!(
            doubt.itself(),
            Doubt::ClientStarved { .. } | Doubt::SendLag { .. }
        )
    };
    let client_late = found.iter().any(late);
    for check in evidence.sanity.iter().filter(|check| !check.holds) {
        let account = Account::of(check);
        // Observed with engine threads that were kept from their core, and with ones that had long turns to catch up: the
        // two sides of the law are then stamped at moments that lie apart. The account is not at fault.
        let account = account.filter(|account| !(client_late && *account == Account::LittlesLaw));
        found.extend(account.map(|account| Doubt::AccountsDisagree {
            account,
            check: check.clone(),
        }));
    }
}

/// Work that the target answered for without doing it.
fn work_undone(evidence: &Evidence, found: &mut Vec<Doubt>) {
    if let Some((read, processed)) = evidence.read_and_processed
        && processed < read
    {
        found.push(Doubt::Unprocessed { read, processed });
    }
    let opaque = evidence.opaque_format.clone();
    found.extend(opaque.map(|format| Doubt::FormatOpaque { format }));
}

/// The gate that lacks the greatest share of the samples it needs, if any gate lacks some. What fixes this gate fixes
/// the others.
fn too_few(gates: &[GateSamples]) -> Option<GateSamples> {
    let lacking = gates.iter().filter(|gate| gate.samples < gate.needed);
    let by_share =
        |a: &&GateSamples, b: &&GateSamples| (a.samples * b.needed).cmp(&(b.samples * a.needed));
    lacking.min_by(by_share).cloned()
}
