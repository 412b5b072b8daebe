//! What a case is, and the list of all of them.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_host::http::{self, Metrics, Response};

use super::client::{AT_ONCE, Connection, Session, Upgrade, Verdict};
use super::setup::{BASE, Setup};
use super::subject::{Bench, Gateway, Simulator};
use super::{
    drain, environment, flush, frames, http_surface, in_flight, inference_errors,
    inference_request, limits, metrics, overflow, rejected_frames, start,
};
use crate::manifest::InferenceTransport;

/// Numbers of sessions whose synthetic audio never coincides: windows begin at multiples of 160 plus the number.
const DISTINCT_SESSIONS: u64 = 160;

/// How long one HTTP request may take.
const HTTP_LIMIT: Duration = Duration::from_secs(3);

/// A metric's name and its labels.
pub(super) type Series = (&'static str, &'static [(&'static str, &'static str)]);

/// The value of one series. One with labels that was never touched may be absent: it reads as 0.
pub(super) fn value(metrics: &Metrics, (name, labels): Series) -> f64 {
    metrics.get(name, labels).unwrap_or(0.0)
}

/// One sentence of the contract and the function that tries it.
pub(super) struct Case {
    pub(super) id: Cow<'static, str>,
    pub(super) title: Cow<'static, str>,
    pub(super) expected: Cow<'static, str>,
    /// The shortest delay, of whatever process, that can turn a pass into a failure.
    pub(super) tolerance: Duration,
    pub(super) trial: Trial,
}

type OnSite = Box<dyn Fn(&Site<'_>) -> Verdict + Send + Sync>;
type OnBench = Box<dyn Fn(&dyn Bench) -> Verdict + Send + Sync>;

/// What a case runs against.
pub(super) enum Trial {
    /// A gateway that runs in a setup.
    OnSite {
        setup: &'static Setup,
        needs: Needs,
        run: OnSite,
    },
    /// A gateway that the case starts itself, or tries to.
    OnBench(OnBench),
}

/// What a case needs beside the gateway's address and the contract's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needs {
    /// Nothing: the case runs against a URL, too.
    Address,
    /// The setup's variables, the gateway's process, or the simulator.
    Start,
}

/// A case in the base setup that needs nothing but the gateway's address.
pub(super) fn case(
    id: impl Into<Cow<'static, str>>,
    title: impl Into<Cow<'static, str>>,
    expected: impl Into<Cow<'static, str>>,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    Case {
        id: id.into(),
        title: title.into(),
        expected: expected.into(),
        tolerance: AT_ONCE,
        trial: Trial::OnSite {
            setup: &BASE,
            needs: Needs::Address,
            run: Box::new(run),
        },
    }
}

impl Case {
    /// The same case in a setup of its own kind.
    pub(super) fn in_setup(mut self, special: &'static Setup) -> Self {
        if let Trial::OnSite { setup, needs, .. } = &mut self.trial {
            (*setup, *needs) = (special, Needs::Start);
        }
        self
    }

    /// The same case, when a delay shorter than [`AT_ONCE`], the deadline of most, can fail it.
    pub(super) fn failed_by_delay_of(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The same case, not to be run against a URL.
    pub(super) fn only_when_started(mut self) -> Self {
        if let Trial::OnSite { needs, .. } = &mut self.trial {
            *needs = Needs::Start;
        }
        self
    }
}

/// Every case, in the order of the contract.
pub(super) fn all() -> Vec<Case> {
    [
        http_surface::cases(),
        start::cases(),
        frames::cases(),
        rejected_frames::cases(),
        flush::cases(),
        in_flight::cases(),
        inference_request::cases(),
        inference_errors::cases(),
        overflow::cases(),
        limits::cases(),
        drain::cases(),
        metrics::cases(),
        environment::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A gateway that runs, as cases see it.
pub(super) struct Site<'a> {
    pub(super) address: SocketAddr,
    pub(super) setup: &'static Setup,
    pub(super) token: Option<&'a str>,
    pub(super) transport: Option<InferenceTransport>,
    pub(super) started: Option<Started<'a>>,
    /// Gives each session its own audio; shared by all sites of a run.
    pub(super) session_numbers: &'a AtomicU64,
}

/// The processes of a gateway that was started for the case's setup.
#[derive(Clone, Copy)]
pub(super) struct Started<'a> {
    pub(super) gateway: &'a dyn Gateway,
    pub(super) simulator: &'a dyn Simulator,
}

impl Site<'_> {
    /// The gateway's process.
    pub(super) fn gateway(&self) -> Result<&dyn Gateway, String> {
        self.started
            .map(|started| started.gateway)
            .ok_or_else(|| "the gateway was not started here".to_owned())
    }

