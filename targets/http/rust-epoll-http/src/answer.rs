//! Answers: what they say, and how HTTP/1.1 writes it.

use std::io::Write;

use serde::{Serialize, Serializer};

use crate::call::{Call, Resource};
use crate::date::Date;
use crate::output::Output;

/// A status, as HTTP/1.1 writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub &'static str);

#[allow(missing_docs, reason = "the names of RFC 9110")]
impl Status {
    pub const OK: Self = Self("200 OK");
    pub const BAD_REQUEST: Self = Self("400 Bad Request");
    pub const NOT_FOUND: Self = Self("404 Not Found");
    pub const NOT_ALLOWED: Self = Self("405 Method Not Allowed");
    pub const TOO_LARGE: Self = Self("413 Content Too Large");
    pub const HEAD_TOO_LARGE: Self = Self("431 Request Header Fields Too Large");
    pub const NOT_IMPLEMENTED: Self = Self("501 Not Implemented");
    pub const UNAVAILABLE: Self = Self("503 Service Unavailable");
    pub const VERSION: Self = Self("505 HTTP Version Not Supported");

    /// Its three digits.
    pub fn digits(self) -> &'static [u8] {
        &self.0.as_bytes()[..3]
    }
}

/// An answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// These bytes.
    Own(&'a [u8]),
    /// The first so many of the pattern.
    Pattern(usize),
}

impl Body<'_> {
    /// How long it is.
    pub fn length(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Pattern(length) => *length,
        }
    }
}

/// An answer, whatever the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Its status.
    pub status: Status,
    /// `Content-Type`; none for an empty body.
    pub content_type: &'static str,
    /// `Allow`, for a 405.
    pub allow: &'static str,
    /// Its body.
    pub body: Body<'a>,
}

impl Answer<'_> {
    /// An answer that is a status alone.
    pub const fn status(status: Status) -> Self {
        Self { status, content_type: "", allow: "", body: Body::Own(&[]) }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

/// What `/json/K` answers with.
#[derive(Serialize)]
struct Item {
    id: u64,
    #[serde(serialize_with = "item_name")]
    name: u64,
    even: bool,
}

/// Into the answer, without a string of its own.
fn item_name<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("item {id}"))
}

/// The answer to a call. A body that is not there yet is made in `scratch`; `metrics` appends the text that shows the
/// counters.
pub fn answer<'a>(call: Call, scratch: &'a mut Vec<u8>, metrics: impl FnOnce(&mut Vec<u8>)) -> Answer<'a> {
    scratch.clear();
    let good = |content_type, body| Answer { status: Status::OK, content_type, allow: "", body };
    match call {
        Call::Get(Resource::Root | Resource::Health) => good(TEXT, Body::Own(b"ok")),
        Call::Get(Resource::Bytes(count)) => good("application/octet-stream", Body::Pattern(count)),
        Call::Get(Resource::Item(id)) => {
            let item = Item { id, name: id, even: id.is_multiple_of(2) };
            serde_json::to_writer(&mut *scratch, &item).expect("numbers and text");
            good("application/json", Body::Own(scratch))
        }
        Call::Sum(sum, length) => {
            write!(scratch, "{sum:08x} {length}").expect("a Vec takes all");
            good(TEXT, Body::Own(scratch))
        }
        Call::Get(Resource::Metrics) => {
            metrics(scratch);
            good("text/plain; version=0.0.4; charset=utf-8", Body::Own(scratch))
        }
        Call::Get(Resource::Unknown | Resource::Sum) => Answer::status(Status::NOT_FOUND),
        Call::NotAllowed(allow) => Answer { allow, ..Answer::status(Status::NOT_ALLOWED) },
    }
}

/// How HTTP/1.1 ends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// To HEAD: the body stays away.
    pub is_head: bool,
    /// The connection closes behind it.
    pub closes: bool,
}

/// Writes an answer as HTTP/1.1 has it.
pub fn write(output: &mut Output, pattern: &[u8], date: &Date, answer: &Answer<'_>, manner: Manner) {
    output.make(|bytes| {
        bytes.extend_from_slice(b"HTTP/1.1 ");
        bytes.extend_from_slice(answer.status.0.as_bytes());
        for (name, value) in [("\r\ncontent-type: ", answer.content_type), ("\r\nallow: ", answer.allow)] {
            if !value.is_empty() {
                bytes.extend_from_slice(name.as_bytes());
                bytes.extend_from_slice(value.as_bytes());
            }
        }
        bytes.extend_from_slice(b"\r\ncontent-length: ");
        decimal(bytes, answer.body.length());
        bytes.extend_from_slice(b"\r\ndate: ");
        bytes.extend_from_slice(date.text());
        bytes.extend_from_slice(if manner.closes { b"\r\nconnection: close\r\n\r\n" } else { b"\r\n\r\n" });
        if let Body::Own(body) = answer.body
            && !manner.is_head
        {
            bytes.extend_from_slice(body);
        }
    });
    if let Body::Pattern(length) = answer.body
        && !manner.is_head
    {
        output.pattern(pattern, 0, length);
    }
}

/// Appends the digits of a number.
pub fn decimal(bytes: &mut Vec<u8>, mut number: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
        if number == 0 {
            return bytes.extend_from_slice(&digits[at..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Method;

    fn written(call: Call, manner: Manner) -> String {
        let mut output = Output::default();
        let mut scratch = Vec::new();
        let pattern = http_target::routes::pattern();
        let answer = answer(call, &mut scratch, |bytes| bytes.extend_from_slice(b"metrics"));
        write(&mut output, &pattern, &Date::default(), &answer, manner);
        String::from_utf8(output.take(&pattern)).expect("text")
    }

    #[test]
    fn answers_in_full() {
        let manner = Manner { is_head: false, closes: false };
        assert_eq!(
            written(Call::Get(Resource::Item(12)), manner),
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 38\r\n\
             date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n{\"id\":12,\"name\":\"item 12\",\"even\":true}"
        );
        let closing = Manner { is_head: true, closes: true };
        assert_eq!(
            written(Call::Get(Resource::Bytes(70_000)), closing),
            "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: 70000\r\n\
             date: Thu, 01 Jan 1970 00:00:00 GMT\r\nconnection: close\r\n\r\n"
        );
        assert!(written(Call::Get(Resource::Bytes(20)), manner).ends_with("\r\n\r\n0123456789abcdef0123"));
        assert!(written(Call::Sum(0x1F, 3), manner).ends_with("\r\n\r\n0000001f 3"));
        let refused = written(Call::new(Method::Post, Resource::Root), manner);
        assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("\r\nallow: GET, HEAD\r\n"), "{refused}");
    }
}
