//! Turns the flags of a workload's parameters into its plan, and keeps apart what is not one load.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use plimsoll_core::record::LeftOut;
use plimsoll_host::machine::Limits;
use plimsoll_lab::manifest::Manifest;
use plimsoll_lab::trial::Subject;
use plimsoll_lab::trial::parts::PROCESSES_MAX;
use plimsoll_workload::{Kind, Parameter, Plan, Value, Workload};

use crate::args::{LOAD_MAX, LoadArgs, Which};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::{secrets, workloads};

/// Connections from one address: slightly fewer than the ports that Linux assigns by itself.
const CONNECTIONS_PER_ADDRESS: u64 = 25_000;

/// The plan, for a target with this manifest or for a server that is already running.
pub(crate) fn plan(
    which: &Which,
    load: &LoadArgs,
    manifest: Option<&Manifest>,
) -> Result<Arc<dyn Plan>, Failure> {
    let workload = which.workload.0;
    let given = secrets::with_secret_files(&load.parameters)?;
    let mut values = given.settled(workload, workloads::ALL, manifest)?;
    if manifest.is_none() {
        secrets::add_of_environment(workload, &mut values)?;
    }
    Ok(match manifest {
        Some(manifest) => workload.plan_for(values, manifest)?,
        None => workload.plan(values)?,
    })
}

/// The parameters that are properties of a target.
fn of_targets(workload: &dyn Workload) -> impl Iterator<Item = &'static Parameter> {
    let rows = workload.parameters().iter();
    rows.filter(|row| row.of_target.is_some())
}

/// Gives a load that looks for the machine's limit enough loopback addresses for every connection that its client can
/// hold, unless the user gave some.
pub(super) fn spread_over_addresses(
    plan: Arc<dyn Plan>,
    subject: &Subject,
) -> Result<Arc<dyn Plan>, Failure> {
    let on_loopback = match subject {
        Subject::Started(_) => true,
        Subject::Running { url, .. } => url.address.is_ipv4() && url.address.ip().is_loopback(),
    };
    let workload = plan.workload();
    let mut rows = workload.parameters().iter();
    let row = rows.find(|row| matches!(row.kind, Kind::Addresses));
    let Some(row) = row.filter(|_| plan.looks_for_the_machines_limit()) else {
        return Ok(plan);
    };
    if !plan.source_addresses().is_empty() || !on_loopback {
        return Ok(plan);
    }
    let of_a_process = Limits::of_this_process().sessions_of_a_process();
    let connections = of_a_process.saturating_mul(PROCESSES_MAX.into());
    let needed = connections.min(LOAD_MAX.into()) / CONNECTIONS_PER_ADDRESS + 1;
    if needed <= 1 {
        return Ok(plan);
    }
    let last = u8::try_from(needed).unwrap_or(u8::MAX).min(254);
    let addresses = (1..=last).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    let addresses = Value::Addresses(addresses.collect());
    Ok(workload.plan(plan.values().clone().with(row.name, addresses))?)
}

/// Refuses what turns one trial into several measurements, for commands that search or compare: a series of plans, and
/// what runs after a trial. Refuses a crash too: what a target carries and costs is not measured over one.
pub(crate) fn must_be_one_load(plan: &dyn Plan, what: &str) -> Result<(), Failure> {
    if let Some(series) = plan.series()? {
        return Err(Failure::Usage(format!(
            "{} runs one trial per row, which only `plimsoll run` does; {what} {}",
            series.asked_by, series.one_at_a_time
        )));
    }
    if let Some(asked_by) = plan.decides_nothing() {
        return Err(Failure::Usage(format!(
            "{asked_by} is a closed loop, which every target keeps up with; {what} a load by the clock. Run it with `plimsoll run` to see how fast the target is"
        )));
    }
    if let Some(crash) = plan.crash() {
        return Err(Failure::Usage(format!(
            "{} crashes the target, so its load line and its costs say nothing; use `plimsoll run` with --sessions",
            crash.asked_by
        )));
    }
    match plan.afterwards() {
        Some(afterwards) => Err(Failure::Usage(format!(
            "{} does not affect the verdict and doubles the time; {what} trials without it. Run the load once more with `plimsoll run` for it",
            afterwards.asked_by
        ))),
        None => Ok(()),
    }
}

