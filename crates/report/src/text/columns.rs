//! Aligned columns. Widths are counted in characters, and every character that we print takes one column.

/// The side that a column is aligned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// The text to print and its width. Colour codes take no width.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) printed: String,
    width: usize,
}

impl Cell {
    /// Appends a text, which is printed with colour codes.
    pub(super) fn push(&mut self, text: &str, printed: &str) {
        self.width += text.chars().count();
        self.printed.push_str(printed);
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        let mut cell = Self::default();
        cell.push(text, text);
        cell
    }
}

/// Rows of cells under a header.
#[derive(Debug)]
pub(super) struct Columns {
    aligns: Vec<Align>,
    rows: Vec<Vec<Cell>>,
}

impl Columns {
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
        let mut table = Columns::new(&[("n", Align::Right), ("verdict", Align::Left)]);
        let mut painted = Cell::default();
        painted.push("pass", "\u{1b}[32mpass\u{1b}[0m");
        table.row(vec!["1,650".into(), painted]);
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
