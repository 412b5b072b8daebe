//! A workload with its values settled: all that a trial has to know about it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::caveat::Caveat;
use plimsoll_core::profile::{Phases, Profile, Window};
use plimsoll_core::record::{Goodput, LoadUnit, SanityCheck, Sections, Storage, Trial};
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::Slo;
use plimsoll_engine::{Options, Report};
use plimsoll_host::data_folder::Data;
use serde::{Deserialize, Serialize};

use crate::calibrate::Work;
use crate::counters::Counters;
use crate::drive::{Drive, Findings};
use crate::speaker::Speaker;
use crate::values::Values;
use crate::{Manifest, Refusal, Workload};

/// What the sessions of a trial do.
///
/// Only the first group has no usual answer. `load` is always the load of a trial, in [`Plan::unit`].
pub trait Plan: fmt::Debug + Send + Sync {
    /// The workload.
    fn workload(&self) -> &'static dyn Workload;

    /// The value of every parameter that has a meaning, for the record.
    fn values(&self) -> &Values;

    /// What a load counts.
    fn unit(&self) -> LoadUnit;

    /// The SLO that applies unless another is given.
    fn slo(&self) -> Slo;

    /// Further SLOs that judge the same trials, unless others are given.
    fn further_slos(&self) -> Vec<Slo> {
        Vec::new()
    }

