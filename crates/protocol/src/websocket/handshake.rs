//! The opening handshake, from the client's side (RFC 6455, sections 4.1 and 4.2.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plimsoll_core::secret::redacted_url;
use sha1::{Digest as _, Sha1};
use thiserror::Error;

/// The longest head of an answer that is read.
pub const HEAD_MAX_BYTES: usize = 16 * 1024;
/// The most header fields that an answer may have.
pub const HEADERS_MAX: usize = 64;

/// Appended to the key before it is hashed (RFC 6455, section 1.3).
const ACCEPT_SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Header fields that [`upgrade_request`] writes itself, or that would change what was asked for.
const OWN_HEADERS: [&str; 9] = [
    "host",
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "content-length",
    "transfer-encoding",
];

/// Why an upgrade request cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// The host is empty or has a character that a Host field may not have.
    #[error("host {0:?} is not a host: use NAME or NAME:PORT, without spaces")]
    Host(String),
    /// The path does not begin with a slash or has a character that must be percent-encoded.
    #[error(
        "path {0:?} is not a request path: begin it with / and percent-encode spaces and controls"
    )]
    Path(String),
    /// A header's name is not a token, or its value has a control character.
    #[error("header {0:?} is malformed: a name is a token, a value has no line breaks")]
    Header(String),
    /// A header that the handshake itself writes.
    #[error("header {0:?} belongs to the handshake: leave it out")]
    OwnHeader(String),
}

/// The text form of a key of 16 random bytes, as sent in `Sec-WebSocket-Key`.
#[must_use]
pub fn key_text(key: [u8; 16]) -> String {
    BASE64.encode(key)
}

/// The `Sec-WebSocket-Accept` that a server must answer to a key's text form.
#[must_use]
pub fn accept_for(key_text: &str) -> String {
    let digest = Sha1::new()
        .chain_update(key_text)
        .chain_update(ACCEPT_SALT)
        .finalize();
    BASE64.encode(digest)
}

/// The bytes of an upgrade request: HTTP/1.1, version 13, no extension, no subprotocol.
///
/// `host` is `name` or `name:port`; `key` should be random, for it lets the answer be told from a cached one.
///
/// # Errors
/// A part that would break the request's syntax, or a header that the handshake itself writes.
pub fn upgrade_request(
    host: &str,
    path: &str,
    key: [u8; 16],
    extra_headers: &[(&str, &str)],
) -> Result<Vec<u8>, InvalidRequest> {
    if host.is_empty() || !host.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(InvalidRequest::Host(host.to_owned()));
    }
    if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
        return Err(InvalidRequest::Path(redacted_url(path)));
    }
    let mut request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n",
        key = key_text(key)
    );
    for (name, value) in extra_headers {
        check_header(name, value)?;
        request.push_str(name);
        request.push_str(": ");
        request.push_str(value);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    Ok(request.into_bytes())
}

fn check_header(name: &str, value: &str) -> Result<(), InvalidRequest> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let named_well = !name.is_empty() && name.bytes().all(token);
    let valued_well = value
        .bytes()
        .all(|b| b == b'\t' || (b >= b' ' && b != 0x7F));
    if !named_well || !valued_well {
        return Err(InvalidRequest::Header(name.to_owned()));
    }
    if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(InvalidRequest::OwnHeader(name.to_owned()));
    }
    Ok(())
}

/// How a handshake ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The server upgraded; WebSocket frames begin in the bytes fed last.
    Upgraded {
        /// Where in the bytes fed last the first byte after the head is.
        leftover_offset: usize,
    },
    /// The server answered with another status.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The header fields in their order; values that are not UTF-8 have replacement characters.
        headers: Vec<(String, String)>,
        /// Where in the bytes fed last the body begins.
        body_offset: usize,
    },
}

/// Why an answer is neither a correct upgrade nor a correct refusal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The head is longer than [`HEAD_MAX_BYTES`] or has more than [`HEADERS_MAX`] fields.
    #[error("the answer's head is over {HEAD_MAX_BYTES} bytes or {HEADERS_MAX} fields")]
    HeadTooLarge,
    /// The head is not HTTP/1.1.
    #[error("the answer is not HTTP/1.1: {0}")]
    NotHttp(String),
    /// A 101 without a field that the RFC demands, or with it twice.
    #[error("the 101 answer has {count} {name} fields, not one")]
    FieldCount {
        /// The field.
        name: &'static str,
        /// How often it was seen.
        count: usize,
    },
    /// A 101 whose field has a value other than the RFC demands.
    #[error("the 101 answer says {name}: {seen}, not {expected}")]
    FieldValue {
        /// The field.
        name: &'static str,
        /// What the RFC demands.
        expected: String,
        /// What the server sent.
        seen: String,
    },
    /// A 101 that names an extension or a subprotocol, though none was offered.
    #[error("the 101 answer names a {name} that was not asked for: {seen}")]
    UnaskedFor {
        /// The field.
        name: &'static str,
        /// What the server sent.
        seen: String,
    },
}

