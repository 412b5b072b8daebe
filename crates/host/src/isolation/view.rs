//! Reads a control group: one that we made, or any other that the user names (`--cgroup`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layout::{Controller, Hierarchy, Layout, own_path};
use crate::error::{Error, Result};

/// CPU time that a group has used since it was made, including that of its dead members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupCpu {
    /// All of it, in µs; exact, from the scheduler.
    pub total_us: u64,
    /// In user mode, in µs. Many kernels count this and `system_us` by clock ticks. So if little is used, their sum can
    /// be far from `total_us`. Only their ratio is meaningful.
    pub user_us: u64,
    /// In the kernel, in µs.
    pub system_us: u64,
}

/// What a group's memory controller charges to it. This is not resident size: it includes page cache and the kernel's
/// memory for the group (with its socket buffers), and excludes file pages that another group touched first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GroupMemory {
    /// Charged now, in bytes.
    pub current_bytes: u64,
    /// The most ever charged, in bytes; version 2 reports it since Linux 5.19.
    pub peak_bytes: Option<u64>,
    /// The anonymous memory among it, in bytes.
    pub anon_bytes: u64,
}

/// The folders of one group: one per controller in version 1, one in version 2, or both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupView {
    pub(super) v1: BTreeMap<Controller, PathBuf>,
    pub(super) v2: Option<PathBuf>,
}

impl GroupView {
    /// Opens an existing group: a folder below one of the mounts (`/sys/fs/cgroup/cpu/docker/abc`), or a path within
    /// the hierarchies (`/docker/abc`, as `/proc/PID/cgroup` shows it).
    ///
    /// # Errors
    /// One line when no hierarchy has such a group.
    pub fn open(path: &Path, layout: &Layout) -> Result<Self> {
        let hierarchies = || layout.v1.values().chain(&layout.v2);
        // The mount with the longest path wins: `/sys/fs/cgroup/cpu` before `/sys/fs/cgroup`.
        let mount = hierarchies()
            .map(|hierarchy| hierarchy.mount.as_path())
            .filter(|mount| path.starts_with(mount))
            .max_by_key(|mount| mount.as_os_str().len());
        let relative = mount
            .and_then(|mount| path.strip_prefix(mount).ok())
            .unwrap_or(path);
        let existing = |folder: PathBuf| folder.join("cgroup.procs").is_file().then_some(folder);
        let view = Self {
            v1: layout
                .v1
                .iter()
                .filter_map(|(controller, hierarchy)| {
                    Some((*controller, existing(hierarchy.folder(relative))?))
                })
                .collect(),
            v2: layout
                .v2
                .as_ref()
                .and_then(|hierarchy| existing(hierarchy.folder(relative))),
        };
        if view.is_empty() {
            return Err(Error::Usage(format!(
                "--cgroup {}: there is no such control group on this machine",
                path.display()
            )));
        }
        Ok(view)
    }

    /// The group that a process is in. Empty if the process is gone, or if its groups are not visible from here.
    #[must_use]
    pub fn of_process(pid: i32, layout: &Layout) -> Self {
        let Some(own) = text(Path::new(&format!("/proc/{pid}/cgroup"))) else {
            return Self::default();
        };
        let folder = |hierarchy: &Hierarchy, controller: Option<Controller>| {
            let own = own_path(&own, controller)?;
            // A path out of our own namespace leads nowhere here.
            let climbs = own.components().any(|part| part == Component::ParentDir);
            let folder = hierarchy.folder(&own);
            (!climbs && folder.join("cgroup.procs").is_file()).then_some(folder)
        };
        Self {
            v1: layout
                .v1
                .iter()
                .filter_map(|(controller, hierarchy)| {
                    Some((*controller, folder(hierarchy, Some(*controller))?))
                })
                .collect(),
            v2: layout
                .v2
                .as_ref()
                .and_then(|hierarchy| folder(hierarchy, None)),
        }
    }

