//! What is going on: one live line on a terminal, plain lines otherwise. Always on stderr, so that stdout is the result's.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Second, Trial, Verdict};
use plimsoll_core::search::Why;

/// Plain lines are written every this many seconds of a trial.
const PLAIN_EVERY_S: u64 = 5;

/// Shows progress.
#[derive(Debug)]
pub(crate) struct Progress {
    live: bool,
    /// What the current trial is, in a few words.
    trial: String,
    trial_s: f64,
    trials_left: u32,
    errors: u64,
}

impl Progress {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
            trial: String::new(),
            trial_s: profile.ramp_s + profile.warm_up_s + profile.measured_s,
            trials_left: 0,
            errors: 0,
        }
    }

    /// One line that stays.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        eprintln!("{text}");
    }

    pub(crate) fn trial_begins(&mut self, number: u32, sessions: u32, why: Option<Why>, left: u32) {
        let why = why.map_or(String::new(), |why| why.word().to_owned());
        self.trial_of_begins(number, sessions, &why, left);
    }

    /// The same for a trial that is described in a few words: one of several targets, for example.
    pub(crate) fn trial_of_begins(&mut self, number: u32, sessions: u32, what: &str, left: u32) {
        self.trial = match what {
            "" => format!("trial {number}: {sessions} sessions"),
            what => format!("trial {number}: {sessions} sessions ({what})"),
        };
        self.trials_left = left.saturating_sub(1);
        self.errors = 0;
        if !self.live {
            eprintln!("{}, {}", self.trial, self.time_left(0));
        }
    }

    pub(crate) fn second(&mut self, second: &Second) {
        self.errors += second.errors + second.protocol_faults + second.sessions_lost;
        if !self.live && !second.at_s.is_multiple_of(PLAIN_EVERY_S) {
            return;
        }
        let line = format!(
            "{}  {:<8} {:>3} s  open {}  newest p50/p95 {}/{} ms  errors {}  client {:.0} %  {}",
            self.trial,
            second.phase.replace('_', "-"),
            second.at_s,
            second.sessions_open,
            ms(second.newest_p50_ms),
            ms(second.newest_p95_ms),
            self.errors,
            second.client_cpu_share * 100.0,
            self.time_left(second.at_s),
        );
        if self.live {
            eprint!("\r\x1b[2K{}", fitted(&line));
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("  {line}");
        }
    }

    /// One line that stays, for a trial that is over.
    pub(crate) fn trial_ends(&self, trial: &Trial) {
        let newest = &trial.latency.newest.from_schedule;
        let cost = trial
            .target_resources
            .as_ref()
            .and_then(|r| r.cpu_us_per_session_second)
            .map_or(String::new(), |us| format!("  {us:.0} µs CPU/session-s"));
        let why = match trial.verdict {
            Verdict::Pass => String::new(),
            Verdict::Fail => trial
                .gates
                .iter()
                .filter(|gate| !gate.pass)
                .map(|gate| format!("  {}", gate.name))
                .collect(),
            Verdict::Invalid => trial
                .caveats
                .iter()
                .filter(|caveat| caveat.blocking)
                .map(|caveat| format!("  {}", caveat.id))
                .collect(),
        };
        self.say(&format!(
            "{:>7} sessions  {:<7}  newest p50/p95 {}/{} ms{cost}{why}",
            trial.sessions,
            trial.verdict.word(),
            ms(newest.p50_ms),
            ms(newest.p95_ms),
        ));
    }

    fn time_left(&self, at_s: u64) -> String {
        #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
        let this_s = (self.trial_s - at_s as f64).max(0.0);
        // Starting and stopping takes about two seconds.
        let left_s = this_s + f64::from(self.trials_left) * (self.trial_s + 2.0);
        let left = Duration::from_secs_f64(left_s);
        let (minutes, seconds) = (left.as_secs() / 60, left.as_secs() % 60);
        format!("about {minutes}:{seconds:02} left")
    }

    fn clear(&self) {
        if self.live {
            eprint!("\r\x1b[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0}"))
}

/// A live line must not wrap, or the next one does not replace it.
fn fitted(line: &str) -> String {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .unwrap_or(120_usize);
    line.chars().take(columns.saturating_sub(1)).collect()
}
