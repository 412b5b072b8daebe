//! Bytes to frames, one at a time and without copies if they come whole.
//!
//! Payloads of DATA frames are handed on as they arrive. Other frames are short; a split one is gathered first.

use super::frame::{FRAME_HEADER_BYTES, FRAME_MAX_BYTES, flag, kind, setting};
use super::violation::{ErrorCode, Violation};

/// The longest header block.
pub const BLOCK_MAX_BYTES: usize = 64 * 1024;

/// How many CONTINUATION frames a block may have, so that empty ones don't go on for ever.
const CONTINUATIONS_MAX: u8 = 32;

/// A larger buffer is given back after use.
const KEPT_BUFFER_BYTES: usize = 4 * 1024;

/// A frame, its form checked. What it means on its stream is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A DATA frame begins, which counts this much against the windows. Its bytes follow.
    DataStart {
        /// Its stream.
        stream: u32,
        /// Its length with padding.
        flow_bytes: u32,
    },
    /// Bytes of the DATA frame that began; none if only its end is told.
    Data {
        /// Its stream.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
        /// Nothing follows on the stream.
        ends: bool,
    },
    /// A whole header block.
    Headers {
        /// Its stream.
        stream: u32,
        /// The block.
        block: &'a [u8],
        /// Nothing follows on the stream.
        ends: bool,
    },
    /// RST_STREAM.
    Reset {
        /// Its stream.
        stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// SETTINGS; [`settings`] reads the payload.
    Settings(&'a [u8]),
    /// The peer obeys our settings.
    SettingsAck,
    /// PING, which wants an answer.
    Ping([u8; 8]),
    /// GOAWAY.
    Goaway {
        /// The last stream that was or will be looked at.
        last_stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// WINDOW_UPDATE; stream 0 is the connection.
    WindowUpdate {
        /// Its stream.
        stream: u32,
        /// How much more may be sent.
        increment: u32,
    },
    /// A frame that means nothing to us.
    Ignored,
    /// A part of a frame or of a header block.
    Part,
}

/// The ids and values of a SETTINGS frame.
pub fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> + '_ {
    let (all, _) = payload.as_chunks::<6>();
    all.iter()
        .map(|[i0, i1, v @ ..]| (u16::from_be_bytes([*i0, *i1]), u32::from_be_bytes(*v)))
}

/// Checks a setting that changes nothing for us.
pub(super) fn check_setting(id: u16, value: u32, is_from_server: bool) -> Result<(), Violation> {
    let is_possible = match id {
        setting::ENABLE_PUSH => value == 0 || !is_from_server && value == 1,
        setting::MAX_FRAME_SIZE => (FRAME_MAX_BYTES as u32..1 << 24).contains(&value),
        _ => true,
    };
    if is_possible {
        Ok(())
    } else {
        Err(Violation::Setting(id))
    }
}

/// Cuts the stream of bytes into frames.
#[derive(Debug, Clone, Default)]
pub struct FrameReader {
    /// The bytes so far of a split frame, its header too.
    held: Vec<u8>,
    /// What was held has been handed on.
    is_handed: bool,
    /// The DATA frame under way.
    data: Option<DataRest>,
    blocks: Blocks,
}

#[derive(Debug, Clone, Copy)]
struct DataRest {
    stream: u32,
    data_left: u32,
    padding_left: u32,
    /// The byte that tells the padding has not come.
    wants_padding_len: bool,
    ends: bool,
}

/// The header block under way.
#[derive(Debug, Clone, Default)]
struct Blocks {
    block: Vec<u8>,
    /// Its stream; 0 if there is none.
    stream: u32,
    ends: bool,
    continuations: u8,
}

#[derive(Debug, Clone, Copy)]
struct Header {
    len: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl FrameReader {
    /// A reader for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.capacity() + self.blocks.block.capacity()
    }

    /// Reads the next frame: how many bytes of `input` it used, and the frame. `None` if more bytes are needed.
    ///
    /// Call it until it returns `None`, even with no input left: the end of a DATA frame can come without bytes.
    ///
    /// # Errors
    /// The peer broke a rule of frames. Nothing can be read after that.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<Option<(usize, Frame<'a>)>, Violation> {
        if self.data.is_some() {
            return self.next_data(input);
        }
        if self.is_handed {
            self.let_go();
        }
        if self.held.is_empty() && input.len() >= FRAME_HEADER_BYTES {
            let header = Header::parse(input);
            self.check(header)?;
            if header.kind == kind::DATA {
                return self.start_data(header, FRAME_HEADER_BYTES).map(Some);
            }
            let end = FRAME_HEADER_BYTES + header.len;
            if let Some(payload) = input.get(FRAME_HEADER_BYTES..end) {
                let frame = whole_frame(header, payload, &mut self.blocks)?;
                return Ok(Some((end, frame)));
            }
        }
        self.next_split(input)
    }

    #[cold]
    fn let_go(&mut self) {
        self.is_handed = false;
        self.held.clear();
        if self.held.capacity() > KEPT_BUFFER_BYTES {
            self.held = Vec::new();
        }
    }

    /// Gathers a frame whose header or payload is split.
    #[cold]
    fn next_split<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<Option<(usize, Frame<'a>)>, Violation> {
        if input.is_empty() {
            return Ok(None);
        }
        let mut used = 0;
        let mut take_until = |held: &mut Vec<u8>, wanted: usize| {
            let missing = wanted.saturating_sub(held.len());
            let part = &input[used..][..missing.min(input.len() - used)];
            held.extend_from_slice(part);
            used += part.len();
            held.len() >= wanted
        };
        if !take_until(&mut self.held, FRAME_HEADER_BYTES) {
            return Ok(Some((used, Frame::Part)));
        }
        let header = Header::parse(&self.held);
        self.check(header)?;
        if header.kind == kind::DATA {
            self.held.clear();
            return self.start_data(header, used).map(Some);
        }
        if !take_until(&mut self.held, FRAME_HEADER_BYTES + header.len) {
            return Ok(Some((used, Frame::Part)));
        }
        self.is_handed = true;
        let payload = &self.held[FRAME_HEADER_BYTES..];
        let frame = whole_frame(header, payload, &mut self.blocks)?;
        Ok(Some((used, frame)))
    }

    /// What can be said by the header alone.
    #[inline]
    fn check(&self, header: Header) -> Result<(), Violation> {
        if header.len > FRAME_MAX_BYTES {
            return Err(Violation::FrameTooLarge);
        }
        let Header { kind, stream, .. } = header;
        let is_continuation = kind == kind::CONTINUATION;
        if self.blocks.stream != 0 {
            if !is_continuation || stream != self.blocks.stream {
                return Err(Violation::Interrupted);
            }
        } else if is_continuation {
            return Err(Violation::LoneContinuation);
        }
        let fits = match kind {
            kind::DATA
            | kind::HEADERS
            | kind::PRIORITY
            | kind::RST_STREAM
            | kind::PUSH_PROMISE
            | kind::CONTINUATION => stream != 0,
            kind::SETTINGS | kind::PING | kind::GOAWAY => stream == 0,
            _ => true,
        };
        if fits {
            Ok(())
        } else {
            Err(Violation::WrongStream(kind_name(kind)))
        }
    }

    fn start_data(&mut self, header: Header, used: usize) -> Result<(usize, Frame<'_>), Violation> {
        let flow_bytes = header.len as u32;
        let is_padded = header.flags & flag::PADDED != 0;
        if is_padded && flow_bytes == 0 {
            return Err(Violation::FrameSize("DATA"));
        }
        let stream = header.stream;
        self.data = Some(DataRest {
            stream,
            data_left: flow_bytes,
            padding_left: 0,
            wants_padding_len: is_padded,
            ends: header.flags & flag::END_STREAM != 0,
        });
        Ok((used, Frame::DataStart { stream, flow_bytes }))
    }

    #[inline]
    fn next_data<'a>(&mut self, input: &'a [u8]) -> Result<Option<(usize, Frame<'a>)>, Violation> {
        let Some(data) = &mut self.data else {
            return Ok(None);
        };
        if data.wants_padding_len {
            let Some(&padding) = input.first() else {
                return Ok(None);
            };
            data.wants_padding_len = false;
            data.padding_left = u32::from(padding);
            data.data_left = (data.data_left - 1)
                .checked_sub(data.padding_left)
                .ok_or(Violation::Padding)?;
            return Ok(Some((1, Frame::Part)));
        }
        let is_data = data.data_left > 0;
        let left = if is_data {
            &mut data.data_left
        } else {
            &mut data.padding_left
        };
        let used = (*left as usize).min(input.len());
        if used == 0 && *left > 0 {
            return Ok(None);
        }
        *left -= used as u32;
        let is_over = data.data_left == 0 && data.padding_left == 0;
        let frame = Frame::Data {
            stream: data.stream,
            bytes: if is_data { &input[..used] } else { &[] },
            ends: is_over && data.ends,
        };
        if is_over {
            self.data = None;
        }
        Ok(Some((used, frame)))
    }
}

