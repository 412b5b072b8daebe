//! Aligned columns and their cells.

use plimsoll_core::record::CostPoint;
use plimsoll_report::history::Entry;
use plimsoll_report::words::{UNKNOWN, cpu_cost_in_brief, us};

/// Lines of cells, each column as wide as its widest cell. The columns in `right` are aligned to the right. Widths are
/// counted in characters.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]], right: &[usize]) -> String {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - cell.chars().count());
            if column > 0 {
                line.push_str("  ");
            }
            if right.contains(&column) {
                line.extend([padding.as_str(), cell]);
            } else {
                line.extend([cell, padding.as_str()]);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The cost of a result, for the column `CPU/session/s`. If the load counts something else, the cell says what:
/// `12 µs/message`.
pub(crate) fn cost(entry: &Entry) -> String {
    let Some(CostPoint {
        cpu_us_per_session_second: cost_us,
        ..
    }) = entry.cost
    else {
        return UNKNOWN.to_owned();
    };
    let cost = us(cost_us);
    if entry.load_unit.is_sessions() {
        return cost;
    }
    let per = cpu_cost_in_brief(entry.load_unit);
    format!("{cost}{}", per.trim_start_matches("CPU"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "1"], ["µs", "1,650"], ["", "–"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(aligned(&rows, &[1]), "a       1\nµs  1,650\n        –\n");
    }
}
