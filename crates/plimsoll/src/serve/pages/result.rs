//! A result: the report of its folder, and the charts next to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{IntoResponse, Redirect, Response};
use plimsoll_report::render::{BADGE, CHART_STEMS, REPORT};
use plimsoll_report::{PACKED, ReportError, html, load};

use crate::serve::problem::Problem;
use crate::serve::{Answer, Site, folder, reply, url};
use crate::workloads::tellers;

/// What a browser may do with a report: at most what the report itself allows. The report may come from somewhere else.
/// So only the script that this version writes into its reports may run, and nothing may connect to anyone or open
/// anything.
fn report_policy() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        html::SCRIPT_SHA256
    )
}

/// The content type of a drawing.
const SVG: &str = "image/svg+xml";
/// A drawing that is opened by itself may run nothing.
const CHART_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// `name` is a folder followed by `/report.html` or by a chart. A folder alone redirects to its report, because the
/// report's links are relative to that.
pub(in crate::serve) fn answer(site: &Site, name: &str) -> Answer {
    let (history, refreshed) = site.history()?;
    if history.known(name)?.is_some() {
        return Ok(Redirect::to(&url::result(name)).into_response());
    }
    let unknown = || Problem::not_found("the history knows no such folder");
    let (name, file) = name.rsplit_once('/').ok_or_else(unknown)?;
    let known = history.known(name)?.ok_or_else(unknown)?;
    if file != REPORT {
        return chart(&known.path, file);
    }
    if !known.holds_result && refreshed.live.iter().any(|live| live == name) {
        return Ok(Redirect::to(&url::live(name)).into_response());
    }
    report(&folder::readable(known)?.path)
}

/// The report on disk, if it is at least as new as the records; otherwise one made now, which is not kept.
fn report(folder: &Path) -> Answer {
    let html = match fresh_report(folder) {
        Some(path) => fs::read(&path).map_err(|source| ReportError::Read { path, source })?,
        None => html::of(&load(folder, tellers())?)?.into_bytes(),
    };
    let response = reply("text/html; charset=utf-8", html);
    Ok(with_policy(response, &report_policy()))
}

fn with_policy(mut response: Response, policy: &str) -> Response {
    // A policy has only characters that a header allows. Without a policy, we would not send the answer at all.
    match HeaderValue::from_str(policy) {
        Ok(value) => {
            response
                .headers_mut()
                .insert(CONTENT_SECURITY_POLICY, value);
            response
        }
        Err(_) => Problem::ours().into_response(),
    }
}

/// The report, if none of the records changed after it was written.
fn fresh_report(folder: &Path) -> Option<PathBuf> {
    let report = folder.join(REPORT);
    let written = changed(&report)?;
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut records = entries.map(|entry| entry.path()).filter(|path| {
        let extension = path.extension();
        let packed = path.file_name().is_some_and(|name| name == PACKED);
        extension.is_some_and(|it| it == "json" || it == "csv" || it == "hlog") || packed
    });
    let fresh = records.all(|record| changed(&record).is_none_or(|at| at <= written));
    fresh.then_some(report)
}

/// When a file was changed; `None` if it is not a regular file, such as a link.
fn changed(path: &Path) -> Option<SystemTime> {
    let file = fs::symlink_metadata(path).ok()?;
    file.is_file().then(|| file.modified().ok()).flatten()
}

/// A chart by its name, which must be one that we know. Nothing else in a folder is handed out.
fn chart(folder: &Path, asked: &str) -> Answer {
    let unknown = || Problem::not_found("there is no such chart");
    let drawn = CHART_STEMS.iter().flat_map(|stem| {
        let files = [("svg", SVG), ("png", "image/png")];
        files.map(|(extension, content_type)| (format!("{stem}.{extension}"), content_type))
    });
    let mut files = drawn.chain([(BADGE.to_owned(), SVG)]);
    let (name, content_type) = files.find(|(name, _)| name == asked).ok_or_else(unknown)?;
    let path = folder.join(name);
    changed(&path).ok_or_else(unknown)?;
    let image = fs::read(&path).map_err(|_| unknown())?;
    Ok(with_policy(reply(content_type, image), CHART_POLICY))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    fn written(folder: &Path, name: &str, at_s: u64) {
        let file = File::create(folder.join(name)).expect("a file");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at_s);
        file.set_modified(at).expect("its time");
    }

    #[test]
    fn a_report_is_fresh_until_a_record_changes() {
        let place = tempfile::tempdir().expect("a scratch folder");
        let folder = place.path();
        written(folder, "trial-001.json", 100);
        assert_eq!(fresh_report(folder), None);
        written(folder, REPORT, 100);
        assert!(fresh_report(folder).is_some());
        written(folder, "junit.xml", 101);
        assert!(fresh_report(folder).is_some());
        written(folder, "bracket.json", 101);
        assert_eq!(fresh_report(folder), None);
    }

    #[test]
    fn a_report_or_a_chart_that_is_a_link_is_not_there() {
        let place = tempfile::tempdir().expect("a scratch folder");
        let folder = place.path();
        for name in [REPORT, "chart.svg"] {
            let made = std::os::unix::fs::symlink("/etc/hostname", folder.join(name));
            made.expect("a link");
        }
        assert_eq!(fresh_report(folder), None);
        assert!(chart(folder, "chart.svg").is_err());
        assert!(chart(folder, "trial-001.json").is_err());
    }
}