    /// Whether there is no group behind it at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v1.is_empty() && self.v2.is_none()
    }

    /// CPU time used; `None` when no controller here counts it (or the group is gone).
    #[must_use]
    pub fn cpu(&self) -> Option<GroupCpu> {
        if let Some(folder) = self.v1.get(&Controller::Cpuacct) {
            let read_us = |file: &str| Some(number(&folder.join(file))? / 1000);
            return Some(GroupCpu {
                total_us: read_us("cpuacct.usage")?,
                user_us: read_us("cpuacct.usage_user").unwrap_or(0),
                system_us: read_us("cpuacct.usage_sys").unwrap_or(0),
            });
        }
        parse_cpu_v2(&text(&self.v2.as_ref()?.join("cpu.stat"))?)
    }

    /// "cgroup v1" or "cgroup v2", whichever counts the CPU time; `None` when neither does.
    #[must_use]
    pub fn cpu_version(&self) -> Option<&'static str> {
        self.cpu()?;
        Some(if self.v1.contains_key(&Controller::Cpuacct) {
            "cgroup v1"
        } else {
            "cgroup v2"
        })
    }

    /// Memory charged; `None` when there is no `memory` controller.
    #[must_use]
    pub fn memory(&self) -> Option<GroupMemory> {
        if let Some(folder) = self.v1.get(&Controller::Memory) {
            let stat = text(&folder.join("memory.stat"))?;
            return Some(GroupMemory {
                current_bytes: number(&folder.join("memory.usage_in_bytes"))?,
                peak_bytes: number(&folder.join("memory.max_usage_in_bytes")),
                anon_bytes: flat_value(&stat, "total_rss").or_else(|| flat_value(&stat, "rss"))?,
            });
        }
        let folder = self.v2.as_ref()?;
        Some(GroupMemory {
            current_bytes: number(&folder.join("memory.current"))?,
            peak_bytes: number(&folder.join("memory.peak")),
            anon_bytes: flat_value(&text(&folder.join("memory.stat"))?, "anon")?,
        })
    }

    /// The IDs of the processes in the group, including those of groups below it. Empty if the group is gone.
    #[must_use]
    pub fn processes(&self) -> BTreeSet<i32> {
        // A member of one hierarchy is a member of all, unless somebody moved it. The hierarchy that counts the CPU
        // time decides.
        let folder = self.v1.get(&Controller::Cpuacct);
        let folder = folder.or(self.v2.as_ref()).or(self.v1.values().next());
        folder
            .into_iter()
            .flat_map(|folder| processes_below(folder))
            .collect()
    }

    /// The processes that are in any of the group's folders, to make sure that none is left.
    pub(super) fn processes_anywhere(&self) -> BTreeSet<i32> {
        self.folders()
            .flat_map(|folder| processes_below(folder))
            .collect()
    }

    /// Every folder of the group, once each.
    pub(super) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        let unique: BTreeSet<&PathBuf> = self.v1.values().chain(&self.v2).collect();
        unique.into_iter()
    }
}

fn processes_below(folder: &Path) -> Vec<i32> {
    let list = text(&folder.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = list
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    for child in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(processes_below(&child.path()));
        }
    }
    // Zero stands for a process outside our process ID namespace. It cannot be looked at or signalled.
    found.retain(|pid| *pid > 0);
    found
}

fn parse_cpu_v2(stat: &str) -> Option<GroupCpu> {
    Some(GroupCpu {
        total_us: flat_value(stat, "usage_usec")?,
        user_us: flat_value(stat, "user_usec")?,
        system_us: flat_value(stat, "system_usec")?,
    })
}

/// The value of `key` in the kernel's "flat keyed" form: `key value` per line.
pub(super) fn flat_value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    })
}

pub(super) fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

