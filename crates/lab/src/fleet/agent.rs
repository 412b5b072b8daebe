//! The agent: carries its part of each load that the coordinator orders. It starts no program and reads no file for it.

use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use plimsoll_core::record::Build;
use plimsoll_fleet::{
    Allowed, Channel, Connection, Event, Fingerprint, GreetError, Side, Token, greet_coordinator,
};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::machine::{Limits, MachineFacts, Need, preflight};
use plimsoll_host::resources::Source;
use plimsoll_host::signals::Stop;

use super::seen::Watch;
use super::{About, Welcome, boot, observing};
use crate::calibrate::Task;
use crate::error::{Error, Result};
use crate::trial::Registry;
use crate::trial::parts::{Cues, Ear, Order, Others, Reported, Said, Told, drive};

/// How often to look whether we were asked to stop.
const POLL: Duration = Duration::from_millis(100);
/// How long to wait between attempts to reach the coordinator.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an agent that lost its coordinator waits to be joined again.
const RETURN_WITHIN: Duration = Duration::from_secs(60);

/// How an agent finds its coordinator, and what it does for it.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Where the coordinator listens: `HOST:PORT`.
    pub join: String,
    /// What both sides prove to have.
    pub token: Token,
    /// The coordinator's certificate, if it is pinned.
    pub fingerprint: Option<Fingerprint>,
    /// The number that this agent wants; any if there is none.
    pub index: Option<u32>,
    /// Where it lets itself be sent to; what the coordinator's certificate lists if nothing is said.
    pub allowed: Allowed,
    /// How long it waits for a coordinator that it has never met.
    pub idle: Duration,
    /// Its own build.
    pub build: Build,
    /// The workloads that it knows.
    pub workloads: Registry,
    /// What it does.
    pub duty: Duty,
}

/// What an agent is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// It drives parts of loads.
    Drive,
    /// It samples the target, and drives nothing. Without a source, the target is the process that listens where the load
    /// goes.
    Observe(Option<Source>),
}

/// Why an agent's time with a coordinator is over.
pub(super) enum Parted {
    /// The coordinator needs it no more.
    Bye,
    /// The connection is gone, for this reason.
    Gone(String),
    /// We were asked to stop.
    Stopped,
}

/// Serves coordinators until one needs it no more, none calls for too long, or it is asked to stop. `say` shows a line to the
/// user.
///
/// # Errors
/// One line: the coordinator refuses it, or is not who it should be.
pub fn serve(settings: &AgentSettings, stop: &Stop, say: &dyn Fn(&str)) -> Result<()> {
    let cpus = CpuList::allowed_to_us()?;
    let mut deadline = Instant::now() + settings.idle;
    let mut said = String::new();
    while !stop.requested() {
        match meet(settings, &cpus) {
            Ok((welcome, channel)) => {
                let Welcome { index, of } = welcome;
                let who = match settings.duty {
                    Duty::Drive => format!("agent {index} of {of}"),
                    Duty::Observe(_) => "observer".to_owned(),
                };
                say(&format!("{who}, joined {}", settings.join));
                said.clear();
                let parted = match &settings.duty {
                    Duty::Drive => stay(settings, &cpus, channel, stop)?,
                    Duty::Observe(source) => observing::stay(source.as_ref(), channel, stop)?,
                };
                match parted {
                    Parted::Bye => {
                        say("the coordinator is done");
                        return Ok(());
                    }
                    Parted::Stopped => return Ok(()),
                    Parted::Gone(why) => {
                        let seconds = RETURN_WITHIN.as_secs();
                        say(&format!(
                            "the coordinator is gone: {why}; waiting {seconds} s for its return"
                        ));
                        deadline = Instant::now() + RETURN_WITHIN;
                    }
                }
            }
            Err(error) if error.is_final() => {
                return Err(Error::Usage(format!("--join {}: {error}", settings.join)));
            }
            Err(error) => {
                let why = error.to_string();
                if why != said {
                    say(&format!("--join {}: {why}; trying again", settings.join));
                    said = why;
                }
            }
        }
        if Instant::now() > deadline {
            say("no coordinator called");
            return Ok(());
        }
        std::thread::sleep(AGAIN_AFTER);
    }
    Ok(())
}

