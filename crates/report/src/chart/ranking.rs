//! The chart of a ranking: one bar per target for its load line, with the edge's interval, and next to it the cost of a
//! session.

use plimsoll_core::ranking::common_account;
use plimsoll_core::record::{CostAccount, RankedTarget, Ranking};

use super::font;
use super::frame::{self, GREY, INK, LABEL_SIZE_PX, MARGIN_PX, TITLE_SIZE_PX, text_style};
use super::scale::Scale;
use super::svg::{Drawing, TextStyle};
use crate::words::{self, number, ranking as say, us};

const WIDTH_PX: f64 = 1000.0;
/// What whiskers and colours mean.
const NOTES: [&str; 2] = [
    "Whiskers: the interval of the edge, and the least and the greatest of the trials' costs.",
    "Blue: tiers framework and idiomatic; purple: tuned; orange: engine; green: infrastructure.",
];
/// Where the first row begins. The height of each row follows.
const ROWS_TOP_PX: f64 = 118.0;
const ROW_PX: f64 = 30.0;
const BAR_PX: f64 = 16.0;
/// From left to right: names, load lines, costs. Each panel leaves room on its right for its numbers.
const LINES_PX: (f64, f64) = (170.0, 500.0);
const COSTS_PX: (f64, f64) = (630.0, 860.0);
/// Half the height of the caps of an interval.
const CAP_PX: f64 = 4.0;

/// The axis extends to this factor of the lower end of an open interval.
const ROOM_ABOVE: f64 = 1.1;

/// Colours by tier; `NOTES` names them, and the table has the tier in a column.
fn color(row: &RankedTarget) -> &'static str {
    match row.bracket.target.tier.as_str() {
        "engine" => "#d55e00",
        "infrastructure" => "#009e73",
        "tuned" => "#b5539a",
        _ => "#0072b2",
    }
}

/// The chart as SVG. `None` when no target has a load line.
#[must_use]
pub fn svg(ranking: &Ranking) -> Option<String> {
    let rows: Vec<&RankedTarget> = ranking.rows.iter().collect();
    // An open interval begins within the chart and leaves room for its arrow.
    let of_edge = |row: &&RankedTarget| {
        let edge = row.bracket.edge?;
        Some(edge.high.unwrap_or(edge.low * ROOM_ABOVE))
    };
    let confirmed = |row: &&RankedTarget| row.bracket.confirmed.map(f64::from);
    let greatest = rows.iter().filter_map(confirmed).reduce(f64::max)?;
    let greatest = rows.iter().filter_map(of_edge).fold(greatest, f64::max);
    let lines = Scale::linear(0.0, greatest.max(1.0), LINES_PX.0, LINES_PX.1);
    let account = common_account(&ranking.rows);
    let dearest = rows.iter().filter_map(|row| cost_of(row, account));
    let dearest = dearest.map(|(.., high)| high).reduce(f64::max);
    let costs = dearest.map(|dearest| Scale::linear(0.0, dearest.max(1.0), COSTS_PX.0, COSTS_PX.1));

    let mut drawing = Drawing::default();
    let title = format!("Load lines: {}", say::headline(ranking));
    header(&mut drawing, ranking, (&title, account));
    for (index, row) in rows.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
        let top = ROWS_TOP_PX + index as f64 * ROW_PX;
        name(&mut drawing, row, top);
        load_line(&mut drawing, row, top, &lines);
        if let Some(costs) = &costs {
            cost(&mut drawing, row, account, top, costs);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    let bottom = ROWS_TOP_PX + rows.len() as f64 * ROW_PX;
    footer(&mut drawing, bottom);
    let description: Vec<String> = say::rows(ranking)
        .into_iter()
        .map(|row| {
            format!(
                "{}: load line {}, cost {}",
                row.name, row.load_line, row.cost
            )
        })
        .collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a height in px, a few hundred"
    )]
    let size = (WIDTH_PX as u32, (bottom + 44.0) as u32);
    Some(drawing.finish(size, &title, &description.join("; ")))
}

/// Mean, least and greatest, µs.
fn cost_of(row: &RankedTarget, account: CostAccount) -> Option<(f64, f64, f64)> {
    row.at_common_load.as_ref()?.by(account)
}

