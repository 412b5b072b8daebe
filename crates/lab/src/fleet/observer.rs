//! The observer, from the command's side: an agent beside the target that samples it.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::record::{MemoryAt, Observer as ObserverRecord};
use plimsoll_engine::clock::Clock;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::resources::{Recorded, Usage};
use plimsoll_host::signals::Stop;

use super::member::Joined;
use super::{Fleet, Looked};
use crate::error::{Error, Result};
use crate::trial::TARGET;
use crate::trial::parts::{Heard, Said, Told};

/// How long it may take to say what it sees.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How much is shown while a trial runs.
const LATEST_NS: u64 = 1_000_000_000;

/// The observer in a trial. Dropping this ends its watch.
#[derive(Debug)]
pub(crate) struct Observer {
    address: SocketAddr,
    /// The start of its machine.
    boot: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    joined: Joined,
    heard: Receiver<(usize, Heard)>,
    /// What it saw of the target last.
    looked: Option<Looked>,
    recorded: Recorded,
    /// It has said all that it sampled.
    over: bool,
}

/// What it saw in a trial.
#[derive(Debug)]
pub(crate) struct Observed {
    /// Its samples, of the target until they are handed over, and of its machine.
    pub(crate) recorded: Recorded,
    pub(crate) by: ObserverRecord,
    /// The start of its machine.
    pub(crate) boot: String,
}

impl Observed {
    /// Puts the samples of the target where those of a target on this machine would be.
    pub(crate) fn hand_over(&mut self, recorded: &mut Recorded) {
        let theirs = &mut self.recorded;
        recorded.series.append(&mut theirs.series);
        recorded
            .memory_limits_bytes
            .append(&mut theirs.memory_limits_bytes);
        recorded.sockets = std::mem::take(&mut theirs.sockets);
    }
}

impl Observer {
    /// The fleet's observer, for a target at this address; `None` if the fleet has none.
    ///
    /// # Errors
    /// It is not there, or finds no target. Or we were asked to stop.
    pub(crate) fn meet(fleet: &Fleet, address: SocketAddr, stop: &Stop) -> Result<Option<Self>> {
        let Some(member) = fleet.observer(stop)? else {
            return Ok(None);
        };
        let boot = member.place().0.to_owned();
        let (sender, heard) = channel();
        let observer = Self {
            address,
            boot,
            state: Mutex::new(State {
                joined: member.listen(0, sender),
                heard,
                looked: None,
                recorded: Recorded::default(),
                over: false,
            }),
        };
        match observer.look() {
            Ok(()) => Ok(Some(observer)),
            Err(why) => {
                let host = observer.state().joined.share().host.clone();
                Err(Error::Usage(format!("observer ({host}): {why}")))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets it look at the target.
    fn look(&self) -> std::result::Result<(), String> {
        let mut state = self.state();
        state.looked = None;
        let address = self.address;
        state.tell(&Told::Look { address });
        state.hear_until(|state, said| match said {
            Said::Looked(looked) => {
                state.looked = Some(*looked);
                Some(Ok(()))
            }
            Said::Refused(why) => Some(Err(why)),
            said => {
                state.take(said);
                None
            }
        })
    }

    /// The target's memory now; `None` if it is gone.
    pub(crate) fn memory(&self) -> Option<MemoryAt> {
        self.look().ok()?;
        self.state().looked.as_ref()?.memory
    }

    /// The target's memory, as it saw it last.
    pub(crate) fn memory_seen(&self) -> Option<MemoryAt> {
        self.state().looked.as_ref()?.memory
    }

    /// The CPUs of its machine that the target may use.
    pub(crate) fn cpus(&self) -> Option<CpuList> {
        self.state().looked.as_ref()?.cpus.clone()
    }

    /// Where the target's CPU times come from.
    pub(crate) fn source_name(&self) -> Option<String> {
        Some(self.state().looked.as_ref()?.source.clone())
    }

    /// Begins to sample. Times of samples count from `epoch`.
    pub(crate) fn watch(&self, epoch: Instant) {
        let mut state = self.state();
        let here_ns = Clock::at(epoch).epoch_monotonic_ns();
        let epoch_ns = state.joined.begins_ns(here_ns);
        let address = self.address;
        state.tell(&Told::Watch { address, epoch_ns });
    }

    /// Takes what it has said. Returns whether it is lost.
    pub(crate) fn is_lost(&self) -> bool {
        let mut state = self.state();
        while let Ok((_, heard)) = state.heard.try_recv() {
            state.note(heard);
        }
        state.lost().is_some()
    }

    /// What the target used in about the last second; `None` before the first.
    pub(crate) fn latest(&self) -> Option<Usage> {
        let state = self.state();
        let series = state.recorded.series.get(TARGET)?;
        let to_ns = series.samples().last()?.at_ns;
        series.between(to_ns.checked_sub(LATEST_NS)?, to_ns)
    }

    /// Ends the watch.
    pub(crate) fn end(&self) -> Observed {
        let mut state = self.state();
        if state.lost().is_none() {
            state.tell(&Told::Stop);
            let ended = state.hear_until(|state, said| {
                state.take(said);
                state.over.then_some(Ok(()))
            });
            if let Err(why) = ended {
                state.joined.is_lost_for(&why);
            }
        }
        let share = state.joined.share();
        let by = ObserverRecord {
            host: share.host.clone(),
            kernel: share.kernel.clone(),
            clock_error_us: state.joined.clock_error_us(),
            lost: share.lost.clone(),
        };
        Observed {
            recorded: std::mem::take(&mut state.recorded),
            by,
            boot: self.boot.clone(),
        }
    }
}

impl State {
    fn lost(&self) -> Option<&String> {
        self.joined.share().lost.as_ref()
    }

    fn tell(&mut self, told: &Told) {
        if let Err(error) = self.joined.tell(told) {
            self.joined.is_lost_for(&error.to_string());
        }
    }

    /// Takes what it says until it has said what is waited for. It is lost if it does not say that in time.
    fn hear_until(
        &mut self,
        mut said_it: impl FnMut(&mut Self, Said) -> Option<std::result::Result<(), String>>,
    ) -> std::result::Result<(), String> {
        let deadline = Instant::now() + ANSWERS_WITHIN;
        loop {
            if let Some(why) = self.lost() {
                return Err(why.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok((_, heard)) => match heard.read() {
                    Ok(said) => {
                        if let Some(done) = said_it(self, said) {
                            return done;
                        }
                    }
                    Err(why) => self.is_silent(why),
                },
                Err(_) => {
                    let seconds = ANSWERS_WITHIN.as_secs();
                    self.joined
                        .is_lost_for(&format!("no answer for {seconds} s"));
                }
            }
        }
    }

    fn note(&mut self, heard: Heard) {
        match heard.read() {
            Ok(said) => self.take(said),
            Err(why) => self.is_silent(why),
        }
    }

    fn is_silent(&mut self, why: Option<String>) {
        let why = why.unwrap_or_else(|| "it left".to_owned());
        self.joined.is_lost_for(&why);
    }

    fn take(&mut self, said: Said) {
        match said {
            Said::Sampled(piece) => self.recorded.extend(*piece),
            Said::Watched => self.over = true,
            Said::Refused(why) => self.joined.is_lost_for(&why),
            _ => {}
        }
    }
}
