//! Section 8 of the contract: a bad value of a variable ends the gateway with exit code 2 and one line naming it.

use std::time::Duration;

use plimsoll_conformance::Trial;
use plimsoll_conformance::subject::{Bench, Environment};

use super::registry::{Case, Verdict};

/// A gateway must have refused by then. The contract sets no time, and a virtual machine on a busy core takes its time to start.
const LIMIT: Duration = Duration::from_secs(30);

/// A delay of less can hardly make a refusal too late.
const TOLERANCE: Duration = Duration::from_secs(10);

/// Each variable with values that it must not take.
const BAD_VALUES: [(&str, &[&str]); 17] = [
    ("PORT", &["http", "70000"]),
    ("WORKER_THREADS", &["many"]),
    ("INFERENCE_URL", &["not a url"]),
    ("INFERENCE_HTTP_CLIENTS", &["few"]),
    ("INFERENCE_TIMEOUT_MS", &["soon", "-1"]),
    ("FLUSH_INTERVAL_MS", &["1s"]),
    ("FLUSH_PHASE_JITTER_MS", &["some"]),
    ("CPU_PASSES", &["four"]),
    ("MODEL_DELAY_MS", &["75ms"]),
    ("MAX_SESSIONS", &["-1"]),
    ("MAX_BUFFER_FRAMES", &["all"]),
    ("OVERFLOW_POLICY", &["drop_everything"]),
    ("MAX_INFLIGHT_JOBS", &["1.5"]),
    ("OUTBOX_MESSAGES", &["four"]),
    ("START_TIMEOUT_MS", &["never"]),
    ("DRAIN_TIMEOUT_MS", &["5s"]),
    // Each variable alone must be enough; this one also shows that the value's case matters.
    ("OVERFLOW_POLICY", &["Drop_Oldest"]),
];

pub(super) fn cases() -> Vec<Case> {
    BAD_VALUES
        .iter()
        .map(|(name, values)| Case {
            id: id(name, values).into(),
            title: format!("{name} with a bad value is refused").into(),
            expected: format!(
                "exit code 2 and one line that names {name}, for {}",
                values.join(" and ")
            )
            .into(),
            tolerance: TOLERANCE,
            trial: Trial::OnBench(Box::new(move |bench| refused(bench, name, values))),
        })
        .collect()
}

fn id(name: &str, values: &[&str]) -> String {
    let name = name.to_lowercase().replace('_', "-");
    if values == ["Drop_Oldest"] {
        return format!("bad-value-{name}-capitals");
    }
    format!("bad-value-{name}")
}

fn refused(bench: &dyn Bench, name: &str, values: &[&str]) -> Verdict {
    for value in values {
        let environment = Environment::from([(name.to_owned(), (*value).to_owned())]);
        let ended = bench.start_refused(&environment, LIMIT)?;
        let lines: Vec<&str> = ended
            .output
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let code = ended
            .exit_code
            .map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let seen = format!(
            "{name}={value}: {code} and {} lines: {:?}",
            lines.len(),
            lines.first().unwrap_or(&"")
        );
        if ended.exit_code != Some(2) || lines.len() != 1 || !lines[0].contains(name) {
            return Err(seen);
        }
    }
    Ok(format!("exit code 2 and one line that names {name}"))
}
