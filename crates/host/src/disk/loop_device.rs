//! A file as a block device.
//!
//! Source: `loop(4)`, and the kernel's `include/uapi/linux/loop.h`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::with_path;

/// Hands out loop devices.
pub(super) const CONTROL: &str = "/dev/loop-control";

/// The major number of all loop devices.
pub(super) const MAJOR: u64 = 7;

/// The device takes a file only in blocks of this size, which direct I/O can do on all disks of today.
pub(super) const BLOCK_BYTES: u32 = 4096;

/// Another program may take the free device that we were told of. That does not happen many times in a row.
const TRIES: u32 = 32;

/// The device lets go of its file when nobody has it open or mounted any more.
const AUTOCLEAR: u32 = 4;
/// What the device writes to its file goes past the page cache.
const DIRECT_IO: u32 = 16;

/// `struct loop_config` with the `struct loop_info64` that is in it. We leave most of it 0.
#[repr(C)]
struct Config {
    file: u32,
    block_bytes: u32,
    device_inode_offset_size: [u64; 5],
    number_and_encryption: [u32; 3],
    flags: u32,
    file_name: [u8; 64],
    encryption_name: [u8; 64],
    encryption_key: [u8; 32],
    unused: [u64; 2],
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<Config>() == 304);

nix::ioctl_none_bad!(loop_ctl_get_free, 0x4c82);
nix::ioctl_write_ptr_bad!(loop_configure, 0x4c0a, Config);

/// A loop device. Once this is dropped and the device is not mounted, the device lets go of its file. That also holds
/// if this process is killed.
#[derive(Debug)]
pub(super) struct LoopDevice {
    path: PathBuf,
    /// Its numbers, in one.
    device: u64,
    /// Keeps the device while it is not mounted. It is read-only, because there are kernels that mount no device that
    /// somebody may write to.
    _held: File,
}

impl LoopDevice {
    /// Attaches a file that is open for reading and writing. Its length must be a multiple of [`BLOCK_BYTES`].
    ///
    /// # Errors
    /// This is not allowed, or there is no loop device. Linux before 5.8 cannot do it this way.
    pub(super) fn attach(file: &File) -> io::Result<Self> {
        let control = open_to_write(Path::new(CONTROL))?;
        for _ in 0..TRIES {
            let path = PathBuf::from(format!("/dev/loop{}", free_number(&control)?));
            let device = open_to_write(&path)?;
            let attached = match configure(&device, file, AUTOCLEAR | DIRECT_IO) {
                // Most kernels do without direct I/O where the file system has none. In case that one does not:
                Err(Errno::EINVAL) => configure(&device, file, AUTOCLEAR),
                other => other,
            };
            match attached {
                Ok(()) => {
                    return Ok(Self {
                        device: device.metadata()?.rdev(),
                        _held: File::open(&path).map_err(with_path("opening", &path))?,
                        path,
                    });
                }
                Err(Errno::EBUSY) => {}
                Err(error) => return Err(with_path("attaching an image to", &path)(error.into())),
            }
        }
        let why = format!("{CONTROL} names only devices that others take before us");
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its numbers, as `stat` shows them for the files on it.
    pub(super) fn device(&self) -> u64 {
        self.device
    }

    /// Whether it writes to its file past the page cache.
    pub(super) fn has_direct_io(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        let setting = Path::new("/sys/block").join(name).join("loop/dio");
        std::fs::read_to_string(setting).is_ok_and(|on| on.trim() == "1")
    }
}

fn open_to_write(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(with_path("opening", path))
}

/// The number of a loop device that has no file. The kernel makes one if there is none.
#[allow(unsafe_code)]
fn free_number(control: &File) -> io::Result<i32> {
    // SAFETY: this request takes no argument.
    let number = unsafe { loop_ctl_get_free(control.as_raw_fd()) };
    number.map_err(|error| with_path("asking", Path::new(CONTROL))(error.into()))
}

#[allow(unsafe_code)]
fn configure(device: &File, file: &File, flags: u32) -> Result<(), Errno> {
    let config = Config {
        file: file.as_raw_fd().unsigned_abs(),
        block_bytes: BLOCK_BYTES,
        device_inode_offset_size: [0; 5],
        number_and_encryption: [0; 3],
        flags,
        file_name: [0; 64],
        encryption_name: [0; 64],
        encryption_key: [0; 32],
        unused: [0; 2],
        reserved: [0; 8],
    };
    // SAFETY: `config` has the layout that the request expects, and lives until the call returns. The kernel only reads
    // it.
    unsafe { loop_configure(device.as_raw_fd(), &raw const config) }.map(drop)
}
