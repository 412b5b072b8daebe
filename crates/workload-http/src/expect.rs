//! What the answer to a request must be, and whether it is.

use std::fmt;
use std::sync::Arc;

/// What `/bytes/N` repeats.
pub(crate) const PATTERN: &[u8; 16] = b"0123456789abcdef";
/// A body up to this long is compared in full.
const FULL_MAX_BYTES: u64 = 1024;
/// Of a longer body, this many bytes at each end are compared, and in one request of so many all of them.
const END_BYTES: u64 = 64;
const IN_FULL_EVERY: u64 = 64;
/// The longest body that is kept for a [`Judge`]. A longer one is wrong.
const JUDGED_MAX_BYTES: usize = 64 * 1024;
/// The longest body that [`Expected::Text`] has: `{"id":…,"name":"item …","even":false}` with 16 digits twice.
const TEXT_MAX_BYTES: usize = 80;

/// The body that an answer must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// So many bytes of the pattern.
    Pattern(u64),
    /// This text.
    Text(Text),
    /// A file that the user gave; the session has it.
    File,
    /// What a [`Judge`] takes; the session has it. The body is kept until it is complete.
    Judged,
    /// Any body: nobody said what it must be.
    Any,
}

/// Whether the request with this number is answered by this body.
type Takes = dyn Fn(u64, &[u8]) -> bool + Send + Sync;

/// Says whether a complete body answers the request with this number: what another workload knows of its answers.
#[derive(Clone)]
pub struct Judge(Arc<Takes>);

