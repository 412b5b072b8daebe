//! The header block of a message (ADR-4 of nats-io/nats-architecture-and-design).

use crate::decimal;

/// A header block: `NATS/1.0`, perhaps a status, and lines of names and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a> {
    first: &'a [u8],
    lines: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Of the bytes of a block; `None` if they don't begin as one.
    #[must_use]
    pub fn parse(block: &'a [u8]) -> Option<Self> {
        let rest = block.strip_prefix(b"NATS/1.0")?;
        let (first, lines) = line(rest)?;
        Some(Self { first, lines })
    }

    /// The status code and its text, such as 408 and "Request Timeout". `None` if the message is no status.
    #[must_use]
    pub fn status(&self) -> Option<(u16, &'a str)> {
        let first = self.first.trim_ascii();
        let (code, text) = first.split_at_checked(3)?;
        let code = u16::try_from(decimal::read(code)?).ok()?;
        let text = str::from_utf8(text.trim_ascii()).unwrap_or("a status whose text is not UTF-8");
        Some((code, text))
    }

    /// The value of the first line with this name, in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let mut rest = self.lines;
        while let Some((this, after)) = line(rest) {
            let colon = this.iter().position(|byte| *byte == b':');
            if let Some(at) = colon
                && this[..at].eq_ignore_ascii_case(name.as_bytes())
            {
                return Some(this[at + 1..].trim_ascii());
            }
            rest = after;
        }
        None
    }
}

/// The first line, and what is behind it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_its_code_its_text_and_lines() {
        let block = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 7\r\nNats-Pending-Bytes: 0\r\n\r\n";
        let headers = Headers::parse(block).unwrap();
        assert_eq!(headers.status(), Some((408, "Request Timeout")));
        assert_eq!(headers.get("nats-pending-messages"), Some(&b"7"[..]));
        assert_eq!(headers.get("Nats-Pending-Bytes"), Some(&b"0"[..]));
        assert_eq!(headers.get("Nats-Pending"), None);
    }

    #[test]
    fn a_message_has_no_status() {
        let headers = Headers::parse(b"NATS/1.0\r\nFoodGroup: vegetable\r\n\r\n").unwrap();
        assert_eq!(headers.status(), None);
        assert_eq!(headers.get("FoodGroup"), Some(&b"vegetable"[..]));
        let bare = Headers::parse(b"NATS/1.0 503\r\n\r\n").unwrap();
        assert_eq!(bare.status(), Some((503, "")));
    }

    #[test]
    fn other_bytes_are_no_headers() {
        for block in [
            &b""[..],
            b"NATS/2.0\r\n\r\n",
            b"NATS/1.0",
            b"HTTP/1.1 200\r\n\r\n",
        ] {
            assert_eq!(Headers::parse(block), None);
        }
    }
}
