//! The result folder: how it is written and read.
//!
//! ```text
//! trial-001.json   one trial                       bracket.json       the load line of a find
//! trial-001.hlog   its latencies per second        bracket-SLO.json   the same by a further SLO of the same search
//! trial-001.csv    one row per second              calibration.json   what the client can generate
//! fleet.json       what the agents can generate    inference.json     what an inference server holds alone
//! check.json       conformance, case by case       comparison.json    two targets, or two results, held against each other
//! ranking.json     several targets, whose own results are in folders below
//! baseline/        trials that those of a search, or of a comparison, are compared with
//! records.tar.gz   all of the above packed, in their place (`plimsoll report DIR --pack`)
//! live.json        what a running command shows; gone when it ends, and no part of the result
//! report.html, summary.md, junit.xml, step-summary.md, badge.svg, and as svg and as png chart, cost, percentiles, timeline, ranking, overlay and ratios: renderings, made
//! from the above
//! ```
//!
//! The JSON file of a trial is written last. If it exists, so do the other two.

mod atomic;
mod live;
mod load;
mod packed;
pub(crate) mod slug;
mod trial_log;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_core::record::{
    Bracket, Calibration, ClientCosts, Comparison, FleetCalibration, InferenceCalibration, Ranking,
    SearchPlan, Second, Trial,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use live::{LIVE, read_live};
pub use load::{
    Results, SearchView, StoredTrial, load, load_baselines, load_search_plan, load_trial,
};
pub use packed::{PACKED, Packing, pack};
pub use trial_log::TrialLog;

use crate::csv;
use crate::error::ReportError;
use crate::hlog::IntervalHistograms;

/// The load line of a search.
pub const BRACKET: &str = "bracket.json";
/// The comparison of two targets, or of two results.
pub const COMPARISON: &str = "comparison.json";
/// The ranking of several targets.
pub const RANKING: &str = "ranking.json";
/// What this machine's client can generate.
pub const CALIBRATION: &str = "calibration.json";
/// What the agents of a fleet can generate.
pub const FLEET: &str = "fleet.json";
/// The file of what an inference server holds alone.
pub const INFERENCE: &str = "inference.json";
/// How a search was started.
pub const SEARCH_PLAN: &str = "search.json";
/// The conformance check, case by case.
pub const CHECK: &str = "check.json";

/// A folder that receives results.
#[derive(Debug, Clone)]
pub struct ResultFolder {
    path: PathBuf,
}

/// The folder of logs within a result folder.
const LOGS: &str = "logs";
/// The folder of baselines within a result folder. They are part of the result, and none of their own.
pub const BASELINE: &str = "baseline";

impl ResultFolder {
    /// Creates the folder, or takes an existing one that is empty or already holds results. New trials are then
    /// numbered after the existing ones.
    ///
    /// # Errors
    /// When the path is not a folder, the folder holds something other than results, or it cannot be created.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, ReportError> {
        let path = path.into();
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => return Err(ReportError::NotAFolder(path)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path)?,
            Err(error) => return Err(ReportError::write(&path, error)),
        }
        let names = names(&path)?;
        // A command whose target did not start leaves only logs. A crash leaves the live file, and perhaps a baseline.
        let nothing_else = names
            .iter()
            .all(|name| atomic::is_leftover(name) || [LOGS, BASELINE, LIVE].contains(&&**name));
        if names.iter().any(|name| name == PACKED) {
            return Err(ReportError::IsPacked(path));
        }
        if nothing_else || load::holds_a_result(&path, &names) {
            Ok(Self { path })
        } else {
            Err(ReportError::NotOurs(path))
        }
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder within this one for the trials that those of this result are compared with. It is created if it does not
    /// exist.
    ///
    /// # Errors
    /// As for [`ResultFolder::create`].
    pub fn of_baselines(&self) -> Result<Self, ReportError> {
        Self::create(self.path.join(BASELINE))
    }

