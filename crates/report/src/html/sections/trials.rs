//! Trials without a search: one trial in full, or several under what they have in common.

use plimsoll_core::record::LoadUnit;

use super::{search, trial, ws};
use crate::folder::StoredTrial;
use crate::html::Page;
use crate::html::parts::{self, Contents, Levels};
use crate::html::write::Html;
use crate::loads;
use crate::render;
use crate::words::count;

/// Room for the sections of several trials, in bytes. The table of all of them is always included.
const ROOM_BYTES: usize = 180_000;

pub(in crate::html) fn write(
    html: &mut Html,
    contents: &mut Contents,
    page: &Page<'_>,
    trials: &[&StoredTrial],
    level: Levels,
) {
    if let [only] = trials {
        contents.push(&only.stem, "Trial");
        trial::write(html, Some(contents), page, only, level);
    } else {
        several(html, contents, page, trials, level);
    }
}

fn several(
    html: &mut Html,
    contents: &mut Contents,
    page: &Page<'_>,
    trials: &[&StoredTrial],
    level: Levels,
) {
    let title = format!("{} trials without a search", count(trials.len() as u64));
    contents.push("trials-title", "Trials");
    html.inside("article", &[("aria-labelledby", "trials-title")], |html| {
        html.element(
            level.result,
            &[("id", "trials-title"), ("data-test", "claim")],
            &title,
        );
        // If there is also a search, the folder's charts show that.
        if page.results.searches().is_empty() {
            for (stem, hook, caption) in [
                (
                    render::CHART,
                    "chart-latency",
                    "Latency from the schedule against the load. Each mark is a trial.",
                ),
                (render::PERCENTILES, "chart-percentiles", trial::PERCENTILES),
            ] {
                if let Some(svg) = page.chart(stem) {
                    parts::figure(html, hook, svg, caption);
                }
            }
        }
        html.inside("div", &[("data-test", "evidence")], |html| {
            // Cells of a matrix have the same load and differ in something else.
            if loads::differ_by_load_only(trials) {
                let unit = trials
                    .first()
                    .map_or_else(LoadUnit::default, |first| first.trial.load_unit);
                search::loads_table(html, &loads::of_trials(trials), unit);
            }
            ws::side_by_side(html, trials);
        });
    });
    let mut room = ROOM_BYTES;
    let mut left_out: Vec<&str> = Vec::new();
    for stored in trials {
        let mut section = Html::default();
        trial::write(&mut section, None, page, stored, Levels::FURTHER);
        // Timelines have their own budget, and are already in the section.
        if section.len() > room + page.timelines.bytes_of(&stored.stem) {
            left_out.push(&stored.stem);
            continue;
        }
        room = (room + page.timelines.bytes_of(&stored.stem)).saturating_sub(section.len());
        contents.push(&stored.stem, &stored.stem);
        html.append(&section);
    }
    if !left_out.is_empty() {
        let text = format!(
            "No room in a page of this size for {}: their records are in the .json files of the same name.",
            left_out.join(", ")
        );
        parts::note(html, &text);
    }
}
