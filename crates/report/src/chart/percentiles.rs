//! Latency by percentile, on the axis that HdrHistogram made popular: each further nine takes the same room, so the
//! tail is readable.

use hdrhistogram::Histogram;
use plimsoll_core::latency::{Quantiles, Series};
use plimsoll_core::record::GateResult;
use plimsoll_document::Tellers;

use super::frame::{
    self, BOTTOM_PX, GREY, INK, LABEL_SIZE_PX, LEFT_PX, Legend, PLOT, RIGHT_PX, TOP_PX, text_style,
};
use super::scale::Scale;
use super::svg::Drawing;
use super::{SIZE_PX, font};
use crate::error::ReportError;
use crate::folder::StoredTrial;
use crate::trial_files;
use crate::words::{count, load_of, ms, number, plain};

/// Points closer together than this are drawn as one: the eye sees no difference, and the file stays small.
const STEP_PX: f64 = 1.5;
/// Half the width of a gate's mark.
const GATE_PX: f64 = 11.0;

/// A latency and how rare it is: one answer in `rarity` takes longer.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    /// `1 / (1 - quantile)`: 2 for the median, 100 for the 99th percentile.
    rarity: f64,
    latency_ms: f64,
}

/// The newest-frame latencies of one trial.
#[derive(Debug, Clone)]
pub(crate) struct Curve<'a> {
    stored: &'a StoredTrial,
    from_schedule: Vec<Point>,
    from_write: Vec<Point>,
    /// Whether the curve has all samples, or only the percentiles of the record.
    whole: bool,
}

impl<'a> Curve<'a> {
    /// The curve of a trial from its interval log, or from the percentiles of its record where there is no log. `None`
    /// when nothing was answered.
    ///
    /// # Errors
    /// When the log cannot be read or is broken.
    pub(crate) fn of(
        stored: &'a StoredTrial,
        folder: &std::path::Path,
    ) -> Result<Option<Self>, ReportError> {
        let both = [Series::NewestFromSchedule, Series::NewestFromWrite];
        let newest = &stored.trial.latency.newest;
        let logged = trial_files::histograms(folder, &stored.stem, both)?;
        let curve = match logged.as_deref() {
            Some([schedule, write]) if !schedule.is_empty() => Self {
                stored,
                from_schedule: points_of(schedule),
                from_write: points_of(write),
                whole: true,
            },
            _ => Self {
                stored,
                from_schedule: percentiles_of(&newest.from_schedule),
                from_write: percentiles_of(&newest.from_write),
                whole: false,
            },
        };
        Ok((!curve.from_schedule.is_empty()).then_some(curve))
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.from_schedule.iter().chain(&self.from_write)
    }

    fn name(&self) -> String {
        let trial = &self.stored.trial;
        format!(
            "{} ({})",
            count(trial.sessions.into()),
            trial.verdict.word()
        )
    }
}

/// The steps of a histogram of microseconds: each value, from the quantile where it begins to the quantile where it
/// ends. The last step ends at a rarity of one in all samples.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of samples, and values below an hour in microseconds: far below 2^53"
)]
fn points_of(histogram: &Histogram<u64>) -> Vec<Point> {
    let total = histogram.len();
    let rarity = |below: u64| total as f64 / total.saturating_sub(below).max(1) as f64;
    let mut points = Vec::new();
    let mut below = 0;
    for step in histogram.iter_recorded() {
        let latency_ms = step.value_iterated_to() as f64 / 1e3;
        for counted in [below, below + step.count_at_value()] {
            points.push(Point {
                rarity: rarity(counted),
                latency_ms,
            });
        }
        below += step.count_at_value();
    }
    points
}

