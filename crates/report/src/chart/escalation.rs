//! An escalation: latency, goodput and failures over the load, one above the other, with the three loads that matter.

use super::SIZE_PX;
use super::frame::{
    self, INK, LABEL_SIZE_PX, LEFT_PX, Plot, RIGHT_PX, SideLegend, series_color, series_stroke,
    text_style,
};
use super::scale::Scale;
use super::svg::Drawing;
use crate::escalation::{Escalated, Rung};
use crate::words::{count, load_axis, plain};

const TOP_PX: f64 = 118.0;
const PANEL_PX: f64 = 150.0;
/// From the top of one panel to the top of the next.
const STEP_PX: f64 = 178.0;
/// Room below the lowest panel, for its axis.
const FOOT_PX: f64 = 58.0;
const PANELS: usize = 3;
/// Baselines of the marks' labels. Each has its own, because the loads can be close to each other.
const LABELS_PX: [f64; 3] = [82.0, 97.0, 112.0];

/// The chart as SVG. `None` where fewer than two loads have trials.
pub(super) fn svg(escalated: &Escalated) -> Option<String> {
    let rungs = &escalated.rungs;
    if rungs.len() < 2 {
        return None;
    }
    let x = frame::load_scale(rungs.iter().map(|rung| rung.load));
    let title = super::fitting_title(&escalated.target, |name| {
        format!("{name} at ever more {}", escalated.unit.name())
    });
    let conditions = format!(
        "workload {}; latency from the schedule; medians of the valid trials of a load",
        plain(&escalated.workload)
    );
    let subtitles: Vec<String> = std::iter::once(conditions).chain(doubt(rungs)).collect();
    let mut drawing = Drawing::default();
    frame::header(&mut drawing, &title, &subtitles);
    let marks = marks(escalated);
    for ((name, load), baseline) in marks.iter().zip(LABELS_PX) {
        mark(&mut drawing, x.px(f64::from(*load)), baseline, name, *load);
    }
    for (number, of) in panels().iter().enumerate() {
        panel(&mut drawing, number, of, &x, escalated);
    }
    let told: Vec<String> = marks
        .iter()
        .map(|(name, load)| format!("{name}: {}", count(u64::from(*load))))
        .collect();
    let description = format!(
        "Latency, goodput and the share that failed, against {}. {}",
        escalated.unit.name(),
        told.join(", ")
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a height in px, a few hundred"
    )]
    let height = (plot(PANELS - 1).bottom + FOOT_PX) as u32;
    Some(drawing.finish((SIZE_PX.0, height), &title, &description))
}

/// Which loads decide nothing, because none of their trials is valid.
fn doubt(rungs: &[Rung]) -> Option<String> {
    let in_doubt = rungs.iter().filter(|rung| !rung.is_valid());
    let loads: Vec<String> = in_doubt.map(|rung| count(u64::from(rung.load))).collect();
    let told = || format!("no valid trial at {}: drawn as measured", loads.join(", "));
    (!loads.is_empty()).then(told)
}

/// The loads that are known, each with its name.
fn marks(escalated: &Escalated) -> Vec<(&'static str, u32)> {
    let beyond = escalated.beyond.as_ref();
    let knee = beyond.and_then(|beyond| beyond.knee);
    let collapse = beyond.and_then(|beyond| beyond.collapse);
    let all = [
        ("SLO limit", escalated.slo_limit),
        ("knee", knee.map(|knee| knee.load)),
        ("collapse", collapse.map(|collapse| collapse.load)),
    ];
    all.into_iter()
        .filter_map(|(name, load)| Some((name, load?)))
        .collect()
}

/// A line through all panels, with its label above them.
fn mark(drawing: &mut Drawing, x: f64, baseline: f64, name: &str, load: u32) {
    let stroke = format!("stroke=\"{INK}\" stroke-width=\"1.2\" stroke-dasharray=\"4 3\"");
    drawing.line((x, baseline + 3.0), (x, plot(PANELS - 1).bottom), &stroke);
    let style = text_style(LABEL_SIZE_PX, INK, "end");
    let near_the_axis = x < LEFT_PX + 120.0;
    let (at, style) = if near_the_axis {
        (x + 5.0, text_style(LABEL_SIZE_PX, INK, "start"))
    } else {
        (x - 5.0, style)
    };
    let text = format!("{name}: {}", count(u64::from(load)));
    drawing.text((at, baseline), style, &text);
}

#[expect(clippy::cast_precision_loss, reason = "a panel of three")]
fn plot(index: usize) -> Plot {
    let top = TOP_PX + index as f64 * STEP_PX;
    Plot {
        left: LEFT_PX,
        right: RIGHT_PX,
        top,
        bottom: top + PANEL_PX,
    }
}

/// A line of a panel: its name, the place of its colour, and its value at a load.
struct Line {
    name: &'static str,
    color: usize,
    value: fn(&Rung) -> Option<f64>,
}

/// One quantity over the load.
struct Panel {
    name: &'static str,
    /// Whether its axis may be logarithmic, which has no zero.
    never_zero: bool,
    lines: Vec<Line>,
}

