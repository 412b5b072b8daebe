//! What a running command shows: `live.json`, which exists only while the command runs.
//!
//! The command writes the file once a second, so it is not synced. Readers still find a whole file, and nobody needs it
//! after a crash of the machine.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use plimsoll_core::record::{Live, SCHEMA_VERSION};
use serde_json::Value;

use super::{ResultFolder, atomic};
use crate::error::ReportError;

/// The file with what a running command shows.
pub const LIVE: &str = "live.json";

impl ResultFolder {
    /// Writes `live.json`, replacing the previous one.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write_live(&self, live: &Live) -> Result<(), ReportError> {
        let mut json =
            serde_json::to_vec(live).map_err(|error| ReportError::record(LIVE, error))?;
        json.push(b'\n');
        atomic::write_unsynced(self.path(), LIVE, &json)
    }

    /// Removes `live.json`, because the command ends.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove_live(&self) -> Result<(), ReportError> {
        let path = self.path().join(LIVE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ReportError::write(&path, error))
            }
            _ => Ok(()),
        }
    }
}

/// What the command running in this folder shows. `None` where no command runs: there is no file, a crash left it
/// behind ([`Live::STALE_AFTER_S`]), or it cannot be read, for example because a later Plimsoll wrote it. `now` is the
/// time of day.
#[must_use]
pub fn read_live(folder: &Path, now: SystemTime) -> Option<Live> {
    let json = fs::read(folder.join(LIVE)).ok()?;
    let record: Value = serde_json::from_slice(&json).ok()?;
    let version = record.get("schema_version")?.as_u64()?;
    if version > u64::from(SCHEMA_VERSION) {
        return None;
    }
    let live: Live = serde_json::from_value(record).ok()?;
    is_live(&live, now).then_some(live)
}

/// Whether the file was written just now. A clock that was meanwhile set back a little does no harm.
fn is_live(live: &Live, now: SystemTime) -> bool {
    let Ok(updated) = humantime::parse_rfc3339_weak(&live.updated_at) else {
        return false;
    };
    let apart = match now.duration_since(updated) {
        Ok(age) => age,
        Err(ahead) => ahead.duration(),
    };
    // The time of day is written in whole seconds.
    apart <= Duration::from_secs(Live::STALE_AFTER_S + 1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use plimsoll_core::record::{
        LiveBracket, LiveCommand, LiveGate, LivePhases, LiveTrial, LoadUnit, Phase,
    };

    use plimsoll_document::Tellers;

    use super::*;

    const UPDATED_AT: &str = "2026-01-02T03:04:05Z";

    fn live(sessions: u32) -> Live {
        Live {
            schema_version: SCHEMA_VERSION,
            command: LiveCommand::Find,
            target: "rust-axum".to_owned(),
            targets: vec!["rust-axum".to_owned()],
            slo: "stt".to_owned(),
            profile: "quick".to_owned(),
            started_at: "2026-01-02T03:00:00Z".to_owned(),
            updated_at: UPDATED_AT.to_owned(),
            pid: 17,
            vcpu: Some(0.25),
            phases: LivePhases::default(),
            load_unit: LoadUnit::SESSIONS,
            trial: Some(LiveTrial {
                number: 2,
                sessions,
                why: "probe".to_owned(),
                phase: Phase::Starting,
                at_s: 0,
                errors: 0,
                sessions_lost: 0,
            }),
            gates: vec![LiveGate {
                name: "newest_p95_ms".to_owned(),
                threshold: 350.0,
                observed: None,
            }],
            seconds: Vec::new(),
            trials: Vec::new(),
            bracket: LiveBracket::default(),
            trials_left: 3,
            time_left_s: 63.5,
            ended: false,
        }
    }

    fn at(seconds_later: u64) -> SystemTime {
        humantime::parse_rfc3339(UPDATED_AT).unwrap() + Duration::from_secs(seconds_later)
    }

    #[test]
    fn it_comes_back_as_it_was_written_until_it_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(place.path()).unwrap();
        assert_eq!(read_live(place.path(), at(0)), None);
        folder.write_live(&live(400)).unwrap();
        folder.write_live(&live(800)).unwrap();
        assert_eq!(read_live(place.path(), at(1)), Some(live(800)));
        let names: Vec<_> = super::super::names(place.path()).unwrap();
        assert_eq!(names, [LIVE]);
        folder.remove_live().unwrap();
        assert_eq!(read_live(place.path(), at(1)), None);
        folder.remove_live().unwrap();
    }

    #[test]
    fn what_a_crash_left_behind_is_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(place.path()).unwrap();
        folder.write_live(&live(400)).unwrap();
        assert!(read_live(place.path(), at(5)).is_some());
        assert_eq!(read_live(place.path(), at(7)), None);
        let earlier = at(0) - Duration::from_secs(7);
        assert_eq!(read_live(place.path(), earlier), None);
        // It is not a result and does not block one: the folder can be used again.
        assert!(matches!(
            super::super::load(place.path(), Tellers::NONE),
            Err(ReportError::NoResult(_))
        ));
        assert!(ResultFolder::create(place.path()).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_not_live() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(LIVE);
        for text in ["", "{", "[]", "{\"schema_version\": 99}"] {
            fs::write(&file, text).unwrap();
            assert_eq!(read_live(place.path(), at(0)), None, "{text:?}");
        }
        let mut odd = live(400);
        odd.updated_at = "yesterday".to_owned();
        let folder = ResultFolder::create(place.path()).unwrap();
        folder.write_live(&odd).unwrap();
        assert_eq!(read_live(place.path(), at(0)), None);
    }

    #[test]
    fn a_reader_sees_whole_files_only() {
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(place.path()).unwrap();
        folder.write_live(&live(0)).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for sessions in 1..300 {
                    let mut live = live(sessions);
                    // Alternate long and short ones.
                    live.targets = vec!["x".repeat(100); (sessions as usize % 2) * 500];
                    folder.write_live(&live).unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                assert!(read_live(place.path(), at(0)).is_some());
            }
        });
    }
}
