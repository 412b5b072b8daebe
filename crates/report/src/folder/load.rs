//! Reads a result folder. It is strict: a broken file is named, never skipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::record::{
    Bracket, Calibration, ClientCosts, Comparison, FleetCalibration, InferenceCalibration, Ranking,
    SCHEMA_VERSION, SearchPlan, Trial,
};
use plimsoll_document::Tellers;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

use super::{
    BASELINE, BRACKET, CALIBRATION, CHECK, COMPARISON, FLEET, INFERENCE, RANKING, SEARCH_PLAN,
    costs_of, further_bracket, is_further_bracket, is_record, names, packed, trial_number,
};
use crate::check::Check;
use crate::error::ReportError;
use crate::words;

/// All records of a result folder.
#[derive(Debug, Clone)]
pub struct Results {
    /// Where the records come from: a result folder, or a file with packed records.
    pub path: PathBuf,
    /// Trials by number.
    pub trials: Vec<StoredTrial>,
    /// The load line, if the folder has a search.
    pub bracket: Option<Bracket>,
    /// The load lines by the further SLOs of the same search, by name of the SLO.
    pub further_brackets: Vec<Bracket>,
    /// The comparison, if there is one.
    pub comparison: Option<Comparison>,
    /// The ranking of several targets, if there is one.
    pub ranking: Option<Ranking>,
    /// The calibration, if there is one.
    pub calibration: Option<Calibration>,
    /// What the work of a workload costs the client, by name of the workload.
    pub client_costs: Vec<ClientCosts>,
    /// What the agents of a fleet can drive, if that was measured.
    pub fleet: Option<FleetCalibration>,
    /// What an inference server holds alone, if that was measured.
    pub inference: Option<InferenceCalibration>,
    /// The conformance check, if there is one.
    pub check: Option<Check>,
    /// The folder where packed records were unpacked. It is removed with the last copy of the results.
    unpacked: Option<Arc<TempDir>>,
    /// Who tells what only a workload has.
    pub tellers: Tellers,
}

impl Results {
    /// The folder that holds the files beside the records.
    pub(crate) fn files(&self) -> &Path {
        self.unpacked
            .as_ref()
            .map_or(self.path.as_path(), |unpacked| unpacked.path())
    }

    /// The searches: one, or one for each SLO of a search with several SLOs, the first SLO first.
    #[must_use]
    pub fn searches(&self) -> Vec<SearchView<'_>> {
        let brackets = || self.bracket.iter().chain(&self.further_brackets);
        let one_of_several = brackets().count() > 1;
        brackets()
            .map(|bracket| SearchView {
                bracket,
                trials: self
                    .trials
                    .iter()
                    .map(|stored| stored.judged_by(&bracket.slo))
                    .collect(),
                one_of_several,
            })
            .collect()
    }

    /// Trials that stand for themselves. A folder can hold such trials besides those of a search. In a comparison's
    /// folder all trials are its evidence.
    pub fn other_trials(&self) -> impl Iterator<Item = &StoredTrial> {
        let none_stands_alone = self.comparison.is_some();
        self.trials.iter().filter(move |stored| {
            let mut brackets = self.bracket.iter().chain(&self.further_brackets);
            !none_stands_alone && !brackets.any(|bracket| words::is_of_search(bracket, stored))
        })
    }
}

/// A search as one SLO judges it.
#[derive(Debug, Clone)]
pub struct SearchView<'a> {
    /// The load line by that SLO.
    pub bracket: &'a Bracket,
    /// All trials of the folder, those of the search judged by that SLO.
    pub trials: Vec<StoredTrial>,
    /// Whether the search had several SLOs.
    pub one_of_several: bool,
}

impl SearchView<'_> {
    /// The trials of the search.
    #[must_use]
    pub fn of_search(&self) -> Vec<&StoredTrial> {
        words::of_search(self.bracket, &self.trials).collect()
    }
}