impl Header {
    /// `bytes` are at least a header.
    #[inline]
    fn parse(bytes: &[u8]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = bytes
            .first_chunk::<FRAME_HEADER_BYTES>()
            .copied()
            .unwrap_or_default();
        Self {
            len: u32::from_be_bytes([0, l0, l1, l2]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & 0x7FFF_FFFF,
        }
    }
}

fn kind_name(kind: u8) -> &'static str {
    const NAMES: [&str; 10] = [
        "DATA",
        "HEADERS",
        "PRIORITY",
        "RST_STREAM",
        "SETTINGS",
        "PUSH_PROMISE",
        "PING",
        "GOAWAY",
        "WINDOW_UPDATE",
        "CONTINUATION",
    ];
    NAMES.get(usize::from(kind)).copied().unwrap_or("unknown")
}

/// What a whole frame says that is not DATA.
#[inline]
fn whole_frame<'a>(
    header: Header,
    payload: &'a [u8],
    blocks: &'a mut Blocks,
) -> Result<Frame<'a>, Violation> {
    let Header {
        kind,
        flags,
        stream,
        ..
    } = header;
    let wrong_size = Violation::FrameSize(kind_name(kind));
    let number = |at: usize| {
        payload[at..]
            .first_chunk::<4>()
            .copied()
            .map(u32::from_be_bytes)
    };
    let fixed = |len: usize| {
        if payload.len() == len {
            Ok(())
        } else {
            Err(wrong_size)
        }
    };
    match kind {
        kind::HEADERS => blocks.begin(header, payload),
        kind::CONTINUATION => blocks.go_on(header, payload),
        kind::RST_STREAM => {
            fixed(4)?;
            let code = ErrorCode(number(0).ok_or(wrong_size)?);
            Ok(Frame::Reset { stream, code })
        }
        kind::SETTINGS if flags & flag::ACK != 0 => fixed(0).map(|()| Frame::SettingsAck),
        kind::SETTINGS if !payload.len().is_multiple_of(6) => Err(wrong_size),
        kind::SETTINGS => Ok(Frame::Settings(payload)),
        kind::PUSH_PROMISE => Err(Violation::Push),
        kind::PING => {
            let ping = payload.try_into().map_err(|_| wrong_size)?;
            Ok(if flags & flag::ACK != 0 {
                Frame::Ignored
            } else {
                Frame::Ping(ping)
            })
        }
        kind::GOAWAY if payload.len() < 8 => Err(wrong_size),
        kind::GOAWAY => Ok(Frame::Goaway {
            last_stream: number(0).ok_or(wrong_size)? & 0x7FFF_FFFF,
            code: ErrorCode(number(4).ok_or(wrong_size)?),
        }),
        kind::WINDOW_UPDATE => {
            fixed(4)?;
            let increment = number(0).ok_or(wrong_size)? & 0x7FFF_FFFF;
            Ok(Frame::WindowUpdate { stream, increment })
        }
        kind::PRIORITY => fixed(5).map(|()| Frame::Ignored),
        _ => Ok(Frame::Ignored),
    }
}

