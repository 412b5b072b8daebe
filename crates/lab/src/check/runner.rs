//! Starts the setups and runs their cases.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::registry::{Case, Needs, Site, Started, Trial, all};
use super::setup::{BASE, DEFAULTS, Setup, Sharing};
use super::subject::{Bench, Subject};
use super::{CaseResult, CheckReport};
use crate::manifest::InferenceTransport;
use crate::signals::Stop;

/// Cases that run at a time, where they share a gateway.
const CASES_AT_ONCE: usize = 6;

/// The ids of all cases, in the order of the contract.
#[must_use]
pub fn case_ids() -> Vec<String> {
    all().into_iter().map(|case| case.id.into_owned()).collect()
}

/// How to run.
#[derive(Default, Clone, Copy)]
pub struct Options<'a> {
    /// Run only the cases whose id this accepts; the others do not appear in the report.
    pub only: Option<&'a (dyn Fn(&str) -> bool + Sync)>,
    /// When it is requested, no further case is begun: the rest is reported as not run.
    pub stop: Option<&'a Stop>,
}

/// Runs every case, hands each result to `on_case` as it comes, and reports all in the registry's order.
///
/// A case whose gateway or simulator does not start counts as failed; one that the subject does not allow as skipped.
pub fn run(
    subject: &Subject<'_>,
    options: &Options<'_>,
    mut on_case: impl FnMut(&CaseResult),
) -> CheckReport {
    let cases: Vec<Case> = all()
        .into_iter()
        .filter(|case| options.only.is_none_or(|only| only(&case.id)))
        .collect();
    let mut results: Vec<Option<CaseResult>> = cases.iter().map(|_| None).collect();
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let runner = Runner {
            cases: &cases,
            stop: options.stop,
            sender,
            session_numbers: AtomicU64::new(0),
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

struct Runner<'a> {
    cases: &'a [Case],
    stop: Option<&'a Stop>,
    sender: Sender<(usize, CaseResult)>,
    session_numbers: AtomicU64,
}

/// How one case ended.
enum End {
    Pass(String),
    Fail(String),
    NotRun(String),
}

impl Runner<'_> {
    fn run(&self, subject: &Subject<'_>) {
        match subject {
            Subject::Url { url, token } => self.run_url(url, token.as_deref()),
            Subject::Target {
                transport, bench, ..
            } => self.run_target(*bench, *transport),
        }
    }

    fn report(&self, place: usize, end: End) {
        let case = &self.cases[place];
        let (pass, seen, skipped) = match end {
            End::Pass(seen) => (true, seen, None),
            End::Fail(seen) => (false, seen, None),
            End::NotRun(reason) => (false, "not run".to_owned(), Some(reason)),
        };
        let result = CaseResult {
            id: case.id.to_string(),
            title: case.title.to_string(),
            pass,
            expected: case.expected.to_string(),
            seen,
            skipped,
        };
        // The receiver outlives the runner; were it gone, nobody would want the result.
        let _ = self.sender.send((place, result));
    }

    fn report_all(&self, places: &[usize], end: impl Fn() -> End) {
        for place in places {
            self.report(*place, end());
        }
    }

    fn run_url(&self, url: &str, token: Option<&str>) {
        let (possible, rest): (Vec<usize>, Vec<usize>) = (0..self.cases.len()).partition(
            |place| matches!(&self.cases[*place].trial, Trial::OnSite { needs, .. } if *needs == Needs::Address),
        );
        for place in rest {
            self.report(place, End::NotRun(self.why_not_on_url(place)));
        }
        match resolve(url) {
            Err(error) => self.report_all(&possible, || End::Fail(error.clone())),
            Ok(address) => {
                let site = Site {
                    address,
                    setup: &DEFAULTS,
                    token,
                    transport: None,
                    started: None,
                    session_numbers: &self.session_numbers,
                };
                self.run_on_site(&possible, &site);
            }
        }
    }

    fn why_not_on_url(&self, place: usize) -> String {
        let why = match &self.cases[place].trial {
            Trial::OnSite { setup, .. } if setup.name == BASE.name => {
                "needs what only a start gives: known variables, its process or its simulator"
                    .to_owned()
            }
            Trial::OnSite { setup, .. } => format!("starts it with {}", setup.variables()),
            Trial::OnBench(_) => "starts it with a bad value".to_owned(),
        };
        format!("the target was given by its URL, and this case {why}")
    }

    fn run_target(&self, bench: &dyn Bench, transport: Option<InferenceTransport>) {
        let mut alone: Vec<usize> = Vec::new();
        let mut setups: Vec<(&'static Setup, Vec<usize>)> = Vec::new();
        for (place, case) in self.cases.iter().enumerate() {
            match &case.trial {
                Trial::OnBench(_) => alone.push(place),
                Trial::OnSite { setup, .. } if setup.sharing == Sharing::Alone => {
                    setups.push((setup, vec![place]))
                }
                Trial::OnSite { setup, .. } => match setups
                    .iter_mut()
                    .find(|(known, _)| known.name == setup.name)
                {
                    Some((_, places)) => places.push(place),
                    None => setups.push((setup, vec![place])),
                },
            }
        }
        for (setup, places) in setups {
            self.run_setup(setup, &places, bench, transport);
        }
        self.each(&alone, CASES_AT_ONCE, |place| {
            match &self.cases[place].trial {
                Trial::OnBench(run) => run(bench),
                Trial::OnSite { .. } => Err("this case needs a running gateway".to_owned()),
            }
        });
    }

    fn run_setup(
        &self,
        setup: &'static Setup,
        places: &[usize],
        bench: &dyn Bench,
        transport: Option<InferenceTransport>,
    ) {
        if self.is_stopped() {
            return self.report_all(places, interrupted);
        }
        let simulator = match bench.start_simulator(&setup.simulator_environment()) {
            Ok(simulator) => simulator,
            Err(error) => {
                return self.report_all(places, || {
                    End::Fail(format!("the simulator did not start: {error}"))
                });
            }
        };
        let gateway = match bench.start_gateway(&setup.gateway_environment(&simulator.url())) {
            Ok(gateway) => gateway,
            Err(error) => {
                let with = setup.variables();
                return self.report_all(places, || {
                    End::Fail(format!("it did not start with {with}: {error}"))
                });
            }
        };
        let site = Site {
            address: gateway.address(),
            setup,
            token: None,
            transport,
            started: Some(Started {
                gateway: &*gateway,
                simulator: &*simulator,
            }),
            session_numbers: &self.session_numbers,
        };
        self.run_on_site(places, &site);
    }

    fn run_on_site(&self, places: &[usize], site: &Site<'_>) {
        let at_once = match site.setup.sharing {
            Sharing::Together => CASES_AT_ONCE,
            Sharing::InTurn | Sharing::Alone => 1,
        };
        self.each(places, at_once, |place| match &self.cases[place].trial {
            Trial::OnSite { run, .. } => run(site),
            Trial::OnBench(_) => Err("this case starts its own gateway".to_owned()),
        });
    }

    /// Runs the cases of `places`, several at once, and reports each.
    fn each(
        &self,
        places: &[usize],
        at_once: usize,
        run: impl Fn(usize) -> Result<String, String> + Sync,
    ) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..at_once.min(places.len()) {
                scope.spawn(|| {
                    while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let end = match self.is_stopped() {
                            true => interrupted(),
                            false => run(*place).map_or_else(End::Fail, End::Pass),
                        };
                        self.report(*place, end);
                    }
                });
            }
        });
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(Stop::requested)
    }
}