fn meet(
    settings: &AgentSettings,
    cpus: &CpuList,
) -> std::result::Result<(Welcome, Channel), GreetError> {
    let stream = connect(&settings.join)?;
    let about = About {
        build: settings.build.clone(),
        host: host(),
        kernel: MachineFacts::of_this_machine().kernel,
        cpus: cpus.clone(),
        boot: boot(),
        files: Limits::of_this_process().fd_soft,
        index: settings.index,
        observes: settings.duty != Duty::Drive,
    };
    greet_coordinator(stream, settings.fingerprint, &settings.token, about)
}

/// Tries each address that the name has.
fn connect(join: &str) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the name has no address");
    for address in join.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The name of this machine.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}

/// The error for a coordinator that cannot be listened to.
pub(super) fn not_heard(source: std::io::Error) -> Error {
    let what = "listening to the coordinator".to_owned();
    plimsoll_host::Error::Io { what, source }.into()
}

/// What the coordinator wants between two parts of loads.
enum Call {
    /// A part, with what is heard about it from now on.
    Order(Box<Order>, Cues),
    /// To calibrate its own client, until that is to stop.
    Calibrate(Box<Task>, Stop),
    Bye,
    Gone(String),
}

/// Does what the coordinator orders, part after part.
fn stay(settings: &AgentSettings, cpus: &CpuList, channel: Channel, stop: &Stop) -> Result<Parted> {
    let listed = channel.listed();
    let may_go = |to| match settings.allowed.is_empty() {
        true => listed(to),
        false => settings.allowed.has(to),
    };
    let (calls, called) = self::channel();
    let mut ear = None;
    let connection = Connection::start(channel, Side::Answers, move |event| {
        hear(event, &mut ear, &calls);
    })
    .map_err(not_heard)?;
    let carrier = Carrier {
        settings,
        cpus,
        may_go: &may_go,
        say: &|said| connection.say(said).map_err(std::io::Error::other),
    };
    loop {
        match called.recv_timeout(POLL) {
            Ok(Call::Order(order, cues)) => {
                if let Err(error) = carrier.carry(*order, cues, stop) {
                    // Whatever it is, this agent is as good as before.
                    let _ = (carrier.say)(&Said::Refused(error.to_string()));
                }
            }
            Ok(Call::Calibrate(task, of_task)) => {
                if let Err(error) = carrier.calibrate(&task, &of_task, stop) {
                    let _ = (carrier.say)(&Said::Refused(error.to_string()));
                }
            }
            Ok(Call::Bye) => return Ok(Parted::Bye),
            Ok(Call::Gone(why)) => return Ok(Parted::Gone(why)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(Parted::Gone("the connection was ended here".to_owned()));
            }
        }
        if stop.requested() {
            return Ok(Parted::Stopped);
        }
    }
}

/// What the coordinator says goes to the part or the calibration that it ordered last, or waits for its turn. That is stopped
/// when there will be no more of it.
fn hear(event: Event, ear: &mut Option<Ear>, calls: &Sender<Call>) {
    let call = match event {
        Event::Message(json) => match serde_json::from_slice(&json) {
            Ok(Told::Order(order)) => {
                let _ = calls.send(Call::Order(order, listening(ear)));
                return;
            }
            Ok(Told::Calibrate(task)) => {
                let _ = calls.send(Call::Calibrate(task, listening(ear).stop));
                return;
            }
            Ok(Told::Bye) => Call::Bye,
            Ok(told) => {
                if let Some(ear) = ear {
                    ear.hear(&told);
                }
                return;
            }
            Err(error) => Call::Gone(format!("what it says cannot be read: {error}")),
        },
        Event::Gone(why) => Call::Gone(why),
    };
    if let Some(ear) = ear {
        ear.hear(&Told::Stop);
    }
    let _ = calls.send(call);
}

