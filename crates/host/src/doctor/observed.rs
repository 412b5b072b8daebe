//! Looks at this machine, without judging it.

use std::time::Duration;

use crate::isolation::{
    Awake, Cgroup, CpuList, DEFAULT_PERIOD_US, How, Layout, Means, Missing, Placement, can_be_own,
    siblings_of,
};
use crate::machine::{Limits, MachineFacts, Stops};

/// Everything that the doctor looks at.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The machine's facts.
    pub environment: MachineFacts,
    /// The limits of this process.
    pub limits: Limits,
    /// The number of CPUs that we may use.
    pub cpus: usize,
    /// A target CPU and a client CPU that are threads of one core, in the default placement of one vCPU.
    pub shared_core: Option<(u32, u32)>,
    /// How long the hypervisor stopped our CPUs while all were busy; `None` if that cannot be told here.
    pub stops: Option<Stops>,
    /// Whether the client's CPUs can be kept awake, in the same placement; if not, why. `None` if none should be.
    pub awake: Option<Result<(), &'static str>>,
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
}

impl Observed {
    /// Looks at this machine. It creates and removes a control group and a network namespace, and keeps all our CPUs busy
    /// for two seconds.
    #[must_use]
    pub fn of_this_machine() -> Self {
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
            environment: MachineFacts::of_this_machine(),
            limits: Limits::of_this_process(),
            cpus: allowed.as_ref().map_or(0, CpuList::count),
            shared_core: placement
                .as_ref()
                .and_then(|placement| placement.shared_cores(siblings_of).first().copied()),
            awake: placement
                .and_then(|placement| placement.apart_from_target(siblings_of))
                .map(|cpus| Awake::possible(&cpus)),
            stops: allowed.and_then(|cpus| Stops::look(&cpus, LOOK)),
            means,
            missing,
            network,
            syn_backlog: number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
            time_wait_reuse: number("/proc/sys/net/ipv4/tcp_tw_reuse"),
            conntrack_max: number("/proc/sys/net/netfilter/nf_conntrack_max"),
        }
    }
}

/// Long enough for a hypervisor that stops each CPU once a second.
const LOOK: Duration = Duration::from_secs(2);

const NO_MEANS: Means = Means {
    quota: How::Nothing,
    cpus: How::Nothing,
    cpu_usage: How::Proc,
    memory: How::Proc,
};
