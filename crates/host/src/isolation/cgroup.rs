//! One control group for one target, made with whatever this machine offers, and what is missing if it offers less.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cpus::{CpuList, Placement};
use super::layout::{Controller, Layout};
use super::means::{Means, Missing, means, missing};
use super::view::GroupView;
use super::{v1, v2};
use crate::error::{Error, Result};
use crate::maker::Maker;

/// The quota's period, in µs: the default of the kernel and of container runtimes.
pub const DEFAULT_PERIOD_US: u64 = 100_000;

/// The kernel refuses quotas below this.
const QUOTA_MIN_US: u64 = 1_000;

/// How long a group may take to become empty after its processes were killed.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(5);

/// The CPU limits of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuLimits<'a> {
    /// CPU time per period, in µs; `None` for no quota.
    pub(super) quota_us: Option<u64>,
    pub(super) period_us: u64,
    pub(super) cpus: &'a CpuList,
}

/// The control group of one target. It may be only an affinity: see [`Cgroup::means`] and [`Cgroup::missing`].
///
/// Dropping it kills what is left in the group and removes the group.
#[derive(Debug)]
pub struct Cgroup {
    name: String,
    placement: Placement,
    view: GroupView,
    means: Means,
    missing: Vec<Missing>,
}

impl Cgroup {
    /// Makes a group for a target with this placement, with what `layout` offers. It does not fail: [`Cgroup::missing`]
    /// lists what could not be provided, and the caller decides whether that matters.
    #[must_use]
    pub fn create(placement: &Placement, period_us: u64, layout: &Layout) -> Self {
        let name = unique_name();
        let limits = CpuLimits {
            quota_us: placement
                .needs_quota()
                .then(|| quota_us(placement.vcpu, period_us)),
            period_us,
            cpus: &placement.target_cpus,
        };
        let (folders, mut refused) = v1::create(layout, &name, &limits);
        let mut view = GroupView {
            v1: folders,
            v2: None,
        };
        let absent = Controller::ALL
            .into_iter()
            .filter(|controller| !view.v1.contains_key(controller));
        let absent: Vec<Controller> = absent.collect();
        let mut in_v2 = Vec::new();
        if let (Some(hierarchy), false) = (&layout.v2, absent.is_empty()) {
            match v2::create(hierarchy, &name, &absent, &limits) {
                Ok(made) => {
                    in_v2 = made.controllers;
                    refused.extend(made.refused);
                    view.v2 = Some(made.folder);
                }
                Err(reason) => refused.extend(
                    absent
                        .iter()
                        .map(|controller| (*controller, reason.clone())),
                ),
            }
        }
        let means = means(&view, &in_v2, limits.quota_us.is_some());
        let missing = missing(means, &refused);
        Self {
            name,
            placement: placement.clone(),
            view,
            means,
            missing,
        }
    }

    /// The group's unique name, `plimsoll-<namespace>-<pid>-<start>-<n>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The placement that the group was made for.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// A view for reading what the group uses. It is empty if there is no group; then sample `/proc`.
    #[must_use]
    pub fn view(&self) -> &GroupView {
        &self.view
    }

    /// The means by which the target is isolated and measured.
    #[must_use]
    pub fn means(&self) -> Means {
        self.means
    }

    /// What could not be provided, for caveats.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// The group's process lists, open for writing: a process that writes `0` into each joins the group. They are
    /// opened before a fork, because opening by name after a fork is not safe.
    ///
    /// # Errors
    /// When a list cannot be opened.
    pub(crate) fn open_for_joining(&self) -> Result<Vec<File>> {
        let open = |folder: &Path| {
            let path = folder.join("cgroup.procs");
            let file = OpenOptions::new().write(true).open(&path);
            file.map_err(|error| Error::io("opening", &path, error))
        };
        self.view.folders().map(|folder| open(folder)).collect()
    }

    /// Kills every process in the group and waits until it is empty.
    ///
    /// # Errors
    /// When the group does not become empty, because a process hangs in the kernel.
    pub fn kill_all(&self) -> Result<()> {
        kill_all_in(&self.view, &self.name)
    }
}

