//! Settings: a flag, else its environment variable, else the default. Anything bad is one line, before any socket.

use std::fmt::Write as _;

/// One setting of a program whose valid settings are a `C`.
#[derive(Debug)]
pub struct Setting<C> {
    /// Its environment variable. `TTS_PACE` has the flag `--tts-pace`.
    pub variable: &'static str,
    /// What holds where none is given, as a user would write it.
    pub default: &'static str,
    /// What a value may be: it follows "give".
    pub expected: &'static str,
    /// What it is for.
    pub meaning: &'static str,
    /// Takes a value; `None` if it cannot be used.
    pub set: fn(&mut C, &str) -> Option<()>,
}

impl<C> Setting<C> {
    /// Its flag.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.variable.to_ascii_lowercase().replace('_', "-"))
    }
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Command<C> {
    /// Serve.
    Run(C),
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// A value out of range, or not of its type.
    #[error("{name}={value:?}: give {expected}")]
    BadValue {
        /// The flag or the variable that it came from.
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

/// Reads flags and, for what no flag gives, environment variables. An empty variable counts as none.
///
/// # Errors
/// [`SettingError`], in one line.
pub fn parse<C: Default>(
    settings: &[Setting<C>],
    arguments: impl IntoIterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Command<C>, SettingError> {
    let mut config = C::default();
    for setting in settings {
        if let Some(value) = variable(setting.variable).filter(|value| !value.is_empty()) {
            set(&mut config, setting, setting.variable, &value)?;
        }
    }
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        match flag.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--version" | "-V" => return Ok(Command::Version),
            _ => {}
        }
        let Some(setting) = settings.iter().find(|setting| setting.flag() == flag) else {
            return Err(SettingError::UnknownFlag(flag));
        };
        let Some(value) = value.or_else(|| arguments.next()) else {
            return Err(SettingError::NoValue(flag));
        };
        set(&mut config, setting, &flag, &value)?;
    }
    Ok(Command::Run(config))
}

fn set<C>(
    config: &mut C,
    setting: &Setting<C>,
    name: &str,
    value: &str,
) -> Result<(), SettingError> {
    (setting.set)(config, value).ok_or_else(|| SettingError::BadValue {
        name: name.to_owned(),
        value: value.to_owned(),
        expected: setting.expected,
    })
}

/// The lines of `--help` about the settings.
#[must_use]
pub fn help<C>(settings: &[Setting<C>]) -> String {
    let mut text = "A flag, else the environment variable, else the default:\n\n".to_owned();
    for setting in settings {
        let (flag, variable, default) = (setting.flag(), setting.variable, setting.default);
        let (meaning, expected) = (setting.meaning, setting.expected);
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "  {flag:<15} {variable:<13} {default:<10} {meaning}: {expected}"
        );
    }
    text
}
