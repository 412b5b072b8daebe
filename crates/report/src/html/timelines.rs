//! The seconds of the most informative trials, as far as there is room.

use plimsoll_document::Tellers;

use crate::chart::timeline;
use crate::error::ReportError;
use crate::folder::{Results, StoredTrial};
use crate::trial_files;
use crate::words::{load_of, plain};

use super::order::Ranked;
use super::write::Html;

/// Room for all timelines, in bytes.
const ROOM_BYTES: usize = 240_000;

const NO_ROWS: &str = "no per-second rows stored with the record";
const NO_ROOM: &str = "no room in a page of this size";

/// One drawn timeline.
#[derive(Debug)]
struct Shown {
    stem: String,
    /// The load and the verdict.
    title: String,
    svg: String,
}

/// The timelines of a folder, and the trials without one.
#[derive(Debug, Default)]
pub(super) struct Timelines {
    shown: Vec<Shown>,
    left_out: Vec<(String, &'static str)>,
}

impl Timelines {
    /// Draws them in this order.
    ///
    /// # Errors
    /// When rows per second cannot be read or are broken.
    pub(super) fn gather(results: &Results, order: &[Ranked]) -> Result<Self, ReportError> {
        let mut timelines = Self::default();
        let mut room = ROOM_BYTES;
        for Ranked {
            stored,
            passed_over,
        } in order
        {
            if let Some(why) = passed_over {
                timelines.left_out.push((stored.stem.clone(), *why));
                continue;
            }
            let seconds = trial_files::seconds(results.files(), &stored.stem)?;
            match timeline::svg(stored, &seconds, results.tellers) {
                None => timelines.left_out.push((stored.stem.clone(), NO_ROWS)),
                Some(svg) if svg.len() > room => {
                    timelines.left_out.push((stored.stem.clone(), NO_ROOM));
                }
                Some(svg) => {
                    room -= svg.len();
                    timelines.shown.push(Shown {
                        stem: stored.stem.clone(),
                        title: title(stored, results.tellers),
                        svg,
                    });
                }
            }
        }
        Ok(timelines)
    }

    /// The size of this trial's timeline in the page, in bytes.
    pub(super) fn bytes_of(&self, stem: &str) -> usize {
        let found = self.shown.iter().find(|one| one.stem == stem);
        found.map_or(0, |one| one.svg.len())
    }

    /// Writes the timelines of the trials with these stems. Several get a list to choose from, and all but the first are folded. Then
    /// it names the trials without a timeline here.
    pub(super) fn write(&self, html: &mut Html, stems: &[String]) {
        let of_these = |stem: &str| stems.iter().any(|of| of == stem);
        let shown: Vec<&Shown> = self
            .shown
            .iter()
            .filter(|one| of_these(&one.stem))
            .collect();
        if shown.len() > 1 {
            picker(html, &shown);
        }
        for (index, one) in shown.iter().enumerate() {
            let id = id(one);
            let mut attributes = vec![("class", "timeline"), ("id", id.as_str())];
            if index == 0 {
                attributes.push(("open", ""));
            }
            html.inside("details", &attributes, |html| {
                html.element("summary", &[], &one.title);
                html.inside("figure", &[("data-test", "chart-timeline")], |html| {
                    html.drawing(&one.svg);
                });
            });
        }
        let left_out = self.left_out.iter();
        let left_out: Vec<_> = left_out.filter(|(stem, _)| of_these(stem)).collect();
        let mut reasons: Vec<&str> = left_out.iter().map(|(_, why)| *why).collect();
        reasons.sort_unstable();
        reasons.dedup();
        for why in reasons {
            let stems = left_out.iter().filter(|(_, of)| *of == why);
            let stems: Vec<String> = stems.map(|(stem, _)| plain(stem)).collect();
            let text = format!(
                "Not shown ({why}): {}. Their rows are in the .csv files of the same name, if present.",
                stems.join(", ")
            );
            html.element("p", &[("class", "note")], &text);
        }
    }
}

fn title(stored: &StoredTrial, tellers: Tellers) -> String {
    let trial = &stored.trial;
    let verdict = trial.verdict.word();
    format!("{}: {}, {verdict}", stored.stem, load_of(trial, tellers))
}

fn id(one: &Shown) -> String {
    format!("timeline-{}", one.stem)
}

/// Hidden until the script shows it. Without the script, you open each timeline by its own line.
fn picker(html: &mut Html, shown: &[&Shown]) {
    html.inside("p", &[("class", "picker"), ("hidden", "")], |html| {
        html.inside("label", &[], |html| {
            html.text("Trial ");
            html.inside("select", &[("data-test", "trial-picker")], |html| {
                for one in shown {
                    html.element("option", &[("value", &id(one))], &one.title);
                }
            });
        });
    });
}