impl Blocks {
    fn begin<'a>(&'a mut self, header: Header, payload: &'a [u8]) -> Result<Frame<'a>, Violation> {
        let Header { flags, stream, .. } = header;
        let mut block = payload;
        let mut padding = 0;
        if flags & flag::PADDED != 0 {
            let (first, rest) = block.split_first().ok_or(Violation::FrameSize("HEADERS"))?;
            padding = usize::from(*first);
            block = rest;
        }
        if flags & flag::PRIORITY != 0 {
            block = block.get(5..).ok_or(Violation::FrameSize("HEADERS"))?;
        }
        let len = block.len().checked_sub(padding).ok_or(Violation::Padding)?;
        block = &block[..len];
        let ends = flags & flag::END_STREAM != 0;
        if flags & flag::END_HEADERS != 0 {
            return Ok(Frame::Headers {
                stream,
                block,
                ends,
            });
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.stream = stream;
        self.ends = ends;
        self.continuations = 0;
        Ok(Frame::Part)
    }

    fn go_on(&mut self, header: Header, payload: &[u8]) -> Result<Frame<'_>, Violation> {
        self.continuations += 1;
        if self.continuations > CONTINUATIONS_MAX
            || self.block.len() + payload.len() > BLOCK_MAX_BYTES
        {
            return Err(Violation::BlockTooLarge);
        }
        self.block.extend_from_slice(payload);
        if header.flags & flag::END_HEADERS == 0 {
            return Ok(Frame::Part);
        }
        let (stream, ends) = (self.stream, self.ends);
        self.stream = 0;
        Ok(Frame::Headers {
            stream,
            block: &self.block,
            ends,
        })
    }
}