    /// Writes the three files of a trial, and returns their common stem, for example `trial-001`.
    ///
    /// # Errors
    /// When the system refuses, or the trial could not be read back.
    pub fn write_trial(
        &self,
        trial: &Trial,
        seconds: &[Second],
        intervals: &[IntervalHistograms],
    ) -> Result<String, ReportError> {
        let mut log = self.begin_log(&trial.started_at)?;
        for interval in intervals {
            log.push(interval.start_s, interval.duration_s, &interval.set)?;
        }
        self.write_trial_with_log(trial, seconds, log)
    }

    /// The same with an interval log that was written during the trial: [`ResultFolder::begin_log`].
    ///
    /// # Errors
    /// When the system refuses, or the trial could not be read back.
    pub fn write_trial_with_log(
        &self,
        trial: &Trial,
        seconds: &[Second],
        log: TrialLog,
    ) -> Result<String, ReportError> {
        let stem = format!("trial-{:03}", self.last_trial_number()? + 1);
        let json_name = format!("{stem}.json");
        let json = to_json(&json_name, trial)?;
        log.finish(&format!("{stem}.hlog"))?;
        let rows = csv::of(seconds);
        atomic::write(&self.path, &format!("{stem}.csv"), rows.as_bytes())?;
        atomic::write(&self.path, &json_name, &json)?;
        Ok(stem)
    }

    /// Writes `bracket.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_bracket(&self, bracket: &Bracket) -> Result<(), ReportError> {
        atomic::write(&self.path, BRACKET, &to_json(BRACKET, bracket)?)
    }

    /// Writes the bracket of a further SLO of the same search, and returns its file name: `bracket-strict.json` for the
    /// SLO `strict`. An SLO name that cannot be part of a file name is converted. Two names never share a file.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_further_bracket(&self, bracket: &Bracket) -> Result<String, ReportError> {
        let name = further_bracket(&bracket.slo);
        atomic::write(&self.path, &name, &to_json(&name, bracket)?)?;
        Ok(name)
    }

    /// Writes `comparison.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_comparison(&self, comparison: &Comparison) -> Result<(), ReportError> {
        atomic::write(&self.path, COMPARISON, &to_json(COMPARISON, comparison)?)
    }

    /// Writes `ranking.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_ranking(&self, ranking: &Ranking) -> Result<(), ReportError> {
        atomic::write(&self.path, RANKING, &to_json(RANKING, ranking)?)
    }

    /// Writes `search.json`, which says how a search is started, before its first trial.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write_search_plan(&self, plan: &SearchPlan) -> Result<(), ReportError> {
        atomic::write(&self.path, SEARCH_PLAN, &to_json(SEARCH_PLAN, plan)?)
    }

    /// Writes `calibration.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_calibration(&self, calibration: &Calibration) -> Result<(), ReportError> {
        atomic::write(&self.path, CALIBRATION, &to_json(CALIBRATION, calibration)?)
    }

    /// Writes `calibration-WORKLOAD.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_client_costs(&self, costs: &ClientCosts) -> Result<(), ReportError> {
        let name = client_costs(&costs.workload);
        atomic::write(&self.path, &name, &to_json(&name, costs)?)
    }

    /// Writes `fleet.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_fleet(&self, calibration: &FleetCalibration) -> Result<(), ReportError> {
        atomic::write(&self.path, FLEET, &to_json(FLEET, calibration)?)
    }

    /// Writes `inference.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_inference(&self, calibration: &InferenceCalibration) -> Result<(), ReportError> {
        atomic::write(&self.path, INFERENCE, &to_json(INFERENCE, calibration)?)
    }

    /// Writes `check.json`.
    ///
    /// # Errors
    /// When the system refuses, or the record could not be read back.
    pub fn write_check(&self, check: &serde_json::Value) -> Result<(), ReportError> {
        let json = to_json(CHECK, check)?;
        load::check_of(&json).map_err(|why| ReportError::record(CHECK, why))?;
        atomic::write(&self.path, CHECK, &json)
    }

    /// Writes a rendering.
    pub(crate) fn write_rendering(&self, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
        atomic::write(&self.path, name, bytes)
    }

    /// Removes a rendering that no longer matches the records in the folder.
    pub(crate) fn remove_rendering(&self, name: &str) -> Result<(), ReportError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Ok(()) => atomic::sync_folder(&self.path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(ReportError::write(&path, error)),
        }
    }

    /// A folder for renderings only. It is created if it does not exist.
    pub(crate) fn for_renderings(path: &Path) -> Result<Self, ReportError> {
        if !path.is_dir() {
            make(path)?;
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The greatest number among the files of trials, complete or not. A trial that a crash interrupted keeps its
    /// number.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn last_trial_number(&self) -> Result<u32, ReportError> {
        let names = names(&self.path)?;
        let numbers = names.iter().filter_map(|name| trial_number(name));
        Ok(numbers.max().unwrap_or(0))
    }
}

