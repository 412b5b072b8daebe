//! What all charts share: the page, the title, the axes, the load line, the band of the edge.
//!
//! From top to bottom: title, subtitles, two rows of legend, the load line's label, the plot, the axes. Legend and
//! labels have their own bands, so they never cover data.

use plimsoll_core::record::LoadUnit;

use super::scale::Scale;
use super::svg::{Drawing, TextStyle};
use super::{SIZE_PX, font};
use crate::words::{load_axis, number};

/// Size of the title.
pub(super) const TITLE_SIZE_PX: f64 = 18.0;
pub(super) const SUBTITLE_SIZE_PX: f64 = 12.0;
pub(super) const MARGIN_PX: f64 = 20.0;
pub(super) const LEFT_PX: f64 = 78.0;
pub(super) const RIGHT_PX: f64 = 660.0;
pub(super) const TOP_PX: f64 = 142.0;
pub(super) const BOTTOM_PX: f64 = 442.0;
pub(super) const LABEL_SIZE_PX: f64 = 11.0;
pub(super) const INK: &str = "#222222";
pub(super) const GREY: &str = "#595959";
/// Baselines of the two rows of legend.
pub(super) const LEGEND_ROWS_PX: [f64; 2] = [96.0, 113.0];
const TICK_SIZE_PX: f64 = 11.0;
/// Background of the edge's interval, behind the data.
const BAND: &str = "fill=\"#e8e4d4\"";

/// Where the edge lies, with the confidence in the label. Without `high` the band is open to the right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Band {
    pub(super) low: f64,
    pub(super) high: Option<f64>,
    pub(super) label: String,
}

/// Width available for the title.
pub(super) fn title_room_px() -> f64 {
    f64::from(SIZE_PX.0) - 2.0 * MARGIN_PX
}

/// Width of a title.
pub(super) fn title_width_px(title: &str) -> f64 {
    font::width_px(title, TITLE_SIZE_PX, true)
}

pub(super) fn text_style(size_px: f64, fill: &'static str, anchor: &'static str) -> TextStyle {
    TextStyle {
        size_px,
        bold: false,
        fill,
        anchor,
    }
}

/// Bold text that starts at its position.
pub(super) fn bold_style(size_px: f64, fill: &'static str) -> TextStyle {
    TextStyle {
        bold: true,
        ..text_style(size_px, fill, "start")
    }
}

