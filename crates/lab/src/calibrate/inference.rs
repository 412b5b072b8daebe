//! Finds how many gateway sessions an inference server holds when it is loaded alone.
//!
//! Batches come by the clock, whether the server answers or not. The load doubles from a small one until the server does
//! not hold it, and is then narrowed in steps of a tenth. What a load shows counts only if the client was on time itself.

use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_core::latency::{LagQuantiles, Series};
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{EndedBy, Holding, InferenceLoad, ServerUse};
use plimsoll_engine::clock::Clock;
use plimsoll_engine::{Company, Options, Report};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::resources::{Sample, Sampler, Source};
use plimsoll_host::signals::Stop;
use plimsoll_workload::calibrate::{BackEndLoad, Counts};

use super::reach::{Search, Step};
use super::{Tried, go_on};
use crate::error::{Error, Result};

/// The most loads of the search that doubles: from 1 to the greatest number of sessions.
const DOUBLINGS: u32 = 16;
/// The most loads of the search that follows it, between a load that was held and its double.
const NARROWINGS: u32 = 8;
/// Where that search begins, as a multiple of the load that was held.
const MIDDLE: f64 = 1.4;
/// How long a connection to the server may take before anything is measured.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Room for two batches in a socket, so that a batch does not wait for the server to read the one before.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// How often it is looked whether it is time for a sample.
const LOOK: Duration = Duration::from_millis(5);

/// The settings of such a calibration.
#[derive(Debug, Clone)]
pub struct InferenceSettings {
    /// The base URL of the server, without a slash at its end.
    pub url: String,
    /// `name:port`, for the Host field.
    pub host: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// How to speak to it; the back end knows the names.
    pub transport: String,
    /// Cores of the client.
    pub client_cpus: CpuList,
    /// Length of the measured window of each load, in seconds.
    pub seconds: f64,
    /// The first load to try, in sessions; not zero.
    pub first: u32,
    /// The highest load to try.
    pub max: u32,
    /// Seed of the schedule.
    pub seed: u64,
    /// Where the server's CPU time is read, if the user named it.
    pub server: Option<Source>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct InferenceFound {
    /// The most sessions that were tried and held; `None` if none were.
    pub sessions: Option<u32>,
    /// What ended the search.
    pub ended: EndedBy,
    /// All loads, in the order tried.
    pub loads: Vec<InferenceLoad>,
}

/// Finds how many sessions the server holds, and calls `on_load` after each load.
///
/// # Errors
/// Nobody listens, the server answers nothing at the first load, sockets or threads cannot be created, or the run is
/// interrupted.
pub fn inference(
    batches: &dyn BackEndLoad,
    settings: &InferenceSettings,
    stop: &Stop,
    mut on_load: impl FnMut(&InferenceLoad),
) -> Result<InferenceFound> {
    TcpStream::connect_timeout(&settings.address, CONNECT_TIMEOUT).map_err(|error| {
        Error::Usage(format!(
            "--inference {}: {error}; start the inference server first, or correct the URL",
            settings.url
        ))
    })?;
    let says = batches.says(&settings.url).is_some();
    let mut first = true;
    search(settings.first, settings.max, |sessions| {
        let load = measure(batches, settings, sessions, says, stop)?;
        if std::mem::take(&mut first) {
            must_answer_something(&load, settings)?;
        }
        on_load(&load);
        Ok(load)
    })
}

/// The search: doubled until a load is not held, then narrowed down.
fn search(
    first: u32,
    max: u32,
    measured: impl FnMut(u32) -> Result<InferenceLoad>,
) -> Result<InferenceFound> {
    let mut tries = Tries {
        measured,
        loads: Vec::new(),
    };
    let coarse = Search {
        guess: f64::from(first),
        grain: 1,
        max,
        loads: DOUBLINGS,
        step: Step::DOUBLE,
    };
    coarse.greatest(|sessions| tries.attempt(sessions))?;
    if let (Some(held), Some(failed)) = (tries.held(), tries.failed()) {
        let failed = failed.sessions;
        let narrow = Search {
            guess: f64::from(held) * MIDDLE,
            loads: NARROWINGS,
            step: Step::TENTH,
            ..coarse
        };
        narrow.greatest(|sessions| match sessions {
            known if known <= held => Ok(Some(())),
            known if known >= failed => Ok(None),
            _ => tries.attempt(sessions),
        })?;
    }
    Ok(InferenceFound {
        sessions: tries.held(),
        ended: match tries.failed().map(|load| load.judged) {
            None => EndedBy::Nothing,
            Some(Holding::ClientLate) => EndedBy::Client,
            Some(_) => EndedBy::Server,
        },
        loads: tries.loads,
    })
}

/// The loads of a search so far.
struct Tries<F> {
    measured: F,
    loads: Vec<InferenceLoad>,
}

impl<F: FnMut(u32) -> Result<InferenceLoad>> Tries<F> {
    fn attempt(&mut self, sessions: u32) -> Result<Option<()>> {
        let load = (self.measured)(sessions)?;
        let is_held = load.judged == Holding::Held;
        self.loads.push(load);
        Ok(is_held.then_some(()))
    }
}

impl<F> Tries<F> {
    /// The highest load that was held.
    fn held(&self) -> Option<u32> {
        let held = self.loads.iter().filter(|it| it.judged == Holding::Held);
        held.map(|load| load.sessions).max()
    }

