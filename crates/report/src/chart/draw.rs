//! The chart of latencies: gates, medians, one mark per trial.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{TrialSummary, Verdict};
use plimsoll_core::words::listed;

use super::frame::{
    self, BOTTOM_PX, GREY, INK, LABEL_SIZE_PX, LEFT_PX, Legend, RIGHT_PX, TOP_PX, text_style,
};
use super::scale::Scale;
use super::svg::Drawing;
use super::{Chart, GateLine, SIZE_PX, Side, font};
use crate::loads::Load;

/// Smallest distance between two labels' baselines.
const LABEL_STEP_PX: f64 = 14.0;
/// Opacity of the medians' lines and gates: lighter than the tail's, but still with a contrast of 3 : 1 to the
/// background (WCAG 2, 1.4.11).
const FAINT: f64 = 0.85;
/// Size of the marks of short trials. They weigh less, so their marks are smaller.
const SHORT_SIZE: f64 = 0.62;

/// Colour of lines and marks.
fn color(side: Side) -> &'static str {
    match side {
        Side::Newest => "#0072b2",
        Side::Oldest => "#d55e00",
    }
}

/// The same colours, darker: small text needs more contrast.
fn text_color(side: Side) -> &'static str {
    match side {
        Side::Newest => "#005a8c",
        Side::Oldest => "#a34700",
    }
}

/// What a mark stands for. Each has its own shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Pass,
    Fail,
    Borderline,
    Invalid,
}

impl Mark {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Pass, "pass"),
        (Self::Fail, "fail"),
        (Self::Borderline, "borderline load"),
        (Self::Invalid, "invalid"),
    ];

    fn of(load: &Load, trial: &TrialSummary) -> Self {
        match trial.verdict {
            Verdict::Invalid => Self::Invalid,
            _ if load.borderline => Self::Borderline,
            Verdict::Pass => Self::Pass,
            Verdict::Fail => Self::Fail,
        }
    }

    /// Draws the mark at `size` times its usual size.
    pub(super) fn draw(self, drawing: &mut Drawing, (x, y): (f64, f64), color: &str, size: f64) {
        let hollow = format!("fill=\"#ffffff\" stroke=\"{color}\" stroke-width=\"1.8\"");
        let by = |dx: f64, dy: f64| (x + dx * size, y + dy * size);
        match self {
            Self::Pass => drawing.circle((x, y), 4.5 * size, &format!("fill=\"{color}\"")),
            Self::Fail => {
                let stroke =
                    format!("stroke=\"{color}\" stroke-width=\"2.6\" stroke-linecap=\"round\"");
                drawing.line(by(-4.2, -4.2), by(4.2, 4.2), &stroke);
                drawing.line(by(-4.2, 4.2), by(4.2, -4.2), &stroke);
            }
            Self::Borderline => {
                let points = [by(0.0, -6.0), by(6.0, 0.0), by(0.0, 6.0), by(-6.0, 0.0)];
                drawing.polygon(&points, &hollow);
            }
            Self::Invalid => {
                let points = [by(0.0, -5.5), by(5.5, 4.5), by(-5.5, 4.5)];
                drawing.polygon(&points, &hollow);
            }
        }
    }
}

