//! All renderings of a result folder.

use std::path::{Path, PathBuf};

use crate::error::ReportError;
use crate::folder::{ResultFolder, load};
use crate::{chart, markdown};

/// The summary.
pub const SUMMARY: &str = "summary.md";
/// The chart.
pub const CHART_SVG: &str = "chart.svg";
/// The chart as an image, at twice its size.
pub const CHART_PNG: &str = "chart.png";

/// Twice the size, so that the image is sharp on dense screens.
const PNG_SCALE: f32 = 2.0;

/// Writes every rendering that a folder has the records for, and gives their paths: `summary.md`, and `chart.svg` and `chart.png` where there are
/// trials of one target. A chart from earlier that no longer belongs to the records is removed.
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
    if let Some(svg) = chart::svg(&results) {
        write(CHART_SVG, svg.as_bytes())?;
        write(CHART_PNG, &chart::png(&svg, PNG_SCALE)?)?;
    } else {
        folder.remove_rendering(CHART_SVG)?;
        folder.remove_rendering(CHART_PNG)?;
    }
    write(SUMMARY, markdown::of(&results).as_bytes())?;
    Ok(written)
}
