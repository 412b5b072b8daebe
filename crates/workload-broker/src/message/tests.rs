//! Messages that are right, and every way to spoil one.

use std::collections::HashSet;
use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use proptest::prelude::*;

use super::*;

const TRIAL: u32 = 0x6543_2100;
const SEED: u64 = 7;

fn messages(bytes: usize) -> Messages {
    Messages::new(TRIAL, SEED, bytes).unwrap()
}

fn stamp(sequence: u64) -> Stamp {
    Stamp {
        writer: 3,
        sequence,
        intended_ns: 0x0123_4567_89AB_CDEF,
        late_us: 0,
        measured: true,
    }
}

fn made(messages: &Messages, stamp: &Stamp) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages.encode(stamp, &mut bytes);
    bytes
}

/// The first message from number 0 on that is compared whole, or is not.
fn first(messages: &Messages, compared: bool) -> Stamp {
    (0..)
        .map(stamp)
        .find(|stamp| messages.is_compared(stamp) == compared)
        .unwrap()
}

#[test]
fn the_header_is_where_the_table_says() {
    let bytes = made(&messages(40), &stamp(0x0102_0304_0506_0708));
    assert_eq!(&bytes[..4], b"PlB1");
    assert_eq!(bytes[4..8], [0x00, 0x21, 0x43, 0x65]);
    assert_eq!(bytes[8..12], [3, 0, 0, 0]);
    assert_eq!(bytes[12..16], [1, 0, 0, 0]);
    assert_eq!(bytes[16..24], [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(
        bytes[24..32],
        [0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01]
    );
    assert_eq!(bytes[32..36], [40, 0, 0, 0]);
    assert_eq!(bytes[36..], crc32fast::hash(&bytes[..36]).to_le_bytes());
}

/// The check value of CRC-32 (IEEE 802.3) in the catalogue of CRC algorithms, `CRC-32/ISO-HDLC`.
#[test]
fn the_check_sum_is_the_usual_crc() {
    assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for bytes in [0, 39, BYTES_MAX + 1, usize::MAX] {
        assert_eq!(
            Messages::new(TRIAL, SEED, bytes).err(),
            Some(WrongSize { bytes })
        );
    }
    assert_eq!(
        WrongSize { bytes: 39 }.to_string(),
        "a message of 39 bytes is not possible; use 40 to 134217728"
    );
}

#[test]
fn every_damaged_byte_of_a_header_is_found() {
    let messages = messages(64);
    let good = made(&messages, &first(&messages, false));
    for at in 0..HEADER_BYTES {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let expected = if at < 4 {
                MessageFault::Foreign
            } else {
                MessageFault::DamagedHeader
            };
            assert_eq!(messages.check(&bad), Err(expected), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn every_damaged_byte_of_a_compared_body_is_found() {
    // More than two passes over the table, and a last word that is not whole.
    let messages = messages(HEADER_BYTES + 2 * 8 * TABLE_WORDS + 13);
    let good = made(&messages, &first(&messages, true));
    assert!(messages.check(&good).unwrap().compared);
    for at in HEADER_BYTES..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let offset = at - at % 8;
        assert_eq!(
            messages.check(&bad),
            Err(MessageFault::DamagedBody { offset })
        );
    }
}

#[test]
fn a_body_that_is_not_compared_passes() {
    let messages = messages(64);
    let stamp = first(&messages, false);
    let mut bytes = made(&messages, &stamp);
    bytes[50] ^= 1;
    let checked = Checked {
        stamp,
        compared: false,
    };
    assert_eq!(messages.check(&bytes), Ok(checked));
}

#[test]
fn one_in_64_is_compared() {
    let messages = messages(40);
    let compared = (0..64_000)
        .filter(|sequence| messages.is_compared(&stamp(*sequence)))
        .count();
    // 1,000 are expected, with a standard deviation of 31.
    assert!((900..1_100).contains(&compared), "{compared}");
}

#[test]
fn foreign_and_left_over_payloads_are_named() {
    let messages = messages(64);
    for foreign in [&b""[..], b"PlB", b"hello, world", &[0; 64]] {
        assert_eq!(messages.check(foreign), Err(MessageFault::Foreign));
    }
    let earlier = Messages::new(TRIAL - 1, SEED, 100).unwrap();
    let leftover = MessageFault::Leftover { trial: TRIAL - 1 };
    assert_eq!(
        messages.check(&made(&earlier, &stamp(0))),
        Err(leftover),
        "whatever its size"
    );
}

#[test]
fn a_message_says_how_late_it_was_made() {
    let messages = messages(64);
    for (late_us, read_us) in [(0, 0), (1_500, 1_500), (u64::MAX, 0x7FFF_FFFF)] {
        let late = Stamp {
            late_us,
            ..stamp(1)
        };
        let read = messages.check(&made(&messages, &late)).unwrap().stamp;
        assert_eq!((read.late_us, read.measured), (read_us, true));
        assert_eq!(read.made_ns(), late.intended_ns + read_us * 1_000);
    }
}

#[test]
fn another_size_is_named() {
    let messages = messages(64);
    let good = made(&messages, &stamp(0));
    for found in [4, 39, 40, 63] {
        assert_eq!(
            messages.check(&good[..found]),
            Err(MessageFault::AnotherSize {
                expected: 64,
                found
            })
        );
    }
    let mut longer = good.clone();
    longer.push(0);
    let found = MessageFault::AnotherSize {
        expected: 64,
        found: 65,
    };
    assert_eq!(messages.check(&longer), Err(found));
    assert_eq!(found.name(), "another_size");
    // Cut to the size of the trial, but sent as a longer one.
    let larger = self::messages(100);
    let mut cut = made(&larger, &stamp(0));
    cut.truncate(64);
    let sent = MessageFault::AnotherSize {
        expected: 64,
        found: 100,
    };
    assert_eq!(messages.check(&cut), Err(sent));
}

#[test]
fn messages_do_not_compress_alone_or_together() {
    for (bytes, count) in [(1_024, 512), (1 << 20, 2)] {
        let messages = messages(bytes);
        let mut compressed = DeflateEncoder::new(Vec::new(), Compression::best());
        for sequence in 0..count {
            let message = made(&messages, &stamp(sequence));
            compressed.write_all(&message[HEADER_BYTES..]).unwrap();
        }
        let left = compressed.finish().unwrap().len();
        let given = (bytes - HEADER_BYTES) * usize::try_from(count).unwrap();
        assert!(left >= given, "{left} of {given} bytes are left");
    }
}

/// Deflate looks back only 32 KiB. No word of the filler repeats, however far back a compressor looks.
#[test]
fn no_word_of_the_filler_repeats() {
    let messages = messages(HEADER_BYTES + 64 * 1024);
    let mut seen = HashSet::new();
    for sequence in 0..16 {
        let message = made(&messages, &stamp(sequence));
        for word in message[HEADER_BYTES..].as_chunks::<8>().0 {
            assert!(seen.insert(*word));
        }
    }
}

#[test]
fn seed_and_trial_decide_the_filler() {
    let of = |trial, seed| {
        let messages = Messages::new(trial, seed, 64).unwrap();
        made(&messages, &stamp(1))[HEADER_BYTES..].to_vec()
    };
    assert_eq!(of(1, 1), of(1, 1));
    assert_ne!(of(1, 1), of(1, 2));
    assert_ne!(of(1, 1), of(2, 1));
}

proptest! {
    #[test]
    fn what_was_made_is_read(
        writer in any::<u32>(), sequence in any::<u64>(), intended_ns in any::<u64>(), late_us in any::<u16>(), measured in any::<bool>(),
        bytes in 40_usize..20_000, before in 0_usize..20_000,
    ) {
        let messages = messages(bytes);
        let stamp = Stamp { writer, sequence, intended_ns, late_us: u64::from(late_us), measured };
        // A buffer that held something else.
        let mut buffer = vec![0xAA; before];
        messages.encode(&stamp, &mut buffer);
        prop_assert_eq!(buffer.len(), bytes);
        let checked = messages.check(&buffer).unwrap();
        prop_assert_eq!(checked.stamp, stamp);
        prop_assert_eq!(messages.compare(&stamp, &buffer[HEADER_BYTES..]), Ok(()));
    }

    /// Whatever comes, nothing panics; and a piece of a message is not a message.
    #[test]
    fn pieces_and_noise_are_refused(noise in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
        let messages = messages(200);
        prop_assert!(messages.check(&noise).is_err());
        let message = made(&messages, &stamp(9));
        prop_assert!(messages.check(&message[..cut]).is_err());
        prop_assert!(cut == 0 || messages.check(&message[cut..]).is_err());
        let mut spoilt = MAGIC.to_vec();
        spoilt.extend_from_slice(&noise);
        prop_assert!(messages.check(&spoilt).is_err());
    }
}
