//! Reading a result folder. Strict: a file that is broken is named, never passed over.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::record::{Bracket, Calibration, SCHEMA_VERSION, Trial};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{BRACKET, CALIBRATION, CHECK, names, trial_number};
use crate::check::Check;
use crate::error::ReportError;

/// All records of a result folder.
#[derive(Debug, Clone)]
pub struct Results {
    /// Where they are from.
    pub path: PathBuf,
    /// Trials by number.
    pub trials: Vec<StoredTrial>,
    /// The load line, where there was a find.
    pub bracket: Option<Bracket>,
    /// The calibration, where there was one.
    pub calibration: Option<Calibration>,
    /// Conformance, where it was checked.
    pub check: Option<Check>,
}

/// A trial and where it is kept.
#[derive(Debug, Clone)]
pub struct StoredTrial {
    /// Stem of its files, for example `trial-001`.
    pub stem: String,
    /// The record.
    pub trial: Trial,
}

/// Reads all records of a result folder. What a crash left behind and files that are not records are passed over.
///
/// # Errors
/// When the folder cannot be read, holds no result, or one of its records is broken, missing or from a later Plimsoll.
pub fn load(path: impl Into<PathBuf>) -> Result<Results, ReportError> {
    let path = path.into();
    let names: BTreeSet<String> = names(&path)?.into_iter().collect();
    let mut results = Results {
        trials: trials(&path, &names)?,
        bracket: optional(&path, &names, BRACKET)?,
        calibration: optional(&path, &names, CALIBRATION)?,
        check: None,
        path,
    };
    if names.contains(CHECK) {
        let file = results.path.join(CHECK);
        let check = check_of(&read(&file)?).map_err(|why| ReportError::broken(&file, why))?;
        results.check = Some(check);
    }
    if let Some(bracket) = &results.bracket {
        every_trial_is_there(&results.path, bracket, &names)?;
    }
    let nothing = results.trials.is_empty()
        && results.bracket.is_none()
        && results.calibration.is_none()
        && results.check.is_none();
    if nothing {
        return Err(ReportError::NoResult(results.path));
    }
    Ok(results)
}

/// Whether one of these files is a record of ours, in whatever version.
pub(super) fn holds_a_result(path: &Path, names: &[String]) -> bool {
    let is_record =
        |name: &&String| is_trial(name) || [BRACKET, CALIBRATION, CHECK].contains(&name.as_str());
    names.iter().filter(is_record).any(|name| {
        let json = fs::read(path.join(name)).unwrap_or_default();
        let record: Value = serde_json::from_slice(&json).unwrap_or_default();
        record.get("schema_version").is_some() || (name == CHECK && check_of(&json).is_ok())
    })
}

/// A check record.
pub(super) fn check_of(json: &[u8]) -> Result<Check, serde_json::Error> {
    serde_json::from_slice(json)
}

fn is_trial(name: &str) -> bool {
    name.ends_with(".json") && trial_number(name).is_some()
}

fn trials(path: &Path, names: &BTreeSet<String>) -> Result<Vec<StoredTrial>, ReportError> {
    let mut found: Vec<&String> = names.iter().filter(|name| is_trial(name)).collect();
    found.sort_by_key(|name| trial_number(name));
    found
        .into_iter()
        .map(|name| {
            Ok(StoredTrial {
                stem: name.trim_end_matches(".json").to_owned(),
                trial: record(&path.join(name))?,
            })
        })
        .collect()
}

fn optional<T: DeserializeOwned>(
    path: &Path,
    names: &BTreeSet<String>,
    name: &str,
) -> Result<Option<T>, ReportError> {
    let there = names.contains(name);
    there.then(|| record(&path.join(name))).transpose()
}

/// One record. Its version is looked at first: the fields of a later one mean nothing here.
fn record<T: DeserializeOwned>(file: &Path) -> Result<T, ReportError> {
    let bytes = read(file)?;
    let json: Value =
        serde_json::from_slice(&bytes).map_err(|error| ReportError::broken(file, error))?;
    let found = json
        .get("schema_version")
        .and_then(Value::as_u64)
        .ok_or_else(|| ReportError::broken(file, "it has no `schema_version`"))?;
    if found > u64::from(SCHEMA_VERSION) {
        return Err(ReportError::Newer {
            path: file.to_owned(),
            found,
            known: SCHEMA_VERSION,
        });
    }
    serde_json::from_slice(&bytes).map_err(|error| ReportError::broken(file, error))
}

fn read(file: &Path) -> Result<Vec<u8>, ReportError> {
    fs::read(file).map_err(|error| ReportError::read(file, error))
}

/// A bracket without its evidence is no result.
fn every_trial_is_there(
    path: &Path,
    bracket: &Bracket,
    names: &BTreeSet<String>,
) -> Result<(), ReportError> {
    for trial in &bracket.trials {
        let stem = trial.file.trim_end_matches(".json");
        if !names.contains(&format!("{stem}.json")) {
            let why = format!("it names {stem}.json, which is not in the folder");
            return Err(ReportError::broken(&path.join(BRACKET), why));
        }
    }
    Ok(())
}
