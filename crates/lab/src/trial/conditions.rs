//! What all trials of a search have in common.

use std::path::PathBuf;

use plimsoll_core::profile::Profile;
use plimsoll_core::slo::Slo;
use plimsoll_workloads::stt::Audio;

use crate::error::{Error, Result};
use crate::isolation::Placement;
use crate::machine::Environment;

/// Passes over a batch that targets are told to ask for.
pub const CPU_PASSES: u32 = 4;
/// The model's delay that targets are told and the simulator has.
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
    /// Further SLOs by which every trial is judged as well.
    pub further_slos: Vec<Slo>,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Whether the client's sockets have `TCP_NODELAY`.
    pub nodelay: bool,
    /// Width of the engine's tick.
    pub tick_us: u64,
    /// Further fields of the upgrade request.
    pub headers: Vec<(String, String)>,
    /// Who runs where.
    pub placement: Placement,
    /// Period of the target's CPU quota, where it needs one.
    pub quota_period_us: u64,
    /// Where targets send their batches.
    pub inference: Inference,
    /// Whether the target was configured by us, so that its answers must echo what we told it.
    pub configured: bool,
    /// Where the logs of simulator and target go.
    pub log_folder: PathBuf,
    /// The machine.
    pub machine: Environment,
}

impl Conditions {
    /// The same, with a log folder of this trial's own.
    pub(super) fn with_logs_of_trial(&self, sessions: u32) -> Self {
        let mut conditions = self.clone();
        conditions.log_folder = (1..)
            .map(|number| {
                self.log_folder
                    .join(format!("{number:03}-{sessions}-sessions"))
            })
            .find(|folder| !folder.exists())
            .unwrap_or_else(|| self.log_folder.clone());
        conditions
    }

    /// The cores of the engine's threads: all of the client's.
    #[must_use]
    pub fn engine_cpus(&self) -> Vec<usize> {
        let cpus = self.placement.client_cpus.as_slice();
        cpus.iter().map(|cpu| *cpu as usize).collect()
    }
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
        /// Bytes of a message.
        message_bytes: usize,
        /// Time between two messages of a session.
        period_ms: u64,
    },
}

impl Load {
    /// The workload's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stt { .. } => "stt",
            Self::Echo { .. } => "echo",
        }
    }

    /// Answers that a session is due each second: what a percentile's samples come from.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    pub fn answers_per_session_second(&self) -> f64 {
        match self {
            Self::Stt { .. } => 1.0,
            Self::Echo { period_ms, .. } => 1e3 / (*period_ms).max(1) as f64,
        }
    }

    /// The path of a target's URL that names none.
    #[must_use]
    pub fn default_path(&self) -> &'static str {
        match self {
            Self::Stt { .. } => "/ws/stt",
            Self::Echo { .. } => "/",
        }
    }

    /// The SLO unless another is given.
    #[must_use]
    pub fn default_slo(&self) -> Slo {
        match self {
            Self::Stt { .. } => Slo::stt(),
            Self::Echo { .. } => Slo::echo(),
        }
    }
}

/// What speech-to-text sessions say.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// One line: the file cannot be read, or is of another format (with the line that converts it).
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
    /// To a simulator that is started for each trial: this program.
    Simulator(PathBuf),
    /// To a server of the user's.
    Url(String),
    /// Nowhere: the workload has no back end, or the target was not started by us.
    None,
}
