//! The reply subject of a delivery, which says how often and as which message it was delivered (ADR-15 of
//! nats-io/nats-architecture-and-design, "JS Ack").

use crate::decimal;

/// The longest reply subject that we keep. Ours have names of at most 64 characters and six numbers.
pub const ACK_SUBJECT_MAX_BYTES: usize = 512;

/// What a reply subject says of its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSubject {
    /// How often this message was delivered, this time included.
    pub delivered: u64,
    /// Its number in the stream, from 1.
    pub stream_seq: u64,
    /// The number of this delivery by the consumer, from 1.
    pub consumer_seq: u64,
}

impl AckSubject {
    /// Reads `$JS.ACK.` with 9 words in all, or with 11 and more, where a domain and an account's hash come first.
    /// `None` for anything else.
    #[must_use]
    pub fn parse(reply: &[u8]) -> Option<Self> {
        if reply.len() > ACK_SUBJECT_MAX_BYTES {
            return None;
        }
        let rest = reply.strip_prefix(b"$JS.ACK.")?;
        // 7 words follow the first two, or 9 and more.
        let mut words: [&[u8]; 9] = [&[]; 9];
        let mut count = 0;
        for word in rest.split(|byte| *byte == b'.') {
            if let Some(place) = words.get_mut(count) {
                *place = word;
            }
            count += 1;
        }
        // In front of the numbers are the stream and the consumer.
        let numbers = match count {
            7 => &words[2..7],
            8 => return None,
            9.. => &words[4..9],
            _ => return None,
        };
        // Time and number of waiting messages must be numbers too, but mean nothing to us.
        decimal::read(numbers[3])?;
        decimal::read(numbers[4])?;
        Some(Self {
            delivered: decimal::read(numbers[0])?,
            stream_seq: decimal::read(numbers[1])?,
            consumer_seq: decimal::read(numbers[2])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let expected = Some(AckSubject {
            delivered: 2,
            stream_seq: 29034,
            consumer_seq: 29041,
        });
        for reply in [
            "$JS.ACK.bar.dur.2.29034.29041.1626845015078897000.0",
            "$JS.ACK._.Hx4.bar.dur.2.29034.29041.1626845015078897000.0",
            "$JS.ACK.hub.Hx4.bar.dur.2.29034.29041.1626845015078897000.0.random",
            "$JS.ACK.hub.Hx4.bar.dur.2.29034.29041.1626845015078897000.0.random.more",
        ] {
            assert_eq!(AckSubject::parse(reply.as_bytes()), expected, "{reply}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let long = format!(
            "$JS.ACK.{}.dur.1.1.1.1.0",
            "b".repeat(ACK_SUBJECT_MAX_BYTES)
        );
        for reply in [
            "",
            "_INBOX.x",
            "$JS.ACK.bar.dur.2.29034.29041.16268450150788970000",
            "$JS.ACK._.bar.dur.2.29034.29041.1626845015078897000.0",
            "$JS.ACK.bar.dur.x.29034.29041.1626845015078897000.0",
            "$JS.ACK.bar.dur.2.29034.29041..0",
            "$JS.FC.bar.dur.2.29034.29041.1626845015078897000.0",
            &long,
        ] {
            assert_eq!(AckSubject::parse(reply.as_bytes()), None, "{reply}");
        }
    }
}
