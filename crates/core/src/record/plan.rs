//! How a search began, so that it can be resumed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a search began. It is written before the first trial, so that a search that a crash or a signal ended can be
/// resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPlan {
    /// Version of this schema.
    pub schema_version: u32,
    /// The words of the command line after the program's name, without secrets: see [`crate::secret`].
    pub command: Vec<String>,
    /// The folder in which the command was given; relative paths in the command start there.
    pub working_folder: String,
    /// The target's name, or its URL.
    pub target: String,
    /// The highest load that the search may try. It follows from the load that the client can generate.
    pub max: u32,
    /// Number of the last trial that the result folder held before the search; the search's own trials come after it.
    pub trials_before: u32,
    /// When the search began, RFC 3339 in UTC.
    pub started_at: String,
    /// Names of the headers that were sent, from all sources. Their values are not stored.
    #[serde(default)]
    pub headers: Vec<String>,
    /// Names of the workload's parameters whose values are secrets. The values are not stored.
    #[serde(default)]
    pub secret_parameters: Vec<String>,
    /// The SHA-256 of the goals file; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goals_sha256: Option<String>,
    /// A code over all other fields, made with a key of the user who began the search, on that machine. It lets this
    /// user recognise the search. Empty if there is no such key.
    #[serde(default)]
    pub seal: String,
}
