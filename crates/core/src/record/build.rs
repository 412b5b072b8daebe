//! The build of Plimsoll that made a record.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many digits of a commit are shown.
const SHORT_DIGITS: usize = 12;

/// The build of Plimsoll that made a record. A field is `null` if it is unknown: in a build outside a checkout, and in
/// a record of 0.1.0 or before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// The commit of the sources.
    #[serde(default)]
    pub commit: Option<String>,
    /// Whether the sources had changes after that commit.
    #[serde(default)]
    pub dirty: Option<bool>,
    /// The compiler, by the name it gives itself.
    #[serde(default)]
    pub compiler: Option<String>,
    /// The compiler's profile: `release` or `debug`.
    #[serde(default)]
    pub profile: Option<String>,
}

impl Build {
    /// Whether nothing is known about the build.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Whether two records were surely made by the same build. Changed sources have no name, so two builds of them
    /// never count as the same. Neither do two builds of which nothing is known.
    #[must_use]
    pub fn is_surely(&self, other: &Self) -> bool {
        self.commit.is_some() && self.dirty == Some(false) && self == other
    }

    /// A warning about records of two builds; `None` if they are surely of the same one. `one` and `another` name the
    /// records.
    #[must_use]
    pub fn warning(&self, one: &str, other: &Self, another: &str) -> Option<String> {
        if self.is_surely(other) {
            return None;
        }
        if self.is_unknown() && other.is_unknown() {
            return Some(format!(
                "{one} and {another} do not say which build of Plimsoll made them: they may come from two builds"
            ));
        }
        let text = if self == other && self.dirty == Some(true) {
            format!(
                "{one} and {another} were made from modified sources ({self}), which may differ between builds"
            )
        } else {
            format!(
                "{one} is from {self}; {another} is from {other}: possibly different builds of Plimsoll"
            )
        };
        Some(text)
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.commit {
            Some(commit) => {
                let digits = commit.get(..SHORT_DIGITS).unwrap_or(commit);
                write!(f, "commit {digits}")?;
            }
            None => f.write_str("commit unknown")?,
        }
        if self.dirty == Some(true) {
            f.write_str(" (dirty)")?;
        }
        for part in [&self.compiler, &self.profile].into_iter().flatten() {
            write!(f, ", {part}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(commit: &str, dirty: bool) -> Build {
        Build {
            commit: Some(commit.to_owned()),
            dirty: Some(dirty),
            compiler: Some("rustc 1.88.0".to_owned()),
            profile: Some("release".to_owned()),
        }
    }

    #[test]
    fn it_reads_in_a_line() {
        let full = build("0123456789abcdef0123", true).to_string();
        assert_eq!(full, "commit 0123456789ab (dirty), rustc 1.88.0, release");
        assert_eq!(Build::default().to_string(), "commit unknown");
    }

    #[test]
    fn only_clean_builds_of_one_commit_are_the_same() {
        let clean = build("a", false);
        assert_eq!(clean.warning("A", &clean, "B"), None);
        let dirty = build("a", true);
        let said = |one: &Build, other: &Build| one.warning("A", other, "B").expect("a warning");
        assert!(said(&dirty, &dirty).contains("modified sources"));
        let both = said(&clean, &dirty);
        assert!(
            both.contains("A is from commit a,") && both.contains("B is from commit a (dirty)")
        );
        assert!(said(&clean, &build("b", false)).contains("commit b"));
        assert!(said(&Build::default(), &Build::default()).contains("do not say"));
        assert!(said(&Build::default(), &clean).contains("A is from commit unknown"));
        let debug = Build {
            profile: Some("debug".to_owned()),
            ..clean.clone()
        };
        assert!(said(&clean, &debug).contains("debug"));
    }

    #[test]
    fn an_old_record_has_none() {
        let old: Build = serde_json::from_str("{}").expect("all may be missing");
        assert!(old.is_unknown());
    }
}
