//! The block for several targets.

use plimsoll_core::record::Ranking;

use super::table::{Align, Table};
use super::{Paint, join};
use crate::words::{self, plain, ranking as say};

/// The block for a ranking: the table, and what was left out.
#[must_use]
pub fn ranking(ranking: &Ranking, color: bool) -> String {
    let paint = Paint { color };
    let mut lines = vec![paint.bold(&say::headline(ranking)), String::new()];
    let at = ranking
        .common_load
        .map_or_else(String::new, |load| format!(" at {load}"));
    let unit = ranking.load_unit;
    let cost = format!("{}{at}", words::cpu_cost_in_brief(unit));
    let memory = format!("memory/{}", words::holder(unit));
    let mut table = Table::new(&[
        ("place", Align::Right),
        ("target", Align::Left),
        ("tier", Align::Left),
        ("load line", Align::Right),
        ("edge", Align::Right),
        (&cost, Align::Right),
        (&memory, Align::Right),
        ("lines", Align::Right),
        ("broke first", Align::Left),
    ]);
    for row in say::rows(ranking) {
        table.row(vec![
            row.place.into(),
            row.name.into(),
            row.tier.into(),
            row.load_line.into(),
            row.edge.into(),
            row.cost.into(),
            row.memory.into(),
            row.lines_of_code.into(),
            row.first_broke.into(),
        ]);
    }
    lines.extend(table.lines());
    for left in &ranking.left_out {
        lines.push(format!(
            "not measured: {}: {}",
            plain(&left.name),
            plain(&left.reason)
        ));
    }
    join(&lines)
}
