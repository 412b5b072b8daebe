//! Where everything goes. From top to bottom: title, subtitles, two rows of legend, the load line's label, the plot, the axes. The legend and the
//! labels of gates and load line have bands of their own, so that they cover no data.

use plimsoll_core::record::{TrialSummary, Verdict};

use super::scale::Scale;
use super::svg::{Drawing, TextStyle};
use super::{Chart, GateLine, SIZE_PX, Side, font};
use crate::loads::Load;
use crate::words::number;

/// Size of the title.
pub(super) const TITLE_SIZE_PX: f64 = 18.0;

const MARGIN_PX: f64 = 20.0;
const LEFT_PX: f64 = 78.0;
const RIGHT_PX: f64 = 660.0;
const TOP_PX: f64 = 142.0;
const BOTTOM_PX: f64 = 442.0;
const TICK_SIZE_PX: f64 = 11.0;
const LABEL_SIZE_PX: f64 = 11.0;
/// Least distance between two labels' baselines.
const LABEL_STEP_PX: f64 = 14.0;
const INK: &str = "#222222";
const GREY: &str = "#595959";

/// Room for the title.
pub(super) fn title_room_px() -> f64 {
    f64::from(SIZE_PX.0) - 2.0 * MARGIN_PX
}

/// Width of a title.
pub(super) fn title_width_px(title: &str) -> f64 {
    font::width_px(title, TITLE_SIZE_PX, true)
}

/// Colour of lines and marks.
fn color(side: Side) -> &'static str {
    match side {
        Side::Newest => "#0072b2",
        Side::Oldest => "#d55e00",
    }
}

/// The same, darker: small text needs more contrast.
fn text_color(side: Side) -> &'static str {
    match side {
        Side::Newest => "#005a8c",
        Side::Oldest => "#a34700",
    }
}

fn text_style(size_px: f64, fill: &'static str, anchor: &'static str) -> TextStyle {
    TextStyle {
        size_px,
        bold: false,
        fill,
        anchor,
    }
}

/// What a mark says. Each has a shape of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
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

    fn draw(self, drawing: &mut Drawing, (x, y): (f64, f64), color: &str) {
        let hollow = format!("fill=\"#ffffff\" stroke=\"{color}\" stroke-width=\"1.8\"");
        match self {
            Self::Pass => drawing.circle((x, y), 4.5, &format!("fill=\"{color}\"")),
            Self::Fail => {
                let stroke =
                    format!("stroke=\"{color}\" stroke-width=\"2.6\" stroke-linecap=\"round\"");
                drawing.line((x - 4.2, y - 4.2), (x + 4.2, y + 4.2), &stroke);
                drawing.line((x - 4.2, y + 4.2), (x + 4.2, y - 4.2), &stroke);
            }
            Self::Borderline => {
                let points = [(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)];
                drawing.polygon(&points, &hollow);
            }
            Self::Invalid => {
                let points = [(x, y - 5.5), (x + 5.5, y + 4.5), (x - 5.5, y + 4.5)];
                drawing.polygon(&points, &hollow);
            }
        }
    }
}

/// The chart as SVG.
pub(super) fn svg(chart: &Chart) -> String {
    let x = x_scale(&chart.loads);
    let y = y_scale(chart);
    let mut drawing = Drawing::default();
    header(&mut drawing, chart);
    legend(&mut drawing, chart);
    axes(&mut drawing, &x, &y);
    gates(&mut drawing, &chart.gates, &y);
    if let Some((load, label)) = &chart.load_line {
        load_line(&mut drawing, x.px(f64::from(*load)), label);
    }
    for side in Side::BOTH {
        series(&mut drawing, chart, side, &x, &y);
    }
    for side in Side::BOTH {
        marks(&mut drawing, chart, side, &x, &y);
    }
    let description = format!(
        "Latency in milliseconds against sessions, newest and oldest frame, 50th and 95th percentile. {}",
        chart.subtitles.join("; ")
    );
    drawing.finish(SIZE_PX, &chart.title, &description)
}

