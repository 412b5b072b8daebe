//! The keys that only the manifests of one workload have.

use toml::Value;

use super::Manifest;

/// What a workload demands of the manifests of its targets.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    /// The keys that only these manifests have.
    pub own: &'static [Key],
    /// What else must hold.
    pub rule: Rule,
}

impl Keys {
    /// These keys, and no rule between them.
    #[must_use]
    pub const fn of(own: &'static [Key]) -> Self {
        Self {
            own,
            rule: |_| Ok(()),
        }
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self::of(&[])
    }
}

/// A rule that one key alone cannot break. Called with a manifest whose keys each have a value that they take.
///
/// # Errors
/// One line that names the keys and the remedy.
pub type Rule = fn(&Manifest) -> std::result::Result<(), String>;

/// The keys of a workload by its name; `None` for a workload that nobody knows, whose manifests may say anything.
pub type KeysOf = fn(&str) -> Option<Keys>;

/// A key that only the manifests of one workload have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// Which values it takes.
    pub takes: Takes,
    /// Whether a manifest must have it.
    pub required: bool,
}

/// The key of a workload whose targets come in variants: which one this is.
pub const VARIANT: &str = "variant";

/// The key of the settings that such a target does not leave at their defaults, each in words.
pub const SETTINGS: &str = "settings";

/// Which values a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list with at least one of these words, each once.
    SomeOf(&'static [&'static str]),
    /// A list with at least one of these numbers, each once.
    SomeOfNumbers(&'static [u64]),
    /// A list of lines of text, at least one.
    Lines,
    /// `true`, or `false` for a target of tier `test` only.
    TrueUnlessTest {
        /// What a target that says `false` works without: `its database`.
        without: &'static str,
    },
    /// `true` if the target wants one more port.
    Port {
        /// The variable that Plimsoll then sets to a free one.
        variable: &'static str,
    },
}

impl Takes {
    pub(super) fn takes(self, value: &Value) -> bool {
        match self {
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::SomeOf(words) => texts(value).is_some_and(|said| each_once(&said, words)),
            Self::SomeOfNumbers(numbers) => {
                super::numbers(value).is_some_and(|said| each_once(&said, numbers))
            }
            Self::Lines => texts(value).is_some_and(|said| said.iter().all(|text| is_line(text))),
            Self::TrueUnlessTest { .. } | Self::Port { .. } => value.is_bool(),
        }
    }

    /// The values, for a message.
    pub(super) fn words(self) -> String {
        let quoted = |words: &[&str], between: &str| {
            let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            words.join(between)
        };
        match self {
            Self::OneOf(words) => quoted(words, " or "),
            Self::SomeOf(words) => format!("a list of some of {}, each once", quoted(words, ", ")),
            Self::SomeOfNumbers(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
                format!("a list of some of {}, each once", numbers.join(", "))
            }
            Self::Lines => "a list of texts, each one line".to_owned(),
            Self::TrueUnlessTest { .. } | Self::Port { .. } => "true or false".to_owned(),
        }
    }
}

/// Whether a list has something, only what may be said, and each of it once.
fn each_once<T: PartialEq>(said: &[T], known: &[T]) -> bool {
    let once = |(place, item): (usize, &T)| !said[..place].contains(item);
    !said.is_empty()
        && said.iter().all(|item| known.contains(item))
        && said.iter().enumerate().all(once)
}

/// A list of at least one text.
fn texts(value: &Value) -> Option<Vec<&str>> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    list.iter().map(Value::as_str).collect()
}

/// Whether a text is one line that says something.
pub(super) fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\n')
}
