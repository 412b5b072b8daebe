//! What a part does: it drives its sessions, and says what it sees.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_engine::clock::Clock;
use plimsoll_engine::{Company, Unsettled};
use plimsoll_host::signals::Stop;
use serde_json::Value;

use super::{Order, Said, Told};
use crate::error::Result;
use crate::trial::work::Registry;

/// How often to look whether the part was told to stop before it began.
const POLL: Duration = Duration::from_millis(50);
/// So many claims are said at once: a message must not be too long.
const CLAIMS_AT_ONCE: usize = 256;

/// Hears what a part is told, from its order on.
#[derive(Debug)]
pub(crate) struct Ear {
    begins: Sender<Clock>,
    may_end: Arc<AtomicBool>,
    stop: Stop,
}

/// What the ear of a part has heard.
#[derive(Debug)]
pub(crate) struct Cues {
    begins: Mutex<Receiver<Clock>>,
    may_end: Arc<AtomicBool>,
    pub(crate) stop: Stop,
}

impl Ear {
    /// The ear of a part that stops by `stop`, and what it hears.
    pub(crate) fn new(stop: &Stop) -> (Self, Cues) {
        let (begins, begun) = channel();
        let ear = Self {
            begins,
            may_end: Arc::default(),
            stop: stop.clone(),
        };
        let cues = Cues {
            begins: Mutex::new(begun),
            may_end: Arc::clone(&ear.may_end),
            stop: stop.clone(),
        };
        (ear, cues)
    }

    /// Takes in what the part is told.
    pub(crate) fn hear(&self, told: &Told) {
        match told {
            Told::Begin { monotonic_ns } => {
                // A part that is over hears nothing.
                let _ = self.begins.send(Clock::at_monotonic_ns(*monotonic_ns));
            }
            Told::End => self.may_end.store(true, Ordering::Relaxed),
            Told::Stop => self.stop.request(),
            Told::Order(_)
            | Told::Calibrate(_)
            | Told::Bye
            | Told::Look { .. }
            | Told::Watch { .. } => {}
        }
    }
}

/// The other parts, reached through the coordinator.
pub(crate) struct Others<'a> {
    /// How the part speaks.
    pub(crate) say: &'a (dyn Fn(&Said) -> std::io::Result<()> + Sync),
    pub(crate) cues: Cues,
}

impl Others<'_> {
    fn tell(&self, said: &Said) {
        // Nobody listens any more: the command has died, or given up.
        if (self.say)(said).is_err() {
            self.cues.stop.request();
        }
    }
}

impl Company for Others<'_> {
    fn begin(&self) -> std::io::Result<Clock> {
        (self.say)(&Said::Ready)?;
        let begins = self
            .cues
            .begins
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        loop {
            match begins.recv_timeout(POLL) {
                Ok(clock) => return Ok(clock),
                Err(RecvTimeoutError::Timeout) if !self.cues.stop.requested() => {}
                Err(_) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    fn settled(&self) {
        self.tell(&Said::Settled);
    }

    fn may_end(&self) -> bool {
        self.cues.may_end.load(Ordering::Relaxed)
    }
}

/// Drives a part's sessions, and says its seconds and its claims. What it returns has no claims any more.
///
/// # Errors
/// There is no such workload, its values cannot be used, or the engine could not start.
pub(crate) fn drive(
    order: &Order,
    workloads: Registry,
    others: &Others<'_>,
) -> Result<Unsettled<Value>> {
    let mut on_second = |second| {
        others.tell(&Said::Second(Box::new(second)));
        ControlFlow::Continue(())
    };
    let flag = others.cues.stop.flag();
    let plan = order.work.plan(workloads)?;
    let machines = order.work.machines(&*plan, &order.options.profile)?;
    let mut part = machines.run_part(others, &order.options, &flag, &mut on_second)?;
    let claims = std::mem::take(&mut part.claims);
    for some in claims.chunks(CLAIMS_AT_ONCE) {
        others.tell(&Said::Claims(some.to_vec()));
    }
    Ok(part)
}
