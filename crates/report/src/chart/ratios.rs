//! A comparison as ratios: each pair, the mean of the pairs with its interval, and the ratio of the load lines, all
//! against the line at 1.

use plimsoll_core::record::{Comparison, LoadCosts};
use plimsoll_core::stats::{Mean, Ratio};

use super::SIZE_PX;
use super::draw::Mark;
use super::frame::{
    self, BOTTOM_PX, GREY, INK, LEFT_PX, Legend, PLOT, RIGHT_PX, TOP_PX, text_style,
};
use super::scale::Scale;
use super::svg::Drawing;
use crate::facts;
use crate::words::comparison as say;
use crate::words::{count, load_axis, percent, plain};

/// Where the pairs end and the ratios with intervals begin.
const PAIRS_END_PX: f64 = 470.0;
const COST_PX: f64 = 535.0;
const LOAD_LINE_PX: f64 = 615.0;
/// Half the width of the caps of an interval.
const CAP_PX: f64 = 7.0;
/// Room above and below the values, as a share of their span.
const ROOM: f64 = 0.08;
/// With more pairs than this, only some get a tick.
const TICKS_MAX: usize = 12;

const COST: &str = "#0072b2";
const LOAD_LINE: &str = "#009e73";

/// A pair of trials, or a load at which two result folders were compared.
struct Step {
    name: String,
    ratio: f64,
    counts: bool,
}

/// The ratios as SVG. `None` when there is no ratio to draw.
#[must_use]
pub fn svg(comparison: &Comparison) -> Option<String> {
    let steps = steps(comparison);
    let intervals = [comparison.cost_ratio, comparison.load_line_ratio];
    let of_steps = steps.iter().map(|step| step.ratio);
    let of_intervals = intervals
        .iter()
        .flatten()
        .flat_map(|ratio| [ratio.low, ratio.value, ratio.high]);
    let values: Vec<f64> = of_steps
        .chain(of_intervals)
        .filter(|v| v.is_finite())
        .collect();
    if values.is_empty() {
        return None;
    }
    let y = scale(&values);
    let title = title(comparison);
    let subtitles = subtitles(comparison);
    let mut drawing = Drawing::default();
    frame::header(&mut drawing, &title, &subtitles);
    legend(&mut drawing, comparison, &steps);
    let ticks = ticks(comparison, &steps);
    let step = if comparison.pairs.is_empty() {
        load_axis(comparison.load_unit)
    } else {
        "pair".to_owned()
    };
    let what = format!("{step}, and all together");
    frame::axes_of(
        &mut drawing,
        PLOT,
        (&y, 7, "B / A"),
        Some((&ticks[..], what.as_str())),
    );
    let one = format!("stroke=\"{INK}\" stroke-width=\"1.4\"");
    drawing.line((LEFT_PX, y.px(1.0)), (RIGHT_PX, y.px(1.0)), &one);
    let style = text_style(frame::LABEL_SIZE_PX, INK, "start");
    drawing.text((RIGHT_PX + 8.0, y.px(1.0) + 4.0), style, "1: no difference");
    for (index, step) in steps.iter().enumerate() {
        let at = (place(index, steps.len()), y.px(step.ratio));
        mark(step).draw(&mut drawing, at, COST, 1.0);
    }
    for (ratio, x, color) in [
        (comparison.cost_ratio, COST_PX, COST),
        (comparison.load_line_ratio, LOAD_LINE_PX, LOAD_LINE),
    ] {
        if let Some(ratio) = ratio {
            interval(&mut drawing, x, &ratio, &y, color);
        }
    }
    Some(drawing.finish(SIZE_PX, &title, &subtitles.join("; ")))
}

/// A scale for all values and 1, with a little room.
fn scale(values: &[f64]) -> Scale {
    let low = values.iter().copied().fold(1.0, f64::min);
    let high = values.iter().copied().fold(1.0, f64::max);
    let room = ((high - low) * ROOM).max(0.01);
    Scale::linear((low - room).max(0.0), high + room, BOTTOM_PX, TOP_PX)
}

fn title(comparison: &Comparison) -> String {
    let conclusion = comparison.conclusion.word();
    super::fitting_title(&comparison.b.name, |b| {
        super::fitting_title(&comparison.a.name, |a| {
            format!("{b} against {a}: {conclusion}")
        })
    })
}

