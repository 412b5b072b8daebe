//! The places of a fleet: who has which number, and how long an empty one is waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::record::Build;
use plimsoll_fleet::Refusal;

use super::member::Member;
use super::{About, FleetSettings};

/// The place of an agent.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    Free,
    /// Somebody is being greeted.
    Promised,
    Taken(Arc<Member>),
}

/// Who has which place.
#[derive(Debug)]
pub(super) struct Places {
    /// How many drive the load.
    agents: u32,
    observer: bool,
    /// The build of the command.
    build: Build,
    slots: Mutex<Slots>,
}

#[derive(Debug)]
struct Slots {
    /// One for each agent, and after them the observer's.
    all: Vec<Slot>,
    /// When one was last seen to be gone.
    last_lost: Option<Instant>,
}

impl Places {
    pub(super) fn of(settings: &FleetSettings) -> Self {
        let places = settings.agents as usize + usize::from(settings.observer);
        Self {
            agents: settings.agents,
            observer: settings.observer,
            build: settings.build.clone(),
            slots: Mutex::new(Slots {
                all: vec![Slot::Free; places],
                last_lost: None,
            }),
        }
    }

    /// The places. Whoever is gone has left its own.
    fn slots(&self) -> MutexGuard<'_, Slots> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let Slots { all, last_lost } = &mut *slots;
        for slot in all {
            if matches!(slot, Slot::Taken(member) if member.is_gone()) {
                *slot = Slot::Free;
                *last_lost = Some(Instant::now());
            }
        }
        slots
    }

    /// Those that are here, by their numbers.
    pub(super) fn present(&self) -> Vec<Option<Arc<Member>>> {
        let member = |slot: &Slot| match slot {
            Slot::Taken(member) => Some(Arc::clone(member)),
            Slot::Free | Slot::Promised => None,
        };
        self.slots().all.iter().map(member).collect()
    }

    /// Until when whoever began to wait then waits for all to be here. One that was lost has this time to return since it was
    /// lost, not since each trial that misses it.
    pub(super) fn waited_for_until(&self, began: Instant, within: Duration) -> Instant {
        let slots = self.slots();
        let is_free = |slot: &Slot| matches!(slot, Slot::Free);
        let lost = slots.last_lost.filter(|_| slots.all.iter().any(is_free));
        lost.unwrap_or(began) + within
    }

    /// Promises a place to a newcomer: its number.
    ///
    /// # Errors
    /// It may not join, or there is no place for it now.
    pub(super) fn promise(&self, about: &About) -> Result<u32, Refusal> {
        let ours = &self.build;
        if (&about.build.commit, about.build.dirty) != (&ours.commit, ours.dirty) {
            return Err(Refusal::for_good(format!(
                "this agent is of build {}, and the coordinator of {}; install the same on both",
                build_name(&about.build),
                build_name(ours)
            )));
        }
        if about.observes {
            return self.promise_to_observer();
        }
        let of = self.agents;
        if let Some(index) = about.index.filter(|index| *index >= of) {
            return Err(Refusal::for_good(format!(
                "there are {of} agents, numbered from 0, so none has number {index}"
            )));
        }
        let mut slots = self.slots();
        let is_free = |index: &u32| matches!(slots.all[*index as usize], Slot::Free);
        let index = match about.index {
            Some(index) => Some(index).filter(is_free),
            None => (0..of).find(is_free),
        };
        let Some(index) = index else {
            return Err(Refusal::for_now(match about.index {
                Some(index) => format!("agent {index} is here already"),
                None => format!("all {of} agents are here already"),
            }));
        };
        slots.all[index as usize] = Slot::Promised;
        Ok(index)
    }

    fn promise_to_observer(&self) -> Result<u32, Refusal> {
        if !self.observer {
            return Err(Refusal::for_good(
                "nobody asked for an observer; give the coordinator --observer".to_owned(),
            ));
        }
        let index = self.agents;
        match &mut self.slots().all[index as usize] {
            slot @ Slot::Free => {
                *slot = Slot::Promised;
                Ok(index)
            }
            Slot::Promised | Slot::Taken(_) => {
                Err(Refusal::for_now("an observer is here already".to_owned()))
            }
        }
    }

    /// What became of a promise.
    pub(super) fn settle(&self, index: u32, slot: Slot) {
        if let Some(place) = self.slots().all.get_mut(index as usize) {
            *place = slot;
        }
    }
}

/// A build as a line names it.
fn build_name(build: &Build) -> String {
    let commit = build.commit.as_deref().unwrap_or("unknown");
    match build.dirty {
        Some(true) => format!("{commit} with changes"),
        _ => commit.to_owned(),
    }
}
