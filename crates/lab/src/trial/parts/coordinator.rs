//! The command's side of a client in several parts.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use plimsoll_core::record::Agent as AgentRecord;
use plimsoll_engine::clock::Clock;
use plimsoll_engine::{EngineSecond, Seconds, Unsettled};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::{Child, Launch};
use plimsoll_host::signals::Stop;
use serde_json::Value;

use super::process::{self, launches};
use super::{Order, Reported, Said, Told, write_line};
use crate::error::{Error, FAULT, Result};
use crate::fleet::Fleet;
use crate::fleet::member::Joined;

/// How often to check whether we were asked to stop.
const POLL: Duration = Duration::from_millis(50);
/// Building a part of the sessions takes milliseconds. This timeout only ends what hangs.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The time from announcing the beginning until it comes, so that every process hears of it.
const BEGINS_IN: Duration = Duration::from_millis(50);
/// The same for agents, to which the word may take longer.
const BEGINS_ELSEWHERE_IN: Duration = Duration::from_secs(2);
/// How long a part may take to end after it was told to stop, or after its last message.
const STOP_GRACE: Duration = Duration::from_secs(7);

/// What the parts of a client measured.
pub(in crate::trial) struct Driven {
    /// All parts together.
    pub(in crate::trial) all: Unsettled<Value>,
    /// Those that are agents, each with its share.
    pub(in crate::trial) agents: Vec<AgentRecord>,
}

/// Parts that are ready to begin. Dropping this kills processes, and stops agents.
#[derive(Debug)]
pub(in crate::trial) struct Parts {
    members: Vec<Member>,
    heard: Receiver<(usize, Heard)>,
    begins_in: Duration,
}

#[derive(Debug)]
struct Member {
    link: Link,
    settled: bool,
    /// Nothing more is expected of it: it has reported, or it is an agent that is lost.
    over: bool,
}

/// How a part is reached.
#[derive(Debug)]
enum Link {
    Process {
        child: Child,
        /// Closed when the process is to stop.
        stdin: Option<ChildStdin>,
    },
    Agent(Box<Joined>),
}

/// What comes from a part.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A message, as JSON. Whoever takes it reads it, one at a time: histograms take a hundred times the memory of their
    /// JSON, and all agents say a second at the same moment.
    Said(Vec<u8>),
    /// Nothing more comes; with the reason, unless the part ended.
    Silence(Option<String>),
}

impl Heard {
    /// What was said; otherwise why nothing more comes, unless the part ended.
    pub(crate) fn read(self) -> std::result::Result<Said, Option<String>> {
        match self {
            Self::Said(json) => serde_json::from_slice(&json)
                .map_err(|error| Some(format!("what it says cannot be read: {error}"))),
            Self::Silence(why) => Err(why),
        }
    }
}

impl Parts {
    /// Starts a process for each order and waits until all are ready. Their logs are named after `log_name`.
    ///
    /// # Errors
    /// One of the processes does not start, or ends; or we were asked to stop.
    pub(in crate::trial) fn processes(
        orders: Vec<Order>,
        log_folder: &Path,
        log_name: &str,
        cpus: &CpuList,
        stop: &Stop,
    ) -> Result<Self> {
        let launches = launches(&orders, log_folder, log_name, cpus)?;
        Self::launch(&launches, orders, stop)
    }

    fn launch(launches: &[Launch], orders: Vec<Order>, stop: &Stop) -> Result<Self> {
        let (sender, heard) = channel();
        let mut all = Self {
            members: Vec::new(),
            heard,
            begins_in: BEGINS_IN,
        };
        for (number, launch) in launches.iter().enumerate() {
            let (child, stdin) = process::start(launch, number, sender.clone())?;
            let stdin = Some(stdin);
            all.members
                .push(Member::new(Link::Process { child, stdin }));
        }
        all.order(orders, stop)?;
        Ok(all)
    }

    /// Sends each agent its order and waits until all are ready.
    ///
    /// # Errors
    /// An agent is not there or refuses; or we were asked to stop.
    pub(in crate::trial) fn agents(fleet: &Fleet, orders: Vec<Order>, stop: &Stop) -> Result<Self> {
        let (sender, heard) = channel();
        let joined = fleet.joined(&sender, stop)?;
        let members = joined.into_iter().map(|agent| {
            let link = Link::Agent(Box::new(agent));
            Member::new(link)
        });
        let mut all = Self {
            members: members.collect(),
            heard,
            begins_in: BEGINS_ELSEWHERE_IN,
        };
        all.order(orders, stop)?;
        Ok(all)
    }

    fn order(&mut self, orders: Vec<Order>, stop: &Stop) -> Result<()> {
        for (number, order) in orders.into_iter().enumerate() {
            self.tell(number, &Told::Order(Box::new(order)))?;
        }
        self.wait_ready(stop)
    }

