//! Server frames: bytes to events, strictly (RFC 6455, section 5).
//!
//! The common case of a load test is a small frame that lies whole inside what one `read` gave. It is handed to the
//! caller as a borrow of those bytes; nothing is copied or allocated. Only the parts of a torn frame, or of a fragmented
//! message, are gathered in a buffer that is allocated when the first such part arrives and then used again.

use std::ops::ControlFlow;

use thiserror::Error;

use super::CONTROL_PAYLOAD_MAX_BYTES;
use super::close::CloseFrame;
use super::frame::Opcode;

/// A buffer larger than this is given back once its message was handed on, so that one large message does not
/// cost memory for the rest of the session. Kept ones count against `HELD_MAX_BYTES`, which 65,536 sessions with one of this size just fill.
pub const KEPT_BUFFER_BYTES: usize = 4 * 1024;

/// The longest header of a server frame: it has no mask.
const HEADER_MAX_BYTES: usize = 10;

/// What a server sent. Borrows live until the callback returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A text message, its UTF-8 checked.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A ping, to be answered by a pong with the same payload.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// A close. Any byte after it is a [`Violation::DataAfterClose`].
    Close(CloseFrame<'a>),
}

/// A rule of RFC 6455 that the server broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// A reserved bit is set though no extension was agreed on (section 5.2).
    #[error("a reserved bit is set (RSV bits {0:03b}) without an extension")]
    ReservedBit(u8),
    /// An opcode that the RFC reserves (section 5.2).
    #[error("opcode {0} is reserved")]
    ReservedOpcode(u8),
    /// A server must not mask (section 5.1).
    #[error("the server's frame is masked")]
    Masked,
    /// Control frames must not be fragmented (section 5.5).
    #[error("a control frame is fragmented")]
    FragmentedControl,
    /// A control frame's payload is over 125 bytes (section 5.5).
    #[error("a control frame's payload is over 125 bytes")]
    OversizeControl,
    /// A continuation without a message to continue (section 5.4).
    #[error("a continuation frame continues no message")]
    UnexpectedContinuation,
    /// A new message before the fragmented one was finished (section 5.4).
    #[error("a new message begins inside a fragmented one")]
    InterleavedMessage,
    /// A length that a shorter form would hold (section 5.2).
    #[error("the length {0} is not in its shortest form")]
    LengthNotMinimal(u64),
    /// A 64-bit length with its top bit set (section 5.2).
    #[error("the 64-bit length has its top bit set")]
    LengthTopBit,
    /// The message is over the limit that the decoder was given.
    #[error("the message is over the limit of {limit_bytes} bytes")]
    MessageTooLarge {
        /// The limit.
        limit_bytes: u32,
    },
    /// A text message is not UTF-8 (section 5.6).
    #[error("a text message is not UTF-8")]
    TextNotUtf8,
    /// A close frame's payload is one byte: half a code (section 5.5.1).
    #[error("a close frame's payload is one byte")]
    ClosePayloadOfOneByte,
    /// A close code that may not be sent (section 7.4).
    #[error("close code {0} may not be sent")]
    CloseCode(u16),
    /// A close reason is not UTF-8 (section 5.5.1).
    #[error("a close reason is not UTF-8")]
    CloseReasonNotUtf8,
    /// Bytes after a close frame (section 5.5.1).
    #[error("the server sent more after its close frame")]
    DataAfterClose,
}

/// The state of one session's incoming stream: about a hundred bytes, and a buffer only when one is needed.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// The payload so far of a data message that is torn or fragmented.
    message: Vec<u8>,
    /// The payload so far of a torn control frame, which can come between the fragments of a message.
    control: Vec<u8>,
    /// The frame whose header was read and whose payload is not complete.
    frame: Option<FrameHeader>,
    /// The bytes of a torn header.
    header: [u8; HEADER_MAX_BYTES],
    header_len: u8,
    /// The kind of the fragmented message under way.
    fragmented: Option<MessageKind>,
    /// Bytes of `message` known to be UTF-8.
    utf8_checked: u32,
    max_message_bytes: u32,
    end: End,
}

