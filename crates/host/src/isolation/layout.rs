//! Which control group controllers this machine has, and where, read from `/proc/mounts` and `/proc/self/cgroup`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The controllers that Plimsoll uses. (`cpuacct` exists only in version 1; in version 2 every group counts its CPU
/// time.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// The quota.
    Cpu,
    /// CPU time used (version 1).
    Cpuacct,
    /// Which CPUs may be used.
    Cpuset,
    /// Memory used.
    Memory,
}

impl Controller {
    /// All controllers.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Cpuacct, Self::Cpuset, Self::Memory];

    /// The kernel's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Cpuset => "cpuset",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One mounted hierarchy and our place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Our own group, relative to the hierarchy's root; it begins with a slash.
    pub own: PathBuf,
}

impl Hierarchy {
    /// The folder of the group at `relative`, a path in the hierarchy.
    #[must_use]
    pub fn folder(&self, relative: &Path) -> PathBuf {
        self.mount
            .join(relative.strip_prefix("/").unwrap_or(relative))
    }

    /// Our own group's folder. In a container the kernel may report a path of the host that is not visible here, while
    /// the container's own group is mounted as the root. Then the folder is that root. (Such a path may also begin with
    /// `/..`, which must not lead out of the mount.)
    #[must_use]
    pub fn own_folder(&self) -> PathBuf {
        let folder = self.folder(&self.own);
        let climbs = self
            .own
            .components()
            .any(|part| part == std::path::Component::ParentDir);
        if folder.is_dir() && !climbs {
            folder
        } else {
            self.mount.clone()
        }
    }

    /// The folders in which a group of ours may be: our own group's, and those of the groups around it.
    pub(super) fn outward(&self) -> Vec<PathBuf> {
        let own = self.own_folder();
        let places = own
            .ancestors()
            .take_while(|folder| folder.starts_with(&self.mount));
        places.map(Path::to_path_buf).collect()
    }
}

/// The control group hierarchies of this machine. On a hybrid machine both kinds are present, and the controllers may
/// be in either.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// Version 1: the mounted controllers, each with its hierarchy. Controllers that are mounted together share one.
    pub v1: BTreeMap<Controller, Hierarchy>,
    /// Version 2, with or without controllers.
    pub v2: Option<Hierarchy>,
}

impl Layout {
    /// Parses the texts of `/proc/mounts` and `/proc/self/cgroup`. Lines that it does not understand are skipped,
    /// because both files are mostly about other things.
    #[must_use]
    pub fn parse(mounts: &str, self_cgroup: &str) -> Self {
        let mut layout = Self::default();
        for line in mounts.lines() {
            let mut fields = line.split(' ');
            let (Some(_), Some(mount), Some(kind), Some(options)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let mount = PathBuf::from(unescaped(mount));
            match kind {
                "cgroup2" if layout.v2.is_none() => {
                    layout.v2 = Some(Hierarchy {
                        mount,
                        own: own_path(self_cgroup, None).unwrap_or_else(|| "/".into()),
                    });
                }
                "cgroup" => layout.add_v1(&mount, options, self_cgroup),
                _ => {}
            }
        }
        layout
    }

    /// Reads this machine's two files. A machine without them has no control groups.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/mounts"), &read("/proc/self/cgroup"))
    }

    /// "v1", "v2", "hybrid" or "none", for the result's environment.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match (self.v1.is_empty(), &self.v2) {
            (true, None) => "none",
            (false, None) => "v1",
            (true, Some(_)) => "v2",
            (false, Some(_)) => "hybrid",
        }
    }

    fn add_v1(&mut self, mount: &Path, options: &str, self_cgroup: &str) {
        for controller in Controller::ALL {
            // The first mount of a controller counts; a second one is the same hierarchy shown elsewhere.
            if self.v1.contains_key(&controller)
                || !options.split(',').any(|option| option == controller.name())
            {
                continue;
            }
            let own = own_path(self_cgroup, Some(controller)).unwrap_or_else(|| "/".into());
            let mount = mount.to_path_buf();
            self.v1.insert(controller, Hierarchy { mount, own });
        }
    }
}