    /// The name of the profile that its trials have unless the user gives another.
    fn usual_profile(&self) -> &'static str {
        "quick"
    }

    /// The usual tick of the engine, in µs. A workload whose sessions share their work may have none: 0.
    fn tick_us(&self) -> u64 {
        Options::DEFAULT_TICK_US
    }

    /// The usual period of the CPU quota of a target with less than a vCPU, in µs. It comes close to a slower core. A
    /// workload whose gates are tight has 0: the shortest period that the kernel allows.
    fn quota_period_us(&self) -> u64 {
        10_000
    }

    /// The load that a search tries first, unless the user gave another.
    fn first_load(&self) -> u32 {
        400
    }

    /// Whether a short trial shows what a full one would, far from the edge. It does not where an overloaded target takes longer
    /// to fall behind.
    fn shows_in_a_short_trial(&self) -> bool {
        true
    }

    /// Whether a search goes on beyond the load line, until the target collapses. Its trials must then say how much was
    /// done ([`Outcome::goodput`]).
    fn goes_beyond(&self) -> bool {
        false
    }

    /// The trial that runs before a search, because the trials of the search are compared with it. `None` if they stand for
    /// themselves.
    fn baseline(&self) -> Option<Baseline> {
        None
    }

    /// The same plan for trials that are compared with this one. It has the same values, and it may have further gates. Each
    /// trial asks for it anew, and client processes do without.
    ///
    /// # Errors
    /// One line with the remedy: no trial can be compared with this one.
    fn with_baseline(&self, _trial: &Trial) -> Result<Arc<dyn Plan>, Refusal> {
        Err(Refusal(format!(
            "trials of workload {} are compared with no baseline",
            self.workload().about().name
        )))
    }

    /// Refuses a server that runs already and does not take its sessions, over a connection of its own before each trial. Reads
    /// and writes on it end after some seconds. Usually nothing is said.
    ///
    /// # Errors
    /// One line with the remedy, such as for a key that is missing. A server that is full or slow is no matter of this.
    fn meets(&self, _to: &Endpoint, _stream: &mut dyn Conversation) -> Result<(), Refusal> {
        Ok(())
    }

    /// Refuses this load at this server, which runs already and may be somebody else's. Asked before anything is sent to it.
    ///
    /// # Errors
    /// One line with the remedy.
    fn may_load(&self, _to: &Endpoint, _load: u32, _profile: &Profile) -> Result<(), Refusal> {
        Ok(())
    }

    /// Refuses to search at this server, which runs already and may be somebody else's. Asked before anything is sent to it.
    ///
    /// # Errors
    /// One line with the remedy.
    fn may_search(&self, _to: &Endpoint) -> Result<(), Refusal> {
        Ok(())
    }

    /// Refuses a target that does not have what the load asks for, by what its manifest says. Returns the values that
    /// the manifest settles, such as what a variant of the target guarantees: the trial's plan has them as well.
    ///
    /// # Errors
    /// One line with the remedy.
    fn must_fit(&self, _manifest: &Manifest) -> Result<Values, Refusal> {
        Ok(Values::default())
    }

    /// Refuses the plan of another target that differs so that results of the two must not stand side by side in a
    /// ranking or a comparison.
    ///
    /// # Errors
    /// In what they differ, as the end of a line that begins with the names of the targets.
    fn must_be_like(&self, _other: &dyn Plan) -> Result<(), Refusal> {
        Ok(())
    }

    /// What a load needs.
    fn demand(&self, load: u32, profile: &Profile) -> Demand;

    /// What a target is told.
    fn told(&self) -> Told;

    /// What the companion is told when it starts, which only the workload understands; null if nothing.
    fn tells_companion(&self, _profile: &Profile) -> Findings {
        Findings::Null
    }

    /// Who asks a target without HTTP. `None`: a GET of [`Told::health_path`] tells whether it is ready, and it has no
    /// account. The sessions and the speaker connect to the same port, and `/metrics` are not read.
    fn speaker(&self) -> Option<Arc<dyn Speaker>> {
        None
    }

    /// The session machines that do this job in a trial of this profile.
    ///
    /// # Errors
    /// One line with the remedy.
    fn machines(&self, job: &Job, profile: &Profile) -> Result<Box<dyn Drive>, Refusal>;

    /// Adds what the target wants to see before it lets a session in, such as a token. Only this has the secrets. Client
    /// processes get what it returns.
    ///
    /// # Errors
    /// One line with the remedy: no request can be made of the endpoint.
    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal>;

    /// Frames that a session sends each second, if all sessions of a load send at one pace. How many sessions a client
    /// can drive follows from it.
    fn frames_per_session_second(&self) -> Option<f64> {
        None
    }

    /// The work of its frames, if all sessions of a load send at one pace. How much a frame costs this machine's client
    /// is measured with it before a search.
    fn work(&self) -> Option<Box<dyn Work>> {
        None
    }

    /// The size of a frame's payload, in bytes, if all frames have one. A socket must have room for two.
    fn frame_bytes(&self) -> Option<usize> {
        None
    }

    /// What its sessions speak over TLS (ALPN), the best first.
    fn alpn(&self) -> &'static [&'static str] {
        &["http/1.1"]
    }

    /// The addresses that connections come from; none where the kernel chooses.
    fn source_addresses(&self) -> &[IpAddr] {
        &[]
    }

    /// Which of the target's own counters have a meaning; `None` if none has.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Names of the target's counters that [`Plan::outcome`] compares itself, label by label. They are read only where
    /// [`Plan::counters`] has a meaning.
    fn counters_by_label(&self) -> &'static [&'static str] {
        &[]
    }

    /// How long after its last connection has closed a target's memory is read once more. `None` where nobody waits for
    /// that.
    fn memory_after(&self) -> Option<Duration> {
        None
    }

    /// Whether the load is limited by what a machine has of files, ports and memory, so that a trial says which of them
    /// ran out.
    fn is_bound_by_the_machine(&self) -> bool {
        false
    }

    /// Whether the load looks for that limit, so that reaching it is an answer and not an error.
    fn looks_for_the_machines_limit(&self) -> bool {
        false
    }

    /// The least length of a warm-up, in seconds, of which something must have been answered. Otherwise the target is dead,
    /// and the trial ends there and fails. `None` if that can't be said of these sessions.
    fn warm_up_must_answer_s(&self) -> Option<f64> {
        None
    }

    /// How it was asked for, if it is a closed loop that shows how fast a target is: `--test burst`. No load of it is too
    /// much for a target, so that there is no load line. `None` for all other loads.
    fn decides_nothing(&self) -> Option<String> {
        None
    }

    /// Why all sessions of its load must be driven by one clock, as a clause; `None` if each reads its latencies from a clock
    /// of its own.
    fn needs_one_clock(&self) -> Option<&'static str> {
        None
    }

    /// What is run after a trial at the same load, for comparison only.
    fn afterwards(&self) -> Option<Afterwards> {
        None
    }

    /// Several plans in place of this one, each for a trial of its own.
    ///
    /// # Errors
    /// One line with the remedy: one of them cannot be made.
    fn series(&self) -> Result<Option<Series>, Refusal> {
        Ok(None)
    }

    /// Messages for the target's application that are no frames of the load.
    fn asides(&self, _findings: &Findings) -> u64 {
        0
    }

    /// The crash of the target that its trials have, if they have one. Only a target that Plimsoll started can be crashed.
    fn crash(&self) -> Option<Crash> {
        None
    }

    /// Whether the crash cuts the target's power, so that its data must be on a file system of its own.
    fn loses_power(&self) -> bool {
        let crash = self.crash();
        crash.is_some_and(|crash| crash.kind == CrashKind::Power)
    }

    /// What a trial showed besides its ledger and its latencies.
    fn outcome(&self, _seen: &Seen<'_>) -> Outcome {
        Outcome::default()
    }
}