/// Whether the stream has ended, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closed,
    Broken(Violation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    Text,
    Binary,
}

/// What a header says, checked.
#[derive(Debug, Clone, Copy)]
struct FrameHeader {
    fin: bool,
    opcode: Opcode,
    /// Payload bytes that have not arrived. Fits: checked against `max_message_bytes`.
    remaining: u32,
}

impl Decoder {
    /// A decoder that refuses messages over `max_message_bytes`.
    #[must_use]
    pub fn new(max_message_bytes: u32) -> Self {
        Self {
            message: Vec::new(),
            control: Vec::new(),
            frame: None,
            header: [0; HEADER_MAX_BYTES],
            header_len: 0,
            fragmented: None,
            utf8_checked: 0,
            max_message_bytes,
            end: End::Open,
        }
    }

    /// Whether a close frame was received.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.end == End::Closed
    }

    /// Whether the stream stands between frames and between messages, so that its end here tears nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.frame.is_none() && self.header_len == 0 && self.fragmented.is_none()
    }

    /// The memory that parts of messages take.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.message.capacity() + self.control.capacity()
    }

    /// Takes the next bytes and calls `on_event` for each event that they complete.
    ///
    /// Returns how many bytes were used: all of them, unless `on_event` breaks, which ends the call behind the frame
    /// of that event. The rest may be fed later. Events come in the same order however the stream is cut.
    ///
    /// # Errors
    /// The first rule that the server broke. The events before it have been handed on; every later call returns the same.
    pub fn decode(
        &mut self,
        input: &[u8],
        mut on_event: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<usize, Violation> {
        let mut used = 0;
        if let End::Broken(violation) = self.end {
            return Err(violation);
        }
        while used < input.len() {
            match self.step(&input[used..], &mut on_event) {
                Ok((n, flow)) => {
                    used += n;
                    if flow.is_break() {
                        break;
                    }
                }
                Err(violation) => {
                    self.end = End::Broken(violation);
                    return Err(violation);
                }
            }
        }
        Ok(used)
    }

    /// Uses up a header, a payload, or both. `input` is not empty.
    fn step(
        &mut self,
        input: &[u8],
        on_event: &mut impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<(usize, ControlFlow<()>), Violation> {
        if self.end == End::Closed {
            return Err(Violation::DataAfterClose);
        }
        let (used, frame) = match self.frame {
            Some(frame) => (0, frame),
            None => match self.read_header(input)? {
                (used, Some(frame)) => (used, frame),
                (used, None) => return Ok((used, ControlFlow::Continue(()))),
            },
        };
        let rest = &input[used..];
        let wanted = frame.remaining as usize;
        let payload = &rest[..wanted.min(rest.len())];
        let used = used + payload.len();
        let flow = if payload.len() < wanted {
            self.keep_part(frame, payload)?;
            ControlFlow::Continue(())
        } else {
            self.frame = None;
            self.finish_frame(frame, payload, on_event)?
        };
        Ok((used, flow))
    }

    /// Reads a header from what was kept of it and `input`; a torn one is kept.
    fn read_header(&mut self, input: &[u8]) -> Result<(usize, Option<FrameHeader>), Violation> {
        if self.header_len == 0
            && let Some((used, frame)) = self.parse_header(input)?
        {
            return Ok((used, Some(frame)));
        }
        // A torn header is rare: byte by byte is fast enough, and takes no byte too many.
        for (i, byte) in input.iter().enumerate() {
            self.header[self.header_len as usize] = *byte;
            self.header_len += 1;
            let header = self.header;
            if let Some((_, frame)) = self.parse_header(&header[..self.header_len as usize])? {
                self.header_len = 0;
                return Ok((i + 1, Some(frame)));
            }
        }
        Ok((input.len(), None))
    }

    /// Parses and checks a header; `None` when it is torn.
    ///
    /// Each byte's rules are checked as soon as that byte is there and in the order of the bytes, so that the same
    /// stream breaks the same rule however it is cut.
    fn parse_header(&self, bytes: &[u8]) -> Result<Option<(usize, FrameHeader)>, Violation> {
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let fin = first & 0x80 != 0;
        let opcode = self.check_first_byte(first, fin)?;
        let Some(&second) = bytes.get(1) else {
            return Ok(None);
        };
        if second & 0x80 != 0 {
            return Err(Violation::Masked);
        }
        let short_len = second & 0x7F;
        if opcode.is_control() && usize::from(short_len) > CONTROL_PAYLOAD_MAX_BYTES {
            return Err(Violation::OversizeControl);
        }
        let Some((header_len, payload_len)) = parse_length(short_len, &bytes[2..])? else {
            return Ok(None);
        };
        let remaining = self.check_message_len(opcode, payload_len)?;
        Ok(Some((
            header_len,
            FrameHeader {
                fin,
                opcode,
                remaining,
            },
        )))
    }

    fn check_first_byte(&self, first: u8, fin: bool) -> Result<Opcode, Violation> {
        let reserved_bits = first >> 4 & 0x7;
        if reserved_bits != 0 {
            return Err(Violation::ReservedBit(reserved_bits));
        }
        let opcode = Opcode::from_bits(first).ok_or(Violation::ReservedOpcode(first & 0x0F))?;
        match opcode {
            Opcode::Close | Opcode::Ping | Opcode::Pong if !fin => {
                Err(Violation::FragmentedControl)
            }
            Opcode::Continuation if self.fragmented.is_none() => {
                Err(Violation::UnexpectedContinuation)
            }
            Opcode::Text | Opcode::Binary if self.fragmented.is_some() => {
                Err(Violation::InterleavedMessage)
            }
            _ => Ok(opcode),
        }
    }

    /// Checks a frame's length together with the fragments before it.
    fn check_message_len(&self, opcode: Opcode, payload_len: u64) -> Result<u32, Violation> {
        let too_large = Violation::MessageTooLarge {
            limit_bytes: self.max_message_bytes,
        };
        let len = u32::try_from(payload_len).map_err(|_| too_large)?;
        let before = match opcode {
            Opcode::Continuation => self.message.len() as u64,
            _ => 0,
        };
        if !opcode.is_control() && before + u64::from(len) > u64::from(self.max_message_bytes) {
            return Err(too_large);
        }
        Ok(len)
    }

    /// Keeps a part of a payload whose frame is torn.
    fn keep_part(&mut self, frame: FrameHeader, part: &[u8]) -> Result<(), Violation> {
        // A part is shorter than what remains, so this neither underflows nor truncates.
        let part_len = u32::try_from(part.len()).unwrap_or(u32::MAX);
        self.frame = Some(FrameHeader {
            remaining: frame.remaining - part_len,
            ..frame
        });
        if frame.opcode.is_control() {
            self.control.extend_from_slice(part);
            return Ok(());
        }
        make_room(&mut self.message, part.len(), frame.remaining as usize);
        self.message.extend_from_slice(part);
        self.check_utf8_so_far(self.kind_of(frame.opcode), false)
    }

    /// Hands on what the last part of a frame's payload completes.
    fn finish_frame(
        &mut self,
        frame: FrameHeader,
        last_part: &[u8],
        on_event: &mut impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Violation> {
        if frame.opcode.is_control() {
            return self.finish_control(frame.opcode, last_part, on_event);
        }
        let kind = self.kind_of(frame.opcode);
        if frame.fin && self.message.is_empty() {
            // Whole inside the caller's bytes (or behind empty fragments only): no copy.
            self.fragmented = None;
            return Ok(on_event(message_event(kind, last_part)?));
        }
        self.message.extend_from_slice(last_part);
        self.check_utf8_so_far(kind, frame.fin)?;
        if !frame.fin {
            self.fragmented = Some(kind);
            return Ok(ControlFlow::Continue(()));
        }
        self.fragmented = None;
        self.utf8_checked = 0;
        let flow = on_event(message_event(kind, &self.message)?);
        clear(&mut self.message);
        Ok(flow)
    }

    fn finish_control(
        &mut self,
        opcode: Opcode,
        last_part: &[u8],
        on_event: &mut impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Violation> {
        let payload = if self.control.is_empty() {
            last_part
        } else {
            self.control.extend_from_slice(last_part);
            &self.control
        };
        let flow = match opcode {
            Opcode::Ping => on_event(Event::Ping(payload)),
            Opcode::Pong => on_event(Event::Pong(payload)),
            _ => {
                let close = CloseFrame::parse(payload)?;
                self.end = End::Closed;
                on_event(Event::Close(close))
            }
        };
        clear(&mut self.control);
        Ok(flow)
    }

    /// The kind of the message that a data frame belongs to.
    fn kind_of(&self, opcode: Opcode) -> MessageKind {
        match opcode {
            Opcode::Text => MessageKind::Text,
            Opcode::Binary => MessageKind::Binary,
            // A continuation was let through only inside a fragmented message.
            _ => self.fragmented.unwrap_or(MessageKind::Binary),
        }
    }

    /// Checks the new bytes of a gathered text message, so that a wrong one fails early and is checked once.
    fn check_utf8_so_far(&mut self, kind: MessageKind, complete: bool) -> Result<(), Violation> {
        if kind == MessageKind::Binary {
            return Ok(());
        }
        if let Err(error) = std::str::from_utf8(&self.message[self.utf8_checked as usize..]) {
            // An error without a length is a character that only lacks its end.
            if complete || error.error_len().is_some() {
                return Err(Violation::TextNotUtf8);
            }
            self.utf8_checked += u32::try_from(error.valid_up_to()).unwrap_or(0);
        } else {
            self.utf8_checked = u32::try_from(self.message.len()).unwrap_or(0);
        }
        Ok(())
    }
}

/// Reads the length field behind the first two bytes: the header's whole length, and the payload's.
fn parse_length(short_len: u8, extended: &[u8]) -> Result<Option<(usize, u64)>, Violation> {
    match short_len {
        126 => {
            let Some(bytes) = extended.first_chunk::<2>() else {
                return Ok(None);
            };
            let len = u64::from(u16::from_be_bytes(*bytes));
            if len < 126 {
                return Err(Violation::LengthNotMinimal(len));
            }
            Ok(Some((4, len)))
        }
        127 => {
            let Some(bytes) = extended.first_chunk::<8>() else {
                return Ok(None);
            };
            let len = u64::from_be_bytes(*bytes);
            if len >> 63 != 0 {
                return Err(Violation::LengthTopBit);
            }
            if len <= 0xFFFF {
                return Err(Violation::LengthNotMinimal(len));
            }
            Ok(Some((10, len)))
        }
        len => Ok(Some((2, u64::from(len)))),
    }
}

fn message_event(kind: MessageKind, payload: &[u8]) -> Result<Event<'_>, Violation> {
    match kind {
        MessageKind::Binary => Ok(Event::Binary(payload)),
        MessageKind::Text => std::str::from_utf8(payload)
            .map(Event::Text)
            .map_err(|_| Violation::TextNotUtf8),
    }
}

/// Makes room for a part of a frame of which so much remains, the part included: twice as much as before, as usual, but never more than the frame needs.
fn make_room(message: &mut Vec<u8>, part_len: usize, remaining: usize) {
    let needed = message.len() + part_len;
    if needed > message.capacity() {
        let whole = message.len() + remaining;
        let room = needed.max(2 * message.capacity()).min(whole);
        message.reserve_exact(room - message.len());
    }
}

fn clear(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT_BUFFER_BYTES {
        *buffer = Vec::new();
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
pub(super) mod tests;
