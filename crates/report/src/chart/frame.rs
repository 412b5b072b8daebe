//! What all charts have in common: the page, the title, the axes, the load line, the band of the edge.
//!
//! From top to bottom: title, subtitles, two rows of legend, the load line's label, the plot, the axes. Legend and labels have bands of their own,
//! so that they cover no data.

use super::scale::Scale;
use super::svg::{Drawing, TextStyle};
use super::{SIZE_PX, font};
use crate::words::number;

/// Size of the title.
pub(super) const TITLE_SIZE_PX: f64 = 18.0;
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
/// Behind the data: the interval of the edge.
const BAND: &str = "fill=\"#e8e4d4\"";

/// Where the edge lies with the stated confidence; without a high end it has no end to the right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Band {
    pub(super) low: f64,
    pub(super) high: Option<f64>,
    pub(super) label: String,
}

/// Room for the title.
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

/// All loads, given in ascending order, with a little room on both sides; from zero where the lowest load is low enough that the room up to it is no
/// waste.
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
        let text = font::fit(subtitle, 12.0, false, title_room_px());
        drawing.text(
            (MARGIN_PX, baseline),
            text_style(12.0, GREY, "start"),
            &text,
        );
        baseline += 17.0;
    }
}

/// A row of the legend in the making: from left to right, each entry a sample and its name.
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

    /// Adds an entry; the sample is drawn around the middle of its place, 24 px wide.
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

    /// The entry of a band.
    pub(super) fn band(&mut self, drawing: &mut Drawing, band: &Band) {
        self.entry(drawing, &band.label, |drawing, (x, y)| {
            let (left, right) = (x - 12.0, x + 12.0);
            let (top, bottom) = (y - 5.0, y + 5.0);
            let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
            drawing.polygon(&corners, BAND);
        });
    }
}

/// The interval of the edge, behind everything else.
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

/// Both axes with their ticks; `unit` names the vertical one.
pub(super) fn axes(drawing: &mut Drawing, x: &Scale, y: &Scale, unit: &str) {
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
    drawing.upward_text((24.0, f64::midpoint(TOP_PX, BOTTOM_PX)), style, unit);
}

/// The load line, with its label above the plot.
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
