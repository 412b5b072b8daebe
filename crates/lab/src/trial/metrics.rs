//! What the target itself counts, read from its `/metrics` before and after a trial (section 8 of the speech contract,
//! section 2 of the contract for general WebSocket servers).

use std::time::{Duration, Instant};

use plimsoll_core::record::SanityCheck;
use plimsoll_core::sanity::{self, ClientCounts, MetricNames, Possible, TargetCounts};
use plimsoll_host::http::{self, Metrics};
use plimsoll_workload_ws::{Dialect, Test};

use super::conditions::Load;
use super::judge::whole;
use super::ws::WsLoad;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a target may take until its counters show what it did. Counters of several threads or processes are often
/// gathered only now and then.
const SETTLING_TIME: Duration = Duration::from_secs(2);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a workload's counters are called.
pub(super) fn names_of(load: &Load) -> MetricNames {
    match load {
        Load::Stt { .. } | Load::Echo { .. } => MetricNames::STT,
        Load::Ws(_) => MetricNames::WS,
    }
}

/// The target's counters from before the trial.
#[derive(Debug)]
pub(super) struct TargetMetrics {
    url: String,
    account: Account,
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

/// Which counters mean something for a load, and what they may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Account {
    /// Those of a gateway for streaming speech.
    Speech,
    /// Those of a server for which every frame of the load is a message for its application. If `comes_back`, an
    /// answered frame cannot have gone unseen by the application. In dialect `wse`, it is only proven that the server
    /// read the frame. Whether the application was handed it is a finding, not a fault in anybody's account.
    Messages { comes_back: bool },
    /// Those of a server whose application does not count frames one by one: only connections are compared. If they
    /// `arrive`, one may be accepted and not yet open when the trial ends.
    Connections { arrive: bool },
}

impl Account {
    fn of(load: &Load) -> Option<Self> {
        match load {
            Load::Stt { .. } => Some(Self::Speech),
            Load::Echo { .. } => None,
            Load::Ws(ws) => Some(Self::of_ws(ws)),
        }
    }

    fn of_ws(ws: &WsLoad) -> Self {
        if ws.frames_reach_the_application() {
            Self::Messages {
                comes_back: ws.dialect == Dialect::Echo,
            }
        } else {
            Self::Connections {
                arrive: ws.test == Test::Storm,
            }
        }
    }

    /// What it may show. `asides` are messages for the application that are not frames.
    fn possible(self, client: &ClientCounts, asides: u64) -> Possible {
        let mut possible = Possible::from(client);
        match self {
            Self::Speech => {}
            Self::Messages { comes_back } => {
                let least = if comes_back {
                    client.frames_answered
                } else {
                    0
                };
                possible.frames = least..=client.frames_sent + asides;
            }
            Self::Connections { arrive } => {
                let most = if arrive { client.frames_sent } else { 0 };
                possible.sessions = client.sessions..=client.sessions.max(most);
            }
        }
        possible
    }

    /// The counters that mean something, among all that a target reports.
    fn counts(self, metrics: &Metrics) -> TargetCounts {
        let sum = |name: &str| metrics.sum(name);
        match self {
            Self::Speech => TargetCounts {
                frames: sum(MetricNames::STT.frames),
                partials: sum(MetricNames::STT.partials),
                sessions: sum(MetricNames::STT.sessions),
            },
            Self::Messages { .. } => TargetCounts {
                frames: sum(MetricNames::WS.frames),
                partials: None,
                sessions: sum(MetricNames::WS.sessions),
            },
            Self::Connections { .. } => TargetCounts {
                frames: None,
                partials: None,
                sessions: sum(MetricNames::WS.sessions),
            },
        }
    }

    /// Messages that the application was handed, according to these counts.
    fn processed(self, counts: &TargetCounts) -> Option<u64> {
        let messages = matches!(self, Self::Messages { .. });
        counts.frames.filter(|_| messages).map(whole)
    }
}

impl TargetMetrics {
    /// Reads them at `host` (with its port) before the first session. `None` if there is nothing to compare: another
    /// workload, no `/metrics`, or `/metrics` that cannot be read (`plimsoll check` says what is wrong with it).
    pub(super) fn before(host: &str, load: &Load) -> Option<Self> {
        let account = Account::of(load)?;
        let url = format!("http://{host}/metrics");
        // On a busy machine one answer may be lost, and with it the account of the whole trial, so this asks once more.
        let before = counts(&url, account).or_else(|| counts(&url, account))?;
        Some(Self {
            url,
            account,
            before,
        })
    }

