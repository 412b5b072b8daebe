//! What a client asks: the head and the body of an HTTP/1.1 request, from bytes.

use httparse::{EMPTY_HEADER, Status};
use plimsoll_core::secret::Secret;

/// The longest head that is read.
const HEAD_MAX_BYTES: usize = 64 << 10;
const HEADERS_MAX: usize = 100;
/// The longest body that is read: more than twice the longest text that a gateway takes.
const BODY_MAX_BYTES: usize = 256 << 10;
/// The longest line between two chunks.
const CHUNK_LINE_MAX_BYTES: usize = 4 << 10;

/// A request that cannot be read, and what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Status and reason, such as `400 Bad Request`.
    pub status: &'static str,
    /// Why, for people.
    pub told: &'static str,
}

const fn refusal(status: &'static str, told: &'static str) -> Refusal {
    Refusal { status, told }
}

const BAD: &str = "400 Bad Request";
const TOO_LONG: Refusal = refusal("413 Content Too Large", "the body is over 256 KiB");

/// A request, whole. Headers are secrets, and only those are read that the connection keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    query: String,
    kept: Vec<(&'static str, Secret)>,
    /// The key of an upgrade to a WebSocket.
    pub websocket_key: Option<String>,
    /// Whether the connection lives on.
    pub keep_alive: bool,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header that the connection keeps; the name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.kept.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.expose())
    }

    /// The value of a parameter, as it stands in the address.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut all = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        all.find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    method: String,
    target: String,
    kept: Vec<(&'static str, Secret)>,
    websocket_key: Option<String>,
    keep_alive: bool,
    length: Option<usize>,
    chunked: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

impl Head {
    /// Reads a head and its length; `None` if it is not there wholly.
    ///
    /// # Errors
    /// [`Refusal`]: it is no head that this server understands.
    pub fn parse(
        input: &[u8],
        kept: &'static [&'static str],
    ) -> Result<Option<(usize, Self)>, Refusal> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(input) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if input.len() < HEAD_MAX_BYTES => return Ok(None),
            Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                let told = "the head is over 64 KiB or has over 100 headers";
                return Err(refusal("431 Request Header Fields Too Large", told));
            }
            Err(_) => return Err(refusal(BAD, "this is no HTTP/1.1 request")),
        };
        if request.version != Some(1) {
            return Err(refusal("505 HTTP Version Not Supported", "give HTTP/1.1"));
        }
        let mut head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            kept: Vec::new(),
            websocket_key: None,
            keep_alive: true,
            length: None,
            chunked: false,
            expects_continue: false,
        };
        for header in request.headers {
            head.note(header.name, header.value, kept)?;
        }
        Ok(Some((length, head)))
    }

    fn note(
        &mut self,
        name: &str,
        value: &[u8],
        kept: &'static [&'static str],
    ) -> Result<(), Refusal> {
        let text = str::from_utf8(value).unwrap_or_default().trim();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if let Some(known) = kept.iter().find(|known| is(known)) {
            self.kept.push((known, Secret::new(text)));
        }
        if is("content-length") {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let length = text.parse().ok().filter(|_| digits);
            let again = self.length.is_some() && self.length != length;
            if length.is_none() || again {
                return Err(refusal(BAD, "content-length is no number, or two"));
            }
            self.length = length;
        } else if is("transfer-encoding") {
            if !text.eq_ignore_ascii_case("chunked") {
                return Err(refusal(
                    "501 Not Implemented",
                    "give transfer-encoding: chunked, or none",
                ));
            }
            self.chunked = true;
        } else if is("connection") {
            let mut tokens = text.split(',').map(str::trim);
            self.keep_alive &= !tokens.any(|token| token.eq_ignore_ascii_case("close"));
        } else if is("expect") {
            self.expects_continue = text.eq_ignore_ascii_case("100-continue");
        } else if is("sec-websocket-key") {
            self.websocket_key = Some(text.to_owned());
        }
        Ok(())
    }

    /// The request, with the body that came.
    #[must_use]
    pub fn request(self, body: Body) -> Request {
        // A target may name the server, as to a proxy.
        let target = match self.target.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => &self.target,
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Request {
            method: self.method,
            path: path.to_owned(),
            query: query.to_owned(),
            kept: self.kept,
            websocket_key: self.websocket_key,
            keep_alive: self.keep_alive,
            body: body.bytes,
        }
    }
}

