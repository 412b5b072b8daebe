//! What this machine's client can generate soundly.

use plimsoll_core::record::{Calibration, ClientCosts, FleetCalibration, InferenceCalibration};

use super::{Answer, Block, Blocks, Document, Table};
use crate::facts::{client_cost, fleet, inference};
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
    let of_tls = calibration.tls.iter().flat_map(client_cost::over_tls);
    let mut evidence = Blocks::default();
    evidence.push(Table::of_facts(
        "What was measured",
        facts.into_iter().chain(of_tls),
    ));
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
    let over_tls = client_cost::rows_over_tls(costs);
    if !over_tls.is_empty() {
        let table = Table::new("The same over TLS", client_cost::COLUMNS_OVER_TLS);
        evidence.push(table.hooked("client-costs-over-tls").with_rows(over_tls));
        evidence.full(Block::Note(client_cost::NOTE_OVER_TLS.into()));
    }
    evidence.note(client_cost::conditions(costs));
    Document {
        id: "client-costs".to_owned(),
        answer: answer(&heading, client_cost::claim(costs)),
        entry: heading,
        evidence,
    }
}

/// What a fleet of agents can drive.
pub(crate) fn of_fleet(calibration: &FleetCalibration) -> Document {
    let heading = fleet::heading(calibration);
    let mut evidence = Blocks::default();
    let together = Table::new("All agents at once", fleet::COLUMNS_TOGETHER);
    evidence.push(
        together
            .hooked("fleet")
            .with_rows(fleet::rows_together(calibration)),
    );
    let agents = Table::new("The agents", fleet::COLUMNS);
    evidence.push(
        agents
            .hooked("fleet-agents")
            .with_rows(fleet::rows(calibration)),
    );
    evidence.full(Block::Note(fleet::NOTE.into()));
    evidence.note(fleet::conditions(calibration));
    Document {
        id: "fleet".to_owned(),
        answer: Answer {
            bounds: fleet::bounds(calibration),
            ..answer(&heading, fleet::claim(calibration))
        },
        entry: heading,
        evidence,
    }
}

/// What an inference server holds alone.
pub(crate) fn of_inference(calibration: &InferenceCalibration) -> Document {
    let mut evidence = Blocks::default();
    let table = Table::new("Loads, in the order tried", inference::COLUMNS);
    evidence.push(
        table
            .hooked("inference-loads")
            .with_rows(inference::rows(calibration)),
    );
    evidence.full(Block::Note(inference::NOTE.into()));
    evidence.note(inference::conditions(calibration));
    Document {
        id: "inference".to_owned(),
        entry: inference::HEADING.to_owned(),
        answer: Answer {
            bounds: inference::bounds(calibration),
            ..answer(inference::HEADING, inference::claim(calibration))
        },
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
