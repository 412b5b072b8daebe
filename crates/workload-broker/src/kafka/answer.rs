//! Bytes into answers.
//!
//! An answer is an `i32` length of what follows, the `i32` number of its request, and the answer itself, all big-endian.

use thiserror::Error;

use crate::pieces::{FrameReader, Frames};

/// The longest answer that is read. A Fetch brings one batch at least, however long it is.
pub const ANSWER_MAX_BYTES: usize = 16 << 20;

/// The length itself.
const LENGTH_BYTES: usize = 4;
/// The number of the request, which the length counts.
const NUMBER_BYTES: usize = 4;

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The number of the request.
    pub number: i32,
    /// What follows.
    pub body: &'a [u8],
}

/// The bytes are not answers of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flaw {
    /// No answer has this length.
    #[error(
        "an answer announces {0} bytes, outside of 4 to {ANSWER_MAX_BYTES}; is this a Kafka listener without TLS?"
    )]
    Length(i32),
}

/// Cuts the stream of bytes into answers.
pub type AnswerReader = FrameReader<Kafka>;

/// The answers of a broker.
#[derive(Debug)]
pub enum Kafka {}

impl Frames for Kafka {
    type Unit<'a> = Answer<'a>;
    type Flaw = Flaw;
    const HEAD_BYTES: usize = LENGTH_BYTES;
    /// Answers to Fetch are of this size under load.
    const KEPT_BYTES: usize = 2 * super::FETCH_MAX_BYTES;

    /// The length of the answer that begins here, if its own length is whole.
    #[inline]
    fn whole_length(bytes: &[u8]) -> Result<Option<usize>, Flaw> {
        let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let announced = i32::from_be_bytes(*length);
        let length = usize::try_from(announced)
            .ok()
            .filter(|length| (NUMBER_BYTES..=ANSWER_MAX_BYTES).contains(length))
            .ok_or(Flaw::Length(announced))?;
        Ok(Some(LENGTH_BYTES + length))
    }

    /// Reads an answer that is whole, so at least eight bytes.
    #[inline]
    fn parse(whole: &[u8]) -> Answer<'_> {
        let (head, body) = whole.split_at(LENGTH_BYTES + NUMBER_BYTES);
        let number = head.last_chunk::<NUMBER_BYTES>();
        Answer {
            number: number.map_or(0, |bytes| i32::from_be_bytes(*bytes)),
            body,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wire(number: i32, body: &[u8]) -> Vec<u8> {
        let length = i32::try_from(body.len() + NUMBER_BYTES).unwrap();
        [&length.to_be_bytes()[..], &number.to_be_bytes(), body].concat()
    }

    fn cut(bytes: &[u8], piece: usize) -> Result<Vec<(i32, Vec<u8>)>, Flaw> {
        let (mut reader, mut answers) = (AnswerReader::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            let mut rest = piece;
            while let Some((used, answer)) = reader.next(rest)? {
                answers.push((answer.number, answer.body.to_vec()));
                rest = &rest[used..];
            }
        }
        Ok(answers)
    }

    #[test]
    fn lengths_that_no_answer_has_are_refused_at_once() {
        assert_eq!(cut(b"HTTP/1.1 400", 3), Err(Flaw::Length(0x4854_5450)));
        for length in [i32::MIN, -1, 0, 3, 16 * 1024 * 1024 + 1] {
            assert_eq!(cut(&length.to_be_bytes(), 9), Err(Flaw::Length(length)));
        }
    }

    #[test]
    fn memory_grows_with_what_came_and_is_given_back() {
        let mut reader = AnswerReader::new();
        let most = i32::try_from(ANSWER_MAX_BYTES).unwrap();
        assert_eq!(reader.next(&most.to_be_bytes()), Ok(None));
        assert!(reader.held_bytes() < 64);
        let rest = vec![7; ANSWER_MAX_BYTES];
        assert!(reader.next(&rest).unwrap().is_some());
        assert_eq!(reader.next(&[]), Ok(None));
        assert!(reader.held_bytes() <= Kafka::KEPT_BYTES);
    }

    proptest! {
        #[test]
        fn answers_are_the_same_in_any_pieces(
            answers in prop::collection::vec((any::<i32>(), prop::collection::vec(any::<u8>(), 0..50)), 0..8),
            piece in 1_usize..80,
        ) {
            let bytes: Vec<u8> = answers.iter().flat_map(|(number, body)| wire(*number, body)).collect();
            prop_assert_eq!(cut(&bytes, piece), Ok(answers));
        }
    }
}
