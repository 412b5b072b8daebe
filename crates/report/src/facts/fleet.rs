//! What a fleet of agents can drive, as words.

use plimsoll_core::record::{AgentCost, CalibratedAgent, FleetCalibration, FleetWork};

use super::client_cost::{at_a_write, fine_us};
use crate::words::{self, UNKNOWN, count, maybe, number, plain, us};

/// The columns of [`rows`].
pub const COLUMNS: [&str; 9] = [
    "agent",
    ">CPUs of its client",
    "what",
    ">measured at",
    ">bare loop",
    ">engine",
    ">engine / bare",
    ">on time up to",
    ">send lag p99",
];

/// The columns of [`rows_together`].
pub const COLUMNS_TOGETHER: [&str; 6] = [
    "what",
    ">on time, all at once",
    ">send lag p99",
    ">agents × the least",
    ">sum of the agents",
    "the least is",
];

/// The note under the tables.
pub const NOTE: &str = "Each agent drives a sink on its own loopback, all at the same time, so agents on one machine share its cores. CPU time per frame, message, echo or connection on one core: medians of the rounds. On time: the greatest load tried on all cores of an agent's client with send lag p99 of at most 2 ms, no core over 90 % busy. Parts of a load are even, so the least agent decides what the fleet drives; the sum is more than any even load can be. All at once: every agent drove that part of the load at the same moment, and each was on time. Where the sink has the last CPU of an agent, a trial has one more.";

/// The heading of this part.
#[must_use]
pub fn heading(calibration: &FleetCalibration) -> String {
    let agents = words::counted(calibration.agents.len() as u64, "agent");
    format!("Calibration of {agents}")
}

/// What the fleet drives on time. The first kind of work stands for all.
#[must_use]
pub fn claim(calibration: &FleetCalibration) -> String {
    let agents = words::counted(calibration.agents.len() as u64, "agent");
    let first = calibration.works.first();
    match first.and_then(|work| Some((work, work.on_time_load?))) {
        Some((work, load)) => format!(
            "{agents} can drive {} on time ({})",
            words::load(load, work.load_unit),
            what(work)
        ),
        None => format!("No load that was tried had {agents} on time at once"),
    }
}

/// Why it is not more: which agent is the least, and whether they disturb each other.
#[must_use]
pub fn bounds(calibration: &FleetCalibration) -> String {
    let Some(work) = calibration.works.first() else {
        return String::new();
    };
    let disturbed = work.on_time_load.unwrap_or(0) < work.even_load;
    let disturbed = match disturbed {
        true => " Alone each does more: they disturb each other when all drive at once.",
        false => "",
    };
    format!(
        "Parts are even, so agent {} limits; the sum of the agents is {}.{disturbed}",
        name(calibration, work.least_agent),
        words::load(work.load_sum, work.load_unit)
    )
}

/// One row for each kind of work of the fleet.
#[must_use]
pub fn rows_together(calibration: &FleetCalibration) -> Vec<[String; 6]> {
    let row = |work: &FleetWork| {
        let load = |load| words::load(load, work.load_unit);
        [
            what(work),
            work.on_time_load.map_or_else(|| UNKNOWN.to_owned(), load),
            maybe(work.send_lag_p99_us, us),
            load(work.even_load),
            load(work.load_sum),
            format!("agent {}", name(calibration, work.least_agent)),
        ]
    };
    calibration.works.iter().map(row).collect()
}

/// One row for each agent and each kind of work.
#[must_use]
pub fn rows(calibration: &FleetCalibration) -> Vec<[String; 9]> {
    let works = calibration.works.iter();
    let each = works.flat_map(|work| work.agents.iter().map(move |cost| (work, cost)));
    each.map(|(work, cost)| row(calibration, work, cost))
        .collect()
}

fn row(calibration: &FleetCalibration, work: &FleetWork, cost: &AgentCost) -> [String; 9] {
    let load = |load| words::load(load, work.load_unit);
    [
        name(calibration, cost.index),
        agent(calibration, cost.index).map_or_else(|| UNKNOWN.to_owned(), cpus),
        what(work),
        load(cost.load),
        fine_us(cost.bare_cpu_us),
        fine_us(cost.engine_cpu_us),
        number(cost.ratio),
        cost.on_time_load.map_or_else(|| UNKNOWN.to_owned(), load),
        us(cost.send_lag_p99_us),
    ]
}

