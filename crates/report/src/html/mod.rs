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
//! - `blocks`: the blocks of a [`crate::document`];
//! - `timelines`, `raw`: the parts with a budget.

mod blocks;
mod order;
mod raw;
mod timelines;
mod write;

use crate::document::{self, Part};
use crate::error::ReportError;
use crate::folder::Results;
use crate::render::{self, Chart};
use blocks::{Contents, Levels, Writer};
use timelines::Timelines;
pub use write::{Attribute, Html};

/// The style sheet of the page.
const STYLE: &str = include_str!("page.css");
/// The script of the page.
const SCRIPT: &str = include_str!("page.js");
/// SHA-256 of the script, for the policy that allows no other script. The script is known at compile time, so a program
/// that renders needs no hash function. A test compares the two, and shows the right value when they differ.
pub const SCRIPT_SHA256: &str = "dfMPLhEuuC9tqGpc4AU130rv1p6AyDrbi5xLcYEfwwA=";

/// Room for the documents of several trials, in bytes. The table of all of them is always included.
const TRIALS_ROOM_BYTES: usize = 180_000;

/// The page of a result folder.
///
/// # Errors
/// When the rows per second or the interval logs beside the records cannot be read or are broken.
pub fn of(results: &Results) -> Result<String, ReportError> {
    of_parts(results, &document::of(results), &render::charts(results)?)
}

/// The same with what is already told and drawn.
pub(crate) fn of_parts(
    results: &Results,
    parts: &[Part],
    charts: &[Chart],
) -> Result<String, ReportError> {
    let order = order::of(results);
    let timelines = Timelines::gather(results, &order)?;
    let mut contents = Contents::default();
    let body = body(parts, charts, &timelines, &mut contents);
    let raw = raw::of(results, &order);
    contents.push("raw", "Raw JSON");
    let title = parts
        .first()
        .map(|part| part.document().answer.claim.as_str());
    Ok(whole(title.unwrap_or_default(), &contents, &body, &raw))
}

/// All results of the folder. Only the first has the page's main heading.
fn body(parts: &[Part], charts: &[Chart], timelines: &Timelines, contents: &mut Contents) -> Html {
    let mut html = Html::default();
    let mut writer = Writer {
        charts,
        timelines,
        levels: Levels::FIRST,
    };
    let mut room = TRIALS_ROOM_BYTES;
    let mut left_out: Vec<&str> = Vec::new();
    for part in parts {
        let document = part.document();
        match part {
            Part::Result(_) => {
                contents.push(&document.id, &document.entry);
                writer.document(&mut html, document, Some(contents));
            }
            Part::OneOfSeveral(_) => {
                let mut trial = Html::default();
                writer.document(&mut trial, document, None);
                // Timelines have their own budget.
                let needed = trial.len().saturating_sub(timelines.bytes_of(&document.id));
                if needed > room {
                    left_out.push(&document.id);
                } else {
                    room -= needed;
                    contents.push(&document.id, &document.entry);
                    html.append(&trial);
                }
            }
        }
        writer.levels = Levels::FURTHER;
    }
    if !left_out.is_empty() {
        let text = format!(
            "No room in a page of this size for {}: their records are in the .json files of the same name.",
            left_out.join(", ")
        );
        blocks::note(&mut html, &text.into());
    }
    html
}

fn whole(title: &str, contents: &Contents, body: &Html, raw: &raw::Raw) -> String {
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
