//! The view on a terminal: a block of lines at the cursor, redrawn in place, with the lines that stay above it.
//!
//! We move only relative to the cursor, never hide it, and read nothing. After every frame the terminal is as a program
//! that writes plain lines leaves it, with the cursor at the beginning of the line below the view. So Ctrl-C, a panic
//! and even SIGKILL leave it intact. We do not use a library with an inline viewport, because it asks the terminal
//! where the cursor is. That takes raw mode and reads what the user types.

use std::io::IsTerminal;

use super::line::Line;

/// With fewer columns, the view shows too little.
const COLUMNS_MIN: u16 = 40;
/// With fewer rows, there is no room for the view.
const ROWS_MIN: u16 = 10;

/// What is known about the terminal on stderr.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    is_terminal: bool,
    /// The environment variable TERM.
    term: Option<String>,
    size: Option<Size>,
}

/// A size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

impl Size {
    /// The size assumed for terminals that do not report one.
    pub(super) const USUAL: Self = Self {
        columns: 80,
        rows: 24,
    };
}

impl Facts {
    pub(super) fn of_stderr() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            term: std::env::var("TERM").ok(),
            size: size_of_stderr(),
        }
    }

    /// Whether the view can be drawn there; otherwise plain lines are written.
    pub(super) fn can_draw(&self) -> bool {
        let knows_codes = self
            .term
            .as_deref()
            .is_some_and(|term| !term.is_empty() && term != "dumb");
        let roomy = self
            .size
            .is_some_and(|size| size.columns >= COLUMNS_MIN && size.rows >= ROWS_MIN);
        self.is_terminal && knows_codes && roomy
    }
}

/// The current size, because a window can be resized. The variable COLUMNS, if set, says how much of the width to use.
pub(super) fn size_of_stderr() -> Option<Size> {
    let (columns, rows) = terminal_size::terminal_size_of(std::io::stderr())?;
    let asked = std::env::var("COLUMNS").ok();
    let asked = asked.and_then(|columns| columns.parse::<u16>().ok());
    Some(Size {
        columns: asked.map_or(columns.0, |asked| asked.min(columns.0)),
        rows: rows.0,
    })
}

/// What is on the terminal.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Lines of the view, right above the cursor.
    drawn: usize,
    /// Width of the terminal at that time.
    columns: u16,
}

impl Screen {
    /// What to write so that `staying` replaces the old view, with the new view below. One piece, so that nothing else
    /// comes between.
    pub(super) fn frame(
        &mut self,
        staying: &[String],
        view: &[Line],
        columns: u16,
        color: bool,
    ) -> String {
        if columns != self.columns {
            // The terminal may or may not have wrapped the old view. It stays where it is: an extra view is better than
            // a lost result.
            self.drawn = 0;
            self.columns = columns;
        }
        let mut frame = String::from("\r");
        if self.drawn > 0 {
            frame += &format!("\x1b[{}A", self.drawn);
        }
        for line in staying {
            frame += line;
            frame += "\x1b[K\n";
        }
        for line in view {
            frame += &line.written(color);
            frame += "\x1b[K\n";
        }
        // Erases what is left of a longer view.
        frame += "\x1b[J";
        self.drawn = view.len();
        frame
    }

    /// Whether no view is drawn.
    pub(super) fn is_clear(&self) -> bool {
        self.drawn == 0
    }

    /// The largest width and height of the view. After a line as wide as the terminal, terminals differ about where the
    /// cursor is. A view as high as the terminal would scroll.
    pub(super) fn room(size: Size) -> (usize, usize) {
        let columns = size.columns.saturating_sub(1);
        let rows = size.rows.saturating_sub(2);
        (usize::from(columns), usize::from(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Paint;
    use super::super::screen::Emulated;
    use super::*;

    fn view(texts: &[&str]) -> Vec<Line> {
        let line = |text: &&str| Line::default().with(Paint::Good, *text);
        texts.iter().map(line).collect()
    }

    fn staying(text: &str) -> [String; 1] {
        [text.to_owned()]
    }

    #[test]
    fn a_view_is_drawn_in_place_and_what_stays_is_above_it() {
        let (mut screen, mut terminal) = (Screen::default(), Emulated::default());
        terminal.feed("$ plimsoll find x\n");
        terminal.feed(&screen.frame(&[], &view(&["load 400", "p95 100", "more"]), 80, true));
        terminal.feed(&screen.frame(&[], &view(&["load 400", "p95 9"]), 80, true));
        assert_eq!(terminal.lines(), ["$ plimsoll find x", "load 400", "p95 9"]);
        terminal.feed(&screen.frame(&staying("400 pass"), &view(&["load 800", "p95"]), 80, true));
        assert_eq!(
            terminal.lines(),
            ["$ plimsoll find x", "400 pass", "load 800", "p95"]
        );
        // At the end the view is gone, the lines that stay are still there, and the cursor is where the next line
        // belongs.
        terminal.feed(&screen.frame(&staying("800 fail"), &[], 80, true));
        terminal.feed("result: results/…\n");
        assert_eq!(
            terminal.lines(),
            [
                "$ plimsoll find x",
                "400 pass",
                "800 fail",
                "result: results/…"
            ]
        );
        assert!(terminal.is_whole());
    }

    #[test]
    fn another_width_begins_a_view_below_and_erases_nothing() {
        let (mut screen, mut terminal) = (Screen::default(), Emulated::default());
        terminal.feed(&screen.frame(&staying("400 pass"), &view(&["a", "b"]), 80, false));
        terminal.feed(&screen.frame(&[], &view(&["c", "d"]), 60, false));
        terminal.feed(&screen.frame(&[], &view(&["e"]), 60, false));
        assert_eq!(terminal.lines(), ["400 pass", "a", "b", "e"]);
    }

    #[test]
    fn without_colour_there_is_none() {
        let colourful = Screen::default().frame(&[], &view(&["a"]), 80, true);
        let mut terminal = Emulated::default();
        terminal.feed(&colourful);
        assert!(terminal.was_painted());
        let frame = Screen::default().frame(&[], &view(&["a"]), 80, false);
        assert_eq!(frame, "\ra\x1b[K\n\x1b[J");
    }

    #[test]
    fn a_terminal_that_cannot_gets_plain_lines() {
        let good = Facts {
            is_terminal: true,
            term: Some("xterm-256color".to_owned()),
            size: Some(Size {
                columns: 40,
                rows: 24,
            }),
        };
        assert!(good.can_draw());
        let with_size = |columns, rows| Facts {
            size: Some(Size { columns, rows }),
            ..good.clone()
        };
        let with_term = |term: Option<&str>| Facts {
            term: term.map(str::to_owned),
            ..good.clone()
        };
        let cannot = [
            Facts {
                is_terminal: false,
                ..good.clone()
            },
            Facts {
                size: None,
                ..good.clone()
            },
            with_size(39, 24),
            with_size(80, 9),
            with_term(None),
            with_term(Some("")),
            with_term(Some("dumb")),
        ];
        for facts in cannot {
            assert!(!facts.can_draw(), "{facts:?}");
        }
    }
}
