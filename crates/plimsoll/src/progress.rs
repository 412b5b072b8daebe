//! Shows what is going on: a live view on a terminal, otherwise plain lines. Both go to stderr, so that stdout is left
//! to the result. Also writes `live.json` in the result folder.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::record::{
    Goodput, LiveCommand, LiveEnded, LivePhases, LoadUnit, Second, Tail, Trial, Verdict,
};
use plimsoll_host::timestamp;
use plimsoll_lab::campaign::TrialBegins;
use plimsoll_lab::trial::{Conditions, Subject, TrialSecond};
use plimsoll_report::{ResultFolder, words};

use crate::live::outlets::{self, Outlets};
use crate::live::shared::Shared;
use crate::live::state::{Facts, LiveState, Measuring, time_left_s};
use crate::output::note;

/// A plain line is written every this many seconds of a trial.
const PLAIN_EVERY_S: u64 = 5;

/// Shows progress until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    shared: Arc<Shared>,
    folder: ResultFolder,
    /// Whether `live.json` is written.
    file: bool,
    /// Whether the terminal shows a view; otherwise plain lines are written.
    view: bool,
    plain: Plain,
    /// Set once it is known where they may run.
    outlets: Option<Outlets>,
}

impl Progress {
    /// Progress of a command that measures these targets and keeps its results in this folder. Without `live`, there
    /// are only plain lines.
    pub(crate) fn new(
        command: LiveCommand,
        targets: Vec<String>,
        folder: &ResultFolder,
        live: bool,
    ) -> Self {
        let facts = Facts {
            command,
            targets,
            started_at: timestamp::now(),
            pid: std::process::id(),
        };
        Self {
            shared: Arc::new(Shared::new(LiveState::new(facts))),
            folder: folder.clone(),
            file: live,
            view: live && outlets::can_draw(),
            plain: Plain::default(),
            outlets: None,
        }
    }

    /// Sets what is measured from now on.
    pub(crate) fn measuring(&mut self, subject: &Subject, conditions: &Conditions) {
        let started = matches!(subject, Subject::Started(_));
        let measuring = Measuring {
            target: subject.name().to_owned(),
            slo: conditions.slo.clone(),
            profile: conditions.profile.clone(),
            vcpu: started.then_some(conditions.placement.vcpu),
            load_unit: conditions.plan.unit(),
        };
        self.plain.phases = LivePhases::of(&measuring.profile);
        self.plain.unit = measuring.load_unit;
        self.shared.tell(|state| state.measuring(measuring));
        if self.outlets.is_none() {
            let cpus = &conditions.placement.client_cpus;
            let folder = self.file.then_some(&self.folder);
            let outlets = Outlets::start(&self.shared, folder, cpus, self.view);
            self.view &= outlets.has_terminal();
            self.outlets = Some(outlets);
        }
    }

    /// Prints a line that stays, or several.
    pub(crate) fn say(&self, text: &str) {
        let shown = self.outlets.as_ref().is_some_and(Outlets::has_terminal);
        for line in text.lines().map(words::plain) {
            if shown {
                self.shared.say(line);
            } else {
                note!("{line}");
            }
        }
    }

    /// Nothing is measured for now: what is printed next is not drawn over, and comes after everything said before.
    pub(crate) fn rest(&self) {
        self.shared.rest();
    }

    /// Adds trials of an earlier call that this one resumes.
    pub(crate) fn known<'a>(&self, trials: impl Iterator<Item = &'a Trial>) {
        self.shared.tell(|state| {
            for (number, trial) in (1..).zip(trials) {
                let ended = LiveEnded::of(number, &trial.target.name, trial);
                state.trial_ends(ended, trial.interrupted);
            }
        });
    }

    pub(crate) fn trial_begins(&mut self, begins: &TrialBegins<'_>) {
        self.shared.tell(|state| state.trial_begins(begins));
        self.shared.wake();
        self.plain.trial_begins(begins);
        if !self.view {
            self.say(&self.plain.begins_line());
        }
    }

    pub(crate) fn second(&mut self, second: &TrialSecond<'_>) {
        self.shared
            .tell(|state| state.second(second, second.latency));
        self.plain.second(second);
        if !self.view && second.at_s.is_multiple_of(PLAIN_EVERY_S) {
            self.say(&self.plain.second_line(second));
        }
    }

    /// Prints one line that stays, for a baseline that is over. It is none of the trials by which the load line is known.
    pub(crate) fn baseline_ends(&self, trial: &Trial) {
        self.say(&format!("baseline: {}", ends_line(trial).trim_start()));
    }

    /// Prints one line that stays, for a trial that is over.
    pub(crate) fn trial_ends(&self, trial: &Trial) {
        self.say(&ends_line(trial));
        self.shared.tell(|state| {
            let (number, target) = match state.running() {
                Some((number, target)) => (number, target.to_owned()),
                None => (0, trial.target.name.clone()),
            };
            let ended = LiveEnded::of(number, &target, trial);
            state.trial_ends(ended, trial.interrupted);
        });
    }
}

