//! What the target writes in the measured window, and what the disk below its data can do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use plimsoll_core::record::{BlockDevice, DiskProbe, FileSystem, Storage};
use plimsoll_engine::EngineSecond;
use plimsoll_host::disk::{DeviceCounters, probe};
use plimsoll_host::resources::{ProcessIo, Written, kernel_writers_cpu_us};
use plimsoll_host::signals::Stop;

use super::conditions::Conditions;
use super::stage::Staged;

/// Reads the counters at both ends of the window.
pub(super) struct StorageReadings {
    start_s: f64,
    end_s: f64,
    file_system: Option<FileSystem>,
    writes: Option<ProcessIo>,
    first: Option<Reading>,
    last: Option<Reading>,
}

struct Reading {
    at: Instant,
    device: Option<DeviceCounters>,
    target: Option<Written>,
    kernel_cpu_us: Option<u64>,
}

impl StorageReadings {
    /// Those of a target with a folder for its data; of others it reads nothing.
    pub(super) fn new(conditions: &Conditions, stage: &Staged) -> Self {
        let profile = &conditions.profile;
        let start_s = profile.ramp_s + profile.warm_up_s;
        let file_system = stage.data_file_system().cloned();
        let source = stage.source().filter(|_| file_system.is_some());
        Self {
            start_s,
            end_s: start_s + profile.measured_s,
            file_system,
            writes: source.map(ProcessIo::new),
            first: None,
            last: None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    pub(super) fn second_over(&mut self, second: &EngineSecond) {
        let now_s = (second.index + 1) as f64;
        if self.first.is_none() && now_s >= self.start_s {
            self.first = self.read();
        } else if self.first.is_some() && self.last.is_none() && now_s >= self.end_s {
            self.last = self.read();
        }
    }

    /// What was written; `None` for a target without a folder, or if the trial ended before its window did.
    pub(super) fn finish(mut self, probe: Option<DiskProbe>) -> Option<Storage> {
        if self.last.is_none() {
            self.last = self.read();
        }
        let (first, last) = (self.first?, self.last?);
        let device = last.device.zip(first.device);
        let device = device.and_then(|(last, first)| last.since(&first));
        let target = last.target.zip(first.target);
        let kernel_cpu_us = last.kernel_cpu_us.zip(first.kernel_cpu_us);
        Some(Storage {
            file_system: self.file_system?,
            seconds: (last.at - first.at).as_secs_f64(),
            target_written_bytes: target
                .map(|(last, first)| last.storage_bytes.saturating_sub(first.storage_bytes)),
            device_written_bytes: device.map(|device| device.written_bytes()),
            device_flushes: device.and_then(|device| device.flushes).map(|of| of.count),
            kernel_cpu_us: kernel_cpu_us.map(|(last, first)| last.saturating_sub(first)),
            probe,
        })
    }

    fn read(&mut self) -> Option<Reading> {
        let device = self.file_system.as_ref()?.device.as_ref();
        Some(Reading {
            at: Instant::now(),
            device: device.and_then(|device| DeviceCounters::read(device).ok()),
            target: self.writes.as_mut().and_then(|writes| writes.read().ok()),
            kernel_cpu_us: kernel_writers_cpu_us(),
        })
    }
}

/// What the disk below this folder can do. Each disk is measured once in a run, because it takes seconds. `None` if it
/// cannot be measured.
pub(super) fn probed(folder: &Path, file_system: &FileSystem, stop: &Stop) -> Option<DiskProbe> {
    static KNOWN: Mutex<BTreeMap<String, DiskProbe>> = Mutex::new(BTreeMap::new());
    let device = file_system.device.as_ref();
    let name = |device: &BlockDevice| device.name.clone();
    let disk = format!(
        "{} {}",
        file_system.kind,
        device.map(name).unwrap_or_default()
    );
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(probe) = known.get(&disk) {
        return Some(probe.clone());
    }
    let found = probe(folder, stop).ok()?;
    known.insert(disk, found.clone());
    Some(found)
}
