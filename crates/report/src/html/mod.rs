//! `report.html`: the result as one file. It opens from disk, prints, and requests nothing from a network.
//!
//! The first screen has the answer, what bounds it, whether you can believe it, and the chart. Below it you can go down
//! to the percentile and the second. Everything is readable with scripts off: charts are SVG from [`crate::chart`],
//! folded parts are `details`. The script (`page.js`) only lets you choose a theme and a timeline, and shows the raw
//! JSON.
//!
//! The page stays under 1 MB, however many trials there are. Each part that grows with their number has its own budget,
//! which the most informative trials get first (`order`): timelines, raw records, and the sections of trials without a
//! search. The page names what did not fit, with the file that has it.
//!
//! - `write`: HTML whose text is always escaped;
//! - `parts`: tables, figures, lists; `sections`: one module per kind of result;
//! - `timelines`, `raw`: the parts with a budget.

mod order;
mod parts;
mod raw;
mod sections;
mod timelines;
mod write;

use crate::error::ReportError;
use crate::folder::Results;
use crate::render::{self, Chart};
use parts::{Contents, Levels};
use timelines::Timelines;
pub use write::{Attribute, Html};

/// The style sheet of the page.
const STYLE: &str = include_str!("page.css");
/// The script of the page.
const SCRIPT: &str = include_str!("page.js");
/// SHA-256 of the script, for the policy that allows no other script. The script is known at compile time, so a program
/// that renders needs no hash function. A test compares the two, and shows the right value when they differ.
pub const SCRIPT_SHA256: &str = "dfMPLhEuuC9tqGpc4AU130rv1p6AyDrbi5xLcYEfwwA=";

/// Everything that a section may need besides its own record.
struct Page<'a> {
    results: &'a Results,
    charts: &'a [Chart],
    timelines: &'a Timelines,
}

impl Page<'_> {
    /// The chart with that stem of its file names.
    fn chart(&self, stem: &str) -> Option<&str> {
        let found = self.charts.iter().find(|chart| chart.stem == stem);
        found.map(|chart| chart.svg.as_str())
    }
}

/// The page of a result folder.
///
/// # Errors
/// When the rows per second or the interval logs beside the records cannot be read or are broken.
pub fn of(results: &Results) -> Result<String, ReportError> {
    with_charts(results, &render::charts(results)?)
}

/// The same with charts that are already drawn.
pub(crate) fn with_charts(results: &Results, charts: &[Chart]) -> Result<String, ReportError> {
    let order = order::of(results);
    let timelines = Timelines::gather(results, &order)?;
    let page = Page {
        results,
        charts,
        timelines: &timelines,
    };
    let mut contents = Contents::default();
    let body = body(&page, &mut contents);
    let raw = raw::of(results, &order);
    contents.push("raw", "Raw JSON");
    Ok(document(&title(results), &contents, &body, &raw))
}

/// What the page is about, for the window's title.
fn title(results: &Results) -> String {
    let of_search = results.searches().first().map(sections::search::claim);
    let of_comparison = || results.comparison.as_ref().map(sections::comparison::title);
    let of_ranking = || {
        results
            .ranking
            .as_ref()
            .map(crate::words::ranking::headline)
    };
    let of_trial = || {
        results
            .trials
            .first()
            .map(|stored| crate::words::outcome(&stored.trial))
    };
    let of_check = || results.check.as_ref().map(sections::check::title);
    let known = of_ranking()
        .or_else(of_comparison)
        .or(of_search)
        .or_else(of_trial)
        .or_else(of_check);
    known.unwrap_or_else(|| "Calibration of this machine's client".to_owned())
}

/// All results of the folder, the most conclusive first. Only the first result has the page's main heading.
fn body(page: &Page<'_>, contents: &mut Contents) -> Html {
    let mut html = Html::default();
    let mut levels = Levels::FIRST;
    let mut next = || std::mem::replace(&mut levels, Levels::FURTHER);
    let results = page.results;
    if let Some(ranking) = &results.ranking {
        sections::ranking::write(&mut html, contents, page, ranking, next());
    }
    if let Some(comparison) = &results.comparison {
        sections::comparison::write(&mut html, contents, page, comparison, next());
    }
    for (number, view) in results.searches().iter().enumerate() {
        sections::search::write(&mut html, contents, page, (view, number), next());
    }
    let others: Vec<_> = results.other_trials().collect();
    if !others.is_empty() {
        sections::trials::write(&mut html, contents, page, &others, next());
    }
    if let Some(check) = &results.check {
        sections::check::write(&mut html, contents, check, next());
    }
    if let Some(calibration) = &results.calibration {
        sections::calibration::write(&mut html, contents, calibration, next());
    }
    if let Some(calibration) = &results.ws_calibration {
        sections::calibration::write_ws(&mut html, contents, calibration, next());
    }
    html
}

fn document(title: &str, contents: &Contents, body: &Html, raw: &raw::Raw) -> String {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_SHA256}'; img-src data:"
    );
    let mut html = Html::default();
    html.inside("html", &[("lang", "en")], |html| {
        html.inside("head", &[], |html| {
            html.open("meta", &[("charset", "utf-8")]);
            let policy = [
                ("http-equiv", "Content-Security-Policy"),
                ("content", &policy),
            ];
            html.open("meta", &policy);
            let narrow = [
                ("name", "viewport"),
                ("content", "width=device-width, initial-scale=1"),
            ];
            html.open("meta", &narrow);
            html.element("title", &[], title);
            html.own("style", STYLE);
        });
        html.inside("body", &[], |html| {
            html.element(
                "a",
                &[("class", "skip"), ("href", "#main")],
                "Skip to the result",
            );
            bar(html, contents);
            html.inside("main", &[("id", "main"), ("tabindex", "-1")], |html| {
                html.append(body);
                raw.write(html);
            });
            let version = env!("CARGO_PKG_VERSION");
            let made = format!("Made by Plimsoll {version} from the records of this folder.");
            html.element("footer", &[], &made);
            html.data("raw-json", &raw.json);
            html.own("script", SCRIPT);
        });
    });
    html.finish()
}

/// The line at the top: links to the parts of the page, and the theme. The script shows the theme button.
fn bar(html: &mut Html, contents: &Contents) {
    html.inside("header", &[("class", "bar")], |html| {
        html.element("p", &[], "Plimsoll");
        html.inside("nav", &[("aria-label", "Parts of this page")], |html| {
            html.inside("ul", &[], |html| {
                for (id, title) in contents.iter() {
                    html.inside("li", &[], |html| {
                        html.element("a", &[("href", &format!("#{id}"))], title);
                    });
                }
            });
        });
        let button = [
            ("type", "button"),
            ("id", "theme-toggle"),
            ("data-test", "theme-toggle"),
            ("hidden", ""),
        ];
        html.element("button", &button, "Theme: auto");
    });
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_names_the_script() {
        let hash = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
        assert_eq!(
            SCRIPT_SHA256, hash,
            "page.js has changed: set SCRIPT_SHA256 to the right one"
        );
    }

    #[test]
    fn style_and_script_stay_in_their_elements_and_are_small() {
        for own in [STYLE, SCRIPT] {
            assert!(!own.contains("</") && !own.contains("<!--"));
            assert!(own.len() < 8_000, "{}", own.len());
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