/// The content of plain lines.
#[derive(Debug, Default)]
struct Plain {
    phases: LivePhases,
    /// What loads count.
    unit: LoadUnit,
    /// What the current trial is, in a few words.
    trial: String,
    /// Including this one.
    trials_left: u32,
    errors: u64,
}

impl Plain {
    fn trial_begins(&mut self, begins: &TrialBegins<'_>) {
        let TrialBegins {
            number, sessions, ..
        } = begins;
        let who: Vec<&str> = [begins.letter, begins.target]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        let what: Vec<String> = [who.join(" "), begins.why.to_owned()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        let load = format!("{sessions} {}", self.unit.name());
        self.trial = match what.join(", ") {
            what if what.is_empty() => format!("trial {number}: {load}"),
            what => format!("trial {number}: {load} ({what})"),
        };
        self.trials_left = begins.trials_left.max(1);
        self.errors = 0;
    }

    fn second(&mut self, second: &Second) {
        self.errors += second.errors + second.protocol_faults + second.sessions_lost;
    }

    fn begins_line(&self) -> String {
        format!("{}, {}", self.trial, self.time_left(0))
    }

    fn second_line(&self, second: &Second) -> String {
        format!(
            "  {}  {:<8} {:>3} s  open {}  newest p50/p95 {}/{} ms  errors {}  client {:.0} %  {}",
            self.trial,
            second.phase.word(),
            second.at_s,
            second.sessions_open,
            ms(second.newest_p50_ms, self.unit),
            ms(second.newest_p95_ms, self.unit),
            self.errors,
            second.client_cpu_share * 100.0,
            self.time_left(second.at_s),
        )
    }

    fn time_left(&self, at_s: u64) -> String {
        let left_s = time_left_s(&self.phases, at_s, self.trials_left);
        let left = Duration::from_secs_f64(left_s);
        let (minutes, seconds) = (left.as_secs() / 60, left.as_secs() % 60);
        format!("about {minutes}:{seconds:02} left")
    }
}

fn ends_line(trial: &Trial) -> String {
    let unit = trial.load_unit;
    let newest = &trial.latency.newest.from_schedule;
    let tail = Tail::judged_in(trial);
    let tail_ms = tail.of_two(newest.p95_ms, newest.p99_ms);
    let cost = trial
        .target_resources
        .as_ref()
        .and_then(|r| r.cpu_us_per_session_second)
        .map_or(String::new(), |us| format!("  {}", cost(us, unit)));
    let done = trial.goodput.map_or_else(String::new, done);
    let against: String = against(trial)
        .iter()
        .map(|name| format!("  {name}"))
        .collect();
    format!(
        "{:>7} {}  {:<7}  newest p50/{} {}/{} ms{done}{cost}{against}",
        trial.sessions,
        unit.name(),
        trial.verdict.word(),
        tail.name(),
        ms(newest.p50_ms, unit),
        ms(tail_ms, unit),
    )
}

fn done(goodput: Goodput) -> String {
    format!(
        "  goodput {} of {}/s  failed {}",
        words::number(goodput.good_per_s),
        words::number(goodput.due_per_s),
        words::percent(goodput.failed_share)
    )
}

fn cost(us: f64, unit: LoadUnit) -> String {
    if unit.is_sessions() {
        format!("{us:.0} µs CPU/session-s")
    } else {
        format!("{} {}", words::us(us), words::cpu_cost_in_brief(unit))
    }
}

/// Why a trial did not pass: the gates that did not hold, or the caveats that make it invalid.
fn against(trial: &Trial) -> Vec<&str> {
    match trial.verdict {
        Verdict::Pass => Vec::new(),
        Verdict::Fail => {
            let failed = trial.gates.iter().filter(|gate| !gate.pass);
            failed.map(|gate| gate.name.as_str()).collect()
        }
        Verdict::Invalid => {
            let blocking = trial.caveats.iter().filter(|caveat| caveat.blocking);
            blocking.map(|caveat| caveat.id.as_str()).collect()
        }
    }
}

/// Milliseconds without their unit: whole ones for sessions, whose answers take many. Otherwise with fractions, because
/// a WebSocket echo can take less than one.
fn ms(value: Option<f64>, unit: LoadUnit) -> String {
    match value {
        None => "-".to_owned(),
        Some(ms) if unit.is_sessions() => format!("{ms:.0}"),
        Some(ms) => words::ms_digits(ms),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::profile::Profile;

    use plimsoll_core::record::Phase;

    use super::*;

    fn plain(letter: &str, target: &str, why: &str) -> Plain {
        let mut plain = Plain {
            phases: LivePhases::of(&Profile::quick()),
            ..Plain::default()
        };
        plain.trial_begins(&TrialBegins {
            number: 3,
            sessions: 750,
            target,
            letter,
            why,
            trials_left: 3,
            ..TrialBegins::default()
        });
        plain
    }

    #[test]
    fn plain_lines_name_the_trial() {
        // 16 s each, and 2 s between them.
        let begins = |letter, target, why| plain(letter, target, why).begins_line();
        assert_eq!(
            begins("", "", "probe"),
            "trial 3: 750 sessions (probe), about 0:52 left"
        );
        assert_eq!(begins("", "", ""), "trial 3: 750 sessions, about 0:52 left");
        assert_eq!(
            begins("A", "rust-axum", "pair"),
            "trial 3: 750 sessions (A rust-axum, pair), about 0:52 left"
        );
        assert_eq!(
            begins("", "rust-axum", "cost at the common load"),
            "trial 3: 750 sessions (rust-axum, cost at the common load), about 0:52 left"
        );
    }

    #[test]
    fn plain_lines_have_the_unit_of_the_load() {
        let mut plain = Plain {
            unit: LoadUnit::MESSAGES_PER_SECOND,
            ..plain("", "", "256 B")
        };
        plain.trial_begins(&TrialBegins {
            number: 2,
            sessions: 10_000,
            target: "",
            letter: "",
            why: "256 B",
            trials_left: 1,
            ..TrialBegins::default()
        });
        assert!(
            plain
                .begins_line()
                .starts_with("trial 2: 10000 messages per second (256 B), "),
            "{}",
            plain.begins_line()
        );
        assert_eq!(ms(Some(99.6), LoadUnit::SESSIONS), "100");
        assert_eq!(ms(None, LoadUnit::CONNECTIONS), "-");
        assert_eq!(ms(Some(0.0854), LoadUnit::CONNECTIONS), "0.085");
        assert!(cost(12.0, LoadUnit::MESSAGES_PER_SECOND).ends_with(" CPU/message"));
        assert_eq!(cost(333.4, LoadUnit::SESSIONS), "333 µs CPU/session-s");
    }

    #[test]
    fn a_trial_that_ended_says_how_much_was_done() {
        let goodput = Goodput {
            due_per_s: 12.5,
            good_per_s: 11.0,
            failed_share: 0.04,
        };
        assert_eq!(done(goodput), "  goodput 11 of 12.5/s  failed 4 %");
    }

    #[test]
    fn a_plain_line_of_a_second() {
        let mut plain = plain("", "", "");
        let second = Second {
            at_s: 10,
            phase: Phase::WarmUp,
            sessions_open: 750,
            errors: 2,
            sessions_lost: 1,
            newest_p50_ms: Some(99.6),
            client_cpu_share: 0.456,
            ..Second::default()
        };
        plain.second(&second);
        assert_eq!(
            plain.second_line(&second),
            "  trial 3: 750 sessions  warm-up   10 s  open 750  newest p50/p95 100/- ms  errors 3  client 46 %  about 0:42 left"
        );
    }
}