/// The chart as SVG.
pub(super) fn svg(chart: &Chart) -> String {
    let x = frame::load_scale(chart.loads.iter().map(|load| load.sessions));
    let y = y_scale(chart);
    let mut drawing = Drawing::default();
    frame::header(&mut drawing, &chart.title, &chart.subtitles);
    legend(&mut drawing, chart);
    if let Some(band) = &chart.edge {
        frame::band(&mut drawing, band, &x);
    }
    let unit = if y.is_logarithmic() {
        "latency from the schedule (ms, logarithmic)"
    } else {
        "latency from the schedule (ms)"
    };
    frame::axes(&mut drawing, (&x, chart.unit), (&y, unit));
    gates(&mut drawing, &chart.gates, &y);
    if let Some((load, label)) = &chart.load_line {
        frame::load_line(&mut drawing, x.px(f64::from(*load)), label);
    }
    for &side in chart.sides {
        series(&mut drawing, chart, side, &x, &y);
    }
    for &side in chart.sides {
        marks(&mut drawing, chart, side, &x, &y);
    }
    let names: Vec<&str> = chart.sides.iter().map(|side| side.name()).collect();
    let description = format!(
        "Latency in milliseconds against {}, {} frame, p50 and {}. {}",
        chart.unit.name(),
        listed(&names),
        chart.tail.name(),
        chart.subtitles.join("; ")
    );
    drawing.finish(SIZE_PX, &chart.title, &description)
}

fn y_scale(chart: &Chart) -> Scale {
    let trials = chart.loads.iter().flat_map(|load| &load.trials);
    let drawn = trials.flat_map(|trial| {
        let both = |side: &Side| [side.p50(trial), side.tail(trial)];
        chart.sides.iter().flat_map(both).flatten()
    });
    let gates = chart.gates.iter().map(|gate| gate.threshold_ms);
    let values: Vec<f64> = drawn.chain(gates).collect();
    Scale::for_values(&values, BOTTOM_PX, TOP_PX)
}

/// One row of lines and one of marks. It explains only what the chart draws.
fn legend(drawing: &mut Drawing, chart: &Chart) {
    let line = |drawing: &mut Drawing, (x, y): (f64, f64), stroke: &str| {
        drawing.line((x - 12.0, y), (x + 12.0, y), stroke);
    };
    let mut lines = Legend::row(0);
    for &side in chart.sides {
        lines.entry(
            drawing,
            &format!("{} {}", side.name(), chart.tail.name()),
            |drawing, at| {
                line(drawing, at, &tail_stroke(side));
            },
        );
        lines.entry(drawing, &format!("{} p50", side.name()), |drawing, at| {
            line(drawing, at, &p50_stroke(side));
        });
    }
    if !chart.gates.is_empty() {
        lines.entry(drawing, "gate", |drawing, at| {
            line(drawing, at, &gate_stroke(GREY, true));
        });
    }
    let mut marks = Legend::row(1);
    let any = |wanted: &dyn Fn(&Load, &TrialSummary) -> bool| {
        let of_load = |load: &Load| load.trials.iter().any(|trial| wanted(load, trial));
        chart.loads.iter().any(of_load)
    };
    for (mark, name) in Mark::ALL {
        if any(&|load, trial| Mark::of(load, trial) == mark) {
            marks.entry(drawing, name, |drawing, at| {
                mark.draw(drawing, at, INK, 1.0);
            });
        }
    }
    if any(&|_, trial| trial.length == Length::Short) {
        marks.entry(drawing, "small: short trial", |drawing, at| {
            Mark::Pass.draw(drawing, at, INK, SHORT_SIZE);
        });
    }
    if let Some(band) = &chart.edge {
        marks.band(drawing, band);
    }
}

fn tail_stroke(side: Side) -> String {
    format!(
        "stroke=\"{}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"",
        color(side)
    )
}

fn p50_stroke(side: Side) -> String {
    format!(
        "stroke=\"{}\" stroke-width=\"1.4\" stroke-opacity=\"{FAINT}\" stroke-linejoin=\"round\"",
        color(side)
    )
}

/// Lighter on the median, like the median's own line.
fn gate_stroke(color: &str, on_tail: bool) -> String {
    let opacity = if on_tail { 1.0 } else { FAINT };
    format!(
        "stroke=\"{color}\" stroke-opacity=\"{opacity}\" stroke-width=\"1.2\" stroke-dasharray=\"7 4\""
    )
}

