//! SVG as text: a few shapes, every text escaped, coordinates rounded to a tenth of a pixel.

use std::fmt::Write;

use super::font;
use crate::xml::escape;

/// A drawing under construction.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    body: String,
}

/// The style of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextStyle {
    pub(super) size_px: f64,
    pub(super) bold: bool,
    pub(super) fill: &'static str,
    /// `start`, `middle` or `end`.
    pub(super) anchor: &'static str,
}

impl Drawing {
    /// A straight line. `style` adds attributes and never contains text from outside.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        self.push(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// Lines from point to point.
    pub(super) fn polyline(&mut self, points: &[(f64, f64)], style: &str) {
        let points: Vec<_> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        self.push(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" {style}/>"
        ));
    }

    /// A closed shape.
    pub(super) fn polygon(&mut self, points: &[(f64, f64)], style: &str) {
        let points: Vec<_> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        self.push(format_args!(
            "<polygon points=\"{}\" {style}/>",
            points.join(" ")
        ));
    }

    /// A circle.
    pub(super) fn circle(&mut self, (x, y): (f64, f64), radius: f64, style: &str) {
        self.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" {style}/>"
        ));
    }

    /// A text whose baseline starts at that point.
    pub(super) fn text(&mut self, (x, y): (f64, f64), style: TextStyle, text: &str) {
        self.rotated_text((x, y), style, text, "");
    }

    /// A text that reads from bottom to top.
    pub(super) fn upward_text(&mut self, (x, y): (f64, f64), style: TextStyle, text: &str) {
        let transform = format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"");
        self.rotated_text((x, y), style, text, &transform);
    }

    fn rotated_text(&mut self, (x, y): (f64, f64), style: TextStyle, text: &str, transform: &str) {
        let weight = if style.bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{}\"{weight} fill=\"{}\" text-anchor=\"{}\"{transform}>{}</text>",
            style.size_px,
            style.fill,
            style.anchor,
            escape(text)
        ));
    }

    /// The whole file.
    pub(super) fn finish(
        self,
        (width, height): (u32, u32),
        title: &str,
        description: &str,
    ) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" font-family=\"{}\">\n<title>{}</title>\n<desc>{}</desc>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            font::FAMILIES,
            escape(title),
            escape(description),
            self.body
        )
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use resvg::usvg::{Options, Tree};

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_well_formed_xml(text in any::<String>()) {
            let style = TextStyle { size_px: 12.0, bold: false, fill: "#000", anchor: "start" };
            let mut drawing = Drawing::default();
            drawing.text((1.0, 2.0), style, &text);
            let svg = drawing.finish((10, 10), &text, &text);
            // Without a font database nothing is laid out: this tests only the parser.
            prop_assert!(Tree::from_str(&svg, &Options::default()).is_ok(), "{}", svg);
        }
    }
}
