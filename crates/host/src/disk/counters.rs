//! What a block device has written and flushed, from `/proc/diskstats`.
//!
//! Source: the kernel's `Documentation/admin-guide/iostats.rst`. It numbers the fields after the device's name, so its
//! fields 16 and 17 (flush requests, since Linux 5.5) are the 19th and 20th of a line.

use std::io;
use std::path::Path;

use plimsoll_core::record::BlockDevice;

use super::with_path;

pub(super) const DISKSTATS: &str = "/proc/diskstats";

/// The kernel counts in sectors of this size, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// What a device did since boot; what [`DeviceCounters::since`] returns is what it did meanwhile. What other programs
/// did with the same device is included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// Writes that were completed. Neighbouring ones may have been merged before.
    pub writes: u64,
    /// Sectors of 512 bytes that were written.
    pub write_sectors: u64,
    /// What was flushed; `None` if the kernel or the device does not count it.
    pub flushes: Option<Flushes>,
}

/// The flush requests of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flushes {
    /// Flush requests that were completed. The kernel joins those that wait at the same time.
    pub count: u64,
    /// The time that they took, in ms.
    pub time_ms: u64,
}

impl DeviceCounters {
    /// Reads the counters of this device.
    ///
    /// # Errors
    /// `/proc/diskstats` cannot be read, or the device is gone.
    pub fn read(device: &BlockDevice) -> io::Result<Self> {
        let path = Path::new(DISKSTATS);
        let text = std::fs::read_to_string(path).map_err(with_path("reading", path))?;
        Self::parse(&text, device).ok_or_else(|| {
            let why = format!("the device {} is not in {DISKSTATS}", device.name);
            io::Error::new(io::ErrorKind::NotFound, why)
        })
    }

    fn parse(text: &str, device: &BlockDevice) -> Option<Self> {
        let row = rows(text).find(|row| row.name == device.name)?;
        let flush_device = device.flush_device.as_deref();
        let flush_row = flush_device.and_then(|name| rows(text).find(|row| row.name == name));
        Some(Self {
            writes: row.field(5)?,
            write_sectors: row.field(7)?,
            flushes: flush_row.and_then(|row| {
                Some(Flushes {
                    count: row.field(16)?,
                    time_ms: row.field(17)?,
                })
            }),
        })
    }

    /// The bytes that were written.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.write_sectors.saturating_mul(SECTOR_BYTES)
    }

    /// What happened since an earlier reading of the same device. A counter that overflowed once meanwhile is counted
    /// on. `None` if a counter fell without having overflowed: then another device has the name now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        self.since_with(earlier, usize::BITS)
    }

    /// The same on a kernel whose long numbers have this many bits.
    fn since_with(&self, earlier: &Self, long_bits: u32) -> Option<Self> {
        let flushes = match (self.flushes, earlier.flushes) {
            (Some(now), Some(before)) => Some(Flushes {
                count: grown(before.count, now.count, long_bits)?,
                // Times have 32 bits on every machine. They overflow after 50 days of flushing.
                time_ms: grown(before.time_ms, now.time_ms, 32)?,
            }),
            _ => None,
        };
        Some(Self {
            writes: grown(earlier.writes, self.writes, long_bits)?,
            write_sectors: grown(earlier.write_sectors, self.write_sectors, long_bits)?,
            flushes,
        })
    }
}

/// How much a counter of this many bits grew. A counter of 64 bits does not overflow in the life of a machine.
fn grown(before: u64, now: u64, bits: u32) -> Option<u64> {
    if let Some(grown) = now.checked_sub(before) {
        return Some(grown);
    }
    let values = 1u64.checked_shl(bits)?;
    values
        .checked_sub(before)
        .map(|to_overflow| to_overflow + now)
}

/// The name of the device with these numbers.
pub(super) fn name_of(text: &str, major: u64, minor: u64) -> Option<String> {
    let row = rows(text).find(|row| (row.major, row.minor) == (major, minor))?;
    Some(row.name.to_owned())
}

