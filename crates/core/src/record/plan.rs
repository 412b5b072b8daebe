//! How a search was begun, so that it can be gone on with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a search was begun: written before its first trial, so that one that a crash or a signal ended can be gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPlan {
    /// Version of this schema.
    pub schema_version: u32,
    /// The words of the command line behind the program's name, without secrets: see [`crate::secret`].
    pub command: Vec<String>,
    /// The folder in which it was given: relative paths in it count from there.
    pub working_folder: String,
    /// The target's name, or its URL.
    pub target: String,
    /// The highest load that the search may try: it follows from what the client was found to reach.
    pub max: u32,
    /// Number of the last trial that was in the result folder before; the search's own come after it.
    pub trials_before: u32,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// Names of the headers that were sent, wherever they came from. Their values are not kept.
    #[serde(default)]
    pub headers: Vec<String>,
    /// Whether tokens were signed with a secret of the user's. It is not kept.
    #[serde(default)]
    pub token_secret: bool,
    /// By which the user who began the search knows it again: a code over all of the above, made with a key of that user on that machine. Empty where there is no such key.
    #[serde(default)]
    pub seal: String,
}