/// Dashed lines, each with its label at the right, where there is no data.
fn gates(drawing: &mut Drawing, gates: &[GateLine], y: &Scale) {
    let mut gates: Vec<(&GateLine, f64)> =
        gates.iter().map(|g| (g, y.px(g.threshold_ms))).collect();
    gates.sort_by(|a, b| a.1.total_cmp(&b.1));
    let wanted: Vec<f64> = gates.iter().map(|(_, at)| *at).collect();
    for ((gate, at), label) in gates.iter().zip(spread(&wanted)) {
        let color = color(gate.side);
        drawing.line(
            (LEFT_PX, *at),
            (RIGHT_PX, *at),
            &gate_stroke(color, gate.on_tail),
        );
        let leader = format!("stroke=\"{color}\" stroke-width=\"0.8\"");
        drawing.line((RIGHT_PX, *at), (RIGHT_PX + 8.0, label), &leader);
        let style = text_style(LABEL_SIZE_PX, text_color(gate.side), "start");
        let room = f64::from(SIZE_PX.0) - (RIGHT_PX + 11.0) - 4.0;
        let text = font::fit(&gate.label, LABEL_SIZE_PX, false, room);
        drawing.text((RIGHT_PX + 11.0, label + 4.0), style, &text);
    }
}

/// Moves labels apart just enough that none covers another: first downwards, then, from the bottom, back upwards.
fn spread(wanted: &[f64]) -> Vec<f64> {
    let mut placed = wanted.to_vec();
    for index in 1..placed.len() {
        placed[index] = placed[index].max(placed[index - 1] + LABEL_STEP_PX);
    }
    let mut lowest = BOTTOM_PX - 4.0;
    for label in placed.iter_mut().rev() {
        *label = label.min(lowest);
        lowest = *label - LABEL_STEP_PX;
    }
    placed
}

/// Lines through the medians of the loads.
fn series(drawing: &mut Drawing, chart: &Chart, side: Side, x: &Scale, y: &Scale) {
    let line = |value: &dyn Fn(&TrialSummary) -> Option<f64>| -> Vec<(f64, f64)> {
        let at = |load: &Load| Some((x.px(f64::from(load.sessions)), y.px(load.median(value)?)));
        chart.loads.iter().filter_map(at).collect()
    };
    let medians = line(&|trial| side.p50(trial));
    // A single point makes no line.
    if let [only] = medians[..] {
        let style = format!("fill=\"{}\" fill-opacity=\"0.5\"", color(side));
        drawing.circle(only, 2.6, &style);
    } else if medians.len() > 1 {
        drawing.polyline(&medians, &p50_stroke(side));
    }
    let tail = line(&|trial| side.tail(trial));
    if tail.len() > 1 {
        drawing.polyline(&tail, &tail_stroke(side));
    }
}

/// One mark per trial, at its tail.
fn marks(drawing: &mut Drawing, chart: &Chart, side: Side, x: &Scale, y: &Scale) {
    for load in &chart.loads {
        for trial in &load.trials {
            if let Some(value) = side.tail(trial) {
                let at = (x.px(f64::from(load.sessions)), y.px(value));
                let size = match trial.length {
                    Length::Full => 1.0,
                    Length::Short => SHORT_SIZE,
                };
                Mark::of(load, trial).draw(drawing, at, color(side), size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_that_have_room_stay_where_they_are() {
        assert_eq!(spread(&[150.0, 200.0, 300.0]), [150.0, 200.0, 300.0]);
    }

    proptest! {
        #[test]
        fn no_label_covers_another(mut wanted in prop::collection::vec(TOP_PX..BOTTOM_PX, 0..8)) {
            wanted.sort_by(f64::total_cmp);
            let placed = spread(&wanted);
            for pair in placed.windows(2) {
                prop_assert!(pair[1] - pair[0] >= LABEL_STEP_PX - 1e-9, "{:?}", placed);
            }
            prop_assert!(placed.iter().all(|label| *label <= BOTTOM_PX && *label >= TOP_PX - 8.0 * LABEL_STEP_PX));
        }
    }
}
