//! The text of each doubt: first what was seen, then, after a semicolon, the remedy.

use super::{Doubt, GateSamples, OtherProgram, Party, Terms};
use crate::record::{Moved, SanityCheck};
use crate::sanity::Account;
use crate::words::listed;

const SHARED_CORES: &str = "target and client share cores, so each slows the other; give them their own with --target-cpus and --client-cpus (a server that runs already: `taskset -acp CPUS PID`, or its control group's cpuset.cpus)";
const BACK_END_UNCHECKED: &str = "the target's manifest says that it never asks its back end, so this is not checked; no action is needed for a target that tests Plimsoll";
const NO_RESOURCES: &str = "the target's CPU and memory were not measured, and it may share cores with the client; name it with --pid or --cgroup";
const INTERRUPTED: &str = "the trial was interrupted; the data up to that point is kept; run the trial again for a verdict";

pub(super) fn of(doubt: &Doubt, terms: &Terms) -> String {
    let more_client = format!(
        "give the client more cores (--client-cpus) or use fewer {}",
        terms.load_unit.name()
    );
    let companion = &terms.companion;
    match doubt {
        Doubt::SendLag {
            p999_us,
            limit_us,
            others,
        } => send_lag(*p999_us, *limit_us, others, &more_client),
        Doubt::ClientBusy { share, limit } => format!(
            "the busiest engine thread used {:.0} % of its core, allowed {:.0} %; {more_client}",
            share * 100.0,
            limit * 100.0
        ),
        Doubt::ClientStarved {
            share,
            of,
            limit,
            others,
        } => client_starved((*share, of), *limit, others, &more_client),
        Doubt::AgentLost { why } => lost("it did not carry its part to the end", why),
        Doubt::ClockError {
            error_ms, limit_ms, ..
        } => clock_error(*error_ms, *limit_ms),
        Doubt::ObserverLost { host, why } => lost(&observer_of(host), why),
        Doubt::ObserverClock {
            host,
            error_ms,
            limit_ms,
        } => observer_clock(host, *error_ms, *limit_ms),
        Doubt::AtAgent { agent, doubt } => format!("agent {agent}: {}", of(doubt, terms)),
        Doubt::AchievedLoad { share, limit } => achieved_load(*share, *limit, &more_client),
        Doubt::CompanionSaturated {
            lateness_p99_ms,
            limit_ms,
        } => format!(
            "{} itself answered late: p99 {lateness_p99_ms:.1} ms, allowed {limit_ms:.1} ms; {}",
            companion.name, companion.more_cores
        ),
        Doubt::CompanionGone => format!(
            "{} exited or stopped answering during the trial; read its log in {} and run the trial again",
            companion.name, companion.log
        ),
        Doubt::CompanionQueued {
            wait_p99_ms,
            limit_ms,
        } => format!(
            "requests queued in {}: p99 {wait_p99_ms:.1} ms, allowed {limit_ms:.1} ms; {}",
            companion.name, companion.more_places
        ),
        Doubt::ClientFault { what, count } => format!(
            "the client's machine failed {count} times with {what}; {}",
            client_fault_remedy(what)
        ),
        Doubt::Steal {
            party,
            share,
            limit,
        } => stolen(*party, *share, *limit),
        Doubt::TargetStarved {
            taken_share,
            wait_share,
            limit,
        } => target_starved(*taken_share, *wait_share, *limit),
        Doubt::ClockJump(jump) => format!(
            "{} by {:.0} ms during the trial; stop what sets the clock in steps (chronyd or ntpd may slew it), keep the machine awake, and run the trial again",
            jump.what(),
            jump.by_ms.abs()
        ),
        Doubt::AccountsDisagree { account, check } => disagreement(*account, check, terms),
        Doubt::MachineBound { what } => machine_bound(what, terms),
        Doubt::Unprocessed { read, processed } => unprocessed(*read, *processed),
        Doubt::FormatOpaque { format } => format!(
            "nothing shows that the target decodes {format}, so it may pass such messages on as opaque bytes; do not compare this trial with a format that it decodes"
        ),
        Doubt::NearFloor {
            p50_ms,
            floor,
            floor_ms,
        } => format!(
            "p50 from the write is {p50_ms:.3} ms, below twice the {floor_ms:.3} ms of {floor}, which does the least, so client and network are a large part of it; compare load lines and CPU, not these latencies"
        ),
        Doubt::SharedCores => SHARED_CORES.to_owned(),
        Doubt::BackEndUnchecked => BACK_END_UNCHECKED.to_owned(),
        Doubt::NoQuota { vcpu, why } => format!(
            "a quota of {vcpu} vCPU could not be set ({why}), so the target had whole cores; run where cgroups are writable, for example as root"
        ),
        Doubt::MachineMoved(moved) => machine_moved(moved),
        Doubt::ClientPaysReceive { why } => format!(
            "the client's cores received what the client sent, because both sides are on the loopback ({why}), so the target's CPU cost is too low and the client's too high; run as root with iproute2 installed, so that the target gets its own network (--network own)"
        ),
        Doubt::NoResources => NO_RESOURCES.to_owned(),
        Doubt::Interrupted => INTERRUPTED.to_owned(),
        Doubt::TooFewSamples(few) => too_few(few, terms),
    }
}

