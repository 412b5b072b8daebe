//! How to repeat a measurement.

use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Json, Trial};
use plimsoll_core::slo::Slo;
use serde::Deserialize;

use super::trial::cores;
use crate::words::{self, number};

/// The command that repeats the measurement, and what it needs besides.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// One line for a shell.
    pub command: String,
    /// How you changed the profile by hand, in a sentence.
    pub changed_profile: Option<String>,
    /// The gates of your own SLO, each with its threshold; empty for the workload's own SLO.
    pub own_gates: Vec<(String, f64)>,
}

impl Repeat {
    /// For a trial, or for the search whose conditions the trial shows: `verb` is the command, `sessions` the load of a
    /// trial.
    #[must_use]
    pub fn of(trial: &Trial, verb: &str, sessions: Option<u32>, seed: u64) -> Self {
        let own_gates = if is_default(trial) {
            Vec::new()
        } else {
            let gates = trial.gates.iter();
            gates
                .map(|gate| (gate.name.clone(), gate.threshold))
                .collect()
        };
        Self {
            command: command(trial, verb, sessions, seed),
            changed_profile: changed_profile(trial),
            own_gates,
        }
    }
}

/// The settings of a trial of workload `ws`, from its section.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Settings {
    test: String,
    dialect: String,
    connections: Option<u32>,
    message_bytes: Option<u64>,
    format: Option<String>,
    period_ms: Option<f64>,
    published_per_s: Option<f64>,
    linger_ms: Option<f64>,
    spacing: Option<String>,
    source_addresses: Vec<String>,
    closed_loop: Option<Json>,
}

impl Settings {
    /// Those of a trial; `None` for other workloads.
    #[must_use]
    pub fn of(trial: &Trial) -> Option<Self> {
        trial.sections.get("ws")
    }
}

/// Whether the SLO is the workload's default. Workload `ws` has a default for each test.
fn is_default(trial: &Trial) -> bool {
    let of_test = |ws: &Settings| Slo::ws(&ws.test).name == trial.slo;
    trial.slo == trial.workload || Settings::of(trial).as_ref().is_some_and(of_test)
}

/// The settings of a trial of workload `ws` except its load, as flags. A matrix is measured as a whole, and so are the
/// formats.
#[must_use]
pub fn ws_flags(ws: &Settings) -> String {
    let one_cell = !["matrix", "formats"].contains(&ws.test.as_str());
    let mut flags = vec![
        format!("--test {}", quoted(&ws.test)),
        format!("--dialect {}", quoted(&ws.dialect)),
    ];
    let connections = ws
        .connections
        .map(|number| format!("--connections {number}"));
    flags.extend(connections);
    if one_cell {
        let bytes = ws
            .message_bytes
            .map(|bytes| format!("--message-bytes {bytes}"));
        let format = ws
            .format
            .as_deref()
            .map(|name| format!("--format {}", quoted(name)));
        flags.extend(bytes.into_iter().chain(format));
    }
    let numbers = [
        ("period-ms", ws.period_ms),
        ("rate", ws.published_per_s),
        ("linger-ms", ws.linger_ms),
    ];
    let given = |(name, value): (&str, Option<f64>)| Some(format!("--{name} {}", value?));
    flags.extend(numbers.into_iter().filter_map(given));
    if ws.spacing.as_deref() == Some("poisson") {
        flags.push("--poisson".to_owned());
    }
    if !ws.source_addresses.is_empty() {
        flags.push(format!(
            "--source-addresses {}",
            quoted(&ws.source_addresses.join(","))
        ));
    }
    if ws.closed_loop.is_some() {
        flags.push("--closed-loop".to_owned());
    }
    flags.join(" ")
}

fn command(trial: &Trial, verb: &str, sessions: Option<u32>, seed: u64) -> String {
    let mut words = vec!["plimsoll".to_owned(), verb.to_owned()];
    if trial.target.tier == "url" {
        words.push("--url".to_owned());
    }
    words.push(quoted(&trial.target.name));
    let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), quoted(&value)]);
    if let Some(sessions) = sessions {
        flag("sessions", sessions.to_string());
    }
    flag("workload", trial.workload.clone());
    if Profile::by_name(&trial.profile).is_some() {
        flag("profile", trial.profile.clone());
    }
    if let Some(vcpu) = trial.vcpu {
        flag("vcpu", vcpu.to_string());
    }
    for (name, cpus) in [
        ("target-cpus", &trial.environment.target_cpus),
        ("client-cpus", &trial.environment.client_cpus),
    ] {
        if !cpus.is_empty() {
            flag(name, cores(cpus));
        }
    }
    flag("seed", seed.to_string());
    words.extend(Settings::of(trial).as_ref().map(ws_flags));
    words.join(" ")
}

fn changed_profile(trial: &Trial) -> Option<String> {
    let phases = &trial.phases;
    let as_named = Profile::by_name(&trial.profile).map(|profile| {
        let mut profile = profile.of_length(trial.length);
        trial.load_unit.shape(&mut profile);
        profile
    });
    (as_named.as_ref() != Some(phases)).then(|| {
        format!(
            "with the profile changed by hand: ramp {} s, warm-up {} s, measured {} s, grace {} s, start spread {} ms.",
            number(phases.ramp_s),
            number(phases.warm_up_s),
            number(phases.measured_s),
            number(phases.grace_s),
            number(phases.session_start_spread_ms)
        )
    })
}

/// A word as a shell accepts it: in single quotes unless it is plain.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,".contains(c);
    let word = words::plain(word);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Settings, quoted, ws_flags};

    #[test]
    fn what_a_ws_test_was_told_is_told_again() {
        let mut ws = Settings {
            test: "hold".to_owned(),
            dialect: "echo".to_owned(),
            message_bytes: Some(64),
            period_ms: Some(5_000.0),
            source_addresses: vec!["127.0.0.1".to_owned(), "127.0.0.2".to_owned()],
            ..Settings::default()
        };
        assert_eq!(
            ws_flags(&ws),
            "--test hold --dialect echo --message-bytes 64 --period-ms 5000 --source-addresses 127.0.0.1,127.0.0.2"
        );
        ws = Settings {
            test: "storm".to_owned(),
            dialect: "wse".to_owned(),
            linger_ms: Some(0.0),
            spacing: Some("poisson".to_owned()),
            ..Settings::default()
        };
        assert_eq!(
            ws_flags(&ws),
            "--test storm --dialect wse --linger-ms 0 --poisson"
        );
    }

    #[test]
    fn a_shell_sees_one_word() {
        assert_eq!(quoted("ws://host:3000/ws/stt"), "ws://host:3000/ws/stt");
        assert_eq!(quoted("ws://h/x?a=1&b=2"), "'ws://h/x?a=1&b=2'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