    /// Reads them again and compares them with the client's ledger, until the two agree and everything that was
    /// answered shows, or until the time for that is over. `asides` are messages for the application that are not
    /// frames.
    pub(super) fn held_against(&self, client: &ClientCounts, asides: u64) -> TargetAccount {
        let possible = self.account.possible(client, asides);
        let began = Instant::now();
        loop {
            let told = self.grown().map(|grown| TargetAccount {
                checks: sanity::metrics_within(&grown, &possible),
                processed: self.account.processed(&grown),
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
            processed: grown.and_then(|grown| self.account.processed(&grown)),
        }
    }

    fn grown(&self) -> Option<TargetCounts> {
        counts(&self.url, self.account).map(|now| now.since(&self.before))
    }
}

fn counts(url: &str, account: Account) -> Option<TargetCounts> {
    let body = http::get_ok(url, ANSWER_TIMEOUT).ok()?;
    let metrics = Metrics::parse(&body).ok()?;
    Some(account.counts(&metrics))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::conditions::AudioSource;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers `/metrics` with these bodies, one after the other, and then repeats the last one.
    fn target(bodies: &'static [&'static str]) -> String {
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

    const SPEECH: Load = Load::Stt {
        audio: AudioSource::Synthetic,
    };
    const CLIENT: ClientCounts = ClientCounts {
        frames_sent: 100,
        frames_answered: 90,
        partials: 4,
        sessions: 2,
    };

    #[test]
    fn an_answer_that_does_not_come_is_asked_for_again() {
        let target = target(&["", "stt_sessions_total 7\n", "", "stt_sessions_total 9\n"]);
        let metrics = TargetMetrics::before(&target, &SPEECH).expect("metrics");
        let checks = metrics.held_against(&CLIENT, 0).checks;
        assert_eq!((checks.len(), checks[0].holds), (1, true));
    }

    #[test]
    fn counters_count_from_the_trials_start_and_may_take_a_moment() {
        let target = target(&[
            "stt_frames_total 1000\nstt_sessions_total 7\n",
            "stt_frames_total 1010\nstt_sessions_total 9\n",
            "stt_frames_total 1095\nstt_sessions_total 9\n",
        ]);
        let metrics = TargetMetrics::before(&target, &SPEECH).expect("metrics");
        let told = metrics.held_against(&CLIENT, 0);
        assert_eq!(told.processed, None);
        let checks = told.checks;
        let seen: Vec<_> = checks
            .iter()
            .map(|check| (check.name.as_str(), check.observed, check.holds))
            .collect();
        // There is no stt_partials_total, so it is not compared with anything.
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
        let target = target(&["stt_frames_total 0\n", "stt_frames_total 110\n"]);
        let metrics = TargetMetrics::before(&target, &SPEECH).expect("metrics");
        let checks = metrics.held_against(&CLIENT, 0).checks;
        assert_eq!(checks.len(), 1);
        assert!(!checks[0].holds);
    }

    #[test]
    fn without_metrics_there_is_no_check() {
        assert!(TargetMetrics::before(&target(&[""]), &SPEECH).is_none());
        assert!(TargetMetrics::before(&target(&["not { a metric\n"]), &SPEECH).is_none());
        let echo = Load::Echo {
            message_bytes: 12,
            period_ms: 1,
        };
        assert!(TargetMetrics::before(&target(&["stt_frames_total 1\n"]), &echo).is_none());
        let gone = target(&["stt_frames_total 1\n", ""]);
        let metrics = TargetMetrics::before(&gone, &SPEECH).expect("metrics");
        assert_eq!(metrics.held_against(&CLIENT, 0), TargetAccount::default());
    }

    fn ws(test: Test, dialect: Dialect) -> Load {
        Load::Ws(Box::new(WsLoad::new(test, dialect)))
    }

    const CONNECTED: &str = "ws_connections_accepted_total 2\n";

    #[test]
    fn a_server_whose_application_is_handed_nothing_is_no_liar_but_found() {
        let target = target(&[
            "ws_messages_received_total 0\n",
            "ws_messages_received_total 0\nws_connections_accepted_total 2\n",
        ]);
        let load = ws(Test::Throughput, Dialect::Wse);
        let metrics = TargetMetrics::before(&target, &load).expect("metrics");
        let told = metrics.held_against(&CLIENT, 2);
        assert_eq!(told.processed, Some(0));
        assert!(told.checks.iter().all(|check| check.holds), "{told:?}");
        // The application must have seen an echo, or it could not have come back.
        let echo = Account::of(&ws(Test::Ping, Dialect::Echo)).expect("counted");
        assert_eq!(echo.possible(&CLIENT, 0).frames, 90..=100);
        assert_eq!(metrics.account.possible(&CLIENT, 2).frames, 0..=102);
    }

    #[test]
    fn what_the_application_was_handed_shows_after_a_moment() {
        let target = target(&[
            "ws_messages_received_total 5\n",
            "ws_messages_received_total 60\n",
            "ws_messages_received_total 100\n",
        ]);
        let load = ws(Test::Matrix, Dialect::Wse);
        let metrics = TargetMetrics::before(&target, &load).expect("metrics");
        assert_eq!(metrics.held_against(&CLIENT, 0).processed, Some(95));
        assert_eq!(metrics.for_itself().processed, Some(95));
        assert_eq!(metrics.for_itself().checks, []);
    }

    #[test]
    fn frames_that_are_no_messages_are_not_counted() {
        let target = target(&[
            "ws_messages_received_total 7\nws_connections_accepted_total 0\n",
            CONNECTED,
        ]);
        for (test, dialect) in [
            (Test::Fanout, Dialect::Echo),
            (Test::Hold, Dialect::Wse),
            (Test::Storm, Dialect::Wse),
        ] {
            let account = Account::of(&ws(test, dialect)).expect("counted");
            let arrive = test == Test::Storm;
            assert_eq!(account, Account::Connections { arrive });
            let most = if arrive { 100 } else { 2 };
            assert_eq!(account.possible(&CLIENT, 0).sessions, 2..=most);
        }
        let load = ws(Test::Fanout, Dialect::Echo);
        let metrics = TargetMetrics::before(&target, &load).expect("metrics");
        let told = metrics.held_against(&CLIENT, 0);
        assert_eq!((told.checks.len(), told.processed), (1, None));
        assert!(told.checks[0].holds);
        assert_eq!(names_of(&load), MetricNames::WS);
        assert_eq!(names_of(&SPEECH), MetricNames::STT);
    }
}
