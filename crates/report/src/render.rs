//! All renderings of a result folder.

use std::path::{Path, PathBuf};

use plimsoll_core::record::Bracket;

use crate::error::ReportError;
use crate::folder::{ResultFolder, Results, SearchView, load, slug};
use crate::{chart, junit, markdown, step_summary};

/// The summary.
pub const SUMMARY: &str = "summary.md";
/// The chart of latencies. Its image has the same name with `png`, and is twice its size.
pub const CHART_SVG: &str = "chart.svg";
/// What a session costs over the load.
pub const COST_SVG: &str = "cost.svg";
/// Several targets, ranked.
pub const RANKING_SVG: &str = "ranking.svg";
/// The result as a test report, for build servers.
pub const JUNIT: &str = "junit.xml";
/// The result in short, for the page of a workflow run.
pub const STEP_SUMMARY: &str = "step-summary.md";

/// Twice the size, so that the image is sharp on dense screens.
const PNG_SCALE: f32 = 2.0;

/// Writes every rendering that a folder has the records for, and gives their paths: `summary.md`, `step-summary.md` and `junit.xml` always, the
/// charts and their images where there are trials of one target. A chart from earlier that no longer belongs to the records is removed.
///
/// # Errors
/// When the folder cannot be read or written, or one of its records is broken.
pub fn render_all(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let results = load(folder)?;
    let folder = ResultFolder::of(&results);
    let mut written = Vec::new();
    let mut write = |name: &str, bytes: &[u8]| {
        folder.write_rendering(name, bytes)?;
        written.push(folder.path().join(name));
        Ok::<_, ReportError>(())
    };
    let charts = charts(&results);
    for stem in [CHART, COST, RANKING] {
        if !charts.iter().any(|(drawn, _)| drawn == stem) {
            folder.remove_rendering(&format!("{stem}.svg"))?;
            folder.remove_rendering(&format!("{stem}.png"))?;
        }
    }
    for (stem, svg) in &charts {
        write(&format!("{stem}.svg"), svg.as_bytes())?;
        write(&format!("{stem}.png"), &chart::png(svg, PNG_SCALE)?)?;
    }
    write(SUMMARY, markdown::of(&results).as_bytes())?;
    write(STEP_SUMMARY, step_summary::of(&results).as_bytes())?;
    write(JUNIT, junit::of(&results).as_bytes())?;
    Ok(written)
}

/// Every chart with the stem of its file names.
fn charts(results: &Results) -> Vec<(String, String)> {
    let searches = results.searches();
    let mut charts = Vec::new();
    if searches.is_empty() {
        let trials: Vec<_> = results.other_trials().collect();
        charts.extend(chart::svg_of_trials(&trials).map(|svg| (CHART.to_owned(), svg)));
    }
    for (number, view) in searches.iter().enumerate() {
        let svg = chart::svg_of_search(view);
        charts.extend(svg.map(|svg| (chart_name(view.bracket, number == 0), svg)));
    }
    let cost = searches.first().and_then(|view: &SearchView<'_>| {
        chart::cost_svg(view.bracket).map(|svg| (COST.to_owned(), svg))
    });
    charts.extend(cost);
    let ranking = results.ranking.as_ref().and_then(chart::svg_of_ranking);
    charts.extend(ranking.map(|svg| (RANKING.to_owned(), svg)));
    charts
}

const CHART: &str = "chart";
const COST: &str = "cost";
const RANKING: &str = "ranking";

/// The stem of the chart of a search's first SLO, or of a further one.
pub(crate) fn chart_name(bracket: &Bracket, first: bool) -> String {
    if first {
        CHART.to_owned()
    } else {
        format!("{CHART}-{}", slug::of(&bracket.slo))
    }
}
