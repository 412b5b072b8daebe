//! Makes a group in version 2.
//!
//! Two rules of the kernel decide where. A group hands controllers to its children only by `cgroup.subtree_control`.
//! And a group with processes of its own cannot hand on any (except the root). So we look for a place upward from our
//! own group: the first ancestor that already hands on the `cpu` controller and that we may write. If there is none,
//! but our own group was delegated to us and we are alone in it
//! (`systemd-run --user --scope -p Delegate=yes plimsoll …`), we step aside into a child of it. That frees our group to
//! hand on its controllers. If this is impossible too, a group without controllers still counts CPU time.

use std::path::{Path, PathBuf};

use super::cgroup::{CpuLimits, write_value};
use super::layout::{Controller, Hierarchy};

/// The child of our own group into which we step aside.
const ASIDE: &str = "plimsoll-self";

/// A group made in version 2.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) folder: PathBuf,
    /// The controllers that it has and that were set up.
    pub(super) controllers: Vec<Controller>,
    /// The other controllers, each with the reason.
    pub(super) refused: Vec<(Controller, String)>,
}

/// Makes the group `name` and sets up the `wanted` controllers.
///
/// # Errors
/// The reason, if no group at all can be made.
pub(super) fn create(
    hierarchy: &Hierarchy,
    name: &str,
    wanted: &[Controller],
    limits: &CpuLimits<'_>,
) -> Result<Made, String> {
    let (parent, why_here) = choose_parent(hierarchy, wanted);
    let folder = parent.join(name);
    let refuse = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir(&folder).map_err(refuse)?;
    if let Err(error) = can_join(&parent).and_then(|()| can_join(&folder)) {
        let _ = std::fs::remove_dir(&folder);
        return Err(refuse(error));
    }
    let mut made = Made {
        folder,
        controllers: Vec::new(),
        refused: Vec::new(),
    };
    let handed = handed_on(&parent);
    for controller in wanted
        .iter()
        .copied()
        .filter(|controller| *controller != Controller::Cpuacct)
    {
        let set_up = if handed.iter().any(|name| name == controller.name()) {
            set_up(controller, &made.folder, limits)
                .map_err(|error| format!("{}: {error}", made.folder.display()))
        } else {
            let why = why_here
                .as_ref()
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            Err(format!(
                "the controller is not enabled for the children of {}{why}",
                parent.display()
            ))
        };
        match set_up {
            Ok(()) => made.controllers.push(controller),
            Err(reason) => made.refused.push((controller, reason)),
        }
    }
    Ok(made)
}

fn set_up(controller: Controller, folder: &Path, limits: &CpuLimits<'_>) -> std::io::Result<()> {
    match controller {
        Controller::Cpu => match limits.quota_us {
            Some(quota_us) => write_value(
                folder,
                "cpu.max",
                &format!("{quota_us} {}", limits.period_us),
            ),
            None => Ok(()),
        },
        Controller::Cpuset => write_value(folder, "cpuset.cpus", &limits.cpus.to_string()),
        Controller::Memory | Controller::Cpuacct => Ok(()),
    }
}

/// The folder to make the group in. It comes with the reason if it is only our own group, because there is no better
/// place.
fn choose_parent(hierarchy: &Hierarchy, wanted: &[Controller]) -> (PathBuf, Option<String>) {
    let needs_cpu = wanted.contains(&Controller::Cpu);
    let place = hierarchy.outward().into_iter().find(|folder| {
        !needs_cpu || (handed_on(folder).iter().any(|name| name == "cpu") && may_create_in(folder))
    });
    match place {
        Some(place) => (place, None),
        None => {
            let own = hierarchy.own_folder();
            let why = step_aside(&own, wanted).err();
            (own, why)
        }
    }
}

/// If we are alone in `own`, moves us into a child of it, and lets `own` hand on those of `wanted` that it has.
fn step_aside(own: &Path, wanted: &[Controller]) -> Result<(), String> {
    let read = |file: &str| {
        std::fs::read_to_string(own.join(file)).map_err(|error| format!("reading {file}: {error}"))
    };
    let available = read("cgroup.controllers")?;
    if !available.split_whitespace().any(|name| name == "cpu") {
        return Err("our own group does not have the cpu controller".into());
    }
    let us = std::process::id().to_string();
    if read("cgroup.procs")?.lines().any(|pid| pid != us) {
        return Err(
            "other processes are in our own group, so it cannot enable controllers for its children".into(),
        );
    }
    let aside = own.join(ASIDE);
    std::fs::create_dir(&aside)
        .and_then(|()| write_value(&aside, "cgroup.procs", &us))
        .map_err(|error| {
            let _ = std::fs::remove_dir(&aside);
            format!("{}: {error}", aside.display())
        })?;
    for controller in wanted {
        // A controller that is not available stays missing. This is reported when the group is set up.
        let _ = write_value(own, "cgroup.subtree_control", &format!("+{controller}"));
    }
    Ok(())
}

