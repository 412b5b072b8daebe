//! Words that depend on what a load counts: the load itself, and the unit of costs.

use plimsoll_core::record::{CostAccount, LoadUnit, Trial};
use plimsoll_document::Tellers;

use super::count;

/// A load: `1 session`, `1,650 connections`, `10,000 messages per second`.
#[must_use]
pub fn load(load: u32, unit: LoadUnit) -> String {
    let name = match (load, unit.is_rate()) {
        (1, true) => format!("{} per second", unit.noun()),
        (1, false) => unit.noun(),
        _ => unit.name(),
    };
    format!("{} {name}", count(u64::from(load)))
}

/// The load of a trial, with what distinguishes the cells of a matrix: `10,000 messages per second of 64 B`.
#[must_use]
pub fn load_of(trial: &Trial, tellers: Tellers) -> String {
    let beside = tellers.of(&trial.workload).beside_the_load(trial);
    load(trial.sessions, trial.load_unit) + &beside
}

/// The verb for a target that copes with a load.
#[must_use]
pub fn carries(unit: LoadUnit) -> &'static str {
    if unit.is_arrivals() {
        "accepts"
    } else {
        "carries"
    }
}

/// The verb for the target of a trial: it `carried` its load, or `did not carry` it.
#[must_use]
pub fn carried(unit: LoadUnit, did: bool) -> &'static str {
    match (unit.is_arrivals(), did) {
        (true, true) => "accepted",
        (true, false) => "did not accept",
        (false, true) => "carried",
        (false, false) => "did not carry",
    }
}

/// The title of the load axis.
#[must_use]
pub fn load_axis(unit: LoadUnit) -> String {
    format!("load ({})", unit.name())
}

/// One event of a rate: `message`, `connection opened`.
fn event(unit: LoadUnit) -> String {
    let noun = unit.noun();
    if unit.is_arrivals() {
        format!("{noun} opened")
    } else {
        noun
    }
}

/// The cost of a load: CPU time per unit and second, or per event where the load is a rate.
#[must_use]
pub fn cpu_cost(unit: LoadUnit) -> String {
    if unit.is_rate() {
        format!("CPU per {}", event(unit))
    } else {
        format!("CPU per {}-second", unit.noun())
    }
}

/// The same for one of the CPU accounts. The core account says so.
#[must_use]
pub fn cpu_cost_by(account: CostAccount, unit: LoadUnit) -> String {
    match account {
        CostAccount::Charged => cpu_cost(unit),
        CostAccount::Core => format!("{}, its cores", cpu_cost(unit)),
    }
}

/// The same for narrow columns.
#[must_use]
pub fn cpu_cost_in_brief(unit: LoadUnit) -> String {
    let per_second = if unit.is_rate() { "" } else { "/s" };
    format!("CPU/{}{per_second}", unit.noun())
}

/// The same within a sentence, after `CPU`.
#[must_use]
pub fn per_one_and_second(unit: LoadUnit) -> String {
    if unit.is_rate() {
        format!("per {}", event(unit))
    } else {
        format!("per {} and second", unit.noun())
    }
}

/// The same with the second first.
#[must_use]
pub fn per_second_and_one(unit: LoadUnit) -> String {
    if unit.is_rate() {
        per_one_and_second(unit)
    } else {
        format!("per second and {}", unit.noun())
    }
}

/// What has the cost: the `a session` in `What a session costs`.
#[must_use]
pub fn what_costs(unit: LoadUnit) -> String {
    format!("a {}", unit.noun())
}

/// What memory is given per: the thing that is open.
#[must_use]
pub fn holder(unit: LoadUnit) -> String {
    if unit.is_rate() {
        LoadUnit::CONNECTIONS.noun()
    } else {
        unit.noun()
    }
}

/// The name of the resident memory per open thing.
#[must_use]
pub fn rss_per_one(unit: LoadUnit) -> String {
    format!("RSS per {}", holder(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LoadUnit; 5] = [
        LoadUnit::SESSIONS,
        LoadUnit::CONNECTIONS,
        LoadUnit::CONNECTIONS_PER_SECOND,
        LoadUnit::MESSAGES_PER_SECOND,
        LoadUnit::RECEIVERS,
    ];

    #[test]
    fn a_load_is_told_in_its_unit() {
        assert_eq!(load(1, LoadUnit::SESSIONS), "1 session");
        assert_eq!(load(1_650, LoadUnit::CONNECTIONS), "1,650 connections");
        assert_eq!(
            load(1, LoadUnit::CONNECTIONS_PER_SECOND),
            "1 connection per second"
        );
        assert_eq!(
            load(10_000, LoadUnit::MESSAGES_PER_SECOND),
            "10,000 messages per second"
        );
        assert_eq!(load(0, LoadUnit::RECEIVERS), "0 receivers");
    }

    #[test]
    fn a_rate_costs_per_event_and_all_else_per_second() {
        for unit in ALL {
            assert_eq!(cpu_cost(unit).ends_with("-second"), !unit.is_rate());
            assert_eq!(cpu_cost_in_brief(unit).ends_with("/s"), !unit.is_rate());
            for words in [per_one_and_second(unit), per_second_and_one(unit)] {
                assert_eq!(words.contains("second"), !unit.is_rate(), "{words}");
            }
        }
    }
}
