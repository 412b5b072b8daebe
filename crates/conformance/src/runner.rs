//! Starts the setups, runs their cases, and repeats those that did not pass while something kept a process from its core.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_host::signals::Stop;

use super::case::{Case, Needs, Site, Trial};
use super::location::{Form, Location};
use super::running::{Running, Target};
use super::setup::{Setup, Sharing};
use super::subject::{Bench, Subject};
use super::suite::{Suite, companion_name};
use super::watch::{Kept, Watch, Witnesses};
use super::{CaseResult, CheckReport};

/// Cases that run at a time, where they share a server.
const CASES_AT_ONCE: usize = 6;

/// Setups that run at a time, each with a server of its own. Nearly all of their time the cases wait.
const SETUPS_AT_ONCE: usize = 8;

/// The pauses before a case is repeated: what disturbed it may end meanwhile.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(1000),
    Duration::from_millis(3000),
];

/// Cases of all checks of this process share the machine; one that is repeated has it alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// How to run.
#[derive(Default, Clone, Copy)]
pub struct Options<'a> {
    /// Run only the cases whose id this accepts; the others do not appear in the report.
    pub only: Option<&'a (dyn Fn(&str) -> bool + Sync)>,
    /// Run only the cases that take less than a minute; the others do not appear in the report.
    pub quick: bool,
    /// When it is requested, no further case is begun: the rest is reported as not run.
    pub stop: Option<&'a Stop>,
    /// Cases that the target does not pass by its own account, each with the reason.
    pub deviations: Option<&'a BTreeMap<String, String>>,
    /// What counts as a disturbance.
    pub witnesses: Witnesses,
}

/// [`super::Check::run`].
pub(super) fn run<S: Suite>(
    suite: &S,
    subject: &Subject<'_>,
    options: &Options<'_>,
    on_case: &mut dyn FnMut(&CaseResult),
) -> CheckReport {
    let cases: Vec<Case<S>> = suite
        .cases()
        .into_iter()
        .filter(|case| options.only.is_none_or(|only| only(&case.id)))
        .filter(|case| !(options.quick && case.slow))
        .collect();
    let mut results: Vec<Option<CaseResult>> = cases.iter().map(|_| None).collect();
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let runner = Runner {
            suite,
            cases: &cases,
            stop: options.stop,
            sender,
            numbers: AtomicU64::new(0),
            deviations: options.deviations,
            witnesses: options.witnesses,
        };
        scope.spawn(move || runner.run(subject));
        for (place, result) in receiver {
            on_case(&result);
            results[place] = Some(result);
        }
    });
    let target = match subject {
        Subject::Url { url, .. } => url.clone(),
        Subject::Target { name, .. } => name.clone(),
    };
    CheckReport::new(target, results.into_iter().flatten().collect())
}

struct Runner<'a, S: Suite> {
    suite: &'a S,
    cases: &'a [Case<S>],
    stop: Option<&'a Stop>,
    sender: Sender<(usize, CaseResult)>,
    numbers: AtomicU64,
    deviations: Option<&'a BTreeMap<String, String>>,
    witnesses: Witnesses,
}

/// How one case ended.
enum End {
    Pass(String),
    Fail(String),
    /// It did not pass, and why that says nothing.
    Disturbed(String, Kept),
    NotRun(String),
}

/// Whether other cases run against the same server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    Alone,
    Others,
}

