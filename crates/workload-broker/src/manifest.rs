//! The keys that the manifests of this workload's targets have.

use plimsoll_workload::{Key, Manifest, Refusal, SETTINGS, Takes, Value, Values};

use crate::guarantee::{Confirm, Kept};
use crate::load::Spoken;

/// The keys.
pub(crate) const KEYS: [Key; 4] = [
    Key {
        name: "dialect",
        takes: Takes::OneOf(&Spoken::NAMES),
        required: true,
    },
    Key {
        name: "levels",
        takes: Takes::Lines,
        required: true,
    },
    Key {
        name: "without",
        takes: Takes::Lines,
        required: false,
    },
    Key {
        name: SETTINGS,
        takes: Takes::Lines,
        required: false,
    },
];

/// One way in which a broker can be set up, and what its messages survive then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level<'a> {
    /// Its name, which the target gets as `LEVEL`.
    pub(crate) name: &'a str,
    /// How safe a message is when it is confirmed.
    pub(crate) confirm: Confirm,
    /// How safe it is when it is delivered.
    pub(crate) deliver: Kept,
}

impl<'a> Level<'a> {
    /// What a level of this name means for every broker, if this one means something else. Brokers with the same level are
    /// compared, so it must promise the same.
    fn contradicts(&self) -> Option<&'static str> {
        let (fits, means) = match self.name {
            "durable" => (
                (self.confirm, self.deliver) == (Confirm::Disk, Kept::Disk),
                "confirm disk, deliver disk",
            ),
            "speculative" => (
                self.confirm == Confirm::Disk && self.deliver < Kept::Disk,
                "confirm disk, deliver memory or cache",
            ),
            "ephemeral" => (
                (self.confirm, self.deliver) == (Confirm::Cache, Kept::Cache),
                "confirm cache, deliver cache",
            ),
            "memory" => (
                (self.confirm, self.deliver) == (Confirm::Memory, Kept::Memory),
                "confirm memory, deliver memory",
            ),
            _ => return None,
        };
        (!fits).then_some(means)
    }

    /// Reads `durable: confirm disk, deliver disk`.
    fn parse(line: &'a str) -> Option<Self> {
        let (name, guarantee) = line.split_once(": ")?;
        let (confirm, deliver) = guarantee.split_once(", ")?;
        Some(Self {
            name: name.trim(),
            confirm: Confirm::by_name(confirm.trim().strip_prefix("confirm ")?)?,
            deliver: Kept::by_name(deliver.trim().strip_prefix("deliver ")?)?,
        })
    }
}

/// What else must hold: the lists can be read.
pub(crate) fn rule(manifest: &Manifest) -> Result<(), String> {
    for line in manifest.list("levels").unwrap_or_default() {
        let Some(level) = Level::parse(line) else {
            return Err(format!(
                "`levels` has {line:?}; write NAME: confirm none|memory|cache|disk, deliver memory|cache|disk"
            ));
        };
        if let Some(means) = level.contradicts() {
            return Err(format!(
                "`levels` has {line:?}, but {} means {means}; use another name for it",
                level.name
            ));
        }
    }
    for line in manifest.list("without").unwrap_or_default() {
        if line.split_once(": ").is_none() {
            return Err(format!("`without` has {line:?}; write NAME: WHY"));
        }
    }
    Ok(())
}

/// The levels that a target has.
pub(crate) fn levels(manifest: &Manifest) -> Vec<Level<'_>> {
    let lines = manifest.list("levels").unwrap_or_default();
    lines.into_iter().filter_map(Level::parse).collect()
}

/// The levels that a target has, with what each promises, and those that it does not have.
pub(crate) fn offers(manifest: &Manifest) -> Vec<String> {
    let levels = manifest.list("levels").unwrap_or_default();
    let levels = levels.into_iter().map(|line| format!("--level {line}"));
    let without = manifest.list("without").unwrap_or_default();
    let without = without.into_iter().map(|line| format!("n/a {line}"));
    levels.chain(without).collect()
}

/// What the manifest settles for a load with this level.
///
/// # Errors
/// The target does not have the level; the line says why if the manifest does.
pub(crate) fn settled(manifest: &Manifest, level: &str) -> Result<Values, Refusal> {
    let levels = levels(manifest);
    let name = &manifest.name;
    let Some(found) = levels.iter().find(|known| known.name == level) else {
        let without = manifest.list("without").unwrap_or_default();
        let mut reasons = without.into_iter().filter_map(|line| line.split_once(": "));
        let why = reasons.find(|(of, _)| *of == level);
        let why = why.map_or(String::new(), |(_, why)| format!(" ({why})"));
        let known: Vec<&str> = levels.iter().map(|level| level.name).collect();
        return Err(Refusal(format!(
            "--level {level}: {name} does not have it{why}; it has {}",
            known.join(", ")
        )));
    };
    let word = |text: &str| Value::Word(text.to_owned());
    let dialect = manifest.property("dialect").unwrap_or_default();
    Ok(Values::default()
        .with("dialect", word(dialect))
        .with("confirm_at", word(found.confirm.name()))
        .with("deliver_at", word(found.deliver.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_from_its_line() {
        let durable = Level::parse("durable: confirm disk, deliver disk").unwrap();
        assert_eq!(
            (durable.name, durable.confirm, durable.deliver),
            ("durable", Confirm::Disk, Kept::Disk)
        );
        let none = Level::parse("qos0: confirm none, deliver memory").unwrap();
        assert_eq!(none.confirm, Confirm::None);
        for bad in [
            "durable",
            "durable: disk",
            "a: confirm disk, deliver none",
            "a: confirm x, deliver disk",
            "a:confirm disk,deliver disk",
        ] {
            assert_eq!(Level::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_name_means_the_same_for_every_broker() {
        for right in [
            "durable: confirm disk, deliver disk",
            "speculative: confirm disk, deliver cache",
            "quorum: confirm disk, deliver memory",
        ] {
            assert_eq!(Level::parse(right).unwrap().contradicts(), None, "{right}");
        }
        for wrong in [
            "durable: confirm disk, deliver cache",
            "speculative: confirm disk, deliver disk",
            "memory: confirm cache, deliver memory",
        ] {
            assert!(
                Level::parse(wrong).unwrap().contradicts().is_some(),
                "{wrong}"
            );
        }
    }
}
