//! What a target's manifest says about the cases that it does not pass.

use plimsoll_lab::manifest::Manifest;
use plimsoll_workload::{Values, Workload};

use crate::failure::Failure;

/// Refuses a deviation from a case that the target's workload does not have: misspelt, it would excuse nothing, and
/// stand beside every result.
pub(crate) fn must_be_known(
    workload: &dyn Workload,
    values: &Values,
    manifest: &Manifest,
) -> Result<(), Failure> {
    if manifest.deviations.is_empty() {
        return Ok(());
    }
    let cases = workload.case_ids(values, manifest);
    let mut named = manifest.deviations.keys();
    match named.find(|id| !cases.contains(id)) {
        None => Ok(()),
        Some(id) => Err(Failure::Usage(format!(
            "{}: deviations: workload {} has no case {id}; `plimsoll check {}` shows their names",
            manifest.file.display(),
            workload.about().name,
            manifest.name
        ))),
    }
}
