//! The SLO: a set of gates. A trial passes if every gate holds.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::latency::{Latency, Quantiles};
use crate::ledger::Ledger;
use crate::record::GateResult;

/// What a gate looks at. Latencies are from the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Latency of the newest frame of an answer.
    Newest(Percentile),
    /// Latency of the oldest frame of an answer.
    Oldest(Percentile),
    /// Latency of the confirmation of a frame.
    Confirm(Percentile),
    /// Latency of the newest frame of an answer, 99th percentile of the second in which it was greatest.
    WorstSecond,
    /// Errors and protocol faults per partial.
    ErrorRate,
    /// Frames lost.
    FramesLost,
    /// Frames answered more than once.
    FramesDuplicated,
    /// Frames answered out of order.
    FramesOutOfOrder,
    /// Sessions that could not be opened.
    SessionsFailed,
    /// Sessions that died.
    SessionsDied,
    /// Answers whose content is wrong.
    ContentWrong,
    /// Share of the due frames that were not answered rightly: 1 - answered / due.
    Shortfall,
    /// How fast what the target holds grows, as a share of the rate: 0.005 is one more held for each 200 frames due. The
    /// number is the lower end of the slope's 95 % interval, because only what is certain should fail. The workload
    /// computes it.
    BacklogSlope,
    /// Frames of the whole trial that the target confirmed and whose answer never came.
    ConfirmedLost,
    /// What only the workload computes.
    Own(OwnMetric),
}

/// A metric that only one workload has. It computes the value after the trial ([`Ledger::own`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnMetric {
    /// Its name in SLO files and results; latencies end in `_ms`.
    pub name: &'static str,
    /// Which percentile it is, if it is one.
    pub percentile: Option<Percentile>,
}

impl OwnMetric {
    /// A percentile of the workload's own.
    #[must_use]
    pub const fn percentile(name: &'static str, percentile: Percentile) -> Self {
        Self {
            name,
            percentile: Some(percentile),
        }
    }

    /// A count, a share, or another value that needs no samples.
    #[must_use]
    pub const fn counted(name: &'static str) -> Self {
        Self {
            name,
            percentile: None,
        }
    }

    /// The metric of this name among a workload's own.
    #[must_use]
    pub fn among(own: &[Self], name: &str) -> Option<Metric> {
        let named = own.iter().find(|metric| metric.name == name);
        named.copied().map(Metric::Own)
    }
}

/// A percentile that a gate can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Percentile {
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Maximum.
    Max,
}

impl Percentile {
    const ALL: [(Self, &'static str); 6] = [
        (Self::P50, "p50"),
        (Self::P90, "p90"),
        (Self::P95, "p95"),
        (Self::P99, "p99"),
        (Self::P999, "p999"),
        (Self::Max, "max"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find_map(|(percentile, name)| (*percentile == self).then_some(*name))
            .unwrap_or_else(|| unreachable!("every percentile is in the list"))
    }

    fn of(self, quantiles: &Quantiles) -> Option<f64> {
        match self {
            Self::P50 => quantiles.p50_ms,
            Self::P90 => quantiles.p90_ms,
            Self::P95 => quantiles.p95_ms,
            Self::P99 => quantiles.p99_ms,
            Self::P999 => quantiles.p999_ms,
            Self::Max => quantiles.max_ms,
        }
    }

    /// How many samples a record needs before this percentile means anything: at least ten beyond it.
    #[must_use]
    pub fn samples_needed(self) -> u64 {
        match self {
            Self::P50 | Self::Max => 20,
            Self::P90 => 100,
            Self::P95 => 200,
            Self::P99 => 1_000,
            Self::P999 => 10_000,
        }
    }
}

impl Metric {
    /// Every metric that is not a workload's own.
    pub fn all() -> impl Iterator<Item = Self> {
        let newest = Percentile::ALL.iter().map(|(p, _)| Self::Newest(*p));
        let oldest = Percentile::ALL.iter().map(|(p, _)| Self::Oldest(*p));
        let confirm = Percentile::ALL.iter().map(|(p, _)| Self::Confirm(*p));
        newest.chain(oldest).chain(confirm).chain([
            Self::WorstSecond,
            Self::ErrorRate,
            Self::FramesLost,
            Self::FramesDuplicated,
            Self::FramesOutOfOrder,
            Self::SessionsFailed,
            Self::SessionsDied,
            Self::ContentWrong,
            Self::Shortfall,
            Self::BacklogSlope,
            Self::ConfirmedLost,
        ])
    }

    /// Its name in SLO files and results; latencies carry their unit.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Newest(percentile) => format!("newest_{}_ms", percentile.name()),
            Self::Oldest(percentile) => format!("oldest_{}_ms", percentile.name()),
            Self::Confirm(percentile) => format!("confirm_{}_ms", percentile.name()),
            Self::WorstSecond => "worst_second_p99_ms".to_owned(),
            Self::ErrorRate => "error_rate".to_owned(),
            Self::FramesLost => "frames_lost".to_owned(),
            Self::FramesDuplicated => "frames_duplicated".to_owned(),
            Self::FramesOutOfOrder => "frames_out_of_order".to_owned(),
            Self::SessionsFailed => "sessions_failed".to_owned(),
            Self::SessionsDied => "sessions_died".to_owned(),
            Self::ContentWrong => "content_wrong".to_owned(),
            Self::Shortfall => "shortfall".to_owned(),
            Self::BacklogSlope => "backlog_slope".to_owned(),
            Self::ConfirmedLost => "confirmed_lost".to_owned(),
            Self::Own(own) => own.name.to_owned(),
        }
    }