/// All loads with a little room on both sides; from zero where the lowest load is low enough that the room up to it is no waste.
fn x_scale(loads: &[Load]) -> Scale {
    let least = loads.first().map_or(0.0, |load| f64::from(load.sessions));
    let greatest = loads.last().map_or(1.0, |load| f64::from(load.sessions));
    let room = if greatest > least {
        (greatest - least) * 0.06
    } else {
        (greatest * 0.5).max(1.0)
    };
    let low = if least < 0.4 * greatest {
        0.0
    } else {
        least - room
    };
    Scale::linear(low.max(0.0), greatest + room, LEFT_PX, RIGHT_PX)
}

fn y_scale(chart: &Chart) -> Scale {
    let trials = chart.loads.iter().flat_map(|load| &load.trials);
    let drawn = trials.flat_map(|trial| {
        let both = |side: Side| [side.p50(trial), side.p95(trial)];
        Side::BOTH.into_iter().flat_map(both).flatten()
    });
    let gates = chart.gates.iter().map(|gate| gate.threshold_ms);
    let values: Vec<f64> = drawn.chain(gates).collect();
    Scale::for_values(&values, BOTTOM_PX, TOP_PX)
}

fn header(drawing: &mut Drawing, chart: &Chart) {
    let title = TextStyle {
        bold: true,
        ..text_style(TITLE_SIZE_PX, INK, "start")
    };
    drawing.text((MARGIN_PX, 31.0), title, &chart.title);
    let mut baseline = 51.0;
    for subtitle in chart.subtitles.iter().take(2) {
        let text = font::fit(subtitle, 12.0, false, title_room_px());
        drawing.text(
            (MARGIN_PX, baseline),
            text_style(12.0, GREY, "start"),
            &text,
        );
        baseline += 17.0;
    }
}

/// One row of lines and one of marks; only what is drawn is explained.
fn legend(drawing: &mut Drawing, chart: &Chart) {
    let style = text_style(LABEL_SIZE_PX, INK, "start");
    let mut x = LEFT_PX;
    let mut entry = |drawing: &mut Drawing, text: &str, sample: &dyn Fn(&mut Drawing, f64)| {
        sample(drawing, x);
        drawing.text((x + 30.0, 96.0), style, text);
        x += 30.0 + font::width_px(text, LABEL_SIZE_PX, false) + 22.0;
    };
    for side in Side::BOTH {
        entry(drawing, &format!("{} p95", side.name()), &|d, x| {
            d.line((x, 92.0), (x + 24.0, 92.0), &p95_stroke(side));
        });
        entry(drawing, &format!("{} p50", side.name()), &|d, x| {
            d.line((x, 92.0), (x + 24.0, 92.0), &p50_stroke(side));
        });
    }
    if !chart.gates.is_empty() {
        entry(drawing, "gate", &|d, x| {
            d.line((x, 92.0), (x + 24.0, 92.0), &gate_stroke(GREY, true));
        });
    }
    let mut x = LEFT_PX;
    for (mark, name) in Mark::ALL {
        let in_load = |load: &Load| {
            load.trials
                .iter()
                .any(|trial| Mark::of(load, trial) == mark)
        };
        if chart.loads.iter().any(in_load) {
            mark.draw(drawing, (x + 12.0, 109.0), INK);
            drawing.text((x + 30.0, 113.0), style, name);
            x += 30.0 + font::width_px(name, LABEL_SIZE_PX, false) + 22.0;
        }
    }
}

fn axes(drawing: &mut Drawing, x: &Scale, y: &Scale) {
    for tick in y.ticks(6) {
        let at = y.px(tick);
        drawing.line(
            (LEFT_PX, at),
            (RIGHT_PX, at),
            "stroke=\"#e6e6e6\" stroke-width=\"1\"",
        );
        let style = text_style(TICK_SIZE_PX, GREY, "end");
        drawing.text((LEFT_PX - 8.0, at + 4.0), style, &number(tick));
    }
    for tick in x.ticks(7) {
        let at = x.px(tick);
        let stroke = format!("stroke=\"{GREY}\" stroke-width=\"1\"");
        drawing.line((at, BOTTOM_PX), (at, BOTTOM_PX + 5.0), &stroke);
        let style = text_style(TICK_SIZE_PX, GREY, "middle");
        drawing.text((at, BOTTOM_PX + 19.0), style, &number(tick));
    }
    let stroke = format!("stroke=\"{GREY}\" stroke-width=\"1\"");
    drawing.line((LEFT_PX, BOTTOM_PX), (RIGHT_PX, BOTTOM_PX), &stroke);
    drawing.line((LEFT_PX, TOP_PX), (LEFT_PX, BOTTOM_PX), &stroke);
    let style = text_style(12.0, INK, "middle");
    let middle = f64::midpoint(LEFT_PX, RIGHT_PX);
    drawing.text((middle, BOTTOM_PX + 42.0), style, "load (sessions)");
    let unit = if y.is_logarithmic() {
        "latency from the schedule (ms, logarithmic)"
    } else {
        "latency from the schedule (ms)"
    };
    drawing.upward_text((24.0, f64::midpoint(TOP_PX, BOTTOM_PX)), style, unit);
}