fn handed_on(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether we can make a group in `folder` and move a process there. Both need write permission. The move needs it on
/// the process list of the common ancestor, which is `folder`'s list.
fn may_create_in(folder: &Path) -> bool {
    let writable = nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok();
    writable && can_join(folder).is_ok()
}

fn can_join(folder: &Path) -> std::io::Result<()> {
    std::fs::OpenOptions::new()
        .write(true)
        .open(folder.join("cgroup.procs"))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::CpuList;

    const ALL: [Controller; 3] = [Controller::Cpu, Controller::Cpuset, Controller::Memory];

    /// A folder that reads like a version 2 group. Plain files accept every write, so a test can look at what was
    /// written.
    fn group(folder: &Path, processes: &str, available: &str, handed: &str) {
        std::fs::create_dir_all(folder).expect("mkdir");
        for (file, text) in [
            ("cgroup.procs", processes),
            ("cgroup.controllers", available),
            ("cgroup.subtree_control", handed),
        ] {
            std::fs::write(folder.join(file), text).expect("write");
        }
    }

    #[test]
    fn the_nearest_ancestor_that_hands_on_the_controller_is_taken() {
        let mount = tempfile::tempdir().expect("temp");
        let slice = mount.path().join("user.slice");
        let own = slice.join("session.scope");
        let hierarchy = Hierarchy {
            mount: mount.path().into(),
            own: "/user.slice/session.scope".into(),
        };
        group(mount.path(), "", "cpu cpuset memory", "cpu cpuset memory");
        group(&slice, "", "cpu memory", "cpu memory");
        group(&own, "1\n2\n", "cpu memory", "");
        assert_eq!(choose_parent(&hierarchy, &ALL), (slice.clone(), None));
        std::fs::write(slice.join("cgroup.subtree_control"), "memory").expect("write");
        assert_eq!(choose_parent(&hierarchy, &ALL), (mount.path().into(), None));
        std::fs::write(mount.path().join("cgroup.subtree_control"), "memory").expect("write");
        let (place, why) = choose_parent(&hierarchy, &ALL);
        assert_eq!(place, own);
        assert!(
            why.expect("reason")
                .starts_with("other processes are in our own group")
        );
    }

    #[test]
    fn alone_in_a_delegated_group_we_step_aside() {
        let mount = tempfile::tempdir().expect("temp");
        let own = mount.path().join("run-1.scope");
        group(mount.path(), "", "", "");
        group(
            &own,
            &format!("{}\n", std::process::id()),
            "cpu memory pids",
            "",
        );
        // A plain folder does not create the kernel's files by itself, so this gets only as far as joining the child.
        let error = step_aside(&own, &ALL).expect_err("no kernel here");
        assert!(error.contains("plimsoll-self: writing"), "{error}");
        assert!(!own.join(ASIDE).exists(), "a failure leaves nothing behind");
        group(
            &own,
            &format!("{}\n1\n", std::process::id()),
            "cpu memory pids",
            "",
        );
        let error = step_aside(&own, &ALL).expect_err("not alone");
        assert!(error.starts_with("other processes"), "{error}");
        group(&own, "", "memory", "");
        assert!(step_aside(&own, &ALL).is_err());
    }

    #[test]
    fn without_any_place_the_reason_is_told() {
        let cpus: CpuList = "0".parse().expect("list");
        let limits = CpuLimits {
            quota_us: Some(50_000),
            period_us: 100_000,
            cpus: &cpus,
        };
        let hierarchy = Hierarchy {
            mount: "/nowhere".into(),
            own: "/".into(),
        };
        let reason = create(&hierarchy, "plimsoll-1-1", &ALL, &limits).expect_err("no such place");
        assert!(reason.starts_with("/nowhere/plimsoll-1-1: "), "{reason}");
    }
}
