//! The HTTP/1.1 surface, without I/O: what a request asks for, and the answers.

use sha1_smol::Sha1;
use subtle::ConstantTimeEq;

/// Longest head that is read.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most header fields that are read.
const FIELDS_MAX: usize = 64;

/// What makes the digest of a key that of a WebSocket server (RFC 6455, section 1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What a request wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// `GET /health`.
    Health,
    /// `GET /metrics`.
    Metrics,
    /// `GET /ws/stt` with a valid upgrade and, where one is demanded, the token: the text for `Sec-WebSocket-Accept`.
    Session([u8; 28]),
    /// The same without the token.
    Unauthorized,
    /// `GET /ws/stt` without a valid upgrade.
    NoUpgrade,
    /// Anything else.
    Unknown,
}

/// A request's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it wants.
    pub wish: Wish,
    /// Whether another may follow on the connection.
    pub keeps_alive: bool,
    /// Length of the head.
    pub head_bytes: usize,
}

/// Not HTTP/1.1, or too long.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads a head; `None` if its end has not come.
///
/// # Errors
/// When no end that may come makes it a request.
pub fn parse(bytes: &[u8], token: Option<&str>) -> Result<Option<Request>, Malformed> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let head_bytes = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        _ => return Err(Malformed),
    };
    let is_new = head.version == Some(1);
    let path = head.path.unwrap_or("").split('?').next();
    let wish = match (head.method, path) {
        (Some("GET"), Some("/health")) => Wish::Health,
        (Some("GET"), Some("/metrics")) => Wish::Metrics,
        (Some("GET"), Some("/ws/stt")) => session(&head, token),
        _ => Wish::Unknown,
    };
    // A body would have to be read past; a client that sends one gets its answer and a new connection.
    let has_body = field(&head, "content-length").is_some_and(|length| length != b"0")
        || field(&head, "transfer-encoding").is_some();
    let keeps_alive = is_new && !has_body && !lists(&head, "connection", "close");
    Ok(Some(Request { wish, keeps_alive, head_bytes }))
}

fn session(head: &httparse::Request<'_, '_>, token: Option<&str>) -> Wish {
    let is_upgrade = head.version == Some(1)
        && lists(head, "connection", "upgrade")
        && lists(head, "upgrade", "websocket")
        && field(head, "sec-websocket-version") == Some(b"13");
    match field(head, "sec-websocket-key") {
        Some(key) if is_upgrade && is_key(key) => match token {
            Some(token) if !bears(field(head, "authorization"), token) => Wish::Unauthorized,
            _ => Wish::Session(accept(key)),
        },
        _ => Wish::NoUpgrade,
    }
}

fn field<'a>(head: &httparse::Request<'_, 'a>, name: &str) -> Option<&'a [u8]> {
    let field = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    Some(field.value.trim_ascii())
}

/// Whether a field, which may occur several times, has `item` in its list.
fn lists(head: &httparse::Request<'_, '_>, name: &str, item: &str) -> bool {
    head.headers
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case(name))
        .flat_map(|field| field.value.split(|byte| *byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(item.as_bytes()))
}

/// Whether it is the Base64 of 16 bytes.
fn is_key(key: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(is_digit)
}

/// Whether `authorization` is `Bearer <token>`, in a time that does not tell how much of the token is right.
fn bears(authorization: Option<&[u8]>, token: &str) -> bool {
    const SCHEME: &[u8] = b"Bearer ";
    authorization.and_then(|value| value.split_at_checked(SCHEME.len())).is_some_and(|(scheme, given)| {
        // The name of the scheme is no secret, and its case does not matter.
        scheme.eq_ignore_ascii_case(SCHEME) && bool::from(given.ct_eq(token.as_bytes()))
    })
}

fn accept(key: &[u8]) -> [u8; 28] {
    let mut digest = Sha1::new();
    digest.update(key);
    digest.update(WEBSOCKET_GUID);
    base64(digest.digest().bytes())
}

/// Base64 of 20 bytes: six groups of three bytes and one of two.
fn base64(bytes: [u8; 20]) -> [u8; 28] {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = [b'='; 28];
    for (group, digits) in bytes.chunks(3).zip(text.chunks_mut(4)) {
        let bits =
            group.iter().enumerate().fold(0_u32, |bits, (index, byte)| bits | u32::from(*byte) << (16 - 8 * index));
        for (index, digit) in digits.iter_mut().enumerate().take(group.len() + 1) {
            *digit = DIGITS[(bits >> (18 - 6 * index) & 63) as usize];
        }
    }
    text
}