fn subtitles(comparison: &Comparison) -> [String; 2] {
    let told = |name: &str, ratio: Option<Ratio>| {
        let told = ratio.as_ref().map(facts::ratio);
        format!(
            "{name} {}",
            told.unwrap_or_else(|| "not compared".to_owned())
        )
    };
    let sides = format!(
        "A is {}, B is {}; intervals hold together with a confidence of {}",
        plain(&comparison.a.name),
        plain(&comparison.b.name),
        percent(comparison.confidence)
    );
    let name = say::cost(comparison);
    let cost = told(&format!("B / A: {name}"), comparison.cost_ratio);
    let load_line = told("load line", comparison.load_line_ratio);
    [format!("{cost}; {load_line}"), sides]
}

/// The pairs that have a ratio, or for two result folders the loads they have in common.
fn steps(comparison: &Comparison) -> Vec<Step> {
    let account = comparison.cost_account;
    let pair = |(index, pair): (usize, &plimsoll_core::record::Pair)| {
        Some(Step {
            name: count(index as u64 + 1),
            ratio: say::of_pair(pair, account)?,
            counts: pair.left_out.is_none(),
        })
    };
    let load = |load: &LoadCosts| {
        let (a, b) = load.costs(account);
        let (a, b) = (Mean::of(a)?, Mean::of(b)?);
        (a.value > 0.0).then(|| Step {
            name: count(load.sessions.into()),
            ratio: b.value / a.value,
            counts: true,
        })
    };
    let pairs = comparison.pairs.iter().enumerate().filter_map(pair);
    pairs
        .chain(comparison.loads.iter().filter_map(load))
        .collect()
}

fn mark(step: &Step) -> Mark {
    if step.counts {
        Mark::Pass
    } else {
        Mark::Invalid
    }
}

/// Spreads the steps evenly over their part of the plot.
fn place(index: usize, steps: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few pairs")]
    let share = (index as f64 + 0.5) / steps.max(1) as f64;
    LEFT_PX + 12.0 + share * (PAIRS_END_PX - LEFT_PX - 12.0)
}

fn ticks(comparison: &Comparison, steps: &[Step]) -> Vec<(f64, String)> {
    let every = steps.len().div_ceil(TICKS_MAX).max(1);
    let named = |(index, step): (usize, &Step)| (place(index, steps.len()), step.name.clone());
    let mut ticks: Vec<_> = steps.iter().enumerate().step_by(every).map(named).collect();
    if comparison.cost_ratio.is_some() {
        ticks.push((COST_PX, "mean cost".to_owned()));
    }
    if comparison.load_line_ratio.is_some() {
        ticks.push((LOAD_LINE_PX, "load line".to_owned()));
    }
    ticks
}

fn interval(drawing: &mut Drawing, x: f64, ratio: &Ratio, y: &Scale, color: &str) {
    let stroke = format!("stroke=\"{color}\" stroke-width=\"2\"");
    let (low, high) = (y.px(ratio.low), y.px(ratio.high));
    drawing.line((x, low), (x, high), &stroke);
    for end in [low, high] {
        drawing.line((x - CAP_PX, end), (x + CAP_PX, end), &stroke);
    }
    Mark::Pass.draw(drawing, (x, y.px(ratio.value)), color, 1.2);
}

fn legend(drawing: &mut Drawing, comparison: &Comparison, steps: &[Step]) {
    let mut marks = Legend::row(0);
    if !steps.is_empty() {
        marks.entry(drawing, &say::cost(comparison), |drawing, at| {
            Mark::Pass.draw(drawing, at, COST, 1.0);
        });
    }
    if steps.iter().any(|step| !step.counts) {
        marks.entry(drawing, "left out of the mean", |drawing, at| {
            Mark::Invalid.draw(drawing, at, COST, 1.0);
        });
    }
    let mut intervals = Legend::row(1);
    for (known, color, text) in [
        (
            comparison.cost_ratio,
            COST,
            "cost with its interval: below 1 is better",
        ),
        (
            comparison.load_line_ratio,
            LOAD_LINE,
            "load lines: above 1 is better",
        ),
    ] {
        if known.is_some() {
            intervals.entry(drawing, text, |drawing, (x, y)| {
                let stroke = format!("stroke=\"{color}\" stroke-width=\"2\"");
                drawing.line((x, y - 7.0), (x, y + 7.0), &stroke);
                Mark::Pass.draw(drawing, (x, y), color, 0.9);
            });
        }
    }
    // Between the pairs and their combined ratios.
    let divider = format!("stroke=\"{GREY}\" stroke-width=\"0.8\" stroke-dasharray=\"2 3\"");
    let x = PAIRS_END_PX + 12.0;
    drawing.line((x, TOP_PX), (x, BOTTOM_PX), &divider);
}