/// Our path in the hierarchy of `controller`, or in version 2 (`None`). A line reads `4:cpu,cpuacct:/some/path`, or
/// `0::/some/path` for version 2. The path may contain colons.
pub(super) fn own_path(self_cgroup: &str, controller: Option<Controller>) -> Option<PathBuf> {
    self_cgroup.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match controller {
            Some(controller) => controllers.split(',').any(|name| name == controller.name()),
            None => number == "0" && controllers.is_empty(),
        };
        ours.then(|| PathBuf::from(path))
    })
}

/// `/proc/mounts` writes blanks and backslashes in octal: `\040`.
fn unescaped(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| *first == b'\\');
        let value = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match value {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HYBRID_MOUNTS: &str = "\
proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";
    const HYBRID_SELF: &str = "\
9:name=systemd:/
4:memory:/job/f0fd
3:cpuset:/
2:cpuacct:/
1:cpu:/
0::/
";

    #[test]
    fn hybrid_with_every_controller_mounted_separately() {
        let layout = Layout::parse(HYBRID_MOUNTS, HYBRID_SELF);
        assert_eq!(layout.kind(), "hybrid");
        assert_eq!(layout.v1.len(), 4);
        let memory = &layout.v1[&Controller::Memory];
        assert_eq!(
            memory.folder(&memory.own),
            Path::new("/sys/fs/cgroup/memory/job/f0fd")
        );
        let cpu = &layout.v1[&Controller::Cpu];
        assert_eq!(cpu.folder(&cpu.own), Path::new("/sys/fs/cgroup/cpu/"));
        let unified = layout.v2.expect("mounted");
        assert_eq!(unified.mount, Path::new("/sys/fs/cgroup/unified"));
    }

    #[test]
    fn v1_with_controllers_mounted_together_and_a_controller_absent() {
        let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n\
                      cgroup /mnt/with\\040blank cgroup rw,memory 0 0\n";
        let layout = Layout::parse(mounts, "4:cpu,cpuacct:/user.slice\n2:memory:/a:b\n");
        assert_eq!(layout.kind(), "v1");
        assert_eq!(layout.v1[&Controller::Cpu], layout.v1[&Controller::Cpuacct]);
        assert_eq!(layout.v1[&Controller::Cpu].own, Path::new("/user.slice"));
        assert_eq!(
            layout.v1[&Controller::Memory].mount,
            Path::new("/mnt/with blank")
        );
        assert_eq!(layout.v1[&Controller::Memory].own, Path::new("/a:b"));
        assert!(!layout.v1.contains_key(&Controller::Cpuset));
    }

    #[test]
    fn v2_alone() {
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        let layout = Layout::parse(mounts, "0::/user.slice/user-1000.slice/session-3.scope\n");
        assert_eq!(layout.kind(), "v2");
        let unified = layout.v2.expect("mounted");
        assert_eq!(
            unified.folder(&unified.own),
            Path::new("/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope")
        );
    }

    #[test]
    fn no_control_groups_at_all() {
        assert_eq!(Layout::parse("proc /proc proc rw 0 0\n", "").kind(), "none");
    }

    #[test]
    fn a_path_of_the_host_falls_back_to_what_is_mounted() {
        let mount = tempfile::tempdir().expect("temp");
        let hierarchy = Hierarchy {
            mount: mount.path().into(),
            own: "/docker/0123".into(),
        };
        assert_eq!(hierarchy.own_folder(), mount.path());
        std::fs::create_dir_all(mount.path().join("docker/0123")).expect("mkdir");
        assert_eq!(hierarchy.own_folder(), mount.path().join("docker/0123"));
        let outside = Hierarchy {
            own: "/../..".into(),
            ..hierarchy
        };
        assert_eq!(outside.own_folder(), mount.path());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(mounts in ".{0,200}", own in ".{0,200}", escaped in r"[\\0-9a-z]{0,12}") {
            let line = format!("cgroup /{escaped} cgroup cpu 0 0\n{mounts}");
            let _ = Layout::parse(&line, &own);
        }
    }
}
