//! Lines of the view. Text is in a few paints, and every character is one column wide, so a line is as long as it looks
//! and never wraps.

use plimsoll_report::words;

/// What a piece of text is, and hence its colour. Words or marks always say the same as the colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Bold,
    /// Less important.
    Dim,
    Good,
    /// Close to its limit.
    Near,
    Bad,
}

impl Paint {
    /// Its escape code: "select graphic rendition" of ECMA-48.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Good => "\x1b[36m",
            Self::Near => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

const RESET: &str = "\x1b[0m";

/// One line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line(Vec<(Paint, String)>);

impl Line {
    /// Adds this at its end.
    pub(super) fn with(mut self, paint: Paint, text: impl Into<String>) -> Self {
        self.0.push((paint, text.into()));
        self
    }

    /// Its width in columns.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Cuts the line to this many columns.
    pub(super) fn fitted(mut self, columns: usize) -> Self {
        let mut left = columns;
        for (_, text) in &mut self.0 {
            let kept: String = text.chars().take(left).collect();
            left -= kept.chars().count();
            *text = kept;
        }
        self
    }

    /// The line as written to a terminal.
    pub(super) fn written(&self, color: bool) -> String {
        let mut written = String::new();
        for (paint, text) in &self.0 {
            let code = if color { paint.code() } else { "" };
            written += code;
            written += text;
            if !code.is_empty() {
                written += RESET;
            }
        }
        written
    }
}

/// Text from outside, made safe for a line: nothing moves the cursor, and `?` replaces characters that may be wider or
/// narrower than a column.
pub(super) fn narrow(text: &str) -> String {
    let is_narrow = |c: char| matches!(c, ' '..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{52f}');
    words::plain(text)
        .chars()
        .map(|c| if is_narrow(c) { c } else { '?' })
        .collect()
}

/// How many of `width` columns a share of 0 to 1 fills; from 1 on, all of them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "columns of a terminal, clamped"
)]
pub(super) fn columns_of(share: f64, width: usize) -> usize {
    if share.is_nan() {
        return 0;
    }
    (share.clamp(0.0, 1.0) * width as f64).round() as usize
}

/// A bar of `width` columns, filled to a share of 0 to 1.
pub(super) fn bar(line: Line, share: f64, width: usize, paint: Paint) -> Line {
    let filled = columns_of(share, width);
    line.with(paint, "━".repeat(filled))
        .with(Paint::Dim, "─".repeat(width - filled))
}

/// One column for each value, as high as the value's share of `top`; a space for a missing value.
pub(super) fn sparkline(values: impl Iterator<Item = Option<f64>>, top: f64) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |value: f64| {
        let level = columns_of(value / top.max(f64::MIN_POSITIVE), LEVELS.len());
        LEVELS[level.saturating_sub(1)]
    };
    values.map(|value| value.map_or(' ', level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_in_the_middle_of_a_piece() {
        let line = Line::default()
            .with(Paint::Bold, "abc")
            .with(Paint::Bad, "défg");
        assert_eq!(line.width(), 7);
        let fitted = line.clone().fitted(5);
        assert_eq!(fitted.written(false), "abcdé");
        assert_eq!(fitted.written(true), "\x1b[1mabc\x1b[0m\x1b[31mdé\x1b[0m");
        assert_eq!(line.clone().fitted(9), line);
    }

    #[test]
    fn text_from_outside_is_as_wide_as_its_characters() {
        assert_eq!(narrow("ws://h:1/\x1b[2J\r\nx"), "ws://h:1/ [2J  x");
        // A wide character, a combining one, a zero-width one, one that reverses the text direction.
        assert_eq!(narrow("漢a\u{301}\u{200b}\u{202e}é"), "?a?? é");
    }

    #[test]
    fn bars_and_sparklines_stay_within_their_columns() {
        for share in [f64::NAN, -1.0, 0.0, 0.5, 1.0, 7.0, f64::INFINITY] {
            assert_eq!(bar(Line::default(), share, 10, Paint::Good).width(), 10);
        }
        let half = bar(Line::default(), 0.5, 4, Paint::Good).written(false);
        assert_eq!(half, "━━──");
        let values = [Some(0.0), None, Some(50.0), Some(100.0), Some(1e9)];
        assert_eq!(sparkline(values.into_iter(), 100.0), "▁ ▄██");
        // A top of 0 is nothing to compare with.
        assert_eq!(sparkline([Some(0.0)].into_iter(), 0.0), "▁");
    }
}