    /// The IDs of the processes.
    pub(in crate::trial) fn pids(&self) -> Vec<i32> {
        let pid = |member: &Member| match &member.link {
            Link::Process { child, .. } => Some(child.pid()),
            Link::Agent(_) => None,
        };
        self.members.iter().filter_map(pid).collect()
    }

    /// Begins with all of them at once, and returns when all are done. `on_second` gets each second as all of them saw
    /// it, and says whether they go on. An agent that is lost ends the trial for the others, too.
    ///
    /// # Errors
    /// A process ended before it was done: without its part, nothing can be said about the trial. The others are ended.
    pub(in crate::trial) fn run(
        mut self,
        stop: &Stop,
        on_second: &mut dyn FnMut(EngineSecond) -> ControlFlow<()>,
    ) -> Result<Driven> {
        let clock = Clock::start_in(self.begins_in);
        self.begin(clock)?;
        let mut seconds = Seconds::new(self.members.len());
        let mut all = Unsettled::empty(clock);
        let mut kill_at = None;
        let mut seen_enough = false;
        while self.members.iter().any(|member| !member.over) {
            if (stop.requested() || seen_enough) && kill_at.is_none() {
                self.stop_all();
                kill_at = Some(Instant::now() + STOP_GRACE);
            }
            if kill_at.is_some_and(|at| Instant::now() > at) {
                self.give_up()?;
                break;
            }
            let complete = match self.hear()? {
                Some((number, Said::Second(second))) => {
                    seconds.told(number, self.members[number].second(*second))
                }
                Some((_, Said::Claims(claims))) => {
                    all.claims.extend(claims);
                    Vec::new()
                }
                Some((number, Said::Report(reported))) => {
                    all.merge(self.members[number].reported(*reported));
                    seconds.over(number)
                }
                Some((number, Said::Settled)) => {
                    self.members[number].settled = true;
                    self.end_together();
                    Vec::new()
                }
                Some((number, Said::Refused(why))) => {
                    self.members[number].is_lost_for(&why);
                    Vec::new()
                }
                // The observer has its own ear, and so has a calibration.
                Some((
                    _,
                    Said::Ready
                    | Said::Stepped(_)
                    | Said::Calibrated(_)
                    | Said::Looked(_)
                    | Said::Sampled(_)
                    | Said::Watched,
                ))
                | None => Vec::new(),
            };
            for second in complete {
                seen_enough |= on_second(second).is_break();
            }
            // Without a part of the load, the others measure something else.
            seen_enough |= self.members.iter().any(Member::is_lost);
        }
        self.stop_all();
        for member in &mut self.members {
            member.end()?;
        }
        // Whoever was told that enough has been seen calls that a stop, too.
        let interrupted = all.report.interrupted && !seen_enough;
        all.report.interrupted = interrupted || stop.requested();
        let agents = self.members.iter().filter_map(Member::share);
        Ok(Driven {
            all,
            agents: agents.cloned().collect(),
        })
    }

    fn begin(&mut self, clock: Clock) -> Result<()> {
        for number in 0..self.members.len() {
            let here_ns = clock.epoch_monotonic_ns();
            let monotonic_ns = match &mut self.members[number].link {
                Link::Process { .. } => here_ns,
                Link::Agent(agent) => agent.begins_ns(here_ns),
            };
            self.tell(number, &Told::Begin { monotonic_ns })?;
        }
        Ok(())
    }

    fn wait_ready(&mut self, stop: &Stop) -> Result<()> {
        let deadline = Instant::now() + READY_TIMEOUT;
        let mut waiting = self.members.len();
        while waiting > 0 {
            if stop.requested() {
                return Err(Error::Interrupted("starting client processes".to_owned()));
            }
            if Instant::now() > deadline {
                return Err(plimsoll_host::Error::Io {
                    what: "starting client processes".to_owned(),
                    source: std::io::ErrorKind::TimedOut.into(),
                }
                .into());
            }
            match self.hear()? {
                Some((_, Said::Ready)) => waiting -= 1,
                Some((number, Said::Refused(why))) => {
                    let who = self.members[number].name();
                    return Err(Error::Usage(format!("{who} refuses: {why}")));
                }
                _ => {}
            }
            if let Some(lost) = self.members.iter().find(|member| member.is_lost()) {
                return Err(lost.gone());
            }
        }
        Ok(())
    }

    /// Tells all parts that they may end, once none waits for answers. If one waits until the grace is over, all end with
    /// the grace.
    fn end_together(&mut self) {
        if self.members.iter().all(|member| member.settled) {
            for member in &mut self.members {
                // A part that no longer hears this has come to the end of the grace, or its silence will show.
                let _ = member.tell(&Told::End);
            }
        }
    }

    fn tell(&mut self, number: usize, told: &Told) -> Result<()> {
        // The process has ended, or no longer reads.
        let said = self.members[number].tell(told);
        said.map_err(|error| self.members[number].lost(&error.to_string()))
    }

    fn stop_all(&mut self) {
        for member in &mut self.members {
            member.stop();
        }
    }

