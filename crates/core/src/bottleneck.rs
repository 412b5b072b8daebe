//! What ran out first in a trial that did not pass, according to the trial's own record.
//!
//! [`diagnose`] tries the rules in order, and the first that applies names the bottleneck. The measuring side comes
//! before the target: a client or a back end that ran out says nothing about the target. Each threshold is in
//! `docs/explanation/cpu-and-isolation.md`.

use std::fmt;

use crate::caveat::{Caveat, CompanionTerms};
use crate::outright::Outright;
use crate::record::{GateResult, TargetResources, Trial, Verdict};

/// From this share of its CPU time on, a target counts as busy. The rest goes to the gaps between scheduler ticks.
const CPU_BUSY_SHARE: f64 = 0.9;
/// From this share of throttled quota periods on, the quota counts as the limit.
const THROTTLED_SHARE: f64 = 0.05;
/// From this share of its memory limit on, a target counts as being at the limit: the kernel reclaims before the last
/// page is gone.
const MEMORY_SHARE: f64 = 0.95;
/// Below this share of free memory, the machine counts as out of memory: kernel and page cache need the rest.
const MACHINE_MEMORY_SHARE: f64 = 0.05;
/// The back end counts as the limit if at least this share of all errors name it.
const BACK_END_ERROR_SHARE: f64 = 0.5;
/// The target's admission counts as the limit if at least this share of the sessions that failed were refused by it.
const ADMISSION_SHARE: f64 = 0.5;
/// Unread bytes in one connection that are worth reporting: a quarter of a second of a session with 32 KiB each second.
const UNREAD_BYTES: u64 = 8 * 1024;

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// The load engine, or its machine.
    Client,
    /// What client and target share.
    Machine,
    /// The back end to which the target sends its work.
    BackEnd,
    /// The same, where it is the providers of a gateway.
    Provider,
    /// The target took no more sessions, and said so.
    Admission,
    /// The target's process ended.
    TargetDied,
    /// Nothing was answered in the whole warm-up.
    NoAnswer,
    /// The target's memory, or the machine's.
    Memory,
    /// The target's CPU quota.
    QuotaThrottling,
    /// The target's CPUs, or one thread's.
    Cpu,
    /// Nothing visible: sessions were refused or ended.
    SessionsRefused,
    /// Nothing visible: answers were late although CPU time was left.
    LatencyWithoutCpu,
    /// The target's resources are not known.
    Unknown,
}

