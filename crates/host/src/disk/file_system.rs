//! The file system of a folder, and the device below it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};
use nix::sys::statvfs::statvfs;
use plimsoll_core::record::{BlockDevice, FileSystem};

use super::counters;
use super::mounts::Mount;
use super::with_path;

/// File systems that keep their files in memory.
const IN_MEMORY: [&str; 4] = ["devtmpfs", "hugetlbfs", "ramfs", "tmpfs"];

/// An overlay may lie on another one. Nobody stacks more of them than this.
const LAYERS: u32 = 8;

/// What the kernel knows about block devices, by their numbers.
const DEVICES: &str = "/sys/dev/block";

/// The file system of this folder, with the device that it writes to.
///
/// # Errors
/// The folder cannot be opened, or its mount is not visible to us.
pub fn file_system(folder: &Path) -> io::Result<FileSystem> {
    below(folder, LAYERS)
}

fn below(folder: &Path, layers: u32) -> io::Result<FileSystem> {
    let mount = Mount::of(folder)?;
    let free_bytes = free_bytes(folder)?;
    let found = |in_memory, device: Result<BlockDevice, String>| {
        let (device, no_device) = match device {
            Ok(device) => (Some(device), None),
            Err(why) => (None, Some(why)),
        };
        FileSystem {
            kind: mount.kind.clone(),
            in_memory,
            free_bytes,
            device,
            no_device,
        }
    };
    if mount.kind != "overlay" {
        let in_memory = IN_MEMORY.contains(&mount.kind.as_str());
        return Ok(found(in_memory, device_of(&mount)));
    }
    let Some(upper) = mount.option("upperdir") else {
        return Ok(found(
            false,
            Err("the overlay has no upper folder".to_owned()),
        ));
    };
    // In a container, this path is usually the host's, and means nothing here.
    let lower = (layers > 0).then(|| below(&upper, layers - 1));
    let Some(Ok(lower)) = lower else {
        let why = format!(
            "the overlay's upper folder {} is not visible",
            upper.display()
        );
        return Ok(found(false, Err(why)));
    };
    let why = lower.no_device.unwrap_or_default();
    Ok(found(lower.in_memory, lower.device.ok_or(why)))
}

/// What we may still write, which is less than what is free where blocks are kept for root.
#[allow(clippy::useless_conversion)] // These numbers have 32 bits on some machines.
fn free_bytes(folder: &Path) -> io::Result<u64> {
    let state = statvfs(folder).map_err(|error| with_path("asking", folder)(error.into()))?;
    let blocks = u64::from(state.blocks_available());
    Ok(blocks.saturating_mul(u64::from(state.fragment_size())))
}

/// The device of a mount, or why there is none.
fn device_of(mount: &Mount) -> Result<BlockDevice, String> {
    let kind = &mount.kind;
    if IN_MEMORY.contains(&kind.as_str()) {
        return Err(format!("{kind} keeps its files in memory"));
    }
    let (major, minor) = match mount.major {
        // Made up by the kernel. Btrfs does that, and still has a device as its source.
        0 => numbers_of(&mount.source).ok_or_else(|| format!("{kind} has no block device"))?,
        major => (major, mount.minor),
    };
    let stats = std::fs::read_to_string(counters::DISKSTATS)
        .map_err(|error| format!("{} cannot be read: {error}", counters::DISKSTATS))?;
    let name = counters::name_of(&stats, major, minor).ok_or_else(|| {
        format!(
            "the device {major}:{minor} is not in {}",
            counters::DISKSTATS
        )
    })?;
    Ok(BlockDevice {
        name,
        major,
        minor,
        flush_device: flush_device(Path::new(DEVICES), major, minor),
    })
}

fn numbers_of(source: &Path) -> Option<(u64, u64)> {
    let device = source
        .starts_with("/dev")
        .then(|| source.metadata().ok())??;
    Some((major(device.rdev()), minor(device.rdev()))).filter(|(major, _)| *major > 0)
}

/// The device below this one that counts flush requests: see [`BlockDevice::flush_device`].
///
/// A request to flush a partition is one to its disk. One to a logical volume is passed on to the devices below it, and
/// only these count it.
fn flush_device(devices: &Path, major: u64, minor: u64) -> Option<String> {
    let mut folder = devices
        .join(format!("{major}:{minor}"))
        .canonicalize()
        .ok()?;
    loop {
        if folder.join("partition").exists() {
            folder.pop();
            continue;
        }
        let below = std::fs::read_dir(folder.join("slaves"));
        let mut below = below
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        match (below.next(), below.next()) {
            (Some(only), None) => folder = further_down(&folder, &only)?,
            (Some(_), Some(_)) => return None,
            (None, _) => break,
        }
    }
    // Without a volatile cache, what the disk has taken is safe, and the kernel sends no flush requests.
    let cache = std::fs::read_to_string(folder.join("queue/write_cache"));
    if cache.is_ok_and(|cache| cache.trim() == "write through") {
        return None;
    }
    // In the names of files, the kernel replaces a slash.
    Some(folder.file_name()?.to_str()?.replace('!', "/"))
}