/// A scale for all loads, which come in ascending order, with a little room on both sides. It starts from zero where
/// the lowest load is so low that this wastes no room.
pub(super) fn load_scale(mut loads: impl Iterator<Item = u32>) -> Scale {
    let least = loads.next();
    let greatest = loads.last().or(least).map_or(1.0, f64::from);
    let least = least.map_or(0.0, f64::from);
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

/// The title and at most two lines under it.
pub(super) fn header(drawing: &mut Drawing, title: &str, subtitles: &[String]) {
    let style = TextStyle {
        bold: true,
        ..text_style(TITLE_SIZE_PX, INK, "start")
    };
    drawing.text((MARGIN_PX, 31.0), style, title);
    let mut baseline = 51.0;
    for subtitle in subtitles.iter().take(2) {
        let text = font::fit(subtitle, SUBTITLE_SIZE_PX, false, title_room_px());
        let style = text_style(SUBTITLE_SIZE_PX, GREY, "start");
        drawing.text((MARGIN_PX, baseline), style, &text);
        baseline += 17.0;
    }
}

/// A row of the legend under construction, from left to right. Each entry is a sample and its name.
#[derive(Debug)]
pub(super) struct Legend {
    x: f64,
    baseline: f64,
}

impl Legend {
    pub(super) fn row(index: usize) -> Self {
        Self {
            x: LEFT_PX,
            baseline: LEGEND_ROWS_PX[index],
        }
    }

    /// Adds an entry. The sample is centred in its place and 24 px wide.
    pub(super) fn entry(
        &mut self,
        drawing: &mut Drawing,
        text: &str,
        sample: impl Fn(&mut Drawing, (f64, f64)),
    ) {
        sample(drawing, (self.x + 12.0, self.baseline - 4.0));
        let style = text_style(LABEL_SIZE_PX, INK, "start");
        drawing.text((self.x + 30.0, self.baseline), style, text);
        self.x += 30.0 + font::width_px(text, LABEL_SIZE_PX, false) + 22.0;
    }

    /// Adds the entry of a band.
    pub(super) fn band(&mut self, drawing: &mut Drawing, band: &Band) {
        self.entry(drawing, &band.label, |drawing, (x, y)| {
            let (left, right) = (x - 12.0, x + 12.0);
            let (top, bottom) = (y - 5.0, y + 5.0);
            let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
            drawing.polygon(&corners, BAND);
        });
    }
}

/// Draws the edge's interval, behind everything else.
pub(super) fn band(drawing: &mut Drawing, band: &Band, x: &Scale) {
    let left = x.px(band.low);
    let right = band.high.map_or(RIGHT_PX, |high| x.px(high));
    let corners = [
        (left, TOP_PX),
        (right, TOP_PX),
        (right, BOTTOM_PX),
        (left, BOTTOM_PX),
    ];
    drawing.polygon(&corners, BAND);
}

/// Where the data of a plot lies, in px.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The plot of a chart that has only one.
pub(super) const PLOT: Plot = Plot {
    left: LEFT_PX,
    right: RIGHT_PX,
    top: TOP_PX,
    bottom: BOTTOM_PX,
};

/// Draws both axes with their ticks: that of the load, and the vertical one with its name.
pub(super) fn axes(
    drawing: &mut Drawing,
    (x, unit): (&Scale, LoadUnit),
    (y, name): (&Scale, &str),
) {
    let (ticks, load) = (numbered(x, 7), load_axis(unit));
    let x = Some((&ticks[..], load.as_str()));
    axes_of(drawing, PLOT, (y, 6, name), x);
}

/// About `about` round values of a scale: the position and the name of each.
pub(super) fn numbered(scale: &Scale, about: u32) -> Vec<(f64, String)> {
    let named = |tick: f64| (scale.px(tick), number(tick));
    scale.ticks(about).into_iter().map(named).collect()
}

/// Draws the axes of a plot: `y` with its approximate number of ticks and its unit; `x` as ticks with their names, and
/// what they show. Without `x` the horizontal axis is bare, for a plot above another one.
pub(super) fn axes_of(
    drawing: &mut Drawing,
    plot: Plot,
    (y, about, unit): (&Scale, u32, &str),
    x: Option<(&[(f64, String)], &str)>,
) {
    let Plot {
        left,
        right,
        top,
        bottom,
    } = plot;
    for (at, name) in numbered(y, about) {
        drawing.line(
            (left, at),
            (right, at),
            "stroke=\"#e6e6e6\" stroke-width=\"1\"",
        );
        let style = text_style(TICK_SIZE_PX, GREY, "end");
        drawing.text((left - 8.0, at + 4.0), style, &name);
    }
    let stroke = format!("stroke=\"{GREY}\" stroke-width=\"1\"");
    for (at, name) in x.iter().flat_map(|(ticks, _)| ticks.iter()) {
        drawing.line((*at, bottom), (*at, bottom + 5.0), &stroke);
        let style = text_style(TICK_SIZE_PX, GREY, "middle");
        drawing.text((*at, bottom + 19.0), style, name);
    }
    drawing.line((left, bottom), (right, bottom), &stroke);
    drawing.line((left, top), (left, bottom), &stroke);
    let style = text_style(12.0, INK, "middle");
    if let Some((_, name)) = x {
        let middle = f64::midpoint(left, right);
        drawing.text((middle, bottom + 42.0), style, name);
    }
    drawing.upward_text((24.0, f64::midpoint(top, bottom)), style, unit);
}

/// Colours that tell lines apart: those of the Okabe–Ito palette that have a contrast of at least 3 : 1 to white.
const SERIES: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#b5539a", INK];
/// Lines beyond the number of colours differ in their dashes.
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"8 4\"", " stroke-dasharray=\"2 4\""];