/// A new ear in the place of the last one, and what it hears. A stop of what it is for is none of the agent's.
fn listening(ear: &mut Option<Ear>) -> Cues {
    let (of_this, cues) = Ear::new(&Stop::new());
    *ear = Some(of_this);
    cues
}

/// Carries parts, and calibrates.
struct Carrier<'a> {
    settings: &'a AgentSettings,
    cpus: &'a CpuList,
    /// Whether this agent lets itself be sent there.
    may_go: &'a dyn Fn(IpAddr) -> bool,
    say: &'a (dyn Fn(&Said) -> std::io::Result<()> + Sync),
}

impl Carrier<'_> {
    fn carry(&self, mut order: Order, cues: Cues, stop: &Stop) -> Result<()> {
        self.must_be_allowed(&order)?;
        let cpus = self.cpus.as_slice().iter();
        order.options.cpus = cpus.map(|cpu| *cpu as usize).collect();
        order.options.source_addresses = Vec::new();
        let of_part = cues.stop.clone();
        let others = Others {
            say: self.say,
            cues,
        };
        let watch = Watch::begin(self.cpus)?;
        let part = stopping_with(stop, &of_part, || {
            drive(&order, self.settings.workloads, &others)
        })?;
        let seen = Some(watch.end(&order.options.profile, &part.report)?);
        if !stop.requested() {
            // If the coordinator is gone, this is heard as well.
            let _ = (self.say)(&Said::Report(Box::new(Reported { part, seen })));
        }
        Ok(())
    }

    /// Calibrates this agent's client. It goes nowhere but to this machine's loopback.
    fn calibrate(&self, task: &Task, of_task: &Stop, stop: &Stop) -> Result<()> {
        // If the coordinator is gone, this is heard as well.
        let say = |said: Said| drop((self.say)(&said));
        let found = stopping_with(stop, of_task, || {
            task.perform(self.settings.workloads, self.cpus, of_task, |step| {
                say(Said::Stepped(step.clone()));
            })
        });
        // Whoever has stopped it waits for no answer.
        if !of_task.requested() {
            say(Said::Calibrated(Box::new(found?)));
        }
        Ok(())
    }

    /// Refuses what this agent must not or cannot do.
    fn must_be_allowed(&self, order: &Order) -> Result<()> {
        let to = order.options.address.ip();
        if !(self.may_go)(to) {
            return Err(Error::Usage(format!(
                "it lets nobody send it to {to}; start it with --allow {to}"
            )));
        }
        must_name_no_file(order.work.file())?;
        let part = order.options.part.ids(order.options.sessions).count();
        Ok(preflight(
            Need::sessions(part as u64),
            Limits::of_this_process(),
        )?)
    }
}

/// Refuses a parameter whose value is a file.
///
/// # Errors
/// There is one, of this name.
pub(crate) fn must_name_no_file(parameter: Option<&str>) -> Result<()> {
    match parameter {
        None => Ok(()),
        Some(name) => Err(Error::Usage(format!(
            "an agent reads no file that somebody else names; leave --{name} out"
        ))),
    }
}

/// Does something that `of_this` stops, and stops it when the agent is asked to stop.
fn stopping_with<T>(stop: &Stop, of_this: &Stop, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (done, is_done) = self::channel::<()>();
        scope.spawn(move || stop_with(stop, of_this, &is_done));
        let worked = work();
        drop(done);
        worked
    })
}

/// Stops it when the agent is asked to stop, until it is over.
fn stop_with(stop: &Stop, part: &Stop, is_done: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(POLL) {
        if stop.requested() {
            part.request();
        }
    }
}
