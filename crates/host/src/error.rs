//! The error type of the machine. Each message is one clear line that names what failed and, if there is one, the
//! remedy.

use std::path::{Path, PathBuf};

/// What can go wrong with the machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user asked for something that this machine does not have, or made a mistake in the input. One line.
    #[error("{0}")]
    Usage(String),

    /// A child did not start, did not become ready, or ended when it should have kept running. The end of its log
    /// follows the first line.
    #[error("{name}: {text}; its log: {}{}", log.display(), indented(tail))]
    Child {
        /// The child's name in messages.
        name: String,
        /// What happened.
        text: String,
        /// The path of its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: Vec<String>,
    },

    /// A file or a system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The error from the operating system.
        source: std::io::Error,
    },

    /// One of our HTTP requests failed or got an unusable answer.
    #[error("{method} {url}: {text}")]
    Http {
        /// The HTTP method.
        method: &'static str,
        /// The URL.
        url: String,
        /// What happened.
        text: String,
    },

    /// A signal asked us to stop.
    #[error("interrupted while {0}")]
    Interrupted(String),
}

/// The result type of the machine.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::Io`] that says what was being done to which path.
    #[must_use]
    pub fn io(what: &str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            what: format!("{what} {}", path.display()),
            source,
        }
    }
}

/// The last lines of a log, as a message shows them below its first line.
#[must_use]
pub fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n    {line}")).collect()
}
