//! The file system that a folder is on.

use std::ffi::OsString;
use std::io::Result;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Its kind, as the kernel calls it: `ext4`, `tmpfs`. `None` if the path does not exist, or nothing is known of it.
pub(crate) fn kind_of(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    kind_in(&mounts, &path)
}

/// What a program without special rights may still write there, in bytes.
///
/// # Errors
/// The system does not tell.
pub(crate) fn free_bytes(path: &Path) -> Result<u64> {
    let file_system = nix::sys::statvfs::statvfs(path)?;
    Ok(file_system
        .blocks_available()
        .saturating_mul(file_system.fragment_size()))
}

/// The kind of the file system that this absolute path is on, according to the text of `/proc/self/mountinfo`: that of the
/// longest mount point above it. Of two at the same point, the later one hides the other.
fn kind_in(mounts: &str, path: &Path) -> Option<String> {
    let above = mounts.lines().filter_map(|line| {
        // ID, parent, device, root, mount point, options, any number of further fields; then kind, source, options.
        let (mount, file_system) = line.split_once(" - ")?;
        let point = unescaped(mount.split(' ').nth(4)?);
        let kind = file_system.split(' ').next()?;
        let depth = point.components().count();
        path.starts_with(&point).then_some((depth, kind))
    });
    // The last one of several with the same depth.
    let (_, kind) = above.max_by_key(|(depth, _)| *depth)?;
    Some(kind.to_owned())
}

/// A path as the kernel writes it: a space, a tab, a line feed and a backslash as three octal digits (`\040`).
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let digits = escaped.get(..3);
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &escaped[3..];
            }
            None => {
                bytes.push(b'\\');
                rest = escaped;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOUNTS: &str = "\
        22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n\
        23 22 0:20 / /proc rw,nosuid - proc proc rw\n\
        24 22 0:21 / /dev/shm rw shared:2 master:1 - tmpfs tmpfs rw\n\
        25 22 8:1 / /data rw - xfs /dev/sda1 rw\n\
        26 25 0:40 / /data/with\\040space\\134x rw - btrfs /dev/sdb rw\n\
        27 22 0:41 / /data rw - overlay overlay rw\n";

    #[test]
    fn a_path_is_on_the_file_system_of_its_longest_mount_point() {
        let kind = |path: &str| kind_in(MOUNTS, Path::new(path));
        for (path, expected) in [
            ("/", "ext4"),
            ("/home/x", "ext4"),
            ("/dev/shm", "tmpfs"),
            ("/dev/shm/a/b", "tmpfs"),
            ("/dev/shmx", "ext4"),
            ("/data/x", "overlay"),
            ("/data/with space\\x/y", "btrfs"),
        ] {
            assert_eq!(kind(path).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(kind_in("", Path::new("/")), None);
    }

    #[test]
    fn a_real_folder_has_a_kind_and_free_space() {
        assert_eq!(kind_of(Path::new("/proc/self")).as_deref(), Some("proc"));
        let folder = tempfile::tempdir().expect("temp");
        assert!(kind_of(folder.path()).is_some());
        assert!(free_bytes(folder.path()).expect("told") > 0);
        assert_eq!(kind_of(Path::new("/nowhere/at/all")), None);
        assert!(free_bytes(Path::new("/nowhere/at/all")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_of_a_kernel_makes_it_panic(mounts in ".*", path in "/.*") {
            let _ = kind_in(&mounts, Path::new(&path));
            let _ = unescaped(&mounts);
        }
    }
}
