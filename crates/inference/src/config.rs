//! Settings: a flag, else its environment variable, else the default. Anything bad is one line, before any socket.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use serde::Serialize;

use crate::latency::LatencyModel;

/// Valid settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// `BIND`: the address to listen at.
    pub bind: IpAddr,
    /// `PORT`: the port to listen at; 0 takes a free one.
    pub port: u16,
    /// `MODEL_DELAY_MS`.
    pub model_delay_ms: f64,
    /// `MODEL_JITTER_SIGMA`.
    pub model_jitter_sigma: f64,
    /// `MODEL_BATCH_WAIT_MAX_MS`.
    pub model_batch_wait_max_ms: f64,
    /// `MODEL_LONGTAIL_MULT`.
    pub model_longtail_mult: f64,
    /// `MODEL_LONGTAIL_PROB`.
    pub model_longtail_prob: f64,
    /// `MODEL_MAX_CONCURRENT`.
    pub model_max_concurrent: usize,
    /// `MODEL_SEED`.
    pub model_seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 9000,
            model_delay_ms: 75.0,
            model_jitter_sigma: 0.15,
            model_batch_wait_max_ms: 20.0,
            model_longtail_mult: 3.0,
            model_longtail_prob: 0.01,
            model_max_concurrent: 65_536,
            model_seed: 1,
        }
    }
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Serve.
    Run(Config),
    /// Print [`help`].
    Help,
    /// Print the version.
    Version,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A value out of range, or not of its type.
    #[error("{name}={value}: give {expected}")]
    BadValue {
        /// The flag or the variable it came from.
        name: String,
        /// The value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// An argument that is no flag of this program.
    #[error("{0}: no such flag; --help lists them")]
    UnknownFlag(String),
    /// A flag at the end, without its value.
    #[error("{0}: give a value after it")]
    NoValue(String),
}

/// One setting: how it is called, what it may be, and where it goes.
struct Setting {
    variable: &'static str,
    expected: &'static str,
    meaning: &'static str,
    set: fn(&mut Config, &str) -> Option<()>,
}

impl Setting {
    /// `MODEL_DELAY_MS` is `--model-delay-ms`.
    fn flag(&self) -> String {
        format!("--{}", self.variable.to_ascii_lowercase().replace('_', "-"))
    }
}

const MILLISECONDS: &str = "milliseconds from 0 to 3600000";

const SETTINGS: [Setting; 9] = [
    Setting {
        variable: "BIND",
        expected: "an IP address",
        meaning: "address to listen at",
        set: |config, text| text.parse().map(|bind| config.bind = bind).ok(),
    },
    Setting {
        variable: "PORT",
        expected: "a port from 0 to 65535 (0: any free one)",
        meaning: "port to listen at",
        set: |config, text| text.parse().map(|port| config.port = port).ok(),
    },
    Setting {
        variable: "MODEL_DELAY_MS",
        expected: MILLISECONDS,
        meaning: "median of the log-normal part of the latency",
        set: |config, text| number(text, 3.6e6).map(|ms| config.model_delay_ms = ms),
    },
    Setting {
        variable: "MODEL_JITTER_SIGMA",
        expected: "a number from 0 to 5",
        meaning: "sigma of the log-normal part",
        set: |config, text| number(text, 5.0).map(|sigma| config.model_jitter_sigma = sigma),
    },
    Setting {
        variable: "MODEL_BATCH_WAIT_MAX_MS",
        expected: MILLISECONDS,
        meaning: "the uniform part of the latency goes up to this",
        set: |config, text| number(text, 3.6e6).map(|ms| config.model_batch_wait_max_ms = ms),
    },
    Setting {
        variable: "MODEL_LONGTAIL_MULT",
        expected: "a number from 0 to 1000",
        meaning: "factor on the log-normal part in the long tail",
        set: |config, text| number(text, 1000.0).map(|factor| config.model_longtail_mult = factor),
    },
    Setting {
        variable: "MODEL_LONGTAIL_PROB",
        expected: "a share from 0 to 1",
        meaning: "share of requests in the long tail",
        set: |config, text| number(text, 1.0).map(|share| config.model_longtail_prob = share),
    },
    Setting {
        variable: "MODEL_MAX_CONCURRENT",
        expected: "a whole number from 1 to 1000000",
        meaning: "requests worked on at once; the rest queue",
        set: |config, text| {
            let most = text
                .parse()
                .ok()
                .filter(|most| (1..=1_000_000).contains(most))?;
            config.model_max_concurrent = most;
            Some(())
        },
    },
    Setting {
        variable: "MODEL_SEED",
        expected: "a whole number from 0 to 2^64-1",
        meaning: "seed of every random draw",
        set: |config, text| text.parse().map(|seed| config.model_seed = seed).ok(),
    },
];

/// A finite number from 0 to `most`.
fn number(text: &str, most: f64) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number| (0.0..=most).contains(number))
}