/// The prefix of the file names of further brackets.
/// What the names of the files begin with that have the costs of a workload's work.
const CLIENT_COSTS: &str = "calibration-";
const FURTHER_BRACKET: &str = "bracket-";

/// The file name of the bracket by a further SLO.
pub(crate) fn further_bracket(slo: &str) -> String {
    format!("{FURTHER_BRACKET}{}.json", slug::of(slo))
}

fn is_further_bracket(name: &str) -> bool {
    name.starts_with(FURTHER_BRACKET) && name.ends_with(".json")
}

/// The file of what a workload's work costs the client.
pub(crate) fn client_costs(workload: &str) -> String {
    format!("{CLIENT_COSTS}{}.json", slug::of(workload))
}

/// The workload in the name of such a file; `None` for other names.
fn costs_of(name: &str) -> Option<&str> {
    name.strip_prefix(CLIENT_COSTS)?.strip_suffix(".json")
}

/// Whether a file of that name is a record, or belongs to a trial's record.
fn is_record_file(name: &str) -> bool {
    let plain = !name.contains(['/', '\\', '\0']);
    plain && (trial_number(name).is_some() || is_record(name))
}

/// Whether a file of that name is a record.
fn is_record(name: &str) -> bool {
    let others = [
        BRACKET,
        COMPARISON,
        CALIBRATION,
        FLEET,
        INFERENCE,
        CHECK,
        RANKING,
        SEARCH_PLAN,
    ];
    (name.ends_with(".json") && trial_number(name).is_some())
        || is_further_bracket(name)
        || costs_of(name).is_some()
        || others.contains(&name)
}

/// The number in `trial-001.json` and its siblings.
fn trial_number(name: &str) -> Option<u32> {
    let (stem, extension) = name.split_once('.')?;
    let digits = stem.strip_prefix("trial-")?;
    let ours = matches!(extension, "json" | "hlog" | "csv")
        && digits.len() >= 3
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    ours.then(|| digits.parse().ok()).flatten()
}

fn make(path: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(path).map_err(|error| ReportError::write(path, error))?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => atomic::sync_folder(parent),
        _ => atomic::sync_folder(Path::new(".")),
    }
}

/// The names of the files in a folder. A name that is not UTF-8 is converted lossily: it is not one of ours.
fn names(path: &Path) -> Result<Vec<String>, ReportError> {
    let read = |error| ReportError::read(path, error);
    fs::read_dir(path)
        .map_err(read)?
        .map(|entry| {
            let entry = entry.map_err(read)?;
            Ok(entry.file_name().to_string_lossy().into_owned())
        })
        .collect()
}

/// Pretty JSON, checked by reading it back. JSON has no NaN: a record with one would be written with `null` and could
/// never be read again.
fn to_json<T: Serialize + DeserializeOwned>(
    file: &str,
    record: &T,
) -> Result<Vec<u8>, ReportError> {
    let mut json =
        serde_json::to_vec_pretty(record).map_err(|error| ReportError::record(file, error))?;
    serde_json::from_slice::<T>(&json).map_err(|error| ReportError::record(file, error))?;
    json.push(b'\n');
    Ok(json)
}
