//! A trial: one run at one load, from a fresh target to a judged record.
//!
//! - [`subject`]: what is measured, a target that we start or a URL;
//! - [`conditions`]: what all trials of a search have in common;
//! - `soundness`: whether what is measured can be believed: where the target runs (`cores`), whether a clock jumped (`clocks`), what
//!   the target counts of itself (`metrics`), and the other accounts that are kept twice;
//! - `stage`: simulator and target, started for one trial and gone after it;
//! - `judge`: what was measured, turned into a [`Trial`] with its verdict;
//! - [`timeline`]: one row per second.

mod clocks;
pub mod conditions;
mod cores;
mod judge;
mod metrics;
mod soundness;
mod stage;
pub mod subject;
pub mod timeline;

use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use plimsoll_core::latency::LatencySet;
use plimsoll_core::profile::Length;
use plimsoll_core::record::{Second, Trial};
use plimsoll_core::session::Workload;
use plimsoll_engine::{EngineSecond, Options, Report};
use plimsoll_workloads::connection::Endpoint;
use plimsoll_workloads::echo::Echo;
use plimsoll_workloads::stt::Stt;

use crate::error::{Error, Result};
use crate::machine::{Limits, Need, preflight};
use crate::resources::Recorded;
use crate::signals::Stop;
use crate::simulator::Stats;
use crate::timestamp;

pub use conditions::{Conditions, Inference, Load};
use soundness::{Soundness, Watch};
use stage::Stage;
pub use subject::{Subject, TargetUrl};

/// What a trial gave.
#[derive(Debug)]
pub struct Outcome {
    /// The judged record.
    pub trial: Trial,
    /// One row per second.
    pub seconds: Vec<Second>,
}

/// A second of a trial, as it ends. It reads as its row.
#[derive(Debug, Clone, Copy)]
pub struct TrialSecond<'a> {
    /// The row; what target and simulator used is of about this second only, and exact in [`Outcome::seconds`].
    pub row: &'a Second,
    /// The latencies of measured frames whose answers came in it: about 1 MB, gone when the next second begins.
    pub latency: &'a LatencySet,
    /// When the trial began, as its record will tell it.
    pub started_at: &'a str,
}

impl Deref for TrialSecond<'_> {
    type Target = Second;

    fn deref(&self) -> &Second {
        self.row
    }
}

/// What was measured, before it is judged.
struct Measured {
    report: Report,
    seconds: Vec<Second>,
    recorded: Recorded,
    /// The epoch of the samples.
    sampling_epoch: Instant,
    /// When the engine's last second ended: before the window did, if a signal ended the trial.
    over: Instant,
    inference: Option<Stats>,
    soundness: Soundness,
}

/// Whether a trial of this load can be had at all, as far as that can be told without starting anything: open files, ports, somebody who listens at a URL.
///
/// # Errors
/// One line with the remedy.
pub fn must_be_possible(subject: &Subject, sessions: u32) -> Result<()> {
    preflight(
        Need::sessions(u64::from(sessions)),
        Limits::of_this_process(),
    )?;
    match subject {
        Subject::Started(_) => Ok(()),
        Subject::Running { url, .. } => url.must_listen(),
    }
}

