//! A trial second by second: the latency of answers, how late the client was, each party's CPU, the target's memory,
//! and when something broke. All panels share one time axis, so that what happened together lines up.

use plimsoll_core::record::{Phase, Second};
use plimsoll_document::Tellers;

use super::draw::Mark;
use super::frame::{
    self, GREY, INK, LABEL_SIZE_PX, LEFT_PX, Plot, RIGHT_PX, SideLegend, text_style,
};
use super::scale::Scale;
use super::svg::Drawing;
use crate::folder::StoredTrial;
use crate::words::{self, count, plain};

/// The most points of a line. A point is one second, or several in a longer trial.
pub(crate) const POINTS_MAX: usize = 400;

const SIZE_PX: (u32, u32) = (super::SIZE_PX.0, 720);
const PANEL_TOP_PX: f64 = 116.0;
const PANEL_PX: f64 = 104.0;
/// From the top of one panel to the top of the next.
const STEP_PX: f64 = 140.0;
/// Smallest distance between two marks in a row.
const MARK_STEP_PX: f64 = 5.0;
/// Where the names of the phases stand.
const PHASES_PX: f64 = 90.0;
/// Background of the seconds that are not measured.
const SHADE: &str = "fill=\"#f2f2f2\"";

const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const GREEN: &str = "#009e73";

/// One line of a panel.
struct Line {
    name: &'static str,
    color: &'static str,
    stroke: String,
    values: Vec<Option<f64>>,
}

/// One of the panels.
struct Panel {
    title: &'static str,
    unit: &'static str,
    /// Whether the axis starts from zero. Otherwise it turns logarithmic where the values span too wide a range.
    from_zero: bool,
    lines: Vec<Line>,
}

/// The seconds of a trial as SVG. `None` when there are none.
pub(crate) fn svg(stored: &StoredTrial, seconds: &[Second], tellers: Tellers) -> Option<String> {
    let (first, last) = (seconds.first()?, seconds.last()?);
    let every_s = seconds.len().div_ceil(POINTS_MAX);
    let drawn = thinned(seconds, every_s);
    let starts_s = as_s(first.at_s.saturating_sub(1));
    let ends_s = as_s(last.at_s).max(starts_s + 1.0);
    let x = Scale::linear(starts_s, ends_s, LEFT_PX, RIGHT_PX);

    let trial = &stored.trial;
    let at = words::load_of(trial, tellers);
    let title = super::fitting_title(&trial.target.name, |name| {
        format!("{name} at {at}, second by second: {}", trial.verdict.word())
    });
    let subtitle = conditions(stored, every_s);
    let mut drawing = Drawing::default();
    frame::header(&mut drawing, &title, std::slice::from_ref(&subtitle));
    phases(&mut drawing, seconds, &x);
    let ticks = frame::numbered(&x, 8);
    let panels = panels(&drawn);
    let bottom_panel = panels.len() - 1;
    for (index, panel) in panels.iter().enumerate() {
        let plot = plot(index);
        let axis = (index == bottom_panel).then_some((&ticks[..], "time (s)"));
        draw(&mut drawing, plot, panel, (&drawn, &x), axis);
    }
    troubles(&mut drawing, plot(bottom_panel), seconds, (&drawn, &x));
    let description = format!("{subtitle}. {}", summed(seconds));
    Some(drawing.finish(SIZE_PX, &title, &description))
}

/// The place of a panel.
fn plot(index: usize) -> Plot {
    #[expect(clippy::cast_precision_loss, reason = "one of four")]
    let top = PANEL_TOP_PX + index as f64 * STEP_PX;
    Plot {
        left: LEFT_PX,
        right: RIGHT_PX,
        top,
        bottom: top + PANEL_PX,
    }
}

fn conditions(stored: &StoredTrial, every_s: usize) -> String {
    let trial = &stored.trial;
    let thinned = match every_s {
        1 => String::new(),
        many => format!("; each point is the greatest value of {many} s"),
    };
    format!(
        "{}{}, workload {}, profile {}{thinned}",
        words::length(trial.length),
        plain(&stored.stem),
        plain(&trial.workload),
        plain(&trial.profile)
    )
}

