//! The cost curve: what one unit of the load, such as a session, costs the target, over the load. A flat line means
//! that the server's cost grows with its load and with nothing else.

use plimsoll_core::record::{Bracket, CostPoint, LoadUnit};

use super::SIZE_PX;
use super::frame::{self, BOTTOM_PX, Band, INK, Legend, TOP_PX};
use super::scale::Scale;
use super::svg::Drawing;
use crate::words::{self, plain, us};

/// Colour of the curve.
const CURVE: &str = "#009e73";
/// Half the width of the bars' ends.
const CAP_PX: f64 = 4.0;

/// Everything the chart draws.
#[derive(Debug)]
pub(super) struct CostChart<'a> {
    pub(super) points: &'a [CostPoint],
    pub(super) load_line: Option<(u32, String)>,
    pub(super) edge: Option<Band>,
}

/// The chart as SVG.
pub(super) fn svg(chart: &CostChart<'_>, bracket: &Bracket) -> String {
    let (points, unit) = (chart.points, bracket.load_unit);
    let x = frame::load_scale(points.iter().map(|point| point.sessions));
    let values: Vec<f64> = points.iter().flat_map(|p| [p.low, p.high]).collect();
    let y = Scale::for_values(&values, BOTTOM_PX, TOP_PX);
    let title = super::fitting_title(&bracket.target.name, |name| {
        format!("What {} costs {name}", words::what_costs(unit))
    });
    let subtitles = [
        range(points, unit),
        format!(
            "workload {}, profile {}; mean over the valid trials of a load, bars from the least to the greatest",
            plain(&bracket.workload),
            plain(&bracket.profile)
        ),
    ];
    let mut drawing = Drawing::default();
    frame::header(&mut drawing, &title, &subtitles);
    legend(&mut drawing, chart);
    if let Some(band) = &chart.edge {
        frame::band(&mut drawing, band, &x);
    }
    let kind = if y.is_logarithmic() {
        "µs, logarithmic"
    } else {
        "µs"
    };
    let name = format!("{} ({kind})", words::cpu_cost(unit));
    frame::axes(&mut drawing, (&x, unit), (&y, name.as_str()));
    if let Some((load, label)) = &chart.load_line {
        frame::load_line(&mut drawing, x.px(f64::from(*load)), label);
    }
    curve(&mut drawing, points, &x, &y);
    let description = format!(
        "CPU time of the target {} in microseconds, against {}. {}",
        words::per_second_and_one(unit),
        unit.name(),
        subtitles[0]
    );
    drawing.finish(SIZE_PX, &title, &description)
}

/// The main statement: the cost at the lowest and at the highest load.
fn range(points: &[CostPoint], unit: LoadUnit) -> String {
    let at = |point: &CostPoint| {
        format!(
            "{} at {}",
            us(point.cpu_us_per_session_second),
            words::load(point.sessions, unit)
        )
    };
    let per = words::per_second_and_one(unit);
    match points {
        [] => String::new(),
        [only] => format!("{} of CPU {per}", at(only)),
        [first, .., last] => format!("CPU {per}: {}, {}", at(first), at(last)),
    }
}

fn legend(drawing: &mut Drawing, chart: &CostChart<'_>) {
    let mut row = Legend::row(0);
    row.entry(drawing, "mean, least and greatest", |drawing, (x, y)| {
        bar(drawing, x, (y - 7.0, y + 7.0));
        drawing.circle((x, y), 4.0, &format!("fill=\"{CURVE}\""));
    });
    if let Some(band) = &chart.edge {
        row.band(drawing, band);
    }
}

fn curve(drawing: &mut Drawing, points: &[CostPoint], x: &Scale, y: &Scale) {
    let at = |point: &CostPoint| {
        let load = x.px(f64::from(point.sessions));
        (load, y.px(point.cpu_us_per_session_second))
    };
    let means: Vec<_> = points.iter().map(at).collect();
    if means.len() > 1 {
        let stroke = format!("stroke=\"{CURVE}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"");
        drawing.polyline(&means, &stroke);
    }
    for (point, mean) in points.iter().zip(means) {
        bar(drawing, mean.0, (y.px(point.high), y.px(point.low)));
        drawing.circle(mean, 4.0, &format!("fill=\"{CURVE}\""));
    }
}

/// A bar from the greatest to the least value.
fn bar(drawing: &mut Drawing, x: f64, (top, bottom): (f64, f64)) {
    let stroke = format!("stroke=\"{INK}\" stroke-width=\"1.2\"");
    drawing.line((x, top), (x, bottom), &stroke);
    for end in [top, bottom] {
        drawing.line((x - CAP_PX, end), (x + CAP_PX, end), &stroke);
    }
}
