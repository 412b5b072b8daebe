//! A request and the answer that the contract wants to it.

use super::answer::{Answer, Asked, excerpt};

/// A request, as bytes, and what must come back.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    /// For texts.
    name: String,
    request: Vec<u8>,
    asked: Asked,
    wanted: Wanted,
}

/// What an answer must be.
#[derive(Debug, Clone)]
struct Wanted {
    /// One of these.
    statuses: &'static [u16],
    media_type: Option<&'static str>,
    /// The body, where the contract says what it is.
    body: Option<Vec<u8>>,
}

/// The answers to a method that a path does not have.
pub(super) const WRONG_METHOD: &[u16] = &[404, 405, 501];

impl Exchange {
    /// `GET path`, answered with this body.
    pub(super) fn page(host: &str, path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            name: format!("GET {path}"),
            request: request(&format!("GET {path} HTTP/1.1"), &[&host_line(host)], b""),
            asked: Asked::Other,
            wanted: Wanted {
                statuses: &[200],
                media_type: None,
                body: Some(body.into()),
            },
        }
    }

    /// `GET /`.
    pub(super) fn root(host: &str) -> Self {
        Self::page(host, "/", "ok")
    }

    /// `GET /bytes/N`.
    pub(super) fn bytes(host: &str, size: usize) -> Self {
        Self::page(host, &format!("/bytes/{size}"), pattern(size))
    }

    /// `GET /json/K`.
    pub(super) fn json(host: &str, number: u64) -> Self {
        Self::page(host, &format!("/json/{number}"), json(number))
    }

    /// `GET path` of a path that there is not.
    pub(super) fn unknown(host: &str, path: &str) -> Self {
        Self::page(host, path, "").answered(&[404])
    }

    /// A request of a method that this path does not have.
    pub(super) fn wrong_method(host: &str, method: &str, path: &str, body: &[u8]) -> Self {
        let length = format!("Content-Length: {}", body.len());
        let fields = [&*host_line(host), &length];
        Self {
            name: format!("{method} {path}"),
            request: request(&format!("{method} {path} HTTP/1.1"), &fields, body),
            ..Self::page(host, path, "").answered(WRONG_METHOD)
        }
    }

    /// `POST /sum` with this body.
    pub(super) fn sum(host: &str, body: &[u8]) -> Self {
        let length = format!("Content-Length: {}", body.len());
        Self::sum_as(host, &[&length], body, body)
    }

    /// `POST /sum` with these fields and these bytes behind them, which carry the body.
    pub(super) fn sum_as(host: &str, fields: &[&str], carried: &[u8], body: &[u8]) -> Self {
        let host_line = host_line(host);
        let fields: Vec<&str> = [&*host_line]
            .into_iter()
            .chain(fields.iter().copied())
            .collect();
        Self {
            name: format!("POST /sum of {} B", body.len()),
            request: request("POST /sum HTTP/1.1", &fields, carried),
            ..Self::page(host, "/sum", sum(body))
        }
    }

    /// `POST /sum` with this body in one chunk of each of these sizes; the last takes the rest.
    pub(super) fn sum_in_chunks(host: &str, body: &[u8], sizes: &[usize]) -> Self {
        let carried = in_chunks(body, sizes);
        Self::sum_as(host, &["Transfer-Encoding: chunked"], &carried, body)
            .named(&format!("POST /sum of {} B in chunks", body.len()))
    }

    /// The same, called otherwise in texts.
    pub(super) fn named(self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self
        }
    }

    /// The same with other bytes as its request.
    pub(super) fn sent_as(self, request: Vec<u8>) -> Self {
        Self { request, ..self }
    }

    /// The same with these fields, too.
    pub(super) fn with(mut self, fields: &[&str]) -> Self {
        let mut behind = self.request.windows(2).position(|two| two == b"\r\n");
        let mut at = behind.take().map_or(0, |end| end + 2);
        for field in fields {
            let line = format!("{field}\r\n");
            self.request.splice(at..at, line.bytes());
            at += line.len();
        }
        self
    }

    /// The same with HEAD for GET: the same answer without its body.
    pub(super) fn head(mut self) -> Self {
        self.name = self.name.replacen("GET", "HEAD", 1);
        self.request.splice(..3, *b"HEAD");
        self.asked = Asked::Head;
        self.wanted.body = Some(Vec::new());
        self
    }

    /// The same, when one of these statuses is wanted, and any body.
    pub(super) fn answered(mut self, statuses: &'static [u16]) -> Self {
        self.wanted = Wanted {
            statuses,
            media_type: None,
            body: None,
        };
        self
    }

    /// The same, when the answer must be of this type.
    pub(super) fn of_type(mut self, media_type: &'static str) -> Self {
        self.wanted.media_type = Some(media_type);
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn request(&self) -> &[u8] {
        &self.request
    }

    pub(super) fn asked(&self) -> Asked {
        self.asked
    }

    /// What was seen, with the name of this request.
    pub(super) fn told(&self, seen: &str) -> String {
        format!("{}: {seen}", self.name)
    }

    /// Passes when this is the wanted answer.
    pub(super) fn accept(&self, answer: &Answer) -> Result<(), String> {
        let Wanted {
            statuses,
            media_type,
            body,
        } = &self.wanted;
        if !["HTTP/1.1", "HTTP/1.0"].contains(&&*answer.version) {
            return Err(self.told(&format!("an answer of {}", answer.version)));
        }
        if !statuses.contains(&answer.status) {
            return Err(self.told(&answer.describe()));
        }
        if let Some(body) = body
            && *body != answer.body
        {
            let (seen, wanted) = (excerpt(&answer.body), excerpt(body));
            return Err(self.told(&format!("{seen} instead of {wanted}")));
        }
        match (media_type, answer.media_type()) {
            (Some(wanted), Some(seen)) if *wanted != seen => {
                Err(self.told(&format!("content type {seen}")))
            }
            (Some(_), None) => Err(self.told("no content type")),
            _ => Ok(()),
        }
    }
}

