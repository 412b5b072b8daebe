//! The session machines of a trial: its writers and readers, and what is settled between them afterwards.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::schedule::{SessionPlan, session_plan};
use plimsoll_core::session::{Account, NoArrivals, SessionMachines};
use plimsoll_workload::{Crash, Findings, Refusal};
use serde::{Deserialize, Serialize};

use crate::backlog::{Backlog, BacklogSlope, Flow};
use crate::closed_loop;
use crate::dialect::Shape;
use crate::link::Links;
use crate::load::BrokerLoad;
use crate::marks::{Book, Marks, NUMBERS_MAX, Span, Tally};
use crate::message::Messages;
use crate::reader::Reader;
use crate::record::ClosedLoop;
use crate::reopen::Reopen;
use crate::replay::Replayed;
use crate::schedule::{Closed, Load, Schedule};
use crate::session::{BrokerSession, Claim, Shared};
use crate::writer::{Waits, Writer};

/// How long the readers of test `drain` may take to connect.
const OPENING_MAX_NS: u64 = 5 * NS_PER_S;

/// How long after the crash readers begin that are held until then: it comes a few milliseconds after its time.
const HELD_NS: u64 = 50 * NS_PER_MS;

/// What the sessions of a trial found out besides their report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// What became of the measured messages.
    pub tally: Tally,
    /// Why messages waited, besides a full socket.
    pub waits: Waits,
    /// Payloads that were no message of the trial, by the name of the fault.
    pub faults: BTreeMap<String, u64>,
    /// Messages that were compared byte by byte.
    pub compared: u64,
    /// How the backlog changed over the window; in a stream that of the worst reader.
    pub slope: Option<BacklogSlope>,
    /// What the broker held at the end of each second, by the client's account; in a stream, for all readers together.
    pub backlog: Vec<i64>,
    /// What a closed loop shows.
    pub closed_loop: Option<ClosedLoop>,
    /// Claims that did not come, or did not belong to the trial.
    pub absent: u64,
    /// Messages of the whole trial that the broker confirmed and never delivered; `None` if none is confirmed or read.
    pub confirmed_lost: Option<u64>,
    /// How it crossed the broker's crash, in test `replay`.
    pub replayed: Option<Replayed>,
}

impl Found {
    /// As the machines hand it over.
    pub(crate) fn findings(&self) -> Findings {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What they handed over.
    pub(crate) fn of(findings: &Findings) -> Self {
        serde_json::from_value(findings.clone()).unwrap_or_default()
    }
}

/// The writers and readers of a trial.
#[derive(Debug)]
pub(crate) struct Connections {
    shared: Arc<Shared>,
    links: Arc<Links>,
    load: Load,
    /// The most unconfirmed messages of a writer.
    window: Option<u32>,
    /// How long reader 0 keeps a message.
    slow_ns: u64,
    /// Whether the broker crashes, and whether readers begin only then.
    crashes: bool,
    holds_readers: bool,
    profile: Profile,
    found: Mutex<Found>,
}

impl Connections {
    /// Those of a trial with this load. `trial` tells its messages from those of other trials.
    ///
    /// # Errors
    /// One line with the remedy: the protocol cannot say what the load asks for.
    pub(crate) fn new(
        load: &BrokerLoad,
        links: Links,
        trial: u32,
        count: u32,
        profile: &Profile,
    ) -> Result<Self, Refusal> {
        let readers = load.readers_of(count);
        // What cannot be said is known before the first session.
        links.writer(0)?;
        if readers > 0 {
            links.reader(0)?;
        }
        let messages = Messages::new(trial, trial.into(), load.message_bytes);
        let messages = messages.map_err(|error| Refusal(format!("--message-bytes: {error}")))?;
        Ok(Self {
            shared: Arc::new(Shared {
                messages,
                shape: load.shape(),
                writers: load.writers,
                readers,
                is_closed: load.closed().is_some(),
                awaited: 0.into(),
            }),
            links: Arc::new(links),
            load: load.messages_of(count),
            window: load.window,
            slow_ns: load.slow_ms * NS_PER_MS,
            crashes: load.crash.is_some(),
            holds_readers: load.holds_readers,
            profile: profile.clone(),
            found: Mutex::default(),
        })
    }

    /// What the sessions found out; ask after the trial is settled.
    pub(crate) fn found(&self) -> Found {
        let found = self.found.lock();
        found.unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn schedule(&self, writer: u32, seed: u64) -> Schedule {
        Schedule::new(self.load, writer, &self.profile, seed)
    }

    /// More messages than a writer has in the trial, for the limits of sets. With drawn gaps their number is only known
    /// by drawing all of them.
    fn messages_max(&self) -> u64 {
        if self.load.closed.is_some() {
            return NUMBERS_MAX;
        }
        let span_ns = self.profile.window().end_ns;
        let each = u128::from(span_ns) * u128::from(self.load.rate)
            / u128::from(self.load.writers.max(1))
            / u128::from(NS_PER_S);
        u64::try_from(each * 2 + 4_096).unwrap_or(u64::MAX)
    }

    /// When messages were due, by writer and number; for those that are asked for.
    fn dues(&self, seeds: &BTreeMap<u32, u64>, asked: &[(u32, u64)]) -> Vec<u64> {
        let mut dues = Vec::with_capacity(asked.len());
        let mut schedules: BTreeMap<u32, Schedule> = BTreeMap::new();
        for (writer, number) in asked {
            let schedule = schedules.entry(*writer).or_insert_with(|| {
                self.schedule(*writer, seeds.get(writer).copied().unwrap_or_default())
            });
            // They are asked for in order.
            let mut due = schedule.peek();
            while due.is_some_and(|due| due.number < *number) {
                schedule.take();
                due = schedule.peek();
            }
            dues.push(due.map_or(0, |due| due.at_ns));
        }
        dues
    }
}

impl SessionMachines for Connections {
    type Session = BrokerSession;
    type Arrivals = NoArrivals;

