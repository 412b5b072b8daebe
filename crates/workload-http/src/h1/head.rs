//! Heads: the lines up to the empty one, of an answer or a request.
//!
//! The usual head lies whole inside one read and is parsed where it is. A split one is gathered in a buffer, line by
//! line. A flaw is reported only when its line is complete, so that the same bytes have the same flaw however they are
//! split.

use super::body::Framing;
use super::fault::Flaw;
use super::scan::{decimal, text_end, token_end, trim};

/// The longest head, in both directions.
pub const HEAD_MAX_BYTES: usize = 64 * 1024;

/// A larger buffer is given back after its head, so that one long head does not cost memory on every connection.
const KEPT_BUFFER_BYTES: usize = 4 * 1024;

/// The field lines of a head, already checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Names and values in their order, without the white space around values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let lines = self.0.split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let value = line[colon + 1..].strip_suffix(b"\r")?;
            Some((&line[..colon], trim(value)))
        })
    }

    /// The first value of the field `name`, in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The lines as they came, with the empty one at the end.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// The first line of a head.
pub(super) trait StartLine: Copy {
    /// Parses it, without the end of the line.
    fn parse(line: &[u8]) -> Result<Self, Flaw>;
}

/// What the fields say about body and connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Framed {
    pub(super) content_length: Option<u64>,
    pub(super) chunked: bool,
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    /// How many Host fields there are; two stands for more.
    pub(super) hosts: u8,
}

impl Framed {
    /// `None` if nothing is said: the kind of message then decides.
    pub(super) fn framing(&self, is_http_10: bool) -> Result<Option<Framing>, Flaw> {
        match (self.chunked, self.content_length) {
            (true, _) if is_http_10 => Err(Flaw::EncodingInHttp10),
            (true, Some(_)) => Err(Flaw::LengthAndEncoding),
            (true, None) => Ok(Some(Framing::Chunked)),
            (false, length) => Ok(length.map(Framing::Length)),
        }
    }

    /// Whether the sender will close the connection.
    pub(super) fn closes(&self, is_http_10: bool) -> bool {
        self.close || is_http_10 && !self.keep_alive
    }

