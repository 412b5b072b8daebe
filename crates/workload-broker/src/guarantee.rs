//! What a broker promises with a message, and which promises may be compared.
//!
//! A broker that answers from memory is faster than one that waits for its disk, and promises less. So a row always says
//! what its guarantee is, and rows with unlike guarantees are neither compared nor ranked.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How often a message may reach a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// Once or not at all.
    AtMostOnce,
    /// Once or more often.
    AtLeastOnce,
}

impl Times {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::AtMostOnce => "at most once",
            Self::AtLeastOnce => "at least once",
        }
    }
}

/// How safe a message is when the broker delivers it. The later ones are safer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// In the broker's memory: it does not survive the broker's end.
    Memory,
    /// In the kernel's page cache: it survives the end of the broker, even by kill -9, and not a loss of power.
    Cache,
    /// On the disk, by fsync: it survives a loss of power.
    Disk,
}

impl Kept {
    /// Its name in manifests and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cache => "cache",
            Self::Disk => "disk",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Memory, Self::Cache, Self::Disk];
        all.into_iter().find(|kept| kept.name() == name)
    }

    /// What a message that is kept so survives, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Memory => "in memory (survives nothing)",
            Self::Cache => "in the page cache (survives kill -9)",
            Self::Disk => "on disk (fsync; survives power loss)",
        }
    }
}

/// How safe a message is when the broker confirms it. The later ones are safer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// The broker does not confirm.
    None,
    /// As [`Kept::Memory`].
    Memory,
    /// As [`Kept::Cache`].
    Cache,
    /// As [`Kept::Disk`].
    Disk,
}

impl Confirm {
    /// How the message is kept when its confirmation comes; `None` if there is no confirmation.
    #[must_use]
    pub fn kept(self) -> Option<Kept> {
        match self {
            Self::None => None,
            Self::Memory => Some(Kept::Memory),
            Self::Cache => Some(Kept::Cache),
            Self::Disk => Some(Kept::Disk),
        }
    }

    /// Its name in manifests and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.kept().map_or("none", Kept::name)
    }

    /// The one of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::None, Self::Memory, Self::Cache, Self::Disk];
        all.into_iter().find(|confirm| confirm.name() == name)
    }
}

/// The usual name of a guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Confirmed and delivered only once the message is on disk.
    Durable,
    /// Confirmed once it is on disk, delivered earlier.
    Speculative,
    /// Confirmed and delivered before it is on disk.
    Ephemeral,
}

impl Tier {
    /// Its name in manifests and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Speculative => "speculative",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// What a broker promises with a message, in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// How often a message may reach a reader.
    pub times: Times,
    /// How safe it is when it is confirmed.
    pub confirm: Confirm,
    /// How safe it is when it is delivered.
    pub deliver: Kept,
}

/// Guarantees that are not the same.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unlike guarantees ({0})")]
pub struct Unlike(String);

impl Guarantee {
    /// Its usual name. `None` if it delivers only from disk and confirms earlier: nobody has a name for that.
    #[must_use]
    pub fn tier(self) -> Option<Tier> {
        match (self.confirm, self.deliver) {
            (Confirm::Disk, Kept::Disk) => Some(Tier::Durable),
            (Confirm::Disk, _) => Some(Tier::Speculative),
            (_, Kept::Disk) => None,
            (_, _) => Some(Tier::Ephemeral),
        }
    }

    /// Whether results under both guarantees may be compared and ranked: only if they are the same in every part. Two
    /// ephemeral guarantees can be as unlike as memory and page cache.
    ///
    /// # Errors
    /// They are unlike; the error names each part in which they differ.
    pub fn comparable(self, other: Self) -> Result<(), Unlike> {
        let parts = [
            ("", self.times.words(), other.times.words()),
            ("confirm ", self.confirm.name(), other.confirm.name()),
            ("deliver ", self.deliver.name(), other.deliver.name()),
        ];
        let different: Vec<String> = parts
            .iter()
            .filter(|(_, ours, theirs)| ours != theirs)
            .map(|(part, ours, theirs)| format!("{part}{ours}, {part}{theirs}"))
            .collect();
        if different.is_empty() {
            Ok(())
        } else {
            Err(Unlike(different.join("; ")))
        }
    }

