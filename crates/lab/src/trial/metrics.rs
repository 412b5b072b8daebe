//! What the target counts of itself, read from its `/metrics` before and after a trial (section 8 of the speech contract).

use std::time::{Duration, Instant};

use plimsoll_core::record::SanityCheck;
use plimsoll_core::sanity::{self, ClientCounts, TargetCounts};

use super::conditions::Load;
use super::subject::TargetUrl;
use crate::http::{self, Metrics};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a target may take until its counters show what it did: those of several threads or processes are often gathered now and then.
const SETTLING_TIME: Duration = Duration::from_secs(2);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The target's counters as they stood before the trial.
#[derive(Debug)]
pub(super) struct TargetMetrics {
    url: String,
    before: TargetCounts,
}

impl TargetMetrics {
    /// Reads them before the first session. `None` when there is nothing to compare: another workload, no `/metrics`, or none that can be read
    /// (`plimsoll check` says what is wrong with those).
    pub(super) fn before(target: &TargetUrl, load: &Load) -> Option<Self> {
        if !matches!(load, Load::Stt { .. }) {
            return None;
        }
        let url = format!("http://{}/metrics", target.host);
        let before = counts(&url)?;
        Some(Self { url, before })
    }

    /// Reads them again and holds them against the client's ledger, until they agree or have had time enough for that.
    pub(super) fn held_against(&self, client: &ClientCounts) -> Vec<SanityCheck> {
        let began = Instant::now();
        loop {
            let checks = counts(&self.url).map_or_else(Vec::new, |now| {
                sanity::metrics(&now.since(&self.before), client)
            });
            let agree = checks.iter().all(|check| check.holds);
            if agree || began.elapsed() >= SETTLING_TIME {
                return checks;
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
    }
}

fn counts(url: &str) -> Option<TargetCounts> {
    let body = http::get_ok(url, ANSWER_TIMEOUT).ok()?;
    let metrics = Metrics::parse(&body).ok()?;
    Some(TargetCounts {
        frames: metrics.sum("stt_frames_total"),
        partials: metrics.sum("stt_partials_total"),
        sessions: metrics.sum("stt_sessions_total"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::conditions::AudioSource;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server whose answers to `/metrics` are these, one after the other, the last one again and again.
    fn target(bodies: &'static [&'static str]) -> TargetUrl {
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
        TargetUrl::of_port(port, "/ws/stt")
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
    fn counters_count_from_the_trials_start_and_may_take_a_moment() {
        let target = target(&[
            "stt_frames_total 1000\nstt_sessions_total 7\n",
            "stt_frames_total 1010\nstt_sessions_total 9\n",
            "stt_frames_total 1095\nstt_sessions_total 9\n",
        ]);
        let metrics = TargetMetrics::before(&target, &SPEECH).expect("metrics");
        let checks = metrics.held_against(&CLIENT);
        let seen: Vec<_> = checks
            .iter()
            .map(|check| (check.name.as_str(), check.observed, check.holds))
            .collect();
        // There is no stt_partials_total, so it is not held against anything.
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
        let checks = metrics.held_against(&CLIENT);
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
        assert_eq!(metrics.held_against(&CLIENT), []);
    }
}