/// The folder that a link leads to, unless it leads back.
fn further_down(from: &Path, link: &Path) -> Option<PathBuf> {
    link.canonicalize().ok().filter(|folder| folder != from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_file_system_of_a_folder_has_a_device_or_a_reason() {
        let folder = tempfile::tempdir().expect("temp");
        let found = file_system(folder.path()).expect("known");
        assert!(!found.kind.is_empty() && found.free_bytes > 0, "{found:?}");
        assert_ne!(
            found.device.is_some(),
            found.no_device.is_some(),
            "{found:?}"
        );
        if let Some(device) = &found.device {
            assert!(!found.in_memory, "{found:?}");
            assert!(counters::DeviceCounters::read(device).is_ok(), "{found:?}");
        }
        assert!(file_system(&folder.path().join("gone")).is_err());
    }

    #[test]
    fn memory_is_no_disk() {
        let proc = file_system(Path::new("/proc")).expect("mounted");
        assert_eq!(proc.no_device.as_deref(), Some("proc has no block device"));
        let shared = Path::new("/dev/shm");
        if !shared.is_dir() {
            plimsoll_testing::skipped!("there is no /dev/shm");
            return;
        }
        let found = file_system(shared).expect("known");
        if found.kind != "tmpfs" {
            plimsoll_testing::skipped!("/dev/shm is no tmpfs: {found:?}");
            return;
        }
        assert!(found.in_memory && found.device.is_none(), "{found:?}");
        let why = found.no_device.expect("a reason");
        assert_eq!(why, "tmpfs keeps its files in memory");
    }

    /// Unmounts when the test ends, however it ends.
    struct Mounted(PathBuf);

    impl Drop for Mounted {
        fn drop(&mut self) {
            nix::mount::umount(&self.0).expect("unmounted");
        }
    }

    #[test]
    fn an_overlay_writes_to_the_device_of_its_upper_folder() {
        use nix::mount::{MsFlags, mount};
        let folder = tempfile::tempdir().expect("temp");
        let at = |name: &str| folder.path().join(name);
        for name in ["lower", "upper", "work", "point"] {
            std::fs::create_dir(at(name)).expect("made");
        }
        let option = |name: &str| format!("{name}dir={}", at(name).display());
        let options = ["lower", "upper", "work"].map(option).join(",");
        let flags = MsFlags::empty();
        let kind = Some("overlay");
        if let Err(error) = mount(kind, &at("point"), kind, flags, Some(options.as_str())) {
            plimsoll_testing::skipped!("no overlay can be mounted: {error}");
            return;
        }
        let _mounted = Mounted(at("point"));
        let upper = file_system(&at("upper")).expect("known");
        let overlay = file_system(&at("point")).expect("known");
        assert_eq!(overlay.kind, "overlay");
        assert_eq!(overlay.device, upper.device);
        assert_eq!(overlay.in_memory, upper.in_memory);
        // As in a container, where the path is one of the host's.
        std::fs::rename(at("upper"), at("elsewhere")).expect("renamed");
        let overlay = file_system(&at("point")).expect("known");
        assert_eq!(overlay.device, None);
        let why = overlay.no_device.expect("a reason");
        assert!(why.ends_with("upper is not visible"), "{why}");
    }

    /// Devices as sysfs shows them: sda with a partition, an array of two disks, and logical volumes on them.
    fn devices() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("temp");
        let at = |path: &str| root.path().join(path);
        let device = |path: &str, cache: &str, numbers: &str, below: &[&str]| {
            std::fs::create_dir_all(at(path).join("queue")).expect("made");
            std::fs::create_dir_all(at(path).join("slaves")).expect("made");
            std::fs::write(at(path).join("queue/write_cache"), cache).expect("written");
            symlink(at(path), at("block").join(numbers)).expect("linked");
            for other in below {
                let name = Path::new(other).file_name().expect("a name");
                symlink(at(other), at(path).join("slaves").join(name)).expect("linked");
            }
        };
        std::fs::create_dir(at("block")).expect("made");
        device("pci/sda", "write back\n", "8:0", &[]);
        device("pci/sdb", "write through\n", "8:16", &[]);
        device("pci/cciss!c0d0", "write back\n", "104:0", &[]);
        std::fs::create_dir(at("pci/sda/sda1")).expect("made");
        std::fs::write(at("pci/sda/sda1/partition"), "1\n").expect("written");
        symlink(at("pci/sda/sda1"), at("block/8:1")).expect("linked");
        device("virtual/dm-0", "write back\n", "252:0", &["pci/sda/sda1"]);
        device("virtual/dm-1", "write back\n", "252:1", &["virtual/dm-0"]);
        device(
            "virtual/md0",
            "write back\n",
            "9:0",
            &["pci/sda", "pci/sdb"],
        );
        root
    }

    #[test]
    fn flushes_are_counted_by_the_disk_at_the_bottom() {
        let root = devices();
        let of = |major, minor| flush_device(&root.path().join("block"), major, minor);
        assert_eq!(of(8, 0).as_deref(), Some("sda"));
        assert_eq!(of(8, 1).as_deref(), Some("sda"), "a partition");
        assert_eq!(of(252, 0).as_deref(), Some("sda"), "a volume on it");
        assert_eq!(of(252, 1).as_deref(), Some("sda"), "a volume on a volume");
        assert_eq!(of(104, 0).as_deref(), Some("cciss/c0d0"));
        assert_eq!(of(9, 0), None, "two disks");
        assert_eq!(of(8, 16), None, "no cache to flush");
        assert_eq!(of(1, 1), None, "unknown");
    }
}
