//! What the machine ran out of, where a load opens as many connections as it can.

use plimsoll_core::record::{GateResult, TargetResources};
use plimsoll_host::machine::Limits;

use crate::trial::Measured;
use crate::trial::conditions::Conditions;
use crate::trial::stage::Staged;

/// The lowest share of the machine's memory that must be available. Below this, it is memory that ends a load: the
/// kernel and the page cache need the rest.
const MEMORY_SHARE_MIN: f64 = 0.05;
/// From this share of its open files on, a process is at its limit.
const FILES_SHARE: f64 = 0.99;

/// What the machine ran out of, for client or target, so that this ended the load.
pub(super) fn machine_bound(
    conditions: &Conditions,
    stage: &Staged,
    measured: &Measured,
    target: Option<&TargetResources>,
    gates: &[GateResult],
) -> Vec<String> {
    if !conditions.plan.is_bound_by_the_machine() {
        return Vec::new();
    }
    let mut found: Vec<String> = measured.short_of.iter().cloned().collect();
    let faults = measured.report.client_faults.keys();
    found.extend(faults.filter_map(|what| lacked(what)).map(str::to_owned));
    // A target that passes had enough of everything.
    if let Some(target) = target
        && gates.iter().any(|gate| !gate.pass)
    {
        let ledger = &measured.report.ledger;
        let refused = ledger.sessions_failed + ledger.sessions_died > 0;
        let limit = Limits::of_this_process().fd_soft;
        // A target that we started has our limit.
        if refused && stage.group().is_some() && at_its_last_file(target.fds_peak, limit) {
            found.push("open files of the target".to_owned());
        }
        if target
            .machine_memory_available_share
            .is_some_and(|share| share < MEMORY_SHARE_MIN)
        {
            found.push("memory".to_owned());
        }
    }
    found.dedup();
    found
}

/// What the client's machine lacked if a call failed with `fault`.
fn lacked(fault: &str) -> Option<&'static str> {
    match fault {
        "EMFILE" | "ENFILE" => Some("open files"),
        "EADDRNOTAVAIL" => Some("ports"),
        "ENOBUFS" | "ENOMEM" => Some("memory for sockets"),
        _ => None,
    }
}

/// Whether a process has all the files that it may have. A higher number belongs to several processes, about which
/// nothing is known.
fn at_its_last_file(open: Option<u64>, limit: u64) -> bool {
    let share = open.map(|open| super::float(open) / super::float(limit));
    share.is_some_and(|share| (FILES_SHARE..=1.0).contains(&share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_files_is_that_of_one_process() {
        assert!(at_its_last_file(Some(1_000), 1_000) && at_its_last_file(Some(990), 1_000));
        assert!(!at_its_last_file(Some(989), 1_000) && !at_its_last_file(Some(4_000), 1_000));
        assert!(!at_its_last_file(None, 1_000));
        assert_eq!(lacked("EADDRNOTAVAIL"), Some("ports"));
        assert_eq!(lacked("EPERM"), None);
    }
}
