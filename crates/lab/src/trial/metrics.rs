//! What the target itself counts, read from its `/metrics` before and after a trial, as its contract says.

use std::time::{Duration, Instant};

use plimsoll_core::record::SanityCheck;
use plimsoll_core::sanity::{self, ClientCounts, TargetCounts};
use plimsoll_host::http::{self, Metrics};
use plimsoll_workload::Counters;

use super::judge::whole;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a target may take until its counters show what it did. Counters of several threads or processes are often
/// gathered only now and then.
const SETTLING_TIME: Duration = Duration::from_secs(2);
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The target's counters from before the trial.
#[derive(Debug)]
pub(super) struct TargetMetrics {
    url: String,
    counters: Counters,
    before: TargetCounts,
}

/// What the target reported.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TargetAccount {
    /// Its account, compared with the client's.
    pub(super) checks: Vec<SanityCheck>,
    /// Messages of the trial that its application was handed, if the load is messages and the target reports it.
    pub(super) processed: Option<u64>,
}

impl TargetMetrics {
    /// Reads them at `host` (with its port) before the first session. `None` if there is nothing to compare: no
    /// counter has a meaning, no `/metrics`, or `/metrics` that cannot be read (`plimsoll check` says what is wrong with it).
    pub(super) fn before(host: &str, counters: Option<Counters>) -> Option<Self> {
        let counters = counters?;
        let url = format!("http://{host}/metrics");
        // On a busy machine one answer may be lost, and with it the account of the whole trial, so this asks once more.
        let before = counts(&url, counters).or_else(|| counts(&url, counters))?;
        Some(Self {
            url,
            counters,
            before,
        })
    }

