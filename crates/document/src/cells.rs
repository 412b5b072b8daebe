//! A table whose columns say what stands in each row.

use crate::blocks::{Column, Detail, Table};

/// A column: its name, and its cell for a row. A name that begins with `>` is of a column of numbers.
#[derive(Debug)]
pub struct Cells<R> {
    /// The name.
    pub head: &'static str,
    /// Whether a terminal, which is narrow, shows it too.
    pub brief: bool,
    /// The cell of a row.
    pub value: fn(&R) -> String,
}

impl<R> Cells<R> {
    /// A column.
    pub const fn new(head: &'static str, brief: bool, value: fn(&R) -> String) -> Self {
        Self { head, brief, value }
    }

    fn column(&self) -> Column {
        let column = Column::new(self.head);
        if self.brief {
            column
        } else {
            column.only(Detail::Full)
        }
    }
}

impl Table {
    /// The table of these rows with these columns.
    pub fn of_cells<R>(caption: impl Into<String>, columns: &[Cells<R>], rows: &[R]) -> Self {
        let cells =
            |row: &R| -> Vec<String> { columns.iter().map(|column| (column.value)(row)).collect() };
        Self {
            caption: caption.into(),
            columns: columns.iter().map(Cells::column).collect(),
            ..Self::default()
        }
        .with_rows(rows.iter().map(cells))
    }
}