impl Bottleneck {
    /// Its name in results and on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Machine => "machine",
            Self::BackEnd => "back end",
            Self::Provider => "provider",
            Self::Admission => "admission",
            Self::TargetDied => "target died",
            Self::NoAnswer => "no answer",
            Self::Memory => "memory",
            Self::QuotaThrottling => "quota throttling",
            Self::Cpu => "cpu",
            Self::SessionsRefused => "sessions refused",
            Self::LatencyWithoutCpu => "latency without cpu",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Names what limited the target, or the measurement, as `kind: evidence`; `None` when nothing did. The terms are those of
/// the trial's workload.
#[must_use]
pub fn bottleneck(trial: &Trial, companion: &CompanionTerms) -> Option<String> {
    diagnose(trial, companion).map(|(kind, evidence)| format!("{kind}: {evidence}"))
}

/// The bottleneck of a trial, with its evidence; `None` when every gate held and neither machine nor client nor back
/// end ran out.
#[must_use]
pub fn diagnose(trial: &Trial, companion: &CompanionTerms) -> Option<(Bottleneck, String)> {
    if trial.verdict == Verdict::Pass {
        return None;
    }
    let blocking = || trial.caveats.iter().filter(|caveat| caveat.blocking);
    if let Some(caveat) = blocking().find(|caveat| caveat.machine_ran_out()) {
        return Some((Bottleneck::Machine, caveat.text.clone()));
    }
    let of_client = |caveat: &&Caveat| caveat.client_ran_out() && !caveat.of_companion();
    if let Some(caveat) = blocking().find(of_client) {
        return Some((Bottleneck::Client, caveat.text.clone()));
    }
    if let Some(caveat) = blocking().find(|caveat| caveat.of_companion()) {
        return Some((companion.bottleneck, caveat.text.clone()));
    }
    let failed = trial.gates.iter().find(|gate| !gate.pass)?;
    if let Some(outright) = Outright::among(&trial.gates) {
        return Some(of_outright(trial, outright));
    }
    let ran_out = trial.target_resources.as_ref();
    let ran_out = ran_out.and_then(|resources| ran_out_of(&Given::to(trial, resources), resources));
    if let Some(evidence) = errors_of_the_back_end(trial, companion.error_stages) {
        // A target without CPU time does not read in time what its back end has answered. That the back end was in time is
        // only known if it was asked.
        return Some(match (ran_out, &trial.companion) {
            (Some((kind, of_target)), Some(back_end)) => {
                let late_ms = back_end.answer_lateness.p99_us.unwrap_or(0.0) / 1e3;
                let evidence = format!(
                    "{of_target}; {evidence}, but its answers were {late_ms:.1} ms late (p99)"
                );
                (kind, evidence)
            }
            _ => (companion.bottleneck, evidence),
        });
    }
    if let Some(evidence) = refused_by_admission(trial) {
        return Some((Bottleneck::Admission, evidence));
    }
    let Some(resources) = &trial.target_resources else {
        let evidence = format!(
            "{} did not hold, and the target's resources were not measured",
            failed.name
        );
        return Some((Bottleneck::Unknown, evidence));
    };
    Some(ran_out.unwrap_or_else(|| nothing_ran_out(trial, failed, resources)))
}

/// How the target ended, as a reason in the ledger. What follows is its exit status.
pub const TARGET_ENDED: &str = "the target ended during the trial";

/// Why the target did not come back after a crash, as a reason in the ledger. What follows is how far it came.
pub const TARGET_NOT_BACK: &str = "the target did not come back after the crash";

fn of_outright(trial: &Trial, outright: Outright) -> (Bottleneck, String) {
    let reason = |begins: &str| {
        let mut reasons = trial.ledger.reasons.keys();
        let told = reasons.find(|reason| reason.starts_with(begins));
        told.map_or(begins, String::as_str).to_owned()
    };
    match outright {
        Outright::TargetDied => (Bottleneck::TargetDied, reason(TARGET_ENDED)),
        Outright::TargetNotBack => (Bottleneck::TargetDied, reason(TARGET_NOT_BACK)),
        Outright::WarmUpUnanswered => {
            let evidence = format!(
                "no request of the warm-up was answered ({} were written), so the trial ended with it",
                trial.ledger.frames_sent_in_all
            );
            (Bottleneck::NoAnswer, evidence)
        }
    }
}

/// What of its own the target had no more of.
fn ran_out_of(given: &Given, resources: &TargetResources) -> Option<(Bottleneck, String)> {
    let used = given.used(resources);
    if let Some(evidence) = memory(resources) {
        return Some((Bottleneck::Memory, evidence));
    }
    let throttled = resources.throttled_share.unwrap_or(0.0);
    if throttled >= THROTTLED_SHARE {
        let evidence = format!(
            "throttled in {} of the quota's periods, and {used}",
            percent(throttled)
        );
        return Some((Bottleneck::QuotaThrottling, evidence));
    }
    if given
        .share(resources)
        .is_some_and(|share| share >= CPU_BUSY_SHARE)
    {
        return Some((Bottleneck::Cpu, used));
    }
    if let Some(share) = resources.core_share()
        && share >= CPU_BUSY_SHARE
    {
        let evidence = format!(
            "{used}, and its packets and wake-ups took {}: its cores were busy for {} of the time",
            percent(share - resources.cpu_share),
            percent(share)
        );
        return Some((Bottleneck::Cpu, evidence));
    }
    if let Some(share) = resources.busiest_thread_share
        && share >= CPU_BUSY_SHARE
    {
        let evidence = format!(
            "one thread used {} of a core, although {used}",
            percent(share)
        );
        return Some((Bottleneck::Cpu, evidence));
    }
    None
}

fn nothing_ran_out(
    trial: &Trial,
    failed: &GateResult,
    resources: &TargetResources,
) -> (Bottleneck, String) {
    let used = Given::to(trial, resources).used(resources);
    let ledger = &trial.ledger;
    if ledger.sessions_failed + ledger.sessions_died > 0 {
        let sessions = trial.load_unit.opened();
        let evidence = format!(
            "{} {sessions} failed and {} died, although {used}",
            ledger.sessions_failed, ledger.sessions_died
        );
        return (Bottleneck::SessionsRefused, evidence);
    }
    let unread = unread(resources);
    let evidence = format!("{} did not hold, although {used}{unread}", failed.name);
    (Bottleneck::LatencyWithoutCpu, evidence)
}

/// The CPU that the target may use: what a share refers to.
enum Given {
    /// A number of vCPU, placed by Plimsoll.
    Vcpu,
    /// So many cores of its machine: those that it may run on.
    Allowed(f64),
    /// All cores of a machine that it shares.
    Cores(f64),
    /// Not known.
    Unknown,
}

impl Given {
    fn to(trial: &Trial, resources: &TargetResources) -> Self {
        let cores = trial.environment.machine.get("cores");
        let cores = cores.and_then(|cores| cores.parse().ok());
        match (trial.vcpu, resources.cpus_allowed, cores) {
            (Some(_), _, _) => Self::Vcpu,
            (None, Some(allowed), _) => Self::Allowed(allowed),
            (None, None, Some(cores)) if cores > 0.0 => Self::Cores(cores),
            (None, None, _) => Self::Unknown,
        }
    }

