//! The disk below a folder, and how fast it makes writes permanent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file system of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystem {
    /// Its type, as the kernel names it: `ext4`, `tmpfs`, `overlay`.
    pub kind: String,
    /// Whether it keeps its files in memory only, as `tmpfs` does. A number measured there says nothing about
    /// durability.
    pub in_memory: bool,
    /// What we may still write there, in bytes.
    pub free_bytes: u64,
    /// The device that it writes to. For `overlay` it is the device of the upper folder. `null` if there is none, or if
    /// it could not be found.
    pub device: Option<BlockDevice>,
    /// Why `device` is `null`; `null` if there is a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_device: Option<String>,
}

/// A device in `/proc/diskstats`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// Its name in `/proc/diskstats`.
    pub name: String,
    /// Its major number.
    pub major: u64,
    /// Its minor number.
    pub minor: u64,
    /// The name of the device that counts the flush requests. The kernel counts them for whole disks only, so for a
    /// partition or a logical volume this is the disk below it. `null` if there are several disks below it, or if the
    /// disk has no volatile cache: then the kernel sends it no flush requests.
    pub flush_device: Option<String>,
}

/// How fast a disk makes writes permanent. Two kinds of writing are timed in a fresh file each: small writes with an
/// `fdatasync` after each, and large writes with one `fdatasync` at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskProbe {
    /// Where the probe wrote.
    pub file_system: FileSystem,
    /// Writes of 4 KiB that were made, each followed by an `fdatasync`. There are fewer than 2,000 if the time for them
    /// was over.
    pub flushes: u64,
    /// The median time of one such write with its `fdatasync`.
    pub flush_p50_us: f64,
    /// The 99th percentile of these times.
    pub flush_p99_us: f64,
    /// The longest time of one of them.
    pub flush_max_us: f64,
    /// How many of them were made per second.
    pub flushes_per_s: f64,
    /// The flush requests that the device completed per second meanwhile, those of other programs included. One
    /// `fdatasync` can need more than one. `null` if nobody counts them.
    #[serde(default)]
    pub device_flushes_per_s: Option<f64>,
    /// The bytes of the large writes: 64 MiB, or less if the time for them was over.
    pub sequential_bytes: u64,
    /// The rate of the large writes with their `fdatasync`, in 1,000,000 bytes per second.
    pub sequential_mb_per_s: f64,
}

/// What a target wrote in the measured window, and what the disk below its data can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Storage {
    /// What the target's data is on.
    pub file_system: FileSystem,
    /// Time between the two readings that the figures below are the difference of: about the measured window.
    pub seconds: f64,
    /// Bytes that the target caused to be written to storage; `null` if nobody counts them.
    pub target_written_bytes: Option<u64>,
    /// Bytes that the device wrote, for whomever; `null` if nobody counts them.
    pub device_written_bytes: Option<u64>,
    /// Flush requests that the device completed, for whomever; `null` if nobody counts them.
    pub device_flushes: Option<u64>,
    /// CPU time of the kernel's threads that write to disks, on all CPUs and for whomever; `null` if they are not visible.
    #[serde(default)]
    pub kernel_cpu_us: Option<u64>,
    /// What the disk can do, measured once before the first trial; `null` if it could not be measured.
    pub probe: Option<DiskProbe>,
}