/// Runs one trial, of the whole profile or of a shorter one. `on_second` is shown each second as it ends.
///
/// # Errors
/// What makes a measurement impossible: too few descriptors or ports, a target that does not build, start or become ready, an inference
/// server that does not answer. What happens to sessions is no error but the result.
pub fn run(
    conditions: &Conditions,
    subject: &Subject,
    sessions: u32,
    length: Length,
    stop: &Stop,
    on_second: &mut dyn FnMut(&TrialSecond<'_>),
) -> Result<Outcome> {
    must_be_possible(subject, sessions)?;
    let started_at = timestamp::now();
    let mut conditions = conditions.with_logs_of_trial(sessions);
    conditions.profile = conditions.profile.of_length(length);
    let conditions = &conditions;
    let mut stage = Stage::set(conditions, subject, stop)?;
    let watch = Watch::begin(conditions, subject, &stage);
    let mut second_over = |row: &Second, latency: &LatencySet| {
        on_second(&TrialSecond {
            row,
            latency,
            started_at: &started_at,
        });
    };
    let mut measured = measure(
        conditions,
        &mut stage,
        watch,
        sessions,
        stop,
        &mut second_over,
    )?;
    if let Some(ending) = stage.target_ended()? {
        measured.report.ledger.because(&ending);
    }
    let outcome = judge::judge(conditions, &stage, sessions, length, started_at, measured);
    stage.clear()?;
    Ok(outcome)
}

fn measure(
    conditions: &Conditions,
    stage: &mut Stage,
    mut watch: Watch<'_>,
    sessions: u32,
    stop: &Stop,
    on_second: &mut dyn FnMut(&Second, &LatencySet),
) -> Result<Measured> {
    let options = Options {
        address: stage.url.address,
        sessions,
        profile: conditions.profile.clone(),
        seed: conditions.seed,
        nodelay: conditions.nodelay,
        cpus: conditions.engine_cpus(),
        tick_us: conditions.tick_us,
    };
    let sampling_epoch = Instant::now();
    let monitor = stage.monitor(conditions, sampling_epoch)?;
    let mut rows = timeline::Rows::new(&conditions.profile);
    let mut window_stats = WindowStats::new(conditions);
    let mut over = sampling_epoch;
    let mut each_second = |second: EngineSecond| {
        over = Instant::now();
        watch.second_over();
        window_stats.second_over(&second, stage);
        let row = timeline::so_far(rows.add(&second), |name| monitor.latest(name));
        on_second(&row, &second.latency);
    };
    let report = drive(
        conditions,
        &stage.url,
        &options,
        &stop.flag(),
        &mut each_second,
    )?;
    let inference = window_stats.finish(stage);
    let recorded = monitor.stop()?;
    let soundness = watch.end(conditions, stage, &report);
    let mut seconds = rows.finish();
    timeline::add_target(
        &mut seconds,
        &recorded,
        sampling_epoch,
        report.clock.epoch(),
    );
    Ok(Measured {
        report,
        seconds,
        recorded,
        sampling_epoch,
        over,
        inference,
        soundness,
    })
}

/// Runs the engine with the workload's sessions: the only place that knows which workloads there are.
fn drive(
    conditions: &Conditions,
    url: &TargetUrl,
    options: &Options,
    stop: &AtomicBool,
    on_second: &mut dyn FnMut(EngineSecond),
) -> Result<Report> {
    let endpoint = Endpoint {
        host: url.host.clone(),
        path: url.path.clone(),
        headers: conditions.headers.clone(),
    };
    endpoint
        .check()
        .map_err(|error| Error::Usage(error.to_string()))?;
    match &conditions.load {
        Load::Stt { audio } => {
            // A target that we did not start may be configured otherwise.
            let known = conditions.configured.then_some(());
            let workload = Stt::new(
                endpoint,
                audio.table()?,
                known.map(|()| conditions::CPU_PASSES),
                known.map(|()| conditions::MODEL_DELAY_MS),
            );
            with_engine(&workload, options, stop, on_second)
        }
        Load::Echo {
            message_bytes,
            period_ms,
        } => {
            let workload = Echo::new(endpoint, *message_bytes, *period_ms);
            with_engine(&workload, options, stop, on_second)
        }
    }
}

fn with_engine<W: Workload>(
    workload: &W,
    options: &Options,
    stop: &AtomicBool,
    on_second: &mut dyn FnMut(EngineSecond),
) -> Result<Report> {
    plimsoll_engine::run(workload, options, stop, on_second)
        .map_err(|error| Error::Usage(error.to_string()))
}

/// The simulator's statistics over the measured window: reset at its start, read at its end.
struct WindowStats {
    start_s: f64,
    end_s: f64,
    begun: bool,
    stats: Option<Stats>,
}

impl WindowStats {
    fn new(conditions: &Conditions) -> Self {
        let profile = &conditions.profile;
        let start_s = profile.ramp_s + profile.warm_up_s;
        Self {
            start_s,
            end_s: start_s + profile.measured_s,
            begun: false,
            stats: None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    fn second_over(&mut self, second: &EngineSecond, stage: &Stage) {
        let Some(simulator) = &stage.simulator else {
            return;
        };
        let now_s = (second.index + 1) as f64;
        // A simulator that does not answer has ended; the trial will show that as errors of the target, and `finish` finds no statistics.
        if !self.begun && now_s >= self.start_s {
            self.begun = simulator.reset_stats().is_ok();
        } else if self.begun && self.stats.is_none() && now_s >= self.end_s {
            self.stats = simulator.stats().ok();
        }
    }

    fn finish(self, stage: &Stage) -> Option<Stats> {
        let simulator = stage.simulator.as_ref()?;
        self.stats.or_else(|| simulator.stats().ok())
    }
}
