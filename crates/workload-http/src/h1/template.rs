//! Requests as bytes, made once for each kind.

use std::sync::Arc;

use super::request::{InvalidRequest, Method, Path, RequestSpec};
use super::scan::decimal_digits;

/// How many hexadecimal digits of a request's number its body begins with.
pub const NUMBER_DIGITS: usize = 16;

/// A body that holds the request's number, so that the answer to another request is told from the right one.
///
/// It begins with the number in 16 lower-case hexadecimal digits; a shorter body has the last of them. The rest is
/// `0123456789abcdef` repeated, the same for all requests and shared by all connections.
#[derive(Debug, Clone)]
pub struct NumberedBody {
    digits: usize,
    rest: Arc<[u8]>,
}

impl NumberedBody {
    /// Bodies of `len` bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let digits = len.min(NUMBER_DIGITS);
        Self {
            digits,
            rest: b"0123456789abcdef"
                .iter()
                .copied()
                .cycle()
                .take(len - digits)
                .collect(),
        }
    }

    /// The length of each body.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a length, not a collection")]
    pub fn len(&self) -> usize {
        self.digits + self.rest.len()
    }

    /// What differs between requests: the beginning.
    #[must_use]
    pub fn number(&self, number: u64) -> ([u8; NUMBER_DIGITS], usize) {
        let mut digits = [0; NUMBER_DIGITS];
        for (i, digit) in digits[..self.digits].iter_mut().enumerate() {
            let nibble = number >> (4 * (self.digits - 1 - i)) & 0xF;
            *digit = b"0123456789abcdef"[nibble as usize];
        }
        (digits, self.digits)
    }

    /// What all requests share: the bytes behind the number.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        &self.rest
    }

    /// A whole body.
    #[must_use]
    pub fn to_vec(&self, number: u64) -> Vec<u8> {
        let (digits, len) = self.number(number);
        [&digits[..len], &self.rest].concat()
    }
}

/// The bytes of a kind of request.
#[derive(Debug, Clone)]
pub struct Template {
    /// Everything, or what stands before the number in the path.
    head: Box<[u8]>,
    /// What stands behind the number in the path.
    tail: Option<Box<[u8]>>,
    body: Option<NumberedBody>,
    is_head: bool,
}

impl Template {
    /// The bytes of requests of this kind.
    ///
    /// # Errors
    /// There can be no such request.
    pub fn new(spec: &RequestSpec<'_>) -> Result<Self, InvalidRequest> {
        spec.check()?;
        let body = spec.body_bytes.map(NumberedBody::new);
        let start = format!("{} {}", spec.method.name(), spec.path.text());
        let mut tail = format!(" HTTP/1.1\r\nHost: {}\r\n", spec.host);
        let mut add = |name: &str, value: &str| {
            tail.extend([name, ": ", value, "\r\n"]);
        };
        for (name, value) in spec.fields {
            add(name, value);
        }
        if let Some(body) = &body {
            add("Content-Length", &body.len().to_string());
        }
        if spec.close {
            add("Connection", "close");
        }
        tail.push_str("\r\n");
        let (head, tail) = match spec.path {
            Path::Fixed(_) => (start + &tail, None),
            Path::Numbered(_) => (start, Some(tail.into_bytes().into_boxed_slice())),
        };
        Ok(Self {
            head: head.into_bytes().into_boxed_slice(),
            tail,
            body,
            is_head: spec.method == Method::Head,
        })
    }

    /// Whether its answers have no body: what [`super::AnswerReader::ask`] wants to know.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// The whole request, if all requests of this kind are the same: nothing need be copied.
    #[must_use]
    pub fn fixed(&self) -> Option<&[u8]> {
        let same = self.tail.is_none() && self.body.as_ref().is_none_or(|body| body.digits == 0);
        same.then_some(&self.head)
    }

    /// Appends request `number` without [`Self::shared_body`], which must follow.
    pub fn append(&self, number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        if let Some(tail) = &self.tail {
            out.extend_from_slice(decimal_digits(number, &mut [0; 20]));
            out.extend_from_slice(tail);
        }
        if let Some(body) = &self.body {
            let (digits, len) = body.number(number);
            out.extend_from_slice(&digits[..len]);
        }
    }

    /// The end of each request's body, for the second slice of a vectored write. Empty if there is none.
    #[must_use]
    pub fn shared_body(&self) -> &[u8] {
        self.body.as_ref().map_or(&[], NumberedBody::rest)
    }

    /// The body, if requests have one.
    #[must_use]
    pub fn body(&self) -> Option<&NumberedBody> {
        self.body.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::BROWSER_FIELDS;

    const GET: RequestSpec<'_> = RequestSpec {
        method: Method::Get,
        path: Path::Fixed("/"),
        host: "127.0.0.1:80",
        fields: &[],
        body_bytes: None,
        close: false,
    };

    fn bytes(spec: &RequestSpec<'_>, number: u64) -> Vec<u8> {
        let template = Template::new(spec).unwrap();
        let mut out = Vec::new();
        template.append(number, &mut out);
        out.extend_from_slice(template.shared_body());
        if let Some(fixed) = template.fixed() {
            assert_eq!(fixed, out);
        }
        out
    }

    #[test]
    fn a_minimal_request_has_a_host_and_nothing_else() {
        assert_eq!(
            bytes(&GET, 7),
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"
        );
        assert!(Template::new(&GET).unwrap().fixed().is_some());
    }

    #[test]
    fn a_browsers_request_has_twelve_fields_and_700_bytes() {
        let bytes = bytes(
            &RequestSpec {
                fields: &BROWSER_FIELDS,
                ..GET
            },
            7,
        );
        let fields = String::from_utf8(bytes.clone())
            .unwrap()
            .matches(": ")
            .count();
        assert_eq!(fields, 12);
        assert!((650..=750).contains(&bytes.len()), "{} bytes", bytes.len());
    }

    #[test]
    fn the_number_is_in_the_path() {
        let spec = RequestSpec {
            path: Path::Numbered("/json/"),
            close: true,
            ..GET
        };
        assert_eq!(
            bytes(&spec, 1234),
            b"GET /json/1234 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn the_number_is_in_the_body() {
        let spec = |len| RequestSpec {
            method: Method::Post,
            path: Path::Fixed("/sum"),
            body_bytes: Some(len),
            ..GET
        };
        let expected = |len: usize, body: &str| {
            format!(
                "POST /sum HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Length: {len}\r\n\r\n{body}"
            )
        };
        let number = 0xABC0_0000_0000_1234;
        assert_eq!(
            bytes(&spec(20), number),
            expected(20, "abc00000000012340123").into_bytes()
        );
        assert_eq!(bytes(&spec(3), number), expected(3, "234").into_bytes());
        assert_eq!(bytes(&spec(0), number), expected(0, "").into_bytes());
        assert_eq!(
            NumberedBody::new(20).to_vec(number),
            b"abc00000000012340123"
        );
    }
}
