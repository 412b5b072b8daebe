//! Properties: a number that says which, and a value whose type follows from it (section 2.2.2.2).

use super::wire::Fields;

/// The properties that we write or read.
pub(super) mod property {
    pub(in crate::mqtt) const SESSION_EXPIRY: u8 = 0x11;
    pub(in crate::mqtt) const ASSIGNED_CLIENT_ID: u8 = 0x12;
    pub(in crate::mqtt) const SERVER_KEEP_ALIVE: u8 = 0x13;
    pub(in crate::mqtt) const REASON_STRING: u8 = 0x1F;
    pub(in crate::mqtt) const RECEIVE_MAX: u8 = 0x21;
    pub(in crate::mqtt) const TOPIC_ALIAS_MAX: u8 = 0x22;
    pub(in crate::mqtt) const TOPIC_ALIAS: u8 = 0x23;
    pub(in crate::mqtt) const QOS_MAX: u8 = 0x24;
    pub(in crate::mqtt) const PACKET_MAX: u8 = 0x27;
    pub(in crate::mqtt) const SHARED_AVAILABLE: u8 = 0x2A;
}

/// A property's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number of one, two or four bytes, or of variable length.
    Number(u32),
    /// A text, or binary data.
    Text(&'a [u8]),
    /// The value of a pair of texts. Only user properties are pairs, and we use none.
    Pair,
}

impl Value<'_> {
    /// The number, if it fits.
    pub(super) fn number<T: TryFrom<u32>>(self) -> Option<T> {
        match self {
            Self::Number(number) => T::try_from(number).ok(),
            Self::Text(_) | Self::Pair => None,
        }
    }
}

/// Takes the next property from the front of a block. `None`: it is malformed, or has a number that the standard does
/// not know.
pub(super) fn next<'a>(block: &mut Fields<'a>) -> Option<(u8, Value<'a>)> {
    let which = block.u8()?;
    let value = match which {
        0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28 | 0x29 | 0x2A => {
            Value::Number(u32::from(block.u8()?))
        }
        0x13 | 0x21 | 0x22 | 0x23 => Value::Number(u32::from(block.u16()?)),
        0x02 | 0x11 | 0x18 | 0x27 => Value::Number(block.u32()?),
        0x0B => Value::Number(u32::try_from(block.varint()?).ok()?),
        0x03 | 0x08 | 0x09 | 0x12 | 0x15 | 0x16 | 0x1A | 0x1C | 0x1F => Value::Text(block.text()?),
        0x26 => {
            block.text()?;
            block.text()?;
            Value::Pair
        }
        _ => return None,
    };
    Some((which, value))
}

/// The broker's reason in its own words, if the block has one. `None`: the block is malformed.
pub(super) fn reason_string(block: &[u8]) -> Option<Option<&[u8]>> {
    let mut fields = Fields::new(block);
    let mut found = None;
    while !fields.is_empty() {
        if let (property::REASON_STRING, Value::Text(text)) = next(&mut fields)? {
            found = Some(text);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One property of each type, and their bytes from section 2.2.2.2.
    #[test]
    fn every_type_is_walked_over() {
        let all = b"\x01\x01\x02\0\0\0\x05\x0B\x80\x01\x26\0\x01a\0\x01b\x21\0\x14\x09\0\x02\xFF\0\x1F\0\x02no";
        let mut fields = Fields::new(all);
        let mut seen = Vec::new();
        while !fields.is_empty() {
            seen.push(next(&mut fields).unwrap());
        }
        let expected = [
            (0x01, Value::Number(1)),
            (0x02, Value::Number(5)),
            (0x0B, Value::Number(128)),
            (0x26, Value::Pair),
            (0x21, Value::Number(20)),
            (0x09, Value::Text(b"\xFF\0")),
            (0x1F, Value::Text(b"no")),
        ];
        assert_eq!(seen, expected);
        assert_eq!(reason_string(all), Some(Some(&b"no"[..])));
        assert_eq!(reason_string(&all[..all.len() - 1]), None);
        assert_eq!(reason_string(b""), Some(None));
        assert_eq!(reason_string(b"\x7Fx"), None, "no such property");
    }
}
