//! What a case is, and the running server that it is tried on.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_host::http::{self, Metrics, Response};
use serde::Serialize;

use super::setup::Setup;
use super::socket::{Connection, Socket, Upgrade};
use super::subject::{Bench, Server};
use super::suite::{Suite, companion_name};

/// What a case saw: `Ok` when it is as expected.
pub type Verdict = Result<String, String>;

/// Within this time a server must do what it has to do "at once".
pub const AT_ONCE: Duration = Duration::from_millis(500);

/// How long one HTTP request may take.
const HTTP_LIMIT: Duration = Duration::from_secs(3);

/// A metric's name and its labels.
pub type Series = (&'static str, &'static [(&'static str, &'static str)]);

/// The value of one series. One with labels that was never touched may be absent: it reads as 0.
#[must_use]
pub fn value(metrics: &Metrics, (name, labels): Series) -> f64 {
    metrics.get(name, labels).unwrap_or(0.0)
}

/// One sentence of the contract and the function that tries it.
pub struct Case<S: Suite> {
    /// Lower-case letters, digits and dashes; the same in every version of the tool.
    pub id: Cow<'static, str>,
    /// The sentence of the contract.
    pub title: Cow<'static, str>,
    /// What is to be seen.
    pub expected: Cow<'static, str>,
    /// The shortest delay, of whatever process, that can turn a pass into a failure.
    pub tolerance: Duration,
    /// Whether a server fails that does not pass it.
    pub level: Level,
    /// Whether it takes a minute or so, so that a quick check leaves it out.
    pub slow: bool,
    /// What it runs against, and how it is tried.
    pub trial: Trial<S>,
}

/// How much a case weighs, in the words of RFC 2119.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A server that does not pass fails the check.
    #[default]
    Must,
    /// A server that does not pass is told so, and may still conform.
    Should,
}

impl Level {
    /// Whether it is the usual one.
    #[must_use]
    pub fn is_must(&self) -> bool {
        *self == Self::Must
    }
}

/// A case's function that is given a server that runs.
pub type OnSite<S> = Box<dyn Fn(&Site<'_, S>) -> Verdict + Send + Sync>;

/// A case's function that starts servers itself.
pub type OnBench = Box<dyn Fn(&dyn Bench) -> Verdict + Send + Sync>;

/// What a case runs against.
pub enum Trial<S: Suite> {
    /// A server that runs in a setup.
    OnSite {
        /// Its variables.
        setup: &'static Setup,
        /// What else the case needs.
        needs: Needs,
        /// The case.
        run: OnSite<S>,
    },
    /// A server that the case starts itself, or tries to.
    OnBench(OnBench),
}

/// What a case needs beside the server's address and the contract's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Nothing: the case runs against a URL, too.
    Address,
    /// The server's process, or its companion.
    Start,
    /// The variables of its setup.
    Variables,
}

impl<S: Suite> Case<S> {
    /// A case that needs nothing but the server's address.
    pub fn new(
        id: impl Into<Cow<'static, str>>,
        title: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
        setup: &'static Setup,
        run: impl Fn(&Site<'_, S>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            expected: expected.into(),
            tolerance: AT_ONCE,
            level: Level::Must,
            slow: false,
            trial: Trial::OnSite {
                setup,
                needs: Needs::Address,
                run: Box::new(run),
            },
        }
    }

    /// A case that starts servers itself.
    pub fn on_bench(
        id: impl Into<Cow<'static, str>>,
        title: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
        run: impl Fn(&dyn Bench) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            expected: expected.into(),
            tolerance: AT_ONCE,
            level: Level::Must,
            slow: false,
            trial: Trial::OnBench(Box::new(run)),
        }
    }

    /// The same case in a setup whose variables it needs.
    #[must_use]
    pub fn in_setup(mut self, special: &'static Setup) -> Self {
        if let Trial::OnSite { setup, needs, .. } = &mut self.trial {
            (*setup, *needs) = (special, Needs::Variables);
        }
        self
    }

    /// The same case, when a delay shorter than [`AT_ONCE`], the deadline of most, can fail it.
    #[must_use]
    pub fn failed_by_delay_of(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The same case, which takes a minute or so.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// The same case, which a server should pass and need not.
    #[must_use]
    pub fn should(mut self) -> Self {
        self.level = Level::Should;
        self
    }

    /// The same case, not to be run against a URL.
    #[must_use]
    pub fn only_when_started(mut self) -> Self {
        if let Trial::OnSite { needs, .. } = &mut self.trial {
            *needs = Needs::Start.max(*needs);
        }
        self
    }
}

