//! The files beside a trial's record: its rows per second and its histograms.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use hdrhistogram::Histogram;
use plimsoll_core::latency::Series;
use plimsoll_core::record::Second;

use crate::error::ReportError;
use crate::{csv, hlog};

/// The rows per second of a trial; empty when there is no such file.
///
/// # Errors
/// When the file cannot be read or is broken.
pub(crate) fn seconds(folder: &Path, stem: &str) -> Result<Vec<Second>, ReportError> {
    let file = folder.join(format!("{stem}.csv"));
    let Some(bytes) = read(&file)? else {
        return Ok(Vec::new());
    };
    let text = String::from_utf8(bytes).map_err(|error| ReportError::broken(&file, error))?;
    csv::read(&text).map_err(|why| ReportError::broken(&file, why))
}

/// The histograms of these series in a trial; `None` when there is no such file.
///
/// # Errors
/// When the file cannot be read or is broken.
pub(crate) fn histograms<const N: usize>(
    folder: &Path,
    stem: &str,
    wanted: [Series; N],
) -> Result<Option<Vec<Histogram<u64>>>, ReportError> {
    let file = folder.join(format!("{stem}.hlog"));
    let Some(log) = read(&file)? else {
        return Ok(None);
    };
    let sum = |series| hlog::sum(&log, series).map_err(|why| ReportError::broken(&file, why));
    wanted
        .into_iter()
        .map(sum)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Reads a file, if it exists: a result that was shared may have only its records.
fn read(file: &Path) -> Result<Option<Vec<u8>>, ReportError> {
    match fs::read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ReportError::read(file, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_known_and_what_is_broken_is_named() {
        let place = tempfile::tempdir().unwrap();
        let both = [Series::NewestFromSchedule, Series::NewestFromWrite];
        assert!(seconds(place.path(), "trial-001").unwrap().is_empty());
        assert!(
            histograms(place.path(), "trial-001", both)
                .unwrap()
                .is_none()
        );
        for name in ["trial-001.csv", "trial-001.hlog"] {
            fs::write(place.path().join(name), "not ours").unwrap();
        }
        let error = seconds(place.path(), "trial-001").unwrap_err().to_string();
        assert!(error.contains("trial-001.csv is broken"), "{error}");
        let error = histograms(place.path(), "trial-001", both).unwrap_err();
        assert!(
            error.to_string().contains("trial-001.hlog is broken"),
            "{error}"
        );
    }
}