    /// Its value in a trial; `None` if it was not observed at all.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts far below 2^53 in any trial"
    )]
    pub fn observe(self, ledger: &Ledger, latency: &Latency) -> Option<f64> {
        match self {
            Self::Newest(percentile) => percentile.of(&latency.newest.from_schedule),
            Self::Oldest(percentile) => percentile.of(&latency.oldest.from_schedule),
            Self::Confirm(percentile) => percentile.of(&latency.confirm.as_ref()?.from_schedule),
            Self::WorstSecond => latency.worst_second_p99_ms,
            Self::ErrorRate => ledger.error_rate(),
            Self::FramesLost => Some(ledger.frames_lost as f64),
            Self::FramesDuplicated => Some(ledger.frames_duplicated as f64),
            Self::FramesOutOfOrder => Some(ledger.frames_out_of_order as f64),
            Self::SessionsFailed => Some(ledger.sessions_failed as f64),
            Self::SessionsDied => Some(ledger.sessions_died as f64),
            Self::ContentWrong => Some(ledger.content_wrong as f64),
            Self::Shortfall => (ledger.frames_due > 0)
                .then(|| 1.0 - ledger.frames_answered as f64 / ledger.frames_due as f64),
            Self::BacklogSlope => ledger.backlog_slope,
            Self::ConfirmedLost => ledger.confirmed_lost.map(|lost| lost as f64),
            Self::Own(own) => ledger.own.get(own.name).copied(),
        }
    }

    /// The samples it needs, if it is a percentile.
    #[must_use]
    pub fn samples_needed(self) -> Option<u64> {
        match self {
            Self::Newest(percentile) | Self::Oldest(percentile) | Self::Confirm(percentile) => {
                Some(percentile.samples_needed())
            }
            Self::WorstSecond => Some(Percentile::P99.samples_needed()),
            Self::Own(own) => own.percentile.map(Percentile::samples_needed),
            _ => None,
        }
    }
}

/// One threshold: the metric must not exceed it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// The metric that it looks at.
    pub metric: Metric,
    /// The greatest value that passes.
    pub threshold: f64,
}

/// A set of gates.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo {
    /// Its name in results.
    pub name: String,
    /// The gates, in the order in which they are reported.
    pub gates: Vec<Gate>,
}

