//! What limits a control group: the quota and what it did, the memory limit and how often it was hit.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layout::Controller;
use super::view::{GroupView, flat_value, number, text};

/// What a quota did to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throttling {
    /// Quota periods in which the group wanted to run.
    pub periods: u64,
    /// Periods in which it used up its quota and was stopped.
    pub throttled_periods: u64,
    /// The time for which it was stopped, in µs, summed over CPUs.
    pub throttled_us: u64,
}

/// What limits the members of a group, found once. A limit binds everything below it, so it may be set on the group
/// itself or on one above it. The nearest quota counts, and the lowest memory limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupLimits {
    /// The folder of the nearest quota, whose `cpu.stat` counts the throttling.
    throttled: Option<PathBuf>,
    /// The folder with the lowest memory limit, and the limit in bytes.
    memory: Option<(PathBuf, u64)>,
    /// Where memory events are counted if nothing limits memory.
    memory_own: Option<PathBuf>,
}

impl GroupLimits {
    /// What the quota did; `None` when there is none.
    #[must_use]
    pub fn throttling(&self) -> Option<Throttling> {
        parse_throttling(&text(&self.throttled.as_ref()?.join("cpu.stat"))?)
    }

    /// The most memory that the group may use, in bytes; `None` if nothing limits it.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory.as_ref().map(|(_, limit)| *limit)
    }

    /// How often the memory controller of the limiting group refused memory or had to reclaim it since the group was
    /// made, plus the processes that it killed. Everything below that group counts. `None` if no controller counts it.
    #[must_use]
    pub fn memory_events(&self) -> Option<u64> {
        let limiting = self.memory.as_ref().map(|(folder, _)| folder);
        let folder = limiting.or(self.memory_own.as_ref())?;
        if let Some(refused) = number(&folder.join("memory.failcnt")) {
            // This file has `oom_kill` since Linux 4.13.
            let control = text(&folder.join("memory.oom_control")).unwrap_or_default();
            return Some(refused + flat_value(&control, "oom_kill").unwrap_or(0));
        }
        let events = text(&folder.join("memory.events"))?;
        let count = |key| flat_value(&events, key).unwrap_or(0);
        Some(count("high") + count("max") + count("oom_kill"))
    }
}

impl GroupView {
    /// What limits the group's members. A limit that is set later is not seen.
    #[must_use]
    pub fn limits(&self) -> GroupLimits {
        let cpu = self.v1.get(&Controller::Cpu).or(self.v2.as_ref());
        let memory = self.v1.get(&Controller::Memory).or(self.v2.as_ref());
        let throttled = cpu.and_then(|own| with_parents(own).find(|folder| has_quota(folder)));
        let least = memory.and_then(|own| {
            let limits = with_parents(own)
                .filter_map(|folder| Some((folder.to_path_buf(), memory_limit_bytes(folder)?)));
            // Of equal limits, the nearest counts: `min_by_key` keeps the first.
            limits.min_by_key(|(_, limit)| *limit)
        });
        GroupLimits {
            throttled: throttled.map(Path::to_path_buf),
            memory: least,
            memory_own: memory.cloned(),
        }
    }
}

/// A group's folder and those of the groups above it, nearest first.
fn with_parents(folder: &Path) -> impl Iterator<Item = &Path> {
    folder
        .ancestors()
        .take_while(|folder| folder.join("cgroup.procs").is_file())
}

/// Whether the group has its own CPU quota. Without one, `cpu.cfs_quota_us` is -1 and `cpu.max` begins with `max`.
fn has_quota(folder: &Path) -> bool {
    number(&folder.join("cpu.cfs_quota_us")).is_some()
        || text(&folder.join("cpu.max")).is_some_and(|max| !max.starts_with("max"))
}

/// The group's own memory limit. If there is none, version 1 writes the greatest number of whole pages, version 2
/// `max`.
fn memory_limit_bytes(folder: &Path) -> Option<u64> {
    const NONE_V1: u64 = i64::MAX as u64 / 2;
    number(&folder.join("memory.limit_in_bytes"))
        .or_else(|| number(&folder.join("memory.max")))
        .filter(|limit| *limit < NONE_V1)
}

