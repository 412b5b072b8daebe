//! HTTP/1.1 (RFC 9112) without I/O: bytes go in, requests come out.
//!
//! Strict where two readers of one stream could disagree about where a request ends: then it is refused, and the
//! connection closes.

pub mod chunks;

use crate::answer::{Manner, Status};
use crate::call::{Call, Method, Resource, Summing};
use chunks::Chunks;

/// Longest head that is read.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most header fields that are read.
const FIELDS_MAX: usize = 100;

/// What is sent when a client waits to be asked for its body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A request that was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub call: Call,
    /// How it wants its answer.
    pub manner: Manner,
}

/// What reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is no more to be read. Left in the input is at most the beginning of a head.
    Wait,
    /// The client wants to be told to send its body.
    Continue,
    /// A request.
    Request(Request),
    /// No request: answer with this and close.
    Refuse(Status),
}

/// One connection's reader.
#[derive(Debug, Default)]
pub struct Intake(Reading);

#[derive(Debug, Default)]
enum Reading {
    #[default]
    Head,
    Body(Body),
}

#[derive(Debug)]
struct Body {
    framing: Framing,
    summing: Summing,
    manner: Manner,
}

#[derive(Debug, Clone)]
enum Framing {
    /// So many bytes are still to come.
    Counted(usize),
    Chunked(Chunks),
}

/// What a head says of its body.
#[derive(Debug, Default, Clone, Copy)]
struct Fields {
    hosts: usize,
    length: Option<usize>,
    is_chunked: bool,
    closes: bool,
    expects: bool,
}

impl Intake {
    /// Whether no request has been begun, as far as what was taken from the input tells.
    pub fn is_idle(&self) -> bool {
        matches!(self.0, Reading::Head)
    }

    /// Reads on in `input`, up to the next event.
    pub fn step(&mut self, input: &mut &[u8], body_bytes_max: usize) -> Step {
        loop {
            match &mut self.0 {
                Reading::Head => match read_head(input, body_bytes_max) {
                    Ok(Head::Partial) => return Step::Wait,
                    Ok(Head::Whole(request)) => return Step::Request(request),
                    Ok(Head::WithBody(body, expects)) => {
                        self.0 = Reading::Body(body);
                        if expects && input.is_empty() {
                            return Step::Continue;
                        }
                    }
                    Err(status) => return Step::Refuse(status),
                },
                Reading::Body(body) => match body.read(input) {
                    Ok(false) => return Step::Wait,
                    Ok(true) => {
                        let Reading::Body(body) = std::mem::take(&mut self.0) else { return Step::Wait };
                        return Step::Request(Request { call: body.summing.finish(), manner: body.manner });
                    }
                    Err(status) => return Step::Refuse(status),
                },
            }
        }
    }
}

impl Body {
    /// Reads on; whether the body has ended.
    fn read(&mut self, input: &mut &[u8]) -> Result<bool, Status> {
        match &mut self.framing {
            Framing::Counted(left) => {
                let (piece, rest) = input.split_at((*left).min(input.len()));
                *input = rest;
                *left -= piece.len();
                self.summing.update(piece).map_err(|_| Status::TOO_LARGE)?;
                Ok(*left == 0)
            }
            Framing::Chunked(chunks) => {
                while let Some(piece) = chunks.next(input).map_err(|_| Status::BAD_REQUEST)? {
                    self.summing.update(piece).map_err(|_| Status::TOO_LARGE)?;
                }
                Ok(chunks.has_ended())
            }
        }
    }
}

enum Head {
    Partial,
    Whole(Request),
    WithBody(Body, bool),
}

fn read_head(input: &mut &[u8], body_bytes_max: usize) -> Result<Head, Status> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let head_bytes = match head.parse(input) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES_MAX => length,
        Ok(httparse::Status::Partial) if input.len() < HEAD_BYTES_MAX => return Ok(Head::Partial),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Status::HEAD_TOO_LARGE),
        Err(httparse::Error::Version) => return Err(Status::VERSION),
        Err(_) => return Err(Status::BAD_REQUEST),
    };
    let (Some(method), Some(target), Some(minor)) = (head.method, head.path, head.version) else {
        return Err(Status::BAD_REQUEST);
    };
    let is_1_1 = minor == 1;
    let fields = read_fields(head.headers, is_1_1)?;
    let method = Method::read(method.as_bytes());
    let call = Call::new(method, Resource::read(target.as_bytes()));
    let manner = Manner { is_head: method == Method::Head, closes: fields.closes || !is_1_1 };
    *input = &input[head_bytes..];
    let framing = match fields.length {
        _ if fields.is_chunked => Framing::Chunked(Chunks::default()),
        Some(length) if length > body_bytes_max => return Err(Status::TOO_LARGE),
        Some(length @ 1..) => Framing::Counted(length),
        _ => {
            let call = if call == Call::Sum(0, 0) { Summing::new(call, 0).finish() } else { call };
            return Ok(Head::Whole(Request { call, manner }));
        }
    };
    let body = Body { framing, summing: Summing::new(call, body_bytes_max), manner };
    Ok(Head::WithBody(body, fields.expects && is_1_1))
}