fn panels() -> [Panel; PANELS] {
    let line = |name, color, value| Line { name, color, value };
    [
        Panel {
            name: "latency (ms)",
            never_zero: true,
            lines: vec![
                line("p50", 0, |rung| rung.p50_ms),
                line("p99", 1, |rung| rung.p99_ms),
            ],
        },
        Panel {
            name: "per second",
            never_zero: false,
            lines: vec![
                line("offered", 3, |rung| Some(rung.goodput.due_per_s)),
                line("goodput", 2, |rung| Some(rung.goodput.good_per_s)),
            ],
        },
        Panel {
            name: "failed (%)",
            never_zero: false,
            lines: vec![line("failed", 4, |rung| {
                Some(rung.goodput.failed_share * 100.0)
            })],
        },
    ]
}

/// Draws one quantity; the lowest panel has the axis of the loads.
fn panel(drawing: &mut Drawing, number: usize, panel: &Panel, x: &Scale, escalated: &Escalated) {
    let plot = plot(number);
    let of = |line: &Line| -> Vec<(f64, Option<f64>)> {
        let point = |rung: &Rung| (x.px(f64::from(rung.load)), (line.value)(rung));
        escalated.rungs.iter().map(point).collect()
    };
    let all = panel.lines.iter().flat_map(of);
    let values: Vec<f64> = all.filter_map(|(_, value)| value).collect();
    let y = if panel.never_zero {
        Scale::for_values(&values, plot.bottom, plot.top)
    } else {
        Scale::from_zero(values, plot.bottom, plot.top)
    };
    let name = if y.is_logarithmic() {
        format!("{}, logarithmic", panel.name)
    } else {
        panel.name.to_owned()
    };
    let (ticks, loads) = (frame::numbered(x, 7), load_axis(escalated.unit));
    let axis = (number + 1 == PANELS).then_some((&ticks[..], loads.as_str()));
    frame::axes_of(drawing, plot, (&y, 5, &name), axis);
    let mut legend = SideLegend::beside(plot);
    for line in &panel.lines {
        let (color, stroke) = (series_color(line.color), series_stroke(line.color));
        let at = |(x, value): &(f64, Option<f64>)| value.map(|value| (*x, y.px(value)));
        let points: Vec<_> = of(line).iter().map(at).collect();
        frame::broken_line(drawing, points.iter().copied(), color, &stroke);
        for point in points.into_iter().flatten() {
            drawing.circle(point, 3.0, &format!("fill=\"{color}\""));
        }
        legend.line(drawing, line.name, &stroke);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::record::{
        Collapse, CollapseSign, Escalation, Goodput, Knee, LoadUnit, Verdict,
    };

    use super::*;

    fn escalated(loads: &[u32]) -> Escalated {
        let rung = |load: &u32| Rung {
            load: *load,
            verdicts: vec![Verdict::Pass],
            goodput: Goodput {
                due_per_s: f64::from(*load) / 8.0,
                good_per_s: f64::from(*load) / 9.0,
                failed_share: 0.0,
            },
            p50_ms: Some(150.0),
            p99_ms: None,
            first_broken: None,
        };
        Escalated {
            target: "go & <rust>".to_owned(),
            workload: "voice".to_owned(),
            unit: LoadUnit::of("callers"),
            rungs: loads.iter().map(rung).collect(),
            slo_limit: Some(200),
            beyond: Some(Escalation {
                knee: Some(Knee {
                    load: 280,
                    goodput_per_s: 31.0,
                    is_passed: true,
                }),
                collapse: Some(Collapse {
                    load: 390,
                    highest_without: Some(380),
                    sign: CollapseSign::TooManyFailed,
                }),
                ..Escalation::default()
            }),
        }
    }

    #[test]
    fn the_three_loads_are_marked_and_what_is_unknown_is_not_drawn() {
        let svg = svg(&escalated(&[100, 200, 280, 390])).expect("a chart");
        for words in ["SLO limit: 200", "knee: 280", "collapse: 390", "callers"] {
            assert!(svg.contains(words), "{words}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("<rust>"), "{svg}");
        // Of the five lines, p99 has no value. Each of the others has a mark at each load.
        let marks = svg.matches("<circle").count();
        assert_eq!((svg.matches("<polyline").count(), marks), (4, 16), "{svg}");
        let unmarked = Escalated {
            slo_limit: None,
            beyond: None,
            ..escalated(&[100, 200])
        };
        let plain = super::svg(&unmarked).expect("a chart");
        assert!(
            !plain.contains("no valid trial")
                && !plain.contains("knee")
                && !plain.contains("SLO limit")
        );
    }

    #[test]
    fn loads_without_a_valid_trial_are_named() {
        let mut in_doubt = escalated(&[100, 200]);
        in_doubt.rungs[1].verdicts = vec![Verdict::Invalid];
        let svg = svg(&in_doubt).expect("a chart");
        assert!(
            svg.contains("no valid trial at 200: drawn as measured"),
            "{svg}"
        );
    }

    #[test]
    fn a_single_load_is_no_escalation() {
        assert_eq!(svg(&escalated(&[100])), None);
    }
}