fn send_lag(p999_us: f64, limit_us: f64, others: &[OtherProgram], more_client: &str) -> String {
    let keep_off = keep_off(others).map_or_else(String::new, |others| format!("{others}, or "));
    format!(
        "the client wrote frames late: send lag p99.9 {:.1} ms, allowed {:.1} ms; {keep_off}{more_client}",
        p999_us / 1e3,
        limit_us / 1e3
    )
}

fn achieved_load(share: f64, limit: f64, more_client: &str) -> String {
    format!(
        "the client wrote only {:.2} % of the requested load, {:.1} % is needed; {more_client}",
        // Rounded down: a share that misses the limit must not be shown as the limit.
        (share * 1e4).floor() / 1e2,
        limit * 100.0
    )
}

/// `share` comes with what it is a share of.
fn client_starved(
    (share, of): (f64, &str),
    limit: f64,
    others: &[OtherProgram],
    more_client: &str,
) -> String {
    let keep_off =
        keep_off(others).unwrap_or_else(|| "stop other programs on the client's cores".to_owned());
    format!(
        "an engine thread, or the kernel thread that receives for it, was ready and waited for its core for {:.0} % of {of}, allowed {:.0} %; {keep_off}, lift the client's CPU quota, or {more_client}",
        share * 100.0,
        limit * 100.0
    )
}

/// The remedy against other programs on the client's cores, with their names; `None` if none is known.
fn keep_off(others: &[OtherProgram]) -> Option<String> {
    let name = |other: &OtherProgram| {
        let OtherProgram {
            name,
            pid,
            core_share,
        } = other;
        format!("{name} (PID {pid}, {:.1} % of a core)", core_share * 100.0)
    };
    let named: Vec<String> = others.iter().map(name).collect();
    (!named.is_empty()).then(|| {
        let named = listed(&named);
        format!("keep {named} off the client's cores (`taskset -apc CPUS PID`)")
    })
}

fn target_starved(taken_share: f64, wait_share: f64, limit: f64) -> String {
    format!(
        "other programs used {:.0} % of the CPU time that the target was given, and its threads, or the kernel thread that receives for it, waited for a core for {:.0} % of the window, allowed {:.0} % each, which may be why its answers are late; stop other programs on the target's cores (--target-cpus chooses the cores), or measure on a quieter machine",
        taken_share * 100.0,
        wait_share * 100.0,
        limit * 100.0
    )
}

fn clock_error(error_ms: f64, limit_ms: f64) -> String {
    format!(
        "its clock may be {error_ms:.1} ms away from the coordinator's, and {limit_ms:.0} ms are allowed: its sessions may begin that much earlier or later than the others, though no latency is touched; use a network with shorter round trips for the control connection"
    )
}

fn observer_of(host: &str) -> String {
    format!("the observer on {host} did not watch the target to the end")
}

fn lost(what: &str, why: &str) -> String {
    format!("{what}: {why}; see that it runs and reaches the coordinator, and run the trial again")
}