/// A trial and where it is stored.
#[derive(Debug, Clone)]
pub struct StoredTrial {
    /// Stem of its files, for example `trial-001`.
    pub stem: String,
    /// The record.
    pub trial: Trial,
}

impl StoredTrial {
    /// The trial as the SLO of that name judges it, or as it is if that SLO does not.
    #[must_use]
    pub fn judged_by(&self, slo: &str) -> Self {
        let judged = self.trial.judged_by(slo);
        Self {
            stem: self.stem.clone(),
            trial: judged.unwrap_or_else(|| self.trial.clone()),
        }
    }
}

/// Reads all records of a result folder, loose or packed, or of a file with packed records. It skips what a crash left
/// behind, and files that are not records.
///
/// # Errors
/// When the folder cannot be read, holds no result, or one of its records is broken, missing or from a later Plimsoll.
pub fn load(path: impl Into<PathBuf>, tellers: Tellers) -> Result<Results, ReportError> {
    let path = path.into();
    let Some(archive) = packed::of(&path)? else {
        return load_loose(path, tellers);
    };
    let unpacked = packed::unpack(&archive)?;
    let mut results = load_loose(unpacked.path().to_owned(), tellers)
        .map_err(|error| error.within(unpacked.path(), &archive))?;
    results.path = path;
    results.unpacked = Some(Arc::new(unpacked));
    Ok(results)
}

fn load_loose(path: PathBuf, tellers: Tellers) -> Result<Results, ReportError> {
    let names: BTreeSet<String> = names(&path)?.into_iter().collect();
    let mut results = Results {
        trials: trials(&path, &names, tellers)?,
        bracket: optional(&path, &names, BRACKET)?,
        further_brackets: further_brackets(&path, &names)?,
        comparison: optional(&path, &names, COMPARISON)?,
        ranking: optional(&path, &names, RANKING)?,
        calibration: optional(&path, &names, CALIBRATION)?,
        client_costs: client_costs(&path, &names)?,
        fleet: optional(&path, &names, FLEET)?,
        inference: optional(&path, &names, INFERENCE)?,
        check: None,
        unpacked: None,
        path,
        tellers,
    };
    if names.contains(CHECK) {
        let file = results.path.join(CHECK);
        let check = check_of(&read(&file)?).map_err(|why| ReportError::broken(&file, why))?;
        results.check = Some(check);
    }
    if let Some(bracket) = &results.bracket {
        let trials = bracket.trials.iter().map(|trial| &trial.file);
        every_trial_is_there(&results.path.join(BRACKET), trials, &names)?;
    }
    for bracket in &results.further_brackets {
        let file = results.path.join(further_bracket(&bracket.slo));
        let trials = bracket.trials.iter().map(|trial| &trial.file);
        every_trial_is_there(&file, trials, &names)?;
    }
    if let Some(comparison) = &results.comparison {
        // If a side was read from another folder, its trials are there.
        let sides = [&comparison.a, &comparison.b].into_iter();
        let here = sides.filter(|side| side.folder.is_none());
        let trials = here.flat_map(|side| side.trials.iter().map(|trial| &trial.file));
        every_trial_is_there(&results.path.join(COMPARISON), trials, &names)?;
    }
    let nothing = results.trials.is_empty()
        && results.bracket.is_none()
        && results.further_brackets.is_empty()
        && results.comparison.is_none()
        && results.ranking.is_none()
        && results.calibration.is_none()
        && results.client_costs.is_empty()
        && results.fleet.is_none()
        && results.inference.is_none()
        && results.check.is_none();
    if nothing {
        return Err(ReportError::NoResult(results.path));
    }
    Ok(results)
}

/// The trials that those of this result are compared with, by number; none if there are none.
///
/// # Errors
/// When their folder cannot be read, or one of the records is broken or from a later Plimsoll.
pub fn load_baselines(path: &Path, tellers: Tellers) -> Result<Vec<StoredTrial>, ReportError> {
    let folder = path.join(BASELINE);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let names: BTreeSet<String> = names(&folder)?.into_iter().collect();
    trials(&folder, &names, tellers)
}