/// A crash of the target in the middle of the measured window. It is then started again with the same ports and the same
/// data. Its sessions connect again if their machines do so ([`Session::unconnected`]).
///
/// [`Session::unconnected`]: plimsoll_core::session::Session::unconnected
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// What it is.
    pub kind: CrashKind,
    /// How long the target stays away before it is started again.
    pub pause: Duration,
    /// How it was asked for: `--test replay`.
    pub asked_by: &'static str,
}

impl Crash {
    /// When it happens, in nanoseconds since the trial began; never earlier.
    #[must_use]
    pub fn at_ns(window: &Window) -> u64 {
        window.start_ns + (window.end_ns - window.start_ns) / 2
    }
}

/// What a target loses in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashKind {
    /// Its processes: `kill -9`. The kernel keeps what they wrote.
    Kill,
    /// Its processes, and what its disk had not got yet. The data is then on a file system of its own.
    Power,
}

/// What became of a target that was crashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crashed {
    /// When, in nanoseconds since the trial began.
    pub at_ns: u64,
    /// When it was ready again; `None` if it was not.
    pub ready_ns: Option<u64>,
    /// Why it did not come back, with the end of its log.
    pub not_back: Option<String>,
}

/// What session machines have to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The load of the trial.
    pub load: u32,
    /// The seed of the trial.
    pub seed: u64,
    /// Where sessions go, as [`Plan::let_in`] returned it.
    pub to: Endpoint,
    /// Whether Plimsoll started the target, so that it is configured as [`Plan::told`] says.
    pub started: bool,
}

/// What a load needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// The engine's sessions over the whole trial.
    pub sessions: u32,
    /// The most of them that are open at once. Each is an open file and a port.
    pub concurrent: u64,
    /// Answers that are due each second. A percentile's samples come from these.
    pub answers_per_second: f64,
}

impl Demand {
    /// That of a load that counts sessions, each with so many answers a second.
    #[must_use]
    pub fn of_sessions(load: u32, answers_per_session_second: f64) -> Self {
        Self {
            sessions: load,
            concurrent: load.into(),
            answers_per_second: f64::from(load) * answers_per_session_second,
        }
    }
}