    /// Readers connect in the first half of the ramp and writers in the second, so that a stream's readers are there
    /// before its first message. In test `drain` writers come at once, and readers when the window begins.
    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        let plan = session_plan(id, sessions, profile, seed);
        let half_ns = profile.ramp_end_ns() / 2;
        let reader = id.checked_sub(self.shared.writers);
        if let Some(Closed::Preload(_)) = self.load.closed {
            let connect_at_ns = reader.map_or(0, |_| profile.window().start_ns);
            return SessionPlan {
                connect_at_ns,
                open_by_ns: plan.open_by_ns.max(connect_at_ns + OPENING_MAX_NS),
                ..plan
            };
        }
        let (place, of, from_ns) = match reader {
            Some(reader) => (reader, self.shared.readers, 0),
            None => (id, self.shared.writers, half_ns),
        };
        let within = u128::from(half_ns) * u128::from(place) / u128::from(of.max(1));
        if self.is_held(id) {
            let connect_at_ns = Crash::at_ns(&plan.window) + HELD_NS;
            return SessionPlan {
                connect_at_ns,
                open_by_ns: connect_at_ns + NS_PER_S,
                ..plan
            };
        }
        SessionPlan {
            connect_at_ns: from_ns + u64::try_from(within).unwrap_or(0),
            ..plan
        }
    }

    /// # Panics
    /// If the protocol cannot say what the load asks for, which [`Connections::new`] has tried.
    fn session(&self, plan: &SessionPlan) -> BrokerSession {
        let messages_max = self.messages_max();
        let session = match plan.id.checked_sub(self.shared.writers) {
            None => {
                let dialect = self.links.writer(plan.id);
                let writer = Writer::new(
                    plan.id,
                    plan.seed,
                    self.schedule(plan.id, plan.seed),
                    plan.window,
                    messages_max,
                    self.window.map(u64::from),
                );
                let dialect = dialect.unwrap_or_else(|why| unreachable!("tried before: {why}"));
                BrokerSession::of_writer(&self.shared, dialect, writer)
            }
            Some(number) => {
                let dialect = self.links.reader(number);
                let slow_ns = if number == 0 { self.slow_ns } else { 0 };
                let reader = Reader::new(
                    number,
                    self.shared.writers,
                    messages_max,
                    plan.window,
                    slow_ns,
                );
                let dialect = dialect.unwrap_or_else(|why| unreachable!("tried before: {why}"));
                BrokerSession::of_reader(&self.shared, dialect, reader)
            }
        };
        if !self.crashes {
            return session;
        }
        session.opening_again(self.reopen(plan), self.is_held(plan.id))
    }

    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        let shared = &self.shared;
        let mut book = Book::new(shared.shape, shared.writers, shared.readers);
        let mut found = Found::default();
        let mut seeds = BTreeMap::new();
        for claim in claims {
            if let Marks::Writer(marks) = &claim.marks {
                seeds.insert(marks.writer(), claim.seed);
            }
            if book.add(claim.marks.clone()).is_err() {
                found.absent += 1;
            }
            found.waits.add(&claim.waits);
            for (name, count) in &claim.faults {
                *found.faults.entry(name.clone()).or_default() += count;
            }
            found.compared += claim.compared;
        }
        found.absent += book.absent();
        found.tally = book.tally(Span::Measured);
        let is_told = self.window.is_some() && shared.readers > 0;
        found.confirmed_lost = is_told.then(|| book.confirmed_lost());
        let crossings = claims.iter().filter_map(|claim| claim.crossing.as_ref());
        found.replayed = self.crashes.then(|| Replayed::of(&book, crossings));
        self.backlog(claims, &mut found);
        self.enter(&book, &seeds, &found, account);
        let mut kept = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = found;
    }
}

impl Connections {
    /// Whether a session begins only after the crash.
    fn is_held(&self, id: u32) -> bool {
        self.holds_readers && id >= self.shared.writers
    }

    /// How a session's connection opens again.
    fn reopen(&self, plan: &SessionPlan) -> Reopen {
        let links = Arc::clone(&self.links);
        let (id, writers) = (plan.id, self.shared.writers);
        let make = move || match id.checked_sub(writers) {
            None => links.writer(id).ok(),
            Some(number) => links.reader(number).ok(),
        };
        Reopen::new(Crash::at_ns(&plan.window), Box::new(make))
    }