/// The few points in a record.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of samples, far below 2^53"
)]
fn percentiles_of(quantiles: &Quantiles) -> Vec<Point> {
    let known = [
        (2.0, quantiles.p50_ms),
        (10.0, quantiles.p90_ms),
        (20.0, quantiles.p95_ms),
        (100.0, quantiles.p99_ms),
        (1_000.0, quantiles.p999_ms),
        (quantiles.count.max(1) as f64, quantiles.max_ms),
    ];
    // A percentile rarer than one in all samples is the maximum.
    let last = quantiles.count.max(1) as f64;
    let point = |(rarity, latency_ms): (f64, Option<f64>)| {
        (rarity <= last).then_some(Point {
            rarity,
            latency_ms: latency_ms?,
        })
    };
    known.into_iter().filter_map(point).collect()
}

/// A gate on a percentile of the newest frame's latency.
#[derive(Debug, Clone, PartialEq)]
struct Gate {
    /// `None` for the maximum.
    rarity: Option<f64>,
    threshold_ms: f64,
    name: &'static str,
}

fn gates_on_newest(gates: &[GateResult]) -> Vec<Gate> {
    let known = [
        ("p50", Some(2.0)),
        ("p90", Some(10.0)),
        ("p95", Some(20.0)),
        ("p99", Some(100.0)),
        ("p999", Some(1_000.0)),
        ("max", None),
    ];
    let gate = |gate: &GateResult| {
        let percentile = gate.name.strip_prefix("newest_")?.strip_suffix("_ms")?;
        let (name, rarity) = known.into_iter().find(|(name, _)| *name == percentile)?;
        Some(Gate {
            rarity,
            threshold_ms: gate.threshold,
            name,
        })
    };
    gates.iter().filter_map(gate).collect()
}