impl<S: Suite> Runner<'_, S> {
    fn run(&self, subject: &Subject<'_>) {
        match subject {
            Subject::Url { url, token } => self.run_url(url, token.as_deref()),
            Subject::Target { bench, .. } => self.run_target(&Target {
                suite: self.suite,
                bench: *bench,
                numbers: &self.numbers,
                witnesses: self.witnesses,
                starting: Mutex::new(()),
            }),
        }
    }

    fn report(&self, place: usize, end: End, attempts: u32) {
        let case = &self.cases[place];
        let (pass, seen, skipped, disturbed) = match end {
            End::Pass(seen) => (true, seen, None, None),
            End::Fail(seen) => (false, seen, None, None),
            End::Disturbed(seen, kept) => (false, seen, None, Some(kept.to_string())),
            End::NotRun(reason) => (false, "not run".to_owned(), Some(reason), None),
        };
        let result = CaseResult {
            id: case.id.to_string(),
            title: case.title.to_string(),
            level: case.level,
            pass,
            expected: case.expected.to_string(),
            seen,
            skipped,
            disturbed,
            deviation: self
                .deviations
                .and_then(|reasons| reasons.get(&*case.id))
                .cloned(),
            attempts: (attempts > 1).then_some(attempts),
        };
        // The receiver outlives the runner; were it gone, nobody would want the result.
        let _ = self.sender.send((place, result));
    }

    fn report_all(&self, places: &[usize], end: impl Fn() -> End) {
        for place in places {
            self.report(*place, end(), 1);
        }
    }

    fn run_url(&self, url: &str, token: Option<&str>) {
        let (possible, rest): (Vec<usize>, Vec<usize>) = (0..self.cases.len()).partition(
            |place| matches!(&self.cases[*place].trial, Trial::OnSite { needs, .. } if *needs == Needs::Address),
        );
        for place in rest {
            self.report(place, End::NotRun(self.why_not_on_url(place)), 1);
        }
        match Location::of_url(url, Form::Http) {
            Err(error) => self.report_all(&possible, || End::Fail(error.clone())),
            Ok(location) => {
                let site = Site {
                    suite: self.suite,
                    address: location.address,
                    http: location.address,
                    path: location.path.as_deref(),
                    setup: self.suite.defaults(),
                    token,
                    started: None,
                    numbers: &self.numbers,
                };
                let watch = Watch::new(None, (companion_name::<S>(), None), self.witnesses);
                for place in self.first_attempts(&possible, &site, &watch) {
                    self.repeat(place, |place| {
                        self.on_site(place, &site, &watch, Company::Alone)
                    });
                }
            }
        }
    }

    fn why_not_on_url(&self, place: usize) -> String {
        let why = match &self.cases[place].trial {
            Trial::OnSite {
                needs: Needs::Address | Needs::Start,
                ..
            } => match S::COMPANION {
                None => "needs what only a start gives: known variables or its process".to_owned(),
                Some(name) => format!(
                    "needs what only a start gives: known variables, its process or its {name}"
                ),
            },
            Trial::OnSite { setup, .. } => format!("starts it with {}", setup.variables()),
            Trial::OnBench(_) => "starts it itself".to_owned(),
        };
        format!("the target was given by its URL, and this case {why}")
    }

    /// Runs every case once, several setups at a time; then repeats what was disturbed, case by case.
    fn run_target(&self, target: &Target<'_, S>) {
        let (setups, on_bench) = self.by_setup();
        let again = Mutex::new(Vec::new());
        in_threads(&setups, SETUPS_AT_ONCE, |(setup, places)| {
            let _shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
            let (running, disturbed) = self.run_setup(setup, places, target);
            if !disturbed.is_empty() {
                let mut again = again.lock().unwrap_or_else(PoisonError::into_inner);
                again.push((*setup, running, disturbed));
            }
        });
        let again = again.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (setup, running, places) in again {
            for place in places {
                self.repeat(place, |place| match &running {
                    Some(running) => {
                        self.on_site(place, &running.site(target), &running.watch, Company::Alone)
                    }
                    None => match Running::start(setup, target) {
                        Ok(fresh) => {
                            self.on_site(place, &fresh.site(target), &fresh.watch, Company::Alone)
                        }
                        Err(error) => End::Fail(error),
                    },
                });
            }
        }
        self.run_on_bench(&on_bench, target.bench);
    }

    /// The cases of each setup, and those that start servers themselves. A case whose setup is not shared has it for itself.
    fn by_setup(&self) -> (Vec<(&'static Setup, Vec<usize>)>, Vec<usize>) {
        let mut on_bench: Vec<usize> = Vec::new();
        let mut setups: Vec<(&'static Setup, Vec<usize>)> = Vec::new();
        for (place, case) in self.cases.iter().enumerate() {
            match &case.trial {
                Trial::OnBench(_) => on_bench.push(place),
                Trial::OnSite { setup, .. } => {
                    let known = setups
                        .iter_mut()
                        .filter(|_| setup.sharing != Sharing::Alone)
                        .find(|(known, _)| known.name == setup.name);
                    match known {
                        Some((_, places)) => places.push(place),
                        None => setups.push((setup, vec![place])),
                    }
                }
            }
        }
        setups.sort_by_key(|(setup, _)| !setup.lasts_long);
        (setups, on_bench)
    }

    /// Runs the cases of a setup once; the disturbed ones, with what still runs when they are to be repeated there.
    fn run_setup(
        &self,
        setup: &'static Setup,
        places: &[usize],
        target: &Target<'_, S>,
    ) -> (Option<Running<S>>, Vec<usize>) {
        if self.is_stopped() {
            self.report_all(places, interrupted);
            return (None, Vec::new());
        }
        match Running::start(setup, target) {
            Err(error) => {
                self.report_all(places, || End::Fail(error.clone()));
                (None, Vec::new())
            }
            Ok(running) => {
                let again = self.first_attempts(places, &running.site(target), &running.watch);
                let kept = Some(running).filter(|_| setup.sharing != Sharing::Alone);
                (kept, again)
            }
        }
    }

    /// Runs each case once and reports it, unless it was disturbed: those are returned.
    fn first_attempts(&self, places: &[usize], site: &Site<'_, S>, watch: &Watch) -> Vec<usize> {
        let (at_once, company) = match site.setup.sharing {
            Sharing::Together => (CASES_AT_ONCE, Company::Others),
            Sharing::InTurn | Sharing::Alone => (1, Company::Alone),
        };
        self.each_once(places, at_once, |place| {
            self.on_site(place, site, watch, company)
        })
    }

    fn each_once(
        &self,
        places: &[usize],
        at_once: usize,
        run: impl Fn(usize) -> End + Sync,
    ) -> Vec<usize> {
        let again = Mutex::new(Vec::new());
        in_threads(places, at_once, |place| match run(*place) {
            End::Disturbed(..) => {
                let mut again = again.lock().unwrap_or_else(PoisonError::into_inner);
                again.push(*place);
            }
            end => self.report(*place, end, 1),
        });
        again.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a disturbed case again until it passes, or fails undisturbed, or has been disturbed too often.
    fn repeat(&self, place: usize, run: impl Fn(usize) -> End) {
        let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        let mut attempts = 1;
        let mut last = interrupted();
        for pause in PAUSES {
            if self.is_stopped() {
                break;
            }
            thread::sleep(pause);
            attempts += 1;
            last = run(place);
            if !matches!(last, End::Disturbed(..)) {
                break;
            }
        }
        self.report(place, last, attempts);
    }

    fn on_site(&self, place: usize, site: &Site<'_, S>, watch: &Watch, company: Company) -> End {
        self.attempt(place, watch, company, || match &self.cases[place].trial {
            Trial::OnSite { run, .. } => run(site),
            Trial::OnBench(_) => Err("this case starts its own server".to_owned()),
        })
    }

    fn run_on_bench(&self, places: &[usize], bench: &dyn Bench) {
        let watch = Watch::new(None, (companion_name::<S>(), None), self.witnesses);
        let run = |place: usize| {
            self.attempt(place, &watch, Company::Alone, || {
                match &self.cases[place].trial {
                    Trial::OnBench(run) => run(bench),
                    Trial::OnSite { .. } => Err("this case needs a running server".to_owned()),
                }
            })
        };
        let again = {
            let _shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
            self.each_once(places, CASES_AT_ONCE, run)
        };
        for place in again {
            self.repeat(place, run);
        }
    }

    /// Runs a case. A pass stands, whatever disturbed it: a delay makes a server seem later, and nearly all cases demand that something is not late. (Where a
    /// case also demands that it is not early, a delay hides at most its own length.)
    fn attempt(
        &self,
        place: usize,
        watch: &Watch,
        company: Company,
        run: impl FnOnce() -> Result<String, String>,
    ) -> End {
        if self.is_stopped() {
            return interrupted();
        }
        let since = Instant::now();
        match run() {
            Ok(seen) => End::Pass(seen),
            Err(seen) => {
                watch.settle(Instant::now());
                let tolerance = self.cases[place].tolerance;
                let kept = watch.kept_since(since, tolerance, company == Company::Others);
                if kept.disturbs(tolerance) {
                    End::Disturbed(seen, kept)
                } else {
                    End::Fail(seen)
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(Stop::requested)
    }
}

/// Runs `run` with each of `items`, several at once.
fn in_threads<T: Sync>(items: &[T], at_once: usize, run: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..at_once.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(item);
                }
            });
        }
    });
}

fn interrupted() -> End {
    End::NotRun("interrupted".to_owned())
}