/// Reads the arguments (without the program's name) and the environment.
///
/// # Errors
/// [`ConfigError`] for the first thing that cannot be used.
pub fn parse(
    arguments: impl IntoIterator<Item = String>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Command, ConfigError> {
    let mut config = Config::default();
    for setting in &SETTINGS {
        // An empty variable is an unset one: that is how compose files and shells leave a thing out.
        if let Some(value) = environment(setting.variable).filter(|value| !value.is_empty()) {
            apply(setting, &mut config, setting.variable, &value)?;
        }
    }
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "-V" | "--version" => return Ok(Command::Version),
            _ => {}
        }
        let (flag, inline) = match argument.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let Some(setting) = SETTINGS.iter().find(|setting| setting.flag() == flag) else {
            return Err(ConfigError::UnknownFlag(flag));
        };
        let value = inline
            .or_else(|| arguments.next())
            .ok_or_else(|| ConfigError::NoValue(flag.clone()))?;
        apply(setting, &mut config, &flag, &value)?;
    }
    Ok(Command::Run(config))
}

fn apply(
    setting: &Setting,
    config: &mut Config,
    name: &str,
    value: &str,
) -> Result<(), ConfigError> {
    (setting.set)(config, value.trim()).ok_or_else(|| ConfigError::BadValue {
        name: name.to_owned(),
        // Keeps the message one line whatever the value holds.
        value: value.escape_default().to_string(),
        expected: setting.expected,
    })
}

/// The text of `--help`.
#[must_use]
pub fn help() -> String {
    let mut text = String::from(
        "The inference simulator of Plimsoll's speech-to-text workload.\n\nUsage: plimsoll-inference [FLAG VALUE]...\n\n",
    );
    for setting in &SETTINGS {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {:28} {} ({}; also {})",
            setting.flag(),
            setting.meaning,
            setting.expected,
            setting.variable
        );
    }
    text
}

impl Config {
    /// The latency model these settings describe.
    #[must_use]
    pub const fn latency_model(&self) -> LatencyModel {
        LatencyModel {
            batch_wait_max_ms: self.model_batch_wait_max_ms,
            delay_ms: self.model_delay_ms,
            jitter_sigma: self.model_jitter_sigma,
            longtail_mult: self.model_longtail_mult,
            longtail_prob: self.model_longtail_prob,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Command, ConfigError> {
        parse(
            arguments.iter().map(|&argument| argument.to_owned()),
            |name| {
                environment
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            },
        )
    }

    #[test]
    fn nothing_given_is_the_contracts_default() {
        assert_eq!(of(&[], &[]), Ok(Command::Run(Config::default())));
        assert_eq!(
            of(&[], &[("PORT", "")]),
            Ok(Command::Run(Config::default()))
        );
    }

    #[test]
    fn every_setting_has_a_variable_and_a_flag_that_wins() {
        let environment = [
            ("BIND", "::1"),
            ("PORT", "1"),
            ("MODEL_DELAY_MS", "2.5"),
            ("MODEL_JITTER_SIGMA", "0"),
            ("MODEL_BATCH_WAIT_MAX_MS", "3"),
            ("MODEL_LONGTAIL_MULT", "4"),
            ("MODEL_LONGTAIL_PROB", "0.5"),
            ("MODEL_MAX_CONCURRENT", "6"),
            ("MODEL_SEED", "7"),
        ];
        let from_environment = Config {
            bind: "::1".parse().expect("an address"),
            port: 1,
            model_delay_ms: 2.5,
            model_jitter_sigma: 0.0,
            model_batch_wait_max_ms: 3.0,
            model_longtail_mult: 4.0,
            model_longtail_prob: 0.5,
            model_max_concurrent: 6,
            model_seed: 7,
        };
        assert_eq!(
            of(&[], &environment),
            Ok(Command::Run(from_environment.clone()))
        );
        assert_eq!(
            of(&["--port", "0", "--model-seed=9"], &environment),
            Ok(Command::Run(Config {
                port: 0,
                model_seed: 9,
                ..from_environment
            }))
        );
    }

    #[test]
    fn bad_values_are_one_line_that_names_the_setting() {
        let bad = [
            ("PORT", "65536"),
            ("PORT", "http"),
            ("BIND", "localhost"),
            ("MODEL_DELAY_MS", "-1"),
            ("MODEL_DELAY_MS", "NaN"),
            ("MODEL_DELAY_MS", "inf"),
            ("MODEL_JITTER_SIGMA", "6"),
            ("MODEL_LONGTAIL_PROB", "1.01"),
            ("MODEL_MAX_CONCURRENT", "0"),
            ("MODEL_SEED", "-1"),
            ("MODEL_SEED", "a\nb"),
        ];
        for (name, value) in bad {
            let error = of(&[], &[(name, value)]).expect_err(value).to_string();
            assert!(
                error.starts_with(&format!("{name}=")) && !error.contains('\n'),
                "{error}"
            );
        }
        assert_eq!(
            of(&["--speed", "1"], &[]),
            Err(ConfigError::UnknownFlag("--speed".to_owned()))
        );
        assert_eq!(
            of(&["--port"], &[]),
            Err(ConfigError::NoValue("--port".to_owned()))
        );
    }

    #[test]
    fn help_names_every_setting() {
        assert_eq!(of(&["--help"], &[]), Ok(Command::Help));
        assert_eq!(of(&["-V"], &[]), Ok(Command::Version));
        for setting in &SETTINGS {
            assert!(help().contains(&setting.flag()) && help().contains(setting.variable));
        }
    }
}
