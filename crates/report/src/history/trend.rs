//! How one target's load line changed over time.

use plimsoll_core::record::{CostPoint, Edge, LoadUnit, Probe};
use serde::Serialize;

use super::Entry;
use crate::words::{given, plain};

/// What two results must have in common for their load lines to appear in one trend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultConditions {
    /// Name of the workload.
    pub workload: String,
    /// Which test of workload `ws`; absent for other workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// What the loads count.
    #[serde(skip_serializing_if = "LoadUnit::is_sessions")]
    pub load_unit: LoadUnit,
    /// Name of the profile.
    pub profile: String,
    /// Name of the SLO.
    pub slo: String,
    /// What the target was given, in vCPU; `null` when Plimsoll did not start it.
    pub vcpu: Option<f64>,
    /// The machine's processor model; empty when unknown.
    pub cpu_model: String,
    /// The number of the machine's cores; empty when unknown.
    pub cores: String,
}

impl ResultConditions {
    /// The conditions of a result.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self {
            workload: entry.workload.clone(),
            test: entry.test.clone(),
            load_unit: entry.load_unit,
            profile: entry.profile.clone(),
            slo: entry.slo.clone(),
            vcpu: entry.vcpu,
            cpu_model: entry.cpu_model.clone(),
            cores: entry.cores.clone(),
        }
    }

    /// In a line: `workload echo, profile quick, SLO echo, 1 vCPU, on Example CPU, 4 cores`.
    #[must_use]
    pub fn words(&self) -> String {
        let vcpu = match self.vcpu {
            Some(_) => given(self.vcpu),
            None => "not started by Plimsoll".to_owned(),
        };
        let machine = match (self.cpu_model.as_str(), self.cores.as_str()) {
            ("", "") => "on an unknown machine".to_owned(),
            (model, "") => format!("on {}", plain(model)),
            ("", cores) => format!("{} cores", plain(cores)),
            (model, cores) => format!("on {}, {} cores", plain(model), plain(cores)),
        };
        let test = self
            .test
            .as_ref()
            .map_or_else(String::new, |test| format!(", test {}", plain(test)));
        format!(
            "workload {}{test}, profile {}, SLO {}, {vcpu}, {machine}",
            plain(&self.workload),
            plain(&self.profile),
            plain(&self.slo)
        )
    }
}

/// One load line of a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The result folder, relative to the folder of results.
    pub folder: String,
    /// When the search began, RFC 3339 in UTC.
    pub started_at: String,
    /// The load line; `null` when no load passed.
    pub load_line: Option<u32>,
    /// Where the edge lies.
    pub edge: Option<Edge>,
    /// The client or the machine ran out before the target did, so the load line is "at least".
    pub lower_bound_only: bool,
    /// Whether a signal ended the search early.
    pub interrupted: bool,
    /// The cost of a session at the load line, or at the highest load below it with a known cost.
    pub cost: Option<CostPoint>,
    /// What the machine took for small work before the trials: the median of each figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// Load lines found under the same conditions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendGroup {
    /// The conditions that they have in common.
    pub conditions: ResultConditions,
    /// The load lines, oldest first.
    pub points: Vec<TrendPoint>,
}

/// Groups searches by conditions. The searches come newest first, and so do the groups, by their newest result.
#[must_use]
pub fn groups(entries: Vec<Entry>) -> Vec<TrendGroup> {
    let mut groups: Vec<TrendGroup> = Vec::new();
    for entry in entries {
        let conditions = ResultConditions::of(&entry);
        let point = TrendPoint {
            folder: entry.folder,
            started_at: entry.started_at,
            load_line: entry.load_line,
            edge: entry.edge,
            lower_bound_only: entry.lower_bound_only,
            interrupted: entry.interrupted,
            cost: entry.cost,
            probe: entry.probe,
        };
        match groups.iter_mut().find(|g| g.conditions == conditions) {
            Some(group) => group.points.push(point),
            None => groups.push(TrendGroup {
                conditions,
                points: vec![point],
            }),
        }
    }
    for group in &mut groups {
        group.points.reverse();
    }
    groups
}
