//! The session machines of a trial: its connections, and the requests that go to them.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::latency::Quantiles;
use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::{SessionPlan, session_plan};
use plimsoll_core::session::{Account, SessionMachines, Share};

use plimsoll_workload::Findings;
use serde::{Deserialize, Serialize};

use crate::account::Counts;
use crate::arrivals::{AtOnce, Dispatch, Requests, Source};
use crate::schedule::{Rates, Schedule};
use crate::session::{Shared, Speaks};

/// What the sessions of a trial found out besides their report.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Found {
    /// What they counted.
    pub counts: Counts,
    /// Latency from the write, in a closed loop.
    pub from_write: Option<Quantiles>,
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

/// When requests are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// By the clock.
    Rates(Rates),
    /// As soon as a connection is free, as in a closed loop.
    AtOnce,
}

/// Connections of one version of HTTP.
#[derive(Debug)]
pub struct Connections<S: Speaks> {
    shared: Arc<Shared<S::Template>>,
    load: Load,
    dispatch: Dispatch,
    /// The most requests at once on a connection.
    streams: u32,
    found: Mutex<Found>,
}

impl<S: Speaks> Connections<S> {
    pub(crate) fn new(
        shared: Shared<S::Template>,
        load: Load,
        dispatch: Dispatch,
        streams: u32,
    ) -> Self {
        Self {
            shared: Arc::new(shared),
            load,
            dispatch,
            streams,
            found: Mutex::default(),
        }
    }

    /// What the sessions found out; ask after the trial is settled.
    pub(crate) fn found(&self) -> Found {
        let found = self.found.lock();
        found.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S: Speaks> SessionMachines for Connections<S> {
    type Session = S;
    type Arrivals = Requests;

    /// Connections open over the ramp. A connection for each request opens with its request.
    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        let plan = session_plan(id, sessions, profile, seed);
        if self.shared.a_connection_each {
            return SessionPlan {
                connect_at_ns: SessionPlan::WITH_WORK,
                ..plan
            };
        }
        plan
    }

    fn session(&self, plan: &SessionPlan) -> S {
        S::new(Arc::clone(&self.shared), plan, self.streams)
    }

    fn arrivals(
        &self,
        share: Share,
        sessions: u32,
        profile: &Profile,
        seed: u64,
    ) -> Option<Requests> {
        let (source, dispatch) = match self.load {
            Load::Rates(rates) => {
                let schedule = Schedule::new(rates, share, profile, seed);
                (Source::Clock(schedule), self.dispatch)
            }
            // Each connection asks for itself. There is always a further request, so queues would never end.
            Load::AtOnce => (Source::AtOnce(AtOnce::new(profile)), Dispatch::Pool),
        };
        Some(Requests::new(source, dispatch, sessions, self.streams))
    }

    fn settle(&self, claims: &[Counts], account: Account<'_>) {
        let mut counts = Counts::default();
        for claim in claims {
            counts.merge(claim);
        }
        let from_write = account.latency.summary().newest.from_write;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        *found = Found {
            counts,
            from_write: (self.load == Load::AtOnce).then_some(from_write),
        };
    }
}
