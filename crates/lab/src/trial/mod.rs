//! A trial: one run at one load, from a fresh target to a judged record.
//!
//! - [`subject`]: what is measured: a target that we start, or a URL;
//! - [`conditions`]: what all trials of a search have in common;
//! - `soundness`: whether the measurement can be believed: where the target runs (`cores`), whether a clock jumped
//!   (`clocks`), what the target itself counts (`metrics`), and the other accounts that are kept twice;
//! - `account`: what a target without HTTP says of itself;
//! - `stage`: companion and target, started for one trial and ended after it;
//! - `place`: where that target is reached;
//! - `started`: its process, and how it is started once more;
//! - `crash`: kills it in the middle of the window, if the plan asks for that;
//! - `storage`: what it writes in the window, and what the disk below can do;
//! - `work`: what the sessions do, by which plan of which workload;
//! - `drive`: the engine with that work, in this process or in several;
//! - [`parts`]: a client of several processes, if one process has too few files for the connections, or of agents on other
//!   machines;
//! - `memory`: the target's memory at moments of the trial;
//! - `room`: whether the machine has files and ports for a load;
//! - `judge`: turns what was measured into a [`Trial`] with its verdict;
//! - [`timeline`]: one row per second.

mod account;
mod by_label;
mod clocks;
pub mod conditions;
mod crash;
mod drive;
mod judge;
mod memory;
mod metrics;
pub mod parts;
mod place;
mod room;
mod soundness;
mod stage;
mod started;
mod storage;
pub mod subject;
pub mod timeline;
mod work;

use std::ops::{ControlFlow, Deref};
use std::time::Instant;

use plimsoll_core::bottleneck::TARGET_NOT_BACK;
use plimsoll_core::caveat::{Caveat, Doubt};
use plimsoll_core::latency::LatencySet;
use plimsoll_core::outright::Outright;
use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::record::{Agent, Probe, Probes, Second, Storage, TargetMemory, Trial};
use plimsoll_engine::{EngineSecond, Options, Part, Report};
use plimsoll_host::isolation::{Awake, siblings_of};
use plimsoll_host::machine::probe;
use plimsoll_host::resources::{MachineSeries, Recorded};
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;
use plimsoll_workload::{CompanionSeen, Crashed, Findings, Plan};

use crate::error::Result;
use crate::fleet::observer::{Observed, Observer};

pub use conditions::{BackEnd, Conditions, NetworkPlan};
use drive::{Client, Drove, afterwards};
pub(crate) use judge::process_resources;
use memory::MemoryReadings;
use room::Room;
pub use room::{most_possible, must_be_possible, must_have_room};
use soundness::{Soundness, Watch};
use stage::Staged;
pub(crate) use stage::{TARGET, memory_of};
use storage::StorageReadings;
pub use subject::{Subject, TargetUrl, resolved};
pub use work::Registry;

/// The result of a trial.
#[derive(Debug)]
pub struct FinishedTrial {
    /// The judged record.
    pub trial: Trial,
    /// One row per second.
    pub seconds: Vec<Second>,
}

/// A second of a trial, as it ends. It dereferences to its row.
#[derive(Debug, Clone, Copy)]
pub struct TrialSecond<'a> {
    /// The row. Its figures for target and companion cover this second only roughly; [`FinishedTrial::seconds`] has the exact
    /// ones.
    pub row: &'a Second,
    /// The latencies of measured frames whose answers came in this second: about 1 MB, gone when the next second
    /// begins.
    pub latency: &'a LatencySet,
    /// When the trial began, as its record will show it.
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
    /// What the session machines found out besides.
    findings: Findings,
    /// What the target says of itself; null if nobody asks, or if it did not answer.
    account: Findings,
    /// What those found out that ran after the trial, if any did.
    afterwards: Option<Findings>,
    /// The number of processes that drove the load.
    client_processes: u32,
    /// The agents that drove it, if there are any, each with its share.
    agents: Vec<Agent>,
    /// CPUs of the client that were kept from halting.
    client_cpus_awake: usize,
    /// What the machine had too little of for the requested load.
    short_of: Option<String>,
    seconds: Vec<Second>,
    recorded: Recorded,
    /// The observer that sampled the target, if one did. Its samples of the target are among those recorded.
    observed: Option<Observed>,
    /// The epoch of the samples.
    sampling_epoch: Instant,
    /// When the engine's last second ended. If a signal ended the trial, this is before the window's end.
    over: Instant,
    companion: Option<CompanionSeen>,
    /// What the companion counted since it started; null if there is none, or if it did not answer.
    companion_account: Findings,
    /// The target's memory at moments of the trial.
    memory: TargetMemory,
    /// What the target wrote in the window; `None` if it has no folder for its data.
    storage: Option<Storage>,
    /// What became of the target, if the trial crashed it.
    crashed: Option<Crashed>,
    soundness: Soundness,
    /// Why the trial fails, whatever its gates say.
    outright: Vec<Outright>,
}