/// One line of `/proc/diskstats`.
struct Row<'a> {
    major: u64,
    minor: u64,
    name: &'a str,
    fields: Vec<&'a str>,
}

impl Row<'_> {
    /// A field by its number in the kernel's documentation, which begins at 1.
    fn field(&self, number: usize) -> Option<u64> {
        self.fields.get(number - 1)?.parse().ok()
    }
}

fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        Some(Row {
            major: words.next()?.parse().ok()?,
            minor: words.next()?.parse().ok()?,
            name: words.next()?,
            fields: words.collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
   8       0 sda 41 1 144 49 1232 9 4736 27 0 53 80 76 11 38 22 208 72
   8       1 sda1 40 1 140 48 1200 9 4700 26 0 50 78 76 11 38 22 0 0
 254       0 vda 5 6 7 8 9 10 11 12 0 13 14 15 16 17 18
";

    fn device(name: &str, flush_device: Option<&str>) -> BlockDevice {
        BlockDevice {
            name: name.to_owned(),
            flush_device: flush_device.map(str::to_owned),
            ..BlockDevice::default()
        }
    }

    #[test]
    fn a_partition_has_its_own_writes_and_the_flushes_of_its_disk() {
        let read = DeviceCounters::parse(TEXT, &device("sda1", Some("sda"))).expect("there");
        let expected = DeviceCounters {
            writes: 1200,
            write_sectors: 4700,
            flushes: Some(Flushes {
                count: 208,
                time_ms: 72,
            }),
        };
        assert_eq!(read, expected);
        assert_eq!(read.written_bytes(), 4700 * 512);
        assert_eq!(name_of(TEXT, 8, 1).as_deref(), Some("sda1"));
        assert_eq!(name_of(TEXT, 8, 2), None);
    }

    #[test]
    fn flushes_that_nobody_counts_are_absent() {
        // The line of a kernel before 5.5, and a device whose flushes are not to be had.
        for device in [device("vda", Some("vda")), device("sda", None)] {
            let read = DeviceCounters::parse(TEXT, &device).expect("there");
            assert!(read.writes > 0 && read.flushes.is_none(), "{read:?}");
        }
        assert_eq!(DeviceCounters::parse(TEXT, &device("sdb", None)), None);
    }

    #[test]
    fn counters_that_overflow_are_counted_on() {
        let of = |writes, count, time_ms| DeviceCounters {
            writes,
            write_sectors: 2 * writes,
            flushes: Some(Flushes { count, time_ms }),
        };
        let u32_max = u64::from(u32::MAX);
        // The time has 32 bits on each machine; the rest only where long numbers have.
        let now = of(7, 9, 4);
        let passed = now
            .since_with(&of(5, 9, u32_max), 64)
            .expect("the same device");
        assert_eq!(passed, of(2, 0, 5));
        let before = DeviceCounters {
            write_sectors: 14,
            ..of(u32_max - 2, 3, 4)
        };
        let passed = now.since_with(&before, 32).expect("the same device");
        assert_eq!((passed.writes, passed.write_sectors), (10, 0));
        assert_eq!(now.since_with(&before, 64), None, "64 bits do not overflow");
        // More than such a kernel can count.
        assert_eq!(now.since_with(&of(u32_max - 2, 3, 4), 32), None);
    }

    #[test]
    fn without_flushes_in_both_readings_there_is_no_difference() {
        let now = DeviceCounters {
            writes: 3,
            write_sectors: 3,
            flushes: Some(Flushes::default()),
        };
        let passed = now.since(&DeviceCounters::default()).expect("the same");
        assert_eq!((passed.writes, passed.flushes), (3, None));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r"[a-z0-9 \n]{0,200}") {
            let _ = DeviceCounters::parse(&text, &device("sda", Some("sda")));
        }

        #[test]
        fn what_a_counter_grew_by_is_found(before in 0u64..=u64::from(u32::MAX), by in 0u64..=u64::from(u32::MAX)) {
            let now = (before + by) % (1 << 32);
            prop_assert_eq!(grown(before, now, 32), Some(by));
        }
    }
}
