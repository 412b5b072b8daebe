//! What a user can choose: one row for each choice.
//!
//! Everything that has to do with a parameter follows from its row: the flag and its help, the check of its value, the
//! key in a target's manifest, the record, the differences that a comparison lists, and the command that repeats a
//! measurement.

use std::path::{Path, PathBuf};

use plimsoll_core::record::Parameters;
use plimsoll_core::secret::Secret;
use plimsoll_targets::manifest::Manifest;

use crate::fields::Fields;
use crate::values::Value;

/// One thing that a user can choose.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name with underscores, units last: `linger_ms`. Records and manifests have it; the flag has dashes.
    pub name: &'static str,
    /// What the help shows for the value: `N`.
    pub value_name: &'static str,
    /// Which values there are.
    pub kind: Kind,
    /// The value if none is given.
    pub usual: Usual,
    /// What it is, for the help: a sentence without the full stop.
    pub help: &'static str,
    /// With which other values it has a meaning: with all of these at once.
    pub fits: &'static [Fit],
    /// A verb if it is a property of the target, which is then in its manifest: `speaks`. Targets that differ in it
    /// cannot be compared, for the same load is not the same work.
    pub of_target: Option<&'static str>,
    /// Whether it is only for a server that runs already.
    pub only_running: bool,
}

impl Parameter {
    /// A row with this name, kind and help; the other columns are the common ones.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            name,
            value_name: "N",
            kind,
            usual: Usual::None,
            help,
            fits: &[],
            of_target: None,
            only_running: false,
        }
    }

    /// Its flag, without dashes in front: `linger-ms`.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable that it can be given in, if it is a secret.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let name = self.name.to_ascii_uppercase();
        self.is_secret().then(|| format!("PLIMSOLL_{name}"))
    }

    /// The value if none is given; `None` if there is none, or if the plan chooses.
    #[must_use]
    pub fn usual_value(&self) -> Option<Value> {
        match self.usual {
            Usual::Value(text) => self.kind.parse(text).ok(),
            Usual::None | Usual::Told(_) => None,
        }
    }

    /// Its value for a target with this manifest, if it is a property of targets: what the manifest says, otherwise the
    /// usual value.
    #[must_use]
    pub fn of(&self, manifest: &Manifest) -> Option<Value> {
        self.of_target?;
        let said = manifest.property(self.name);
        said.map_or_else(|| self.usual_value(), |text| self.kind.parse(text).ok())
    }

    /// Whether its value is a secret, which no record and no client process gets.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }
}

/// The names of recorded parameters that can be given beside the others, in the order of the rows. A plan may record
/// more: what a series of trials varies by itself, and what the manifest of a target that Plimsoll started settles.
#[must_use]
pub fn that_can_be_given<'a>(
    rows: &[Parameter],
    recorded: &'a Parameters,
    started: bool,
) -> Vec<&'a str> {
    let meets = |fit: &Fit| {
        let value = recorded.get(fit.of).and_then(serde_json::Value::as_str);
        value.is_some_and(|word| fit.among.contains(&word))
    };
    let taken = |row: &&Parameter| !(started && row.only_running) && row.fits.iter().all(meets);
    let given = rows.iter().filter(taken);
    let names = given.filter_map(|row| recorded.get_key_value(row.name));
    names.map(|(name, _)| name.as_str()).collect()
}

/// Which values there are.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A whole number from `least` to `most`.
    Whole {
        /// The least value.
        least: u64,
        /// The greatest value.
        most: u64,
    },
    /// A number.
    Number,
    /// One of these words.
    OneOf(&'static [Choice]),
    /// One of these words, or a file whose name ends in `.toml`.
    OneOfOrFile(&'static [Choice]),
    /// A text that the plan reads.
    Text,
    /// Given or not.
    Flag,
    /// Addresses that the client connects from.
    Addresses,
    /// A file.
    File,
    /// Fields of the protocol, `NAME=VALUE`. The flag is repeatable. It must be `--param`, by which the command line is
    /// known to hold a field that may be a secret.
    Fields,
    /// A text that is never shown. It may also be in a file, or in [`Parameter::variable`]. Its name must have a word by
    /// which the command line is known to hold a secret, such as `token`, `password` or `key`.
    Secret,
}

/// A word that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The word.
    pub name: &'static str,
    /// What it means, for the help.
    pub about: &'static str,
}

impl Choice {
    /// A word and what it means.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about }
    }
}

/// The value if none is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usual {
    /// There is none, or it goes without saying.
    None,
    /// This value.
    Value(&'static str),
    /// The plan chooses. The text says which value, for the help.
    Told(&'static str),
}

/// A condition: another parameter has one of these values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// The name of the other parameter.
    pub of: &'static str,
    /// Its values.
    pub among: &'static [&'static str],
}

impl Kind {
    /// Whether it takes a value, which was read for this or another workload.
    ///
    /// # Errors
    /// What a value has to be, as the end of a sentence.
    pub fn takes(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Whole { .. } | Self::OneOf(_) | Self::OneOfOrFile(_) => {
                self.parse(&value.to_string()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The words that it takes by name.
    #[must_use]
    pub fn choices(&self) -> &'static [Choice] {
        match self {
            Self::OneOf(choices) | Self::OneOfOrFile(choices) => choices,
            _ => &[],
        }
    }

    /// Reads a value as the command line and manifests have it. A flag is `true` or `false`. Of several fields it reads
    /// one.
    ///
    /// # Errors
    /// What a value has to be, as the end of a sentence.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match *self {
            Self::Whole { least, most } => match text.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(Value::Whole(number)),
                _ => Err(format!("give a whole number from {least} to {most}")),
            },
            Self::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Value::Number(number)),
                _ => Err("give a number".to_owned()),
            },
            Self::OneOf(choices) => {
                word(choices, text).ok_or_else(|| format!("give one of {}", names(choices)))
            }
            Self::OneOfOrFile(_) if is_toml(text) => Ok(Value::File(PathBuf::from(text))),
            Self::OneOfOrFile(choices) => word(choices, text)
                .ok_or_else(|| format!("give one of {}, or a file NAME.toml", names(choices))),
            Self::Text => Ok(Value::Word(text.to_owned())),
            Self::Flag => match text {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => Err("give true or false".to_owned()),
            },
            Self::Addresses => {
                let addresses: Result<Vec<_>, _> = text.split(',').map(str::parse).collect();
                addresses
                    .map(Value::Addresses)
                    .map_err(|error| format!("{error}; give addresses with commas between them"))
            }
            Self::File => Ok(Value::File(PathBuf::from(text))),
            Self::Fields => Fields::parse(text).map(Value::Fields),
            Self::Secret => Ok(Value::Secret(Secret::new(text))),
        }
    }
}

fn word(choices: &[Choice], text: &str) -> Option<Value> {
    let choice = choices.iter().find(|choice| choice.name == text);
    choice.map(|choice| Value::Word(choice.name.to_owned()))
}

fn names(choices: &[Choice]) -> String {
    let names: Vec<_> = choices.iter().map(|choice| choice.name).collect();
    names.join(", ")
}

/// Whether this is a file in place of a word: [`Kind::OneOfOrFile`].
#[must_use]
pub fn is_toml(text: &str) -> bool {
    let extension = Path::new(text).extension();
    extension.is_some_and(|extension| extension == "toml")
}