    /// The parts that do not stop: a process keeps us from saying anything, an agent is lost.
    fn give_up(&mut self) -> Result<()> {
        for member in self.members.iter_mut().filter(|member| !member.over) {
            match &member.link {
                Link::Process { .. } => {
                    let text = "waiting for a client process that does not stop";
                    return Err(Error::Interrupted(text.to_owned()));
                }
                Link::Agent(_) => member.is_lost_for("it does not stop"),
            }
        }
        Ok(())
    }

    /// What one of them says next, if it comes soon. It is an error if a process falls silent before it is done.
    fn hear(&mut self) -> Result<Option<(usize, Said)>> {
        let (number, heard) = match self.heard.recv_timeout(POLL) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            // Each part sends a last message, so all of them have.
            Err(RecvTimeoutError::Disconnected) => {
                return Err(self.members[0].lost("it sends nothing"));
            }
        };
        let member = &mut self.members[number];
        match heard.read() {
            Ok(said) => Ok(Some((number, said))),
            Err(_) if member.over => Ok(None),
            Err(why) => {
                let why = why.unwrap_or_else(|| "it closed its output".to_owned());
                match &member.link {
                    Link::Process { .. } => Err(member.lost(&why)),
                    Link::Agent(_) => {
                        member.is_lost_for(&why);
                        Ok(None)
                    }
                }
            }
        }
    }
}

impl Member {
    fn new(link: Link) -> Self {
        Self {
            link,
            settled: false,
            over: false,
        }
    }

    fn name(&self) -> String {
        match &self.link {
            Link::Process { child, .. } => child.name().to_owned(),
            Link::Agent(agent) => format!("agent {}", agent.share().name()),
        }
    }

    /// The share of an agent.
    fn share(&self) -> Option<&AgentRecord> {
        match &self.link {
            Link::Process { .. } => None,
            Link::Agent(agent) => Some(agent.share()),
        }
    }

    fn tell(&mut self, told: &Told) -> std::io::Result<()> {
        match &mut self.link {
            Link::Process {
                stdin: Some(stdin), ..
            } => write_line(stdin, told),
            Link::Process { stdin: None, .. } => Ok(()),
            Link::Agent(agent) => agent.tell(told),
        }
    }

    fn stop(&mut self) {
        match &mut self.link {
            Link::Process { stdin, .. } => *stdin = None,
            Link::Agent(agent) => {
                let _ = agent.tell(&Told::Stop);
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        match &mut self.link {
            Link::Process { child, .. } => Ok(child.terminate(STOP_GRACE).map(drop)?),
            Link::Agent(_) => Ok(()),
        }
    }

    /// A second of this part. The cores of an agent are not those of this machine.
    fn second(&self, mut second: EngineSecond) -> EngineSecond {
        if matches!(self.link, Link::Agent(_)) {
            second.busy = second.busy.elsewhere();
        }
        second
    }

    /// It has reported.
    fn reported(&mut self, reported: Reported) -> Unsettled<Value> {
        let Reported { mut part, seen } = reported;
        self.over = true;
        if let Link::Agent(agent) = &mut self.link {
            part.report.busy = part.report.busy.elsewhere();
            agent.reported(&part.report, seen);
        }
        part
    }

    fn is_lost(&self) -> bool {
        self.share().is_some_and(|share| share.lost.is_some())
    }

    /// An agent is lost, for this reason.
    fn is_lost_for(&mut self, why: &str) {
        self.over = true;
        if let Link::Agent(agent) = &mut self.link {
            agent.is_lost_for(why);
        }
    }

    /// The error for an agent that was lost before the trial began.
    fn gone(&self) -> Error {
        let why = self.share().and_then(|share| share.lost.as_deref());
        plimsoll_host::Error::Io {
            what: format!("starting a trial with {}", self.name()),
            source: std::io::Error::other(why.unwrap_or("it is gone")),
        }
        .into()
    }

    /// The error for a process that is lost: how it ended or, if it has not ended, what else is known.
    fn lost(&mut self, otherwise: &str) -> Error {
        let Link::Process { child, .. } = &mut self.link else {
            self.is_lost_for(otherwise);
            return self.gone();
        };
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            match child.must_run() {
                Err(error) => {
                    let ended = child.try_ended().ok().flatten();
                    let code = ended.and_then(|status| status.code());
                    // The process runs nothing but Plimsoll itself.
                    return if code == Some(i32::from(FAULT)) {
                        Error::Fault(error.to_string())
                    } else {
                        error.into()
                    };
                }
                Ok(()) if Instant::now() > deadline => {
                    return plimsoll_host::Error::Child {
                        name: child.name().to_owned(),
                        text: otherwise.to_owned(),
                        log: child.log().to_owned(),
                        tail: Vec::new(),
                    }
                    .into();
                }
                Ok(()) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

#[cfg(test)]
#[path = "coordinator_tests.rs"]
mod tests;
