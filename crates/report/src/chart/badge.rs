//! The load line as a badge, for a README.

use plimsoll_core::record::Bracket;

use super::font;
use super::svg::{Drawing, TextStyle};
use crate::words::{self, number};

const HEIGHT_PX: u32 = 20;
const TEXT_PX: f64 = 11.0;
/// Padding to the left and right of each text.
const PADDING_PX: f64 = 7.0;
const BASELINE_PX: f64 = 14.0;

const WHITE: &str = "#ffffff";
/// Background of the name.
const NAME: &str = "#444444";
/// Background of a load line, and of the text that there is none.
const KNOWN: &str = "#005a8c";
const NONE: &str = "#a34700";

/// The badge as SVG: `load line | 750 sessions / 0.25 vCPU`.
#[must_use]
pub fn svg(bracket: &Bracket) -> String {
    let (value, color) = match bracket.confirmed {
        Some(load) => (load_line(bracket, load), KNOWN),
        None => ("none found".to_owned(), NONE),
    };
    let name = "load line";
    let width = |text: &str| (font::width_px(text, TEXT_PX, false) + 2.0 * PADDING_PX).ceil();
    let (left, right) = (width(name), width(&value));
    let mut drawing = Drawing::default();
    field(&mut drawing, (0.0, left), NAME, name);
    field(&mut drawing, (left, left + right), color, &value);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number of px, a few hundred"
    )]
    let size = ((left + right) as u32, HEIGHT_PX);
    let target = words::plain(&bracket.target.name);
    let title = format!("{target}: {name} {value}");
    let description = format!("workload {}, SLO {}", bracket.workload, bracket.slo);
    drawing.finish(size, &title, &description)
}

fn load_line(bracket: &Bracket, load: u32) -> String {
    let at_least = if bracket.lower_bound_only {
        "at least "
    } else {
        ""
    };
    let per = bracket
        .vcpu
        .map_or_else(String::new, |vcpu| format!(" / {} vCPU", number(vcpu)));
    format!("{at_least}{}{per}", words::load(load, bracket.load_unit))
}

fn field(drawing: &mut Drawing, (left, right): (f64, f64), fill: &str, text: &str) {
    let bottom = f64::from(HEIGHT_PX);
    let corners = [(left, 0.0), (right, 0.0), (right, bottom), (left, bottom)];
    drawing.polygon(&corners, &format!("fill=\"{fill}\""));
    let style = TextStyle {
        size_px: TEXT_PX,
        bold: false,
        fill: WHITE,
        anchor: "middle",
    };
    drawing.text((f64::midpoint(left, right), BASELINE_PX), style, text);
}
