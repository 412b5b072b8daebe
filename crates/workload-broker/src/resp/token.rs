//! Bytes to the tokens of RESP, versions 2 and 3, one at a time and without copies if they come whole.
//!
//! The wire format is in `protocol/RESP3.md` of redis/redis-specifications and in "Redis serialization protocol
//! specification". An array or a map is a token of its own; its elements follow. So a reply is never held as a whole,
//! only the text that is split between two reads.

use memchr::memchr;
use thiserror::Error;

use crate::decimal;

/// The longest line: a simple text, an error or a number.
pub const LINE_MAX_BYTES: usize = 64 * 1024;

/// The longest text with a size in front, such as a message's body.
pub const BULK_MAX_BYTES: usize = 16 * 1024 * 1024;

/// The most elements of an array, or pairs of a map.
pub const ELEMENTS_MAX: u32 = 1024 * 1024;

/// A part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A short text.
    Simple(&'a [u8]),
    /// An error, short or with a size.
    Error(&'a [u8]),
    /// A whole number.
    Number(i64),
    /// A text with a size. Of a verbatim text, without its format.
    Bulk(&'a [u8]),
    /// Nothing, in any of the three ways to write it.
    Null,
    /// A number with a fraction, a large number or a truth value, as it was written.
    Other(&'a [u8]),
    /// An array or a set of so many elements, which follow.
    Array(u32),
    /// A map of so many pairs.
    Map(u32),
    /// So many elements that belong to no reply.
    Push(u32),
    /// So many pairs about the element that follows.
    Attribute(u32),
    /// A part of a token. The rest has not come.
    Part,
}

/// A rule of the protocol that the server broke, or a limit that it is over. Nothing can be read after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flaw {
    /// No line ends within [`LINE_MAX_BYTES`].
    #[error("a line is longer than 65,536 bytes")]
    LineTooLong,
    /// A line ends with LF alone.
    #[error("a line does not end with CR LF")]
    LineEnd,
    /// The first byte is that of no type.
    #[error("a value of an unknown type, {0:#04x}")]
    UnknownType(u8),
    /// Something else than a number.
    #[error("a size or a number is not one")]
    Number,
    /// A text is longer than [`BULK_MAX_BYTES`].
    #[error("a text is longer than 16 MiB")]
    BulkTooLong,
    /// An array or a map has more elements than [`ELEMENTS_MAX`].
    #[error("an array has more than 1,048,576 elements")]
    TooManyElements,
    /// Something else than CR LF stands behind a text.
    #[error("no CR LF stands behind a text")]
    BulkEnd,
    /// A verbatim text does not begin with its format.
    #[error("a verbatim text has no format")]
    Verbatim,
    /// Arrays in arrays, more than we follow.
    #[error("a reply has more than 8 levels")]
    TooDeep,
    /// A push inside a reply.
    #[error("a push stands inside a reply")]
    PushInside,
}

/// Cuts the stream of bytes into tokens.
///
/// It allocates only when a token is split between two reads, and keeps that buffer.
#[derive(Debug, Clone, Default)]
pub struct TokenReader {
    /// The bytes so far of a split token.
    held: Vec<u8>,
    /// Its whole length, once its line says so.
    whole_bytes: Option<usize>,
    /// What was held has been handed on.
    is_handed: bool,
}

/// What stands at the beginning of some bytes.
enum Cut<'a> {
    /// A token of this length.
    Whole(usize, Token<'a>),
    /// The beginning of a token of this length.
    Needs(usize),
    /// The beginning of a line.
    Line,
}

impl TokenReader {
    /// A reader for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its memory: at most a line and a text.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Reads the next token: how many bytes of `input` it used, and the token. `None` if no input is left.
    ///
    /// # Errors
    /// The server broke the protocol.
    #[inline]
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> Result<Option<(usize, Token<'a>)>, Flaw> {
        if self.is_handed {
            self.is_handed = false;
            self.whole_bytes = None;
            self.held.clear();
        }
        if input.is_empty() {
            return Ok(None);
        }
        if self.held.is_empty() {
            match cut(input)? {
                Cut::Whole(used, token) => return Ok(Some((used, token))),
                Cut::Needs(whole) => self.whole_bytes = Some(whole),
                Cut::Line => {}
            }
        }
        self.next_split(input)
    }

    /// Gathers a token that is split between reads.
    #[cold]
    fn next_split<'a>(&'a mut self, input: &'a [u8]) -> Result<Option<(usize, Token<'a>)>, Flaw> {
        let take = match self.whole_bytes {
            Some(whole) => input.len().min(whole - self.held.len()),
            None => memchr(b'\n', input).map_or(input.len(), |at| at + 1),
        };
        if self.whole_bytes.is_none() && self.held.len() + take > LINE_MAX_BYTES {
            return Err(Flaw::LineTooLong);
        }
        self.held.extend_from_slice(&input[..take]);
        let is_enough = match self.whole_bytes {
            Some(whole) => self.held.len() == whole,
            None => self.held.ends_with(b"\n"),
        };
        if !is_enough {
            return Ok(Some((take, Token::Part)));
        }
        match cut(&self.held)? {
            Cut::Whole(_, token) => {
                self.is_handed = true;
                Ok(Some((take, token)))
            }
            Cut::Needs(whole) => {
                self.whole_bytes = Some(whole);
                Ok(Some((take, Token::Part)))
            }
            Cut::Line => Ok(Some((take, Token::Part))),
        }
    }
}

fn cut(bytes: &[u8]) -> Result<Cut<'_>, Flaw> {
    let window = &bytes[..bytes.len().min(LINE_MAX_BYTES)];
    let Some(end) = memchr(b'\n', window) else {
        if bytes.len() >= LINE_MAX_BYTES {
            return Err(Flaw::LineTooLong);
        }
        return Ok(Cut::Line);
    };
    let line = bytes[..end].strip_suffix(b"\r").ok_or(Flaw::LineEnd)?;
    let (kind, rest) = line.split_first().ok_or(Flaw::UnknownType(b'\r'))?;
    let token = match kind {
        b'+' => Token::Simple(rest),
        b'-' => Token::Error(rest),
        b':' => Token::Number(number(rest)?),
        b'$' | b'!' | b'=' if rest != b"-1" => return cut_bulk(bytes, end + 1, *kind, rest),
        b'*' if rest != b"-1" => Token::Array(elements(rest)?),
        b'$' | b'*' => Token::Null,
        b'~' => Token::Array(elements(rest)?),
        b'%' => Token::Map(elements(rest)?),
        b'>' => Token::Push(elements(rest)?),
        b'|' => Token::Attribute(elements(rest)?),
        b'_' => Token::Null,
        b',' | b'#' | b'(' => Token::Other(rest),
        other => return Err(Flaw::UnknownType(*other)),
    };
    Ok(Cut::Whole(end + 1, token))
}

