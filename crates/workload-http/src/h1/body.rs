//! Where bodies end.

use super::fault::Flaw;
use super::head::HEAD_MAX_BYTES;
use super::scan::{is_text_byte, is_token_byte};

/// How a message tells where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// It has no body by its kind: an answer to HEAD, status 204 or 304, a request that says nothing.
    Empty,
    /// By Content-Length.
    Length(u64),
    /// By chunks.
    Chunked,
    /// By the end of the connection; answers only.
    UntilClose,
}

/// The state of a body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Body {
    /// So many bytes are missing.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

impl Body {
    /// `None` if nothing follows the head.
    pub(super) fn new(framing: Framing) -> Option<Self> {
        match framing {
            Framing::Empty | Framing::Length(0) => None,
            Framing::Length(length) => Some(Self::Length(length)),
            Framing::Chunked => Some(Self::Chunked(Chunks::new())),
            Framing::UntilClose => Some(Self::UntilClose),
        }
    }

    /// Takes some of `input`, which is not empty, and hands on what of it is body. True at the end of the body.
    #[inline]
    pub(super) fn take(
        &mut self,
        input: &[u8],
        on_bytes: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, bool), Flaw> {
        match self {
            Self::Length(missing) => {
                let used = usize::try_from(*missing).map_or(input.len(), |n| n.min(input.len()));
                *missing -= used as u64;
                on_bytes(&input[..used]);
                Ok((used, *missing == 0))
            }
            Self::Chunked(chunks) => chunks.take(input, on_bytes),
            Self::UntilClose => {
                on_bytes(input);
                Ok((input.len(), false))
            }
        }
    }
}

/// The state of a chunked body (RFC 9112, section 7.1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    at: At,
    /// The size that is being read, or what is missing of the chunk.
    size: u64,
    /// Bytes of extensions and trailers so far.
    line_bytes: u32,
}

/// What is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// A digit of the size; so many were there.
    Size(u8),
    /// Spaces before the semicolon of an extension.
    BeforeExtension,
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    /// The beginning of a trailer line, or the end.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    EndLineFeed,
}

/// 15 digits: no size overflows, not even the sum of some.
const SIZE_DIGITS_MAX: u8 = 15;

impl Chunks {
    fn new() -> Self {
        Self {
            at: At::Size(0),
            size: 0,
            line_bytes: 0,
        }
    }

    fn take(
        &mut self,
        input: &[u8],
        on_bytes: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, bool), Flaw> {
        let mut used = 0;
        while used < input.len() {
            if self.at == At::Data {
                let rest = &input[used..];
                let len = usize::try_from(self.size).map_or(rest.len(), |n| n.min(rest.len()));
                on_bytes(&rest[..len]);
                used += len;
                self.size -= len as u64;
                if self.size == 0 {
                    self.at = At::DataReturn;
                }
                continue;
            }
            let byte = input[used];
            used += 1;
            if self.at == At::EndLineFeed {
                return if byte == b'\n' {
                    Ok((used, true))
                } else {
                    Err(Flaw::Trailer)
                };
            }
            self.at = self.after(byte)?;
        }
        Ok((used, false))
    }

    /// What is expected behind `byte`, which is neither data nor the last one.
    fn after(&mut self, byte: u8) -> Result<At, Flaw> {
        if matches!(
            self.at,
            At::BeforeExtension | At::Extension | At::TrailerName | At::TrailerValue
        ) {
            self.line_bytes += 1;
            if self.line_bytes as usize > HEAD_MAX_BYTES {
                return Err(Flaw::ChunkLinesTooLarge);
            }
        }
        match (self.at, byte) {
            (At::Size(digits), _) => self.size_digit(digits, byte),
            (At::BeforeExtension, b' ' | b'\t') => Ok(At::BeforeExtension),
            (At::BeforeExtension, b';') => Ok(At::Extension),
            (At::Extension, b'\r') => Ok(At::SizeLineFeed),
            (At::Extension, _) if is_text_byte(byte) => Ok(At::Extension),
            (At::SizeLineFeed, b'\n') if self.size == 0 => Ok(At::TrailerStart),
            (At::SizeLineFeed, b'\n') => Ok(At::Data),
            (At::BeforeExtension | At::Extension | At::SizeLineFeed, _) => Err(Flaw::ChunkLine),
            (At::DataReturn, b'\r') => Ok(At::DataLineFeed),
            (At::DataLineFeed, b'\n') => Ok(At::Size(0)),
            (At::DataReturn | At::DataLineFeed, _) => Err(Flaw::ChunkEnd),
            (At::TrailerStart, b'\r') => Ok(At::EndLineFeed),
            (At::TrailerStart | At::TrailerName, _) if is_token_byte(byte) => Ok(At::TrailerName),
            (At::TrailerName, b':') => Ok(At::TrailerValue),
            (At::TrailerValue, b'\r') => Ok(At::TrailerLineFeed),
            (At::TrailerValue, _) if is_text_byte(byte) => Ok(At::TrailerValue),
            (At::TrailerLineFeed, b'\n') => Ok(At::TrailerStart),
            _ => Err(Flaw::Trailer),
        }
    }

    fn size_digit(&mut self, digits: u8, byte: u8) -> Result<At, Flaw> {
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if digits == 0 => return Err(Flaw::ChunkSize),
            b'\r' => return Ok(At::SizeLineFeed),
            b';' => return Ok(At::Extension),
            b' ' | b'\t' => return Ok(At::BeforeExtension),
            _ => return Err(Flaw::ChunkSize),
        };
        if digits == SIZE_DIGITS_MAX {
            return Err(Flaw::ChunkSize);
        }
        self.size = if digits == 0 { 0 } else { self.size << 4 } | u64::from(value);
        Ok(At::Size(digits + 1))
    }
}
