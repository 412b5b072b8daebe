//! The bytes of a message: a length (four bytes, big-endian, of what follows), a type (one byte), and the content.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// The most that may follow a length.
pub const FRAME_MAX_BYTES: usize = 8 * 1024 * 1024;
/// The most that a deflated message may become.
const MESSAGE_MAX_BYTES: usize = 64 * 1024 * 1024;
/// From this size on, a message is deflated.
const DEFLATED_FROM_BYTES: usize = 512;

const MESSAGE: u8 = 1;
const DEFLATED: u8 = 2;
const PROBE: u8 = 3;
const ANSWER: u8 = 4;

/// What one side sends to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// JSON of the caller's types.
    Message(Vec<u8>),
    /// "What time is it there?"
    Probe {
        /// Which probe, so that its answer is known by it.
        number: u64,
    },
    /// The answer to a probe.
    Answer {
        /// Which probe.
        number: u64,
        /// The time there, in nanoseconds of its monotonic clock.
        at_ns: u64,
    },
}

/// Why bytes are no frame. The connection ends there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// More than is allowed.
    #[error("a message of {0} bytes, and at most {max} are allowed", max = FRAME_MAX_BYTES)]
    TooLong(usize),
    /// A type that there is not, or content that does not belong to it.
    #[error("bytes that are no message")]
    Nonsense,
}

/// The bytes of a frame.
///
/// # Errors
/// It would be longer than the other side accepts.
pub fn encode(frame: &Frame) -> Result<Vec<u8>, BadFrame> {
    let (kind, content) = match frame {
        Frame::Message(json) if json.len() >= DEFLATED_FROM_BYTES => (DEFLATED, deflated(json)),
        Frame::Message(json) => (MESSAGE, json.clone()),
        Frame::Probe { number } => (PROBE, number.to_be_bytes().to_vec()),
        Frame::Answer { number, at_ns } => {
            (ANSWER, [number.to_be_bytes(), at_ns.to_be_bytes()].concat())
        }
    };
    let length = content.len() + 1;
    let told = u32::try_from(length)
        .ok()
        .filter(|_| length <= FRAME_MAX_BYTES);
    let told = told.ok_or(BadFrame::TooLong(length))?;
    let mut bytes = Vec::with_capacity(length + 4);
    bytes.extend(told.to_be_bytes());
    bytes.push(kind);
    bytes.extend(content);
    Ok(bytes)
}

fn deflated(json: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(json)
        .and_then(|()| encoder.finish())
        .unwrap_or_default()
}

fn inflated(content: &[u8]) -> Result<Vec<u8>, BadFrame> {
    let mut json = Vec::new();
    // What is a little too long is seen, and no more than that is ever kept.
    let mut reader = DeflateDecoder::new(content).take(MESSAGE_MAX_BYTES as u64 + 1);
    reader
        .read_to_end(&mut json)
        .map_err(|_| BadFrame::Nonsense)?;
    if json.len() > MESSAGE_MAX_BYTES {
        return Err(BadFrame::TooLong(json.len()));
    }
    Ok(json)
}

/// Puts frames together from bytes as they come.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// Further bytes came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame, if it is there as a whole.
    ///
    /// # Errors
    /// What came is no frame. Nothing that comes later can be understood.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, BadFrame> {
        let Some((length, rest)) = self.bytes[self.taken..].split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > FRAME_MAX_BYTES {
            return Err(BadFrame::TooLong(length));
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = decode(frame)?;
        self.taken += 4 + length;
        Ok(Some(frame))
    }
}

fn decode(frame: &[u8]) -> Result<Frame, BadFrame> {
    let (kind, content) = frame.split_first().ok_or(BadFrame::Nonsense)?;
    let number = |bytes: &[u8]| {
        let bytes = bytes.try_into().map_err(|_| BadFrame::Nonsense)?;
        Ok(u64::from_be_bytes(bytes))
    };
    match *kind {
        MESSAGE => Ok(Frame::Message(content.to_vec())),
        DEFLATED => Ok(Frame::Message(inflated(content)?)),
        PROBE => Ok(Frame::Probe {
            number: number(content)?,
        }),
        ANSWER => {
            let (asked, at_ns) = content.split_at_checked(8).ok_or(BadFrame::Nonsense)?;
            Ok(Frame::Answer {
                number: number(asked)?,
                at_ns: number(at_ns)?,
            })
        }
        _ => Err(BadFrame::Nonsense),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = Frame> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..2_000).prop_map(Frame::Message),
            any::<u64>().prop_map(|number| Frame::Probe { number }),
            any::<(u64, u64)>().prop_map(|(number, at_ns)| Frame::Answer { number, at_ns }),
        ]
    }

    fn all(decoder: &mut Decoder) -> Result<Vec<Frame>, BadFrame> {
        std::iter::from_fn(|| decoder.next_frame().transpose()).collect()
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_kept() {
        let mut decoder = Decoder::default();
        decoder.push(&u32::MAX.to_be_bytes());
        assert_eq!(
            decoder.next_frame(),
            Err(BadFrame::TooLong(u32::MAX as usize))
        );
        // A small frame that would inflate to more than there may be.
        let zeros = vec![0; MESSAGE_MAX_BYTES + 1];
        let bomb = encode(&Frame::Message(zeros)).expect("it is small");
        let mut decoder = Decoder::default();
        decoder.push(&bomb);
        assert!(matches!(decoder.next_frame(), Err(BadFrame::TooLong(_))));
    }

    #[test]
    fn a_message_that_nobody_would_take_is_not_sent() {
        let mut seed = 1_u32;
        // Noise does not shrink.
        let noise = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed.to_be_bytes()[0]
        });
        let noise = noise.take(FRAME_MAX_BYTES + 1).collect();
        assert!(matches!(
            encode(&Frame::Message(noise)),
            Err(BadFrame::TooLong(_))
        ));
    }

    proptest! {
        #[test]
        fn frames_come_as_they_were_sent_however_they_are_cut(
            frames in prop::collection::vec(frame(), 0..20),
            cuts in prop::collection::vec(1_usize..700, 1..100),
        ) {
            let sent: Vec<u8> = frames.iter().flat_map(|frame| encode(frame).expect("short")).collect();
            let mut decoder = Decoder::default();
            let mut came = Vec::new();
            let (mut rest, mut cuts) = (sent.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(*cuts.next().expect("a cycle").min(&rest.len()));
                decoder.push(now);
                came.extend(all(&mut decoder).expect("frames"));
                rest = later;
            }
            prop_assert_eq!(came, frames);
        }

        /// Garbage ends in an error or waits for more; it never panics.
        #[test]
        fn garbage_does_no_harm(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20)) {
            let mut decoder = Decoder::default();
            for piece in pieces {
                decoder.push(&piece);
                if all(&mut decoder).is_err() {
                    break;
                }
            }
        }
    }
}
