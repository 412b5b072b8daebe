//! Bytes to commands, one at a time and without copies if they come whole.
//!
//! The wire format is in "Client Protocol" of the NATS documentation: a line that ends with CR LF, and after `MSG` and
//! `HMSG` a payload of the announced size with CR LF behind it.

use thiserror::Error;

use crate::decimal;
use crate::pieces::{Cut, LineFlaw, LineReader, Lines, line};

/// The largest message that we read, with its headers. The servers that we start allow 8 MB.
pub const MESSAGE_MAX_BYTES: usize = 16 * 1024 * 1024;

/// What the server said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// About itself, in JSON. Comes first, and again when something changes.
    Info(&'a [u8]),
    /// `MSG` or `HMSG`.
    Message(Message<'a>),
    /// Wants a PONG.
    Ping,
    /// The answer to our PING.
    Pong,
    /// `+OK`, in verbose mode only.
    Ok,
    /// `-ERR`, without the quotes.
    Error(&'a str),
    /// A part of something. The rest has not come.
    Part,
}

/// A message to one of our subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it was published to. JetStream writes the stream's subject here, not that of the subscription.
    pub subject: &'a [u8],
    /// The subscription's number.
    pub sid: u64,
    /// Where an answer goes.
    pub reply: Option<&'a [u8]>,
    /// The header block with its last empty line; empty after `MSG`.
    pub headers: &'a [u8],
    /// The body.
    pub payload: &'a [u8],
}

/// A rule of the protocol that the server broke, or a limit that it is over. Nothing can be read after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flaw {
    /// Something is wrong with a line.
    #[error(transparent)]
    Line(#[from] LineFlaw),
    /// A command that no server sends.
    #[error("a line begins with none of the server's commands")]
    UnknownCommand,
    /// The words of `MSG` or `HMSG` are not what they must be.
    #[error("the line of a message has wrong fields")]
    MessageFields,
    /// The message is larger than [`MESSAGE_MAX_BYTES`].
    #[error("a message is larger than 16 MiB")]
    MessageTooLarge,
    /// Something else than CR LF stands behind a payload.
    #[error("no CR LF stands behind a payload")]
    PayloadEnd,
}

/// Cuts the stream of bytes into commands.
pub type FrameReader = LineReader<Nats>;

/// The commands of a server.
#[derive(Debug, Clone, Copy)]
pub enum Nats {}

impl Lines for Nats {
    type Unit<'a> = Frame<'a>;
    type Flaw = Flaw;

    #[inline]
    fn cut(bytes: &[u8]) -> Result<Cut<Frame<'_>>, Flaw> {
        let Some((end, line)) = line(bytes)? else {
            return Ok(Cut::Line);
        };
        if let Some(fields) = line.strip_prefix(b"MSG ") {
            return cut_message(bytes, end, Head::parse(fields, false)?);
        }
        if let Some(fields) = line.strip_prefix(b"HMSG ") {
            return cut_message(bytes, end, Head::parse(fields, true)?);
        }
        Ok(Cut::Whole(end, plain(line)?))
    }

    fn part<'a>() -> Frame<'a> {
        Frame::Part
    }
}

/// A command that is a line only. Names may have any case; every server writes them in capitals.
fn plain(line: &[u8]) -> Result<Frame<'_>, Flaw> {
    let end = line
        .iter()
        .position(|byte| is_gap(*byte))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_ascii();
    match name {
        name if name.eq_ignore_ascii_case(b"PING") => Ok(Frame::Ping),
        name if name.eq_ignore_ascii_case(b"PONG") => Ok(Frame::Pong),
        name if name.eq_ignore_ascii_case(b"INFO") => Ok(Frame::Info(rest)),
        name if name.eq_ignore_ascii_case(b"+OK") => Ok(Frame::Ok),
        name if name.eq_ignore_ascii_case(b"-ERR") => Ok(Frame::Error(error_text(rest))),
        _ => Err(Flaw::UnknownCommand),
    }
}

fn error_text(rest: &[u8]) -> &str {
    let text = rest
        .strip_prefix(b"'")
        .and_then(|text| text.strip_suffix(b"'"))
        .unwrap_or(rest);
    str::from_utf8(text).unwrap_or("an error whose text is not UTF-8")
}

fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The line of a message.
struct Head<'a> {
    subject: &'a [u8],
    sid: u64,
    reply: Option<&'a [u8]>,
    header_bytes: usize,
    total_bytes: usize,
}

impl<'a> Head<'a> {
    /// Reads `subject sid [reply] #bytes`, or with headers `subject sid [reply] #header bytes #total bytes`.
    fn parse(line: &'a [u8], has_headers: bool) -> Result<Self, Flaw> {
        let mut fields: [&[u8]; 5] = [&[]; 5];
        let mut count = 0;
        for field in line
            .split(|byte| is_gap(*byte))
            .filter(|field| !field.is_empty())
        {
            *fields.get_mut(count).ok_or(Flaw::MessageFields)? = field;
            count += 1;
        }
        let sizes = 1 + usize::from(has_headers);
        let reply = match count.checked_sub(2 + sizes) {
            Some(0) => None,
            Some(1) => Some(fields[2]),
            _ => return Err(Flaw::MessageFields),
        };
        let total_bytes = size(fields[count - 1])?;
        let header_bytes = if has_headers {
            size(fields[count - 2])?
        } else {
            0
        };
        if header_bytes > total_bytes {
            return Err(Flaw::MessageFields);
        }
        Ok(Self {
            subject: fields[0],
            sid: decimal::read(fields[1]).ok_or(Flaw::MessageFields)?,
            reply,
            header_bytes,
            total_bytes,
        })
    }
}

fn size(digits: &[u8]) -> Result<usize, Flaw> {
    let size = decimal::read(digits).ok_or(Flaw::MessageFields)?;
    match usize::try_from(size) {
        Ok(size) if size <= MESSAGE_MAX_BYTES => Ok(size),
        _ => Err(Flaw::MessageTooLarge),
    }
}

fn cut_message<'a>(bytes: &'a [u8], begin: usize, head: Head<'a>) -> Result<Cut<Frame<'a>>, Flaw> {
    let end = begin + head.total_bytes;
    let whole = end + 2;
    if bytes.len() < whole {
        return Ok(Cut::Needs(whole));
    }
    if &bytes[end..whole] != b"\r\n" {
        return Err(Flaw::PayloadEnd);
    }
    let (headers, payload) = bytes[begin..end].split_at(head.header_bytes);
    Ok(Cut::Whole(
        whole,
        Frame::Message(Message {
            subject: head.subject,
            sid: head.sid,
            reply: head.reply,
            headers,
            payload,
        }),
    ))
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
