//! The engine's part for tests of sessions and arrivals: the same calls in the same order, with a made-up clock and
//! without sockets. A test says what the server does.

use plimsoll_core::profile::{NS_PER_MS, Profile, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::Spacing;
use plimsoll_core::session::{
    Arrivals, Disconnect, Endpoint, Phase, Session, SessionMachines, Share, Unconnected,
};
use plimsoll_workload::{Plan, Value, Values};

use crate::account::Counts;
use crate::arrivals::{Dispatch, Requests};
use crate::ask::Ask;
use crate::load::{HttpLoad, Test};
use crate::machines::{Connections, Load};
use crate::parameters::PARAMETERS;
use crate::plan::HttpPlan;
use crate::schedule::Rates;
use crate::session::{H1Session, Shared};

/// A ramp of 0.1 s, a warm-up of 0.1 s, a window of 1 s and a grace of 3 s.
pub(crate) fn profile() -> Profile {
    Profile {
        ramp_s: 0.1,
        warm_up_s: 0.1,
        measured_s: 1.0,
        grace_s: 3.0,
        ..Profile::quick()
    }
}

/// What is asked, how often, and on how many connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) test: &'static str,
    pub(crate) connections: u32,
    pub(crate) rate: u32,
    /// Requests a second in the warm-up.
    pub(crate) warm_up: u32,
    pub(crate) dispatch: Dispatch,
    pub(crate) closed_loop: bool,
}

impl Asked {
    /// One connection, and `rate` requests a second in the window: GET /.
    pub(crate) fn on_one(rate: u32) -> Self {
        Self {
            test: "rate",
            connections: 1,
            rate,
            warm_up: 0,
            dispatch: Dispatch::Pool,
            closed_loop: false,
        }
    }

    fn machines(&self) -> Connections<H1Session> {
        let values = Values::default().with("test", Value::Word(self.test.to_owned()));
        let values = values.with("connections", Value::Whole(self.connections.into()));
        let plan = HttpPlan::new(values.or_usual(&PARAMETERS)).expect("a plan");
        let to = Endpoint {
            host: "h".to_owned(),
            path: plan.told().path.into_owned(),
            headers: Vec::new(),
        };
        let load: &HttpLoad = &plan.load;
        let shared = Shared {
            ask: Ask::new(load, true, 0),
            template: plan.template(&to).expect("a request"),
            a_connection_each: load.test == Test::Connect,
            may_ask_again: load.test != Test::Post,
        };
        let rates = Rates {
            measured: self.rate,
            warm_up: self.warm_up,
            spacing: Spacing::Even,
            whole_seconds: false,
        };
        let due = if self.closed_loop {
            Load::AtOnce
        } else {
            Load::Rates(rates)
        };
        Connections::new(shared, due, self.dispatch, 1)
    }
}

/// What a session's slot in the engine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It connects then, or with work.
    Planned(Option<u64>),
    /// It must be open then.
    Connecting(u64),
    Connected,
    Over,
}

/// A session and its slot.
pub(crate) struct Place {
    pub(crate) session: H1Session,
    pub(crate) slot: Slot,
    /// When a connection that is planned must be open.
    open_by_ns: u64,
    /// What it wrote on this connection.
    pub(crate) wire: Vec<u8>,
    /// Whether its socket is full.
    pub(crate) full: bool,
}

/// Sessions, the requests that they share, and the clock.
pub(crate) struct Rig {
    pub(crate) places: Vec<Place>,
    pub(crate) arrivals: Requests,
    pub(crate) recorder: Recorder<Counts>,
    pub(crate) now_ns: u64,
    pub(crate) window: Window,
}

impl Rig {
    /// Before the trial begins.
    pub(crate) fn new(asked: Asked) -> Self {
        let machines = asked.machines();
        let profile = profile();
        let place = |id| {
            let plan = machines.plan(id, asked.connections, &profile, 1);
            Place {
                session: machines.session(&plan),
                slot: Slot::Planned((plan.connect_at_ns != u64::MAX).then_some(plan.connect_at_ns)),
                open_by_ns: plan.open_by_ns,
                wire: Vec::new(),
                full: false,
            }
        };
        let share = Share { index: 0, of: 1 };
        let arrivals = machines.arrivals(share, asked.connections, &profile, 1);
        let mut rig = Self {
            places: (0..asked.connections).map(place).collect(),
            arrivals: arrivals.expect("requests that sessions share"),
            recorder: Recorder::default(),
            now_ns: 0,
            window: profile.window(),
        };
        for id in 0..rig.places.len() {
            rig.looked(id);
        }
        rig
    }

    /// The same, with every connection open. The first request is due at the window's start.
    pub(crate) fn open(asked: Asked) -> Self {
        let mut rig = Self::new(asked);
        rig.until_ms(99);
        for id in 0..rig.places.len() {
            rig.opened(id);
        }
        rig
    }

    /// Lets time pass, millisecond by millisecond. Sessions do what is due; the server does nothing.
    pub(crate) fn until_ms(&mut self, end_ms: u64) {
        self.step();
        while self.now_ns < end_ms * NS_PER_MS {
            self.now_ns += NS_PER_MS;
            self.step();
        }
    }

    /// Does what is due now.
    pub(crate) fn step(&mut self) {
        for id in 0..self.places.len() {
            self.due(id);
            self.looked(id);
        }
        self.hand_out();
    }