/// What a target is told, and where it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Path of the URL that sessions connect to, unless the user gave one.
    pub path: Cow<'static, str>,
    /// Path that says whether the target is ready, unless the plan has a [`Speaker`].
    pub health_path: &'static str,
    /// The variable of the port that sessions connect to, for a target that has a port of its own for them. `None`, and
    /// for all other targets: the port of `PORT`.
    pub port: Option<&'static str>,
    /// Environment variables, besides its ports and its number of threads.
    pub variables: Vec<(String, String)>,
    /// What it needs of a folder for its data, if it writes any. Each start gets a fresh one, as the variable `DATA_DIR`.
    pub data: Option<Data>,
}

/// A connection that can be talked over, encrypted or not.
pub trait Conversation: Read + Write {}

impl<T: Read + Write> Conversation for T {}

/// The trial that the trials of a search are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Its load.
    pub load: u32,
    /// Its phases, whatever the profile says.
    pub phases: Phases,
    /// What it is, in a few words: `unloaded run`.
    pub what: &'static str,
}

/// A plan that is run after a trial.
#[derive(Debug, Clone)]
pub struct Afterwards {
    /// The plan.
    pub plan: Arc<dyn Plan>,
    /// The shortest grace that it needs, in seconds.
    pub grace_min_s: f64,
    /// What its logs are called after.
    pub name: &'static str,
    /// How it was asked for: `--closed-loop`.
    pub asked_by: &'static str,
}

/// Several plans in place of one.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// The plans.
    pub rows: Vec<Row>,
    /// How it was asked for: `--test matrix`.
    pub asked_by: String,
    /// How to measure only one of them: `one size at a time: --test throughput --message-bytes N`.
    pub one_at_a_time: &'static str,
    /// How long the machine rests between two of them.
    pub pause: Duration,
}

/// One plan of several.
#[derive(Debug, Clone)]
pub struct Row {
    /// What tells it from the others: `1,024 B`.
    pub name: String,
    /// The plan.
    pub plan: Arc<dyn Plan>,
    /// Its load; `None`: the one that the user gave.
    pub load: Option<u32>,
    /// Its phases; `None`: those of the profile that the user gave.
    pub phases: Option<Phases>,
}

/// What a trial has to show to its plan.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// What the engine reports.
    pub report: &'a Report,
    /// What the session machines found out in addition.
    pub findings: &'a Findings,
    /// What the target says of itself ([`Speaker::account`]); null if nobody asks, or if it did not answer.
    pub account: &'a Findings,
    /// What the companion counted ([`Companion::account`](crate::Companion::account)); null if there is none, or if it did not
    /// answer.
    pub companion: &'a Findings,
    /// What those of [`Plan::afterwards`] found out, if they ran.
    pub afterwards: Option<&'a Findings>,
    /// Messages that the target's application was handed, by its own count, if it reports this.
    pub processed: Option<u64>,
    /// How much the counters of [`Plan::counters_by_label`] grew in the trial; empty if the target does not report them, or if
    /// its account cannot be compared.
    pub by_label: &'a BTreeMap<plimsoll_host::http::Series, f64>,
    /// The addresses that connections came from; none where the kernel chose.
    pub source_addresses: &'a [IpAddr],
    /// The measured window.
    pub window: Window,
    /// What the target wrote in the window, and where; `None` if Plimsoll made no folder for its data.
    pub storage: Option<&'a Storage>,
    /// What became of the target that [`Plan::crash`] asked to crash; `None` if it was not crashed.
    pub crashed: Option<&'a Crashed>,
    /// Path and query of the URL.
    pub path: &'a str,
}

/// What a plan says about a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// What it adds to the record.
    pub sections: Sections,
    /// The format of the messages, if nothing shows that the target decodes it.
    pub opaque_format: Option<String>,
    /// Reasons for doubt that only this workload knows.
    pub caveats: Vec<Caveat>,
    /// Further values of the workload's own metrics, which its sessions could not know.
    pub metrics: BTreeMap<String, f64>,
    /// How much was done, right and in time; `None` if the workload does not say when that is so.
    pub goodput: Option<Goodput>,
    /// Accounts that only this workload compares, for the record. One that does not hold needs a caveat.
    pub checks: Vec<SanityCheck>,
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
