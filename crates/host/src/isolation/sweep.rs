//! Groups, network cards and images that a killed run left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use nix::unistd::Pid;

use super::cgroup::{kill_all_in, remove_group};
use super::layout::{Hierarchy, Layout};
use super::network::sweep_cards;
use super::view::GroupView;
use crate::disk::power::unmount_stale;
use crate::process::start_time_ticks;

const NAME_PREFIX: &str = "plimsoll-";

/// What a sweep found and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Control groups that were removed.
    pub groups: usize,
    /// Processes in them that were killed.
    pub processes: usize,
}

/// Removes what an earlier Plimsoll left behind because it was killed: its control groups, the processes in them, its
/// network cards, and its mounted images. These processes lost their parents, so they escaped the signal that a parent's death sends. Only
/// what has our name is touched, and only if its maker is certainly dead: the name holds the maker's process ID, its
/// start time, and the process ID namespace in which both are valid.
#[must_use]
pub fn sweep_stale(layout: &Layout) -> Swept {
    let parents: BTreeSet<PathBuf> = layout
        .v1
        .values()
        .chain(&layout.v2)
        .map(Hierarchy::own_folder)
        .collect();
    let mut names = BTreeSet::new();
    let mut processes = BTreeSet::new();
    for entry in parents
        .iter()
        .flat_map(|parent| std::fs::read_dir(parent).into_iter().flatten().flatten())
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let stale = Maker::of(&name).is_some_and(|maker| maker.is_dead());
        if !stale || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        // One folder at a time. The same group in another hierarchy is found by itself.
        let view = GroupView {
            v1: BTreeMap::new(),
            v2: Some(entry.path()),
        };
        processes.extend(view.processes_anywhere());
        if kill_all_in(&view, &name).is_ok() && remove_group(&entry.path()).is_ok() {
            names.insert(name);
        }
    }
    // After the processes, which may be the last ones in their own network, and may have files in an image.
    sweep_cards();
    unmount_stale();
    Swept {
        groups: names.len(),
        processes: processes.len(),
    }
}

/// The process that made something, according to the name that it gave it. A process ID alone may belong to another process by
/// now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Maker {
    /// The number of the process ID namespace.
    namespace: u64,
    pub(super) pid: i32,
    /// When it started, in clock ticks since boot.
    started: u64,
}

impl Maker {
    /// This process.
    pub(crate) fn us() -> Self {
        let pid = Pid::this().as_raw();
        Self {
            namespace: pid_namespace(),
            pid,
            started: start_time_ticks(pid).unwrap_or(0),
        }
    }

    /// A maker that does not exist: process IDs stay below 2^22.
    #[cfg(test)]
    pub(crate) fn nobody() -> Self {
        Self {
            pid: 4_194_305,
            ..Self::us()
        }
    }

    /// The maker that a name states; `None` if the name is not one of ours.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(NAME_PREFIX)?.split('-');
        let maker = Self {
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next()?.parse::<u32>().ok()?;
        parts.next().is_none().then_some(maker)
    }

    /// Whether the maker is certainly dead. If that cannot be known (another container's processes, a start time that
    /// could not be read), it counts as alive.
    pub(crate) fn is_dead(self) -> bool {
        self.namespace == pid_namespace()
            && self.started > 0
            && self.pid > 0
            && start_time_ticks(self.pid) != Some(self.started)
    }

    /// The name of its group, or of another thing that it made, with this number.
    pub(crate) fn name(self, number: u32) -> String {
        let Self {
            namespace,
            pid,
            started,
        } = self;
        format!("{NAME_PREFIX}{namespace}-{pid}-{started}-{number}")
    }
}

/// The number of our process ID namespace; 0 where the kernel has none.
fn pid_namespace() -> u64 {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let text = link.to_string_lossy().into_owned();
    let number = text
        .strip_prefix("pid:[")
        .and_then(|text| text.strip_suffix(']'));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::layout::Controller;

    #[test]
    fn names_of_ours_tell_their_maker() {
        let maker = Maker {
            namespace: 4_026_531_836,
            pid: 17,
            started: 99,
        };
        assert_eq!(maker.name(3), "plimsoll-4026531836-17-99-3");
        assert_eq!(Maker::of(&maker.name(3)), Some(maker));
        for other in [
            "plimsoll-17-3",
            "plimsoll-self",
            "plimsoll-1-2-3-a",
            "plimsoll-1-2-3-4-5",
            "docker",
            "plimsoll-1-2-3-4.scope",
        ] {
            assert_eq!(Maker::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_maker_is_dead_only_when_that_is_certain() {
        let us = Maker::us();
        assert!(us.started > 0 && us.namespace > 0);
        assert!(!us.is_dead());
        // At another time, our process ID belonged to another process.
        let earlier = Maker {
            started: us.started - 1,
            ..us
        };
        let nobody = Maker::nobody();
        assert!(earlier.is_dead() && nobody.is_dead());
        let elsewhere = Maker {
            namespace: 1,
            ..nobody
        };
        let unknown = Maker {
            started: 0,
            ..nobody
        };
        assert!(!elsewhere.is_dead() && !unknown.is_dead());
    }

    #[test]
    fn only_groups_of_dead_makers_are_swept() {
        let mount = tempfile::tempdir().expect("temp");
        let hierarchy = Hierarchy {
            mount: mount.path().into(),
            own: "/".into(),
        };
        let layout = Layout {
            v1: [(Controller::Cpu, hierarchy)].into(),
            v2: None,
        };
        let us = Maker::us();
        let dead = Maker::nobody();
        let elsewhere = Maker {
            namespace: 1,
            ..dead
        };
        let ours = us.name(1);
        let kept = [
            ours.as_str(),
            "docker",
            "plimsoll-4194305-1",
            &elsewhere.name(1),
        ];
        for name in kept
            .into_iter()
            .chain([dead.name(1).as_str(), &dead.name(2)])
        {
            std::fs::create_dir(mount.path().join(name)).expect("mkdir");
        }
        let swept = sweep_stale(&layout);
        assert_eq!((swept.groups, swept.processes), (2, 0));
        let mut left: Vec<_> = std::fs::read_dir(mount.path())
            .expect("read")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect();
        left.sort();
        let mut kept = kept.map(str::to_owned);
        kept.sort();
        assert_eq!(left, kept);
    }
}
