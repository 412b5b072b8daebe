//! Shuts a mounted ext4 down, so that it sends nothing to its disk any more.
//!
//! A shutdown must never meet another file system. If a mount failed and nobody noticed, the folder would be on the
//! file system below, perhaps the machine's root. So the device of the folder is compared first.
//!
//! Source: `fs/ext4/ioctl.c` in the kernel.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::stat::major;

use super::loop_device;
use super::with_path;

/// `EXT4_GOING_FLAGS_NOLOGFLUSH`: not even the open transaction is written.
const NO_LOG_FLUSH: u32 = 2;

nix::ioctl_read!(ext4_ioc_shutdown, b'X', 125, u32);

/// Shuts the ext4 that is mounted here down, if it is on this loop device. A second time changes nothing.
///
/// # Errors
/// Something else is mounted here, or the kernel refuses.
#[allow(unsafe_code)]
pub(super) fn shut_down(point: &Path, device: u64) -> io::Result<()> {
    let folder = File::open(point).map_err(with_path("opening", point))?;
    let found = folder.metadata().map_err(with_path("asking", point))?.dev();
    if found != device || major(found) != loop_device::MAJOR {
        let why = format!(
            "{} is not on its image any more, so nothing was cut",
            point.display()
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    let mut flags = NO_LOG_FLUSH;
    // SAFETY: the request reads a number of 32 bits at this address, which lives until the call returns.
    let cut = unsafe { ext4_ioc_shutdown(folder.as_raw_fd(), &raw mut flags) };
    cut.map(drop)
        .map_err(|error| with_path("cutting the power of", point)(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_file_system_is_ever_shut_down() {
        let folder = tempfile::tempdir().expect("temp");
        let device = folder.path().metadata().expect("there").dev();
        if major(device) == loop_device::MAJOR {
            plimsoll_testing::skipped!("folders for temporary files are on a loop device here");
            return;
        }
        // Neither that of a folder where nothing is mounted, nor one that is on no loop device.
        for device in [device, device + 1] {
            let error = shut_down(folder.path(), device).expect_err("not an image");
            assert!(error.to_string().ends_with("nothing was cut"), "{error}");
        }
        std::fs::write(folder.path().join("file"), "still works").expect("written");
    }
}
