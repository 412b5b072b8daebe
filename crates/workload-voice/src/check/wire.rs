//! Messages of HTTP/1.1 over a blocking stream, read part by part as they come: for the client of the cases and for the mock
//! providers.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_conformance::socket::connect;

/// A head that is longer is none.
const HEAD_MAX_BYTES: usize = 64 * 1024;

/// How long a single write may take.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// A stream and what was read of it ahead.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    kept: Vec<u8>,
}

/// The start line and the fields of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) start: String,
    pub(super) fields: Vec<(String, String)>,
}

/// How much of a body is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Length(usize),
    /// Chunks: the next thing is a size.
    ChunkSize,
    /// So many bytes of a chunk, then its line end.
    Chunk(usize),
    /// The fields behind the last chunk.
    Trailer,
    /// Whatever comes until the connection ends.
    UntilEnd,
    /// Nothing.
    Over,
}

/// What comes next of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Data(Vec<u8>),
    /// The body is whole.
    End,
    /// The connection ended before the body did.
    Cut,
    /// Nothing before the deadline.
    Nothing,
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    Some,
    Gone,
    Nothing,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        // A stream that is gone is found out by the next read.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(WRITE_LIMIT));
        Self {
            stream,
            kept: Vec::new(),
        }
    }

    pub(super) fn to(address: SocketAddr) -> Result<Self, String> {
        connect(address, None).map(Self::new)
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next head; `None` when none comes before the deadline.
    pub(super) fn head(&mut self, deadline: Instant) -> Result<Option<Head>, String> {
        loop {
            let end = self.kept.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = Head::parse(&self.kept[..end]);
                self.kept.drain(..end + 4);
                return head.map(Some);
            }
            if self.kept.len() > HEAD_MAX_BYTES {
                return Err("a head over 64 KiB".to_owned());
            }
            match self.fill(deadline) {
                Filled::Some => {}
                Filled::Gone => return Err("the connection ended before a head".to_owned()),
                Filled::Nothing => return Ok(None),
            }
        }
    }

    /// The next part of a body.
    pub(super) fn part(&mut self, body: &mut Body, deadline: Instant) -> Result<Part, String> {
        loop {
            if let Some(part) = body.take(&mut self.kept)? {
                return Ok(part);
            }
            match self.fill(deadline) {
                Filled::Some => {}
                Filled::Nothing => return Ok(Part::Nothing),
                Filled::Gone if *body == Body::UntilEnd => return Ok(Part::End),
                Filled::Gone => return Ok(Part::Cut),
            }
        }
    }

    /// Reads what comes before the deadline, once.
    pub(super) fn fill(&mut self, deadline: Instant) -> Filled {
        let mut buffer = [0; 64 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Filled::Nothing;
            }
            let timeout = self.stream.set_read_timeout(Some(left));
            match timeout.and_then(|()| self.stream.read(&mut buffer)) {
                Ok(0) => return Filled::Gone,
                Ok(n) => {
                    self.kept.extend_from_slice(&buffer[..n]);
                    return Filled::Some;
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Filled::Nothing,
                    _ => return Filled::Gone,
                },
            }
        }
    }

    /// What was read and belongs to no message of HTTP.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    /// Waits, and says whether the peer left meanwhile.
    pub(super) fn gone_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            match self.fill(deadline) {
                Filled::Some => {}
                Filled::Gone => return true,
                Filled::Nothing => return false,
            }
        }
    }
}

impl Head {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "a head that is not text".to_owned())?;
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let field = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let fields = lines.map(|line| field(line).ok_or_else(|| format!("a bad field: {line:?}")));
        Ok(Self {
            start,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }

    /// The first field of this name, which is in lower case.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The status of an answer.
    pub(super) fn status(&self) -> Result<u16, String> {
        let bad = || format!("a bad status line: {:?}", self.start);
        let rest = self.start.strip_prefix("HTTP/1.1 ").ok_or_else(bad)?;
        let digits = rest.get(..3).ok_or_else(bad)?;
        digits.parse().map_err(|_| bad())
    }

    /// The method and the target of a request.
    pub(super) fn request(&self) -> Option<(&str, &str)> {
        let (method, rest) = self.start.split_once(' ')?;
        rest.split_once(' ').map(|(target, _)| (method, target))
    }

    /// How long the body is. A request without a length has none; an answer lasts until the end then.
    pub(super) fn body(&self, unsaid: Body) -> Result<Body, String> {
        if let Some(coding) = self.field("transfer-encoding") {
            let chunked = coding.eq_ignore_ascii_case("chunked");
            let known = chunked.then_some(Body::ChunkSize);
            return known.ok_or_else(|| format!("Transfer-Encoding {coding}"));
        }
        match self.field("content-length") {
            None => Ok(unsaid),
            Some(length) => match length.parse() {
                Ok(length) => Ok(Body::Length(length)),
                Err(_) => Err(format!("Content-Length {length}")),
            },
        }
    }
}

