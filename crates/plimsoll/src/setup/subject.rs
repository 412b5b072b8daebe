//! What is measured: a target by its manifest, or a server that runs already.

use std::path::Path;

use plimsoll_core::secret::redacted_url;
use plimsoll_host::isolation::{GroupView, Layout};
use plimsoll_host::resources::Source;
use plimsoll_host::signals::Stop;
use plimsoll_lab::build::build as build_target;
use plimsoll_lab::manifest::{self, Manifest};
use plimsoll_lab::trial::{Subject, TargetUrl};

use super::{is_soak, plan};
use crate::args::{LoadArgs, Which};
use crate::failure::Failure;
use crate::output::note;
use crate::workloads;

/// The manifest of a target by name or by file.
pub(crate) fn manifest_of(target: Option<&str>, which: &Which) -> Result<Manifest, Failure> {
    let workload = which.workload.about().name;
    if let Some(file) = &which.manifest {
        let manifest = Manifest::read(file, workloads::manifest_keys)?;
        if manifest.workload != workload {
            return Err(Failure::Usage(format!(
                "{} is a target of workload {}; add --workload {}",
                manifest.name, manifest.workload, manifest.workload
            )));
        }
        return Ok(manifest);
    }
    let root = manifest::root_of_this_process(which.root.as_deref())?;
    let name = target.ok_or_else(|| Failure::Usage("name a target, or give --url".to_owned()))?;
    Ok(manifest::find(
        &root,
        workload,
        name,
        workloads::manifest_keys,
    )?)
}

/// What is measured. Nothing is built or started yet; see [`bring_up_to_date`].
pub(crate) fn subject(
    target: Option<&str>,
    which: &Which,
    load: &LoadArgs,
) -> Result<Subject, Failure> {
    let Some(url) = &which.url else {
        // clap ignores a `requires` if its argument conflicts with one that is present, so the target's name would hide
        // this.
        for (flag, given) in [
            ("--pid", load.pid.is_some()),
            ("--cgroup", load.cgroup.is_some()),
            ("--observer", load.observer),
        ] {
            if given {
                return Err(Failure::Usage(format!(
                    "{flag} is for a server that runs already (--url); the resources of a target that Plimsoll starts are measured anyway"
                )));
            }
        }
        let manifest = manifest_of(target, which)?;
        return Ok(Subject::Started(Box::new(manifest)));
    };
    let plan = plan::plan(which, load, None)?;
    let resources = source(load.pid, load.cgroup.as_deref())?;
    if resources.is_none() && !load.observer && is_soak(load, &*plan) {
        return Err(Failure::Usage(
            "a soak looks for leaks: give --pid, --cgroup or --observer, to measure the server's memory (or --profile standard --measured 1800, without that gate)".to_owned(),
        ));
    }
    Ok(Subject::Running {
        url: TargetUrl::parse(url, &plan.told().path)?,
        resources,
    })
}

/// Where the resources of a server that runs already are read, if the user named its process or its control group.
///
/// # Errors
/// There is no such process or group.
pub(crate) fn source(pid: Option<i32>, cgroup: Option<&Path>) -> Result<Option<Source>, Failure> {
    Ok(match (pid, cgroup) {
        (Some(pid), _) if !Path::new(&format!("/proc/{pid}")).exists() => {
            return Err(Failure::Usage(format!("--pid {pid}: no such process")));
        }
        (Some(pid), _) => Some(Source::Tree(pid)),
        (None, Some(path)) => Some(Source::Group(GroupView::open(
            path,
            &Layout::of_this_machine(),
        )?)),
        (None, None) => None,
    })
}

/// The name of what is measured, for folders and messages: the target's name, or the URL without its secrets.
pub(crate) fn subject_name(target: Option<&str>, which: &Which) -> String {
    match (target, &which.url) {
        (Some(name), _) => name.to_owned(),
        (None, Some(url)) => redacted_url(url),
        (None, None) => "manifest".to_owned(),
    }
}

/// Builds a target that has a manifest.
pub(crate) fn bring_up_to_date(
    subject: &Subject,
    log_folder: &Path,
    stop: &Stop,
) -> Result<(), Failure> {
    if let Subject::Started(manifest) = subject {
        build_target(manifest, log_folder, stop)?;
        for line in manifest.sizes().missing {
            note!("{}: {line}; the size is not recorded", manifest.name);
        }
    }
    Ok(())
}
