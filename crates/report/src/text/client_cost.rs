//! What the messages and connections of workload `ws` cost the client.

use plimsoll_core::record::WsCalibration;

use super::table::Table;
use super::{head, join};
use crate::facts::client_cost::{COLUMNS, claim, conditions, rows};

/// The block for a calibration of workload `ws`.
#[must_use]
pub fn client_costs(calibration: &WsCalibration) -> String {
    let mut table = Table::new(&COLUMNS.map(head));
    for row in rows(calibration) {
        table.row(row.map(Into::into).into());
    }
    let mut lines = vec![claim(calibration), String::new()];
    lines.extend(table.lines());
    lines.push(String::new());
    lines.push(conditions(calibration));
    join(&lines)
}