impl Body {
    /// Takes what `kept` has of the body; `None` when more is needed.
    fn take(&mut self, kept: &mut Vec<u8>) -> Result<Option<Part>, String> {
        loop {
            match *self {
                Self::Over | Self::Length(0) => {
                    *self = Self::Over;
                    return Ok(Some(Part::End));
                }
                Self::Length(left) => {
                    let data = first(kept, left);
                    *self = Self::Length(left - data.len());
                    return Ok(some(data));
                }
                Self::UntilEnd => return Ok(some(first(kept, usize::MAX))),
                Self::ChunkSize => {
                    let Some(line) = line(kept) else {
                        return Ok(None);
                    };
                    let digits = line.split(';').next().unwrap_or_default().trim();
                    let size = usize::from_str_radix(digits, 16);
                    *self = match size.map_err(|_| format!("a bad chunk size: {line:?}"))? {
                        0 => Self::Trailer,
                        size => Self::Chunk(size),
                    };
                }
                Self::Chunk(0) => match line(kept) {
                    None => return Ok(None),
                    Some(rest) if rest.is_empty() => *self = Self::ChunkSize,
                    Some(rest) => return Err(format!("a chunk goes on behind its end: {rest:?}")),
                },
                Self::Chunk(left) => {
                    let data = first(kept, left);
                    *self = Self::Chunk(left - data.len());
                    return Ok(some(data));
                }
                Self::Trailer => match line(kept) {
                    None => return Ok(None),
                    Some(line) if line.is_empty() => *self = Self::Over,
                    Some(_) => {}
                },
            }
        }
    }
}

fn some(data: Vec<u8>) -> Option<Part> {
    (!data.is_empty()).then_some(Part::Data(data))
}

/// Takes up to `most` bytes off the front.
fn first(kept: &mut Vec<u8>, most: usize) -> Vec<u8> {
    kept.drain(..most.min(kept.len())).collect()
}

/// Takes a line off the front, without its end.
fn line(kept: &mut Vec<u8>) -> Option<String> {
    let end = kept.windows(2).position(|two| two == b"\r\n")?;
    let line = String::from_utf8_lossy(&kept[..end]).into_owned();
    kept.drain(..end + 2);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All parts of a body, given byte by byte, and whether it ended.
    fn read(mut body: Body, bytes: &[u8]) -> Result<(Vec<u8>, bool), String> {
        let (mut kept, mut data) = (Vec::new(), Vec::new());
        for byte in bytes {
            kept.push(*byte);
            while let Some(part) = body.take(&mut kept)? {
                match part {
                    Part::Data(part) => data.extend(part),
                    _ => return Ok((data, true)),
                }
            }
        }
        Ok((data, false))
    }

    #[test]
    fn bodies_are_read_however_they_come() {
        let chunked = b"2;x=y\r\nok\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
        let whole = Ok((b"ok0123456789".to_vec(), true));
        assert_eq!(read(Body::ChunkSize, chunked), whole);
        let cut = &chunked[..chunked.len() - 2];
        assert_eq!(
            read(Body::ChunkSize, cut),
            Ok((b"ok0123456789".to_vec(), false))
        );
        assert_eq!(read(Body::Length(2), b"ok"), Ok((b"ok".to_vec(), true)));
        assert_eq!(read(Body::UntilEnd, b"ok"), Ok((b"ok".to_vec(), false)));
        assert!(read(Body::ChunkSize, b"2\r\nokay\r\n").is_err());
        assert!(read(Body::ChunkSize, b"z\r\n").is_err());
    }

    #[test]
    fn heads_are_read() {
        let head = Head::parse(b"HTTP/1.1 200 OK\r\nContent-Length:  2").expect("a head");
        assert_eq!(head.status(), Ok(200));
        assert_eq!(head.body(Body::Over), Ok(Body::Length(2)));
        let head = Head::parse(b"POST /a?b=c HTTP/1.1\r\nTransfer-Encoding: chunked").expect("one");
        assert_eq!(head.request(), Some(("POST", "/a?b=c")));
        assert_eq!(head.body(Body::Over), Ok(Body::ChunkSize));
        assert!(head.status().is_err());
        assert!(Head::parse(b"GET / HTTP/1.1\r\nno field").is_err());
    }
}
