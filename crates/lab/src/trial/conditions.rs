//! What all trials of a search have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::caveat::{CompanionTerms, Terms};
use plimsoll_core::goals::GoalsFile;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Build, Probe};
use plimsoll_core::sanity::MetricNames;
use plimsoll_core::secret::{Secret, Secrets};
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::Slo;
use plimsoll_host::isolation::Placement;
use plimsoll_host::machine::MachineFacts;
use plimsoll_tls::Trust;
use plimsoll_workload::Plan;

use super::subject::{Subject, TargetUrl};
use crate::baseline::Baseline;
use crate::error::Result;
use crate::fleet::Fleet;

/// What all trials of a search have in common.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// What the sessions do.
    pub plan: Arc<dyn Plan>,
    /// The trial that trials are compared with, if there is one. The plan knows it already; one that is made anew is told it
    /// again.
    pub baseline: Option<Baseline>,
    /// How long each phase takes.
    pub profile: Profile,
    /// What passing means.
    pub slo: Slo,
    /// Further SLOs by which every trial is also judged.
    pub further_slos: Vec<Slo>,
    /// What the user wants of the target, which decides no verdict; `None` if no goals were set.
    pub goals: Option<GoalsFile>,
    /// Seed for everything that is drawn.
    pub seed: u64,
    /// Whether the client's sockets have `TCP_NODELAY`.
    pub nodelay: bool,
    /// Width of the engine's tick, in µs.
    pub tick_us: u64,
    /// Further fields of the upgrade request. Their values are secrets, because any of them may be one.
    pub headers: Vec<(String, Secret)>,
    /// The secrets of this call. They are removed from whatever a server or a target writes before it is kept.
    pub secrets: Secrets,
    /// Whom the client believes, at a URL with TLS.
    pub trust: Trust,
    /// The name that the certificate there must be for, and that is sent (SNI); `None` for the URL's own.
    pub sni: Option<String>,
    /// Who runs where.
    pub placement: Placement,
    /// Agents on other machines: those that drive the load, and the observer of the target. `None` if there are none.
    pub fleet: Option<Fleet>,
    /// The network of a target that we start.
    pub network: NetworkPlan,
    /// Period of the target's CPU quota, in µs, where it needs one.
    pub quota_period_us: u64,
    /// Where targets find their back end.
    pub back_end: BackEnd,
    /// Whether we configured the target, so that its answers must echo what we told it.
    pub configured: bool,
    /// Where the logs of companion and target go.
    pub log_folder: PathBuf,
    /// The machine.
    pub machine: MachineFacts,
    /// The probe of the machine from the beginning of this measurement; `None` if none was taken.
    pub probe: Option<Probe>,
    /// The build of Plimsoll that measures.
    pub build: Build,
}

impl Conditions {
    /// The agents that drive the load; `None` if this machine drives it.
    pub(super) fn agents(&self) -> Option<&Fleet> {
        self.fleet.as_ref().filter(|fleet| fleet.agents() > 0)
    }

    /// The same, with a log folder for this trial alone.
    pub(super) fn with_logs_of_trial(&self, load: u32) -> Self {
        let mut conditions = self.clone();
        let unit = self.plan.unit().name().replace(' ', "-");
        conditions.log_folder = (1..)
            .map(|number| self.log_folder.join(format!("{number:03}-{load}-{unit}")))
            .find(|folder| !folder.exists())
            .unwrap_or_else(|| self.log_folder.clone());
        conditions
    }

    /// Where the target's data goes unless the user gave a place: beside the logs.
    pub(super) fn data_place(&self) -> &Path {
        let parent = self.log_folder.parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    /// What the workload calls things.
    pub(super) fn terms(&self) -> Terms {
        let counters = self.plan.counters();
        Terms {
            load_unit: self.plan.unit(),
            metrics: counters.map_or_else(MetricNames::default, |counters| counters.names),
            companion: self.companion_terms(),
        }
    }

    /// What the workload calls the program beside the target.
    pub(crate) fn companion_terms(&self) -> CompanionTerms {
        let companions = self.plan.workload().companions();
        let terms = companions.map_or_else(CompanionTerms::default, |of| *of.terms());
        match self.back_end {
            BackEnd::Url(_) => terms.elsewhere(),
            BackEnd::Companion(_) | BackEnd::None => terms,
        }
    }

    /// Where sessions at this URL go, before the plan adds what the target wants to see.
    pub(super) fn endpoint(&self, url: &TargetUrl) -> Endpoint {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.expose().to_owned()));
        Endpoint {
            host: url.host.clone(),
            path: url.path.clone(),
            headers: headers.collect(),
        }
    }

    /// Refuses a search at a server that the plan does not let be searched. Nothing was sent to it yet.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn must_be_searchable(&self, subject: &Subject) -> Result<()> {
        match subject {
            Subject::Running { url, .. } => Ok(self.plan.may_search(&self.endpoint(url))?),
            Subject::Started(_) => Ok(()),
        }
    }

    /// The cores of the engine's threads: all of the client's cores.
    #[must_use]
    pub fn engine_cpus(&self) -> Vec<usize> {
        let cpus = self.placement.client_cpus.as_slice();
        cpus.iter().map(|cpu| *cpu as usize).collect()
    }
}

/// The network between the client and a target that we start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkPlan {
    /// The target's own namespace.
    Own,
    /// The loopback.
    Loopback {
        /// Why, as the end of a sentence.
        why: String,
    },
}

/// Where targets find their back end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackEnd {
    /// It is the workload's companion, started for each trial by running this program.
    Companion(PathBuf),
    /// It runs already: a server of the user's, or the workload's companion.
    Url(String),
    /// Nowhere that we know: the workload has no back end, or we did not start the target.
    None,
}
