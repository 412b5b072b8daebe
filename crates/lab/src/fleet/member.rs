//! One agent of a fleet, from the command's side.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::latency::{LagQuantiles, Series};
use plimsoll_core::record::Agent as AgentRecord;
use plimsoll_engine::Report;
use plimsoll_fleet::{Channel, ClockOffset, Connection, Event, Side};
use plimsoll_host::isolation::CpuList;

use super::{About, Seen};
use crate::trial::parts::{Heard, Told};

/// An agent that has joined.
#[derive(Debug)]
pub(crate) struct Member {
    about: About,
    index: u32,
    connection: Connection,
    state: Arc<Mutex<State>>,
}

/// What its connection tells.
#[derive(Debug, Default)]
struct State {
    /// Who hears what it says, and under which number. Between trials nobody does.
    to: Option<(usize, Sender<(usize, Heard)>)>,
    /// Why it is gone, if it is.
    gone: Option<String>,
}

impl State {
    fn take(&mut self, event: Event) {
        let heard = match event {
            Event::Message(json) => Heard::Said(json),
            Event::Gone(why) => {
                self.gone = Some(why.clone());
                Heard::Silence(Some(why))
            }
        };
        if let Some((number, to)) = &self.to {
            let _ = to.send((*number, heard));
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    /// Begins to listen to an agent that was greeted.
    pub(super) fn start(channel: Channel, about: About, index: u32) -> std::io::Result<Self> {
        let state = Arc::<Mutex<State>>::default();
        let told = Arc::clone(&state);
        let connection = Connection::start(channel, Side::Probes, move |event| {
            locked(&told).take(event)
        })?;
        Ok(Self {
            about,
            index,
            connection,
            state,
        })
    }

    /// Whether it has left, or has fallen silent.
    pub(super) fn is_gone(&self) -> bool {
        locked(&self.state).gone.is_some()
    }

    /// Whether its clock was probed often enough.
    pub(super) fn knows_its_clock(&self) -> bool {
        self.connection.offset().is_some()
    }

    /// Its number and its machine.
    pub(crate) fn name(&self) -> String {
        self.record().name()
    }

    /// Open files that it may have.
    pub(crate) fn files(&self) -> u64 {
        self.about.files
    }

    /// The start of its machine, and the CPUs there that it may use.
    pub(crate) fn place(&self) -> (&str, &CpuList) {
        (&self.about.boot, &self.about.cpus)
    }

    /// What is known of it before a trial.
    fn record(&self) -> AgentRecord {
        AgentRecord {
            index: self.index,
            host: self.about.host.clone(),
            kernel: self.about.kernel.clone(),
            cpus: self.about.cpus.as_slice().len(),
            ..AgentRecord::default()
        }
    }

    /// Begins a trial with it: what it says goes to `heard`, under this number.
    pub(crate) fn listen(self: Arc<Self>, number: usize, heard: Sender<(usize, Heard)>) -> Joined {
        let mut state = locked(&self.state);
        if let Some(why) = &state.gone {
            let _ = heard.send((number, Heard::Silence(Some(why.clone()))));
        }
        state.to = Some((number, heard));
        drop(state);
        let share = self.record();
        Joined {
            member: self,
            at_the_beginning: None,
            share,
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Whoever hears this need not wait for us to return.
        let _ = self.connection.say(&Told::Bye);
    }
}

/// An agent in a trial. Dropping this stops what it may still be doing.
#[derive(Debug)]
pub(crate) struct Joined {
    member: Arc<Member>,
    /// Its clock when the trial began.
    at_the_beginning: Option<ClockOffset>,
    /// Its share of the trial: until it reports, what is known of it before.
    share: AgentRecord,
}

impl Joined {
    /// Tells it something.
    pub(crate) fn tell(&self, told: &Told) -> std::io::Result<()> {
        self.member
            .connection
            .say(told)
            .map_err(std::io::Error::other)
    }

    /// When the trial begins, by its clock. From here on the error of this clock counts.
    pub(crate) fn begins_ns(&mut self, here_ns: u64) -> u64 {
        self.at_the_beginning = self.member.connection.offset();
        let offset = self.at_the_beginning;
        offset.map_or(here_ns, |offset| offset.there_ns(here_ns))
    }

    /// The start of its machine, and the CPUs there that it may use.
    pub(crate) fn place(&self) -> (&str, &CpuList) {
        self.member.place()
    }

    /// Its share of the trial.
    pub(crate) fn share(&self) -> &AgentRecord {
        &self.share
    }

    /// It is lost, for this reason.
    pub(crate) fn is_lost_for(&mut self, why: &str) {
        self.share.lost = Some(why.to_owned());
    }

    /// How wrong its clock may be, since the trial began.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a round trip are far below 2^53"
    )]
    pub(crate) fn clock_error_us(&self) -> f64 {
        let offset = self.at_the_beginning;
        let error_ns = offset.map_or(0, |offset| self.member.connection.error_of_ns(&offset));
        error_ns as f64 / 1e3
    }

    /// It has reported: completes its share.
    pub(crate) fn reported(&mut self, report: &Report, seen: Option<Seen>) {
        let seen = seen.unwrap_or_default();
        let lag = |series| LagQuantiles::of(report.latency.histogram(series));
        self.share = AgentRecord {
            sessions: report.sessions,
            clock_error_us: self.clock_error_us(),
            cpu_us_per_frame: report.cpu_us_per_frame(),
            cpu_share: report.busy.busiest(),
            send_lag: lag(Series::SendLag),
            send_wait: lag(Series::SendWait),
            run_queue_wait_share: report.longest_wait_share,
            opening_wait_share: report.longest_opening_wait_share,
            receive_wait_share: seen.receive_wait_share,
            steal_share: seen.steal_share,
            faults: report.client_faults.clone(),
            resources: seen.resources,
            ..self.member.record()
        };
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // One that has reported takes no notice: messages come in order, so this comes before its next order.
        let _ = self.tell(&Told::Stop);
        locked(&self.member.state).to = None;
    }
}