/// Appends an answer with a whole body; `fields` are further header lines, each with its end.
pub fn respond(bytes: &mut Vec<u8>, status: &str, fields: &str, body: &str, keeps_alive: bool) {
    let connection = if keeps_alive { "" } else { "connection: close\r\n" };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{fields}{connection}content-length: {length}\r\n\r\n");
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(body.as_bytes());
}

/// Appends the answer that makes the connection a WebSocket.
pub fn switch(bytes: &mut Vec<u8>, accept: &[u8; 28]) {
    bytes.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ",
    );
    bytes.extend_from_slice(accept);
    bytes.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UPGRADE: &str = "GET /ws/stt HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    fn wish(head: &str) -> Wish {
        wish_with(head, None)
    }

    fn wish_with(head: &str, token: Option<&str>) -> Wish {
        parse(format!("{head}\r\n").as_bytes(), token).expect("a request").expect("a whole one").wish
    }

    #[test]
    fn the_handshake_of_the_rfc() {
        // RFC 6455, section 1.3.
        assert_eq!(wish(UPGRADE), Wish::Session(*b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    }

    #[test]
    fn wishes() {
        assert_eq!(wish("GET /health HTTP/1.1\r\n"), Wish::Health);
        assert_eq!(wish("GET /metrics?x=1 HTTP/1.1\r\n"), Wish::Metrics);
        assert_eq!(wish("GET /ws/stt HTTP/1.1\r\n"), Wish::NoUpgrade);
        assert_eq!(wish(&UPGRADE.replace("13", "8")), Wish::NoUpgrade);
        assert_eq!(wish(&UPGRADE.replace("ZQ==", "ZQ")), Wish::NoUpgrade);
        assert_eq!(wish(&UPGRADE.replace("1.1", "1.0")), Wish::NoUpgrade);
        for unknown in ["GET / HTTP/1.1", "POST /health HTTP/1.1", "GET /ws/stt/more HTTP/1.1", "HEAD /health HTTP/1.1"]
        {
            assert_eq!(wish(&format!("{unknown}\r\n")), Wish::Unknown, "{unknown}");
        }
    }

    #[test]
    fn tokens() {
        let token = Some("secret");
        assert_eq!(wish_with(UPGRADE, token), Wish::Unauthorized);
        for (authorization, is_good) in [
            ("Bearer secret", true),
            ("bearer secret", true),
            ("Bearer secre", false),
            ("Bearer secrets", false),
            ("Bearer  secret", false),
            ("Basic secret", false),
            ("secret", false),
            ("Bearer", false),
        ] {
            let seen = wish_with(&format!("{UPGRADE}Authorization: {authorization}\r\n"), token);
            assert_eq!(matches!(seen, Wish::Session(_)), is_good, "{authorization}");
            assert_eq!(seen == Wish::Unauthorized, !is_good, "{authorization}");
        }
    }

    #[test]
    fn connections_are_kept_unless_they_cannot_be() {
        let kept = |head: &str| parse(head.as_bytes(), None).expect("a request").expect("a whole one").keeps_alive;
        assert!(kept("GET / HTTP/1.1\r\n\r\n"));
        assert!(!kept("GET / HTTP/1.0\r\n\r\n"));
        assert!(!kept("GET / HTTP/1.1\r\nConnection: foo, Close\r\n\r\n"));
        assert!(!kept("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"));
        assert_eq!(parse(b"\x16\x03\x01", None), Err(Malformed));
        assert_eq!(parse(&[b'a'; HEAD_BYTES_MAX], None), Err(Malformed));
    }

    proptest! {
        #[test]
        fn a_head_is_a_head_wherever_it_is_cut(cut in 0..UPGRADE.len(), more: Vec<u8>) {
            prop_assert_eq!(parse(&UPGRADE.as_bytes()[..cut], None), Ok(None));
            let whole = [UPGRADE.as_bytes(), b"\r\n", &more].concat();
            let request = parse(&whole, None).expect("a request").expect("a whole one");
            prop_assert_eq!(request.head_bytes, UPGRADE.len() + 2);
        }

        #[test]
        fn no_input_is_too_strange(bytes: Vec<u8>) {
            let _ = parse(&bytes, Some("secret"));
        }
    }
}
