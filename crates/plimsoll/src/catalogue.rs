//! `--all`: every target of a workload that this machine can build and run, and why the others are left out.

use plimsoll_core::record::LeftOut;
use plimsoll_lab::manifest::{self, Manifest, Tier};

use crate::args::Which;
use crate::failure::Failure;
use crate::output::note;
use crate::workloads;

/// The targets that `--all` selects here, and those that it leaves out.
pub(crate) struct Catalogue {
    pub(crate) targets: Vec<Manifest>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Finds every target of the workload. Targets of tier `test` exist to test Plimsoll, so they are neither selected nor
/// named.
pub(crate) fn all(which: &Which) -> Result<Catalogue, Failure> {
    let root = manifest::root_of_this_process(which.root.as_deref())?;
    let found = manifest::discover(&root, workloads::manifest_keys)?;
    let mut catalogue = Catalogue {
        targets: Vec::new(),
        left_out: Vec::new(),
    };
    let asked = |manifest: &Manifest| {
        manifest.workload == which.workload.about().name && manifest.tier != Tier::Test
    };
    let targets: Vec<_> = found.targets.into_iter().filter(asked).collect();
    let here = manifest::availability_of_each(&targets);
    for (manifest, here) in targets.into_iter().zip(here) {
        match here.readiness.missing() {
            None => catalogue.targets.push(manifest),
            Some(reason) => catalogue.left_out.push(LeftOut {
                name: manifest.name,
                reason,
            }),
        }
    }
    for broken in found.broken {
        note!("plimsoll: {broken}");
    }
    if catalogue.targets.is_empty() {
        let reasons: Vec<_> = catalogue
            .left_out
            .iter()
            .map(|left| format!("{} {}", left.name, left.reason))
            .collect();
        return Err(Failure::Usage(format!(
            "no target of workload {} runs here{}{}",
            which.workload.about().name,
            if reasons.is_empty() { "" } else { ": " },
            reasons.join("; ")
        )));
    }
    Ok(catalogue)
}
