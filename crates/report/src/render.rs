//! Writes all renderings of a result folder.

use std::path::{Path, PathBuf};

use plimsoll_core::record::Bracket;
use plimsoll_document::Tellers;

use crate::chart::{self, timeline};
use crate::error::ReportError;
use crate::escalation::Escalated;
use crate::folder::{ResultFolder, Results, SearchView, StoredTrial, load, slug};
use crate::{choice, document, html, junit, markdown, trial_files};

/// The summary.
pub const SUMMARY: &str = "summary.md";
/// The page for people, with everything in one file.
pub const REPORT: &str = "report.html";
/// The load line as a badge.
pub const BADGE: &str = "badge.svg";
/// The result as a test report, for build servers.
pub const JUNIT: &str = "junit.xml";
/// The result in brief, for the page of a workflow run.
pub const STEP_SUMMARY: &str = "step-summary.md";

/// Images have twice the size, so that they are sharp on dense screens.
const PNG_SCALE: f32 = 2.0;

/// Stems of the charts' file names: latencies over the load.
pub(crate) const CHART: &str = "chart";
/// The cost of a session over the load.
pub(crate) const COST: &str = "cost";
/// Latency, goodput and failures over the load.
pub(crate) const ESCALATION: &str = "escalation";
/// Latency by percentile, for the loads around the edge.
pub(crate) const PERCENTILES: &str = "percentiles";
/// The most informative trial, second by second.
pub(crate) const TIMELINE: &str = "timeline";
/// Two targets: the ratios of the pairs.
pub(crate) const RATIOS: &str = "ratios";
/// Several targets: their load lines.
pub(crate) const RANKING: &str = "ranking";
/// Several targets: latency and cost over the load.
pub(crate) const OVERLAY: &str = "overlay";

/// Stems of all charts' file names, except those of further SLOs. Each chart exists as `.svg` and as `.png`.
pub const CHART_STEMS: [&str; 8] = [
    CHART,
    COST,
    ESCALATION,
    PERCENTILES,
    TIMELINE,
    RATIOS,
    RANKING,
    OVERLAY,
];

/// A drawing and the stem of its file names.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) stem: String,
    pub(crate) svg: String,
}

/// Writes every rendering that the folder's records allow, and returns their paths: `summary.md`, `step-summary.md`,
/// `junit.xml` and `report.html` always; the charts, their images and the badge where there is something to show. An
/// older rendering that no longer matches the records is removed.
///
/// # Errors
/// When the folder cannot be read or written, or one of its records or of the files beside them is broken.
pub fn render_all(folder: &Path, tellers: Tellers) -> Result<Vec<PathBuf>, ReportError> {
    render_to(folder, folder, tellers)
}

/// The same into another folder, which is created if it does not exist.
///
/// # Errors
/// As [`render_all`].
pub fn render_to(
    records: &Path,
    out: &Path,
    tellers: Tellers,
) -> Result<Vec<PathBuf>, ReportError> {
    let results = load(records, tellers)?;
    let folder = ResultFolder::for_renderings(out)?;
    let mut written = Vec::new();
    let mut write = |name: &str, bytes: &[u8]| {
        folder.write_rendering(name, bytes)?;
        written.push(folder.path().join(name));
        Ok::<_, ReportError>(())
    };
    let charts = charts(&results)?;
    for stem in CHART_STEMS {
        if !charts.iter().any(|chart| chart.stem == stem) {
            folder.remove_rendering(&format!("{stem}.svg"))?;
            folder.remove_rendering(&format!("{stem}.png"))?;
        }
    }
    for Chart { stem, svg } in &charts {
        write(&format!("{stem}.svg"), svg.as_bytes())?;
        write(&format!("{stem}.png"), &chart::png(svg, PNG_SCALE)?)?;
    }
    match &results.bracket {
        Some(bracket) => write(BADGE, chart::badge_svg(bracket).as_bytes())?,
        None => folder.remove_rendering(BADGE)?,
    }
    let parts = document::of(&results);
    write(SUMMARY, markdown::summary(&parts, &charts).as_bytes())?;
    write(STEP_SUMMARY, markdown::step_summary(&parts).as_bytes())?;
    write(JUNIT, junit::of(&results).as_bytes())?;
    let page = html::of_parts(&results, &parts, &charts)?;
    write(REPORT, page.as_bytes())?;
    Ok(written)
}