    /// Reads them again and compares them with the client's ledger, until the two agree and everything that was
    /// answered shows, or until the time for that is over. `asides` are messages for the application that are not
    /// frames.
    pub(super) fn held_against(&self, client: &ClientCounts, asides: u64) -> TargetAccount {
        let began = Instant::now();
        // The look before the trial may be counted after it.
        let mut looks = 1;
        loop {
            looks += 1;
            let possible = self.counters.possible(client, asides, looks);
            let told = self.grown().map(|grown| TargetAccount {
                checks: sanity::metrics_within(&grown, &possible),
                processed: self.processed(&grown),
            });
            let settled = told.as_ref().is_some_and(|told| {
                let agree = told.checks.iter().all(|check| check.holds);
                let processed = told.processed;
                agree && processed.is_none_or(|processed| processed >= client.frames_answered)
            });
            if settled || began.elapsed() >= SETTLING_TIME {
                return told.unwrap_or_default();
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
    }

    /// What the target reports of a trial in which its account cannot be compared with the client's.
    pub(super) fn for_itself(&self) -> TargetAccount {
        let grown = self.grown();
        TargetAccount {
            checks: Vec::new(),
            processed: grown.and_then(|grown| self.processed(&grown)),
        }
    }

    /// Messages that the application was handed, according to these counts.
    fn processed(&self, counts: &TargetCounts) -> Option<u64> {
        let frames = counts.frames.filter(|_| self.counters.counts_messages());
        frames.map(whole)
    }

    fn grown(&self) -> Option<TargetCounts> {
        counts(&self.url, self.counters).map(|now| now.since(&self.before))
    }
}

/// All that the target tells at its `/metrics`; `None` if it can't be read.
pub(super) fn told(url: &str) -> Option<Metrics> {
    Metrics::parse(&http::get_ok(url, ANSWER_TIMEOUT).ok()?).ok()
}

fn counts(url: &str, counters: Counters) -> Option<TargetCounts> {
    let metrics = told(url)?;
    Some(counters.read(|name| metrics.sum(name)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use plimsoll_core::sanity::MetricNames;
    use plimsoll_workload::counters::Counted;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers `/metrics` with these bodies, one after the other, and then repeats the last one.
    pub(in crate::trial) fn target(bodies: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("address").port();
        std::thread::spawn(move || {
            for (index, stream) in listener.incoming().flatten().enumerate() {
                let (mut stream, mut request) = (stream, [0; 1024]);
                let _ = stream.read(&mut request);
                let body = bodies[index.min(bodies.len() - 1)];
                let status = if body.is_empty() {
                    "404 Not Found"
                } else {
                    "200 OK"
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        format!("127.0.0.1:{port}")
    }

    const NAMES: MetricNames = MetricNames {
        frames: "frames_total",
        partials: "partials_total",
        sessions: "sessions_total",
    };
    const ANSWERS: Option<Counters> = counted(Counted::Answers);

    const fn counted(counted: Counted) -> Option<Counters> {
        let names = NAMES;
        Some(Counters { names, counted })
    }

    const CLIENT: ClientCounts = ClientCounts {
        frames_sent: 100,
        frames_answered: 90,
        partials: 4,
        sessions: 2,
    };

    #[test]
    fn an_answer_that_does_not_come_is_asked_for_again() {
        let target = target(&["", "sessions_total 7\n", "", "sessions_total 9\n"]);
        let metrics = TargetMetrics::before(&target, ANSWERS).expect("metrics");
        let checks = metrics.held_against(&CLIENT, 0).checks;
        assert_eq!((checks.len(), checks[0].holds), (1, true));
    }

    #[test]
    fn counters_count_from_the_trials_start_and_may_take_a_moment() {
        let target = target(&[
            "frames_total 1000\nsessions_total 7\n",
            "frames_total 1010\nsessions_total 9\n",
            "frames_total 1095\nsessions_total 9\n",
        ]);
        let metrics = TargetMetrics::before(&target, ANSWERS).expect("metrics");
        let told = metrics.held_against(&CLIENT, 0);
        assert_eq!(told.processed, None);
        let checks = told.checks;
        let seen: Vec<_> = checks
            .iter()
            .map(|check| (check.name.as_str(), check.observed, check.holds))
            .collect();
        // There is no partials_total, so it is not compared with anything.
        assert_eq!(
            seen,
            [
                ("metrics_frames", 95.0, true),
                ("metrics_sessions", 2.0, true)
            ]
        );
    }

    #[test]
    fn what_stays_wrong_is_told() {
        let target = target(&["frames_total 0\n", "frames_total 110\n"]);
        let metrics = TargetMetrics::before(&target, ANSWERS).expect("metrics");
        let checks = metrics.held_against(&CLIENT, 0).checks;
        assert_eq!(checks.len(), 1);
        assert!(!checks[0].holds);
    }

    #[test]
    fn without_metrics_there_is_no_check() {
        assert!(TargetMetrics::before(&target(&[""]), ANSWERS).is_none());
        assert!(TargetMetrics::before(&target(&["not { a metric\n"]), ANSWERS).is_none());
        assert!(TargetMetrics::before(&target(&["frames_total 1\n"]), None).is_none());
        let gone = target(&["frames_total 1\n", ""]);
        let metrics = TargetMetrics::before(&gone, ANSWERS).expect("metrics");
        assert_eq!(metrics.held_against(&CLIENT, 0), TargetAccount::default());
    }

    #[test]
    fn a_server_whose_application_is_handed_nothing_is_no_liar_but_found() {
        let target = target(&["frames_total 0\n", "frames_total 0\nsessions_total 2\n"]);
        let read_only = Counted::Messages { comes_back: false };
        let metrics = TargetMetrics::before(&target, counted(read_only)).expect("metrics");
        let told = metrics.held_against(&CLIENT, 2);
        assert_eq!(told.processed, Some(0));
        assert!(told.checks.iter().all(|check| check.holds), "{told:?}");
        assert_eq!(metrics.counters.possible(&CLIENT, 2, 1).frames, 0..=102);
        // The application must have seen an echo, or it could not have come back.
        let echo = counted(Counted::Messages { comes_back: true }).expect("counted");
        assert_eq!(echo.possible(&CLIENT, 0, 1).frames, 90..=100);
        // Requests that the target counts itself include each look at its counters.
        let requests = Counters {
            counted: Counted::Requests,
            ..metrics.counters
        };
        let possible = requests.possible(&CLIENT, 0, 3);
        assert_eq!(possible.frames, 90..=103);
        assert_eq!(possible.sessions, 2..=5);
    }

    #[test]
    fn what_the_application_was_handed_shows_after_a_moment() {
        let target = target(&[
            "frames_total 5\n",
            "frames_total 60\n",
            "frames_total 100\n",
        ]);
        let messages = counted(Counted::Messages { comes_back: false });
        let metrics = TargetMetrics::before(&target, messages).expect("metrics");
        assert_eq!(metrics.held_against(&CLIENT, 0).processed, Some(95));
        assert_eq!(metrics.for_itself().processed, Some(95));
        assert_eq!(metrics.for_itself().checks, []);
    }

    #[test]
    fn frames_that_are_no_messages_are_not_counted() {
        let target = target(&["frames_total 7\nsessions_total 0\n", "sessions_total 2\n"]);
        for (arrive, most) in [(false, 2), (true, 100)] {
            let counters = counted(Counted::Sessions { arrive }).expect("counted");
            assert_eq!(counters.possible(&CLIENT, 0, 1).sessions, 2..=most);
        }
        let sessions = counted(Counted::Sessions { arrive: false });
        let metrics = TargetMetrics::before(&target, sessions).expect("metrics");
        let told = metrics.held_against(&CLIENT, 0);
        assert_eq!((told.checks.len(), told.processed), (1, None));
        assert!(told.checks[0].holds);
    }
}
