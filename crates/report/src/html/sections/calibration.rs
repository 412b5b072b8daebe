//! What this machine's client can soundly generate.

use plimsoll_core::record::{Calibration, WsCalibration};

use crate::facts::client_cost;
use crate::html::parts::{self, Cell, Contents, Levels};
use crate::html::write::Html;
use crate::words::{count, number, sessions, us};

pub(in crate::html) fn write(
    html: &mut Html,
    contents: &mut Contents,
    calibration: &Calibration,
    level: Levels,
) {
    html.inside("article", &[("aria-labelledby", "calibration")], |html| {
        contents.push("calibration", "Calibration");
        let reach = sessions(calibration.max_sessions);
        let claim = format!("This client can drive {reach} on time");
        let heading = [("id", "calibration"), ("data-test", "claim")];
        html.element(level.result, &heading, &claim);
        let rows = [
            ("send lag p99 at that load", us(calibration.send_lag_p99_us)),
            (
                "CPU per frame, bare send loop",
                us(calibration.bare_us_per_frame),
            ),
            ("CPU per frame, engine", us(calibration.engine_us_per_frame)),
            ("engine / bare", number(calibration.ratio)),
            (
                "how late a sleep ends, p99",
                us(calibration.timer_error_p99_us),
            ),
            (
                "sessions that the costs were measured on",
                count(calibration.sessions.into()),
            ),
            ("engine backend", calibration.engine_backend.clone()),
        ];
        let rows = rows.map(|(name, value)| (name.to_owned(), value));
        parts::facts(html, "Calibration of this machine's client", &rows);
        parts::note(html, &format!("Measured at {}.", calibration.started_at));
    });
}

/// The same for workload `ws`.
pub(in crate::html) fn write_ws(
    html: &mut Html,
    contents: &mut Contents,
    calibration: &WsCalibration,
    level: Levels,
) {
    html.inside("article", &[("aria-labelledby", "client-costs")], |html| {
        contents.push("client-costs", client_cost::HEADING);
        let heading = [("id", "client-costs"), ("data-test", "claim")];
        html.element(level.result, &heading, &client_cost::claim(calibration));
        let rows = client_cost::rows(calibration);
        let rows = rows.into_iter().map(|row| row.map(Cell::Text).into());
        html.inside("div", &[("data-test", "client-costs")], |html| {
            let caption = client_cost::HEADING;
            parts::table(html, caption, &client_cost::COLUMNS, rows);
        });
        parts::note(html, client_cost::NOTE);
        parts::note(html, &client_cost::conditions(calibration));
    });
}