    /// What the broker held over time.
    fn backlog(&self, claims: &[Claim], found: &mut Found) {
        let of_writers = || {
            claims
                .iter()
                .filter(|c| matches!(c.marks, Marks::Writer(_)))
        };
        let of_readers = || {
            claims
                .iter()
                .filter(|c| matches!(c.marks, Marks::Reader(_)))
        };
        let published = Flow::sum(of_writers().map(|claim| &claim.flow));
        let refused = Flow::sum(of_writers().map(|claim| &claim.refusals));
        let gone = |readers: &mut dyn Iterator<Item = &Claim>| {
            Flow::sum(readers.map(|claim| &claim.flow).chain([&refused]))
        };
        let window = self.profile.window();
        let rate_per_s = f64::from(self.load.rate);
        if self.shared.readers == 0 {
            return;
        }
        found.slope = match self.shared.shape {
            // Without a rate there is nothing that it could be a share of.
            _ if self.load.closed.is_some() => None,
            Shape::Queue => {
                let backlog = Backlog::of(&published, &gone(&mut of_readers()));
                backlog.slope(window, rate_per_s)
            }
            Shape::Stream => BacklogSlope::worst(of_readers().map(|reader| {
                let gone = gone(&mut std::iter::once(reader));
                Backlog::of(&published, &gone).slope(window, rate_per_s)
            })),
        };
        // Over a crash a slope says nothing.
        found.slope = found.slope.filter(|_| !self.crashes);
        let due = Flow::sum(std::iter::repeat_n(
            &published,
            usize::try_from(self.shared.arrivals()).unwrap_or(1),
        ));
        let backlog = Backlog::of(&due, &gone(&mut of_readers()));
        found.backlog = backlog.per_second().collect();
        if let Some(closed) = self.load.closed {
            let seen = closed_loop::Seen {
                published: &published,
                confirmed: &Flow::sum(of_writers().map(|claim| &claim.confirms)),
                delivered: &Flow::sum(of_readers().map(|claim| &claim.flow)),
                backlog: &backlog,
                confirmed_ns: of_writers().filter_map(|claim| claim.last_ns).max(),
                delivered_ns: of_readers().filter_map(|claim| claim.last_ns).max(),
            };
            found.closed_loop = Some(seen.shows(closed, window));
        }
    }

    /// Enters what only all sessions together know: what did not arrive, and what was not confirmed.
    fn enter(&self, book: &Book, seeds: &BTreeMap<u32, u64>, found: &Found, account: Account<'_>) {
        let Account {
            ledger, latency, ..
        } = account;
        let end_ns = self.profile.window().grace_end_ns;
        let arrivals = self.shared.arrivals();
        let tally = &found.tally;
        let (mut open, mut times) = (Vec::new(), Vec::new());
        if let Some(delivery) = &tally.delivery {
            book.undelivered(|writer, number, missing| {
                open.push((writer, number));
                times.push(missing);
            });
            ledger.frames_due = tally.offered * arrivals;
            ledger.frames_sent = tally.published * arrivals;
            ledger.frames_lost = times.iter().sum();
            ledger.frames_answered = ledger
                .frames_due
                .saturating_sub(ledger.frames_lost + refused(tally, arrivals));
            ledger.frames_errored = ledger.frames_due - ledger.frames_answered - ledger.frames_lost;
            ledger.frames_duplicated = delivery.duplicated;
            ledger.frames_out_of_order = delivery.reordered;
        } else {
            ledger.frames_due = tally.offered;
            ledger.frames_sent = tally.published;
            ledger.frames_answered = tally.confirmed;
            ledger.frames_errored = tally.refused;
            ledger.frames_lost = tally.offered - tally.confirmed - tally.refused;
        }
        ledger.errors += tally.refused + tally.refused_unnamed;
        ledger.confirmed_lost = found.confirmed_lost;
        ledger.backlog_slope = found.slope.map(|slope| slope.low_share());
        if self.load.closed.is_some() {
            // Nothing was due at a time of its own, so nobody knows how long it was waited for.
            return;
        }
        for (due_ns, times) in self.dues(seeds, &open).into_iter().zip(times) {
            for _ in 0..times {
                let waited_ns = end_ns.saturating_sub(due_ns);
                latency.record_unanswered(waited_ns, waited_ns);
            }
        }
        if self.window.is_some() {
            let mut open = Vec::new();
            book.unanswered(|writer, number| open.push((writer, number)));
            for due_ns in self.dues(seeds, &open) {
                let waited_ns = end_ns.saturating_sub(due_ns);
                latency.record_unconfirmed(waited_ns, waited_ns);
                if tally.delivery.is_none() {
                    latency.record_unanswered(waited_ns, waited_ns);
                }
            }
        }
    }
}

/// How many arrivals are not to be expected, because their message was refused.
fn refused(tally: &Tally, arrivals: u64) -> u64 {
    let in_spite = tally
        .delivery
        .as_ref()
        .map_or(0, |delivery| delivery.in_spite_of_refusal);
    (tally.refused * arrivals).saturating_sub(in_spite)
}
