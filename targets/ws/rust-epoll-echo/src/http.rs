//! The HTTP/1.1 surface, without I/O: what a request asks for, and the answers.

use sha1_smol::Sha1;

/// Longest head that is read.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most header fields that are read.
const FIELDS_MAX: usize = 64;

/// What makes the digest of a key that of a WebSocket server (RFC 6455, section 1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// `GET /healthz`.
    Health,
    /// `GET /metrics`.
    Metrics,
    /// A valid upgrade: the text for `Sec-WebSocket-Accept`, and whether the hub is meant.
    WebSocket([u8; 28], bool),
    /// `GET` of any other path, without a valid upgrade.
    NoUpgrade,
    /// Another method than `GET`.
    NotAllowed,
}

/// A request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What it wants.
    pub wish: Wish,
    /// Whether it has asked for a WebSocket, in whatever way.
    pub asks_for_websocket: bool,
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
pub fn parse(bytes: &[u8]) -> Result<Option<Request>, Malformed> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let head_bytes = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        _ => return Err(Malformed),
    };
    let path = head.path.unwrap_or("").split('?').next().unwrap_or("");
    let wish = match (head.method, path) {
        (Some("GET"), "/healthz") => Wish::Health,
        (Some("GET"), "/metrics") => Wish::Metrics,
        (Some("GET"), path) => {
            upgrade(&head).map_or(Wish::NoUpgrade, |accept| Wish::WebSocket(accept, path == "/fanout"))
        }
        _ => Wish::NotAllowed,
    };
    // A body would have to be read past; a client that sends one gets its answer and a new connection.
    let has_body = field(&head, "content-length").is_some_and(|length| length != b"0")
        || field(&head, "transfer-encoding").is_some();
    let keeps_alive = head.version == Some(1) && !has_body && !lists(&head, "connection", "close");
    let asks_for_websocket = lists(&head, "upgrade", "websocket");
    Ok(Some(Request { wish, asks_for_websocket, keeps_alive, head_bytes }))
}

/// What a valid upgrade is answered with.
fn upgrade(head: &httparse::Request<'_, '_>) -> Option<[u8; 28]> {
    let is_upgrade = head.version == Some(1)
        && lists(head, "connection", "upgrade")
        && lists(head, "upgrade", "websocket")
        && field(head, "sec-websocket-version") == Some(b"13");
    field(head, "sec-websocket-key").filter(|key| is_upgrade && is_key(key)).map(accept)
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

/// An answer with a whole body; `fields` are further header lines, each with its end.
pub fn response(status: &str, fields: &str, body: &str, keeps_alive: bool) -> Vec<u8> {
    let connection = if keeps_alive { "" } else { "connection: close\r\n" };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{fields}{connection}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// The beginning of the answer that makes the connection a WebSocket; the accept text and [`SWITCH_END`] follow. No
/// extension is accepted.
pub const SWITCH_BEGIN: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ";

/// The end of that answer.
pub const SWITCH_END: &[u8] = b"\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    fn wish(head: &str) -> Wish {
        parse(format!("{head}\r\n").as_bytes()).expect("a request").expect("a whole one").wish
    }

    #[test]
    fn the_handshake_of_the_rfc() {
        // RFC 6455, section 1.3.
        assert_eq!(wish(UPGRADE), Wish::WebSocket(*b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", false));
        let fanout = UPGRADE.replace("/chat", "/fanout?x=1");
        assert_eq!(wish(&fanout), Wish::WebSocket(*b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", true));
    }

    #[test]
    fn wishes() {
        assert_eq!(wish("GET /healthz HTTP/1.1\r\n"), Wish::Health);
        assert_eq!(wish("GET /metrics?x=1 HTTP/1.1\r\n"), Wish::Metrics);
        assert_eq!(wish("GET / HTTP/1.1\r\n"), Wish::NoUpgrade);
        assert_eq!(wish("HEAD /healthz HTTP/1.1\r\n"), Wish::NotAllowed);
        for (good, bad) in [("13", "8"), ("ZQ==", "ZQ"), ("1.1", "1.0"), ("WebSocket\r", "h2c\r"), (", Upgrade", "")] {
            assert_eq!(wish(&UPGRADE.replace(good, bad)), Wish::NoUpgrade, "{bad}");
        }
        assert_eq!(wish(&UPGRADE.replace("GET", "POST")), Wish::NotAllowed);
    }

    #[test]
    fn who_asks_for_a_websocket() {
        let asks = |head: &str| {
            parse(format!("{head}\r\n").as_bytes()).expect("a request").expect("a whole one").asks_for_websocket
        };
        assert!(asks(UPGRADE) && asks(&UPGRADE.replace("13", "8")));
        assert!(!asks("GET / HTTP/1.1\r\n") && !asks("GET / HTTP/1.1\r\nUpgrade: h2c\r\n"));
    }

    #[test]
    fn connections_are_kept_unless_they_cannot_be() {
        let kept = |head: &str| parse(head.as_bytes()).expect("a request").expect("a whole one").keeps_alive;
        assert!(kept("GET / HTTP/1.1\r\n\r\n"));
        assert!(!kept("GET / HTTP/1.0\r\n\r\n"));
        assert!(!kept("GET / HTTP/1.1\r\nConnection: foo, Close\r\n\r\n"));
        assert!(!kept("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"));
        assert_eq!(parse(b"\x16\x03\x01"), Err(Malformed));
        assert_eq!(parse(&[b'a'; HEAD_BYTES_MAX]), Err(Malformed));
    }

    #[test]
    fn answers() {
        let answer = response("200 OK", "x: y\r\n", "ok\n", false);
        assert_eq!(answer, b"HTTP/1.1 200 OK\r\nx: y\r\nconnection: close\r\ncontent-length: 3\r\n\r\nok\n");
    }

    proptest! {
        #[test]
        fn a_head_is_a_head_wherever_it_is_cut(cut in 0..UPGRADE.len(), more: Vec<u8>) {
            prop_assert_eq!(parse(&UPGRADE.as_bytes()[..cut]), Ok(None));
            let whole = [UPGRADE.as_bytes(), b"\r\n", &more].concat();
            let request = parse(&whole).expect("a request").expect("a whole one");
            prop_assert_eq!(request.head_bytes, UPGRADE.len() + 2);
        }

        #[test]
        fn no_input_is_too_strange(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