/// With `--all`, keeps the targets that have the same properties: the requested ones, otherwise the usual ones. The
/// same load is not the same work for the others.
pub(crate) fn of_one_kind(
    catalogue: Catalogue,
    workload: &dyn Workload,
    load: &LoadArgs,
) -> Result<Catalogue, Failure> {
    let Catalogue {
        mut targets,
        mut left_out,
    } = catalogue;
    for row in of_targets(workload) {
        let given = load.parameters.given.get(row.name).cloned();
        let Some(wanted) = given.or_else(|| row.usual_value()) else {
            continue;
        };
        let verb = row.of_target.unwrap_or_default();
        let (same, others): (Vec<_>, Vec<_>) = targets
            .into_iter()
            .partition(|manifest| row.of(manifest).as_ref() == Some(&wanted));
        targets = same;
        left_out.extend(others.into_iter().map(|manifest| {
            let its = row
                .of(&manifest)
                .map_or_else(String::new, |its| its.to_string());
            LeftOut {
                name: manifest.name,
                reason: format!("{verb} {its}; measure it with --{} {its}", row.flag()),
            }
        }));
        if targets.is_empty() {
            return Err(Failure::Usage(format!(
                "no target that {verb} {wanted} runs here; see plimsoll list"
            )));
        }
    }
    Ok(Catalogue { targets, left_out })
}

/// With `--all`, leaves out the targets that do not have what the load asks for, or that the first one must not be compared
/// with, each with the reason.
///
/// # Errors
/// None has it: the first reason.
pub(crate) fn that_fit(
    catalogue: Catalogue,
    which: &Which,
    load: &LoadArgs,
) -> Result<Catalogue, Failure> {
    let Catalogue {
        targets,
        mut left_out,
    } = catalogue;
    let mut fit: Vec<Manifest> = Vec::new();
    let mut first_plan: Option<Arc<dyn Plan>> = None;
    let mut first = None;
    for manifest in targets {
        let like_the_first = |plan: Arc<dyn Plan>| match (&first_plan, fit.first()) {
            (Some(known), Some(other)) => like((other, &**known), (&manifest, &*plan)),
            _ => {
                first_plan = Some(plan);
                Ok(())
            }
        };
        match plan(which, load, Some(&manifest)).and_then(like_the_first) {
            Ok(()) => fit.push(manifest),
            // Whatever the user can do something about; the rest is no matter of this target.
            Err(error) if error.exit_code() == 2 => {
                let reason = error.to_string();
                first.get_or_insert_with(|| reason.clone());
                left_out.push(LeftOut {
                    name: manifest.name,
                    reason,
                });
            }
            Err(other) => return Err(other),
        }
    }
    match first {
        Some(reason) if fit.is_empty() => Err(Failure::Usage(reason)),
        _ => Ok(Catalogue {
            targets: fit,
            left_out,
        }),
    }
}

/// Refuses two targets whose plans must not be compared.
fn like(
    (first, its): (&Manifest, &dyn Plan),
    (other, others): (&Manifest, &dyn Plan),
) -> Result<(), Failure> {
    its.must_be_like(others)
        .map_err(|why| Failure::Usage(format!("{} and {}: {why}", first.name, other.name)))
}

/// Refuses targets of two kinds in one ranking or comparison.
pub(crate) fn must_be_alike(
    which: &Which,
    load: &LoadArgs,
    targets: &[Manifest],
) -> Result<(), Failure> {
    let Some((first, others)) = targets.split_first() else {
        return Ok(());
    };
    for row in of_targets(which.workload.0) {
        let verb = row.of_target.unwrap_or_default();
        if let Some(other) = others.iter().find(|other| row.of(other) != row.of(first)) {
            let told = |manifest: &Manifest| {
                let its = row
                    .of(manifest)
                    .map_or_else(String::new, |its| its.to_string());
                format!("{} {verb} {its}", manifest.name)
            };
            return Err(Failure::Usage(format!(
                "{}, {}: the same load is not the same work; measure each by itself",
                told(first),
                told(other)
            )));
        }
    }
    let its = plan(which, load, Some(first))?;
    for other in others {
        like((first, &*its), (other, &*plan(which, load, Some(other))?))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