impl Measured {
    /// Whether the trial came to its end with all of its parts, and nothing was broken by then.
    fn is_complete(&self) -> bool {
        let unwatched = self
            .observed
            .as_ref()
            .is_some_and(|seen| seen.by.lost.is_some());
        let lost = Agent::one_is_lost(&self.agents) || unwatched;
        !self.report.interrupted && !lost && self.outright.is_empty()
    }

    /// The machine that the target runs on.
    fn target_machine(&self) -> &MachineSeries {
        let observed = self.observed.as_ref();
        observed.map_or(&self.recorded.machine, |seen| &seen.recorded.machine)
    }
}

/// Runs one trial, of the whole profile or of a shorter one. `on_second` gets each second as it ends.
///
/// # Errors
/// Whatever makes a measurement impossible: too few descriptors or ports, a target that does not build, start or become
/// ready, a companion that does not answer. What happens to sessions is not an error but the result.
pub fn run(
    conditions: &Conditions,
    subject: &Subject,
    load: u32,
    length: Length,
    stop: &Stop,
    on_second: &mut dyn FnMut(&TrialSecond<'_>),
) -> Result<FinishedTrial> {
    let started_at = timestamp::now();
    let mut conditions = conditions.with_logs_of_trial(load);
    if let Subject::Started(manifest) = subject {
        // Targets that are compared or ranked have one plan, and what their manifests settle may differ.
        let plan = &conditions.plan;
        conditions.plan = plan.workload().plan_for(plan.values().clone(), manifest)?;
    }
    if let Some(baseline) = &conditions.baseline {
        // The plan may be one that has just been made, or that of a row of a series.
        conditions.plan = conditions.plan.with_baseline(&baseline.trial)?;
    }
    conditions.profile = conditions.profile.of_length(length);
    let conditions = &conditions;
    let tls = room::possible(conditions, subject, load)?;
    let room = Room::of(conditions, load)?;
    let before = probe(&conditions.placement)?;
    let mut stage = Staged::set(conditions, subject, stop)?;
    let watch = Watch::begin(conditions, subject, &stage);
    let mut second_over = |row: &Second, latency: &LatencySet| {
        on_second(&TrialSecond {
            row,
            latency,
            started_at: &started_at,
        });
    };
    let options = options(conditions, &stage, &room);
    let asked = Asked {
        conditions,
        load,
        options: &options,
        processes: room.processes,
        stop,
    };
    let mut measured = measure(&asked, &mut stage, watch, &mut second_over)?;
    measured.short_of = room.short_of;
    let not_back = measured.crashed.as_ref();
    if let Some(why) = not_back.and_then(|crashed| crashed.not_back.as_ref()) {
        let why = format!("{TARGET_NOT_BACK}: {why}");
        measured.report.ledger.because(&why);
        measured.outright.insert(0, Outright::TargetNotBack);
    } else if let Some(ending) = stage.target_ended()? {
        measured.report.ledger.because(&ending);
        measured.outright.insert(0, Outright::TargetDied);
    } else if measured.is_complete() {
        measured.afterwards = afterwards(&asked, &stage.url)?;
    }
    let mut outcome = judge::judge(conditions, &stage, load, length, started_at, measured);
    stage.clear()?;
    let after = if outcome.trial.interrupted {
        None
    } else {
        Some(probe(&conditions.placement)?)
    };
    outcome.trial.environment.tls = tls;
    let probes = Probes { before, after };
    note_a_moving_machine(&mut outcome.trial, &probes, conditions);
    outcome.trial.environment.probes = Some(probes);
    Ok(outcome)
}

/// Adds a caveat if the machine changed since the measurement began. The trial's second probe is compared first, then
/// its first one. For a single trial, the second is compared with the first.
fn note_a_moving_machine(trial: &mut Trial, probes: &Probes, conditions: &Conditions) {
    let beginning = conditions.probe.unwrap_or(probes.before);
    let later = probes.after.unwrap_or(probes.before);
    let moved = beginning.moved_to(&later, Probe::MOVED);
    let Some(moved) = moved.or_else(|| beginning.moved_to(&probes.before, Probe::MOVED)) else {
        return;
    };
    // It blocks nothing, so no verdict has to be judged again.
    let caveat = Caveat::from(&Doubt::MachineMoved(moved));
    for further in &mut trial.further_slos {
        further.caveats.push(caveat.clone());
    }
    trial.caveats.push(caveat);
}

/// What the engine is asked to do.
#[derive(Clone, Copy)]
struct Asked<'a> {
    conditions: &'a Conditions,
    load: u32,
    options: &'a Options,
    /// The number of client processes that this takes.
    processes: u32,
    stop: &'a Stop,
}

