//! Where the value of a goal's metric is in a record.

use crate::drift::{LATENCY_GATE, RSS_GATE};
use crate::record::{Bound, Bracket, Trial};
use crate::slo::{Metric, OwnMetric};

/// Where the value of a metric is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reading {
    /// In a search: the load line.
    LoadLine,
    /// In a search: the load line per vCPU.
    LoadLinePerVcpu,
    /// In a trial: what a session costs one of the parties.
    Cost(fn(&Trial) -> Option<f64>),
    /// In a trial: what a gate can look at, whether a gate does or not.
    Gate(Metric),
    /// In a soak: what its gates look at.
    SoakGate,
}

/// The readings that are no gates.
const OTHERS: [(&str, Reading); 9] = [
    ("load_line", Reading::LoadLine),
    ("load_line_per_vcpu", Reading::LoadLinePerVcpu),
    (
        "cpu_us_per_session_second",
        Reading::Cost(|trial| trial.target_resources.as_ref()?.cpu_us_per_session_second),
    ),
    (
        "core_us_per_session_second",
        Reading::Cost(|trial| trial.target_resources.as_ref()?.core_us_per_session_second),
    ),
    (
        "rss_bytes_per_session",
        Reading::Cost(|trial| trial.target_resources.as_ref()?.rss_bytes_per_session),
    ),
    (
        "client_cpu_us_per_session_second",
        Reading::Cost(|trial| trial.client.cpu_us_per_session_second),
    ),
    (
        "companion_cpu_us_per_session_second",
        Reading::Cost(|trial| trial.companion.as_ref()?.cpu_us_per_session_second),
    ),
    (RSS_GATE, Reading::SoakGate),
    (LATENCY_GATE, Reading::SoakGate),
];

impl Reading {
    /// That of the metric of this name. `own` are the metrics that only the workload has.
    pub(super) fn named(name: &str, own: &[OwnMetric]) -> Option<Self> {
        let other = OTHERS.iter().find(|(known, _)| *known == name);
        other.map(|(_, reading)| *reading).or_else(|| {
            let metric = gates(own).find(|metric| metric.name() == name)?;
            Some(Self::Gate(metric))
        })
    }

    /// The names of all metrics.
    pub(super) fn names(own: &[OwnMetric]) -> Vec<String> {
        let others = OTHERS.iter().map(|(name, _)| (*name).to_owned());
        others.chain(gates(own).map(Metric::name)).collect()
    }

    /// Whether only a search shows it.
    pub(super) fn is_of_search(self) -> bool {
        matches!(self, Self::LoadLine | Self::LoadLinePerVcpu)
    }

    /// Its value in a search, or why there is none.
    pub(super) fn in_search(self, bracket: &Bracket) -> Result<(f64, Bound), String> {
        let per = match (self, bracket.vcpu) {
            (Self::LoadLinePerVcpu, None) => {
                return Err("it is not known what CPU time the target had".to_owned());
            }
            (Self::LoadLinePerVcpu, Some(vcpu)) => vcpu,
            _ => 1.0,
        };
        let (load, bound) = match (bracket.confirmed, bracket.first_fail) {
            (Some(load), _) if bracket.lower_bound_only || bracket.interrupted => {
                (load, Bound::AtLeast)
            }
            (Some(load), _) => (load, Bound::Exact),
            (None, Some(load)) => (load, Bound::Below),
            (None, None) => return Err("no load could be judged".to_owned()),
        };
        Ok((f64::from(load) / per, bound))
    }

    /// Its value in a trial, where it has this name, or why there is none.
    pub(super) fn in_trial(self, trial: &Trial, name: &str) -> Result<f64, String> {
        let value = match self {
            Self::LoadLine | Self::LoadLinePerVcpu => None,
            Self::Cost(read) => read(trial),
            Self::SoakGate => {
                let gate = trial.gates.iter().find(|gate| gate.name == name);
                gate.ok_or("only a soak has it")?.observed
            }
            Self::Gate(metric) => {
                must_have_samples(metric, trial)?;
                metric.observe(&trial.ledger, &trial.latency)
            }
        };
        value.ok_or_else(|| "it was not observed".to_owned())
    }
}

/// Every metric that a gate of an SLO can look at.
fn gates(own: &[OwnMetric]) -> impl Iterator<Item = Metric> {
    Metric::all().chain(own.iter().copied().map(Metric::Own))
}

/// A percentile of a few samples is noise, whether a gate looks at it or not.
fn must_have_samples(metric: Metric, trial: &Trial) -> Result<(), String> {
    let latency = &trial.latency;
    let samples = match metric {
        Metric::Oldest(_) => latency.oldest.from_schedule.count,
        Metric::Confirm(_) => {
            let confirm = latency.confirm.as_ref();
            confirm.map_or(0, |confirm| confirm.from_schedule.count)
        }
        // A workload's own percentile has a sample for each answer.
        _ => latency.newest.from_schedule.count,
    };
    match metric.samples_needed() {
        Some(needed) if samples < needed => Err(format!(
            "its percentile needs {needed} samples, and the trial has {samples}"
        )),
        _ => Ok(()),
    }
}
