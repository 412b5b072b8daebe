//! A control group that has a CPU only when nothing else wants it.

use std::path::PathBuf;

use super::cgroup::{remove_group, unique_name, write_value};
use super::layout::{Controller, Layout};

/// A control group whose processes run only when nothing outside of it wants the CPU (`cpu.idle`, since Linux 5.15).
///
/// Dropping it removes it. Its processes must have ended by then.
#[derive(Debug)]
pub(crate) struct IdleGroup {
    folder: PathBuf,
}

impl IdleGroup {
    /// Makes one, as far up as we may: a group gives way only to its siblings, and to what is in those. `None` where we
    /// may not make any.
    pub(crate) fn make(layout: &Layout) -> Option<Self> {
        let name = unique_name();
        [layout.v1.get(&Controller::Cpu), layout.v2.as_ref()]
            .into_iter()
            .flatten()
            .flat_map(|hierarchy| hierarchy.outward().into_iter().rev())
            .find_map(|place| Self::make_at(place.join(&name)))
    }

    fn make_at(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir(&folder).ok()?;
        let made = Self { folder };
        // Where version 2 has no controller `cpu`, there is no such file.
        write_value(&made.folder, "cpu.idle", "1").ok()?;
        Some(made)
    }

    /// Takes the process in. Where that is refused, the process stays where it is.
    pub(crate) fn take(&self, pid: i32) {
        let _ = write_value(&self.folder, "cgroup.procs", &pid.to_string());
    }

    #[cfg(test)]
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
}

impl Drop for IdleGroup {
    fn drop(&mut self) {
        // A later run sweeps it.
        let _ = remove_group(&self.folder);
    }
}