/// The trial in this record.
///
/// # Errors
/// When the file cannot be read, is broken, or is from a later Plimsoll.
pub fn load_trial(file: &Path, tellers: Tellers) -> Result<Trial, ReportError> {
    Ok(with_parameters(record(file)?, tellers))
}

/// How the search in this folder was started; `None` when there is none.
///
/// # Errors
/// When the folder cannot be read, or the record is broken or from a later Plimsoll.
pub fn load_search_plan(path: &Path) -> Result<Option<SearchPlan>, ReportError> {
    if packed::of(path)?.is_some() {
        return Err(ReportError::IsPacked(path.to_owned()));
    }
    let names: BTreeSet<String> = names(path)?.into_iter().collect();
    optional(path, &names, SEARCH_PLAN)
}

/// Whether one of these files is a Plimsoll record of any version.
pub(super) fn holds_a_result(path: &Path, names: &[String]) -> bool {
    names.iter().filter(|name| is_record(name)).any(|name| {
        let json = fs::read(path.join(name)).unwrap_or_default();
        let record: Value = serde_json::from_slice(&json).unwrap_or_default();
        record.get("schema_version").is_some() || (name == CHECK && check_of(&json).is_ok())
    })
}

/// Parses a check record.
pub(super) fn check_of(json: &[u8]) -> Result<Check, serde_json::Error> {
    serde_json::from_slice(json)
}

fn is_trial(name: &str) -> bool {
    name.ends_with(".json") && trial_number(name).is_some()
}

fn trials(
    path: &Path,
    names: &BTreeSet<String>,
    tellers: Tellers,
) -> Result<Vec<StoredTrial>, ReportError> {
    let mut found: Vec<&String> = names.iter().filter(|name| is_trial(name)).collect();
    found.sort_by_key(|name| trial_number(name));
    found
        .into_iter()
        .map(|name| {
            Ok(StoredTrial {
                stem: name.trim_end_matches(".json").to_owned(),
                trial: load_trial(&path.join(name), tellers)?,
            })
        })
        .collect()
}

/// Results of 0.1 have the parameters only in what their workload adds.
fn with_parameters(mut trial: Trial, tellers: Tellers) -> Trial {
    if trial.parameters.is_empty() {
        trial.parameters = tellers.of(&trial.workload).earlier_parameters(&trial);
    }
    trial
}

/// Sorted by file, and thus by the SLO's name.
fn further_brackets(path: &Path, names: &BTreeSet<String>) -> Result<Vec<Bracket>, ReportError> {
    let files = names.iter().filter(|name| is_further_bracket(name));
    files.map(|name| record(&path.join(name))).collect()
}

fn client_costs(path: &Path, names: &BTreeSet<String>) -> Result<Vec<ClientCosts>, ReportError> {
    let files = names
        .iter()
        .filter_map(|name| Some((name, costs_of(name)?)));
    files
        .map(|(name, workload)| {
            let mut costs: ClientCosts = record(&path.join(name))?;
            if costs.workload.is_empty() {
                workload.clone_into(&mut costs.workload);
            }
            Ok(costs)
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

/// Reads one record. It checks the version first, because the fields of a later version mean nothing here.
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

/// A record without its evidence is not a result. A pair that did not run names no file.
fn every_trial_is_there<'a>(
    record: &Path,
    files: impl Iterator<Item = &'a String>,
    names: &BTreeSet<String>,
) -> Result<(), ReportError> {
    for file in files.filter(|file| !file.is_empty()) {
        let stem = file.trim_end_matches(".json");
        if !names.contains(&format!("{stem}.json")) {
            let why = format!("it names {stem}.json, which is not in the folder");
            return Err(ReportError::broken(record, why));
        }
    }
    Ok(())
}
