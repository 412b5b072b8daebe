//! What all trials of a search have in common.

use std::net::IpAddr;
use std::path::PathBuf;

use plimsoll_core::profile::{NS_PER_S, Profile};
use plimsoll_core::record::{Build, LoadUnit, Probe};
use plimsoll_core::secret::{Secret, Secrets};
use plimsoll_core::slo::Slo;
use plimsoll_host::isolation::Placement;
use plimsoll_host::machine::MachineFacts;
use plimsoll_workload_stt::Audio;
use plimsoll_workload_stt::session::FRAME_PERIOD_NS;
use serde::{Deserialize, Serialize};

use super::ws::WsLoad;
use crate::error::{Error, Result};

/// The number of passes over a batch that targets are told to ask for.
pub const CPU_PASSES: u32 = 4;
/// The delay of the model, in ms, that targets are told and that the simulator has.
pub const MODEL_DELAY_MS: u64 = 75;

/// What all trials of a search have in common.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// What the sessions do.
    pub load: Load,
    /// How long each phase takes.
    pub profile: Profile,
    /// What passing means.
    pub slo: Slo,
    /// Further SLOs by which every trial is also judged.
    pub further_slos: Vec<Slo>,
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
    /// Who runs where.
    pub placement: Placement,
    /// The network of a target that we start.
    pub network: NetworkPlan,
    /// Period of the target's CPU quota, in µs, where it needs one.
    pub quota_period_us: u64,
    /// Where targets send their batches.
    pub inference: Inference,
    /// Whether we configured the target, so that its answers must echo what we told it.
    pub configured: bool,
    /// Where the logs of simulator and target go.
    pub log_folder: PathBuf,
    /// The machine.
    pub machine: MachineFacts,
    /// The probe of the machine from the beginning of this measurement; `None` if none was taken.
    pub probe: Option<Probe>,
    /// The build of Plimsoll that measures.
    pub build: Build,
}

impl Conditions {
    /// The same, with a log folder for this trial alone.
    pub(super) fn with_logs_of_trial(&self, load: u32) -> Self {
        let mut conditions = self.clone();
        let unit = self.load.unit().name().replace(' ', "-");
        conditions.log_folder = (1..)
            .map(|number| self.log_folder.join(format!("{number:03}-{load}-{unit}")))
            .find(|folder| !folder.exists())
            .unwrap_or_else(|| self.log_folder.clone());
        conditions
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

/// A workload with its parameters.
#[derive(Debug, Clone)]
pub enum Load {
    /// Streaming speech-to-text.
    Stt {
        /// What the sessions say.
        audio: AudioSource,
    },
    /// Messages that come back.
    Echo {
        /// The size of a message, in bytes.
        message_bytes: usize,
        /// Time between two messages of a session, in ms.
        period_ms: u64,
    },
    /// A test of a general WebSocket server.
    Ws(Box<WsLoad>),
}

impl Load {
    /// The workload's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stt { .. } => "stt",
            Self::Echo { .. } => "echo",
            Self::Ws(_) => "ws",
        }
    }

    /// What a load counts.
    #[must_use]
    pub fn unit(&self) -> LoadUnit {
        match self {
            Self::Stt { .. } | Self::Echo { .. } => LoadUnit::SESSIONS,
            Self::Ws(ws) => ws.test.load_unit(),
        }
    }

    /// The engine sessions that make up a load: as many as the load, unless it counts something else.
    #[must_use]
    pub fn sessions_for(&self, load: u32, profile: &Profile) -> u32 {
        match self {
            Self::Stt { .. } | Self::Echo { .. } => load,
            Self::Ws(ws) => ws.sessions_for(load, profile),
        }
    }

    /// The most connections that a load has at once. Each is an open file and a port.
    #[must_use]
    pub fn concurrent_for(&self, load: u32, profile: &Profile) -> u64 {
        match self {
            Self::Stt { .. } | Self::Echo { .. } => u64::from(load),
            Self::Ws(ws) => ws.concurrent_for(load, profile),
        }
    }

