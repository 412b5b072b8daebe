//! Answers: bytes to events.

use super::body::{Body, Framing};
use super::fault::{Fault, Flaw};
use super::head::{Fields, HeadReader, StartLine};

/// How many requests may wait for their answers on one connection.
pub(super) const ASKED_MAX: u32 = 64;

/// How many interim answers may come before a final one.
const INTERIM_MAX: u8 = 32;

/// What a server sent. Borrows live until the callback returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The head of the final answer to the oldest request that has none.
    Head(Head<'a>),
    /// Bytes of its body, never none.
    Body(&'a [u8]),
    /// The answer is complete.
    End,
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The status, from 200 to 599.
    pub status: u16,
    /// Where the body ends.
    pub framing: Framing,
    /// Content-Length if it is present. An answer to HEAD has it and no body.
    pub content_length: Option<u64>,
    /// The server will close the connection after this answer: it says so, or speaks HTTP/1.0, or the body ends with the
    /// connection.
    pub closes: bool,
    /// Its version is HTTP/1.0.
    pub is_http_10: bool,
    /// All field lines.
    pub fields: Fields<'a>,
}

/// Reads the answers on one connection: about 150 bytes, and a buffer only while a head is split between reads.
#[derive(Debug, Clone)]
pub struct AnswerReader {
    head: HeadReader<Status>,
    stage: Stage,
    /// Requests without a complete answer.
    asked: u32,
    /// Which of them are HEAD: the oldest is the lowest bit.
    heads: u64,
    interim: u8,
    closes: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Head,
    Body(Body),
    /// Nothing more is read: the last answer ended the connection, or a fault did.
    Closed,
    Faulty(Fault),
}

impl Default for AnswerReader {
    fn default() -> Self {
        Self::new()
    }
}

impl AnswerReader {
    /// A reader for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            head: HeadReader::new(),
            stage: Stage::Head,
            asked: 0,
            heads: 0,
            interim: 0,
            closes: false,
        }
    }

    /// Starts over for a new connection, with the buffer that it has.
    pub fn reset(&mut self) {
        self.head.clear();
        self.stage = Stage::Head;
        self.asked = 0;
        self.heads = 0;
        self.interim = 0;
        self.closes = false;
    }

    /// A request was written, or is about to be: its answer may come. An answer to HEAD has no body.
    ///
    /// False, and nothing is expected, if 64 requests wait already.
    #[must_use]
    pub fn ask(&mut self, is_head: bool) -> bool {
        if self.asked == ASKED_MAX {
            return false;
        }
        self.heads |= u64::from(is_head) << self.asked;
        self.asked += 1;
        true
    }

    /// How many requests have no complete answer.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.asked
    }

    /// Whether something of the oldest answer has arrived, if only an interim answer or a part of its head.
    #[must_use]
    pub fn is_in_answer(&self) -> bool {
        matches!(self.stage, Stage::Body(_)) || !self.head.is_empty() || self.interim > 0
    }

    /// Whether no further request may be written: an answer announced the end of the connection, or there was a fault.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closes || matches!(self.stage, Stage::Closed | Stage::Faulty(_))
    }

    /// The memory that a split head takes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.head.held_bytes()
    }

    /// Takes the next bytes and calls `on_event` for each event that they complete. Events come in the same order
    /// however the bytes are split; only body bytes come in other pieces.
    ///
    /// # Errors
    /// The first fault. The events before it have been handed on; every later call returns the same.
    pub fn received(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), Fault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = match &mut self.stage {
                Stage::Faulty(fault) => return Err(*fault),
                Stage::Closed => Err(Fault::UnaskedAnswer),
                Stage::Head if self.asked == 0 => Err(Fault::UnaskedAnswer),
                Stage::Head => self.read_head(rest, &mut on_event).map_err(Fault::from),
                Stage::Body(body) => {
                    let mut on_bytes = |bytes: &[u8]| on_event(Event::Body(bytes));
                    match body.take(rest, &mut on_bytes) {
                        Ok((used, true)) => {
                            self.finish_answer(&mut on_event);
                            Ok(used)
                        }
                        Ok((used, false)) => Ok(used),
                        Err(flaw) => Err(Fault::from(flaw)),
                    }
                }
            };
            match used {
                Ok(used) => rest = &rest[used..],
                Err(fault) => {
                    self.stage = Stage::Faulty(fault);
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    /// The server closed its side: ends a body that the end of the connection delimits.
    ///
    /// # Errors
    /// A request has no answer or half of one.
    pub fn closed(&mut self, mut on_event: impl FnMut(Event<'_>)) -> Result<(), Fault> {
        let fault = match self.stage {
            Stage::Faulty(fault) => return Err(fault),
            Stage::Body(Body::UntilClose) => {
                self.finish_answer(&mut on_event);
                (self.asked > 0).then_some(Fault::ClosedBeforeAnswer)
            }
            _ if self.is_in_answer() => Some(Fault::ClosedInAnswer),
            _ => (self.asked > 0).then_some(Fault::ClosedBeforeAnswer),
        };
        self.stage = fault.map_or(Stage::Closed, Stage::Faulty);
        fault.map_or(Ok(()), Err)
    }

    #[inline]
    fn read_head(
        &mut self,
        input: &[u8],
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<usize, Flaw> {
        let Some(head) = self.head.read(input)? else {
            return Ok(input.len());
        };
        let used = head.used;
        let Status { code, is_http_10 } = head.start;
        if code < 200 {
            self.head.clear();
            self.count_interim(code)?;
            return Ok(used);
        }
        let said = head.framed.framing(is_http_10)?;
        let has_no_body = self.heads & 1 == 1 || code == 204 || code == 304;
        let framing = if has_no_body {
            Framing::Empty
        } else {
            said.unwrap_or(Framing::UntilClose)
        };
        self.closes |= head.framed.closes(is_http_10) || framing == Framing::UntilClose;
        on_event(Event::Head(Head {
            status: code,
            framing,
            content_length: head.framed.content_length,
            closes: self.closes,
            is_http_10,
            fields: head.fields,
        }));
        self.head.clear();
        self.interim = 0;
        match Body::new(framing) {
            Some(body) => self.stage = Stage::Body(body),
            None => self.finish_answer(on_event),
        }
        Ok(used)
    }

    #[cold]
    fn count_interim(&mut self, code: u16) -> Result<(), Flaw> {
        if code == 101 {
            return Err(Flaw::SwitchesProtocols);
        }
        self.interim += 1;
        if self.interim > INTERIM_MAX {
            return Err(Flaw::TooManyInterim);
        }
        Ok(())
    }

    fn finish_answer(&mut self, on_event: &mut impl FnMut(Event<'_>)) {
        self.stage = if self.closes {
            Stage::Closed
        } else {
            Stage::Head
        };
        self.asked -= 1;
        self.heads >>= 1;
        on_event(Event::End);
    }
}

/// A status line.
#[derive(Debug, Clone, Copy)]
struct Status {
    code: u16,
    is_http_10: bool,
}

impl StartLine for Status {
    /// The space before an empty reason may be missing, as some servers have it; it frames nothing.
    fn parse(line: &[u8]) -> Result<Self, Flaw> {
        let (version, rest) = line.split_first_chunk::<8>().ok_or(Flaw::StatusLine)?;
        let is_http_10 = is_http_10(version).ok_or(if version.starts_with(b"HTTP/") {
            Flaw::Version
        } else {
            Flaw::StatusLine
        })?;
        let [b' ', a, b, c, rest @ ..] = rest else {
            return Err(Flaw::StatusLine);
        };
        if !matches!(rest, [] | [b' ', ..]) || ![a, b, c].iter().all(|d| d.is_ascii_digit()) {
            return Err(Flaw::StatusLine);
        }
        let code = [a, b, c]
            .iter()
            .fold(0, |code, digit| code * 10 + u16::from(*digit - b'0'));
        if !(100..600).contains(&code) {
            return Err(Flaw::Status);
        }
        Ok(Self { code, is_http_10 })
    }
}

/// Whether a version is HTTP/1.0 and not HTTP/1.1; `None` for all others.
pub(super) fn is_http_10(version: &[u8; 8]) -> Option<bool> {
    match version {
        b"HTTP/1.1" => Some(false),
        b"HTTP/1.0" => Some(true),
        _ => None,
    }
}