/// `3 of 4`, or that the sink runs there as well.
fn cpus(agent: &CalibratedAgent) -> String {
    let shared = match agent.shares_cpu {
        true => ", shared with the sink",
        false => "",
    };
    format!(
        "{} of {}{shared}",
        count(agent.client_cpus as u64),
        count(agent.cpus as u64)
    )
}

/// The kind of work: `json, 8 at a write`.
fn what(work: &FleetWork) -> String {
    let messages = work.messages_per_write.filter(|messages| *messages > 1);
    let messages = messages.map(at_a_write);
    let told: Vec<String> = std::iter::once(plain(&work.work)).chain(messages).collect();
    told.join(", ")
}

fn agent(calibration: &FleetCalibration, index: u32) -> Option<&CalibratedAgent> {
    let mut agents = calibration.agents.iter();
    agents.find(|agent| agent.index == index)
}

/// The number of an agent, and its machine.
#[must_use]
pub fn name(calibration: &FleetCalibration, index: u32) -> String {
    agent(calibration, index).map_or_else(|| index.to_string(), |agent| plain(&agent.name()))
}

/// How it was measured.
#[must_use]
pub fn conditions(calibration: &FleetCalibration) -> String {
    let late = calibration
        .agents
        .iter()
        .map(|agent| agent.timer_error_p99_us);
    format!(
        "Workload {}; {} of {} s; a sleep ends at most {} late (p99); engine backend {}; {}.",
        plain(&calibration.workload),
        words::counted(calibration.rounds.into(), "round"),
        number(calibration.seconds),
        us(late.fold(0.0, f64::max)),
        plain(&calibration.engine_backend),
        plain(&calibration.started_at),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(loads: &[u32], on_time_load: Option<u32>) -> FleetCalibration {
        let agents = (0..).zip(loads).map(|(index, load)| AgentCost {
            index,
            on_time_load: Some(*load),
            ..AgentCost::default()
        });
        let work = FleetWork {
            work: "speech".to_owned(),
            agents: agents.collect(),
            on_time_load,
            ..FleetWork::default()
        };
        let agents = (0..).zip(loads).map(|(index, _)| CalibratedAgent {
            index,
            host: "there".to_owned(),
            cpus: 4,
            client_cpus: 3,
            ..CalibratedAgent::default()
        });
        FleetCalibration {
            agents: agents.collect(),
            works: vec![work.summed()],
            ..FleetCalibration::default()
        }
    }

    #[test]
    fn the_least_agent_is_named_and_so_is_a_disturbance() {
        let alone = calibration(&[2_000, 1_000], Some(2_000));
        assert_eq!(heading(&alone), "Calibration of 2 agents");
        assert_eq!(
            claim(&alone),
            "2 agents can drive 2,000 sessions on time (speech)"
        );
        assert_eq!(
            bounds(&alone),
            "Parts are even, so agent 1 (there) limits; the sum of the agents is 3,000 sessions."
        );
        let disturbed = calibration(&[2_000, 1_000], Some(1_800));
        assert!(bounds(&disturbed).contains("disturb each other"));
        let late = calibration(&[0, 0], None);
        assert_eq!(
            claim(&late),
            "No load that was tried had 2 agents on time at once"
        );
    }

    #[test]
    fn a_row_says_which_cpus_its_client_had() {
        let mut calibration = calibration(&[2_000, 1_000], Some(2_000));
        calibration.agents[1].shares_cpu = true;
        let rows = rows(&calibration);
        assert_eq!(
            (rows[0][0].as_str(), rows[0][1].as_str()),
            ("0 (there)", "3 of 4")
        );
        assert_eq!(rows[1][1], "3 of 4, shared with the sink");
        assert_eq!(rows[0][7], "2,000 sessions");
        let together = rows_together(&calibration);
        assert_eq!(
            together[0][3..],
            ["2,000 sessions", "3,000 sessions", "agent 1 (there)"]
        );
    }
}
