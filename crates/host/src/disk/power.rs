//! A power cut without the machine's: files on a file system of their own, from which the kernel suddenly lets nothing
//! reach the disk any more.
//!
//! `kill -9` says nothing about `fsync`: the page cache survives it. Here the files are on an ext4 in an image, which a
//! loop device makes into a disk. [`Image::cut`] asks ext4 to shut down without a flush of its journal
//! (`EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`). From then on it sends nothing to its disk, and each write
//! and each flush fails. The caller then kills what wrote there, and [`Image::restore`] mounts the image again: ext4
//! replays its journal, as after any power cut. xfstests tests file systems in this way.
//!
//! What is lost is what ext4 had not sent to its disk: dirty pages, and the transaction that was open. So the loss is a
//! lower bound. A real disk has a cache too, and loses what it took and was not told to flush. The image loses nothing
//! of that kind, and the order of writes in a disk's cache cannot be wrong here.
//!
//! The loop device writes to its file with direct I/O where the file system below allows it: then what ext4 sent does
//! not stay in the page cache a second time, and a flush costs what it costs on the disk below. Without direct I/O a
//! cut loses the same, because it is made above the loop device. A flush is passed on to the file in both cases. It
//! costs more in an image than on the disk below, so an image is for losses and not for speeds.
//!
//! Nothing is left behind, however we end. The image's file has no name: it is removed as soon as it is open, and the
//! kernel frees it with the loop device. The device lets go of it when it is unmounted and our process is gone. What
//! remains after `kill -9` is the mount, whose folder has its maker's name; the next run finds and removes it, with
//! [`crate::isolation::sweep_stale`].
//!
//! Sources: `loop(4)`, `mke2fs(8)`, `umount(2)`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc::off_t;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::makedev;

use super::loop_device::{self, BLOCK_BYTES, LoopDevice};
use super::shutdown::shut_down;
use super::{left_behind, mounts, with_path};
use crate::maker::Maker;

/// The smallest image. In one that is much smaller, `mkfs.ext4` makes no journal.
pub const BYTES_MIN: u64 = 32 << 20;

const MKFS: &str = "mkfs.ext4";

/// The folder inside of the image that is handed out. The root of an ext4 is never empty.
const DATA: &str = "data";

/// How long to wait until a file system that was just in use can be unmounted.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// `CAP_SYS_ADMIN`, as a bit of a set of capabilities.
const SYS_ADMIN: u64 = 1 << 21;

/// Why this machine cannot make an image, in one line with the remedy; `None` if nothing speaks against it.
#[must_use]
pub fn why_not() -> Option<String> {
    if !may_mount() {
        return Some("a power cut needs an image that is mounted: run as root".to_owned());
    }
    if let Err(error) = OpenOptions::new()
        .read(true)
        .write(true)
        .open(loop_device::CONTROL)
    {
        return Some(format!(
            "a power cut needs a loop device, and {} cannot be opened ({error}): load the kernel module loop",
            loop_device::CONTROL
        ));
    }
    if mkfs().is_none() {
        return Some(format!(
            "a power cut needs {MKFS}: install the package e2fsprogs"
        ));
    }
    None
}

/// A folder on a disk of its own, whose power can be cut. Dropping this unmounts it, and frees its loop device and its
/// file. Kill what uses the folder before that.
#[derive(Debug)]
pub struct Image {
    point: PathBuf,
    data: PathBuf,
    device: LoopDevice,
}

impl Image {
    /// Makes an image of this size and mounts it on a folder inside of `at`. The space is taken from the file system of
    /// `at`, all of it at once.
    ///
    /// # Errors
    /// [`why_not`] has a reason, the size is below [`BYTES_MIN`], or there is not enough space.
    pub fn make(at: &Path, bytes: u64) -> io::Result<Self> {
        if let Some(why) = why_not() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        if bytes < BYTES_MIN {
            let why = format!("an image of {bytes} bytes is too small: {BYTES_MIN} at least");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        left_behind::remove_from(at);
        let at = at.canonicalize().map_err(with_path("opening", at))?;
        let point = at.join(left_behind::fresh_name());
        let device = LoopDevice::attach(&nameless(&point, bytes)?)?;
        make_file_system(device.path())?;
        let made = std::fs::DirBuilder::new().mode(0o755).create(&point);
        made.map_err(with_path("making the folder", &point))?;
        // From here on, dropping it removes what there is.
        let image = Self {
            data: point.join(DATA),
            point,
            device,
        };
        image.mount()?;
        let made = std::fs::create_dir(&image.data)
            // Or a cut would take the folder too.
            .and_then(|()| File::open(&image.point)?.sync_all());
        made.map_err(with_path("making the folder", &image.data))?;
        Ok(image)
    }

    /// The folder on the image, empty at first.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.data
    }

    /// Whether the image is written to past the page cache of the file system below.
    #[must_use]
    pub fn has_direct_io(&self) -> bool {
        self.device.has_direct_io()
    }

    /// Cuts the power. From now on nothing that is written in the folder reaches the disk, and what has not reached it
    /// is lost. Kill what uses the folder, then call [`Image::restore`]. Another cut before that changes nothing.
    ///
    /// # Errors
    /// The image is not mounted, or the kernel refuses.
    pub fn cut(&self) -> io::Result<()> {
        shut_down(&self.point, self.device.device())
    }

