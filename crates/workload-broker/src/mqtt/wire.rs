//! Numbers and fields of MQTT 5.

use crate::dialect::Fault;

/// The first octets of packets: type, and the flags that the type demands (section 2.1.3). PUBLISH has flags of its own.
pub(super) mod packet {
    pub(in crate::mqtt) const CONNECT: u8 = 0x10;
    pub(in crate::mqtt) const CONNACK: u8 = 0x20;
    pub(in crate::mqtt) const PUBLISH: u8 = 0x30;
    pub(in crate::mqtt) const PUBACK: u8 = 0x40;
    pub(in crate::mqtt) const PUBREC: u8 = 0x50;
    pub(in crate::mqtt) const PUBREL: u8 = 0x62;
    pub(in crate::mqtt) const PUBCOMP: u8 = 0x70;
    pub(in crate::mqtt) const SUBSCRIBE: u8 = 0x82;
    pub(in crate::mqtt) const SUBACK: u8 = 0x90;
    pub(in crate::mqtt) const PINGREQ: u8 = 0xC0;
    pub(in crate::mqtt) const PINGRESP: u8 = 0xD0;
    pub(in crate::mqtt) const DISCONNECT: u8 = 0xE0;
    pub(in crate::mqtt) const AUTH: u8 = 0xF0;
}

/// The largest number of a variable byte integer (section 1.5.5).
pub(super) const VARINT_MAX: usize = 268_435_455;

/// Appends a variable byte integer. Larger numbers than [`VARINT_MAX`] do not occur: the config limits what is written.
#[inline]
pub(super) fn append_varint(out: &mut Vec<u8>, number: usize) {
    let mut rest = number.min(VARINT_MAX);
    loop {
        let low = u8::try_from(rest & 0x7F).unwrap_or(0);
        rest >>= 7;
        if rest == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Reads a variable byte integer from the front: the number, and how many bytes it takes. `Ok(None)`: more must come.
/// `Err`: it has more than four bytes, or more than it needs [MQTT-1.5.5-1].
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Result<Option<(usize, usize)>, ()> {
    let mut number = 0;
    for (index, octet) in bytes.iter().take(4).enumerate() {
        number |= usize::from(octet & 0x7F) << (7 * index);
        if octet & 0x80 == 0 {
            let is_padded = *octet == 0 && index > 0;
            return if is_padded {
                Err(())
            } else {
                Ok(Some((number, index + 1)))
            };
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(()) }
}

/// Appends a text with a length of two bytes (section 1.5.4). The config refuses longer ones before.
pub(super) fn append_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&bytes[..usize::from(len)]);
}

/// Appends an answer about one packet: its reason is success, which needs no byte (section 3.4.2.1).
#[inline]
pub(super) fn append_answer(out: &mut Vec<u8>, packet: u8, id: u16) {
    let [high, low] = id.to_be_bytes();
    out.extend_from_slice(&[packet, 2, high, low]);
}

/// Reads fields from the front of a packet. `None`: it ends too early.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn varint(&mut self) -> Option<usize> {
        let (number, used) = varint(self.rest).ok()??;
        self.rest = &self.rest[used..];
        Some(number)
    }

    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    /// A text, or binary data.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.bytes(usize::from(len))
    }

    /// A block of properties (section 2.2.2).
    pub(super) fn properties(&mut self) -> Option<&'a [u8]> {
        let len = self.varint()?;
        self.bytes(len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Option<()> {
        self.is_empty().then_some(())
    }
}

/// A packet whose fields do not fit it.
#[cold]
pub(super) fn malformed(what: &str) -> Fault {
    Fault(format!("the broker's {what} is malformed"))
}

/// A text of the peer, for people.
pub(super) fn readable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1-1 of section 1.5.5.
    const TABLE: [(usize, &[u8]); 8] = [
        (0, &[0x00]),
        (127, &[0x7F]),
        (128, &[0x80, 0x01]),
        (16_383, &[0xFF, 0x7F]),
        (16_384, &[0x80, 0x80, 0x01]),
        (2_097_151, &[0xFF, 0xFF, 0x7F]),
        (2_097_152, &[0x80, 0x80, 0x80, 0x01]),
        (268_435_455, &[0xFF, 0xFF, 0xFF, 0x7F]),
    ];

    #[test]
    fn variable_byte_integers_are_those_of_the_standard() {
        for (number, bytes) in TABLE {
            let mut out = Vec::new();
            append_varint(&mut out, number);
            assert_eq!(out, bytes);
            assert_eq!(varint(bytes), Ok(Some((number, bytes.len()))));
            assert_eq!(
                varint(&[bytes, b"x"].concat()),
                Ok(Some((number, bytes.len())))
            );
            assert_eq!(varint(&bytes[..bytes.len() - 1]), Ok(None));
        }
        assert_eq!(varint(&[0x80, 0x80, 0x80, 0x80]), Err(()), "five bytes");
        assert_eq!(varint(&[0x80, 0x00]), Err(()), "one byte too many");
    }

    /// Figure 1-1 of section 1.5.4.1: "A" and U+2A6D4.
    #[test]
    fn texts_are_those_of_the_standard() {
        let mut out = Vec::new();
        append_text(&mut out, "A\u{2A6D4}");
        assert_eq!(out, b"\x00\x05\x41\xF0\xAA\x9B\x94");
        let mut fields = Fields::new(&out);
        assert_eq!(fields.text(), Some("A\u{2A6D4}".as_bytes()));
        assert_eq!(fields.end(), Some(()));
    }
}
