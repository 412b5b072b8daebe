//! The fields of requests and answers: numbers are big-endian, a length stands before what it measures, and -1 as a length
//! means that there is nothing.

/// An answer is not what its request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Takes fields off the front of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn i8(&mut self) -> Result<i8, Malformed> {
        self.array().map(i8::from_be_bytes)
    }

    pub(super) fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// A text, or none.
    pub(super) fn text(&mut self) -> Result<Option<&'a str>, Malformed> {
        let length = self.i16()?;
        match length_or_none(length.into())? {
            Some(length) => std::str::from_utf8(self.take(length)?)
                .map(Some)
                .map_err(|_| Malformed),
            None => Ok(None),
        }
    }

    /// Bytes; none are as good as empty ones.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.i32()?;
        self.take(length_or_none(length.into())?.unwrap_or(0))
    }

    /// How many elements follow. Nothing is reserved for them, because the peer may announce any number.
    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.i32()?;
        Ok(length_or_none(count.into())?.unwrap_or(0))
    }

    /// A number of a record: seven bits to a byte, the lowest first, and the sign in the lowest bit.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<i64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                let half = i64::try_from(value >> 1).map_err(|_| Malformed)?;
                return Ok(if value & 1 == 0 { half } else { -1 - half });
            }
        }
        Err(Malformed)
    }

    /// The bytes of a record's key or value; none are as good as empty ones.
    #[inline]
    pub(super) fn varint_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.varint()?;
        self.take(length_or_none(length)?.unwrap_or(0))
    }
}

fn length_or_none(length: i64) -> Result<Option<usize>, Malformed> {
    match usize::try_from(length) {
        Ok(length) => Ok(Some(length)),
        Err(_) if length == -1 => Ok(None),
        Err(_) => Err(Malformed),
    }
}

pub(super) fn put_i16(out: &mut Vec<u8>, number: i16) {
    out.extend_from_slice(&number.to_be_bytes());
}

pub(super) fn put_i32(out: &mut Vec<u8>, number: i32) {
    out.extend_from_slice(&number.to_be_bytes());
}

pub(super) fn put_i64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends the index of a partition. Setups have fewer than 65,536.
pub(super) fn put_partition(out: &mut Vec<u8>, partition: u32) {
    put_i32(out, i32::try_from(partition).unwrap_or(i32::MAX));
}

/// Appends a text. Names have a limit far below 32 KiB.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_i16(out, i16::try_from(text.len()).unwrap_or(i16::MAX));
    out.extend_from_slice(text.as_bytes());
}

/// A length as it is on the wire. Whatever we write is far below 2 GiB.
#[inline]
pub(super) fn length_of(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes()
}

/// Appends the number of elements that follow.
pub(super) fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&length_of(count));
}

/// Appends a number of a record that is not negative.
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, number: u32) {
    let mut rest = u64::from(number) << 1;
    loop {
        let [low, ..] = rest.to_le_bytes();
        if rest < 0x80 {
            return out.push(low);
        }
        out.push(low | 0x80);
        rest >>= 7;
    }
}

/// How many bytes that takes.
#[inline]
pub(super) fn varint_bytes(number: u32) -> usize {
    let mut bytes = 1;
    // One bit of the first byte is the sign.
    let mut rest = number >> 6;
    while rest > 0 {
        bytes += 1;
        rest >>= 7;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_and_bytes_may_be_absent() {
        let mut fields = Fields::new(&[0, 2, b'a', b'b', 255, 255, 0, 0]);
        assert_eq!(fields.text(), Ok(Some("ab")));
        assert_eq!(fields.text(), Ok(None));
        assert_eq!(fields.text(), Ok(Some("")));
        assert_eq!(fields.text(), Err(Malformed));
        for bad in [&[255, 254][..], &[0, 3, b'a', b'b'], &[0, 1, 0xC3]] {
            assert_eq!(Fields::new(bad).text(), Err(Malformed));
        }
        assert_eq!(Fields::new(&[255; 4]).bytes(), Ok(&b""[..]));
        assert_eq!(Fields::new(&[255, 255, 255, 254]).bytes(), Err(Malformed));
        assert_eq!(Fields::new(&[0, 0, 0, 1]).bytes(), Err(Malformed));
    }

    #[test]
    fn a_varint_has_an_end() {
        // The examples of the specification of zigzag numbers.
        for (bytes, number) in [(&[0][..], 0), (&[1], -1), (&[2], 1), (&[0xD8, 4], 300)] {
            assert_eq!(Fields::new(bytes).varint(), Ok(number));
        }
        let least = [&[255; 9][..], &[1]].concat();
        assert_eq!(Fields::new(&least).varint(), Ok(i64::MIN));
        assert_eq!(Fields::new(&[0x80; 11]).varint(), Err(Malformed));
        assert_eq!(Fields::new(&[0x80; 3]).varint(), Err(Malformed));
    }

    proptest! {
        #[test]
        fn varints_go_round(number in prop_oneof![any::<u32>(), 0_u32..300]) {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            prop_assert_eq!(out.len(), varint_bytes(number));
            let mut fields = Fields::new(&out);
            prop_assert_eq!(fields.varint(), Ok(i64::from(number)));
            prop_assert!(fields.is_empty());
        }
    }
}
