//! Several targets in one chart: the latency of answers and the cost of a session, over the load.

use plimsoll_core::ranking::common_account;
use plimsoll_core::record::{Bracket, CostAccount, CostPoint, Ranking, TrialSummary};

use super::font;
use super::frame::{
    self, GREY, INK, LABEL_SIZE_PX, LEFT_PX, MARGIN_PX, Plot, RIGHT_PX, SideLegend, TITLE_SIZE_PX,
    text_style,
};
use super::scale::Scale;
use super::svg::Drawing;
use crate::loads;
use crate::words::{self, count, cpu_cost_by, load_axis, ranking as say};

const WIDTH_PX: u32 = super::SIZE_PX.0;
const TOP_PX: f64 = 96.0;
const PANEL_PX: f64 = 230.0;
/// From the top of one panel to the top of the next.
const STEP_PX: f64 = 276.0;
/// Room below the lower panel: its axis, and a line of text.
const FOOT_PX: f64 = 66.0;

/// Points of a target: the load and the value.
type Points = Vec<(f64, f64)>;

/// The lines of one target.
struct Lines {
    name: String,
    newest_tail_ms: Points,
    cost_us: Points,
    /// The load line, if there is one.
    confirmed: Option<f64>,
}

impl Lines {
    fn of(bracket: &Bracket, account: CostAccount) -> Self {
        let loads = loads::of_bracket(bracket);
        let tail = |load: &loads::Load| {
            let value = load.median(TrialSummary::newest_tail_ms)?;
            Some((f64::from(load.sessions), value))
        };
        let cost = |point: &CostPoint| {
            let cost_us = point.by(account)?;
            Some((f64::from(point.sessions), cost_us))
        };
        Self {
            name: words::target(&bracket.target),
            newest_tail_ms: loads.iter().filter_map(tail).collect(),
            cost_us: bracket.cost_curve.iter().filter_map(cost).collect(),
            confirmed: bracket.confirmed.map(f64::from),
        }
    }

    fn is_empty(&self) -> bool {
        self.newest_tail_ms.is_empty() && self.cost_us.is_empty()
    }
}

/// The chart as SVG. `None` where fewer than two targets have data.
#[must_use]
pub fn svg(ranking: &Ranking) -> Option<String> {
    let account = common_account(&ranking.rows);
    let rows = ranking.rows.iter();
    let lines: Vec<Lines> = rows.map(|row| Lines::of(&row.bracket, account)).collect();
    if lines.iter().filter(|of| !of.is_empty()).count() < 2 {
        return None;
    }
    let all =
        |points: &dyn Fn(&Lines) -> Points| -> Points { lines.iter().flat_map(points).collect() };
    let (latencies, costs) = (
        all(&|of| of.newest_tail_ms.clone()),
        all(&|of| of.cost_us.clone()),
    );
    let loads: Vec<f64> = latencies
        .iter()
        .chain(&costs)
        .map(|(load, _)| *load)
        .collect();
    let right = right_px(&lines);
    let x = Scale::for_values(&loads, LEFT_PX, right);

    let title = format!("Over the load: {}", say::headline(ranking));
    let title = font::fit(&title, TITLE_SIZE_PX, true, frame::title_room_px());
    let tail = say::tail(ranking).name();
    let subtitle = format!(
        "Medians of the newest {tail} from the schedule, and mean costs, of the valid trials of each target's search; a dot is its load line."
    );
    let mut drawing = Drawing::default();
    frame::header(&mut drawing, &title, std::slice::from_ref(&subtitle));
    let ticks = frame::numbered(&x, 8);
    let unit = ranking.load_unit;
    let load_name = if x.is_logarithmic() {
        format!("load ({}, logarithmic)", unit.name())
    } else {
        load_axis(unit)
    };
    panel(
        &mut drawing,
        plot(0, right),
        &format!("newest {tail} (ms)"),
        (&latencies, &x),
        None,
        &lines,
        |of| &of.newest_tail_ms,
    );
    let axis = Some((&ticks[..], load_name.as_str()));
    panel(
        &mut drawing,
        plot(1, right),
        &format!("{} (µs)", cpu_cost_by(account, unit)),
        (&costs, &x),
        axis,
        &lines,
        |of| &of.cost_us,
    );
    let mut legend = SideLegend::beside(plot(0, right));
    for (index, of) in lines.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
        legend.line(&mut drawing, &of.name, &frame::series_stroke(index));
    }
    let names: Vec<&str> = lines.iter().map(|of| of.name.as_str()).collect();
    let description = format!(
        "{subtitle} {} targets: {}",
        count(lines.len() as u64),
        names.join(", ")
    );
    let foot = plot(1, right).bottom + FOOT_PX;
    let text = text_style(LABEL_SIZE_PX, GREY, "start");
    drawing.text(
        (MARGIN_PX, foot - 8.0),
        text,
        "Lines end where the target's search did.",
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a height in px, a few hundred"
    )]
    let height = foot as u32;
    Some(drawing.finish((WIDTH_PX, height), &title, &description))
}

/// Where the panels end, so that beside them there is room for every name.
fn right_px(lines: &[Lines]) -> f64 {
    let widths = lines.iter().map(|of| SideLegend::width_px(&of.name));
    let widest = widths.fold(0.0, f64::max);
    (f64::from(WIDTH_PX) - widest).clamp((LEFT_PX + RIGHT_PX) / 2.0, RIGHT_PX)
}

/// The place of a panel.
fn plot(index: u32, right: f64) -> Plot {
    let top = TOP_PX + f64::from(index) * STEP_PX;
    Plot {
        left: LEFT_PX,
        right,
        top,
        bottom: top + PANEL_PX,
    }
}

/// Draws one quantity for all targets.
fn panel(
    drawing: &mut Drawing,
    plot: Plot,
    unit: &str,
    (values, x): (&Points, &Scale),
    axis: Option<(&[(f64, String)], &str)>,
    lines: &[Lines],
    points: impl Fn(&Lines) -> &Points,
) {
    let values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let y = Scale::for_values(&values, plot.bottom, plot.top);
    let unit = if y.is_logarithmic() {
        format!("{unit}, logarithmic")
    } else {
        unit.to_owned()
    };
    frame::axes_of(drawing, plot, (&y, 6, &unit), axis);
    for (index, of) in lines.iter().enumerate() {
        let at = |(load, value): &(f64, f64)| (x.px(*load), y.px(*value));
        let line = points(of).iter().map(|point| Some(at(point)));
        let color = frame::series_color(index);
        frame::broken_line(drawing, line, color, &frame::series_stroke(index));
        let of_line = points(of)
            .iter()
            .find(|(load, _)| of.confirmed == Some(*load));
        if let Some(point) = of_line {
            let style = format!("fill=\"{color}\" stroke=\"{INK}\" stroke-width=\"1\"");
            drawing.circle(at(point), 4.5, &style);
        }
    }
}