/// Merges every `every_s` seconds into one: the greatest value of each field, and the sum of each count, so that no
/// count gets lost.
fn thinned(seconds: &[Second], every_s: usize) -> Vec<Second> {
    let greatest = |bucket: &[Second], value: &dyn Fn(&Second) -> Option<f64>| {
        bucket.iter().filter_map(value).reduce(f64::max)
    };
    let of_bucket = |bucket: &[Second]| {
        let last = bucket.last().cloned().unwrap_or_default();
        let sum = |value: &dyn Fn(&Second) -> u64| bucket.iter().map(value).sum::<u64>();
        Second {
            errors: sum(&|s| s.errors),
            protocol_faults: sum(&|s| s.protocol_faults),
            sessions_lost: sum(&|s| s.sessions_lost),
            newest_p50_ms: greatest(bucket, &|s| s.newest_p50_ms),
            newest_p95_ms: greatest(bucket, &|s| s.newest_p95_ms),
            newest_max_ms: greatest(bucket, &|s| s.newest_max_ms),
            send_lag_p99_us: greatest(bucket, &|s| s.send_lag_p99_us),
            send_wait_p99_us: greatest(bucket, &|s| s.send_wait_p99_us),
            client_cpu_share: greatest(bucket, &|s| Some(s.client_cpu_share)).unwrap_or_default(),
            target_cpu_cores: greatest(bucket, &|s| s.target_cpu_cores),
            target_rss_bytes: bucket.iter().filter_map(|s| s.target_rss_bytes).max(),
            companion_cpu_cores: greatest(bucket, &|s| s.companion_cpu_cores),
            ..last
        }
    };
    seconds.chunks(every_s.max(1)).map(of_bucket).collect()
}

fn panels(drawn: &[Second]) -> [Panel; 4] {
    let line = |name, color, style: &str, value: &dyn Fn(&Second) -> Option<f64>| Line {
        name,
        color,
        stroke: format!("stroke=\"{color}\" stroke-linejoin=\"round\" {style}"),
        values: drawn.iter().map(value).collect(),
    };
    let (thick, thin) = ("stroke-width=\"2\"", "stroke-width=\"1.2\"");
    let dashed = "stroke-width=\"1.4\" stroke-dasharray=\"5 3\"";
    let as_ms = |us: Option<f64>| us.map(|us| us / 1e3);
    [
        Panel {
            title: "Latency of the newest frame, from the schedule",
            unit: "ms",
            from_zero: false,
            lines: vec![
                line("greatest", GREY, thin, &|s| s.newest_max_ms),
                line("p95", BLUE, thick, &|s| s.newest_p95_ms),
                line("p50", BLUE, dashed, &|s| s.newest_p50_ms),
            ],
        },
        Panel {
            title: "Client: its own lateness, and waits for the target",
            unit: "ms",
            from_zero: false,
            lines: vec![
                line("send lag p99", ORANGE, thick, &|s| as_ms(s.send_lag_p99_us)),
                line("send wait p99", GREEN, dashed, &|s| {
                    as_ms(s.send_wait_p99_us)
                }),
            ],
        },
        Panel {
            title: "CPU: target and simulator in cores, client as the share of its busiest core",
            unit: "cores",
            from_zero: true,
            lines: vec![
                line("target", BLUE, thick, &|s| s.target_cpu_cores),
                line("client", ORANGE, thick, &|s| Some(s.client_cpu_share)),
                line("simulator", GREEN, dashed, &|s| s.companion_cpu_cores),
            ],
        },
        Panel {
            title: "Memory of the target, and what broke",
            unit: "MiB",
            from_zero: true,
            lines: vec![line("RSS", BLUE, thick, &|s| {
                s.target_rss_bytes.map(|bytes| as_s(bytes) / 1_048_576.0)
            })],
        },
    ]
}

/// A count as a coordinate.
#[expect(
    clippy::cast_precision_loss,
    reason = "seconds and bytes, far below 2^53"
)]
fn as_s(value: u64) -> f64 {
    value as f64
}

fn draw(
    drawing: &mut Drawing,
    plot: Plot,
    panel: &Panel,
    (drawn, x): (&[Second], &Scale),
    axis: Option<(&[(f64, String)], &str)>,
) {
    let values: Vec<f64> = panel
        .lines
        .iter()
        .flat_map(|line| line.values.iter().flatten().copied())
        .collect();
    let y = if panel.from_zero {
        Scale::from_zero(values.iter().copied(), plot.bottom, plot.top)
    } else {
        Scale::for_values(&values, plot.bottom, plot.top)
    };
    let unit = if y.is_logarithmic() {
        format!("{} (log)", panel.unit)
    } else {
        panel.unit.to_owned()
    };
    frame::axes_of(drawing, plot, (&y, 4, &unit), axis);
    let style = frame::bold_style(12.0, INK);
    drawing.text((plot.left, plot.top - 8.0), style, panel.title);
    let mut legend = SideLegend::beside(plot);
    for line in &panel.lines {
        if line.values.iter().all(Option::is_none) {
            legend.remark(drawing, &format!("{}: not known", line.name));
            continue;
        }
        let at = |(second, value): (&Second, &Option<f64>)| {
            let value = (*value)?;
            Some((x.px(as_s(second.at_s)), y.px(value)))
        };
        let points = drawn.iter().zip(&line.values).map(at);
        frame::broken_line(drawing, points, line.color, &line.stroke);
        legend.line(drawing, line.name, &line.stroke);
    }
}

