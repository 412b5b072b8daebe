//! Bytes to the tokens of RESP, versions 2 and 3, one at a time and without copies if they come whole.
//!
//! The wire format is in `protocol/RESP3.md` of redis/redis-specifications and in "Redis serialization protocol
//! specification". An array or a map is a token of its own; its elements follow. So a reply is never held as a whole,
//! only the text that is split between two reads.

use thiserror::Error;

use crate::decimal;
use crate::pieces::{Cut, LineFlaw, LineReader, Lines, line};

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
    /// Something is wrong with a line.
    #[error(transparent)]
    Line(#[from] LineFlaw),
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
pub type TokenReader = LineReader<Resp>;

/// The tokens of a server.
#[derive(Debug, Clone, Copy)]
pub enum Resp {}

impl Lines for Resp {
    type Unit<'a> = Token<'a>;
    type Flaw = Flaw;

    #[inline]
    fn cut(bytes: &[u8]) -> Result<Cut<Token<'_>>, Flaw> {
        let Some((end, line)) = line(bytes)? else {
            return Ok(Cut::Line);
        };
        let (kind, rest) = line.split_first().ok_or(Flaw::UnknownType(b'\r'))?;
        let token = match kind {
            b'+' => Token::Simple(rest),
            b'-' => Token::Error(rest),
            b':' => Token::Number(number(rest)?),
            b'$' | b'!' | b'=' if rest != b"-1" => return cut_bulk(bytes, end, *kind, rest),
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
        Ok(Cut::Whole(end, token))
    }

    fn part<'a>() -> Token<'a> {
        Token::Part
    }
}

fn cut_bulk<'a>(
    bytes: &'a [u8],
    begin: usize,
    kind: u8,
    size: &[u8],
) -> Result<Cut<Token<'a>>, Flaw> {
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
