//! RFC 6455, the server's end, without I/O: frames are read as they come, whatever the cuts between reads, and their
//! payload is handed on where it lies, still masked.

use crate::session::CloseReason;

/// Most that a message may declare as its length, in bytes.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024;

/// Longest payload of a control frame.
const CONTROL_BYTES_MAX: usize = 125;

/// Longest header that a client sends: two bytes, a long length, a mask.
const HEADER_BYTES_MAX: usize = 14;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of RFC 6455")]
#[repr(u8)]
pub enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xA,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }

    fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }
}

/// Four bytes that a client's payload is xor-ed with, turned to where in the payload the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask([u8; 4]);

impl Mask {
    /// Unmasks `masked` into `plain`, which has the same length. One pass over both: this is the one copy that the
    /// gateway makes of each frame.
    pub fn apply(self, masked: &[u8], plain: &mut [u8]) {
        // Eight bytes at a time, of which the compiler makes vector instructions. The mask is widened in a register: as an
        // array it would be stored in small parts and loaded in large ones, which stalled the loop for as long as the
        // rest of it takes.
        let narrow = u64::from(u32::from_ne_bytes(self.0));
        let wide = narrow << 32 | narrow;
        let (masked_words, masked_rest) = masked.as_chunks::<8>();
        let (plain_words, plain_rest) = plain.as_chunks_mut::<8>();
        for (plain, masked) in plain_words.iter_mut().zip(masked_words) {
            *plain = (u64::from_ne_bytes(*masked) ^ wide).to_ne_bytes();
        }
        for (index, (plain, masked)) in plain_rest.iter_mut().zip(masked_rest).enumerate() {
            *plain = masked ^ self.0[index % 4];
        }
    }

    /// The mask for what follows `length` bytes.
    fn after(self, length: usize) -> Self {
        let Self(mut bytes) = self;
        bytes.rotate_left(length % 4);
        Self(bytes)
    }
}

/// Why there is nothing more to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The client did what it must not.
    Violation(CloseReason),
    /// The client has closed, with this code.
    Closed(Option<u16>),
}

impl From<CloseReason> for Stop {
    fn from(reason: CloseReason) -> Self {
        Self::Violation(reason)
    }
}

const PROTOCOL: Stop = Stop::Violation(CloseReason::Protocol);

/// What becomes of what is read.
pub trait Sink {
    /// A data frame begins. `message_bytes` is the length of its message up to the frame's end, `is_last` says that the
    /// message ends there.
    ///
    /// # Errors
    /// To end it here.
    fn announced(&mut self, is_text: bool, message_bytes: u64, is_last: bool) -> Result<(), CloseReason>;

    /// The next bytes of the announced payload.
    fn payload(&mut self, is_text: bool, masked: &[u8], mask: Mask);

    /// The message is complete.
    ///
    /// # Errors
    /// To end it here.
    fn complete(&mut self, is_text: bool) -> Result<(), CloseReason>;

    /// A ping.
    fn ping(&mut self, payload: &[u8]);
}

/// A frame's header.
#[derive(Debug, Clone, Copy)]
struct Header {
    opcode: Opcode,
    is_final: bool,
    payload_bytes: u64,
    mask: Mask,
}

/// The frame that is being read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    left: u64,
    mask: Mask,
}

/// Where in the stream of frames the last read has ended.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a header whose end has not come.
    header: [u8; HEADER_BYTES_MAX],
    header_bytes: u8,
    frame: Option<Frame>,
    /// The message whose fragments are coming: whether it is a text, and its length so far.
    message: Option<(bool, u64)>,
    /// The payload of a control frame so far, unmasked.
    control: Vec<u8>,
}

