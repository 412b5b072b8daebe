//! Whether two trials were run under the same conditions.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::drift;
use crate::outright::Outright;
use crate::profile::{Length, Profile};
use crate::record::{Environment, Parameters, Trial};

/// A condition that two trials do not share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// Its value in the first trial.
    pub a: String,
    /// Its value in the second trial.
    pub b: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} against {})", self.name, self.a, self.b)
    }
}

/// Facts about a machine that affect what it can do. The others differ from day to day (its load) or repeat these in
/// other words.
const MACHINE_FACTS: [&str; 5] = [
    "cpu_model",
    "cores",
    "kernel",
    "memory_bytes",
    "clock_source",
];

/// The conditions in which two trials differ, so that their numbers do not compare: workload and test, profile, SLO,
/// what the target was given, the machine, who ran where, and how the engine wrote. The load, the seed and the target
/// itself may differ.
///
/// A short trial and a full one of the same profile have that profile in common.
#[must_use]
pub fn differences(a: &Trial, b: &Trial) -> Vec<Difference> {
    let mut found = Found::default();
    found.compare("workload", &a.workload, &b.workload);
    found.compare_parameters(&a.parameters, &b.parameters);
    found.compare("profile", &a.profile, &b.profile);
    found.compare("phases", &phases(a, b.length), &phases(b, a.length));
    found.compare("SLO", &a.slo, &b.slo);
    found.compare("gates", &gates(a), &gates(b));
    found.compare("vCPU", &maybe(a.vcpu), &maybe(b.vcpu));
    let (x, y) = (&a.environment, &b.environment);
    let unknown = || "unknown".to_owned();
    for fact in MACHINE_FACTS {
        let of = |facts: &std::collections::BTreeMap<String, String>| {
            facts.get(fact).cloned().unwrap_or_else(unknown)
        };
        found.compare(fact, &of(&x.machine), &of(&y.machine));
    }
    found.compare("target CPUs", &cpus(&x.target_cpus), &cpus(&y.target_cpus));
    found.compare("client CPUs", &cpus(&x.client_cpus), &cpus(&y.client_cpus));
    found.compare("isolation", &x.isolation, &y.isolation);
    found.compare("network", network(x), network(y));
    let data = |environment: &Environment| or_none(environment.data_file_system.clone());
    found.compare("file system of the data", &data(x), &data(y));
    found.compare(
        "quota period in ms",
        &maybe(x.quota_period_ms),
        &maybe(y.quota_period_ms),
    );
    found.compare(
        "tick in µs",
        &x.engine_tick_us.to_string(),
        &y.engine_tick_us.to_string(),
    );
    found.compare(
        "TCP_NODELAY",
        &x.nodelay.to_string(),
        &y.nodelay.to_string(),
    );
    found.compare("TLS", &tls(x), &tls(y));
    found.compare("engine backend", &x.engine_backend, &y.engine_backend);
    found.compare(
        "Plimsoll's version",
        &x.plimsoll_version,
        &y.plimsoll_version,
    );
    found.0
}

/// How the targets themselves differ: name, tier, variant, settings, versions. For trials that should be of the same
/// target.
#[must_use]
pub fn differences_of_targets(a: &Trial, b: &Trial) -> Vec<Difference> {
    let mut found = Found::default();
    found.compare("target", &a.target.name, &b.target.name);
    found.compare("tier", &a.target.tier, &b.target.tier);
    let [of_a, of_b] = [a, b].map(|trial| or_none(trial.target.variant.clone()));
    found.compare("variant", &of_a, &of_b);
    let settings = |trial: &Trial| {
        let said = Some(trial.target.settings.join("; "));
        said.filter(|said| !said.is_empty())
    };
    let [of_a, of_b] = [a, b].map(|trial| or_none(settings(trial)));
    found.compare("settings", &of_a, &of_b);
    let names = a.target.versions.keys().chain(b.target.versions.keys());
    for name in names.collect::<BTreeSet<_>>() {
        let of = |trial: &Trial| {
            trial
                .target
                .versions
                .get(name)
                .cloned()
                .unwrap_or_else(|| "none".to_owned())
        };
        found.compare(&format!("version of {name}"), &of(a), &of(b));
    }
    found.0
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "none".to_owned())
}

/// Results of 0.1 name no network: they used the loopback.
fn network(environment: &Environment) -> &'static str {
    let mode = environment.network.as_ref().map(|network| network.mode);
    mode.unwrap_or_default().name()
}

fn tls(environment: &Environment) -> String {
    let tls = environment.tls.as_ref();
    tls.map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[derive(Default)]
struct Found(Vec<Difference>);

impl Found {
    fn compare(&mut self, name: &str, a: &str, b: &str) {
        if a != b {
            self.0.push(Difference {
                name: name.to_owned(),
                a: a.to_owned(),
                b: b.to_owned(),
            });
        }
    }
}

impl Found {
    /// The parameters of both. Results of 0.1 know them only for some workloads, so a trial without any says nothing.
    fn compare_parameters(&mut self, a: &Parameters, b: &Parameters) {
        if a.is_empty() || b.is_empty() {
            return;
        }
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for name in names {
            let of = |parameters: &Parameters| match parameters.get(name) {
                None => "none".to_owned(),
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            };
            self.compare(&name.replace('_', " "), &of(a), &of(b));
        }
    }
}

/// The trial's phases, shortened if the other trial was a short one.
fn phases(trial: &Trial, other: Length) -> String {
    let Profile {
        ramp_s,
        warm_up_s,
        measured_s,
        grace_s,
        session_start_spread_ms,
        soak,
        ..
    } = match trial.length {
        Length::Full => trial.phases.of_length(other),
        Length::Short => trial.phases.clone(),
    };
    let soak = if soak { ", a soak" } else { "" };
    format!(
        "{ramp_s} + {warm_up_s} + {measured_s} + {grace_s} s, start spread {session_start_spread_ms} ms{soak}"
    )
}

fn gates(trial: &Trial) -> String {
    let gates: Vec<String> = trial
        .gates
        .iter()
        // Those of a soak follow from what each trial saw of its target, and its phases show whether it was one. A trial
        // that failed outright has a gate more, under the same conditions.
        .filter(|gate| !drift::is_soak_gate(&gate.name) && Outright::of(&gate.name).is_none())
        .map(|gate| format!("{} ≤ {}", gate.name, gate.threshold))
        .collect();
    gates.join(", ")
}

fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn cpus(cpus: &[usize]) -> String {
    if cpus.is_empty() {
        return "any".to_owned();
    }
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    cpus.join(",")
}