    /// Only five fields matter, and their lengths tell them from nearly all others.
    fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Flaw> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.hosts = (self.hosts + 1).min(2),
            6 if name.eq_ignore_ascii_case(b"expect") => {
                self.expects_continue |= trim(value).eq_ignore_ascii_case(b"100-continue");
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in value.split(|byte| *byte == b',').map(trim) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = decimal(trim(value)).ok_or(Flaw::ContentLength)?;
                if self.content_length.replace(length).is_some() {
                    return Err(Flaw::RepeatedContentLength);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || !trim(value).eq_ignore_ascii_case(b"chunked") {
                    return Err(Flaw::TransferEncoding);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Gathers a head.
#[derive(Debug, Clone)]
pub(super) struct HeadReader<S> {
    /// The bytes so far of a split head.
    held: Vec<u8>,
    lines: Lines<S>,
}

/// What the lines so far have said.
#[derive(Debug, Clone, Copy)]
struct Lines<S> {
    start: Option<S>,
    framed: Framed,
    /// Bytes of whole lines.
    at: usize,
    /// Where the first field line begins.
    fields_at: usize,
}

/// A complete head.
pub(super) struct ReadHead<'a, S> {
    pub(super) start: S,
    pub(super) framed: Framed,
    /// The first line and its end.
    pub(super) start_line: &'a [u8],
    pub(super) fields: Fields<'a>,
    /// Bytes of the input that belong to it.
    pub(super) used: usize,
}

impl<S: StartLine> HeadReader<S> {
    pub(super) fn new() -> Self {
        Self {
            held: Vec::new(),
            lines: Lines::new(),
        }
    }

    /// Whether nothing of a head has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Reads on; `None` if all of `input` belongs to a head that is not complete. After a head, [`Self::clear`] is due.
    #[inline]
    pub(super) fn read<'a>(&'a mut self, input: &'a [u8]) -> Result<Option<ReadHead<'a, S>>, Flaw> {
        let (head, used) = if self.held.is_empty() {
            let view = &input[..input.len().min(HEAD_MAX_BYTES)];
            let Some(used) = self.lines.advance(view)? else {
                if input.len() > HEAD_MAX_BYTES {
                    return Err(Flaw::HeadTooLarge);
                }
                self.held.extend_from_slice(input);
                return Ok(None);
            };
            (input, used)
        } else {
            let Some(used) = self.read_split(input)? else {
                return Ok(None);
            };
            (&self.held[..], used)
        };
        let Lines {
            start: Some(start),
            framed,
            at,
            fields_at,
        } = self.lines
        else {
            return Ok(None);
        };
        Ok(Some(ReadHead {
            start,
            framed,
            start_line: &head[..fields_at],
            fields: Fields(&head[fields_at..at]),
            used,
        }))
    }

    /// Reads on in a head whose beginning is held.
    #[cold]
    fn read_split(&mut self, input: &[u8]) -> Result<Option<usize>, Flaw> {
        let mut used = 0;
        while used < input.len() {
            let rest = &input[used..];
            let line_end = rest.iter().position(|byte| *byte == b'\n');
            let part = &rest[..line_end.map_or(rest.len(), |end| end + 1)];
            if self.held.len() + part.len() > HEAD_MAX_BYTES {
                return Err(Flaw::HeadTooLarge);
            }
            self.held.extend_from_slice(part);
            used += part.len();
            if line_end.is_some() && self.lines.advance(&self.held)?.is_some() {
                return Ok(Some(used));
            }
        }
        Ok(None)
    }

    /// Ready for the next head.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.lines = Lines::new();
        self.held.clear();
        if self.held.capacity() > KEPT_BUFFER_BYTES {
            self.held = Vec::new();
        }
    }
}

impl<S: StartLine> Lines<S> {
    fn new() -> Self {
        Self {
            start: None,
            framed: Framed::default(),
            at: 0,
            fields_at: 0,
        }
    }

    /// Parses the whole lines of `bytes` behind those that were parsed; the head's length if it is complete.
    fn advance(&mut self, bytes: &[u8]) -> Result<Option<usize>, Flaw> {
        loop {
            let rest = &bytes[self.at..];
            match self.line(rest) {
                Ok(Step::Torn) => return Ok(None),
                Ok(Step::Line(len)) => self.at += len,
                Ok(Step::End) => {
                    self.at += 2;
                    return Ok(Some(self.at));
                }
                // The rest of the line may be missing: its flaw can wait.
                Err(flaw) => {
                    return if rest.contains(&b'\n') {
                        Err(flaw)
                    } else {
                        Ok(None)
                    };
                }
            }
        }
    }

    #[inline]
    fn line(&mut self, bytes: &[u8]) -> Result<Step, Flaw> {
        if self.start.is_none() {
            return self.start_line(bytes);
        }
        if bytes.first() == Some(&b'\r') {
            return match bytes.get(1) {
                None => Ok(Step::Torn),
                Some(b'\n') => Ok(Step::End),
                Some(_) => Err(Flaw::BareCarriageReturn),
            };
        }
        let colon = token_end(bytes);
        match bytes.get(colon) {
            None => return Ok(Step::Torn),
            Some(b':') if colon > 0 => {}
            Some(b' ' | b'\t') if colon == 0 => return Err(Flaw::FoldedLine),
            Some(b' ' | b'\t') => return Err(Flaw::SpaceBeforeColon),
            Some(b'\n') if colon == 0 => return Err(Flaw::BareLineFeed),
            Some(_) => return Err(Flaw::FieldName),
        }
        let value_end = text_end(bytes, colon + 1);
        let Some(len) = line_len(bytes, value_end)? else {
            return Ok(Step::Torn);
        };
        self.framed
            .field(&bytes[..colon], &bytes[colon + 1..value_end])?;
        Ok(Step::Line(len))
    }

    fn start_line(&mut self, bytes: &[u8]) -> Result<Step, Flaw> {
        let end = text_end(bytes, 0);
        let Some(len) = line_len(bytes, end)? else {
            return Ok(Step::Torn);
        };
        self.start = Some(S::parse(&bytes[..end])?);
        self.fields_at = len;
        Ok(Step::Line(len))
    }
}

/// What a line is.
enum Step {
    /// Not complete.
    Torn,
    /// A line of this many bytes.
    Line(usize),
    /// The empty line.
    End,
}

/// The length of the line whose text ends at `end`; `None` if its end is missing.
#[inline]
fn line_len(bytes: &[u8], end: usize) -> Result<Option<usize>, Flaw> {
    match (bytes.get(end), bytes.get(end + 1)) {
        (None, _) | (Some(b'\r'), None) => Ok(None),
        (Some(b'\r'), Some(b'\n')) => Ok(Some(end + 2)),
        (Some(b'\r'), Some(_)) => Err(Flaw::BareCarriageReturn),
        (Some(b'\n'), _) => Err(Flaw::BareLineFeed),
        (Some(_), _) => Err(Flaw::ControlCharacter),
    }
}