/// Why an SLO file was rejected: one line that names the problem and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum SloError {
    /// The file is not TOML of the expected form.
    #[error("cannot read the SLO: {0}")]
    Syntax(String),
    /// There is no gate of that name.
    #[error("the SLO names an unknown gate `{name}`; known gates: {known}")]
    UnknownGate {
        /// The name in the file.
        name: String,
        /// All names that exist.
        known: String,
    },
    /// A threshold makes no sense.
    #[error("the threshold of gate `{name}` is {value}; give a number of at least 0")]
    Threshold {
        /// The gate.
        name: String,
        /// The value in the file.
        value: f64,
    },
    /// No gates at all.
    #[error(
        "the SLO has no gates; give at least one, for example `newest_p95_ms = 350` under [gates]"
    )]
    Empty,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SloFile {
    name: Option<String>,
    gates: BTreeMap<String, f64>,
}

impl Slo {
    /// The given gates, plus those that no server may break: nothing lost, duplicated, reordered or wrong, and no
    /// session that failed or died.
    #[must_use]
    pub fn from_gates(name: &str, gates: &[(Metric, f64)]) -> Self {
        let never = [
            Metric::FramesLost,
            Metric::FramesDuplicated,
            Metric::FramesOutOfOrder,
            Metric::SessionsFailed,
            Metric::SessionsDied,
            Metric::ContentWrong,
        ];
        let never = never.map(|metric| (metric, 0.0));
        Self::of(name, &[gates, &never].concat())
    }

    /// Only the given gates.
    #[must_use]
    pub fn of(name: &str, gates: &[(Metric, f64)]) -> Self {
        let gates = gates.iter().copied();
        Self {
            name: name.to_owned(),
            gates: gates
                .map(|(metric, threshold)| Gate { metric, threshold })
                .collect(),
        }
    }

    /// Reads an SLO file: TOML with an optional `name` and a table `[gates]` from gate name to threshold. Only the
    /// gates in the file are applied. `own` are the metrics that only the workload has.
    ///
    /// # Errors
    /// If the text does not have that form, names an unknown gate, or has no gates.
    pub fn parse(text: &str, default_name: &str, own: &[OwnMetric]) -> Result<Self, SloError> {
        let file: SloFile =
            toml::from_str(text).map_err(|error| SloError::Syntax(error.message().to_owned()))?;
        let mut gates = Vec::new();
        let known = || Metric::all().chain(own.iter().copied().map(Metric::Own));
        for (name, threshold) in file.gates {
            let Some(metric) = known().find(|metric| metric.name() == name) else {
                let known: Vec<_> = known().map(Metric::name).collect();
                return Err(SloError::UnknownGate {
                    name,
                    known: known.join(", "),
                });
            };
            if !threshold.is_finite() || threshold < 0.0 {
                return Err(SloError::Threshold {
                    name,
                    value: threshold,
                });
            }
            gates.push(Gate { metric, threshold });
        }
        if gates.is_empty() {
            return Err(SloError::Empty);
        }
        gates.sort_by_key(|gate| gate.metric);
        Ok(Self {
            name: file.name.unwrap_or_else(|| default_name.to_owned()),
            gates,
        })
    }

    /// Compares every gate with what a trial observed. A metric that was not observed does not pass: no answer is not a
    /// good answer.
    #[must_use]
    pub fn judge(&self, ledger: &Ledger, latency: &Latency) -> Vec<GateResult> {
        self.gates
            .iter()
            .map(|gate| {
                let observed = gate.metric.observe(ledger, latency);
                GateResult {
                    name: gate.metric.name(),
                    threshold: gate.threshold,
                    observed,
                    pass: observed.is_some_and(|value| value <= gate.threshold),
                }
            })
            .collect()
    }

    /// The tightest latency threshold, if there is any.
    #[must_use]
    pub fn tightest_ms(&self) -> Option<f64> {
        self.gates
            .iter()
            .filter(|gate| gate.metric.samples_needed().is_some())
            .map(|gate| gate.threshold)
            .min_by(f64::total_cmp)
    }

    /// Whether a gate on a count, which needs no samples, did not hold.
    #[must_use]
    pub fn a_count_failed(&self, results: &[GateResult]) -> bool {
        self.gates
            .iter()
            .zip(results)
            .any(|(gate, result)| gate.metric.samples_needed().is_none() && !result.pass)
    }

    /// The most samples that any gated percentile needs.
    #[must_use]
    pub fn samples_needed(&self) -> u64 {
        self.gates
            .iter()
            .filter_map(|gate| gate.metric.samples_needed())
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
