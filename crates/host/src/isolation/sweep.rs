//! Groups, network cards, images, folders of data and settings of CPUs that a killed run left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::awake::sweep_awake;
use super::cgroup::{kill_all_in, remove_group};
use super::layout::{Hierarchy, Layout};
use super::network::sweep_cards;
use super::view::GroupView;
use crate::data_folder::sweep_data;
use crate::disk::power::unmount_stale;
use crate::maker::Maker;

/// What a sweep found and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Control groups that were removed.
    pub groups: usize,
    /// Processes in them that were killed.
    pub processes: usize,
}

/// Removes what an earlier Plimsoll left behind because it was killed: its control groups, the processes in them, its
/// network cards, its mounted images, its targets' data, and what keeps CPUs awake. These processes lost their parents, so they escaped the signal that a parent's
/// death sends. Only what has our name is touched, and only if its maker is certainly dead: the name holds the maker's
/// process ID, its start time, and the process ID namespace in which both are valid.
#[must_use]
pub fn sweep_stale(layout: &Layout) -> Swept {
    let parents: BTreeSet<PathBuf> = layout
        .v1
        .values()
        .chain(&layout.v2)
        .flat_map(Hierarchy::outward)
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
    // Nobody writes there any more.
    sweep_data();
    sweep_awake();
    Swept {
        groups: names.len(),
        processes: processes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::layout::Controller;
    use crate::maker::tests::{elsewhere, nobody};

    #[test]
    fn only_groups_of_dead_makers_are_swept() {
        let mount = tempfile::tempdir().expect("temp");
        let hierarchy = Hierarchy {
            mount: mount.path().into(),
            // Groups are made around our own too.
            own: "/ours".into(),
        };
        std::fs::create_dir(mount.path().join("ours")).expect("mkdir");
        let layout = Layout {
            v1: [(Controller::Cpu, hierarchy)].into(),
            v2: None,
        };
        let us = Maker::us();
        let dead = nobody();
        let ours = us.name(1);
        let kept = [
            ours.as_str(),
            "docker",
            "plimsoll-4194305-1",
            &elsewhere().name(1),
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
        let mut kept = Vec::from(kept.map(str::to_owned));
        kept.push("ours".to_owned());
        kept.sort();
        assert_eq!(left, kept);
    }
}
