//! How to measure the same again.

use plimsoll_core::profile::Profile;
use plimsoll_core::record::Trial;

use super::trial::cores;
use crate::words::{self, number};

/// The command that measures the same again, and what it needs beside itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// One line for a shell.
    pub command: String,
    /// How the profile was changed by hand, in a sentence.
    pub changed_profile: Option<String>,
    /// The gates of an SLO of the user's own, each with its threshold; empty for that of the workload.
    pub own_gates: Vec<(String, f64)>,
}

impl Repeat {
    /// Of a trial, or of the search that it shows the conditions of: `verb` is the command, `sessions` the load of a trial.
    #[must_use]
    pub fn of(trial: &Trial, verb: &str, sessions: Option<u32>, seed: u64) -> Self {
        let own_gates = if trial.slo == trial.workload {
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
    words.join(" ")
}

fn changed_profile(trial: &Trial) -> Option<String> {
    let phases = &trial.phases;
    let as_named = Profile::by_name(&trial.profile).map(|profile| profile.of_length(trial.length));
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

/// A word as a shell takes it: in single quotes unless it is plain.
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
    use super::quoted;

    #[test]
    fn a_shell_sees_one_word() {
        assert_eq!(quoted("ws://host:3000/ws/stt"), "ws://host:3000/ws/stt");
        assert_eq!(quoted("ws://h/x?a=1&b=2"), "'ws://h/x?a=1&b=2'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