impl Decoder {
    /// Takes in the next bytes of the stream.
    ///
    /// # Errors
    /// When there is nothing more to be read: after a violation or a close. What follows is not looked at.
    pub fn decode(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<(), Stop> {
        while !bytes.is_empty() {
            let Some(frame) = &mut self.frame else {
                let Some(header) = self.read_header(&mut bytes)? else { return Ok(()) };
                self.begin(header, sink)?;
                continue;
            };
            let length = usize::try_from(frame.left).map_or(bytes.len(), |left| left.min(bytes.len()));
            let (masked, rest) = bytes.split_at(length);
            bytes = rest;
            let mask = frame.mask;
            frame.mask = mask.after(length);
            frame.left -= length as u64;
            let is_through = frame.left == 0;
            if frame.opcode.is_control() {
                let at = self.control.len();
                self.control.resize(at + length, 0);
                mask.apply(masked, &mut self.control[at..]);
            } else if let Some((is_text, _)) = self.message {
                sink.payload(is_text, masked, mask);
            }
            if is_through {
                self.end(sink)?;
            }
        }
        Ok(())
    }

    /// Takes a header from the front of `bytes`, if it is complete; keeps its beginning otherwise.
    fn read_header(&mut self, bytes: &mut &[u8]) -> Result<Option<Header>, Stop> {
        if self.header_bytes == 0 {
            // The usual case: nothing is kept, the header lies before us.
            if let Some((header, length)) = parse_header(bytes)? {
                *bytes = &bytes[length..];
                return Ok(Some(header));
            }
        }
        while let Some((byte, rest)) = bytes.split_first() {
            self.header[usize::from(self.header_bytes)] = *byte;
            self.header_bytes += 1;
            *bytes = rest;
            if let Some((header, _)) = parse_header(&self.header[..usize::from(self.header_bytes)])? {
                self.header_bytes = 0;
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    fn begin(&mut self, header: Header, sink: &mut impl Sink) -> Result<(), Stop> {
        let Header { opcode, is_final, payload_bytes, mask } = header;
        if !opcode.is_control() {
            let (is_text, before) = match (opcode, self.message) {
                (Opcode::Continuation, Some(message)) => message,
                (Opcode::Text | Opcode::Binary, None) => (opcode == Opcode::Text, 0),
                // A continuation of nothing, or a message within a message.
                _ => return Err(PROTOCOL),
            };
            let message_bytes = before + payload_bytes;
            if message_bytes > MESSAGE_BYTES_MAX {
                return Err(CloseReason::TooLarge.into());
            }
            sink.announced(is_text, message_bytes, is_final)?;
            self.message = Some((is_text, message_bytes));
        }
        self.frame = Some(Frame { opcode, is_final, left: payload_bytes, mask });
        if payload_bytes == 0 { self.end(sink) } else { Ok(()) }
    }

    /// The frame is complete.
    fn end(&mut self, sink: &mut impl Sink) -> Result<(), Stop> {
        let Some(frame) = self.frame.take() else { return Ok(()) };
        match frame.opcode {
            Opcode::Close => return Err(read_close(&self.control)),
            Opcode::Ping => sink.ping(&self.control),
            Opcode::Pong => {}
            _ if !frame.is_final => return Ok(()),
            _ => {
                if let Some((is_text, _)) = self.message.take() {
                    sink.complete(is_text)?;
                }
            }
        }
        self.control.clear();
        Ok(())
    }
}

/// A header and its length, if it is there as a whole.
///
/// Refuses what can be refused by then, from the first two bytes if need be.
fn parse_header(bytes: &[u8]) -> Result<Option<(Header, usize)>, Stop> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let opcode = Opcode::from_bits(first & 0x0F).ok_or(PROTOCOL)?;
    let is_final = first & FINAL != 0;
    let short = second & !MASKED;
    if first & RESERVED != 0 || second & MASKED == 0 {
        return Err(PROTOCOL);
    }
    if opcode.is_control() && (!is_final || usize::from(short) > CONTROL_BYTES_MAX) {
        return Err(PROTOCOL);
    }
    let (payload_bytes, length_bytes) = match short {
        126 => match rest.first_chunk() {
            Some(length) => (u64::from(u16::from_be_bytes(*length)), 2),
            None => return Ok(None),
        },
        127 => match rest.first_chunk() {
            Some(length) => (u64::from_be_bytes(*length), 8),
            None => return Ok(None),
        },
        short => (u64::from(short), 0),
    };
    // The length is enough to refuse: a client may not bother to send a mask for what it will not send.
    if payload_bytes > MESSAGE_BYTES_MAX {
        return Err(CloseReason::TooLarge.into());
    }
    let Some(mask) = rest[length_bytes..].first_chunk() else { return Ok(None) };
    let header = Header { opcode, is_final, payload_bytes, mask: Mask(*mask) };
    Ok(Some((header, 2 + length_bytes + mask.len())))
}

/// What a client's close says. A code that may not be sent is a violation (RFC 6455, section 7.4).
fn read_close(payload: &[u8]) -> Stop {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Stop::Closed(None) } else { PROTOCOL };
    };
    let code = u16::from_be_bytes(*code);
    let may_be_sent = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
    if may_be_sent && std::str::from_utf8(reason).is_ok() { Stop::Closed(Some(code)) } else { PROTOCOL }
}

/// Appends a text frame with what `write` appends.
pub fn append_text(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = bytes.len();
    // Room for the header of a message of medium length, as all of ours but the strangest are.
    bytes.extend_from_slice(&[FINAL | Opcode::Text as u8, 126, 0, 0]);
    write(bytes);
    let length = bytes.len() - at - 4;
    match u16::try_from(length) {
        Ok(short @ ..126) => drop(bytes.splice(at + 1..at + 4, [short.to_le_bytes()[0]])),
        Ok(medium) => bytes[at + 2..at + 4].copy_from_slice(&medium.to_be_bytes()),
        Err(_) => {
            bytes[at + 1] = 127;
            drop(bytes.splice(at + 2..at + 4, (length as u64).to_be_bytes()));
        }
    }
}

/// Appends a control frame, whose payload must be short.
pub fn append_control(bytes: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    debug_assert!(opcode.is_control() && payload.len() <= CONTROL_BYTES_MAX);
    bytes.extend_from_slice(&[FINAL | opcode as u8, payload.len().to_le_bytes()[0]]);
    bytes.extend_from_slice(payload);
}

#[cfg(test)]
#[path = "websocket_tests.rs"]
mod tests;
