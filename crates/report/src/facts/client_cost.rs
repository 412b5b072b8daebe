//! What each kind of work of a workload costs the client, as rows of words.

use plimsoll_core::record::{ClientCost, ClientCosts, CostOverTls, LoadUnit, Spread};

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

/// The columns of [`rows_over_tls`].
pub const COLUMNS_OVER_TLS: [&str; 7] = [
    "what",
    ">engine",
    ">over TLS",
    ">TLS adds",
    ">over TLS / without",
    ">encryption",
    ">handshake",
];

/// The note under that table.
pub const NOTE_OVER_TLS: &str = "CPU time per message or echo, and per handshake: median, least and greatest of the rounds. What TLS adds, and the ratio, are those within a round, between the engine with TLS and without it. Encryption: how much of the time over TLS encryption and decryption took by the thread's clock, as client.tls_us_per_frame of a trial. The rest of what TLS adds is to carry longer frames and to hand the plain text on. Connections that are opened and closed are not measured over TLS: there, nearly everything would be the handshake.";

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

/// One row for each kind of work that was measured over TLS.
#[must_use]
pub fn rows_over_tls(costs: &ClientCosts) -> Vec<[String; 7]> {
    let measured = costs.costs.iter();
    let measured = measured.filter_map(|cost| Some((cost, cost.tls.as_ref()?)));
    measured
        .map(|(cost, tls)| row_over_tls(cost, tls))
        .collect()
}

fn row_over_tls(cost: &ClientCost, tls: &CostOverTls) -> [String; 7] {
    [
        what(cost),
        spread(&cost.engine_cpu_us, fine_us),
        spread(&tls.engine_cpu_us, fine_us),
        spread(&tls.added_cpu_us, fine_us),
        spread(&tls.ratio, number),
        spread(&tls.tls_cpu_us, fine_us),
        spread(&tls.handshake_cpu_us, fine_us),
    ]
}

/// What TLS adds on this client's cores, where one record has one kind of work.
#[must_use]
pub fn over_tls(tls: &CostOverTls) -> Vec<(String, String)> {
    let facts = [
        (
            "CPU per frame, engine over TLS",
            spread(&tls.engine_cpu_us, fine_us),
        ),
        (
            "what TLS adds within a round",
            spread(&tls.added_cpu_us, fine_us),
        ),
        ("engine over TLS / without", spread(&tls.ratio, number)),
        (
            "encryption and decryption, per frame",
            spread(&tls.tls_cpu_us, fine_us),
        ),
        (
            "CPU per TLS handshake",
            spread(&tls.handshake_cpu_us, fine_us),
        ),
    ];
    let facts = facts.into_iter();
    facts
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

pub(super) fn fine_us(us: f64) -> String {
    format!("{} µs", number(us))
}

fn row(cost: &ClientCost) -> [String; 8] {
    let rate = |load: u32| format!("{} /s", count(load.into()));
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
    told.extend(cost.messages_per_write.map(at_a_write));
    told.join(", ")
}

/// `8 at a write`.
pub(super) fn at_a_write(messages: u32) -> String {
    format!("{} at a write", count(messages.into()))
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
            tls: None,
        }
    }

    fn of_tls() -> CostOverTls {
        let spread = |median: f64| Spread {
            median,
            least: median - 0.1,
            greatest: median + 0.1,
        };
        CostOverTls {
            engine_cpu_us: spread(2.3),
            added_cpu_us: spread(1.5),
            ratio: spread(2.9),
            tls_cpu_us: spread(1.2),
            handshake_cpu_us: spread(310.5),
        }
    }

    #[test]
    fn tls_has_its_own_rows() {
        let mut costs = ClientCosts {
            costs: vec![cost(), cost()],
            ..ClientCosts::default()
        };
        assert!(rows_over_tls(&costs).is_empty());
        costs.costs[1].tls = Some(of_tls());
        let expected = [
            "json, 175 B, 8 at a write",
            "0.801 µs",
            "2.3 µs (2.2–2.4)",
            "1.5 µs (1.4–1.6)",
            "2.9 (2.8–3)",
            "1.2 µs (1.1–1.3)",
            "310.5 µs (310.4–310.6)",
        ];
        assert_eq!(rows_over_tls(&costs), [expected.map(str::to_owned)]);
        let facts = over_tls(&of_tls());
        let adds = ("what TLS adds within a round", "1.5 µs (1.4–1.6)");
        assert_eq!((facts[1].0.as_str(), facts[1].1.as_str()), adds);
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
