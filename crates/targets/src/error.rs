//! What can be wrong with a target. Each message names what failed and, if there is one, the remedy.

use std::path::PathBuf;

use plimsoll_host::error::indented;

/// What can be wrong with a target.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A manifest cannot be used.
    #[error("{}: {text}", file.display())]
    Manifest {
        /// The `target.toml`.
        file: PathBuf,
        /// What is wrong, with the line number where it is known.
        text: String,
    },

    /// A tool that a target's build needs is not installed.
    #[error("{target} needs {tool}, which is not installed: {install}")]
    MissingTool {
        /// The target's name.
        target: String,
        /// The tool's name, as in `[[build.needs]]`.
        tool: String,
        /// How to install it, from the manifest.
        install: String,
    },

    /// A build command ran and failed. The message has several lines: the end of the output follows the first line.
    #[error("building {target} failed ({status}); the whole log: {}{}", log.display(), indented(tail))]
    BuildFailed {
        /// The target's name.
        target: String,
        /// How the command ended.
        status: String,
        /// The log file with the whole output.
        log: PathBuf,
        /// The last lines of the output.
        tail: Vec<String>,
    },

    /// Not the target: the user asked for something impossible, the machine failed, or a signal asked us to stop.
    #[error(transparent)]
    Host(#[from] plimsoll_host::Error),
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A mistake of the user, in one line.
    pub(crate) fn usage(text: String) -> Self {
        Self::Host(plimsoll_host::Error::Usage(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_reads_as_one_line_with_its_remedy() {
        let error = Error::MissingTool {
            target: "rust-axum".into(),
            tool: "cargo".into(),
            install: "install Rust with rustup (https://rustup.rs)".into(),
        };
        assert_eq!(
            error.to_string(),
            "rust-axum needs cargo, which is not installed: install Rust with rustup (https://rustup.rs)"
        );
    }

    #[test]
    fn a_failed_build_shows_the_end_of_its_output_indented() {
        let error = Error::BuildFailed {
            target: "x".into(),
            status: "exit status: 1".into(),
            log: "/tmp/x.log".into(),
            tail: vec!["one".into(), "two".into()],
        };
        assert_eq!(
            error.to_string(),
            "building x failed (exit status: 1); the whole log: /tmp/x.log\n    one\n    two"
        );
    }
}