/// A request of these lines: an empty line and the body follow.
pub(super) fn request(start: &str, fields: &[&str], body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 256);
    for line in [start].iter().chain(fields) {
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

pub(super) fn host_line(host: &str) -> String {
    format!("Host: {host}")
}

/// The body of `/bytes/N`.
pub(super) fn pattern(size: usize) -> Vec<u8> {
    b"0123456789abcdef"
        .iter()
        .copied()
        .cycle()
        .take(size)
        .collect()
}

/// The body of `/json/K`.
pub(super) fn json(number: u64) -> String {
    let even = number.is_multiple_of(2);
    format!("{{\"id\":{number},\"name\":\"item {number}\",\"even\":{even}}}")
}

/// The body of `/sum`.
pub(super) fn sum(body: &[u8]) -> String {
    format!("{:08x} {}", crc32fast::hash(body), body.len())
}

/// Bytes of all values, this many, that differ from place to place and from number to number.
pub(super) fn body(len: usize, number: u64) -> Vec<u8> {
    let mut bytes = format!("{number} ").into_bytes();
    bytes.extend((0..len).map(|place| (place * 31 + place / 256) as u8));
    bytes.truncate(len);
    bytes
}

/// A chunked body: a chunk of each of these sizes, one with the rest if there is any, and the last.
pub(super) fn in_chunks(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = body;
    for size in sizes.iter().copied().chain([usize::MAX]) {
        let (part, tail) = rest.split_at(size.min(rest.len()));
        if !part.is_empty() {
            bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            bytes.extend_from_slice(part);
            bytes.extend_from_slice(b"\r\n");
        }
        rest = tail;
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_routes_answer() {
        assert_eq!(pattern(18), b"0123456789abcdef01");
        assert_eq!(json(7), r#"{"id":7,"name":"item 7","even":false}"#);
        assert_eq!(sum(b""), "00000000 0");
        assert_eq!(sum(b"123456789"), "cbf43926 9", "the check value of CRC-32");
    }

    #[test]
    fn requests_are_written_as_asked() {
        let text = |exchange: &Exchange| String::from_utf8_lossy(exchange.request()).into_owned();
        let head = Exchange::bytes("h", 64).head().with(&["X: y", "Z: w"]);
        assert_eq!(
            text(&head),
            "HEAD /bytes/64 HTTP/1.1\r\nX: y\r\nZ: w\r\nHost: h\r\n\r\n"
        );
        assert_eq!(head.name(), "HEAD /bytes/64");
        let sum = Exchange::sum("h", b"abc");
        assert_eq!(
            text(&sum),
            "POST /sum HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
        );
        assert_eq!(
            in_chunks(b"abcdefghijkl", &[1]),
            b"1\r\na\r\nb\r\nbcdefghijkl\r\n0\r\n\r\n"
        );
        assert_eq!(in_chunks(b"", &[]), b"0\r\n\r\n");
    }
}