/// Both versions use one file name and nearly the same keys. Version 1 counts nanoseconds, version 2 microseconds.
fn parse_throttling(stat: &str) -> Option<Throttling> {
    Some(Throttling {
        periods: flat_value(stat, "nr_periods")?,
        throttled_periods: flat_value(stat, "nr_throttled")?,
        throttled_us: flat_value(stat, "throttled_usec")
            .or_else(|| flat_value(stat, "throttled_time").map(|nanoseconds| nanoseconds / 1000))?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::view::tests::{V1_STAT, V2_STAT, files};
    use super::*;
    use crate::isolation::layout::{Hierarchy, Layout};

    #[test]
    fn throttling_is_the_same_in_both_versions() {
        let expected = Throttling {
            periods: 120,
            throttled_periods: 30,
            throttled_us: 1_500_000,
        };
        assert_eq!(parse_throttling(V1_STAT), Some(expected));
        assert_eq!(parse_throttling(V2_STAT), Some(expected));
        assert_eq!(parse_throttling("usage_usec 5000\n"), None);
    }

    fn v2_at(mount: &Path) -> Layout {
        Layout {
            v1: BTreeMap::new(),
            v2: Some(Hierarchy {
                mount: mount.into(),
                own: "/".into(),
            }),
        }
    }

    #[test]
    fn the_limit_that_binds_is_the_least_of_the_group_and_those_above() {
        let root = tempfile::tempdir().expect("temp");
        let pod = root.path().join("pod");
        let group = pod.join("app");
        files(root.path(), &[("cgroup.procs", "")]);
        files(
            &pod,
            &[
                ("cgroup.procs", ""),
                ("cpu.max", "50000 100000\n"),
                ("cpu.stat", V2_STAT),
                ("memory.max", "4096\n"),
                ("memory.events", "low 9\nhigh 1\nmax 2\noom 1\noom_kill 4\n"),
            ],
        );
        files(
            &group,
            &[
                ("cgroup.procs", "7\n"),
                ("cpu.max", "max 100000\n"),
                ("cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n"),
                ("memory.max", "max\n"),
                ("memory.events", "high 0\nmax 0\noom_kill 0\n"),
            ],
        );
        let limits = || {
            let view = GroupView::open(&group, &v2_at(root.path())).expect("there");
            view.limits()
        };
        assert_eq!(limits().memory_bytes(), Some(4096));
        assert_eq!(limits().memory_events(), Some(7));
        assert_eq!(limits().throttling().expect("the pod's").periods, 120);
        files(&group, &[("memory.max", "8192\n")]);
        assert_eq!(limits().memory_bytes(), Some(4096), "the pod's is less");
        files(
            &group,
            &[("memory.max", "1024\n"), ("cpu.max", "1000 10000\n")],
        );
        assert_eq!(limits().memory_bytes(), Some(1024));
        assert_eq!(limits().memory_events(), Some(0), "now of the group itself");
        assert_eq!(limits().throttling(), None, "its own file counts none");
    }

    #[test]
    fn memory_of_version_1_is_limited_by_a_number_below_the_greatest() {
        let root = tempfile::tempdir().expect("temp");
        let group = root.path().join("docker/abc");
        files(
            &group,
            &[
                ("cgroup.procs", "7\n"),
                ("memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory.failcnt", "5\n"),
                (
                    "memory.oom_control",
                    "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
                ),
            ],
        );
        let layout = Layout {
            v1: [(
                Controller::Memory,
                Hierarchy {
                    mount: root.path().into(),
                    own: "/".into(),
                },
            )]
            .into(),
            v2: None,
        };
        let limits = || {
            let view = GroupView::open(Path::new("/docker/abc"), &layout).expect("there");
            view.limits()
        };
        assert_eq!(
            (limits().memory_bytes(), limits().memory_events()),
            (None, Some(7))
        );
        files(&group, &[("memory.limit_in_bytes", "1048576\n")]);
        assert_eq!(limits().memory_bytes(), Some(1_048_576));
        files(&group, &[("memory.limit_in_bytes", "nonsense")]);
        assert_eq!(limits().memory_bytes(), None);
    }
}
