//! Agents on other machines: one load in several parts, with one ledger and one verdict.
//!
//! Agents dial the command that coordinates them. What the two say to each other about a trial is in `trial::parts`: an agent
//! does what a client process does.
//!
//! - [`Fleet`]: the agents of a command: who has joined, and who is missing;
//! - [`member`]: one of them;
//! - [`observer`]: the one that watches the target and drives nothing;
//! - [`agent`]: the other side: the agent itself;
//! - [`observing`]: an agent that observes;
//! - [`places`]: who of them has which number;
//! - [`seen`]: what an agent sees of its own machine.

pub mod agent;
pub(crate) mod member;
pub(crate) mod observer;
mod observing;
mod places;
pub(crate) mod seen;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use plimsoll_core::record::Build;
use plimsoll_fleet::{Fingerprint, Identity, Token, greet_agent};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::trial::parts::Heard;
use member::{Joined, Member};
pub(crate) use observing::Looked;
use places::{Places, Slot};
pub(crate) use seen::Seen;

/// How often to look for a newcomer, or whether we were asked to stop.
const POLL: Duration = Duration::from_millis(50);
/// How long a trial waits for an agent that was lost in an earlier one.
const RETURN_WITHIN: Duration = Duration::from_secs(60);
/// So many may be greeted at once. Others wait in the kernel's queue.
const GREETED_AT_ONCE: usize = 64;

/// What an agent says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) build: Build,
    pub(crate) host: String,
    pub(crate) kernel: String,
    /// CPUs that it may use.
    pub(crate) cpus: CpuList,
    /// The start of its machine: two that run on one machine name the same.
    pub(crate) boot: String,
    /// Open files that it may have.
    pub(crate) files: u64,
    /// The number that it wants; any if there is none.
    pub(crate) index: Option<u32>,
    /// Whether it watches the target instead of driving a load.
    pub(crate) observes: bool,
}

/// The start of this machine, as the kernel identifies it; empty where it does not.
pub(crate) fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

/// What it is told then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) index: u32,
    pub(crate) of: u32,
}

/// How agents are waited for.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// How many drive the load.
    pub agents: u32,
    /// Whether a further one watches the target.
    pub observer: bool,
    /// Where the command listens for them.
    pub listen: SocketAddr,
    /// What they prove to have.
    pub token: Token,
    /// The addresses to which they will be sent. The certificate lists them.
    pub targets: Vec<IpAddr>,
    /// The build of this command. Agents are of the same.
    pub build: Build,
}

/// The agents of a command. Clones share them.
#[derive(Debug, Clone)]
pub struct Fleet(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: FleetSettings,
    identity: Identity,
    address: SocketAddr,
    places: Places,
}

impl Fleet {
    /// Listens for agents. They may join at any time from now on.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn listen(settings: FleetSettings) -> Result<Self> {
        let failed = |source| {
            Error::Usage(format!(
                "--listen {}: {source}; give an address of this machine and a free port",
                settings.listen
            ))
        };
        let listener = TcpListener::bind(settings.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let identity = Identity::make(&settings.targets)
            .map_err(|error| Error::Fault(format!("no certificate for agents: {error}")))?;
        let inner = Arc::new(Inner {
            places: Places::of(&settings),
            settings,
            identity,
            address,
        });
        let of = Arc::downgrade(&inner);
        std::thread::Builder::new()
            .name("fleet-door".to_owned())
            .spawn(move || accept(&listener, &of))
            .map_err(|source| plimsoll_host::Error::Io {
                what: "listening for agents".to_owned(),
                source,
            })?;
        Ok(Self(inner))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// What agents may pin.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.identity.fingerprint()
    }

    /// How many agents are to drive the load.
    #[must_use]
    pub fn agents(&self) -> u32 {
        self.0.settings.agents
    }

    /// Whether there is to be an observer.
    #[must_use]
    pub fn has_observer(&self) -> bool {
        self.0.settings.observer
    }

    /// Waits until all agents have joined and their clocks are known.
    ///
    /// # Errors
    /// One is missing after this time; the line says which. Or we were asked to stop.
    pub fn gather(&self, within: Duration, stop: &Stop) -> Result<()> {
        self.all_within(within, stop).map(drop)
    }