    fn share(&self, resources: &TargetResources) -> Option<f64> {
        match self {
            Self::Vcpu => Some(resources.cpu_share),
            Self::Allowed(cores) | Self::Cores(cores) => {
                Some(resources.cpus_busy.unwrap_or(resources.cpu_share) / cores)
            }
            Self::Unknown => None,
        }
    }

    fn used(&self, resources: &TargetResources) -> String {
        let share = percent(resources.cpu_share);
        match self {
            Self::Vcpu => format!("the target used {share} of the CPU time it was given"),
            Self::Allowed(cores) => {
                format!("the target used {share} of one core, and may use {cores}")
            }
            Self::Cores(cores) => {
                format!("the target used {share} of one core, on a machine of {cores}")
            }
            Self::Unknown => format!("the target used {share} of one core"),
        }
    }
}

/// Whether this gate did not hold.
fn broken(trial: &Trial, gate: &str) -> bool {
    let mut gates = trial.gates.iter();
    gates.any(|result| !result.pass && result.name == gate)
}

/// What a session that the target's admission refused has as its reason. What follows is the status of HTTP.
pub const UPGRADE_REFUSED: &str = "upgrade refused with status ";

/// Sessions that the target refused in the words of HTTP: 503, it has no room; 429, a limit of one client. Only if most of
/// those that failed did so by that.
fn refused_by_admission(trial: &Trial) -> Option<String> {
    let refused = |status: &str| {
        let reason = format!("{UPGRADE_REFUSED}{status}");
        trial.ledger.reasons.get(&reason).copied().unwrap_or(0)
    };
    let (full, limited) = (refused("503"), refused("429"));
    let failed = trial.ledger.sessions_failed;
    let share = float(full + limited) / float(failed.max(1));
    let (count, status) = if full >= limited {
        (full, "503")
    } else {
        (limited, "429")
    };
    let admits_too_few = broken(trial, "sessions_failed") && share >= ADMISSION_SHARE;
    admits_too_few.then(|| {
        let sessions = trial.load_unit.opened();
        format!(
            "the target refused {count} of the {failed} {sessions} that failed with status {status}"
        )
    })
}

/// Errors that name the back end, if the error rate or the shortfall failed the trial and most errors name it.
fn errors_of_the_back_end(trial: &Trial, stages: &[&str]) -> Option<String> {
    let ledger = &trial.ledger;
    // What fell short without an error says nothing about the back end.
    let fell_short_by_errors =
        broken(trial, "shortfall") && ledger.frames_errored >= ledger.frames_lost;
    let too_many = broken(trial, "error_rate") || fell_short_by_errors;
    let of_back_end = |reason: &str| {
        let told = reason.strip_prefix("error ").unwrap_or_default();
        let stage = told.split_once('/').map_or(told, |(stage, _)| stage);
        stages.contains(&stage)
    };
    let reasons = trial.ledger.reasons.iter();
    let named: Vec<(&str, u64)> = reasons
        .filter(|(reason, _)| of_back_end(reason))
        .map(|(reason, count)| (reason.as_str(), *count))
        .collect();
    let of_back_end: u64 = named.iter().map(|(_, count)| count).sum();
    let most = named.iter().max_by_key(|(_, count)| *count)?;
    let all = trial.ledger.errors + trial.ledger.protocol_faults;
    let share = float(of_back_end) / float(all.max(of_back_end).max(1));
    (too_many && share >= BACK_END_ERROR_SHARE).then(|| {
        format!(
            "{of_back_end} errors of the target name its back end, {} of them {}",
            most.1,
            most.0.trim_start_matches("error ")
        )
    })
}

fn memory(resources: &TargetResources) -> Option<String> {
    let peak = mebibytes(resources.rss_peak_bytes);
    let at_limit = resources
        .memory_limit_bytes
        .filter(|limit| float(resources.rss_peak_bytes) >= MEMORY_SHARE * float(*limit));
    if let Some(limit) = at_limit {
        return Some(format!(
            "its resident set reached {peak} MiB of the {} MiB that its control group may use",
            mebibytes(limit)
        ));
    }
    if let Some(events) = resources
        .memory_pressure_events
        .filter(|events| *events > 0)
    {
        return Some(format!(
            "its control group ran into its memory limit {events} times; its resident set reached {peak} MiB"
        ));
    }
    let left = resources.machine_memory_available_share?;
    (left < MACHINE_MEMORY_SHARE).then(|| {
        format!(
            "only {} of the machine's memory was left; the target's resident set reached {peak} MiB",
            percent(left)
        )
    })
}

/// Reports data that the target left unread, if there is much.
fn unread(resources: &TargetResources) -> String {
    let peak = resources
        .sockets
        .as_ref()
        .map_or(0, |sockets| sockets.receive_queue_peak_bytes);
    if peak < UNREAD_BYTES {
        return String::new();
    }
    format!("; up to {} KiB were unread in one connection", peak / 1024)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0}", float(bytes) / f64::from(1 << 20))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and errors of a trial are far below 2^53"
)]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
