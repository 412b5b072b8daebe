//! What an agent sees of its own machine while it drives its part.

use std::time::Instant;

use plimsoll_core::profile::Profile;
use plimsoll_core::record::ProcessResources;
use plimsoll_engine::Report;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::resources::{DEFAULT_INTERVAL, Monitor, Sampler, Source, Watched};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::trial::process_resources;
use crate::trial::timeline::nanoseconds_between;

/// The name of the only sampler.
const OURSELVES: &str = "agent";

/// What an agent saw of its own machine in the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Its own process.
    pub(crate) resources: Option<ProcessResources>,
    /// Share of its CPUs' time that the hypervisor took.
    pub(crate) steal_share: Option<f64>,
    /// Share of the window that the kernel's receive threads waited for its CPUs.
    pub(crate) receive_wait_share: Option<f64>,
}

/// Watches the agent's own machine.
pub(crate) struct Watch {
    monitor: Monitor,
    epoch: Instant,
    cpus: CpuList,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The thread that samples does not start.
    pub(crate) fn begin(cpus: &CpuList) -> Result<Self> {
        let epoch = Instant::now();
        let ourselves = Sampler::new(Source::ourselves(), epoch);
        let watched = Watched {
            samplers: vec![(OURSELVES.to_owned(), ourselves)],
            sockets: None,
        };
        let cpus = cpus.clone();
        let monitor = Monitor::start(watched, epoch, DEFAULT_INTERVAL, Some(cpus.clone()))?;
        Ok(Self {
            monitor,
            epoch,
            cpus,
        })
    }

    /// What was seen in the measured window of this part.
    ///
    /// # Errors
    /// The thread that samples panicked.
    pub(crate) fn end(self, profile: &Profile, report: &Report) -> Result<Seen> {
        let recorded = self.monitor.stop()?;
        let offset_ns = nanoseconds_between(self.epoch, report.clock.epoch());
        let over_ns = nanoseconds_between(self.epoch, Instant::now());
        let window = profile.window();
        let from_ns = offset_ns + window.start_ns;
        let to_ns = over_ns.min(offset_ns + window.end_ns);
        let machine = recorded.machine.between(from_ns, to_ns);
        let ours = |cpu| self.cpus.contains(cpu);
        let usage = recorded.series.get(OURSELVES);
        let usage = usage.and_then(|series| series.between(from_ns, to_ns));
        Ok(Seen {
            resources: usage.map(|usage| process_resources(&usage)),
            steal_share: machine.as_ref().and_then(|passed| passed.steal_share(ours)),
            receive_wait_share: machine
                .as_ref()
                .and_then(|passed| passed.receive_wait_share(ours)),
        })
    }
}