pub(super) fn number(path: &Path) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::isolation) const V1_STAT: &str =
        "nr_periods 120\nnr_throttled 30\nthrottled_time 1500000000\nnr_bursts 0\nburst_time 0\n";
    pub(in crate::isolation) const V2_STAT: &str = "usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\nnr_periods 120\nnr_throttled 30\nthrottled_usec 1500000\n";

    #[test]
    fn cpu_time_of_version_2_is_there_without_the_controller() {
        let expected = GroupCpu {
            total_us: 5000,
            user_us: 3000,
            system_us: 2000,
        };
        assert_eq!(parse_cpu_v2(V2_STAT), Some(expected));
        assert_eq!(
            parse_cpu_v2("usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\n"),
            Some(expected)
        );
        assert_eq!(parse_cpu_v2("garbage"), None);
        assert_eq!(flat_value("rss 1\ntotal_rss 2\n", "total_rss"), Some(2));
    }

    /// Makes folders with files that read like control groups.
    pub(in crate::isolation) fn files(folder: &Path, contents: &[(&str, &str)]) {
        std::fs::create_dir_all(folder).expect("mkdir");
        for (name, text) in contents {
            std::fs::write(folder.join(name), text).expect("write");
        }
    }

    #[test]
    fn a_group_of_version_1_is_read_from_its_three_places() {
        let root = tempfile::tempdir().expect("temp");
        let group = |controller: &str| root.path().join(controller).join("docker/abc");
        files(
            &group("cpu"),
            &[
                ("cgroup.procs", "1\n2\n"),
                ("cpu.cfs_quota_us", "50000\n"),
                ("cpu.stat", V1_STAT),
            ],
        );
        files(
            &group("cpuacct").join("below"),
            &[("cgroup.procs", "3\n0\n")],
        );
        files(&group("cpu").join("below"), &[("cgroup.procs", "4\n")]);
        files(
            &group("cpuacct"),
            &[
                ("cgroup.procs", "1\n2\n"),
                ("cpuacct.usage", "9000000\n"),
                ("cpuacct.usage_user", "6000000\n"),
                ("cpuacct.usage_sys", "3000000\n"),
            ],
        );
        files(
            &group("memory"),
            &[
                ("cgroup.procs", "1\n2\n"),
                ("memory.usage_in_bytes", "100\n"),
                ("memory.max_usage_in_bytes", "200\n"),
                ("memory.stat", "rss 40\ntotal_rss 60\n"),
            ],
        );
        let v1 = [
            Controller::Cpu,
            Controller::Cpuacct,
            Controller::Memory,
            Controller::Cpuset,
        ]
        .map(|controller| {
            let mount = root.path().join(controller.name());
            (
                controller,
                Hierarchy {
                    mount,
                    own: "/".into(),
                },
            )
        })
        .into();
        let layout = Layout { v1, v2: None };
        let by_name = GroupView::open(Path::new("/docker/abc"), &layout).expect("there");
        let by_folder = GroupView::open(&group("memory"), &layout).expect("there");
        assert_eq!(by_name, by_folder);
        assert_eq!(by_name.cpu().expect("cpu").total_us, 9000);
        let limits = by_name.limits();
        assert_eq!(
            limits.throttling().expect("throttling").throttled_periods,
            30
        );
        assert_eq!(
            (limits.memory_bytes(), limits.memory_events()),
            (None, None)
        );
        let memory = by_name.memory().expect("memory");
        assert_eq!(
            (memory.current_bytes, memory.peak_bytes, memory.anon_bytes),
            (100, Some(200), 60)
        );
        assert_eq!(by_name.processes(), [1, 2, 3].into());
        assert_eq!(by_name.processes_anywhere(), [1, 2, 3, 4].into());
        let error = GroupView::open(Path::new("/nowhere"), &layout)
            .expect_err("absent")
            .to_string();
        assert_eq!(
            error,
            "--cgroup /nowhere: there is no such control group on this machine"
        );
    }

    #[test]
    fn a_group_of_version_2_is_read_from_one_place() {
        let root = tempfile::tempdir().expect("temp");
        let group = root.path().join("app.slice");
        files(
            &group,
            &[
                ("cgroup.procs", "7\n"),
                ("cpu.max", "50000 100000\n"),
                ("cpu.stat", V2_STAT),
                ("memory.current", "100\n"),
                ("memory.stat", "anon 60\nfile 10\n"),
            ],
        );
        let layout = Layout {
            v1: BTreeMap::new(),
            v2: Some(Hierarchy {
                mount: root.path().into(),
                own: "/".into(),
            }),
        };
        let view = GroupView::open(&group, &layout).expect("there");
        assert_eq!(view.cpu().expect("cpu").user_us, 3000);
        let limits = view.limits();
        assert_eq!(limits.throttling().expect("throttling").periods, 120);
        assert_eq!(
            (limits.memory_bytes(), limits.memory_events()),
            (None, None)
        );
        let memory = view.memory().expect("memory");
        assert_eq!(
            (memory.current_bytes, memory.peak_bytes, memory.anon_bytes),
            (100, None, 60)
        );
        assert_eq!(view.processes(), [7].into());
    }

    #[test]
    fn our_own_group_is_found_where_there_are_control_groups() {
        let layout = Layout::of_this_machine();
        let us = i32::try_from(std::process::id()).expect("pid");
        let view = GroupView::of_process(us, &layout);
        for folder in view.folders() {
            assert!(processes_below(folder).contains(&us), "{folder:?}");
        }
        assert!(GroupView::of_process(i32::MAX, &layout).is_empty());
    }
}
