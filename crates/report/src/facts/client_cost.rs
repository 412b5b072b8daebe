//! What each kind of work of a workload costs the client, as rows of words.

use plimsoll_core::record::{ClientCost, ClientCosts, LoadUnit, Spread};

use crate::words::{self, UNKNOWN, count, number, plain, us};

/// The heading of this part.
#[must_use]
pub fn heading(costs: &ClientCosts) -> String {
    let workload = plain(&costs.workload);
    format!("What workload {workload} costs this machine's client")
}

/// The columns of [`rows`].
pub const COLUMNS: [&str; 8] = [
    "what",
    ">measured at",
    ">bare loop",
    ">engine",
    ">engine / bare",
    ">bare, a core",
    ">engine, a core",
    ">on time up to",
];

/// The note under the table.
pub const NOTE: &str = "CPU time per message, echo or connection: median, least and greatest of the rounds; the ratio is that within a round. A core: how many a second if each costs the median and nothing else is done. On time: the greatest load tried on one core with send lag p99 of at most 2 ms (deliveries: read within 2 ms of when they were due), the core at most 90 % busy, and all of it answered. Loopback: the sender pays for much of the receiver's TCP work.";

/// What one core of this client sends on time. The first kind of work stands for all.
#[must_use]
pub fn claim(costs: &ClientCosts) -> String {
    let first = costs.costs.first();
    match first.and_then(|cost| cost.on_time_load.map(|load| (cost, load))) {
        Some((cost, load)) => format!(
            "One core of this client is on time with {} ({})",
            words::load(load, cost.load_unit),
            what(cost)
        ),
        None => "One core of this client was not on time with any load that was tried".to_owned(),
    }
}

/// One row for each kind of work.
#[must_use]
pub fn rows(costs: &ClientCosts) -> Vec<[String; 8]> {
    costs.costs.iter().map(row).collect()
}

fn row(cost: &ClientCost) -> [String; 8] {
    let rate = |load: u32| format!("{} /s", count(load.into()));
    let fine_us = |us: f64| format!("{} µs", number(us));
    [
        what(cost),
        rate(cost.load),
        spread(&cost.bare_cpu_us, fine_us),
        spread(&cost.engine_cpu_us, fine_us),
        spread(&cost.ratio, number),
        format!("{} /s", about(cost.bare_per_core_second)),
        format!("{} /s", about(cost.engine_per_core_second)),
        cost.on_time_load.map_or_else(|| UNKNOWN.to_owned(), rate),
    ]
}

/// The kind of work: `json, 175 B, 8 at a write`.
#[must_use]
pub fn what(cost: &ClientCost) -> String {
    let mut told = vec![match cost.load_unit {
        LoadUnit::CONNECTIONS_PER_SECOND => "connection, opened and closed".to_owned(),
        _ => plain(&cost.work),
    }];
    told.extend(
        cost.message_bytes
            .map(|bytes| format!("{} B", count(bytes))),
    );
    let at_a_write = cost.messages_per_write;
    told.extend(at_a_write.map(|messages| format!("{} at a write", count(messages.into()))));
    told.join(", ")
}

/// How it was measured, in a sentence.
#[must_use]
pub fn conditions(costs: &ClientCosts) -> String {
    let rounds = words::counted(costs.rounds.into(), "round");
    format!(
        "{rounds} of {} s; a sleep ends up to {} late (p99); {}. Measured at {}.",
        number(costs.seconds),
        us(costs.timer_error_p99_us),
        plain(&costs.engine_backend),
        plain(&costs.started_at)
    )
}

/// `4.1 µs (3.9–4.4)`, or one value where all rounds agree.
fn spread(spread: &Spread, words: impl Fn(f64) -> String) -> String {
    let median = words(spread.median);
    let (least, greatest) = (number(spread.least), number(spread.greatest));
    if least == greatest {
        median
    } else {
        format!("{median} ({least}–{greatest})")
    }
}

/// Rounded to three digits: `244,000`.
fn about(value: f64) -> String {
    if value < 1_000.0 || !value.is_finite() {
        return number(value);
    }
    let unit = 10_f64.powf(value.log10().floor() - 2.0);
    number((value / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost() -> ClientCost {
        ClientCost {
            work: "json".to_owned(),
            load_unit: LoadUnit::MESSAGES_PER_SECOND,
            load: 400_000,
            connections: Some(25),
            message_bytes: Some(175),
            messages_per_write: Some(8),
            bare_cpu_us: Spread {
                median: 0.5,
                least: 0.48,
                greatest: 0.61,
            },
            engine_cpu_us: Spread {
                median: 0.801,
                least: 0.801,
                greatest: 0.801,
            },
            ratio: Spread {
                median: 1.602,
                least: 1.31,
                greatest: 1.67,
            },
            bare_per_core_second: 2_000_000.0,
            engine_per_core_second: 1_248_439.4,
            on_time_load: Some(800_000),
            send_lag_p99_us: Some(900.0),
        }
    }

    #[test]
    fn a_row_has_its_spreads() {
        let expected = [
            "json, 175 B, 8 at a write",
            "400,000 /s",
            "0.5 µs (0.48–0.61)",
            "0.801 µs",
            "1.6 (1.31–1.67)",
            "2,000,000 /s",
            "1,250,000 /s",
            "800,000 /s",
        ];
        assert_eq!(row(&cost()), expected);
        let connections = ClientCost {
            load_unit: LoadUnit::CONNECTIONS_PER_SECOND,
            message_bytes: None,
            messages_per_write: None,
            on_time_load: None,
            engine_per_core_second: 9_876.5,
            ..cost()
        };
        let told = row(&connections);
        assert_eq!(told[0], "connection, opened and closed");
        assert_eq!((told[6].as_str(), told[7].as_str()), ("9,880 /s", UNKNOWN));
    }

    #[test]
    fn the_first_cost_is_the_claim() {
        let mut calibration = ClientCosts {
            workload: "echo".to_owned(),
            costs: vec![cost()],
            ..ClientCosts::default()
        };
        assert_eq!(
            heading(&calibration),
            "What workload echo costs this machine's client"
        );
        assert_eq!(
            claim(&calibration),
            "One core of this client is on time with 800,000 messages per second (json, 175 B, 8 at a write)"
        );
        calibration.costs[0].on_time_load = None;
        assert!(claim(&calibration).contains("was not on time"));
        assert!(claim(&ClientCosts::default()).contains("was not on time"));
    }
}
