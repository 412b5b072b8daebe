//! What a kind of request is, for both protocols.

use thiserror::Error;

use super::scan::{is_text_byte, is_token};

/// The methods that the workload and the cases of its contract use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD, whose answers have no body.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
}

impl Method {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// A path with its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path<'a> {
    /// Always the same.
    Fixed(&'a str),
    /// This, and the request's number in decimal digits behind it.
    Numbered(&'a str),
}

impl<'a> Path<'a> {
    /// The part that is always the same.
    #[must_use]
    pub fn text(self) -> &'a str {
        match self {
            Self::Fixed(text) | Self::Numbered(text) => text,
        }
    }
}

/// A kind of request.
#[derive(Debug, Clone, Copy)]
pub struct RequestSpec<'a> {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: Path<'a>,
    /// `name` or `name:port`, for the Host field or `:authority`.
    pub host: &'a str,
    /// The fields behind Host, such as [`BROWSER_FIELDS`]. Those that frame the request are not among them.
    pub fields: &'a [(&'a str, &'a str)],
    /// The body's length, if the request has a body. It holds the request's number: see [`super::NumberedBody`].
    pub body_bytes: Option<usize>,
    /// Whether the request announces that the connection ends with it. HTTP/2 has no such field.
    pub close: bool,
}

/// Why there can be no such request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// A host is visible ASCII.
    #[error("the host `{0}` is empty or holds a space, a control character or a byte beyond ASCII")]
    Host(String),
    /// A path is visible ASCII and begins with a slash.
    #[error(
        "the path does not begin with `/`, or holds a space, a control character or a byte beyond ASCII"
    )]
    Path,
    /// A field's name is a token.
    #[error("`{0}` is no name of a field")]
    FieldName(String),
    /// A field's value is text, without white space at its ends.
    #[error("the value of the field `{0}` holds a control character, or white space at an end")]
    FieldValue(String),
    /// The template writes these fields itself.
    #[error("the field `{0}` frames the request, so it can't be given")]
    FramingField(String),
}

/// The fields that the template writes itself, and those that HTTP/2 has no place for.
const FRAMING_FIELDS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "upgrade",
    "expect",
];

impl RequestSpec<'_> {
    /// Whether the request can be made.
    ///
    /// # Errors
    /// What is wrong with host, path or a field.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if self.host.is_empty() || !is_visible(self.host) {
            return Err(InvalidRequest::Host(self.host.to_owned()));
        }
        let path = self.path.text();
        if !path.starts_with('/') || !is_visible(path) {
            return Err(InvalidRequest::Path);
        }
        for &(name, value) in self.fields {
            if !is_token(name.as_bytes()) {
                return Err(InvalidRequest::FieldName(name.to_owned()));
            }
            if FRAMING_FIELDS
                .iter()
                .any(|framing| framing.eq_ignore_ascii_case(name))
            {
                return Err(InvalidRequest::FramingField(name.to_owned()));
            }
            if !value.bytes().all(is_text_byte) || value.trim_matches([' ', '\t']) != value {
                return Err(InvalidRequest::FieldValue(name.to_owned()));
            }
        }
        Ok(())
    }
}

/// What a browser sends beside Host: with it 12 fields and, in HTTP/1.1, a request of about 700 bytes.
///
/// Only Accept-Encoding differs from what browsers say: a compressed answer would be another test.
pub const BROWSER_FIELDS: [(&str, &str); 11] = [
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    ),
    (
        "Accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    ),
    ("Accept-Language", "en-GB,en;q=0.9,de;q=0.8"),
    ("Accept-Encoding", "identity"),
    (
        "Cookie",
        "session=5f0c2b7e9a8d4c3f8b1e6a7d2c9f0e4b; consent=1; theme=dark; region=eu-central",
    ),
    (
        "Referer",
        "https://www.example.com/products/overview?page=2&sort=price",
    ),
    ("Upgrade-Insecure-Requests", "1"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "same-origin"),
    (
        "Sec-CH-UA",
        "\"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\", \"Google Chrome\";v=\"140\"",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn spec<'a>(host: &'a str, path: &'a str, fields: &'a [(&'a str, &'a str)]) -> RequestSpec<'a> {
        RequestSpec {
            method: Method::Get,
            path: Path::Fixed(path),
            host,
            fields,
            body_bytes: None,
            close: false,
        }
    }

    #[test]
    fn what_would_smuggle_a_request_is_refused() {
        let check = |host, path, fields: &[_]| spec(host, path, fields).check();
        assert_eq!(check("a:1", "/x?y=1", &[("X-A", "b c")]), Ok(()));
        assert!(check("", "/", &[]).is_err());
        assert!(check("a b", "/", &[]).is_err());
        assert_eq!(check("a", "x", &[]), Err(InvalidRequest::Path));
        assert_eq!(check("a", "/ x", &[]), Err(InvalidRequest::Path));
        assert_eq!(check("a", "/é", &[]), Err(InvalidRequest::Path));
        let field = |name, value| check("a", "/", &[(name, value)]);
        assert_eq!(
            field("X A", "b"),
            Err(InvalidRequest::FieldName("X A".into()))
        );
        assert_eq!(
            field("X-A", "b\r\nC: d"),
            Err(InvalidRequest::FieldValue("X-A".into()))
        );
        assert_eq!(
            field("X-A", " b"),
            Err(InvalidRequest::FieldValue("X-A".into()))
        );
        assert_eq!(
            field("content-Length", "1"),
            Err(InvalidRequest::FramingField("content-Length".into()))
        );
    }

    #[test]
    fn the_browsers_fields_can_be_sent() {
        assert_eq!(spec("127.0.0.1:8080", "/", &BROWSER_FIELDS).check(), Ok(()));
    }
}