/// Every chart, in the order in which the files are written.
///
/// # Errors
/// When the rows per second or the interval logs beside the records cannot be read or are broken.
pub(crate) fn charts(results: &Results) -> Result<Vec<Chart>, ReportError> {
    let searches = results.searches();
    let mut charts = Charts::default();
    if searches.is_empty() {
        let trials: Vec<_> = results.other_trials().collect();
        charts.add(CHART, chart::svg_of_trials(&trials, results.tellers));
    }
    for (number, view) in searches.iter().enumerate() {
        let stem = chart_name(view.bracket, number == 0);
        charts.add(&stem, chart::svg_of_search(view));
    }
    if let Some(view) = searches.first() {
        charts.add(COST, chart::cost_svg(view.bracket));
    }
    charts.add(ESCALATION, escalation(results, searches.first()));
    charts.add(PERCENTILES, percentiles(results, searches.first())?);
    charts.add(TIMELINE, timeline(results, searches.first())?);
    charts.add(
        RATIOS,
        results.comparison.as_ref().and_then(chart::ratios_svg),
    );
    let ranking = results.ranking.as_ref();
    charts.add(RANKING, ranking.and_then(chart::svg_of_ranking));
    charts.add(OVERLAY, ranking.and_then(chart::overlay_svg));
    Ok(charts.drawn)
}

#[derive(Default)]
struct Charts {
    drawn: Vec<Chart>,
}

impl Charts {
    fn add(&mut self, stem: &str, svg: Option<String>) {
        let stem = stem.to_owned();
        self.drawn.extend(svg.map(|svg| Chart { stem, svg }));
    }
}

/// Of the search, or without one of the trials.
fn escalation(results: &Results, search: Option<&SearchView<'_>>) -> Option<String> {
    let escalated = match search {
        Some(view) => Escalated::of_search(view),
        None => Escalated::of_trials(&results.other_trials().collect::<Vec<_>>()),
    };
    chart::escalation_svg(&escalated?)
}

/// For the loads around the edge, or without a search for the highest loads.
fn percentiles(
    results: &Results,
    search: Option<&SearchView<'_>>,
) -> Result<Option<String>, ReportError> {
    let others: Vec<_> = results.other_trials().collect();
    let trials = match search {
        Some(view) => choice::around_edge(view),
        None => choice::of_trials(&others),
    };
    let mut curves = Vec::new();
    for stored in trials {
        curves.extend(chart::Curve::of(stored, results.files())?);
    }
    Ok(chart::percentiles_svg(&curves, results.tellers))
}

/// For the most informative trial.
fn timeline(
    results: &Results,
    search: Option<&SearchView<'_>>,
) -> Result<Option<String>, ReportError> {
    let trials: Vec<&StoredTrial> = match search {
        Some(view) => view.of_search(),
        None => results.other_trials().collect(),
    };
    let bracket = search.map(|view| view.bracket);
    let Some(stored) = choice::most_telling(bracket, &trials) else {
        return Ok(None);
    };
    let seconds = trial_files::seconds(results.files(), &stored.stem)?;
    Ok(timeline::svg(stored, &seconds, results.tellers))
}

/// The stem of the chart for a search's first SLO, or for a further one.
pub(crate) fn chart_name(bracket: &Bracket, first: bool) -> String {
    if first {
        CHART.to_owned()
    } else {
        format!("{CHART}-{}", slug::of(&bracket.slo))
    }
}