fn p95_stroke(side: Side) -> String {
    format!(
        "stroke=\"{}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"",
        color(side)
    )
}

fn p50_stroke(side: Side) -> String {
    format!(
        "stroke=\"{}\" stroke-width=\"1.4\" stroke-opacity=\"0.5\" stroke-linejoin=\"round\"",
        color(side)
    )
}

/// Lighter on the median, as the median's own line is.
fn gate_stroke(color: &str, on_p95: bool) -> String {
    let opacity = if on_p95 { 1.0 } else { 0.5 };
    format!(
        "stroke=\"{color}\" stroke-opacity=\"{opacity}\" stroke-width=\"1.2\" stroke-dasharray=\"7 4\""
    )
}

/// Dashed lines, each with its label at the right, where no data is.
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
            &gate_stroke(color, gate.on_p95),
        );
        let leader = format!("stroke=\"{color}\" stroke-width=\"0.8\"");
        drawing.line((RIGHT_PX, *at), (RIGHT_PX + 8.0, label), &leader);
        let style = text_style(LABEL_SIZE_PX, text_color(gate.side), "start");
        let room = f64::from(SIZE_PX.0) - (RIGHT_PX + 11.0) - 4.0;
        let text = font::fit(&gate.label, LABEL_SIZE_PX, false, room);
        drawing.text((RIGHT_PX + 11.0, label + 4.0), style, &text);
    }
}

/// Moves labels apart so that none covers another, as little as that needs: first downwards, then, from the bottom, back upwards.
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

/// The load line, with its label above the plot.
fn load_line(drawing: &mut Drawing, x: f64, label: &str) {
    let stroke = format!("stroke=\"{INK}\" stroke-width=\"1.8\"");
    drawing.line((x, TOP_PX - 4.0), (x, BOTTOM_PX), &stroke);
    let style = TextStyle {
        bold: true,
        ..text_style(12.0, INK, "middle")
    };
    let half = font::width_px(label, 12.0, true) / 2.0;
    let right = f64::from(SIZE_PX.0) - MARGIN_PX;
    let centre = x.clamp(LEFT_PX + half, right - half);
    drawing.text((centre, TOP_PX - 9.0), style, label);
}

/// Lines through the medians of the loads.
fn series(drawing: &mut Drawing, chart: &Chart, side: Side, x: &Scale, y: &Scale) {
    let line = |value: &dyn Fn(&TrialSummary) -> Option<f64>| -> Vec<(f64, f64)> {
        let at = |load: &Load| Some((x.px(f64::from(load.sessions)), y.px(load.median(value)?)));
        chart.loads.iter().filter_map(at).collect()
    };
    let medians = line(&|trial| side.p50(trial));
    // A single point is no line.
    if let [only] = medians[..] {
        let style = format!("fill=\"{}\" fill-opacity=\"0.5\"", color(side));
        drawing.circle(only, 2.6, &style);
    } else {
        drawing.polyline(&medians, &p50_stroke(side));
    }
    let p95 = line(&|trial| side.p95(trial));
    if p95.len() > 1 {
        drawing.polyline(&p95, &p95_stroke(side));
    }
}

/// One mark per trial, at its 95th percentile.
fn marks(drawing: &mut Drawing, chart: &Chart, side: Side, x: &Scale, y: &Scale) {
    for load in &chart.loads {
        for trial in &load.trials {
            if let Some(value) = side.p95(trial) {
                let at = (x.px(f64::from(load.sessions)), y.px(value));
                Mark::of(load, trial).draw(drawing, at, color(side));
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
