//! The means by which a target is isolated and measured, and what is missing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::layout::Controller;
use super::view::GroupView;

/// The means by which something is enforced or measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A controller of control groups version 1.
    CgroupV1,
    /// Control groups version 2.
    CgroupV2,
    /// `sched_setaffinity` when the child starts, inherited by what it starts.
    Affinity,
    /// Sampling `/proc`.
    Proc,
    /// Not needed: there is no quota, because the target may use all the time of its CPUs.
    NotNeeded,
    /// Not at all.
    Nothing,
}

/// What was used for each part of the isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Means {
    /// The limit on CPU time.
    pub quota: How,
    /// What keeps the target on its CPUs. (The affinity is always set; `Affinity` means that nothing else is.)
    pub cpus: How,
    /// How CPU time is counted.
    pub cpu_usage: How,
    /// How memory charged to the group is counted. Resident size always comes from `/proc`.
    pub memory: How,
}

/// The parts of isolation that can be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// A quota is needed but could not be set: the target gets more than the given vCPU.
    Quota,
    /// There is no cpuset: only the affinity, which a target can change.
    Cpus,
    /// CPU time is sampled, so the time of processes that start and end between two samples is lost.
    CpuUsage,
}

/// A part of isolation that could not be provided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which part.
    pub what: Wanted,
    /// Why: the place and the system's answer.
    pub why: String,
}

impl Missing {
    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.what {
            Wanted::Quota => {
                "run as root, or under `systemd-run --user --scope -p Delegate=yes`, or give --vcpu as many whole CPUs as --target-cpus names"
            }
            Wanted::Cpus | Wanted::CpuUsage => {
                "run as root, or under `systemd-run --user --scope -p Delegate=yes`"
            }
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let consequence = match self.what {
            Wanted::Quota => "the target's CPU time is not limited to its vCPU",
            Wanted::Cpus => {
                "the target is kept on its CPUs by affinity only, which it can change itself"
            }
            Wanted::CpuUsage => {
                "the target's CPU time is sampled from /proc, so short-lived processes may be missed"
            }
        };
        write!(f, "{consequence} ({}); {}", self.why, self.remedy())
    }
}

/// The means that a group with these folders, and with these controllers of version 2, provides.
pub(super) fn means(view: &GroupView, in_v2: &[Controller], needs_quota: bool) -> Means {
    let by = |controller: Controller, otherwise: How| {
        if view.v1.contains_key(&controller) {
            How::CgroupV1
        } else if in_v2.contains(&controller) {
            How::CgroupV2
        } else {
            otherwise
        }
    };
    // A version 2 group counts CPU time with or without controllers.
    let counted_otherwise = if view.v2.is_some() {
        How::CgroupV2
    } else {
        How::Proc
    };
    Means {
        quota: if needs_quota {
            by(Controller::Cpu, How::Nothing)
        } else {
            How::NotNeeded
        },
        cpus: by(Controller::Cpuset, How::Affinity),
        cpu_usage: by(Controller::Cpuacct, counted_otherwise),
        memory: by(Controller::Memory, How::Proc),
    }
}

/// What is missing with these means, and why: the reasons why controllers were refused.
pub(super) fn missing(means: Means, refused: &[(Controller, String)]) -> Vec<Missing> {
    let lacking = [
        (means.quota == How::Nothing, Wanted::Quota, Controller::Cpu),
        (
            means.cpus == How::Affinity,
            Wanted::Cpus,
            Controller::Cpuset,
        ),
        (
            means.cpu_usage == How::Proc,
            Wanted::CpuUsage,
            Controller::Cpuacct,
        ),
    ];
    let describe = |(_, what, controller): (bool, Wanted, Controller)| {
        let reasons = refused
            .iter()
            .filter(|(of, _)| *of == controller)
            .map(|(_, reason)| reason.as_str());
        let reasons: Vec<&str> = reasons.collect();
        let why = if reasons.is_empty() {
            format!("this machine has no {controller} control groups")
        } else {
            reasons.join("; ")
        };
        Missing { what, why }
    };
    lacking
        .into_iter()
        .filter(|(lacks, _, _)| *lacks)
        .map(describe)
        .collect()
}
