//! When a message is confirmed and delivered.

/// What a message survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: it is in this process alone.
    Memory,
    /// The end of this process: the kernel has it.
    Cache,
    /// A power cut: the disk has it.
    Disk,
}

/// A durability tier. The numbers are those in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Ephemeral, in memory alone: never written.
    Memory = 0,
    /// Ephemeral: written, never flushed for its sake.
    Cache = 1,
    /// Delivered when it is written, confirmed when it is on disk.
    Speculative = 2,
    /// Confirmed and delivered when it is on disk.
    Durable = 3,
}

impl Tier {
    /// All of them, with the names that the configuration has.
    pub const ALL: [(&'static str, Self); 4] = [
        ("memory", Self::Memory),
        ("cache", Self::Cache),
        ("speculative", Self::Speculative),
        ("durable", Self::Durable),
    ];

    /// The tier with this number in the log.
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.into_iter().map(|(_, tier)| tier).find(|tier| *tier as u8 == number)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// What a message survives when its writer is told that it was taken.
    pub fn confirm(self) -> Level {
        match self {
            Self::Memory => Level::Memory,
            Self::Cache => Level::Cache,
            Self::Speculative | Self::Durable => Level::Disk,
        }
    }

    /// What it survives when readers get it.
    pub fn deliver(self) -> Level {
        match self {
            Self::Memory => Level::Memory,
            Self::Cache | Self::Speculative => Level::Cache,
            Self::Durable => Level::Disk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_those_of_the_list() {
        for (name, tier) in Tier::ALL {
            assert_eq!((tier.name(), Tier::numbered(tier as u8)), (name, Some(tier)));
            assert!(tier.deliver() <= tier.confirm(), "no tier keeps from readers what is confirmed");
        }
        assert_eq!(Tier::numbered(4), None);
    }
}
