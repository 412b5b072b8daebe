//! The mounts that this process sees, from `/proc/self/mountinfo`. Source: `proc_pid_mountinfo(5)`.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::with_path;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    id: u64,
    /// Numbers of the device; the major number is 0 where the kernel made them up.
    pub(super) major: u64,
    pub(super) minor: u64,
    /// Where it is mounted.
    pub(super) point: PathBuf,
    /// The type of the file system.
    pub(super) kind: String,
    /// What is mounted: often a device.
    pub(super) source: PathBuf,
    /// The options of the file system, as the kernel escaped them.
    options: String,
}

impl Mount {
    /// The mount that this folder is in.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let opened = File::open(folder).map_err(with_path("opening", folder))?;
        // A path alone is not enough: a later mount may hide an earlier one, and links lead elsewhere.
        let about = PathBuf::from(format!("/proc/self/fdinfo/{}", opened.as_raw_fd()));
        let text = std::fs::read_to_string(&about).map_err(with_path("reading", &about))?;
        let id = id_in(&text);
        let found = id.and_then(|id| all().ok()?.into_iter().find(|mount| mount.id == id));
        found.ok_or_else(|| {
            let why = format!(
                "the mount of {} is not in /proc/self/mountinfo, as in a chroot",
                folder.display()
            );
            io::Error::new(io::ErrorKind::NotFound, why)
        })
    }

    /// The value of an option of the file system.
    pub(super) fn option(&self, name: &str) -> Option<PathBuf> {
        let mut options = self.options.split(',');
        let value = options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))?;
        Some(unescape(value))
    }
}

/// All mounts.
pub(super) fn all() -> io::Result<Vec<Mount>> {
    let path = Path::new("/proc/self/mountinfo");
    let text = std::fs::read(path).map_err(with_path("reading", path))?;
    // Names can be in any encoding. One that is not UTF-8 must not hide the others.
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| parse(&String::from_utf8_lossy(line)))
        .collect())
}

fn id_in(fdinfo: &str) -> Option<u64> {
    let line = fdinfo.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    line?.trim().parse().ok()
}

/// `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`; there may be any number of fields
/// like `master:1`.
fn parse(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let id = mount.next()?.parse().ok()?;
    let (major, minor) = mount.nth(1)?.split_once(':')?;
    let point = unescape(mount.nth(1)?);
    let mut file_system = file_system.split(' ');
    Some(Mount {
        id,
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        point,
        kind: file_system.next()?.to_owned(),
        source: unescape(file_system.next()?),
        options: file_system.next().unwrap_or_default().to_owned(),
    })
}

/// The kernel writes a space, a tab, a line break, a comma and a backslash as `\` and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let escaped = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = match escaped {
            Some(_) => &after[3..],
            None => after,
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = r"36 35 98:2 /a /mnt/with\040space rw,noatime master:1 shared:7 - ext4 /dev/sd\134a rw,errors=continue";
        let mount = parse(line).expect("a mount");
        let expected = Mount {
            id: 36,
            major: 98,
            minor: 2,
            point: "/mnt/with space".into(),
            kind: "ext4".to_owned(),
            source: r"/dev/sd\a".into(),
            options: "rw,errors=continue".to_owned(),
        };
        assert_eq!(mount, expected);
        // There may be no optional field.
        let line = "22 27 0:21 / /proc rw,relatime - proc proc rw";
        assert_eq!(parse(line).expect("a mount").kind, "proc");
        for broken in [
            "",
            "36 35 98:0 /a /b rw",
            "36 35 98 /a /b rw - ext4 x rw",
            "a - b",
        ] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn options_of_an_overlay_may_have_commas() {
        let line = r"9 8 0:40 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/up\054per/a\040b,workdir=/w";
        let mount = parse(line).expect("a mount");
        assert_eq!(mount.option("upperdir"), Some("/up,per/a b".into()));
        assert_eq!(mount.option("upper"), None);
        assert_eq!(mount.option("index"), None);
    }

    #[test]
    fn a_folder_is_in_the_mount_that_is_on_top() {
        let proc = Mount::of(Path::new("/proc/self")).expect("mounted");
        assert_eq!(
            (proc.kind.as_str(), proc.point.as_path()),
            ("proc", Path::new("/proc"))
        );
        let error = Mount::of(Path::new("/nowhere/at/all")).expect_err("no such folder");
        assert!(
            error.to_string().starts_with("opening /nowhere/at/all: "),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in r"[0-9a-z:/\\ -]{0,80}") {
            let _ = (parse(&line), unescape(&line), id_in(&line));
        }
    }
}