/// The colour of the line with this index.
pub(super) fn series_color(index: usize) -> &'static str {
    SERIES[index % SERIES.len()]
}

/// Colour, dashes and width of the line with this index, as attributes.
pub(super) fn series_stroke(index: usize) -> String {
    let dashes = DASHES[index / SERIES.len() % DASHES.len()];
    format!(
        "stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dashes}",
        series_color(index)
    )
}

/// Draws a line through points of which some are unknown. The line has gaps there, and a point between two gaps becomes
/// a dot.
pub(super) fn broken_line(
    drawing: &mut Drawing,
    points: impl IntoIterator<Item = Option<(f64, f64)>>,
    color: &str,
    stroke: &str,
) {
    let mut piece: Vec<(f64, f64)> = Vec::new();
    for point in points.into_iter().chain([None]) {
        if let Some(point) = point {
            piece.push(point);
            continue;
        }
        match piece[..] {
            [] => {}
            [only] => drawing.circle(only, 1.8, &format!("fill=\"{color}\"")),
            _ => drawing.polyline(&piece, stroke),
        }
        piece.clear();
    }
}

/// A list of lines and their names to the right of a plot, from top to bottom.
#[derive(Debug)]
pub(super) struct SideLegend {
    left: f64,
    baseline: f64,
}

impl SideLegend {
    /// Between the plot and the samples.
    const GAP_PX: f64 = 12.0;
    /// From where the samples begin to where the names do.
    const NAME_PX: f64 = 26.0;
    const MARGIN_PX: f64 = 4.0;

    /// The width that an entry with this name takes beside a plot.
    pub(super) fn width_px(name: &str) -> f64 {
        let name = font::width_px(name, LABEL_SIZE_PX, false);
        Self::GAP_PX + Self::NAME_PX + name + Self::MARGIN_PX
    }

    pub(super) fn beside(plot: Plot) -> Self {
        Self {
            left: plot.right + Self::GAP_PX,
            baseline: plot.top + 10.0,
        }
    }

    /// Adds a line sample in this style and its name, cut to the room available.
    pub(super) fn line(&mut self, drawing: &mut Drawing, name: &str, stroke: &str) {
        self.entry(drawing, name, |drawing, (x, y)| {
            drawing.line((x - 10.0, y), (x + 10.0, y), stroke);
        });
    }

    /// Adds a sample, centred in its place and 20 px wide, and its name.
    pub(super) fn entry(
        &mut self,
        drawing: &mut Drawing,
        name: &str,
        sample: impl Fn(&mut Drawing, (f64, f64)),
    ) {
        sample(drawing, (self.left + 10.0, self.baseline - 4.0));
        self.text_at(drawing, self.left + Self::NAME_PX, name, INK);
    }

    /// Adds a remark.
    pub(super) fn remark(&mut self, drawing: &mut Drawing, text: &str) {
        self.text_at(drawing, self.left, text, GREY);
    }

    fn text_at(&mut self, drawing: &mut Drawing, x: f64, text: &str, fill: &'static str) {
        let room = f64::from(SIZE_PX.0) - x - Self::MARGIN_PX;
        let text = font::fit(text, LABEL_SIZE_PX, false, room);
        let style = text_style(LABEL_SIZE_PX, fill, "start");
        drawing.text((x, self.baseline), style, &text);
        self.baseline += 16.0;
    }
}

/// Draws the load line, with its label above the plot.
pub(super) fn load_line(drawing: &mut Drawing, x: f64, label: &str) {
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
