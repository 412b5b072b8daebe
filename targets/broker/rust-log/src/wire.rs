//! The fields of Fibril's protocol: big-endian numbers, texts and bytes behind their length.
//!
//! Source of the layout: the protocol crate of Fibril (github.com/Axmouth/fibril, `crates/protocol/src/v1/wire.rs`) and its
//! vectors (`clients/wire_vectors.json`).

/// What came is not what the protocol says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Takes fields off the front of a payload.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of this payload.
    pub fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    /// What was not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// When there is none.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    /// A number of two bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of four bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of eight bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A byte that is 0 or 1.
    ///
    /// # Errors
    /// When it is another, or missing.
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// Bytes behind their length.
    ///
    /// # Errors
    /// When the payload ends before them.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        self.take(length)
    }

    /// A text behind its length.
    ///
    /// # Errors
    /// When the payload ends before it, or it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    /// A field that may be absent.
    ///
    /// # Errors
    /// Those of `read`, and a mark that is not 0 or 1.
    pub fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// The four letters that a payload begins with.
    ///
    /// # Errors
    /// When they are others.
    pub fn magic(&mut self, magic: &[u8; 4]) -> Result<(), Malformed> {
        if self.array::<4>()? == *magic { Ok(()) } else { Err(Malformed) }
    }

    /// The end of the payload.
    ///
    /// # Errors
    /// When something is left.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// Appends a number of four bytes that says a length.
///
/// # Panics
/// When it is 4 GiB or more; every length here has a limit far below that.
pub fn put_length(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("lengths have limits below 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
}

/// Appends bytes behind their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a text behind its length.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends 0, or 1 and the text.
pub fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_text(out, text);
    }
}

/// Appends 0, or 1 and the number.
pub fn put_optional_u64(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(u8::from(number.is_some()));
    if let Some(number) = number {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_the_payload_does() {
        let mut fields = Fields::new(&[0, 0, 0, 2, b'h', b'i', 1, 0, 7, 0]);
        assert_eq!(fields.text(), Ok("hi"));
        assert_eq!(fields.optional(Fields::u16), Ok(Some(7)));
        assert_eq!(fields.optional(Fields::u16), Ok(None));
        assert_eq!(fields.end(), Ok(()));
        assert_eq!(fields.u8(), Err(Malformed));
    }

    #[test]
    fn a_length_beyond_the_payload_is_refused() {
        assert_eq!(Fields::new(&[0xff, 0xff, 0xff, 0xff, 1]).bytes(), Err(Malformed));
        assert_eq!(Fields::new(&[0, 0, 0, 1, 0xff]).text(), Err(Malformed));
        assert_eq!(Fields::new(&[2]).flag(), Err(Malformed));
        assert_eq!(Fields::new(b"FHL2").magic(b"FHL1"), Err(Malformed));
        assert_eq!(Fields::new(&[0]).end(), Err(Malformed));
    }
}
