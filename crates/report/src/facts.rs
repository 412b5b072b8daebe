//! Facts of a record as rows of words. The page, the terminal, the step summary and the test report all use them, so
//! they say the same.

pub mod belief;
pub mod client_cost;
pub mod fleet;
pub mod inference;
pub mod repeat;
pub mod trial;

use plimsoll_core::record::{
    Drift, Edge, LoadEvidence, LoadUnit, SanityCheck, Slope, SocketResources, Trial,
};
use plimsoll_core::stats::Ratio;

pub use plimsoll_document::facts::{Row, cpu_time, process, row_if_known};

use crate::words::comparison as say;
use crate::words::{self, UNKNOWN, bytes, bytes_finely, count, ms, number, percent, whole_bytes};

/// Where the edge lies, with its interval: `985 (950 to 1,020, 95 %)`. Where nothing failed, a best estimate would be a
/// guess, so it is `at least 950 (95 %)`.
#[must_use]
pub fn edge(edge: &Edge) -> String {
    let [value, low] = [edge.value, edge.low].map(|load| number(load.round()));
    let confidence = percent(edge.confidence);
    match edge.high {
        Some(high) => {
            let high = number(high.round());
            format!("{value} ({low} to {high}, {confidence})")
        }
        None => format!("at least {low} ({confidence})"),
    }
}

/// A ratio with its interval: `1.049 (1.031 to 1.067)`.
#[must_use]
pub fn ratio(ratio: &Ratio) -> String {
    format!("{} ({})", say::ratio(ratio.value), say::interval(*ratio))
}

/// The trials at a load in numbers: full trials that passed and failed, short trials that passed and failed, and
/// invalid trials.
#[must_use]
pub fn evidence_counts(evidence: &LoadEvidence) -> [String; 5] {
    [
        evidence.passed,
        evidence.failed,
        evidence.short_passed,
        evidence.short_failed,
        evidence.invalid,
    ]
    .map(|trials| count(trials.into()))
}

/// A quantity that may have drifted over the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftRow {
    /// The quantity.
    pub name: String,
    /// Its change per hour.
    pub slope: String,
    /// The interval of the change, with its confidence.
    pub interval: String,
    /// `rises`, `falls` or `no change shown`: whether the interval excludes zero.
    pub reading: &'static str,
}

/// What drifted, as far as it is known, in a trial whose load counts `unit`.
#[must_use]
pub fn drift(drift: &Drift, unit: LoadUnit) -> Vec<DriftRow> {
    let row = |name: &str, slope: Option<Slope>, format: &dyn Fn(f64) -> String| {
        slope.map(|slope| DriftRow {
            name: name.to_owned(),
            slope: format!("{} per hour", format(slope.value)),
            interval: format!(
                "{} to {}, {}",
                format(slope.low),
                format(slope.high),
                percent(slope.confidence)
            ),
            reading: reading(slope),
        })
    };
    let cores = |value| format!("{} cores", number(value));
    [
        row("newest p95", drift.newest_p95_ms_per_hour, &ms),
        row("RSS", drift.rss_bytes_per_hour, &bytes_finely),
        row(
            &words::rss_per_one(unit),
            drift.rss_bytes_per_session_hour,
            &bytes_finely,
        ),
        row("CPU", drift.cpu_cores_per_hour, &cores),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What drifted in a trial.
pub fn drift_of(trial: &Trial) -> impl Iterator<Item = DriftRow> {
    let unit = trial.load_unit;
    let slopes = trial.drift.iter();
    slopes.flat_map(move |slopes| drift(slopes, unit))
}

fn reading(slope: Slope) -> &'static str {
    if slope.low > 0.0 {
        "rises"
    } else if slope.high < 0.0 {
        "falls"
    } else {
        "no change shown"
    }
}

/// An account kept twice: the observed value, and the range that the other party's account allows.
#[must_use]
pub fn sanity(check: &SanityCheck) -> String {
    format!(
        "{} observed, consistent is {} to {}",
        number(check.observed),
        number(check.low),
        number(check.high)
    )
}

/// The accounts that do not agree.
pub fn disagreeing(trial: &Trial) -> impl Iterator<Item = &SanityCheck> {
    trial.sanity.iter().filter(|check| !check.holds)
}

/// The target's ends of the connections.
#[must_use]
pub fn sockets(sockets: &SocketResources) -> Vec<Row> {
    let known = |value: Option<u64>| value.map_or_else(|| UNKNOWN.to_owned(), count);
    vec![
        ("TCP connections, peak", count(sockets.connections_peak)),
        ("TCP segments retransmitted", known(sockets.retransmits)),
        (
            "unread by the target in one connection, peak",
            whole_bytes(sockets.receive_queue_peak_bytes),
        ),
        (
            "unread by the target, mean",
            bytes(sockets.receive_queue_mean_bytes),
        ),
        (
            "not acknowledged by the client in one connection, peak",
            whole_bytes(sockets.send_queue_peak_bytes),
        ),
        (
            "not acknowledged by the client, mean",
            bytes(sockets.send_queue_mean_bytes),
        ),
        (
            "connections that waited to be accepted, peak",
            known(sockets.accept_queue_peak),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope(low: f64, high: f64) -> Slope {
        Slope {
            value: f64::midpoint(low, high),
            low,
            high,
            confidence: 0.95,
        }
    }

    #[test]
    fn an_edge_has_its_interval() {
        let mut found = Edge {
            value: 984.6,
            low: 950.2,
            high: Some(1_020.0),
            confidence: 0.95,
        };
        assert_eq!(edge(&found), "985 (950 to 1,020, 95 %)");
        found.high = None;
        assert_eq!(edge(&found), "at least 950 (95 %)");
    }

    #[test]
    fn a_slope_says_more_than_its_noise_only_when_it_does() {
        let slopes = Drift {
            newest_p95_ms_per_hour: Some(slope(-4.0, 12.0)),
            rss_bytes_per_hour: Some(slope(1_048_576.0, 3_145_728.0)),
            rss_bytes_per_session_hour: None,
            cpu_cores_per_hour: Some(slope(-0.5, -0.1)),
        };
        let drift = drift(&slopes, LoadUnit::SESSIONS);
        let readings: Vec<_> = drift
            .iter()
            .map(|row| (row.name.as_str(), row.reading))
            .collect();
        assert_eq!(
            readings,
            [
                ("newest p95", "no change shown"),
                ("RSS", "rises"),
                ("CPU", "falls")
            ]
        );
        assert_eq!(drift[1].slope, "2 MiB per hour");
        assert_eq!(drift[1].interval, "1 MiB to 3 MiB, 95 %");
    }
}