    /// In words. `on_tmpfs`: the broker's data is in memory, whatever the broker believes.
    #[must_use]
    pub fn words(self, on_tmpfs: bool) -> String {
        let confirmed = self.confirm.kept().map_or_else(
            || "not confirmed".to_owned(),
            |kept| format!("confirmed when {}", kept.words()),
        );
        let tier = self.tier().map(|tier| format!("{}: ", tier.name()));
        let warning = if on_tmpfs {
            "; on tmpfs: not a durability number"
        } else {
            ""
        };
        format!(
            "{}{}, {confirmed}, delivered when {}{warning}",
            tier.unwrap_or_default(),
            self.times.words(),
            self.deliver.words(),
        )
    }
}

/// In short, for a column: `at least once · confirm disk · deliver memory`.
impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} · confirm {} · deliver {}",
            self.times.words(),
            self.confirm.name(),
            self.deliver.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIRMS: [Confirm; 4] = [
        Confirm::None,
        Confirm::Memory,
        Confirm::Cache,
        Confirm::Disk,
    ];
    const KEPTS: [Kept; 3] = [Kept::Memory, Kept::Cache, Kept::Disk];

    fn of(confirm: Confirm, deliver: Kept) -> Guarantee {
        Guarantee {
            times: Times::AtLeastOnce,
            confirm,
            deliver,
        }
    }

    fn all() -> Vec<Guarantee> {
        let mut all = Vec::new();
        for times in [Times::AtMostOnce, Times::AtLeastOnce] {
            for confirm in CONFIRMS {
                all.extend(KEPTS.map(|deliver| Guarantee {
                    times,
                    confirm,
                    deliver,
                }));
            }
        }
        all
    }

    #[test]
    fn every_pair_has_the_name_that_the_terms_give_it() {
        let names = CONFIRMS.map(|confirm| {
            KEPTS.map(|deliver| of(confirm, deliver).tier().map_or("–", Tier::name))
        });
        let earlier = ["ephemeral", "ephemeral", "–"];
        let disk = ["speculative", "speculative", "durable"];
        assert_eq!(names, [earlier, earlier, earlier, disk]);
    }

    #[test]
    fn only_the_same_guarantee_may_be_compared() {
        for a in all() {
            for b in all() {
                assert_eq!(a.comparable(b).is_ok(), a == b, "{a} and {b}");
            }
        }
        let durable = of(Confirm::Disk, Kept::Disk);
        let unlike = Guarantee {
            times: Times::AtMostOnce,
            ..of(Confirm::None, Kept::Disk)
        };
        assert_eq!(
            durable.comparable(unlike).unwrap_err().to_string(),
            "unlike guarantees (at least once, at most once; confirm disk, confirm none)"
        );
        assert_eq!(
            of(Confirm::Cache, Kept::Memory)
                .comparable(of(Confirm::Cache, Kept::Cache))
                .unwrap_err()
                .to_string(),
            "unlike guarantees (deliver memory, deliver cache)"
        );
    }

    #[test]
    fn in_words() {
        let speculative = of(Confirm::Disk, Kept::Memory);
        assert_eq!(
            speculative.to_string(),
            "at least once · confirm disk · deliver memory"
        );
        assert_eq!(
            speculative.words(false),
            "speculative: at least once, confirmed when on disk (fsync; survives power loss), delivered when in memory (survives nothing)"
        );
        let none = Guarantee {
            times: Times::AtMostOnce,
            ..of(Confirm::None, Kept::Disk)
        };
        assert_eq!(
            none.words(true),
            "at most once, not confirmed, delivered when on disk (fsync; survives power loss); on tmpfs: not a durability number"
        );
    }

    #[test]
    fn safer_is_greater() {
        assert!(CONFIRMS.is_sorted() && KEPTS.is_sorted());
        assert!(CONFIRMS.map(Confirm::kept).is_sorted());
    }

    #[test]
    fn a_manifest_says_it_in_these_words() {
        let text = r#"{"times":"at_least_once","confirm":"cache","deliver":"memory"}"#;
        let guarantee: Guarantee = serde_json::from_str(text).unwrap();
        assert_eq!(guarantee, of(Confirm::Cache, Kept::Memory));
        assert_eq!(serde_json::to_string(&guarantee).unwrap(), text);
        for wrong in [
            r#"{"times":"once","confirm":"cache","deliver":"memory"}"#,
            r#"{"times":"at_least_once","confirm":"cache","deliver":"none"}"#,
            r#"{"times":"at_least_once","confirm":"cache","deliver":"disk","extra":1}"#,
        ] {
            assert!(serde_json::from_str::<Guarantee>(wrong).is_err());
        }
    }
}