/// The incremental parser of the answer to one upgrade request.
///
/// Feed it what the socket gives until it returns an outcome or an error; then drop it.
#[derive(Debug, Clone)]
pub struct Handshake {
    expected_accept: String,
    head: Vec<u8>,
}

impl Handshake {
    /// A parser for the answer to the request made with `key`.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            expected_accept: accept_for(&key_text(key)),
            head: Vec::new(),
        }
    }

    /// The memory that the answer so far takes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.head.capacity()
    }

    /// Takes the next bytes. `None` means that the head is not complete yet.
    ///
    /// Informational answers (100, 103 …) before the real one are skipped, as HTTP demands.
    ///
    /// # Errors
    /// The answer is too large, is not HTTP/1.1, or is a 101 that breaks the handshake's rules.
    pub fn feed(&mut self, input: &[u8]) -> Result<Option<Outcome>, HandshakeError> {
        // No more than the limit is kept; whatever lies beyond it belongs to the caller anyway.
        let room = HEAD_MAX_BYTES - self.head.len();
        let taken = room.min(input.len());
        self.head.extend_from_slice(&input[..taken]);
        loop {
            let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut response = httparse::Response::new(&mut fields);
            let head_len = match response.parse(&self.head) {
                Ok(httparse::Status::Complete(head_len)) => head_len,
                Ok(httparse::Status::Partial) if self.head.len() == HEAD_MAX_BYTES => {
                    return Err(HandshakeError::HeadTooLarge);
                }
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(httparse::Error::TooManyHeaders) => return Err(HandshakeError::HeadTooLarge),
                Err(error) => return Err(HandshakeError::NotHttp(error.to_string())),
            };
            if response.version != Some(1) {
                return Err(HandshakeError::NotHttp("it is HTTP/1.0".to_owned()));
            }
            let status = response.code.unwrap_or(0);
            if matches!(status, 100 | 102..=199) {
                self.head.drain(..head_len);
                continue;
            }
            // The head always ends inside this input: an earlier end would have been seen earlier.
            let offset = taken - (self.head.len() - head_len);
            return if status == 101 {
                check_upgrade(response.headers, &self.expected_accept)?;
                Ok(Some(Outcome::Upgraded {
                    leftover_offset: offset,
                }))
            } else {
                Ok(Some(Outcome::Refused {
                    status,
                    headers: owned(response.headers),
                    body_offset: offset,
                }))
            };
        }
    }
}

/// Checks the fields of a 101 (RFC 6455, section 4.1, the client's checks of the server's answer).
fn check_upgrade(
    fields: &[httparse::Header<'_>],
    expected_accept: &str,
) -> Result<(), HandshakeError> {
    let upgrade = the_one(fields, "Upgrade")?;
    if !upgrade.eq_ignore_ascii_case("websocket") {
        return Err(wrong("Upgrade", "websocket", upgrade));
    }
    // Connection is a list, and may be spread over several fields.
    let connection: Vec<String> = all(fields, "Connection").collect();
    let names_upgrade = connection
        .iter()
        .flat_map(|value| value.split(','))
        .any(|option| option.trim().eq_ignore_ascii_case("upgrade"));
    if !names_upgrade {
        return Err(wrong("Connection", "Upgrade", connection.join(", ")));
    }
    let accept = the_one(fields, "Sec-WebSocket-Accept")?;
    if accept != expected_accept {
        return Err(wrong("Sec-WebSocket-Accept", expected_accept, accept));
    }
    for name in ["Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"] {
        if let Some(seen) = all(fields, name).next() {
            return Err(HandshakeError::UnaskedFor { name, seen });
        }
    }
    Ok(())
}

fn wrong(name: &'static str, expected: impl Into<String>, seen: String) -> HandshakeError {
    HandshakeError::FieldValue {
        name,
        expected: expected.into(),
        seen,
    }
}

fn all<'a>(
    fields: &'a [httparse::Header<'_>],
    name: &'static str,
) -> impl Iterator<Item = String> + 'a {
    fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .map(|field| String::from_utf8_lossy(field.value).trim().to_owned())
}

fn the_one(fields: &[httparse::Header<'_>], name: &'static str) -> Result<String, HandshakeError> {
    let mut values: Vec<String> = all(fields, name).collect();
    match (values.len(), values.pop()) {
        (1, Some(value)) => Ok(value),
        (count, _) => Err(HandshakeError::FieldCount { name, count }),
    }
}

fn owned(fields: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|field| {
            (
                field.name.to_owned(),
                String::from_utf8_lossy(field.value).into_owned(),
            )
        })
        .collect()
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
