//! The cases of a dialect, for `plimsoll check`: what any server that speaks it must do before it can be measured.
//!
//! There is no contract as for other workloads: a dialect says of itself what holds ([`crate::dialect::Facts`]), and a case
//! that does not apply says why it is not run. A case is one function in the file of its group and one line in that
//! file's list.
//!
//! - Groups: `opening`, `speech`, `session`.
//! - `site`: the server that cases are tried on, and what they share. `talk`: a session, with `line` below it, `audio` for
//!   what it says and `heard` for what comes back.
//!
//! Cases run one after the other, because recognisers carry few streams; those about one spoken session share it. All waits
//! are so long that a checker kept from its core for a moment fails nobody, so no case is ever in doubt.

mod audio;
mod heard;
mod line;
mod opening;
mod session;
mod site;
mod speech;
mod talk;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_conformance::location::{Form, Location};
use plimsoll_conformance::subject::{Environment, Server};
use plimsoll_conformance::{CaseResult, Check, CheckReport, Level, Options as How, Subject};
use plimsoll_core::secret::Secrets;
use plimsoll_speech::clip::Clip;

use crate::dialect::{Dialect, Key, KeyPlace, OptionError, Options, Transport};
use site::Site;

pub use site::Times;

/// Makes the dialect of options: a case may need another length of message, or another key, than the user's.
type Make = dyn Fn(&Options) -> Result<Box<dyn Dialect>, OptionError> + Send + Sync;

/// The cases of one dialect.
pub struct DialectSuite {
    make: Box<Make>,
    options: Options,
    clips: Arc<[Clip]>,
    times: Times,
}

impl DialectSuite {
    /// The cases of the dialect that `make` makes, with the user's options. Sessions say the first three of these clips; fewer
    /// will do, but say less of the server.
    #[must_use]
    pub fn new(
        make: impl Fn(&Options) -> Result<Box<dyn Dialect>, OptionError> + Send + Sync + 'static,
        options: Options,
        clips: Arc<[Clip]>,
    ) -> Self {
        Self {
            make: Box::new(make),
            options,
            clips,
            times: Times::default(),
        }
    }

    /// The same with other times.
    #[must_use]
    pub fn with_times(self, times: Times) -> Self {
        Self { times, ..self }
    }

    /// The options of a check of this subject: the path and the token of a URL, where the user gave no others.
    fn options_for(&self, location: &Location, token: Option<&str>) -> Options {
        let mut options = self.options.clone();
        options.path = options.path.or_else(|| location.path.clone());
        options.key = options.key.or_else(|| {
            token.map(|token| Key {
                value: token.to_owned().into(),
                place: KeyPlace::Header,
            })
        });
        options
    }

    /// The site of a check. `started` keeps a target that is started for it.
    fn site<'a>(
        &'a self,
        subject: &Subject<'_>,
        how: &How<'a>,
        numbers: &'a AtomicU64,
        started: &mut Option<Box<dyn Server>>,
    ) -> Result<Site<'a>, String> {
        let made = (self.make)(&self.options).map_err(|error| error.to_string())?;
        if self.clips.is_empty() {
            return Err("there is no clip to say; give a corpus with at least one".to_owned());
        }
        let (location, token) = match subject {
            Subject::Url { url, token } => {
                (Location::of_url(url, form_of(&*made))?, token.as_deref())
            }
            Subject::Target { bench, .. } => {
                let server = started.insert(bench.start(&Environment::new())?);
                (Location::of_address(server.address()), None)
            }
        };
        Ok(Site::new(
            &*self.make,
            self.options_for(&location, token),
            &self.clips,
            site::Server {
                address: location.address,
                host: location.host,
                times: self.times,
                stop: how.stop,
                numbers,
            },
        ))
    }
}

/// How the URL of a server of a dialect begins.
fn form_of(dialect: &dyn Dialect) -> Form {
    match dialect.connect().transport {
        Transport::WebSocket => Form::Http,
        Transport::Tcp => Form::Tcp,
    }
}

/// Why a case did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Miss {
    /// The server did something else.
    Failed(String),
    /// It does not apply, for this reason.
    NotRun(String),
}

