//! Looks at this machine, without judging it.

use std::path::Path;

use plimsoll_host::isolation::{
    Cgroup, CpuList, DEFAULT_PERIOD_US, How, Layout, Means, Missing, Placement, can_be_own,
    siblings_of,
};
use plimsoll_host::machine::{Environment, Limits};

use crate::manifest::{Discovered, Manifest, Readiness};
use crate::simulator;

/// A target as the doctor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedTarget {
    /// `<workload>/<name>`.
    pub name: String,
    /// See [`Manifest::optional`].
    pub optional: bool,
    /// Whether it can be built and run.
    pub readiness: Readiness,
}

/// Everything that the doctor looks at.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The machine's facts.
    pub environment: Environment,
    /// The limits of this process.
    pub limits: Limits,
    /// The number of CPUs that we may use.
    pub cpus: usize,
    /// A target CPU and a client CPU that are threads of one core, in the default placement of one vCPU.
    pub shared_core: Option<(u32, u32)>,
    /// How a target that needs a quota would be isolated.
    pub means: Means,
    /// What that isolation would lack.
    pub missing: Vec<Missing>,
    /// Whether a target can have its own network; if not, why.
    pub network: Result<(), String>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub syn_backlog: Option<u64>,
    /// `net.ipv4.tcp_tw_reuse`: 0 off, 1 on, 2 on the loopback.
    pub time_wait_reuse: Option<u64>,
    /// `net.netfilter.nf_conntrack_max`, if connections are tracked.
    pub conntrack_max: Option<u64>,
    /// The targets.
    pub targets: Vec<ObservedTarget>,
    /// Manifests that cannot be used, one line each.
    pub broken_manifests: Vec<String>,
    /// The path of the inference simulator, or the line that says that it is not there.
    pub simulator: Result<String, String>,
}

impl Observed {
    /// Looks at this machine. It creates and removes a control group and a network namespace, and runs every target's
    /// version commands, so it takes a moment.
    #[must_use]
    pub fn of_this_machine(root: Option<&Path>, discovered: &Discovered) -> Self {
        let layout = Layout::of_this_machine();
        let allowed = CpuList::allowed_to_us().ok();
        // Half a CPU, so that a quota is tried. The placement is the same as for a whole CPU.
        let placement = allowed
            .as_ref()
            .and_then(|allowed| Placement::choose(0.5, allowed, None, None).ok());
        let (means, missing) = match &placement {
            Some(placement) => {
                let group = Cgroup::create(placement, DEFAULT_PERIOD_US, &layout);
                (group.means(), group.missing().to_vec())
            }
            None => (NO_MEANS, Vec::new()),
        };
        let network = match &placement {
            Some(placement) => can_be_own(placement),
            None => Err("no CPU is available".to_owned()),
        };
        let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse().ok();
        Self {
            environment: Environment::of_this_machine(),
            limits: Limits::of_this_process(),
            cpus: allowed.as_ref().map_or(0, CpuList::count),
            shared_core: placement
                .and_then(|placement| placement.shared_cores(siblings_of).first().copied()),
            means,
            missing,
            network,
            syn_backlog: number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
            time_wait_reuse: number("/proc/sys/net/ipv4/tcp_tw_reuse"),
            conntrack_max: number("/proc/sys/net/netfilter/nf_conntrack_max"),
            targets: discovered.targets.iter().map(observe_target).collect(),
            broken_manifests: discovered.broken.iter().map(ToString::to_string).collect(),
            simulator: simulator::find_binary(root)
                .map(|path| path.display().to_string())
                .map_err(|error| error.to_string()),
        }
    }
}

const NO_MEANS: Means = Means {
    quota: How::Nothing,
    cpus: How::Nothing,
    cpu_usage: How::Proc,
    memory: How::Proc,
};

fn observe_target(manifest: &Manifest) -> ObservedTarget {
    ObservedTarget {
        name: format!("{}/{}", manifest.workload, manifest.name),
        optional: manifest.optional,
        readiness: manifest.availability().readiness,
    }
}