fn options(conditions: &Conditions, stage: &Staged, room: &Room) -> Options {
    Options {
        address: stage.url.address,
        sessions: room.sessions,
        part: Part::WHOLE,
        profile: conditions.profile.clone(),
        seed: conditions.seed,
        nodelay: conditions.nodelay,
        cpus: conditions.engine_cpus(),
        tick_us: conditions.tick_us,
        source_addresses: stage.source_addresses(conditions),
        send_buffer_bytes: send_buffer_bytes(&*conditions.plan),
    }
}

/// Bytes that a frame's header may add to a payload.
const HEADER_MAX_BYTES: usize = 14;

/// The send buffer of a connection: the usual one, unless it holds less than two frames. Otherwise a longer frame would
/// wait for the server's reads, whatever the server does.
fn send_buffer_bytes(plan: &dyn Plan) -> usize {
    let frame_bytes = plan.frame_bytes().unwrap_or(0) + HEADER_MAX_BYTES;
    Options::SEND_BUFFER_BYTES.max(2 * frame_bytes)
}

/// Keeps the client's CPUs awake. Agents have others than ours.
fn keep_awake(conditions: &Conditions) -> Option<Awake> {
    if conditions.agents().is_some() {
        return None;
    }
    let cpus = conditions.placement.apart_from_target(siblings_of)?;
    Some(Awake::keep(&cpus))
}