    /// Gives the power back: mounts the image again, so that ext4 replays its journal. The folder then holds what had
    /// reached the disk.
    ///
    /// # Errors
    /// A process still uses the folder, or what is on the disk cannot be mounted, or another program has a copy of the
    /// mount. Then the kernel keeps the file system as it was, without power, and nothing can be said about who writes to it.
    pub fn restore(&self) -> io::Result<()> {
        unmount(&self.point)?;
        self.mount()?;
        let flushed = File::open(&self.point).and_then(|folder| folder.sync_all());
        flushed.map_err(|error| {
            let why = format!(
                "{} has no power yet ({error}), because a program that began before the cut has a copy of this mount, as a container or `ip netns exec` has: end it, and measure again",
                self.point.display()
            );
            io::Error::new(io::ErrorKind::ResourceBusy, why)
        })
    }

    fn mount(&self) -> io::Result<()> {
        // The image was all zeros before, so nobody has to initialise its inodes in the background.
        let mounted = mount(
            Some(self.device.path()),
            &self.point,
            Some("ext4"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            Some("noinit_itable"),
        );
        mounted.map_err(|error| with_path("mounting an image on", &self.point)(error.into()))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // There is no caller to return an error to.
        if let Err(error) = discard(&self.point, self.device.device()) {
            eprintln!("plimsoll: {error}");
        }
    }
}

/// Unmounts the images that a killed run left behind, identified by their makers' names.
pub(crate) fn unmount_stale() {
    for mount in mounts::all().unwrap_or_default() {
        let name = mount.point.file_name().and_then(|name| name.to_str());
        let maker = name.and_then(Maker::of);
        let on_loop_device = mount.kind == "ext4" && mount.major == loop_device::MAJOR;
        if !on_loop_device || !maker.is_some_and(Maker::is_dead) {
            continue;
        }
        match discard(&mount.point, makedev(mount.major, mount.minor)) {
            Ok(()) => {}
            // Another Plimsoll that started at the same time was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => eprintln!("plimsoll: {error}"),
        }
    }
}

/// Unmounts an image that nobody needs any more and removes the folder that it was mounted on.
fn discard(point: &Path, device: u64) -> io::Result<()> {
    // What has not been written need not be written any more. Where this fails, unmounting only takes longer.
    let _ = shut_down(point, device);
    match umount2(point, MntFlags::empty()) {
        // Not mounted: making the image failed half way.
        Ok(()) | Err(Errno::EINVAL) => {}
        // Somebody still uses it. It vanishes from here now, and altogether once that ends.
        Err(Errno::EBUSY) => umount2(point, MntFlags::MNT_DETACH)
            .map_err(|error| with_path("unmounting", point)(error.into()))?,
        Err(error) => return Err(with_path("unmounting", point)(error.into())),
    }
    std::fs::remove_dir(point).map_err(with_path("removing the folder", point))
}

/// The kernel lets go of a killed process's files a moment after it is gone, so this retries for a while.
fn unmount(point: &Path) -> io::Result<()> {
    let deadline = Instant::now() + UNMOUNT_TIMEOUT;
    loop {
        match umount2(point, MntFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(Errno::EBUSY) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::EBUSY) => {
                let why = format!(
                    "{} cannot be unmounted, because a process uses it: kill the process first",
                    point.display()
                );
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            Err(error) => return Err(with_path("unmounting", point)(error.into())),
        }
    }
}

/// A file of this size without a name, on the file system of this path.
fn nameless(path: &Path, bytes: u64) -> io::Result<File> {
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let file = made.map_err(with_path("making the image", path))?;
    std::fs::remove_file(path).map_err(with_path("removing the image's name", path))?;
    let whole_blocks = bytes - bytes % u64::from(BLOCK_BYTES);
    let length = off_t::try_from(whole_blocks).map_err(io::Error::other)?;
    let taken = fallocate(&file, FallocateFlags::empty(), 0, length);
    taken.map_err(|error| {
        let error = io::Error::from(error);
        let why = format!(
            "taking {bytes} bytes for an image beside {}: {error}",
            path.display()
        );
        io::Error::new(error.kind(), why)
    })?;
    Ok(file)
}

fn make_file_system(device: &Path) -> io::Result<()> {
    let mkfs = mkfs().unwrap_or_else(|| MKFS.into());
    let mut command = Command::new(mkfs);
    // The block size is that of real disks of today; for small ones, 1 KiB would be chosen. To discard blocks would
    // give the space back that was just taken. A cut is an error to ext4, and some machines panic at errors by default.
    command.args([
        "-q",
        "-F",
        "-b",
        "4096",
        "-e",
        "continue",
        "-E",
        "nodiscard",
    ]);
    let output = command.arg(device).output();
    let output = output.map_err(with_path("running", Path::new(MKFS)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty());
    let why = format!("{MKFS} says: {}", first.unwrap_or("no reason"));
    Err(io::Error::other(why))
}

/// Where the program is. The folders of the system's own programs are not in everybody's path.
fn mkfs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders
        .map(|folder| folder.join(MKFS))
        .find(|program| program.is_file())
}

fn may_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective_capabilities(&status).is_some_and(|set| set & SYS_ADMIN != 0)
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let set = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
#[path = "power_tests.rs"]
mod tests;