fn interrupted() -> End {
    End::NotRun("interrupted".to_owned())
}

/// The address of `http://HOST:PORT` or `ws://HOST:PORT`, with or without a path.
fn resolve(url: &str) -> Result<SocketAddr, String> {
    let authority = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("ws://"))
        .ok_or_else(|| format!("{url} is not a URL that can be checked: use http://HOST:PORT"))?;
    let authority = authority.split('/').next().unwrap_or_default();
    let with_port = if authority
        .rsplit(']')
        .next()
        .is_some_and(|end| end.contains(':'))
    {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    with_port
        .to_socket_addrs()
        .map_err(|error| format!("{url}: {error}"))?
        .next()
        .ok_or_else(|| format!("{url} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_resolved() {
        let address = |text: &str| text.parse::<SocketAddr>();
        assert_eq!(
            resolve("http://127.0.0.1:3000").ok(),
            address("127.0.0.1:3000").ok()
        );
        assert_eq!(
            resolve("ws://127.0.0.1:3000/ws/stt").ok(),
            address("127.0.0.1:3000").ok()
        );
        assert_eq!(
            resolve("http://127.0.0.1").ok(),
            address("127.0.0.1:80").ok()
        );
        assert_eq!(resolve("http://[::1]/").ok(), address("[::1]:80").ok());
        assert!(resolve("https://127.0.0.1").is_err());
    }
}
