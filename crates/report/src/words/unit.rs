//! Words that depend on what a load counts: the load itself, and the unit of costs.

use plimsoll_core::record::{CostAccount, LoadUnit, Trial};

use super::{count, plain};

/// A load: `1 session`, `1,650 connections`, `10,000 messages per second`.
#[must_use]
pub fn load(load: u32, unit: LoadUnit) -> String {
    let name = if load == 1 { one(unit) } else { unit.name() };
    format!("{} {name}", count(u64::from(load)))
}

fn one(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "session",
        LoadUnit::Connections => "connection",
        LoadUnit::ConnectionsPerSecond => "connection per second",
        LoadUnit::MessagesPerSecond => "message per second",
        LoadUnit::Receivers => "receiver",
    }
}

/// The load of a trial, with what distinguishes the cells of a matrix: `10,000 messages per second of 64 B`.
#[must_use]
pub fn load_of(trial: &Trial) -> String {
    let load = load(trial.sessions, trial.load_unit);
    let Some(ws) = &trial.ws else {
        return load;
    };
    match (ws.test.as_str(), ws.message_bytes, &ws.format) {
        ("matrix", Some(bytes), _) => format!("{load} of {} B", count(bytes)),
        ("formats", _, Some(format)) => format!("{load} in {}", plain(format)),
        _ => load,
    }
}

/// The verb for a target that copes with a load.
#[must_use]
pub fn carries(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::ConnectionsPerSecond => "accepts",
        _ => "carries",
    }
}

/// The verb for the target of a trial: it `carried` its load, or `did not carry` it.
#[must_use]
pub fn carried(unit: LoadUnit, did: bool) -> &'static str {
    match (unit, did) {
        (LoadUnit::ConnectionsPerSecond, true) => "accepted",
        (LoadUnit::ConnectionsPerSecond, false) => "did not accept",
        (_, true) => "carried",
        (_, false) => "did not carry",
    }
}

/// What the frames of a trial are called.
#[must_use]
pub fn frames(trial: &Trial) -> &'static str {
    match trial.ws.as_ref().map(|ws| ws.test.as_str()) {
        Some("ping" | "hold" | "limit") => "pings",
        Some("throughput" | "matrix" | "formats") => "messages",
        Some("storm") => "arrivals",
        Some("fanout") => "deliveries",
        _ => "frames",
    }
}

/// The title of the load axis.
#[must_use]
pub fn load_axis(unit: LoadUnit) -> String {
    format!("load ({})", unit.name())
}

/// The cost of a load: CPU time per unit and second, or per event where the load is a rate.
#[must_use]
pub fn cpu_cost(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "CPU per session-second",
        LoadUnit::Connections => "CPU per connection-second",
        LoadUnit::ConnectionsPerSecond => "CPU per connection opened",
        LoadUnit::MessagesPerSecond => "CPU per message",
        LoadUnit::Receivers => "CPU per receiver-second",
    }
}

/// The same for one of the CPU accounts. The core account says so.
#[must_use]
pub fn cpu_cost_by(account: CostAccount, unit: LoadUnit) -> String {
    match account {
        CostAccount::Charged => cpu_cost(unit).to_owned(),
        CostAccount::Core => format!("{}, its cores", cpu_cost(unit)),
    }
}

/// The same for narrow columns.
#[must_use]
pub fn cpu_cost_in_brief(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "CPU/session/s",
        LoadUnit::Connections => "CPU/connection/s",
        LoadUnit::ConnectionsPerSecond => "CPU/connection",
        LoadUnit::MessagesPerSecond => "CPU/message",
        LoadUnit::Receivers => "CPU/receiver/s",
    }
}

/// The same within a sentence, after `CPU`.
#[must_use]
pub fn per_one_and_second(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "per session and second",
        LoadUnit::Connections => "per connection and second",
        LoadUnit::ConnectionsPerSecond => "per connection opened",
        LoadUnit::MessagesPerSecond => "per message",
        LoadUnit::Receivers => "per receiver and second",
    }
}

/// The same with the second first.
#[must_use]
pub fn per_second_and_one(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "per second and session",
        LoadUnit::Connections => "per second and connection",
        LoadUnit::Receivers => "per second and receiver",
        LoadUnit::ConnectionsPerSecond | LoadUnit::MessagesPerSecond => per_one_and_second(unit),
    }
}

/// What has the cost: the `a session` in `What a session costs`.
#[must_use]
pub fn what_costs(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "a session",
        LoadUnit::Connections | LoadUnit::ConnectionsPerSecond => "a connection",
        LoadUnit::MessagesPerSecond => "a message",
        LoadUnit::Receivers => "a receiver",
    }
}

/// What memory is given per: the thing that is open.
#[must_use]
pub fn holder(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "session",
        LoadUnit::Receivers => "receiver",
        _ => "connection",
    }
}

/// The name of the resident memory per open thing.
#[must_use]
pub fn rss_per_one(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Sessions => "RSS per session",
        LoadUnit::Receivers => "RSS per receiver",
        _ => "RSS per connection",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LoadUnit; 5] = [
        LoadUnit::Sessions,
        LoadUnit::Connections,
        LoadUnit::ConnectionsPerSecond,
        LoadUnit::MessagesPerSecond,
        LoadUnit::Receivers,
    ];

    #[test]
    fn a_load_is_told_in_its_unit() {
        assert_eq!(load(1, LoadUnit::Sessions), "1 session");
        assert_eq!(load(1_650, LoadUnit::Connections), "1,650 connections");
        assert_eq!(
            load(1, LoadUnit::ConnectionsPerSecond),
            "1 connection per second"
        );
        assert_eq!(
            load(10_000, LoadUnit::MessagesPerSecond),
            "10,000 messages per second"
        );
        assert_eq!(load(0, LoadUnit::Receivers), "0 receivers");
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