    /// All agents, by their numbers. One that was lost has time to return.
    fn all(&self, stop: &Stop) -> Result<Vec<Arc<Member>>> {
        let mut all = self.all_within(RETURN_WITHIN, stop)?;
        all.truncate(self.agents() as usize);
        Ok(all)
    }

    /// All agents, each listened to: what it says goes to `heard`, under its place in the list.
    pub(crate) fn joined(
        &self,
        heard: &Sender<(usize, Heard)>,
        stop: &Stop,
    ) -> Result<Vec<Joined>> {
        let members = self.all(stop)?.into_iter().enumerate();
        let joined = members.map(|(number, member)| member.listen(number, heard.clone()));
        Ok(joined.collect())
    }

    /// The observer; `None` if there is to be none. One that was lost has time to return.
    pub(crate) fn observer(&self, stop: &Stop) -> Result<Option<Arc<Member>>> {
        if !self.has_observer() {
            return Ok(None);
        }
        Ok(self.all_within(RETURN_WITHIN, stop)?.pop())
    }

    /// The agents that are here now.
    pub(crate) fn present(&self) -> Vec<Arc<Member>> {
        let present = self.0.places.present().into_iter();
        present.take(self.agents() as usize).flatten().collect()
    }

    fn all_within(&self, within: Duration, stop: &Stop) -> Result<Vec<Arc<Member>>> {
        let began = Instant::now();
        loop {
            let present = self.0.places.present();
            let ready = |member: &&Arc<Member>| member.knows_its_clock();
            if present.iter().flatten().filter(ready).count() == present.len() {
                return Ok(present.into_iter().flatten().collect());
            }
            if stop.requested() {
                return Err(Error::Interrupted("waiting for agents".to_owned()));
            }
            if Instant::now() > self.0.places.waited_for_until(began, within) {
                return Err(missing(&present, self.agents(), within));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// The error for agents that are not there.
fn missing(present: &[Option<Arc<Member>>], agents: u32, within: Duration) -> Error {
    let gone = (0..).zip(present).filter(|(_, member)| member.is_none());
    let (numbers, others): (Vec<u32>, Vec<u32>) = gone
        .map(|(number, _)| number)
        .partition(|number| *number < agents);
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    let which = match (numbers.as_slice(), others.is_empty()) {
        ([], true) => "clocks of agents are not known".to_owned(),
        ([], false) => "the observer is missing".to_owned(),
        ([one], _) => format!("agent {one} of {agents} is missing"),
        (all, _) => format!("agents {} of {agents} are missing", all.join(", ")),
    };
    let role = if numbers.is_empty() && !others.is_empty() {
        " --observe"
    } else {
        ""
    };
    plimsoll_host::Error::Io {
        what: format!("after {} s {which}", within.as_secs()),
        source: std::io::Error::new(
            ErrorKind::TimedOut,
            format!("start `plimsoll agent{role} --join` there, with the same token"),
        ),
    }
    .into()
}

impl Inner {
    /// Greets whoever has come, and gives it its place.
    fn greet(&self, stream: TcpStream) {
        let mut promised = None;
        let greeted = greet_agent(
            stream,
            &self.identity,
            &self.settings.token,
            |about: About| {
                let index = self.places.promise(&about)?;
                promised = Some((index, about));
                let of = self.settings.agents;
                Ok(Welcome { index, of })
            },
        );
        let Some((index, about)) = promised else {
            return;
        };
        let member = greeted.ok();
        let member = member.and_then(|channel| Member::start(channel, about, index).ok());
        self.places.settle(
            index,
            member.map_or(Slot::Free, |member| Slot::Taken(Arc::new(member))),
        );
    }
}

/// Lets agents in for as long as there is a fleet.
fn accept(listener: &TcpListener, of: &Weak<Inner>) {
    let greeted = Arc::new(());
    while let Some(inner) = of.upgrade() {
        if Arc::strong_count(&greeted) > GREETED_AT_ONCE {
            drop(inner);
            std::thread::sleep(POLL);
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let counted = Arc::clone(&greeted);
                // A newcomer that cannot be greeted comes again.
                let _ = std::thread::Builder::new()
                    .name("fleet-greeting".to_owned())
                    .spawn(move || {
                        inner.greet(stream);
                        drop(counted);
                    });
            }
            Err(_) => {
                drop(inner);
                std::thread::sleep(POLL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_fleet::greet_coordinator;

    use super::*;

    fn build(commit: &str, dirty: bool) -> Build {
        Build {
            commit: Some(commit.to_owned()),
            dirty: Some(dirty),
            ..Build::default()
        }
    }

    fn fleet(agents: u32, token: &Token) -> Fleet {
        Fleet::listen(FleetSettings {
            agents,
            observer: false,
            listen: "127.0.0.1:0".parse().expect("an address"),
            token: token.clone(),
            targets: Vec::new(),
            build: build("abc", false),
        })
        .expect("a port")
    }

    fn join(fleet: &Fleet, token: &Token, build: Build, index: Option<u32>) -> Joining {
        let about = About {
            build,
            host: "here".to_owned(),
            kernel: "6".to_owned(),
            cpus: CpuList::allowed_to_us().expect("allowed"),
            boot: boot(),
            files: 1_000,
            index,
            observes: false,
        };
        let stream = TcpStream::connect(fleet.address()).expect("it listens");
        greet_coordinator::<_, Welcome>(stream, None, token, about)
            .map(|(welcome, channel)| (welcome.index, channel))
            .map_err(|error| (error.to_string(), error.is_final()))
    }

    type Joining = std::result::Result<(u32, plimsoll_fleet::Channel), (String, bool)>;

    #[test]
    fn another_build_is_refused_with_both_names() {
        let token = Token::random().expect("random");
        let fleet = fleet(1, &token);
        for (other, name) in [
            (build("def", false), "def"),
            (build("abc", true), "abc with changes"),
        ] {
            let (why, is_final) = join(&fleet, &token, other, None).expect_err("another build");
            assert!(
                is_final && why.contains(&format!("of build {name}, and the coordinator of abc;")),
                "{why}"
            );
        }
        assert!(join(&fleet, &token, build("abc", false), None).is_ok());
    }

    #[test]
    fn each_number_is_had_once_until_its_agent_is_gone() {
        let token = Token::random().expect("random");
        let fleet = fleet(2, &token);
        let ours = || build("abc", false);
        let (first, channel) = join(&fleet, &token, ours(), Some(1)).expect("free");
        let (second, _other) = join(&fleet, &token, ours(), None).expect("free");
        assert_eq!((first, second), (1, 0));
        let wait_for = |index: usize, place: bool| {
            let deadline = Instant::now() + Duration::from_secs(10);
            while fleet.0.places.present()[index].is_some() != place {
                assert!(
                    Instant::now() < deadline,
                    "agent {index} is not as expected"
                );
                std::thread::sleep(POLL);
            }
        };
        wait_for(0, true);
        wait_for(1, true);
        for (index, words) in [(None, "all 2 agents"), (Some(1), "agent 1 is here already")] {
            let (why, is_final) = join(&fleet, &token, ours(), index).expect_err("taken");
            assert!(!is_final && why.contains(words), "{why}");
        }
        let (why, is_final) = join(&fleet, &token, ours(), Some(2)).expect_err("none such");
        assert!(is_final && why.contains("numbered from 0"), "{why}");
        // A trial that begins when the time to return is over waits for nobody.
        let waits = |began| fleet.0.places.waited_for_until(began, RETURN_WITHIN) > began;
        let after_its_time = || Instant::now() + RETURN_WITHIN;
        assert!(waits(after_its_time()));
        drop(channel);
        wait_for(1, false);
        assert!(waits(Instant::now()) && !waits(after_its_time()));
        assert_eq!(join(&fleet, &token, ours(), None).expect("free again").0, 1);
        let missing = fleet
            .gather(Duration::ZERO, &Stop::new())
            .expect_err("too soon");
        assert_eq!(missing.exit_code(), 3);
    }
}