/// The name of a new group, `plimsoll-<namespace>-<pid>-<start>-<n>`.
pub(super) fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    Maker::us().name(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Kills every process in the folders of the view and waits until they are empty.
pub(super) fn kill_all_in(view: &GroupView, name: &str) -> Result<()> {
    if let Some(folder) = &view.v2 {
        // Since Linux 5.14. The loop below does the same, less atomically.
        let _ = write_value(folder, "cgroup.kill", "1");
    }
    let us = Pid::this();
    let deadline = Instant::now() + EMPTY_TIMEOUT;
    loop {
        let left = view.processes_anywhere();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Error::Io {
                what: format!("emptying the control group {name} (processes {left:?} do not die)"),
                source: std::io::ErrorKind::TimedOut.into(),
            });
        }
        for pid in left.into_iter().map(Pid::from_raw).filter(|pid| *pid != us) {
            // This fails only if the process is already gone.
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if self.view.is_empty() {
            return;
        }
        let emptied = self.kill_all();
        let removed = self
            .view
            .folders()
            .map(|folder| remove_group(folder))
            .filter(Result::is_err)
            .last();
        // There is no caller to return an error to. A later run sweeps a group that is left behind (see
        // [`super::sweep_stale`]).
        if let Some(error) = emptied.err().or_else(|| removed.and_then(Result::err)) {
            eprintln!("plimsoll: {error}");
        }
    }
}

/// Removes a group's folder by `rmdir`, because its files are not real. Groups that the target made inside it are
/// removed first. The kernel lets go of dead processes a moment after they leave the list, so this retries for a while.
pub(super) fn remove_group(folder: &Path) -> Result<()> {
    for child in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&child.path())?;
        }
    }
    let deadline = Instant::now() + EMPTY_TIMEOUT;
    loop {
        match std::fs::remove_dir(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                return Err(Error::io("removing the control group", folder, error));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Writes to a control file, which must already exist.
pub(super) fn write_value(folder: &Path, file: &str, value: &str) -> std::io::Result<()> {
    let path = folder.join(file);
    let written = OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| {
        std::io::Error::new(
            error.kind(),
            format!("writing {value:?} to {file}: {error}"),
        )
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)] // Small positive numbers.
fn quota_us(vcpu: f64, period_us: u64) -> u64 {
    ((vcpu * period_us as f64).round() as u64).max(QUOTA_MIN_US)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::layout::Hierarchy;
    use crate::isolation::means::{How, Wanted};

    fn placement(vcpu: f64) -> Placement {
        let allowed = CpuList::allowed_to_us().expect("allowed");
        let last = CpuList::new(vec![*allowed.as_slice().last().expect("one")]);
        Placement::choose(vcpu, &allowed, last, None).expect("possible")
    }

    #[test]
    fn without_control_groups_only_the_affinity_remains_and_it_is_said() {
        let group = Cgroup::create(&placement(0.5), DEFAULT_PERIOD_US, &Layout::default());
        assert!(group.view().is_empty());
        assert_eq!(group.means().cpus, How::Affinity);
        assert_eq!(group.means().cpu_usage, How::Proc);
        let lacking: Vec<Wanted> = group.missing().iter().map(|missing| missing.what).collect();
        assert_eq!(lacking, [Wanted::Quota, Wanted::Cpus, Wanted::CpuUsage]);
        let text = group.missing()[0].to_string();
        assert!(
            text.contains("no cpu control groups") && text.contains("run as root"),
            "{text}"
        );
        let whole = Cgroup::create(&placement(1.0), DEFAULT_PERIOD_US, &Layout::default());
        assert_eq!(whole.means().quota, How::NotNeeded);
        assert_eq!(whole.missing().len(), 2);
    }

    #[test]
    fn a_hierarchy_that_refuses_is_named_with_the_reason() {
        let mount = tempfile::tempdir().expect("temp");
        let own = || Hierarchy {
            mount: mount.path().join("gone"),
            own: "/".into(),
        };
        let layout = Layout {
            v1: [(Controller::Cpu, own()), (Controller::Cpuset, own())].into(),
            v2: Some(own()),
        };
        let group = Cgroup::create(&placement(0.5), DEFAULT_PERIOD_US, &layout);
        assert!(group.view().is_empty());
        assert!(
            group.missing()[0].why.contains("gone/plimsoll-"),
            "{}",
            group.missing()[0].why
        );
    }

    #[test]
    fn quotas_follow_the_share_and_stay_above_the_kernels_minimum() {
        assert_eq!(quota_us(0.5, 100_000), 50_000);
        assert_eq!(quota_us(1.5, 100_000), 150_000);
        assert_eq!(quota_us(0.01, 10_000), QUOTA_MIN_US);
    }
}
