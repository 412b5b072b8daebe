//! How to repeat a measurement.

use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Parameters, Trial};
use plimsoll_document::{Tell, Tellers};
use serde_json::Value;

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
    pub fn of(
        trial: &Trial,
        (verb, sessions, seed): (&str, Option<u32>, u64),
        tellers: Tellers,
    ) -> Self {
        let own_gates = if is_default(trial) {
            Vec::new()
        } else {
            let gates = trial.gates.iter();
            gates
                .map(|gate| (gate.name.clone(), gate.threshold))
                .collect()
        };
        Self {
            command: command(trial, verb, sessions, seed, tellers),
            changed_profile: changed_profile(trial),
            own_gates,
        }
    }
}

/// Whether the SLO is the workload's default. A workload may have one for each value of a parameter.
fn is_default(trial: &Trial) -> bool {
    let of_value = |value: &Value| {
        Some(&trial.slo)
            == value
                .as_str()
                .map(|word| format!("{}-{word}", trial.workload))
                .as_ref()
    };
    trial.slo == trial.workload || trial.parameters.values().any(of_value)
}

/// The engine's tick and the parameters of a trial as flags, the latter as far as its workload repeats it with them. The
/// tick is always there: what a workload usually has may change.
#[must_use]
pub fn flags(trial: &Trial, tellers: Tellers) -> String {
    let teller = tellers.of(&trial.workload);
    let parameters = as_flags(&trial.parameters, is_started(trial), teller);
    let tick_us = trial.environment.engine_tick_us;
    format!("--tick-us {tick_us} {parameters}")
        .trim_end()
        .to_owned()
}

/// Whether Plimsoll started the target.
fn is_started(trial: &Trial) -> bool {
    trial.target.tier != "url"
}

fn as_flags(parameters: &Parameters, started: bool, teller: &dyn Tell) -> String {
    let names = teller.repeated_with(parameters, started).into_iter();
    let flags = names.filter_map(|name| {
        let flag = quoted(&format!("--{}", name.replace('_', "-")));
        match parameters.get(name)? {
            Value::Bool(given) => given.then_some(flag),
            Value::String(word) => Some(format!("{flag} {}", quoted(word))),
            Value::Array(list) => {
                let words: Vec<_> = list.iter().filter_map(Value::as_str).collect();
                if !words.is_empty() && words.iter().all(|word| word.contains('=')) {
                    // Fields, each with a flag of its own. No address has such a sign.
                    let each = words.iter().map(|word| format!("{flag} {}", quoted(word)));
                    return Some(each.collect::<Vec<_>>().join(" "));
                }
                Some(format!("{flag} {}", quoted(&words.join(","))))
            }
            // A whole number is written without a fraction.
            Value::Number(number) => match number.as_u64() {
                Some(whole) => Some(format!("{flag} {whole}")),
                None => number.as_f64().map(|number| format!("{flag} {number}")),
            },
            Value::Null | Value::Object(_) => None,
        }
    });
    flags.collect::<Vec<_>>().join(" ")
}

fn command(
    trial: &Trial,
    verb: &str,
    sessions: Option<u32>,
    seed: u64,
    tellers: Tellers,
) -> String {
    let mut words = vec!["plimsoll".to_owned(), verb.to_owned()];
    if !is_started(trial) {
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
    if let Some(baseline) = trial.baseline.as_ref().filter(|_| verb == "run") {
        flag("baseline", baseline.clone());
    }
    flag("seed", seed.to_string());
    if let Some(tls) = &trial.environment.tls {
        if let Some(sni) = &tls.sni {
            flag("sni", sni.clone());
        }
        if !tls.verified {
            words.push("--tls-insecure".to_owned());
        }
    }
    words.extend(Some(flags(trial, tellers)).filter(|flags| !flags.is_empty()));
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
    use plimsoll_document::{Tell, Tellers};
    use plimsoll_workload_ws::Ws;
    use serde_json::json;

    use super::{as_flags, quoted};

    fn told_again(parameters: serde_json::Value, teller: &dyn Tell) -> String {
        as_flags(&serde_json::from_value(parameters).unwrap(), true, teller)
    }

    #[test]
    fn what_a_trial_was_told_is_told_again_in_the_order_of_the_rows() {
        let told = |parameters| told_again(parameters, &Ws);
        assert_eq!(
            told(json!({
                "test": "hold", "dialect": "echo", "message_bytes": 64, "period_ms": 5000,
                "source_addresses": ["127.0.0.1", "127.0.0.2"],
            })),
            "--test hold --dialect echo --message-bytes 64 --period-ms 5000 --source-addresses 127.0.0.1,127.0.0.2"
        );
        assert_eq!(
            told(json!({"test": "storm", "linger_ms": 0, "poisson": true, "closed_loop": false})),
            "--test storm --linger-ms 0 --poisson"
        );
        assert_eq!(
            told(json!({"test": "fanout", "message_bytes": 64, "rate": 10.0})),
            "--test fanout --message-bytes 64 --rate 10"
        );
    }

    #[test]
    fn a_series_is_repeated_without_what_it_varies() {
        assert_eq!(
            told_again(
                json!({"test": "matrix", "message_bytes": 64, "format": "json", "connections": 9}),
                &Ws
            ),
            "--test matrix --connections 9"
        );
    }

    #[test]
    fn parameters_of_an_unknown_workload_are_in_the_order_of_their_names() {
        let parameters = json!({"test": "matrix", "message_bytes": 64, "colour": "deep red"});
        assert_eq!(
            told_again(parameters, Tellers::NONE.of("later")),
            "--colour 'deep red' --message-bytes 64 --test matrix"
        );
    }

    #[test]
    fn fields_are_told_one_by_one() {
        let parameters = json!({"param": ["model=nova-2", "token=[redacted]"], "seconds": 5});
        assert_eq!(
            told_again(parameters, Tellers::NONE.of("later")),
            "--param 'model=nova-2' --param 'token=[redacted]' --seconds 5"
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
