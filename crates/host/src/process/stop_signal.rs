//! The signal that asks a process to stop.

use std::fmt;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// The signal by which a program ends in order: it finishes what it has begun. Most take SIGTERM for that; some stop at
/// once on SIGTERM and have another signal for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM.
    #[default]
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGHUP.
    Hup,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
    /// SIGWINCH.
    Winch,
}

impl StopSignal {
    /// Whether it is the usual one.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// As the system knows it.
    #[must_use]
    pub fn signal(self) -> Signal {
        match self {
            Self::Term => Signal::SIGTERM,
            Self::Int => Signal::SIGINT,
            Self::Quit => Signal::SIGQUIT,
            Self::Hup => Signal::SIGHUP,
            Self::Usr1 => Signal::SIGUSR1,
            Self::Usr2 => Signal::SIGUSR2,
            Self::Winch => Signal::SIGWINCH,
        }
    }
}

/// With the usual prefix: `SIGTERM`.
impl fmt::Display for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.signal().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_written_without_its_prefix() {
        for (word, name) in [
            ("TERM", "SIGTERM"),
            ("QUIT", "SIGQUIT"),
            ("USR1", "SIGUSR1"),
        ] {
            let signal: StopSignal = serde_json::from_value(word.into()).expect(word);
            assert_eq!(signal.to_string(), name);
            assert_eq!(signal.is_usual(), word == "TERM");
        }
        for word in ["SIGTERM", "KILL", "term"] {
            let error = serde_json::from_value::<StopSignal>(word.into()).expect_err(word);
            assert!(error.to_string().contains("`TERM`, `INT`"), "{error}");
        }
    }
}
