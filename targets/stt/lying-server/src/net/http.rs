//! The HTTP surface (contract, section 2), as far as a load trial needs it: one request per connection, no body.

use tungstenite::handshake::server::create_response;
use tungstenite::http::{HeaderName, HeaderValue, Request, StatusCode};

/// The longest request head that is read.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// Its head has not come completely.
    MoreBytes,
    /// `GET /health`.
    Health,
    /// `GET /metrics`.
    Metrics,
    /// A valid upgrade on `/ws/stt`: the 101 that answers it, and where in the bytes the WebSocket begins.
    Session {
        /// The response's head.
        response: Vec<u8>,
        /// Length of the request's head.
        head_bytes: usize,
    },
    /// Anything else: this status answers it.
    Refused(StatusCode),
}

/// Reads a request's head.
#[must_use]
pub fn read_request(bytes: &[u8]) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let head_bytes = match head.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) if head_bytes <= HEAD_BYTES_MAX => head_bytes,
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Asked::MoreBytes,
        Ok(_) => return Asked::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        Err(_) => return Asked::Refused(StatusCode::BAD_REQUEST),
    };
    match (head.method, head.path) {
        (Some("GET"), Some("/health")) => Asked::Health,
        (Some("GET"), Some("/metrics")) => Asked::Metrics,
        (Some("GET"), Some("/ws/stt")) => match upgrade(&head) {
            Some(response) => Asked::Session {
                response,
                head_bytes,
            },
            None => Asked::Refused(StatusCode::UPGRADE_REQUIRED),
        },
        _ => Asked::Refused(StatusCode::NOT_FOUND),
    }
}

/// A whole response with a text body, after which the connection closes.
#[must_use]
pub fn respond(status: StatusCode, body: &str) -> Vec<u8> {
    let upgrade = if status == StatusCode::UPGRADE_REQUIRED {
        // RFC 9110, 15.5.22: a 426 must say what to upgrade to.
        "upgrade: websocket\r\n"
    } else {
        ""
    };
    let (code, bytes) = (status.as_u16(), body.len());
    let reason = status.canonical_reason().unwrap_or("");
    format!(
        "HTTP/1.1 {code} {reason}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {bytes}\r\n{upgrade}connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The 101 for a valid upgrade; `None` when it is none.
fn upgrade(head: &httparse::Request<'_, '_>) -> Option<Vec<u8>> {
    let mut request = Request::builder().uri(head.path?).body(()).ok()?;
    for header in head.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(header.value).ok()?;
        request.headers_mut().append(name, value);
    }
    let response = create_response(&request).ok()?;
    let mut bytes = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
    for (name, value) in response.headers() {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, section 1.3.
    const UPGRADE: &str = "GET /ws/stt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

    #[test]
    fn a_valid_upgrade_gets_the_right_accept_key() {
        let bytes = [UPGRADE.as_bytes(), b"\x81\x80"].concat();
        let Asked::Session {
            response,
            head_bytes,
        } = read_request(&bytes)
        else {
            panic!("not an upgrade");
        };
        assert_eq!(head_bytes, UPGRADE.len());
        let text = String::from_utf8(response).unwrap().to_lowercase();
        assert!(text.starts_with("http/1.1 101 "));
        assert!(text.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"));
        assert!(text.ends_with("\r\n\r\n"));
    }

    #[test]
    fn an_incomplete_head_waits() {
        for length in 0..UPGRADE.len() {
            assert_eq!(
                read_request(&UPGRADE.as_bytes()[..length]),
                Asked::MoreBytes
            );
        }
    }

    #[test]
    fn everything_else_has_its_status() {
        let of = |head: &str| read_request(format!("{head} HTTP/1.1\r\n\r\n").as_bytes());
        assert_eq!(of("GET /health"), Asked::Health);
        assert_eq!(of("GET /metrics"), Asked::Metrics);
        assert_eq!(
            of("GET /ws/stt"),
            Asked::Refused(StatusCode::UPGRADE_REQUIRED)
        );
        assert_eq!(of("GET /"), Asked::Refused(StatusCode::NOT_FOUND));
        assert_eq!(of("POST /health"), Asked::Refused(StatusCode::NOT_FOUND));
        assert_eq!(
            read_request(b"\x00\x01\r\n\r\n"),
            Asked::Refused(StatusCode::BAD_REQUEST)
        );
        let endless = vec![b'a'; HEAD_BYTES_MAX + 1];
        assert!(matches!(read_request(&endless), Asked::Refused(_)));
    }
}