/// The body of a request, as far as it has arrived.
#[derive(Debug)]
pub struct Body {
    bytes: Vec<u8>,
    rest: Rest,
}

/// What is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// So many bytes, and no more.
    Bytes(usize),
    /// The size of a chunk.
    ChunkSize,
    /// So many bytes of a chunk.
    Chunk(usize),
    /// The line break behind a chunk.
    ChunkEnd,
    /// Trailers, to an empty line.
    Trailers,
}

impl Body {
    /// The body that this head announces.
    ///
    /// # Errors
    /// [`Refusal`]: it is too long, or its length is told twice.
    pub fn of(head: &Head) -> Result<Self, Refusal> {
        let rest = match (head.chunked, head.length) {
            (true, Some(_)) => {
                return Err(refusal(
                    BAD,
                    "content-length and transfer-encoding in one request",
                ));
            }
            (true, None) => Rest::ChunkSize,
            (false, length) => Rest::Bytes(length.unwrap_or(0)),
        };
        match rest {
            Rest::Bytes(length) if length > BODY_MAX_BYTES => Err(TOO_LONG),
            _ => Ok(Self {
                bytes: Vec::new(),
                rest,
            }),
        }
    }

    /// Takes what belongs to the body; true when that is all of it.
    ///
    /// # Errors
    /// [`Refusal`]: a chunk that is none, or too much.
    pub fn take(&mut self, input: &mut Vec<u8>) -> Result<bool, Refusal> {
        let mut taken = 0;
        let whole = loop {
            match self.step(&input[taken..])? {
                Some((count, true)) => break (taken + count, true),
                Some((count, false)) => taken += count,
                None => break (taken, false),
            }
        };
        input.drain(..whole.0);
        Ok(whole.1)
    }