fn header(drawing: &mut Drawing, ranking: &Ranking, (title, account): (&str, CostAccount)) {
    let bold = |size: f64| TextStyle {
        bold: true,
        ..text_style(size, INK, "start")
    };
    let room = WIDTH_PX - 2.0 * MARGIN_PX;
    let title = font::fit(title, TITLE_SIZE_PX, true, room);
    frame::header(drawing, &title, &NOTES.map(str::to_owned));
    let unit = ranking.load_unit;
    let text = format!("load line ({})", unit.name());
    drawing.text((LINES_PX.0, 98.0), bold(12.0), &text);
    if let Some(load) = ranking.common_load {
        let whose = match account {
            CostAccount::Charged => "",
            CostAccount::Core => ", its cores",
        };
        let (cost, load) = (words::cpu_cost(unit), words::load(load, unit));
        let text = format!("{cost} at {load}{whose}");
        drawing.text((COSTS_PX.0, 98.0), bold(12.0), &text);
    }
}

fn name(drawing: &mut Drawing, row: &RankedTarget, top: f64) {
    let room = LINES_PX.0 - MARGIN_PX - 10.0;
    let text = font::fit(&words::target(&row.bracket.target), 13.0, false, room);
    let style = text_style(13.0, INK, "end");
    drawing.text((LINES_PX.0 - 10.0, top + 13.0), style, &text);
}

fn load_line(drawing: &mut Drawing, row: &RankedTarget, top: f64, scale: &Scale) {
    let bracket = &row.bracket;
    let end = match bracket.confirmed {
        Some(load) => {
            let end = scale.px(f64::from(load));
            bar(drawing, top, (LINES_PX.0, end), color(row));
            end
        }
        None => LINES_PX.0,
    };
    let mut right = end;
    if let Some(edge) = &bracket.edge {
        let low = scale.px(edge.low);
        let high = edge.high.map(|high| scale.px(high));
        match high {
            Some(high) => whisker(drawing, top, (low, high)),
            None => arrow(drawing, top, (low, LINES_PX.1)),
        }
        right = right.max(high.unwrap_or(LINES_PX.1));
    }
    let text = match (bracket.confirmed, bracket.lower_bound_only) {
        (Some(load), false) => number(f64::from(load)),
        (Some(load), true) => format!("at least {}", number(f64::from(load))),
        (None, _) => "no load line".to_owned(),
    };
    label(drawing, top, right, &text);
}

fn cost(drawing: &mut Drawing, row: &RankedTarget, account: CostAccount, top: f64, scale: &Scale) {
    let Some((mean, low, high)) = cost_of(row, account) else {
        label(drawing, top, COSTS_PX.0, "not measured there");
        return;
    };
    bar(drawing, top, (COSTS_PX.0, scale.px(mean)), color(row));
    whisker(drawing, top, (scale.px(low), scale.px(high)));
    label(drawing, top, scale.px(high), &us(mean));
}

fn bar(drawing: &mut Drawing, top: f64, (left, right): (f64, f64), color: &str) {
    let bottom = top + BAR_PX;
    let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
    let style = format!("fill=\"{color}\" fill-opacity=\"0.85\"");
    drawing.polygon(&corners, &style);
}

fn whisker(drawing: &mut Drawing, top: f64, (left, right): (f64, f64)) {
    let middle = top + BAR_PX / 2.0;
    let stroke = format!("stroke=\"{INK}\" stroke-width=\"1.2\"");
    drawing.line((left, middle), (right, middle), &stroke);
    for end in [left, right] {
        drawing.line((end, middle - CAP_PX), (end, middle + CAP_PX), &stroke);
    }
}

/// Draws an interval without an upper end.
fn arrow(drawing: &mut Drawing, top: f64, (left, right): (f64, f64)) {
    let middle = top + BAR_PX / 2.0;
    let stroke = format!("stroke=\"{INK}\" stroke-width=\"1.2\"");
    drawing.line((left, middle), (right, middle), &stroke);
    drawing.line((left, middle - CAP_PX), (left, middle + CAP_PX), &stroke);
    for side in [-CAP_PX, CAP_PX] {
        drawing.line((right - CAP_PX, middle + side), (right, middle), &stroke);
    }
}

fn label(drawing: &mut Drawing, top: f64, right: f64, text: &str) {
    let style = text_style(12.0, INK, "start");
    drawing.text((right + 8.0, top + 12.0), style, text);
}

fn footer(drawing: &mut Drawing, bottom: f64) {
    let style = text_style(LABEL_SIZE_PX, GREY, "start");
    let text = "Same machine, same cores, targets' trials at the common load in drawn order. More: summary.md, and the folder of each target.";
    drawing.text((MARGIN_PX, bottom + 22.0), style, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notes_fit_into_the_picture() {
        for note in NOTES {
            let width = font::width_px(note, frame::SUBTITLE_SIZE_PX, false);
            assert!(width <= frame::title_room_px(), "{note}: {width} px");
        }
    }
}