    /// An attempt at the lowest load above it: one that says something about the server, if there is one.
    fn failed(&self) -> Option<&InferenceLoad> {
        let held = self.held();
        let above = self.loads.iter();
        let above = above.filter(|load| held.is_none_or(|held| load.sessions > held));
        above.min_by_key(|load| (load.sessions, load.judged == Holding::ClientLate))
    }
}

/// A server that answers nothing at all, and is not just slow, is none that can be measured.
fn must_answer_something(load: &InferenceLoad, settings: &InferenceSettings) -> Result<()> {
    let slow = ["timeout", "unanswered", "never_written"];
    let kinds = load.errors.iter();
    let kinds = kinds.filter(|(kind, _)| !slow.contains(&kind.as_str()));
    let most = kinds.max_by_key(|(_, count)| **count);
    match most {
        Some((kind, _)) if load.answered_per_s == 0.0 => Err(Error::Usage(format!(
            "--inference {}: none of {} batches was answered as the contract says (POST /infer over {}; most often: {kind}); correct the URL, or give the transport that the server speaks (--inference-transport)",
            settings.url, load.batches, settings.transport
        ))),
        _ => Ok(()),
    }
}

/// Drives one load.
fn measure(
    batches: &dyn BackEndLoad,
    settings: &InferenceSettings,
    sessions: u32,
    says: bool,
    stop: &Stop,
) -> Result<InferenceLoad> {
    go_on(stop)?;
    let profile = profile(settings.seconds);
    let (transport, host) = (&settings.transport, &settings.host);
    let pool = batches.sessions(sessions, transport, host)?;
    // A thread without a connection would have batches, and nowhere to send them.
    let cpus = settings.client_cpus.as_slice().iter();
    let cpus = cpus
        .take(pool.count as usize)
        .map(|cpu| *cpu as usize)
        .collect();
    let options = Options {
        cpus,
        seed: settings.seed,
        send_buffer_bytes: SEND_BUFFER_BYTES,
        ..Options::new(settings.address, pool.count, profile)
    };
    if says {
        batches.begin_window(&settings.url);
    }
    let watch = Watch::default();
    let (driven, samples) = std::thread::scope(|scope| {
        let server = settings.server.clone();
        let profile = &options.profile;
        let sampling = server.map(|it| scope.spawn(|| watch.samples(it, profile)));
        let flag: &AtomicBool = &stop.flag();
        let go = &mut |_| ControlFlow::Continue(());
        let driven = pool.machines.run_part(&watch, &options, flag, go);
        watch.over.store(true, Ordering::Relaxed);
        let samples = sampling.and_then(|thread| thread.join().ok().flatten());
        (driven, samples)
    });
    let report = pool.machines.settle(driven?, true)?;
    go_on(stop)?;
    let mut load = told(&report, sessions, settings.seconds, samples);
    load.judged = judged(&report, &load, batches.p99_limit_ms());
    load.server_says = says.then(|| batches.says(&settings.url)).flatten();
    Ok(load)
}

/// A batch is given up after 2 s, so the grace is a little longer.
fn profile(measured_s: f64) -> Profile {
    Profile {
        ramp_s: 0.5,
        grace_s: 2.5,
        ..super::profile(0, measured_s)
    }
}

fn told(
    report: &Report,
    sessions: u32,
    seconds: f64,
    server: Option<(Sample, Sample)>,
) -> InferenceLoad {
    let ledger = &report.ledger;
    let newest = report.latency.summary().newest;
    let answered_per_s = per_second(ledger.frames_answered, seconds);
    InferenceLoad {
        sessions,
        judged: Holding::default(),
        connections: u32::try_from(report.sessions).unwrap_or(u32::MAX),
        batches: ledger.frames_due,
        sent_per_s: per_second(ledger.frames_sent, seconds),
        answered_per_s,
        from_schedule: newest.from_schedule,
        from_write: newest.from_write,
        errors: ledger.reasons.clone(),
        send_lag: LagQuantiles::of(report.latency.histogram(Series::SendLag)),
        client_busy_share: report.busy.busiest(),
        server: server.and_then(|(from, to)| server_use(&from, &to, answered_per_s)),
        server_says: None,
    }
}

/// What the server used between two samples, in which so many batches were answered each second.
fn server_use(from: &Sample, to: &Sample, answered_per_s: f64) -> Option<ServerUse> {
    let wall_s = per_second(to.at_ns.saturating_sub(from.at_ns), 1e9);
    let cpu_s = per_second(to.cpu_us.saturating_sub(from.cpu_us), 1e6);
    let cpu_share = cpu_s / wall_s;
    (wall_s > 0.0 && answered_per_s > 0.0).then(|| ServerUse {
        cpu_us_per_batch: cpu_share * 1e6 / answered_per_s,
        cpu_share,
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts of seconds, below 2^53")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// A client that was late, or that its machine refused a socket, proves nothing. Where it could write nothing at all, the
/// server is the reason.
fn judged(report: &Report, load: &InferenceLoad, p99_limit_ms: f64) -> Holding {
    let ledger = &report.ledger;
    let refused = report.sessions_never_opened > 0 || !report.client_faults.is_empty();
    let wrote = ledger.frames_sent > 0;
    if refused || (wrote && !Tried::of(report, Counts::Written, true).honest) {
        return Holding::ClientLate;
    }
    let all_answered = ledger.frames_due > 0 && ledger.frames_answered == ledger.frames_due;
    if !all_answered || ledger.content_wrong > 0 || ledger.protocol_faults > 0 {
        return Holding::Unanswered;
    }
    match load.from_schedule.p99_ms {
        Some(p99_ms) if p99_ms <= p99_limit_ms => Holding::Held,
        _ => Holding::Late,
    }
}

/// Shares the clock of the client's run, and takes samples of the server at both ends of the measured window.
#[derive(Debug, Default)]
struct Watch {
    clock: OnceLock<Clock>,
    /// Whether the run is over.
    over: AtomicBool,
}

impl Watch {
    /// `None` if the run ends before the window does, or if the server is gone.
    fn samples(&self, server: Source, profile: &Profile) -> Option<(Sample, Sample)> {
        let window = profile.window();
        let until = |at_ns: u64| {
            while self.clock.get().is_none_or(|clock| clock.now_ns() < at_ns) {
                if self.over.load(Ordering::Relaxed) {
                    return None;
                }
                std::thread::sleep(LOOK);
            }
            self.clock.get()
        };
        let clock = until(0)?;
        let mut sampler = Sampler::new(server, clock.epoch());
        until(window.start_ns)?;
        let from = sampler.sample_light()?;
        // A run whose batches are all answered ends with its window.
        while clock.now_ns() < window.end_ns {
            std::thread::sleep(LOOK);
        }
        Some((from, sampler.sample_light()?))
    }
}

impl Company for Watch {
    fn begin(&self) -> std::io::Result<Clock> {
        Ok(*self.clock.get_or_init(Clock::start))
    }

    fn settled(&self) {}

    fn may_end(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "inference_tests.rs"]
mod tests;
