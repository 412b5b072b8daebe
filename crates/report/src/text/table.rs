//! Aligned columns. Widths are counted in characters, and every character that we print takes one column.

/// The side that a column is aligned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// The text to print and its width. Colour codes take no width.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    printed: String,
    width: usize,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            width: text.chars().count(),
            printed: text,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// From the plain text and the same text with colour codes.
impl From<(String, String)> for Cell {
    fn from((plain, printed): (String, String)) -> Self {
        Self {
            width: plain.chars().count(),
            printed,
        }
    }
}

/// Rows of cells under a header.
#[derive(Debug)]
pub(super) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns.iter().map(|(name, _)| Cell::from(*name)).collect()],
        }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.aligns.len(), "one cell per column");
        self.rows.push(cells);
    }

    /// The lines, indented by two spaces, without trailing spaces.
    pub(super) fn lines(&self) -> Vec<String> {
        let widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.width).max().unwrap_or(0)
            })
            .collect();
        self.rows
            .iter()
            .map(|row| self.line(row, &widths))
            .collect()
    }

    fn line(&self, row: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), align) in row.iter().zip(widths).zip(&self.aligns) {
            let padding = " ".repeat(width - cell.width);
            line.push_str("  ");
            match align {
                Align::Left => line.extend([cell.printed.as_str(), &padding]),
                Align::Right => line.extend([padding.as_str(), &cell.printed]),
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_and_without_colour() {
        let mut table = Table::new(&[("n", Align::Right), ("verdict", Align::Left)]);
        let painted = ("pass".to_owned(), "\u{1b}[32mpass\u{1b}[0m".to_owned());
        table.row(vec!["1,650".into(), painted.into()]);
        table.row(vec!["9 µs".into(), "–".into()]);
        assert_eq!(
            table.lines(),
            [
                "      n  verdict",
                "  1,650  \u{1b}[32mpass\u{1b}[0m",
                "   9 µs  –"
            ]
        );
    }
}