impl Judge {
    /// This judge. It runs on the thread that measures, so it must be short.
    pub fn new(takes: impl Fn(u64, &[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(takes))
    }

    /// Whether it takes this body.
    #[must_use]
    pub fn takes(&self, number: u64, body: &[u8]) -> bool {
        (self.0)(number, body)
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
}

/// A short text without an allocation of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    bytes: [u8; TEXT_MAX_BYTES],
    length: usize,
}

impl Text {
    /// This text, which must be short enough.
    pub(crate) fn new(arguments: std::fmt::Arguments<'_>) -> Self {
        let mut text = Self {
            bytes: [0; TEXT_MAX_BYTES],
            length: 0,
        };
        // It never fails: every text of the contract fits, see the tests.
        let _ = std::fmt::Write::write_fmt(&mut text, arguments);
        text
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let end = self.length + more.len();
        let room = self.bytes.get_mut(self.length..end);
        room.ok_or(std::fmt::Error)?
            .copy_from_slice(more.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// What the answers of a trial are compared with, if it is too much for an [`Expected`].
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// What the server of a URL answers, if the user said so.
    pub(crate) file: Vec<u8>,
    /// Who judges the answers, if another workload does.
    pub(crate) judge: Option<Judge>,
}

/// Compares a body with what it must be, piece by piece.
#[derive(Debug, Clone)]
pub(crate) struct BodyCheck {
    expected: Expected,
    /// The number of its request.
    number: u64,
    /// The body so far, if it is judged when it is complete.
    kept: Vec<u8>,
    /// Whether every byte is compared.
    in_full: bool,
    seen_bytes: u64,
    right: bool,
}

impl BodyCheck {
    /// The check of the answer to request `number`.
    pub(crate) fn new(expected: Expected, number: u64) -> Self {
        Self {
            expected,
            number,
            kept: Vec::new(),
            in_full: number.is_multiple_of(IN_FULL_EVERY),
            seen_bytes: 0,
            right: true,
        }
    }

    /// Takes the next piece. `known` is what [`Expected::File`] stands for.
    pub(crate) fn take(&mut self, piece: &[u8], known: &Known) {
        let at = self.seen_bytes;
        self.seen_bytes += piece.len() as u64;
        if !self.right {
            return;
        }
        self.right = match self.expected {
            Expected::Any => true,
            Expected::Judged => {
                let fits = self.kept.len() + piece.len() <= JUDGED_MAX_BYTES;
                self.kept.extend(piece.iter().take_while(|_| fits));
                fits
            }
            Expected::Text(text) => is_at(piece, text.bytes(), at),
            Expected::File => is_at(piece, &known.file, at),
            Expected::Pattern(length) if self.in_full || length <= FULL_MAX_BYTES => {
                is_pattern(piece, at)
            }
            Expected::Pattern(length) => {
                let end = at + piece.len() as u64;
                let head_end = END_BYTES.clamp(at, end);
                let tail_start = length.saturating_sub(END_BYTES).clamp(at, end);
                is_pattern(part(piece, 0, head_end - at), at)
                    && is_pattern(part(piece, tail_start - at, end - at), tail_start)
            }
        };
    }

    /// How long the body is so far.
    pub(crate) fn seen_bytes(&self) -> u64 {
        self.seen_bytes
    }

    /// Whether there is anything to compare it with.
    pub(crate) fn is_checked(&self) -> bool {
        self.expected != Expected::Any
    }

    /// Whether the body, which is complete, is what it must be.
    pub(crate) fn holds(&self, known: &Known) -> bool {
        let length = match &self.expected {
            Expected::Any => return true,
            Expected::Judged => {
                let judge = known.judge.as_ref();
                return self.right && judge.is_some_and(|it| it.takes(self.number, &self.kept));
            }
            Expected::Pattern(length) => *length,
            Expected::Text(text) => text.length as u64,
            Expected::File => known.file.len() as u64,
        };
        self.right && self.seen_bytes == length
    }
}

/// The bytes `from..to` of a piece.
fn part(piece: &[u8], from: u64, to: u64) -> &[u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(piece.len());
    &piece[index(from)..index(to)]
}

/// Whether a text has this piece at this place.
fn is_at(piece: &[u8], text: &[u8], at: u64) -> bool {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    text.get(at..).is_some_and(|rest| rest.starts_with(piece))
}

/// Whether a piece is the pattern from this place on.
fn is_pattern(piece: &[u8], at: u64) -> bool {
    let phase = usize::try_from(at % PATTERN.len() as u64).unwrap_or_default();
    let (first, rest) = piece.split_at(piece.len().min((PATTERN.len() - phase) % PATTERN.len()));
    let whole = rest.chunks_exact(PATTERN.len());
    let last = whole.remainder();
    PATTERN[phase..].starts_with(first)
        && rest
            .chunks_exact(PATTERN.len())
            .all(|chunk| chunk == PATTERN)
        && PATTERN.starts_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(length: usize) -> Vec<u8> {
        PATTERN.iter().copied().cycle().take(length).collect()
    }

    fn holds(expected: Expected, number: u64, body: &[u8], pieces: usize) -> bool {
        let known = Known {
            file: b"a file".to_vec(),
            judge: Some(Judge::new(|number, body| {
                body == number.to_string().as_bytes()
            })),
        };
        let mut check = BodyCheck::new(expected, number);
        for piece in body.chunks(pieces.max(1)) {
            check.take(piece, &known);
        }
        check.holds(&known)
    }

    #[test]
    fn a_judge_sees_the_whole_body_and_its_number() {
        assert!(holds(Expected::Judged, 1_234, b"1234", 3));
        assert!(!holds(Expected::Judged, 1_235, b"1234", 3));
        let long = vec![b'1'; JUDGED_MAX_BYTES + 1];
        assert!(!holds(Expected::Judged, 1, &long, 700));
    }

    #[test]
    fn every_text_of_the_contract_fits() {
        let longest = (1_u64 << 53) - 1;
        let json = Text::new(format_args!(
            "{{\"id\":{longest},\"name\":\"item {longest}\",\"even\":false}}"
        ));
        assert!(json.bytes().ends_with(b"\"even\":false}"));
        let sum = Text::new(format_args!("{:08x} {}", u32::MAX, 1 << 20));
        assert_eq!(sum.bytes(), b"ffffffff 1048576");
    }

    #[test]
    fn a_wrong_body_is_wrong_wherever_it_is_looked_at() {
        let ok = Expected::Text(Text::new(format_args!("ok")));
        assert!(holds(ok, 1, b"ok", 1));
        for body in [&b""[..], b"o", b"no", b"okk"] {
            assert!(!holds(ok, 1, body, 2), "{body:?}");
        }
        assert!(holds(Expected::File, 1, b"a file", 4));
        assert!(!holds(Expected::File, 1, b"a filx", 4));
        assert!(holds(Expected::Any, 1, b"what you will", 3));
    }

    #[test]
    fn the_middle_of_a_long_body_is_looked_at_in_some_requests() {
        let mut body = pattern(5_000);
        body[2_500] = b'!';
        assert!(holds(Expected::Pattern(5_000), 1, &body, 700));
        assert!(!holds(Expected::Pattern(5_000), 64, &body, 700));
    }

    proptest! {
        /// In any pieces: the right body holds, and one with a wrong byte at an end, or of another length, does not.
        #[test]
        fn pieces_do_not_matter(length in 1_usize..5_000, pieces in 1_usize..3_000, number in any::<u64>(), at in 0_usize..64) {
            let expected = Expected::Pattern(length as u64);
            let mut body = pattern(length);
            prop_assert!(holds(expected, number, &body, pieces));
            prop_assert!(!holds(expected, number, &body[1..], pieces));
            let last = length - 1 - at.min(length - 1);
            body[last] = b'!';
            prop_assert!(!holds(expected, number, &body, pieces));
            body[last] = PATTERN[last % 16];
            body[at.min(length - 1)] = b'!';
            prop_assert!(!holds(expected, number, &body, pieces));
        }
    }
}
