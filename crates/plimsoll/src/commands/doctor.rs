//! `plimsoll doctor`: checks this machine and prints a fix for each problem.

use std::process::ExitCode;

use plimsoll_host::doctor::{self as machine, Level};
use plimsoll_lab::doctor as targets;
use plimsoll_lab::manifest::{self, Discovered, Manifest};

use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::workloads;

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    // The machine can be checked without a root too; the findings then say that there are no targets.
    let root = match &args.root {
        Some(_) => Some(manifest::root_of_this_process(args.root.as_deref())?),
        None => manifest::root_of_this_process(None).ok(),
    };
    let mut discovered = match &root {
        Some(root) => manifest::discover(root, workloads::manifest_keys)?,
        None => Discovered::default(),
    };
    let known = |target: &Manifest| workloads::has(&target.workload);
    discovered.targets.retain(known);
    let mut found = machine::findings(&machine::Observed::of_this_machine());
    let seen = targets::Observed::of_targets(workloads::ALL, root.as_deref(), &discovered);
    found.extend(targets::findings(&seen));
    if args.json {
        output::print_json(&found)?;
    } else {
        for finding in &found {
            let mark = match (finding.ok, finding.level) {
                (true, _) => "ok     ",
                (false, Level::Info) => "note   ",
                (false, Level::Warning) => "warning",
                (false, Level::Error) => "error  ",
            };
            say!("{mark}  {}: {}", finding.id, finding.text);
            if let Some(remedy) = finding.remedy.as_ref().filter(|_| !finding.ok) {
                say!("           → {remedy}");
            }
        }
    }
    let broken = found
        .iter()
        .any(|finding| !finding.ok && finding.level == Level::Error);
    Ok(ExitCode::from(if broken { 2 } else { 0 }))
}