fn read_fields(fields: &[httparse::Header<'_>], is_1_1: bool) -> Result<Fields, Status> {
    let mut seen = Fields::default();
    for field in fields {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        // Most fields are none of these, and their length says so.
        match field.name.len() {
            4 if is("host") => seen.hosts += 1,
            6 if is("expect") => seen.expects = field.value.eq_ignore_ascii_case(b"100-continue"),
            10 if is("connection") => seen.closes |= lists(field.value, b"close"),
            14 if is("content-length") => {
                if seen.length.is_some() {
                    return Err(Status::BAD_REQUEST);
                }
                seen.length = Some(length(field.value).ok_or(Status::BAD_REQUEST)?);
            }
            17 if is("transfer-encoding") => {
                if seen.is_chunked || !is_1_1 {
                    return Err(Status::BAD_REQUEST);
                }
                if !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Status::NOT_IMPLEMENTED);
                }
                seen.is_chunked = true;
            }
            _ => {}
        }
    }
    let hosts_are_good = seen.hosts == 1 || (seen.hosts == 0 && !is_1_1);
    if !hosts_are_good || (seen.is_chunked && seen.length.is_some()) {
        return Err(Status::BAD_REQUEST);
    }
    Ok(seen)
}

/// A length: digits alone.
fn length(value: &[u8]) -> Option<usize> {
    let digits = value.trim_ascii();
    let are_digits = !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
    are_digits.then(|| digits.iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0')))
}

/// Whether a field has `item` in its list.
fn lists(value: &[u8], item: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|value| value.trim_ascii().eq_ignore_ascii_case(item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The steps that some bytes come to, given `size` at a time.
    fn steps(bytes: &[u8], size: usize) -> Vec<Step> {
        let (mut intake, mut held, mut steps) = (Intake::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            held.extend_from_slice(piece);
            let mut input = held.as_slice();
            loop {
                match intake.step(&mut input, 1000) {
                    Step::Wait => break,
                    Step::Refuse(status) => {
                        steps.push(Step::Refuse(status));
                        return steps;
                    }
                    step => steps.push(step),
                }
            }
            held = input.to_vec();
        }
        steps
    }

    fn request(call: Call) -> Step {
        Step::Request(Request { call, manner: Manner { is_head: false, closes: false } })
    }

    #[test]
    fn requests_in_a_row() {
        let bytes = b"GET /bytes/3?q HTTP/1.1\r\nHost: x\r\n\r\n\
            POST /sum HTTP/1.1\r\nhost: x\r\nContent-Length: 9\r\n\r\n123456789\
            POST /sum HTTP/1.1\r\nHOST: x\r\nTransfer-Encoding: Chunked\r\n\r\n3;a\r\n123\r\n6\r\n456789\r\n0\r\nT: u\r\n\r\n\
            POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\
            HEAD / HTTP/1.1\r\nHost: x\r\nConnection: a, Close\r\n\r\n";
        let expected = [
            request(Call::Get(Resource::Bytes(3))),
            request(Call::Sum(0xCBF4_3926, 9)),
            request(Call::Sum(0xCBF4_3926, 9)),
            request(Call::NotAllowed("GET, HEAD")),
            Step::Request(Request { call: Call::Get(Resource::Root), manner: Manner { is_head: true, closes: true } }),
        ];
        for size in 1..=bytes.len() {
            assert_eq!(steps(bytes, size), expected, "{size} at a time");
        }
    }

    #[test]
    fn the_client_is_told_to_go_on_if_it_waits() {
        let head = "POST /sum HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(steps(head.as_bytes(), 999), [Step::Continue]);
        assert_eq!(steps(format!("{head}a").as_bytes(), 999), [request(Call::Sum(0xE8B7_BE43, 1))]);
    }

    #[test]
    fn what_is_refused() {
        let sum = |fields: &str| format!("POST /sum HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\nhello");
        for (bytes, status) in [
            (sum("Content-Length: 5\r\nTransfer-Encoding: chunked"), Status::BAD_REQUEST),
            (sum("Content-Length: 5\r\nContent-Length: 5"), Status::BAD_REQUEST),
            (sum("Content-Length: +5"), Status::BAD_REQUEST),
            (sum("Content-Length: 5, 5"), Status::BAD_REQUEST),
            (sum("Content-Length:"), Status::BAD_REQUEST),
            (sum("Content-Length: 1001"), Status::TOO_LARGE),
            (sum("Content-Length: 99999999999999999999999"), Status::BAD_REQUEST),
            (sum("Transfer-Encoding: gzip, chunked"), Status::NOT_IMPLEMENTED),
            (sum("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), Status::BAD_REQUEST),
            (sum("Host: y"), Status::BAD_REQUEST),
            (sum("X : y"), Status::BAD_REQUEST),
            ("GET / HTTP/1.1\r\n\r\n".into(), Status::BAD_REQUEST),
            ("GET / HTTP/3.7\r\nHost: x\r\n\r\n".into(), Status::VERSION),
            (format!("GET / HTTP/1.1\r\n{}", "X: y\r\n".repeat(101)), Status::HEAD_TOO_LARGE),
            (format!("GET /{}", "x".repeat(HEAD_BYTES_MAX)), Status::HEAD_TOO_LARGE),
        ] {
            assert_eq!(steps(bytes.as_bytes(), usize::MAX), [Step::Refuse(status)], "{bytes:.80}");
        }
        assert_eq!(steps(b"GET / HTTP/1.0\r\n\r\n", 999).len(), 1);
    }

    proptest! {
        #[test]
        fn no_input_is_too_strange(bytes: Vec<u8>, size in 1..50_usize) {
            let _ = steps(&bytes, size);
            let _ = steps(&[&b"POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"[..], &bytes].concat(), size);
        }
    }
}