    /// Answers that are due each second. A percentile's samples come from these.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    pub fn answers_per_second(&self, load: u32) -> f64 {
        match self {
            Self::Stt { .. } => f64::from(load),
            Self::Echo { period_ms, .. } => f64::from(load) * 1e3 / (*period_ms).max(1) as f64,
            Self::Ws(ws) => ws.answers_per_second(load),
        }
    }

    /// Frames that a session sends each second, if all sessions of a load send at one pace. How many sessions a client
    /// can drive follows from it.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds and nanoseconds")]
    pub fn frames_per_session_second(&self) -> Option<f64> {
        match self {
            Self::Stt { .. } => Some(NS_PER_S as f64 / FRAME_PERIOD_NS as f64),
            Self::Echo { period_ms, .. } => Some(1e3 / (*period_ms).max(1) as f64),
            Self::Ws(_) => None,
        }
    }

    /// The path to use if a target's URL names none.
    #[must_use]
    pub fn default_path(&self) -> &'static str {
        match self {
            Self::Stt { .. } => "/ws/stt",
            Self::Echo { .. } => "/",
            Self::Ws(ws) => ws.default_path(),
        }
    }

    /// Where a target reports that it is ready.
    #[must_use]
    pub fn health_path(&self) -> &'static str {
        match self {
            Self::Stt { .. } | Self::Echo { .. } => "/health",
            Self::Ws(_) => "/healthz",
        }
    }

    /// The SLO that applies unless another is given.
    #[must_use]
    pub fn default_slo(&self) -> Slo {
        match self {
            Self::Stt { .. } => Slo::stt(),
            Self::Echo { .. } => Slo::echo(),
            Self::Ws(ws) => Slo::ws(ws.test.name()),
        }
    }

    /// The addresses that connections come from; none where the kernel chooses.
    #[must_use]
    pub fn source_addresses(&self) -> &[IpAddr] {
        match self {
            Self::Stt { .. } | Self::Echo { .. } => &[],
            Self::Ws(ws) => &ws.source_addresses,
        }
    }

    /// The send buffer of a connection, in bytes. `usual` is what other loads have.
    pub(super) fn send_buffer_bytes(&self, usual: usize) -> usize {
        match self {
            Self::Stt { .. } | Self::Echo { .. } => usual,
            Self::Ws(ws) => ws.send_buffer_bytes(usual),
        }
    }

    /// Checks whether its values can be used.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Stt { .. } | Self::Echo { .. } => Ok(()),
            Self::Ws(ws) => ws.check(),
        }
    }

    /// Adapts a profile to this load: if the load is connections that arrive, there is no ramp.
    pub fn shape(&self, profile: &mut Profile) {
        self.unit().shape(profile);
    }
}

/// What speech-to-text sessions say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AudioSource {
    /// The synthetic frames of the contract.
    Synthetic,
    /// A WAV file.
    File(PathBuf),
}

impl AudioSource {
    /// The table that sessions send from.
    ///
    /// # Errors
    /// One line: the file cannot be read, or has another format (with the line that converts it).
    pub fn table(&self) -> Result<Audio> {
        let file = match self {
            Self::Synthetic => return Ok(Audio::synthetic()),
            Self::File(file) => file,
        };
        let bytes = std::fs::read(file)
            .map_err(|error| Error::Usage(format!("--audio {}: {error}", file.display())))?;
        Audio::from_wav(&bytes)
            .map_err(|error| Error::Usage(format!("--audio {}: {error}", file.display())))
    }
}

/// Where targets send their batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inference {
    /// To a simulator, started for each trial by running this program.
    Simulator(PathBuf),
    /// To a server that the user runs.
    Url(String),
    /// Nowhere: the workload has no back end, or we did not start the target.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workload_ws::{Dialect, Test};

    #[test]
    fn a_session_has_the_pace_of_its_workload() {
        let stt = Load::Stt {
            audio: AudioSource::Synthetic,
        };
        let echo = |period_ms| Load::Echo {
            message_bytes: 128,
            period_ms,
        };
        let ws = Load::Ws(Box::new(WsLoad::new(Test::Ping, Dialect::Echo)));
        assert_eq!(stt.frames_per_session_second(), Some(50.0));
        assert_eq!(echo(100).frames_per_session_second(), Some(10.0));
        assert_eq!(echo(4).frames_per_session_second(), Some(250.0));
        assert_eq!(ws.frames_per_session_second(), None);
    }
}