fn measure(
    asked: &Asked<'_>,
    stage: &mut Staged,
    mut watch: Watch<'_>,
    on_second: &mut dyn FnMut(&Second, &LatencySet),
) -> Result<Measured> {
    let conditions = asked.conditions;
    let client = Client::start(asked, &stage.url)?;
    let to = client.endpoint().clone();
    let awake = keep_awake(conditions);
    let sampling_epoch = Instant::now();
    let monitor = stage.monitor(conditions, &client.others(), sampling_epoch)?;
    if let Some(observer) = stage.observer() {
        observer.watch(sampling_epoch);
    }
    let mut rows = timeline::Rows::new(&conditions.profile);
    let mut window_stats = WindowStats::new(conditions);
    let mut memory = MemoryReadings::new(conditions, stage);
    let mut storage = StorageReadings::new(conditions, stage);
    let mut over = sampling_epoch;
    let mut warm_up = WarmUp::new(&*conditions.plan, &conditions.profile);
    let (
        Drove {
            report,
            findings,
            agents,
        },
        fallen,
    ) = crash::around(asked, stage, |stage, beginning| {
        let mut each_second = |second: EngineSecond| {
            over = Instant::now();
            beginning.second_over(&second);
            watch.second_over();
            window_stats.second_over(&second, stage);
            memory.second_over(&second, stage);
            storage.second_over(&second);
            let observer = stage.observer();
            let lost = observer.is_some_and(Observer::is_lost);
            let latest = |name: &str| match observer.filter(|_| name == TARGET) {
                Some(observer) => observer.latest(),
                None => monitor.latest(name),
            };
            let row = timeline::so_far(rows.add(&second), latest);
            on_second(&row, &second.latency);
            if lost {
                // Its figures are what the trial was for.
                return ControlFlow::Break(());
            }
            warm_up.second_over(&second)
        };
        client.drive(asked, &mut each_second)
    })?;
    let closed = Instant::now();
    let companion = window_stats.finish(stage);
    let companion_account = stage.companion.as_ref();
    let companion_account = companion_account.and_then(|companion| companion.account().ok());
    let mut recorded = monitor.stop()?;
    // They may halt from here on: what follows is not measured.
    let client_cpus_awake = awake.map_or(0, |awake| awake.cpus());
    let mut observed = stage.observer().map(Observer::end);
    if let Some(observed) = &mut observed {
        observed.hand_over(&mut recorded);
    }
    let soundness = watch.end(conditions, stage, &report, &findings);
    let storage = storage.finish(stage.disk_probe().cloned());
    let crashed = fallen.map(|fallen| fallen.since(report.clock.epoch()));
    let memory = memory.finish(asked, stage, closed);
    // Last, because the target works for it.
    let account = account::account(conditions, stage, &to, asked.stop);
    let mut seconds = rows.finish();
    timeline::add_target(
        &mut seconds,
        &recorded,
        sampling_epoch,
        report.clock.epoch(),
    );
    Ok(Measured {
        report,
        findings,
        account,
        afterwards: None,
        client_processes: asked.processes,
        agents,
        client_cpus_awake,
        short_of: None,
        seconds,
        recorded,
        observed,
        sampling_epoch,
        over,
        companion,
        companion_account: companion_account.unwrap_or_default(),
        memory,
        storage,
        crashed,
        soundness,
        outright: warm_up
            .unanswered
            .then_some(Outright::WarmUpUnanswered)
            .into_iter()
            .collect(),
    })
}

/// Ends a trial with its warm-up if nothing was answered until then, where the plan says that something must have been.
struct WarmUp {
    /// The first second that ends after the warm-up; `None` if it need not be looked at.
    looked_at: Option<u64>,
    unanswered: bool,
}

impl WarmUp {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of a trial"
    )]
    fn new(plan: &dyn Plan, profile: &Profile) -> Self {
        let least_s = plan.warm_up_must_answer_s();
        let end_s = (profile.ramp_s + profile.warm_up_s).ceil() as u64;
        Self {
            looked_at: least_s
                .filter(|least_s| profile.warm_up_s >= *least_s)
                .map(|_| end_s.saturating_sub(1)),
            unanswered: false,
        }
    }

    fn second_over(&mut self, second: &EngineSecond) -> ControlFlow<()> {
        let ledger = &second.ledger;
        if self.looked_at == Some(second.index) && ledger.frames_answered_in_all == 0 {
            self.unanswered = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// The companion's statistics over the measured window: reset at its start, read at its end.
struct WindowStats {
    start_s: f64,
    end_s: f64,
    begun: bool,
    stats: Option<CompanionSeen>,
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
    fn second_over(&mut self, second: &EngineSecond, stage: &Staged) {
        let Some(companion) = &stage.companion else {
            return;
        };
        let now_s = (second.index + 1) as f64;
        // A companion that does not answer has ended. The trial will show that as errors of the target, and `finish`
        // finds no statistics.
        if !self.begun && now_s >= self.start_s {
            self.begun = companion.begin_window().is_ok();
        } else if self.begun && self.stats.is_none() && now_s >= self.end_s {
            self.stats = companion.seen().ok();
        }
    }

    fn finish(self, stage: &Staged) -> Option<CompanionSeen> {
        let companion = stage.companion.as_ref()?;
        self.stats.or_else(|| companion.seen().ok())
    }
}
