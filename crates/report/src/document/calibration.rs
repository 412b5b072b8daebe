//! What this machine's client can generate soundly.

use plimsoll_core::record::{Calibration, ClientCosts};

use super::{Answer, Block, Blocks, Document, Table};
use crate::facts::client_cost;
use crate::words::{count, number, sessions, us};

pub(crate) fn document(calibration: &Calibration) -> Document {
    let facts = [
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
    let facts = facts.map(|(name, value)| (name.to_owned(), value));
    let mut evidence = Blocks::default();
    evidence.push(Table::of_facts("What was measured", facts));
    let measured_at = format!("Measured at {}.", calibration.started_at);
    evidence.full(Block::Note(measured_at.into()));
    let reach = sessions(calibration.max_sessions);
    Document {
        id: "calibration".to_owned(),
        entry: "Calibration".to_owned(),
        answer: answer(
            "Calibration of this machine's client",
            format!("This client can drive {reach} on time"),
        ),
        evidence,
    }
}

/// The same for a workload with several kinds of work.
pub(crate) fn client_costs(costs: &ClientCosts) -> Document {
    let heading = client_cost::heading(costs);
    let mut evidence = Blocks::default();
    let table = Table::new(&heading, client_cost::COLUMNS).hooked("client-costs");
    evidence.push(table.with_rows(client_cost::rows(costs)));
    evidence.full(Block::Note(client_cost::NOTE.into()));
    evidence.note(client_cost::conditions(costs));
    Document {
        id: "client-costs".to_owned(),
        answer: answer(&heading, client_cost::claim(costs)),
        entry: heading,
        evidence,
    }
}

fn answer(title: &str, claim: String) -> Answer {
    Answer {
        title: title.to_owned(),
        verdict: None,
        claim,
        bounds: String::new(),
        blocks: Blocks::default(),
        figure: None,
    }
}