impl<S: Into<String>> From<S> for Miss {
    fn from(seen: S) -> Self {
        Self::Failed(seen.into())
    }
}

/// What a case saw: `Ok` when it is as expected.
type Outcome = Result<String, Miss>;

/// A reason for which a case does not apply.
fn not_run(reason: impl Into<String>) -> Miss {
    Miss::NotRun(reason.into())
}

/// One sentence about servers of a dialect, and the function that tries it.
struct Case {
    /// Lower-case letters and dashes; the same in every version of the tool.
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    level: Level,
    run: fn(&Site<'_>) -> Outcome,
}

/// A case that a server must pass.
const fn case(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: fn(&Site<'_>) -> Outcome,
) -> Case {
    Case {
        id,
        title,
        expected,
        level: Level::Must,
        run,
    }
}

impl Case {
    /// The same case, which a server should pass and need not: it can be measured all the same.
    const fn should(self) -> Self {
        Self {
            level: Level::Should,
            ..self
        }
    }

    fn result(&self, outcome: Outcome, how: &How<'_>) -> CaseResult {
        let (pass, seen, skipped) = match outcome {
            Ok(seen) => (true, seen, None),
            Err(Miss::Failed(seen)) => (false, seen, None),
            Err(Miss::NotRun(reason)) => (false, "not run".to_owned(), Some(reason)),
        };
        let deviation = how.deviations.and_then(|reasons| reasons.get(self.id));
        CaseResult {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            level: self.level,
            pass,
            expected: self.expected.to_owned(),
            seen,
            skipped,
            disturbed: None,
            deviation: deviation.cloned(),
            attempts: None,
        }
    }
}

/// All cases, in the order in which they run.
fn cases() -> impl Iterator<Item = Case> {
    opening::cases()
        .into_iter()
        .chain(speech::cases())
        .chain(session::cases())
}

impl Check for DialectSuite {
    fn case_ids(&self) -> Vec<String> {
        cases().map(|case| case.id.to_owned()).collect()
    }

    fn form(&self) -> Form {
        (self.make)(&self.options).map_or(Form::Http, |dialect| form_of(&*dialect))
    }

    fn run(
        &self,
        subject: &Subject<'_>,
        how: &How<'_>,
        on_case: &mut dyn FnMut(&CaseResult),
    ) -> CheckReport {
        let (numbers, mut started) = (AtomicU64::new(0), None);
        let site = self.site(subject, how, &numbers, &mut started);
        let mut secrets = Secrets::default();
        if let Some(key) = site.as_ref().ok().and_then(|site| site.key()) {
            secrets.add(key.expose());
        }
        let is_stopped = || {
            how.stop
                .is_some_and(plimsoll_host::signals::Stop::requested)
        };
        let wanted = cases().filter(|case| how.only.is_none_or(|only| only(case.id)));
        let results = wanted.map(|case| {
            let outcome = match &site {
                _ if is_stopped() => Err(not_run("interrupted")),
                Err(error) => Err(error.clone().into()),
                Ok(site) => (case.run)(site),
            };
            let outcome = match is_stopped() {
                true => Err(not_run("interrupted")),
                false => outcome,
            };
            let mut result = case.result(outcome, how);
            // A server may repeat a key where it refuses it.
            result.seen = secrets.scrub(&result.seen).into_owned();
            on_case(&result);
            result
        });
        report(subject, results.collect())
    }
}

fn report(subject: &Subject<'_>, cases: Vec<CaseResult>) -> CheckReport {
    let count = |wanted: fn(&CaseResult) -> bool| cases.iter().filter(|case| wanted(case)).count();
    CheckReport {
        target: match subject {
            Subject::Url { url, .. } => url.clone(),
            Subject::Target { name, .. } => name.clone(),
        },
        passed: count(|case| case.pass),
        failed: count(|case| case.failed() && case.decides()),
        failed_should: count(|case| case.failed() && !case.level.is_must()),
        deviations: count(|case| case.failed() && case.level.is_must() && case.deviation.is_some()),
        skipped: count(|case| case.skipped.is_some()),
        disturbed: 0,
        cases,
    }
}

#[cfg(test)]
mod tests;