fn cut_bulk<'a>(bytes: &'a [u8], begin: usize, kind: u8, size: &[u8]) -> Result<Cut<'a>, Flaw> {
    let size = decimal::read(size).ok_or(Flaw::Number)?;
    let size = match usize::try_from(size) {
        Ok(size) if size <= BULK_MAX_BYTES => size,
        _ => return Err(Flaw::BulkTooLong),
    };
    let end = begin + size;
    let whole = end + 2;
    if bytes.len() < whole {
        return Ok(Cut::Needs(whole));
    }
    if &bytes[end..whole] != b"\r\n" {
        return Err(Flaw::BulkEnd);
    }
    let text = &bytes[begin..end];
    let token = match kind {
        b'!' => Token::Error(text),
        // Three letters and a colon say how to show it.
        b'=' if text.get(3) == Some(&b':') => Token::Bulk(&text[4..]),
        b'=' => return Err(Flaw::Verbatim),
        _ => Token::Bulk(text),
    };
    Ok(Cut::Whole(whole, token))
}

fn elements(digits: &[u8]) -> Result<u32, Flaw> {
    let count = decimal::read(digits).ok_or(Flaw::Number)?;
    match u32::try_from(count) {
        Ok(count) if count <= ELEMENTS_MAX => Ok(count),
        _ => Err(Flaw::TooManyElements),
    }
}

fn number(text: &[u8]) -> Result<i64, Flaw> {
    let (digits, is_negative) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (text.strip_prefix(b"+").unwrap_or(text), false),
    };
    let size = decimal::read(digits).ok_or(Flaw::Number)?;
    let number = if is_negative {
        0i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    };
    number.ok_or(Flaw::Number)
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
