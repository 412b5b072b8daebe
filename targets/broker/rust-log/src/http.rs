//! The HTTP surface, without I/O: `GET /healthz` and `GET /admin/api/queues`, one request for a connection.

/// The longest head that is read.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// `GET /healthz`.
    Health,
    /// `GET /admin/api/queues`.
    Queues,
    /// Another path.
    NotFound,
    /// Another method than `GET`.
    NotAllowed,
    /// Not HTTP/1, or too long.
    Malformed,
}

/// Whether a connection that begins with these bytes speaks HTTP; `None` if there are too few to tell.
///
/// A frame begins with its length, and four capital letters would be a length of over 1 GB, which is refused.
pub fn is_http(bytes: &[u8]) -> Option<bool> {
    let first = bytes.first_chunk::<4>()?;
    Some(first[..3].iter().all(u8::is_ascii_uppercase) && (first[3].is_ascii_uppercase() || first[3] == b' '))
}

/// Reads a request's head; `None` if its end has not come.
pub fn parse(bytes: &[u8]) -> Option<Wish> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return (bytes.len() >= HEAD_BYTES_MAX).then_some(Wish::Malformed);
    };
    let line = bytes[..end].split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if words.next().is_some() || !version.is_some_and(|version| version.starts_with(b"HTTP/1.")) {
        return Some(Wish::Malformed);
    }
    let path = target.and_then(|target| target.split(|byte| *byte == b'?').next());
    Some(match (method, path) {
        (Some(b"GET"), Some(b"/healthz")) => Wish::Health,
        (Some(b"GET"), Some(b"/admin/api/queues")) => Wish::Queues,
        (Some(b"GET"), _) => Wish::NotFound,
        _ => Wish::NotAllowed,
    })
}

/// The answer; `queues` makes the body of [`Wish::Queues`].
pub fn answer(wish: Wish, queues: impl FnOnce() -> String) -> Vec<u8> {
    let (status, kind, body) = match wish {
        Wish::Health => ("200 OK", "text/plain; charset=utf-8", "ok\n".to_owned()),
        Wish::Queues => ("200 OK", "application/json", queues()),
        Wish::NotFound => ("404 Not Found", "text/plain; charset=utf-8", String::new()),
        Wish::NotAllowed => ("405 Method Not Allowed", "text/plain; charset=utf-8", String::new()),
        Wish::Malformed => ("400 Bad Request", "text/plain; charset=utf-8", String::new()),
    };
    let allow = if wish == Wish::NotAllowed { "allow: GET\r\n" } else { "" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{allow}content-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head, body].concat().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_frames() {
        assert_eq!(is_http(b"GET / HTTP/1.1"), Some(true));
        assert_eq!(is_http(b"POST"), Some(true));
        assert_eq!(is_http(b"GE"), None);
        assert_eq!(is_http(&[0, 0, 0, 30, 0, 1]), Some(false));
    }

    #[test]
    fn wishes() {
        for (request, wish) in [
            ("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n", Some(Wish::Health)),
            ("GET /admin/api/queues?all=1 HTTP/1.0\r\n\r\n", Some(Wish::Queues)),
            ("GET /metrics HTTP/1.1\r\n\r\n", Some(Wish::NotFound)),
            ("POST /healthz HTTP/1.1\r\n\r\n", Some(Wish::NotAllowed)),
            ("GET /healthz\r\n\r\n", Some(Wish::Malformed)),
            ("GET /healthz HTTP/1.1\r\n", None),
        ] {
            assert_eq!(parse(request.as_bytes()), wish, "{request}");
        }
        assert_eq!(parse(&[b'A'; HEAD_BYTES_MAX]), Some(Wish::Malformed));
        let answer = String::from_utf8(answer(Wish::Queues, || "{}".to_owned())).expect("text");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n")
                && answer.ends_with("content-length: 2\r\nconnection: close\r\n\r\n{}")
        );
    }
}
