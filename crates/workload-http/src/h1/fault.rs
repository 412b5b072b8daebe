//! What can be wrong with the other side's bytes.

use thiserror::Error;

/// Why an answer does not count. The names are those of the outcomes in the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// The bytes are not an HTTP/1.1 answer.
    #[error("bad answer: {0}")]
    BadAnswer(#[from] Flaw),
    /// The server closed the connection and had sent nothing of the answer.
    #[error("the server closed the connection before its answer")]
    ClosedBeforeAnswer,
    /// The server closed the connection inside an answer.
    #[error("the server closed the connection inside its answer")]
    ClosedInAnswer,
    /// Bytes came that answer no request.
    #[error("the server sent bytes that answer no request")]
    UnaskedAnswer,
}

impl Fault {
    /// Its name in the results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BadAnswer(_) => "bad_answer",
            Self::ClosedBeforeAnswer => "closed_before_answer",
            Self::ClosedInAnswer => "closed_in_answer",
            Self::UnaskedAnswer => "unasked_answer",
        }
    }
}

/// A rule of RFC 9110 or RFC 9112 that a message breaks, or a limit that it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flaw {
    /// The first line of an answer is not a status line.
    #[error("the status line is malformed")]
    StatusLine,
    /// The first line of a request is not a request line.
    #[error("the request line is malformed")]
    RequestLine,
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    #[error("the version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// The status is not between 100 and 599.
    #[error("the status is not between 100 and 599")]
    Status,
    /// Status 101, though no request asks for another protocol.
    #[error("status 101 answers a request that asked for no other protocol")]
    SwitchesProtocols,
    /// More interim answers than a client has to read.
    #[error("more than 32 interim answers came before the final one")]
    TooManyInterim,
    /// A line ends with a line feed alone.
    #[error("a line ends with a line feed alone")]
    BareLineFeed,
    /// A carriage return stands inside a line.
    #[error("a carriage return stands inside a line")]
    BareCarriageReturn,
    /// A control character in a line.
    #[error("a line holds a control character")]
    ControlCharacter,
    /// A field line without a name, or with a name that is no token.
    #[error("a field's name is malformed")]
    FieldName,
    /// White space between name and colon.
    #[error("white space stands between a field's name and its colon")]
    SpaceBeforeColon,
    /// A line that continues the one before.
    #[error("a field line is folded")]
    FoldedLine,
    /// The head is too long.
    #[error("the head is over 64 KiB")]
    HeadTooLarge,
    /// A length that is not a decimal number.
    #[error("Content-Length is not a decimal number below 10^18")]
    ContentLength,
    /// A second Content-Length, even with the same value: RFC 9110, section 8.6, lets a recipient reject it.
    #[error("Content-Length stands more than once")]
    RepeatedContentLength,
    /// Both ways to tell where the body ends.
    #[error("both Content-Length and Transfer-Encoding are present")]
    LengthAndEncoding,
    /// A transfer coding other than chunked, or chunked twice.
    #[error("Transfer-Encoding is not exactly `chunked`")]
    TransferEncoding,
    /// A transfer coding in a message of HTTP/1.0, which has none.
    #[error("an HTTP/1.0 message has Transfer-Encoding")]
    EncodingInHttp10,
    /// A chunk's size is not a hexadecimal number of at most 15 digits.
    #[error("a chunk's size is malformed")]
    ChunkSize,
    /// A chunk's line does not end as it must, or its extension is malformed.
    #[error("a chunk's line is malformed")]
    ChunkLine,
    /// A chunk's data is not followed by the end of a line.
    #[error("a chunk is longer than its size")]
    ChunkEnd,
    /// A line after the last chunk is no field line.
    #[error("a trailer line is malformed")]
    Trailer,
    /// Extensions and trailers are too long.
    #[error("chunk extensions and trailers are over 64 KiB")]
    ChunkLinesTooLarge,
    /// A request of HTTP/1.1 needs exactly one Host field.
    #[error("the request has no Host field, or more than one")]
    Host,
}