    /// The simulator behind the gateway.
    pub(super) fn simulator(&self) -> Result<&dyn Simulator, String> {
        self.started
            .map(|started| started.simulator)
            .ok_or_else(|| "there is no simulator".to_owned())
    }

    /// A session upgraded in another way than the usual.
    pub(super) fn upgrade(&self, how: &Connection) -> Result<Upgrade, String> {
        let number = self.session_numbers.fetch_add(1, Ordering::Relaxed) % (DISTINCT_SESSIONS - 1);
        // Session 0 belongs to the golden vector.
        self.upgrade_as(how, number + 1)
    }

    /// The same with a given session number.
    pub(super) fn upgrade_as(&self, how: &Connection, number: u64) -> Result<Upgrade, String> {
        let mut how = how.clone();
        if let (None, Some(token)) = (&how.authorization, self.token) {
            how.authorization = Some(format!("Bearer {token}"));
        }
        Session::open(self.address, &how, number)
    }

    /// An upgraded session that has not sent its start message.
    pub(super) fn connect(&self) -> Result<Session, String> {
        accepted(self.upgrade(&Connection::default())?)
    }

    /// A session that has sent its start message.
    pub(super) fn session(&self) -> Result<Session, String> {
        let mut session = self.connect()?;
        session.start()?;
        Ok(session)
    }

    pub(super) fn flush_interval(&self) -> Duration {
        self.millis("FLUSH_INTERVAL_MS", 1000)
    }

    pub(super) fn jitter(&self) -> Duration {
        self.millis("FLUSH_PHASE_JITTER_MS", 1000)
    }

    /// A variable of the setup that is a time.
    pub(super) fn millis(&self, name: &str, default: u32) -> Duration {
        Duration::from_millis(self.setup.number(name, default).into())
    }

    /// More than the longest time from a frame to the message that names it, when nothing is wrong.
    pub(super) fn patience(&self) -> Duration {
        2 * self.flush_interval()
            + self.jitter()
            + 2 * self.setup.model_delay()
            + Duration::from_millis(1500)
    }

    /// `GET path`; any status is an answer.
    pub(super) fn get(&self, path: &str) -> Result<Response, String> {
        http::get(&format!("http://{}{path}", self.address), HTTP_LIMIT)
            .map_err(|error| error.to_string())
    }

    /// The metrics now.
    pub(super) fn metrics(&self) -> Result<Metrics, String> {
        let answer = self.get("/metrics")?;
        if answer.status != 200 {
            return Err(format!("GET /metrics: status {}", answer.status));
        }
        Metrics::parse(&answer.body)
    }

    /// Reads the metrics again and again until `reached` holds of them; the last scrape with whether it did.
    ///
    /// A gateway may enter what a session did with its next flush.
    pub(super) fn metrics_until(
        &self,
        reached: impl Fn(&Metrics) -> bool,
    ) -> Result<(Metrics, bool), String> {
        poll(self.patience(), || {
            let scrape = self.metrics()?;
            let done = reached(&scrape);
            Ok((scrape, done))
        })
    }
}

/// Asks again until the answer says that it is done, or `limit` is over: the last answer.
pub(super) fn poll<T>(
    limit: Duration,
    mut ask: impl FnMut() -> Result<(T, bool), String>,
) -> Result<(T, bool), String> {
    let deadline = std::time::Instant::now() + limit;
    loop {
        let (answer, done) = ask()?;
        if done || std::time::Instant::now() >= deadline {
            return Ok((answer, done));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The session of an upgrade that should have been granted.
pub(super) fn accepted(upgrade: Upgrade) -> Result<Session, String> {
    match upgrade {
        Upgrade::Done(session) => Ok(session),
        Upgrade::Refused { status, .. } => Err(format!("the upgrade was answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_plain() {
        let cases = all();
        let ids: BTreeSet<&str> = cases.iter().map(|case| &*case.id).collect();
        assert_eq!(ids.len(), cases.len());
        assert!(cases.len() >= 35, "{} cases", cases.len());
        for case in &cases {
            let plain = |letter: char| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
            };
            assert!(case.id.chars().all(plain), "{}", case.id);
            assert!(
                !case.title.is_empty() && !case.expected.is_empty(),
                "{}",
                case.id
            );
        }
    }
}