fn observer_clock(host: &str, error_ms: f64, limit_ms: f64) -> String {
    format!(
        "the clock of the observer on {host} may be {error_ms:.1} ms away from the coordinator's, and {limit_ms:.0} ms are allowed: the target's CPU time is of a window that began that much earlier or later than the load's; use a network with shorter round trips for the control connection"
    )
}

fn machine_moved(moved: &Moved) -> String {
    format!(
        "the machine changed since the measurement began: its probe ({}) took {:.1} {unit} then and {:.1} {unit} at this trial, without load; measure again when it is steady, and do not compare costs across the change",
        moved.from.name,
        moved.from.value,
        moved.to,
        unit = moved.from.unit
    )
}

fn stolen(party: Party, share: f64, limit: f64) -> String {
    format!(
        "the hypervisor took {:.1} % of the time of {} cores, allowed {:.1} %; measure on a quieter or a dedicated machine",
        share * 100.0,
        match party {
            Party::Client => "the client's",
            Party::Target => "the target's",
        },
        limit * 100.0
    )
}

fn machine_bound(what: &str, terms: &Terms) -> String {
    format!(
        "the machine ran out of {what}, so the limit was the machine, not the target; raise that limit (`plimsoll doctor` shows how), use a larger machine, or use fewer {}",
        terms.load_unit.name()
    )
}

fn unprocessed(read: u64, processed: u64) -> String {
    format!(
        "the target read {read} messages, but its application received only {processed}, so this trial does not measure all the work; give the target a handler that receives every message, or treat these figures as those of its parser"
    )
}

fn too_few(few: &GateSamples, terms: &Terms) -> String {
    format!(
        "gate {} has only {} samples, at least {} are needed; use more {} or a longer profile",
        few.gate,
        few.samples,
        few.needed,
        terms.load_unit.name()
    )
}

/// What the two accounts say, and what that may mean.
fn disagreement(account: Account, check: &SanityCheck, terms: &Terms) -> String {
    let SanityCheck {
        low,
        high,
        observed,
        ..
    } = check;
    let range = if low == high {
        format!("{low:.0} is expected")
    } else {
        format!("{low:.0} to {high:.0} is possible")
    };
    match account {
        Account::LittlesLaw => format!(
            "Little's law does not hold: {observed:.2} frames were unanswered on average, but rate and latency give {low:.2} to {high:.2}; this is a bug in Plimsoll's accounting: run again, and report it with the result folder"
        ),
        Account::MetricsFrames | Account::MetricsSessions | Account::MetricsPartials => {
            let (metric, seen) = account.metric(&terms.metrics);
            let who = if observed > high {
                "another client also loads the target, or the target counts too much: stop the other load"
            } else {
                "the target does not count everything that it answers: its /metrics must sum over all its processes"
            };
            format!(
                "the target's {metric} rose by {observed:.0}, but {range} from what the client {seen}; {who}, then run again"
            )
        }
        Account::KernelBytesSent | Account::KernelBytesReceived => format!(
            "the kernel counts {observed:.0} bytes on the client's sockets ({}), but {range} from the client's own account; this is a bug in Plimsoll's accounting: run again, and report it with the result folder",
            check.name
        ),
        Account::BackEndTooMuch => format!(
            "{} received {observed:.0} bytes of frames, more than the {high:.0} that the client sent; another client uses it, or the target asks more than once: stop the other load, or fix the target",
            terms.companion.name
        ),
        Account::BackEndTooLittle => format!(
            "{} received only {observed:.0} bytes of frames, but the answered frames hold {low:.0}; the target answers without asking its back end: fix the target, so that it asks for every frame",
            terms.companion.name
        ),
    }
}

fn client_fault_remedy(what: &str) -> &'static str {
    match what {
        "EMFILE" | "ENFILE" => "raise the limit of open files (ulimit -n)",
        "EADDRNOTAVAIL" | "EADDRINUSE" => {
            "widen the port range (sysctl net.ipv4.ip_local_port_range)"
        }
        "bind" => {
            "use only addresses of this machine and of the target's address family (--source-addresses)"
        }
        "ENOBUFS" | "ENOMEM" => "give the machine more memory for sockets",
        _ => "see `plimsoll doctor`",
    }
}