/// A server that runs, as cases see it.
pub struct Site<'a, S: Suite> {
    /// What the cases belong to.
    pub suite: &'a S,
    /// Where it serves its clients.
    pub address: SocketAddr,
    /// Where it answers HTTP about itself.
    pub http: SocketAddr,
    /// The path of the URL that the user gave.
    pub path: Option<&'a str>,
    /// Its variables.
    pub setup: &'static Setup,
    /// What the user gave to be sent as `Authorization: Bearer`.
    pub token: Option<&'a str>,
    /// Its processes, if it was started for its setup.
    pub started: Option<Started<'a, S>>,
    /// Tells sockets apart; shared by all sites of a run.
    pub numbers: &'a AtomicU64,
}

/// The processes of a server that was started for the case's setup.
pub struct Started<'a, S: Suite> {
    /// The server itself.
    pub server: &'a dyn Server,
    /// What runs beside it.
    pub companion: &'a S::Companion,
}

impl<S: Suite> Site<'_, S> {
    /// The server's process.
    ///
    /// # Errors
    /// It was not started here.
    pub fn server(&self) -> Result<&dyn Server, String> {
        let started = self.started.as_ref();
        started
            .map(|started| started.server)
            .ok_or_else(|| "the target was not started here".to_owned())
    }

    /// Where it serves on the port of this variable; where it has none of that name, its only address.
    #[must_use]
    pub fn at(&self, variable: &str) -> SocketAddr {
        let started = self.started.as_ref();
        let own = started.and_then(|started| started.server.at(variable));
        own.unwrap_or(self.address)
    }

    /// What runs beside the server.
    ///
    /// # Errors
    /// It was not started here.
    pub fn companion(&self) -> Result<&S::Companion, String> {
        let started = self.started.as_ref();
        started
            .map(|started| started.companion)
            .ok_or_else(|| format!("there is no {}", companion_name::<S>()))
    }

    /// A number that no other socket of this run has.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A socket upgraded in this way, with the user's token where `how` has none.
    ///
    /// # Errors
    /// The upgrade was not answered, or not as RFC 6455 says.
    pub fn upgrade(&self, how: &Connection, number: u64) -> Result<Upgrade<Socket>, String> {
        let mut how = how.clone();
        if let (None, Some(token)) = (&how.authorization, self.token) {
            how.authorization = Some(format!("Bearer {token}"));
        }
        Socket::open(self.address, &how, number)
    }

    /// A variable of the setup that is a time.
    #[must_use]
    pub fn millis(&self, name: &str, default: u32) -> Duration {
        Duration::from_millis(self.setup.number(name, default).into())
    }

    /// `GET path`; any status is an answer.
    ///
    /// # Errors
    /// There was no answer.
    pub fn get(&self, path: &str) -> Result<Response, String> {
        http::get(&format!("http://{}{path}", self.http), HTTP_LIMIT)
            .map_err(|error| error.to_string())
    }

    /// The metrics now.
    ///
    /// # Errors
    /// There was no answer, or it cannot be read.
    pub fn metrics(&self) -> Result<Metrics, String> {
        let answer = self.get("/metrics")?;
        if answer.status != 200 {
            return Err(format!("GET /metrics: status {}", answer.status));
        }
        Metrics::parse(&answer.body)
    }

    /// Reads the metrics again and again until `reached` holds of them or `limit` is over; the last scrape with whether
    /// it did.
    ///
    /// # Errors
    /// As [`Site::metrics`].
    pub fn metrics_within(
        &self,
        limit: Duration,
        reached: impl Fn(&Metrics) -> bool,
    ) -> Result<(Metrics, bool), String> {
        poll(limit, || {
            let scrape = self.metrics()?;
            let done = reached(&scrape);
            Ok((scrape, done))
        })
    }
}

/// Asks again until the answer says that it is done, or `limit` is over: the last answer.
///
/// # Errors
/// The first error of `ask`.
pub fn poll<T>(
    limit: Duration,
    mut ask: impl FnMut() -> Result<(T, bool), String>,
) -> Result<(T, bool), String> {
    let deadline = Instant::now() + limit;
    loop {
        let (answer, done) = ask()?;
        if done || Instant::now() >= deadline {
            return Ok((answer, done));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