/// The plot as SVG. `None` without curves.
pub(crate) fn svg(curves: &[Curve<'_>], tellers: Tellers) -> Option<String> {
    let first = &curves.first()?.stored.trial;
    let gates = gates_on_newest(&first.gates);
    let rarest = curves
        .iter()
        .flat_map(Curve::points)
        .map(|point| point.rarity);
    let rarest = rarest.fold(100.0, f64::max);
    let x = Scale::logarithmic(1.0, rarest, LEFT_PX, RIGHT_PX);
    let drawn = curves
        .iter()
        .flat_map(Curve::points)
        .map(|point| point.latency_ms);
    let thresholds = gates.iter().map(|gate| gate.threshold_ms);
    let values: Vec<f64> = drawn.chain(thresholds).collect();
    let y = Scale::for_values(&values, BOTTOM_PX, TOP_PX);

    let title = super::fitting_title(&first.target.name, |name| {
        format!("{name}: latency of the newest frame by percentile")
    });
    let subtitles = [p99(curves), conditions(curves, tellers)];
    let mut drawing = Drawing::default();
    frame::header(&mut drawing, &title, &subtitles);
    legend(&mut drawing, curves, !gates.is_empty());
    let unit = if y.is_logarithmic() {
        "latency, newest frame (ms, logarithmic)"
    } else {
        "latency, newest frame (ms)"
    };
    let ticks = nines(&x, rarest);
    let x_axis = (&ticks[..], "percentile of the answers");
    frame::axes_of(&mut drawing, PLOT, (&y, 6, unit), Some(x_axis));
    for (index, curve) in curves.iter().enumerate() {
        draw(
            &mut drawing,
            &curve.from_write,
            &write_stroke(index),
            (&x, &y),
        );
        draw(
            &mut drawing,
            &curve.from_schedule,
            &schedule_stroke(index),
            (&x, &y),
        );
    }
    for gate in &gates {
        mark(
            &mut drawing,
            gate,
            (x.px(gate.rarity.unwrap_or(rarest)), y.px(gate.threshold_ms)),
        );
    }
    let description = format!(
        "Latency of the newest frame in milliseconds against the percentile, from the schedule and from the write. {}",
        subtitles.join("; ")
    );
    Some(drawing.finish(SIZE_PX, &title, &description))
}

/// The main statement: the p99 at each load.
fn p99(curves: &[Curve<'_>]) -> String {
    let at = |curve: &Curve<'_>| {
        let trial = &curve.stored.trial;
        let p99 = trial.latency.newest.from_schedule.p99_ms?;
        Some(format!("{} at {}", ms(p99), count(trial.sessions.into())))
    };
    let told: Vec<_> = curves.iter().filter_map(at).collect();
    match &told[..] {
        [] => String::new(),
        told => {
            let unit = curves[0].stored.trial.load_unit.name();
            format!("p99 from the schedule: {} {unit}", told.join(", "))
        }
    }
}

/// What the chart shows, and from which trials.
fn conditions(curves: &[Curve<'_>], tellers: Tellers) -> String {
    let stems: Vec<_> = curves
        .iter()
        .map(|curve| plain(&curve.stored.stem))
        .collect();
    let from = if curves.iter().all(|curve| curve.whole) {
        "every answer of"
    } else {
        "interval logs are missing: some curves have only the record's percentiles;"
    };
    let loads = match curves {
        [only] => format!(" at {}", load_of(&only.stored.trial, tellers)),
        _ => String::new(),
    };
    format!("{from} {}{loads}", stems.join(", "))
}

fn schedule_stroke(index: usize) -> String {
    format!(
        "stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"",
        frame::series_color(index)
    )
}

fn write_stroke(index: usize) -> String {
    format!(
        "stroke=\"{}\" stroke-width=\"1.4\" stroke-dasharray=\"5 3\"",
        frame::series_color(index)
    )
}

/// One row for the loads, and one for what lines and marks mean.
fn legend(drawing: &mut Drawing, curves: &[Curve<'_>], gated: bool) {
    let line = |drawing: &mut Drawing, (x, y): (f64, f64), stroke: &str| {
        drawing.line((x - 12.0, y), (x + 12.0, y), stroke);
    };
    let mut loads = Legend::row(0);
    for (index, curve) in curves.iter().enumerate() {
        loads.entry(drawing, &curve.name(), |drawing, at| {
            line(drawing, at, &schedule_stroke(index));
        });
    }
    let mut clocks = Legend::row(1);
    clocks.entry(drawing, "from the schedule", |drawing, at| {
        line(drawing, at, &format!("stroke=\"{INK}\" stroke-width=\"2\""));
    });
    clocks.entry(drawing, "from the write", |drawing, at| {
        let stroke = format!("stroke=\"{INK}\" stroke-width=\"1.4\" stroke-dasharray=\"5 3\"");
        line(drawing, at, &stroke);
    });
    if gated {
        clocks.entry(drawing, "gate, from the schedule", |drawing, (x, y)| {
            bar(drawing, (x, y));
        });
    }
}

/// The percentiles that get ticks: 0, 50, 90, 99, 99.9, … as far as the samples reach.
fn nines(x: &Scale, rarest: f64) -> Vec<(f64, String)> {
    let mut ticks = vec![(x.px(1.0), "0".to_owned()), (x.px(2.0), "50".to_owned())];
    let mut power = 10.0;
    let mut places: usize = 0;
    while power <= rarest * (1.0 + 1e-9) {
        let percent = 100.0 - 100.0 / power;
        let decimals = places.saturating_sub(1);
        ticks.push((x.px(power), format!("{percent:.decimals$}")));
        power *= 10.0;
        places += 1;
    }
    ticks
}

/// Draws the curve without the points that no eye could tell apart.
fn draw(drawing: &mut Drawing, points: &[Point], stroke: &str, (x, y): (&Scale, &Scale)) {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let last = points.len().saturating_sub(1);
    for (index, point) in points.iter().enumerate() {
        let at = (x.px(point.rarity), y.px(point.latency_ms));
        let is_near = kept
            .last()
            .is_some_and(|(x, y)| (at.0 - x).abs() < STEP_PX && (at.1 - y).abs() < STEP_PX);
        if !is_near || index == last {
            kept.push(at);
        }
    }
    drawing.polyline(&kept, stroke);
}

/// Marks a gate: the curve of a trial that passes it runs below.
fn mark(drawing: &mut Drawing, gate: &Gate, (x, y): (f64, f64)) {
    bar(drawing, (x, y));
    let text = format!("{} ≤ {}", gate.name, number(gate.threshold_ms));
    let width = font::width_px(&text, LABEL_SIZE_PX, false);
    // Above and to the left of the mark, where no passing curve runs. At the left end of the plot it is on the right
    // instead.
    let left = (x - GATE_PX - width - 4.0).max(LEFT_PX + 4.0);
    let corners = [
        (left - 2.0, y - 18.0),
        (left + width + 2.0, y - 18.0),
        (left + width + 2.0, y - 4.0),
        (left - 2.0, y - 4.0),
    ];
    drawing.polygon(&corners, "fill=\"#ffffff\" fill-opacity=\"0.8\"");
    let style = text_style(LABEL_SIZE_PX, INK, "start");
    drawing.text((left, y - 7.0), style, &text);
}

fn bar(drawing: &mut Drawing, (x, y): (f64, f64)) {
    let ends = |y: f64| ((x - GATE_PX, y), (x + GATE_PX, y));
    let (left, right) = ends(y);
    drawing.line(left, right, &format!("stroke=\"{INK}\" stroke-width=\"3\""));
    let below = format!("stroke=\"{GREY}\" stroke-width=\"0.8\"");
    drawing.line((x, y), (x, y + 6.0), &below);
}

#[cfg(test)]
mod tests {
    use plimsoll_core::latency::LatencySet;
    use plimsoll_core::profile::NS_PER_MS;
    use proptest::prelude::*;

    use super::*;

    fn histogram(values_ms: &[u64]) -> Histogram<u64> {
        let mut set = LatencySet::new();
        for value in values_ms {
            set.record_ns(Series::NewestFromSchedule, value * NS_PER_MS);
        }
        set.histogram(Series::NewestFromSchedule).clone()
    }

    proptest! {
        #[test]
        fn a_curve_goes_through_every_quantile(
            values in prop::collection::vec(1u64..5_000, 1..200),
            quantile in 0.01f64..0.999,
        ) {
            let histogram = histogram(&values);
            let points = points_of(&histogram);
            let ascend = points.windows(2).all(|pair| {
                pair[0].rarity <= pair[1].rarity && pair[0].latency_ms <= pair[1].latency_ms
            });
            prop_assert!(ascend, "{points:?}");
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let at = histogram.value_at_quantile(quantile) as f64 / 1e3;
            let rarity = 1.0 / (1.0 - quantile);
            let on_a_step = points.chunks(2).any(|step| {
                let covers = step[0].rarity * (1.0 - 1e-9) <= rarity && rarity <= step[1].rarity * (1.0 + 1e-9);
                (covers || step[1] == points[points.len() - 1]) && (step[0].latency_ms - at).abs() < 1e-9
            });
            prop_assert!(on_a_step, "{} at {}: {:?}", at, quantile, points);
        }
    }

    #[test]
    fn the_greatest_of_many_is_as_rare_as_one_of_them() {
        let mut values = vec![100; 99];
        values.push(900);
        let points = points_of(&histogram(&values));
        let last = points[points.len() - 1];
        assert!(
            (last.rarity - 100.0).abs() < 1e-9 && last.latency_ms > 899.0,
            "{last:?}"
        );
        assert!(points_of(&histogram(&[])).is_empty());
    }

    #[test]
    fn percentiles_of_few_samples_end_at_their_number() {
        let quantiles = Quantiles {
            p50_ms: Some(10.0),
            p99_ms: Some(30.0),
            p999_ms: Some(30.0),
            max_ms: Some(30.0),
            count: 40,
            ..Quantiles::default()
        };
        let rarities: Vec<f64> = percentiles_of(&quantiles)
            .iter()
            .map(|p| p.rarity)
            .collect();
        assert_eq!(rarities, [2.0, 40.0]);
    }

    #[test]
    fn ticks_are_nines() {
        let x = Scale::logarithmic(1.0, 20_000.0, 0.0, 100.0);
        let names: Vec<_> = nines(&x, 20_000.0)
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["0", "50", "90", "99", "99.9", "99.99"]);
    }
}