/// Shades the phases that are not measured, behind all panels, and names each phase where there is room.
fn phases(drawing: &mut Drawing, seconds: &[Second], x: &Scale) {
    let (top, bottom) = (PHASES_PX - 12.0, plot(3).bottom);
    for phase in seconds.chunk_by(|a, b| a.phase == b.phase) {
        let (Some(first), Some(last)) = (phase.first(), phase.last()) else {
            continue;
        };
        let left = x.px(as_s(first.at_s.saturating_sub(1)));
        let right = x.px(as_s(last.at_s));
        if first.phase != Phase::Measured {
            let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
            drawing.polygon(&corners, SHADE);
        }
        let name = first.phase.word();
        if super::font::width_px(name, LABEL_SIZE_PX, false) + 4.0 <= right - left {
            let style = text_style(LABEL_SIZE_PX, GREY, "middle");
            drawing.text((f64::midpoint(left, right), PHASES_PX), style, name);
        }
    }
}

/// A kind of trouble: its name, mark, colour, and its count in a second.
type Trouble = (&'static str, Mark, &'static str, fn(&Second) -> u64);

/// What can break in a second.
const TROUBLES: [Trouble; 3] = [
    ("errors", Mark::Fail, ORANGE, |second| second.errors),
    ("protocol faults", Mark::Borderline, ORANGE, |second| {
        second.protocol_faults
    }),
    ("sessions lost", Mark::Invalid, ORANGE, |second| {
        second.sessions_lost
    }),
];

/// A mark for each second in which something broke: one row per kind, at the top of the panel.
fn troubles(
    drawing: &mut Drawing,
    plot: Plot,
    seconds: &[Second],
    (drawn, x): (&[Second], &Scale),
) {
    let mut legend = SideLegend::beside(Plot {
        top: plot.top + 20.0,
        ..plot
    });
    let mut y = plot.top + 10.0;
    let mut any = false;
    for (name, mark, color, counted) in TROUBLES {
        let total: u64 = seconds.iter().map(counted).sum();
        if total == 0 {
            continue;
        }
        any = true;
        let mut last_px = f64::NEG_INFINITY;
        for second in drawn.iter().filter(|second| counted(second) > 0) {
            let at_px = x.px(as_s(second.at_s));
            // A mark on top of another one adds nothing.
            if at_px - last_px >= MARK_STEP_PX {
                mark.draw(drawing, (at_px, y), color, 0.8);
                last_px = at_px;
            }
        }
        legend.entry(
            drawing,
            &format!("{name}: {}", count(total)),
            |drawing, at| {
                mark.draw(drawing, at, color, 0.8);
            },
        );
        y += 14.0;
    }
    if !any {
        legend.remark(drawing, "no error, no fault,");
        legend.remark(drawing, "no session lost");
    }
}

/// The total of each kind of trouble, in words.
fn summed(seconds: &[Second]) -> String {
    let told = TROUBLES.map(|(name, _, _, counted)| {
        let total: u64 = seconds.iter().map(counted).sum();
        format!("{name}: {}", count(total))
    });
    format!(
        "Over {} seconds {}",
        count(seconds.len() as u64),
        told.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(number: u64) -> Vec<Second> {
        (1..=number)
            .map(|at_s| Second {
                at_s,
                phase: if at_s <= 30 {
                    Phase::Ramp
                } else {
                    Phase::Measured
                },
                newest_p95_ms: (at_s != 100).then_some(as_s(at_s % 50) + 100.0),
                errors: u64::from(at_s == 777),
                ..Second::default()
            })
            .collect()
    }

    #[test]
    fn a_long_trial_has_few_points_and_loses_no_extreme() {
        let all = seconds(1_835);
        let drawn = thinned(&all, all.len().div_ceil(POINTS_MAX));
        assert!(drawn.len() <= POINTS_MAX, "{}", drawn.len());
        let greatest = |of: &[Second]| of.iter().filter_map(|s| s.newest_p95_ms).reduce(f64::max);
        assert_eq!(greatest(&drawn), greatest(&all));
        assert_eq!(drawn.iter().map(|s| s.errors).sum::<u64>(), 1);
        assert_eq!(drawn.last().unwrap().at_s, 1_835);
    }

    #[test]
    fn a_short_trial_is_drawn_as_it_is() {
        let all = seconds(POINTS_MAX as u64);
        assert_eq!(thinned(&all, all.len().div_ceil(POINTS_MAX)), all);
    }
}