    /// How many bytes were taken, and whether they were the last; `None` if more must arrive.
    fn step(&mut self, input: &[u8]) -> Result<Option<(usize, bool)>, Refusal> {
        match self.rest {
            Rest::Bytes(wanted) | Rest::Chunk(wanted) => {
                let count = wanted.min(input.len());
                self.bytes.extend_from_slice(&input[..count]);
                let (missing, in_chunk) = (wanted - count, matches!(self.rest, Rest::Chunk(_)));
                self.rest = match (in_chunk, missing) {
                    (true, 0) => Rest::ChunkEnd,
                    (true, _) => Rest::Chunk(missing),
                    (false, _) => Rest::Bytes(missing),
                };
                let over = !in_chunk && missing == 0;
                Ok((over || count > 0).then_some((count, over)))
            }
            Rest::ChunkSize => match httparse::parse_chunk_size(input) {
                Ok(Status::Complete((count, size))) => {
                    let room = BODY_MAX_BYTES - self.bytes.len();
                    let size = usize::try_from(size)
                        .ok()
                        .filter(|size| *size <= room)
                        .ok_or(TOO_LONG)?;
                    self.rest = if size == 0 {
                        Rest::Trailers
                    } else {
                        Rest::Chunk(size)
                    };
                    Ok(Some((count, false)))
                }
                Ok(Status::Partial) if input.len() < CHUNK_LINE_MAX_BYTES => Ok(None),
                _ => Err(refusal(BAD, "a chunk without its size")),
            },
            Rest::ChunkEnd => match input {
                [b'\r', b'\n', ..] => {
                    self.rest = Rest::ChunkSize;
                    Ok(Some((2, false)))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(refusal(BAD, "a chunk that is longer than its size")),
            },
            Rest::Trailers => match input.iter().position(|byte| *byte == b'\n') {
                Some(end) => Ok(Some((end + 1, matches!(input[..end], [] | [b'\r'])))),
                None if input.len() < CHUNK_LINE_MAX_BYTES => Ok(None),
                None => Err(refusal(BAD, "a trailer that is too long")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a request that arrives in pieces of this size.
    fn read(bytes: &[u8], piece: usize) -> Result<Option<(Request, Vec<u8>)>, Refusal> {
        let (mut input, mut pieces) = (Vec::new(), bytes.chunks(piece));
        let head = loop {
            if let Some((length, head)) = Head::parse(&input, &["x-key"])? {
                input.drain(..length);
                break head;
            }
            let Some(piece) = pieces.next() else {
                return Ok(None);
            };
            input.extend_from_slice(piece);
        };
        let mut body = Body::of(&head)?;
        while !body.take(&mut input)? {
            let Some(piece) = pieces.next() else {
                return Ok(None);
            };
            input.extend_from_slice(piece);
        }
        input.extend(pieces.flatten());
        Ok(Some((head.request(body), input)))
    }

    #[test]
    fn a_request_is_read_however_it_is_cut() {
        let plain = b"POST http://mock:9100/v1/speak?model=a&encoding=linear16 HTTP/1.1\r\nHost: mock\r\ncontent-length: 5\r\nConnection: keep-alive, Close\r\n\r\nhelloGET /next".as_slice();
        let chunked = b"POST /v1/speak?model=a&encoding=linear16 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nconnection: close\r\n\r\n2;x=1\r\nhe\r\n3\r\nllo\r\n0\r\ntrailer: 1\r\n\r\nGET /next".as_slice();
        for bytes in [plain, chunked] {
            for piece in 1..bytes.len() {
                let (request, rest) = read(bytes, piece).expect("legal").expect("whole");
                assert_eq!(
                    (request.method.as_str(), request.path.as_str()),
                    ("POST", "/v1/speak")
                );
                assert_eq!(request.parameter("encoding"), Some("linear16"));
                assert_eq!(request.parameter("sample_rate"), None);
                assert_eq!(
                    (request.body.as_slice(), request.keep_alive),
                    (b"hello".as_slice(), false)
                );
                assert_eq!(rest, b"GET /next", "in pieces of {piece}");
            }
            assert_eq!(read(&bytes[..bytes.len() - 12], 7), Ok(None), "not whole");
        }
        let bare = read(b"GET http://mock HTTP/1.1\r\n\r\n", 100)
            .expect("legal")
            .expect("whole")
            .0;
        assert_eq!((bare.path.as_str(), bare.keep_alive), ("/", true));
    }

    #[test]
    fn a_header_is_kept_where_it_is_wanted_and_never_shown() {
        let bytes = b"GET / HTTP/1.1\r\nX-Key: sesame\r\nOther: open\r\n\r\n";
        let (request, _) = read(bytes, 100).expect("legal").expect("whole");
        assert_eq!(request.header("x-key"), Some("sesame"));
        assert_eq!(request.header("other"), None);
        let shown = format!("{request:?}");
        assert!(
            !shown.contains("sesame") && !shown.contains("open"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_MAX_BYTES));
        for (bytes, status) in [
            ("hello\r\n\r\n", "400"),
            ("GET / HTTP/1.0\r\n\r\n", "505"),
            ("POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", "400"),
            (
                "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
                "400",
            ),
            (
                "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
                "400",
            ),
            ("POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", "501"),
            ("POST / HTTP/1.1\r\ncontent-length: 262145\r\n\r\n", "413"),
            (
                "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n40001\r\n",
                "413",
            ),
            (
                "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
                "400",
            ),
            (
                "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nxx\r\n",
                "400",
            ),
            (long.as_str(), "431"),
        ] {
            let refused = read(bytes.as_bytes(), 1 << 20).expect_err(status);
            assert!(refused.status.starts_with(status), "{refused:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes: Vec<u8>, piece in 1_usize..50) {
            let _ = read(&bytes, piece);
            let body = [b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", bytes.as_slice()].concat();
            let _ = read(&body, piece);
        }
    }
}
