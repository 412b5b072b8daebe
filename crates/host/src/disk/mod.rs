//! The disk below a folder: what it is, how fast it flushes, what was written to it, and what a loss of power leaves.
//!
//! ```text
//! file_system  the file system of a folder, and the device below it
//! mounts       the mounts of this process
//! counters     what a device has written and flushed
//! probe        how fast a disk makes writes permanent
//! power        a power cut without the machine's
//! shutdown     what makes ext4 send nothing more
//! loop_device  a file as a block device
//! left_behind  the names of our files, and what a killed run left in a folder
//! ```
//!
//! What processes wrote is in [`crate::resources::ProcessIo`].

mod counters;
mod file_system;
mod left_behind;
mod loop_device;
mod mounts;
pub mod power;
mod probe;
mod shutdown;

use std::io;
use std::path::Path;

pub use counters::{DeviceCounters, Flushes};
pub use file_system::file_system;
pub use probe::probe;

/// Adds to an error what was being done, and to which path.
fn with_path(what: &str, path: &Path) -> impl Fn(io::Error) -> io::Error {
    let doing = format!("{what} {}", path.display());
    move |error| io::Error::new(error.kind(), format!("{doing}: {error}"))
}
