//! Folders that requests name.

use plimsoll_report::history::Known;

use super::Site;
use super::problem::Problem;

/// Finds a folder by its name in the index.
pub(super) fn known(site: &Site, folder: &str) -> Result<Known, Problem> {
    let (history, _) = site.history()?;
    history
        .known(folder)?
        .ok_or_else(|| Problem::not_found("the history knows no such folder"))
}

/// The same, for a folder whose records can be read. If they cannot, the error says why.
pub(super) fn with_result(site: &Site, folder: &str) -> Result<Known, Problem> {
    let known = known(site, folder)?;
    readable(known)
}

/// Checks that a folder's records can be read.
pub(super) fn readable(known: Known) -> Result<Known, Problem> {
    match &known.broken {
        Some(why) => Err(Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            why.clone(),
        )),
        None if !known.holds_result => Err(Problem::not_found(
            "there is no result in this folder, or none yet",
        )),
        None => Ok(known),
    }
}
