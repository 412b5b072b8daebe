//! Makes a group in version 1: one folder per controller (or per controllers mounted together), below our own group of
//! each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cgroup::{CpuLimits, write_value};
use super::layout::{Controller, Layout};

/// Makes the group `name` wherever version 1 has one of our controllers, and sets it up. If a controller cannot be set
/// up, it is absent from the folders, and the list has the reason.
pub(super) fn create(
    layout: &Layout,
    name: &str,
    limits: &CpuLimits<'_>,
) -> (BTreeMap<Controller, PathBuf>, Vec<(Controller, String)>) {
    let mut folders = BTreeMap::new();
    let mut refused = Vec::new();
    for (controller, hierarchy) in &layout.v1 {
        let parent = hierarchy.own_folder();
        let folder = parent.join(name);
        match make(*controller, &parent, &folder, limits) {
            Ok(()) => {
                folders.insert(*controller, folder);
            }
            Err(error) => {
                // Removed only if no controller that did work shares it. A failure leaves nothing behind either way.
                if !folders.values().any(|other| *other == folder) {
                    let _ = std::fs::remove_dir(&folder);
                }
                refused.push((*controller, format!("{}: {error}", folder.display())));
            }
        }
    }
    (folders, refused)
}

fn make(
    controller: Controller,
    parent: &Path,
    folder: &Path,
    limits: &CpuLimits<'_>,
) -> std::io::Result<()> {
    match std::fs::create_dir(folder) {
        // Mounted together with an earlier controller.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    match controller {
        Controller::Cpu => {
            if let Some(quota_us) = limits.quota_us {
                // The period comes first: at every write, the kernel checks the ratio of both against the parent's.
                write_value(folder, "cpu.cfs_period_us", &limits.period_us.to_string())?;
                write_value(folder, "cpu.cfs_quota_us", &quota_us.to_string())?;
            }
        }
        Controller::Cpuset => {
            // A new group has neither memory nodes nor CPUs, and refuses every process until it has both.
            let nodes = std::fs::read_to_string(parent.join("cpuset.effective_mems"))
                .or_else(|_| std::fs::read_to_string(parent.join("cpuset.mems")))?;
            write_value(folder, "cpuset.mems", nodes.trim())?;
            write_value(folder, "cpuset.cpus", &limits.cpus.to_string())?;
        }
        Controller::Cpuacct | Controller::Memory => {}
    }
    // Permission to make a folder is not permission to put a process into it.
    std::fs::OpenOptions::new()
        .write(true)
        .open(folder.join("cgroup.procs"))?;
    Ok(())
}
