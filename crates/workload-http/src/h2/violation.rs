//! What can be wrong with the peer's frames.

use std::fmt;

use thiserror::Error;

use super::hpack::HpackFlaw;

/// A code of RST_STREAM and GOAWAY (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// A rule without a code of its own was broken.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// A window was overrun.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame on a stream that was ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame has an impossible length.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not looked at.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(8);
    /// The tables of header compression no longer agree.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer does too much of something.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}

/// A rule of RFC 9113 that the peer broke, or a limit that it is over: the end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// The client's first bytes are not those of HTTP/2.
    #[error("the connection does not begin with the preface of HTTP/2")]
    Preface,
    /// The first frame must be SETTINGS.
    #[error("the first frame is not SETTINGS")]
    NotSettingsFirst,
    /// A frame is longer than we allow.
    #[error("a frame is longer than 16,384 bytes")]
    FrameTooLarge,
    /// A frame whose kind has another length.
    #[error("a {0} frame has an impossible length")]
    FrameSize(&'static str),
    /// A frame on stream 0 whose kind belongs to a stream, or the reverse.
    #[error("a {0} frame is on the wrong stream")]
    WrongStream(&'static str),
    /// The padding is longer than the frame.
    #[error("a frame's padding is longer than the frame")]
    Padding,
    /// Another frame stands inside a header block.
    #[error("a header block is interrupted by another frame")]
    Interrupted,
    /// A CONTINUATION that continues nothing.
    #[error("a CONTINUATION frame continues no header block")]
    LoneContinuation,
    /// A header block is too long.
    #[error("a header block is over 64 KiB, or in more than 32 CONTINUATION frames")]
    BlockTooLarge,
    /// A header block can't be decoded.
    #[error("{0}")]
    Hpack(#[from] HpackFlaw),
    /// We disabled push.
    #[error("the peer pushes, which was disabled or is not its right")]
    Push,
    /// A setting has a value that it must not have.
    #[error("setting {0} has an impossible value")]
    Setting(u16),
    /// A window grew beyond 2^31-1.
    #[error("a flow-control window grew beyond 2^31-1")]
    WindowOverflow,
    /// A window was enlarged by nothing.
    #[error("a WINDOW_UPDATE frame adds nothing")]
    WindowIncrement,
    /// More data than the window allows.
    #[error("more data came than the flow-control window allows")]
    WindowOverrun,
    /// A frame on a stream that nobody opened.
    #[error("a {0} frame is on a stream that was never opened")]
    IdleStream(&'static str),
    /// A frame on a stream that is complete.
    #[error("a {0} frame is on a stream that was complete")]
    ClosedStream(&'static str),
    /// A GOAWAY frame takes back a promise.
    #[error("a second GOAWAY frame names a later stream")]
    GoawayRaised,
    /// A client's stream has an even id, or one below an earlier one.
    #[error("a client opened a stream with an impossible id")]
    StreamId,
}

impl Violation {
    /// The code that tells the peer.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::FrameTooLarge | Self::FrameSize(_) => ErrorCode::FRAME_SIZE_ERROR,
            Self::BlockTooLarge => ErrorCode::ENHANCE_YOUR_CALM,
            Self::Hpack(_) => ErrorCode::COMPRESSION_ERROR,
            Self::WindowOverflow | Self::WindowOverrun => ErrorCode::FLOW_CONTROL_ERROR,
            Self::ClosedStream(_) => ErrorCode::STREAM_CLOSED,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }

    /// Its name in the results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClosedStream("HEADERS" | "DATA") => "unasked_answer",
            _ => "bad_answer",
        }
    }
}

/// A rule that one message broke (RFC 9113, section 8.1.1): the end of its stream, not of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The pseudo-header fields are not those that the message must have, or not before all others.
    #[error("its pseudo-header fields are wrong")]
    PseudoFields,
    /// The status is not between 100 and 599, or is 101.
    #[error("its status is not possible in HTTP/2")]
    Status,
    /// A field's name or value has a byte that it must not have.
    #[error("a field has a character that it must not have")]
    Field,
    /// A field that only HTTP/1.1 has.
    #[error("it has a field that belongs to a connection of HTTP/1.1")]
    ConnectionField,
    /// Content-Length is not a decimal number, or stands twice.
    #[error("its Content-Length is malformed")]
    ContentLength,
    /// The body has another length than Content-Length says.
    #[error("its body is not as long as Content-Length says")]
    Length,
    /// A body without a head, or in an answer that has none.
    #[error("it has data where none may be")]
    Data,
    /// An interim answer that ends the stream.
    #[error("an interim answer ends the stream")]
    InterimEnd,
    /// Interim answers without end.
    #[error("it has more than 32 interim answers")]
    TooManyInterim,
    /// A second head that does not end the stream.
    #[error("its trailers do not end the stream")]
    Trailers,
}
