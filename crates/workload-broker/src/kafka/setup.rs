//! What a connection is told before it begins.

use thiserror::Error;

/// The longest name of a topic (Kafka's own limit), and of a group.
pub const NAME_MAX_BYTES: usize = 249;

/// The most partitions of a topic. A handle has 16 bits for the partition.
pub const PARTITIONS_MAX: u32 = 1 << 16;

/// The most messages that a reader may have and not have settled before it asks for more.
pub const PREFETCH_MAX: u32 = 65_536;

/// The topic of a trial. All connections of a trial have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The topic. The first connection that comes creates it.
    pub topic: String,
    /// How many partitions it gets.
    pub partitions: u32,
    /// Whether the broker syncs each batch to the disk before it confirms it (`flush.messages=1` of the topic). Otherwise
    /// the broker's own settings decide.
    pub syncs_each: bool,
    /// The time that the batches bear, in ms since 1970. It need not be exact, because messages have their own time. But
    /// a broker removes what is older than its retention, so it must be about now.
    pub began_ms: i64,
}

/// Which messages a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Those of its share of the partitions: partition p belongs to reader p modulo the number of readers. It begins where
    /// the group's offsets are, and commits what is settled.
    Shared {
        /// The group that has the offsets.
        group: String,
        /// The reader's number, from 0.
        number: u32,
        /// How many readers share the topic.
        readers: u32,
    },
    /// All messages that come after it is ready. It commits nothing.
    Every,
}

/// A setup that cannot work. The text says why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidSetup {
    /// A name is empty, too long, or has a character that Kafka does not take.
    #[error("the {what} `{name}` must have 1 to 249 letters, digits, `.`, `-` or `_`")]
    Name {
        /// Which.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The number of partitions is 0 or above the limit.
    #[error("the number of partitions is {0}, and must be from 1 to 65,536")]
    Partitions(u32),
    /// There is no such partition.
    #[error("partition {partition} of {partitions}: partitions count from 0")]
    Partition {
        /// Which partition.
        partition: u32,
        /// Of how many.
        partitions: u32,
    },
    /// A reader would get nothing.
    #[error("{readers} readers share {partitions} partitions: give each reader a partition")]
    Readers {
        /// How many readers.
        readers: u32,
        /// How many partitions.
        partitions: u32,
    },
    /// There is no such reader.
    #[error("reader {number} of {readers}: readers count from 0")]
    Reader {
        /// Its number.
        number: u32,
        /// Of how many.
        readers: u32,
    },
    /// The prefetch is 0 or above the limit.
    #[error("the prefetch is {0}, and must be from 1 to 65,536")]
    Prefetch(u32),
}

impl Setup {
    pub(super) fn check(&self) -> Result<(), InvalidSetup> {
        check_name("topic", &self.topic)?;
        if (1..=PARTITIONS_MAX).contains(&self.partitions) {
            Ok(())
        } else {
            Err(InvalidSetup::Partitions(self.partitions))
        }
    }

    pub(super) fn check_partition(&self, partition: u32) -> Result<(), InvalidSetup> {
        if partition < self.partitions {
            Ok(())
        } else {
            Err(InvalidSetup::Partition {
                partition,
                partitions: self.partitions,
            })
        }
    }
}

impl Reading {
    pub(super) fn check(&self, partitions: u32) -> Result<(), InvalidSetup> {
        let Self::Shared {
            group,
            number,
            readers,
        } = self
        else {
            return Ok(());
        };
        check_name("group", group)?;
        let (number, readers) = (*number, *readers);
        if number >= readers {
            Err(InvalidSetup::Reader { number, readers })
        } else if readers > partitions {
            Err(InvalidSetup::Readers {
                readers,
                partitions,
            })
        } else {
            Ok(())
        }
    }

    /// The reader's partitions, of so many.
    pub(super) fn partitions(&self, partitions: u32) -> impl Iterator<Item = u32> {
        let (first, step) = match self {
            Self::Shared {
                number, readers, ..
            } => (*number, *readers),
            Self::Every => (0, 1),
        };
        (first..partitions).step_by(usize::try_from(step).unwrap_or(usize::MAX))
    }

    /// The group that has the offsets.
    pub(super) fn group(&self) -> Option<&str> {
        match self {
            Self::Shared { group, .. } => Some(group),
            Self::Every => None,
        }
    }
}

pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), InvalidSetup> {
    let fits = (1..=NAME_MAX_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    // Kafka refuses these two as names of topics: they would be folders.
    if fits && name != "." && name != ".." {
        Ok(())
    } else {
        Err(InvalidSetup::Name {
            what,
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(number: u32, readers: u32) -> Reading {
        Reading::Shared {
            group: "g".to_owned(),
            number,
            readers,
        }
    }

    #[test]
    fn readers_divide_the_partitions() {
        let of = |reading: &Reading| reading.partitions(7).collect::<Vec<_>>();
        assert_eq!(of(&shared(0, 3)), [0, 3, 6]);
        assert_eq!(of(&shared(1, 3)), [1, 4]);
        assert_eq!(of(&shared(2, 3)), [2, 5]);
        assert_eq!(of(&Reading::Every), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_cannot_work_is_said_in_words() {
        let good = || Setup {
            topic: "t".to_owned(),
            partitions: 2,
            syncs_each: false,
            began_ms: 0,
        };
        assert_eq!(good().check(), Ok(()));
        for topic in ["", ".", "..", "a b", "a/b", "ä", &"x".repeat(250)] {
            let setup = Setup {
                topic: topic.to_owned(),
                ..good()
            };
            let text = setup.check().unwrap_err().to_string();
            assert!(text.starts_with("the topic `"), "{text}");
        }
        for partitions in [0, PARTITIONS_MAX + 1] {
            let setup = Setup {
                partitions,
                ..good()
            };
            assert_eq!(setup.check(), Err(InvalidSetup::Partitions(partitions)));
        }
        let text = |reading: &Reading| reading.check(2).unwrap_err().to_string();
        assert_eq!(
            text(&shared(0, 3)),
            "3 readers share 2 partitions: give each reader a partition"
        );
        assert_eq!(text(&shared(2, 2)), "reader 2 of 2: readers count from 0");
        assert_eq!(shared(1, 2).check(2), Ok(()));
        assert!(good().check_partition(2).is_err());
        assert!(good().check_partition(1).is_ok());
    }
}