    fn due(&mut self, id: usize) {
        let now_ns = self.now_ns;
        let place = &mut self.places[id];
        match place.slot {
            Slot::Planned(Some(at_ns)) if at_ns <= now_ns => self.connect(id),
            Slot::Connecting(open_by_ns) if open_by_ns <= now_ns => {
                self.disconnected(id, Disconnect::TimedOut);
            }
            Slot::Connected
                if place
                    .session
                    .next_due_ns()
                    .is_some_and(|due_ns| due_ns <= now_ns) =>
            {
                place.session.woke(now_ns, &mut self.recorder);
                self.pump(id);
            }
            _ => {}
        }
    }

    fn connect(&mut self, id: usize) {
        let place = &mut self.places[id];
        place.slot = Slot::Connecting(place.open_by_ns);
        place.session.connecting(self.now_ns, &mut self.recorder);
    }

    /// The server accepts a connection.
    pub(crate) fn opened(&mut self, id: usize) {
        assert!(matches!(self.places[id].slot, Slot::Connecting(_)));
        let place = &mut self.places[id];
        place.slot = Slot::Connected;
        place.session.connected(self.now_ns, &mut self.recorder);
        self.pump(id);
        self.happened(id);
    }

    /// The server sends these bytes.
    pub(crate) fn sends(&mut self, id: usize, bytes: &[u8]) {
        assert_eq!(self.places[id].slot, Slot::Connected);
        let session = &mut self.places[id].session;
        session.received(self.now_ns, bytes, &mut self.recorder);
        if session.phase() == Phase::Ended {
            self.close(id);
        } else {
            self.pump(id);
        }
        self.happened(id);
    }

    /// A right answer to `GET /`.
    pub(crate) fn answers(&mut self, id: usize) {
        self.sends(id, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }

    /// The server, or what is between, ends the connection.
    pub(crate) fn ends(&mut self, id: usize, how: Disconnect) {
        self.disconnected(id, how);
        self.happened(id);
    }

    /// Its socket takes bytes again.
    pub(crate) fn has_room(&mut self, id: usize) {
        self.places[id].full = false;
        self.pump(id);
        self.happened(id);
    }

    fn disconnected(&mut self, id: usize, how: Disconnect) {
        let session = &mut self.places[id].session;
        session.disconnected(self.now_ns, how, &mut self.recorder);
        self.close(id);
    }

    fn close(&mut self, id: usize) {
        let place = &mut self.places[id];
        place.wire.clear();
        place.full = false;
        self.plan_connection(id);
    }

    fn plan_connection(&mut self, id: usize) {
        let now_ns = self.now_ns;
        let place = &mut self.places[id];
        place.slot = Slot::Planned(None);
        match place.session.unconnected(now_ns) {
            Unconnected::Over => place.slot = Slot::Over,
            Unconnected::Waits => {}
            Unconnected::Connects { at_ns, open_by_ns } => {
                place.open_by_ns = open_by_ns;
                place.slot = Slot::Planned(Some(at_ns));
                if at_ns <= now_ns {
                    self.connect(id);
                }
            }
        }
    }

    fn pump(&mut self, id: usize) {
        let place = &mut self.places[id];
        while !place.full
            && let Some(transmit) = place.session.transmit(self.now_ns)
        {
            place.wire.extend_from_slice(transmit.head);
            place.wire.extend_from_slice(transmit.body);
            place.session.sent(self.now_ns, &mut self.recorder);
        }
        if place.session.phase() == Phase::Ended {
            self.close(id);
        }
    }

    /// After anything happened to a session, it may have become free.
    fn happened(&mut self, id: usize) {
        self.looked(id);
        self.hand_out();
    }

    fn looked(&mut self, id: usize) {
        let place = u32::try_from(id).expect("few sessions");
        self.arrivals.look(place, &self.places[id].session);
    }

    fn hand_out(&mut self) {
        while let Some(place) = <Requests as Arrivals<H1Session>>::next(
            &mut self.arrivals,
            self.now_ns,
            &mut self.recorder,
        ) {
            let id = place as usize;
            let session = &mut self.places[id].session;
            self.arrivals.hand_out(place, session, &mut self.recorder);
            match self.places[id].slot {
                Slot::Connected => self.pump(id),
                Slot::Planned(_) => self.plan_connection(id),
                Slot::Connecting(_) | Slot::Over => {}
            }
            self.looked(id);
        }
    }

    /// Ends the trial, and returns what sessions counted. The ledger must account for every request.
    pub(crate) fn finish(&mut self) -> Counts {
        <Requests as Arrivals<H1Session>>::finish(
            &mut self.arrivals,
            self.now_ns,
            &mut self.recorder,
        );
        for place in &mut self.places {
            place.session.finish(self.now_ns, &mut self.recorder);
        }
        let ledger = &self.recorder.ledger;
        assert!(ledger.is_whole(), "{ledger:?}");
        let mut counts = Counts::default();
        for claim in &self.recorder.claims {
            counts.merge(claim);
        }
        counts
    }

    /// How many measured requests were due, answered, errored and lost.
    pub(crate) fn account(&self) -> [u64; 4] {
        let ledger = &self.recorder.ledger;
        [
            ledger.frames_due,
            ledger.frames_answered,
            ledger.frames_errored,
            ledger.frames_lost,
        ]
    }

    /// The reasons with their counts.
    pub(crate) fn reasons(&self) -> Vec<(&str, u64)> {
        let reasons = self.recorder.ledger.reasons.iter();
        reasons
            .map(|(name, count)| (name.as_str(), *count))
            .collect()
    }
}
