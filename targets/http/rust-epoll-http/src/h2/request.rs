//! A request's header block: what it asks for, and whether it is well-formed (RFC 9113, section 8).

use super::hpack::{Broken, Decoder};
use crate::call::{Method, Resource};

/// Most bytes of a list of fields, as section 6.5.2 counts them.
const LIST_BYTES_MAX: usize = 16 * 1024;

/// A request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) resource: Resource,
    pub(super) length: Option<usize>,
    pub(super) is_too_long: bool,
}

/// What a block came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Request(Head),
    /// Fields without any that begins with a colon: trailers.
    Trailers,
    Malformed,
}

#[derive(Debug, Default)]
struct Reader {
    method: Option<Method>,
    resource: Option<Resource>,
    has_scheme: bool,
    length: Option<usize>,
    has_fields: bool,
    has_pseudo_fields: bool,
    is_malformed: bool,
    list_bytes: usize,
}

/// Reads a block.
///
/// # Errors
/// When it cannot be decoded, which ends the connection.
pub(super) fn read(hpack: &mut Decoder, block: &[u8]) -> Result<Read, Broken> {
    let mut reader = Reader::default();
    hpack.decode(block, |name, value| reader.field(name, value))?;
    let Reader { method, resource, has_scheme, length, .. } = reader;
    Ok(match (method, resource) {
        _ if reader.is_malformed => Read::Malformed,
        _ if !reader.has_pseudo_fields => Read::Trailers,
        (Some(method), Some(resource)) if has_scheme => {
            Read::Request(Head { method, resource, length, is_too_long: reader.list_bytes > LIST_BYTES_MAX })
        }
        _ => Read::Malformed,
    })
}

impl Reader {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.list_bytes += name.len() + value.len() + 32;
        let is_bad =
            if name.first() == Some(&b':') { self.pseudo_field(name, value) } else { self.plain_field(name, value) };
        self.is_malformed |= is_bad;
    }

    /// Whether it must not be there.
    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.has_pseudo_fields = true;
        let is_second = match name {
            b":method" => self.method.replace(Method::read(value)).is_some(),
            b":path" => self.resource.replace(Resource::read(value)).is_some(),
            b":scheme" => std::mem::replace(&mut self.has_scheme, true),
            b":authority" => false,
            _ => true,
        };
        is_second || self.has_fields || (name == b":path" && value.is_empty())
    }

    /// Whether it must not be there.
    fn plain_field(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.has_fields = true;
        match name {
            b"content-length" => {
                let length =
                    std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let length = length.and_then(|digits| digits.parse().ok());
                length.is_none() || self.length.replace(length.unwrap_or(0)).is_some()
            }
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => true,
            b"te" => value != b"trailers",
            _ => name.is_empty() || name.iter().any(|byte| matches!(byte, b'A'..=b'Z' | 0..=b' ' | b':' | 0x7F..)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let string = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        fields.iter().flat_map(|(name, value)| [vec![0], string(name), string(value)].concat()).collect()
    }

    const GOOD: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/bytes/3?x")];

    #[test]
    fn requests_and_trailers() {
        let read =
            |fields: &[(&str, &str)]| super::read(&mut Decoder::default(), &block(fields)).expect("a good block");
        let head = Head { method: Method::Get, resource: Resource::Bytes(3), length: None, is_too_long: false };
        assert_eq!(read(&GOOD), Read::Request(head));
        assert_eq!(
            read(&[GOOD[0], GOOD[1], GOOD[2], ("content-length", "7")]),
            Read::Request(Head { length: Some(7), ..head })
        );
        assert_eq!(read(&[("x", "y")]), Read::Trailers);
        let many = [&GOOD[..], &[("name", "value"); 500]].concat();
        assert_eq!(read(&many), Read::Request(Head { is_too_long: true, ..head }));
        for bad in [
            &[GOOD[0], GOOD[1]][..],
            &[GOOD[0], GOOD[2]],
            &[GOOD[0], GOOD[0], GOOD[1], GOOD[2]],
            &[("x", "y"), GOOD[0], GOOD[1], GOOD[2]],
            &[GOOD[0], GOOD[1], (":path", "")],
            &[GOOD[0], GOOD[1], GOOD[2], (":status", "200")],
            &[GOOD[0], GOOD[1], GOOD[2], ("X", "y")],
            &[GOOD[0], GOOD[1], GOOD[2], ("connection", "close")],
            &[GOOD[0], GOOD[1], GOOD[2], ("te", "gzip")],
            &[GOOD[0], GOOD[1], GOOD[2], ("content-length", "+7")],
            &[GOOD[0], GOOD[1], GOOD[2], ("content-length", "7"), ("content-length", "7")],
        ] {
            assert_eq!(read(bad), Read::Malformed, "{bad:?}");
        }
    }
}
