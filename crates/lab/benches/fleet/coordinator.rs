//! The coordinator: a trial with agents, and what this process uses for it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use nix::sys::time::TimeValLike as _;
use nix::time::ClockId;
use plimsoll_core::profile::Length;
use plimsoll_core::record::Build;
use plimsoll_fleet::Token;
use plimsoll_fleet::connection::monotonic_ns;
use plimsoll_host::signals::Stop;
use plimsoll_lab::fleet::{Fleet, FleetSettings};
use plimsoll_lab::trial::{self, Subject, TargetUrl};
use plimsoll_workload::{Values, Workload};
use plimsoll_workload_echo::Echo;
use serde::{Deserialize, Serialize};

use crate::support::conditions;
use crate::{AnyError, SESSIONS};

/// How long to wait for all agents.
const JOIN_WITHIN: Duration = Duration::from_secs(120);

/// What a coordinator used, in the seconds between the first and the last that were merged.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// How long these seconds took.
    pub(crate) seconds: f64,
    /// From its first moment until all agents had joined.
    pub(crate) joined_s: f64,
    /// CPU time.
    pub(crate) cpu_ns: u64,
    /// The part of it that the thread used that merges.
    pub(crate) merging_ns: u64,
    /// Bytes on the loopback.
    pub(crate) loopback_bytes: u64,
    /// The most memory that it had until its end.
    pub(crate) peak_kib: u64,
    pub(crate) threads: u64,
    /// When each second had been merged, by the monotonic clock.
    pub(crate) merged_ns: Vec<u64>,
    /// What the trial's record says, which shows that everything came.
    pub(crate) frames_due: u64,
    pub(crate) lost: usize,
}

/// What this process has used so far.
#[derive(Debug, Clone, Copy)]
struct Used {
    at_ns: u64,
    cpu_ns: u64,
    merging_ns: u64,
    loopback_bytes: u64,
    threads: u64,
}

impl Used {
    /// On the thread that merges.
    fn now() -> Result<Self, AnyError> {
        let clock = |id: ClockId| -> Result<u64, AnyError> {
            Ok(u64::try_from(id.now()?.num_nanoseconds())?)
        };
        Ok(Self {
            at_ns: monotonic_ns(),
            cpu_ns: clock(ClockId::CLOCK_PROCESS_CPUTIME_ID)?,
            merging_ns: clock(ClockId::CLOCK_THREAD_CPUTIME_ID)?,
            loopback_bytes: number_in("/proc/self/net/dev", "lo:")?,
            threads: number_in("/proc/self/status", "Threads:")?,
        })
    }
}

/// The number after a word, in a file of the kernel.
fn number_in(file: &str, word: &str) -> Result<u64, AnyError> {
    let text = std::fs::read_to_string(file)?;
    let mut words = text.split_whitespace();
    words.find(|other| *other == word).ok_or(file)?;
    Ok(words.next().ok_or(file)?.parse()?)
}

/// Says where it listens, runs a trial with so many agents, and says what that used.
pub(crate) fn run(server: &str, agents: u32, token: &Token) -> Result<(), AnyError> {
    let began = Instant::now();
    let stop = Stop::new();
    let fleet = Fleet::listen(FleetSettings {
        agents,
        observer: false,
        listen: "127.0.0.1:0".parse()?,
        token: token.clone(),
        targets: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        build: Build::default(),
    })?;
    println!("{}", fleet.address());
    fleet.gather(JOIN_WITHIN, &stop)?;
    let joined_s = began.elapsed().as_secs_f64();
    let logs = tempfile::tempdir()?;
    let plan = (&Echo as &dyn Workload).planned(Values::default())?;
    let mut conditions = conditions(plan, logs.path());
    conditions.fleet = Some(fleet);
    let profile = &mut conditions.profile;
    (profile.ramp_s, profile.warm_up_s) = (1.0, 1.0);
    (profile.measured_s, profile.grace_s) = (8.0, 2.0);
    let path = conditions.plan.told().path;
    let subject = Subject::Running {
        url: TargetUrl::parse(&format!("ws://{server}"), &path)?,
        resources: None,
    };
    let mut seconds = Vec::new();
    let trial = trial::run(
        &conditions,
        &subject,
        agents * SESSIONS,
        Length::Full,
        &stop,
        &mut |_| seconds.push(Used::now()),
    )?;
    let seconds = seconds.into_iter().collect::<Result<Vec<Used>, _>>()?;
    let ends = seconds.first().zip(seconds.last());
    let (first, last) = ends.ok_or("the trial had no seconds")?;
    let trial = trial.trial;
    let measured = Measured {
        seconds: Duration::from_nanos(last.at_ns - first.at_ns).as_secs_f64(),
        joined_s,
        cpu_ns: last.cpu_ns - first.cpu_ns,
        merging_ns: last.merging_ns - first.merging_ns,
        loopback_bytes: last.loopback_bytes - first.loopback_bytes,
        peak_kib: number_in("/proc/self/status", "VmHWM:")?,
        threads: last.threads,
        merged_ns: seconds.iter().map(|second| second.at_ns).collect(),
        frames_due: trial.ledger.frames_due,
        lost: trial
            .client
            .agents
            .iter()
            .filter(|agent| agent.lost.is_some())
            .count(),
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}
