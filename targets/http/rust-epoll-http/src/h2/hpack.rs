//! HPACK (RFC 7541): reading the header blocks of requests, and the literals that an answer is written with.
//!
//! The decoder keeps the dynamic table, which the client may use as it likes. Nothing is ever added to the client's
//! table from here, so the encoder is a few bytes of prefix.

use std::collections::VecDeque;

use super::huffman;

/// Size of the dynamic table, in the measure of the RFC, that the client may use: the default, so it need not be said.
const TABLE_BYTES_MAX: usize = 4096;

/// What an entry counts beside its bytes (section 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// Entries of the static table that an answer refers to (appendix A).
pub mod index {
    #![allow(missing_docs, reason = "the names of header fields")]
    pub const STATUS: u8 = 8;
    pub const STATUS_200: u8 = 8;
    pub const STATUS_404: u8 = 13;
    pub const ALLOW: u8 = 22;
    pub const CONTENT_LENGTH: u8 = 28;
    pub const CONTENT_TYPE: u8 = 31;
    pub const DATE: u8 = 33;
}

/// A change of the table's size to nothing, for the beginning of a block.
pub const NO_TABLE: u8 = 0x20;

/// A header block that is none: the state shared with the client is lost, and with it the connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

/// Writes a field that is in the static table with its value.
pub fn indexed(block: &mut Vec<u8>, index: u8) {
    block.push(0x80 | index);
}

/// Writes a field whose name is in the static table, for no table to remember.
pub fn literal(block: &mut Vec<u8>, name: u8, value: &[u8]) {
    integer(block, 0x00, 4, usize::from(name));
    string(block, value);
}

/// Writes a field whose value is a number.
pub fn decimal(block: &mut Vec<u8>, name: u8, number: usize) {
    integer(block, 0x00, 4, usize::from(name));
    let at = block.len();
    block.push(0);
    crate::answer::decimal(block, number);
    // Its length, of 20 digits at most, fits the byte before it.
    block[at] = (block.len() - at - 1).to_le_bytes()[0];
}

fn string(block: &mut Vec<u8>, text: &[u8]) {
    integer(block, 0x00, 7, text.len());
    block.extend_from_slice(text);
}

/// Section 5.1: the first `bits` bits of a byte whose other bits are `flags`, and more bytes if they do not hold it.
fn integer(block: &mut Vec<u8>, flags: u8, bits: u8, value: usize) {
    let limit = (1 << bits) - 1;
    match u8::try_from(value) {
        Ok(value) if value < limit => block.push(flags | value),
        _ => {
            block.push(flags | limit);
            let mut rest = value - usize::from(limit);
            while rest >= 0x80 {
                block.push(0x80 | rest.to_le_bytes()[0]);
                rest >>= 7;
            }
            block.push(rest.to_le_bytes()[0]);
        }
    }
}

/// Name and value, in one piece of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    text: Box<[u8]>,
    name_bytes: usize,
}

impl Entry {
    fn size(&self) -> usize {
        self.text.len() + ENTRY_OVERHEAD_BYTES
    }
}

/// Reads header blocks, in the order in which they come.
#[derive(Debug)]
pub struct Decoder {
    /// The newest first.
    table: VecDeque<Entry>,
    table_bytes: usize,
    table_bytes_max: usize,
    /// The field that is being read: its name, then its value.
    text: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { table: VecDeque::new(), table_bytes: 0, table_bytes_max: TABLE_BYTES_MAX, text: Vec::new() }
    }
}

impl Decoder {
    /// Reads a whole block and shows each field, name and value.
    ///
    /// # Errors
    /// On anything that no encoder may send; the decoder is of no use after that.
    pub fn decode(&mut self, block: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> Result<(), Broken> {
        let mut rest = block;
        let mut fields = 0_usize;
        while let Some(first) = rest.first().copied() {
            match first {
                0x80.. => {
                    let index = read_integer(&mut rest, 7)?;
                    let (name, value) = self.entry(index)?;
                    field(name, value);
                }
                0x40.. => {
                    let name_bytes = self.read_literal(&mut rest, 6)?;
                    let (name, value) = self.text.split_at(name_bytes);
                    field(name, value);
                    self.remember(name_bytes);
                }
                0x20.. => {
                    let size = read_integer(&mut rest, 5)?;
                    // Only at the beginning of a block (section 4.2).
                    if fields > 0 || size > TABLE_BYTES_MAX {
                        return Err(Broken);
                    }
                    self.table_bytes_max = size;
                    self.evict(0);
                    continue;
                }
                // Without indexing, or never to be indexed: the same for a reader.
                _ => {
                    let name_bytes = self.read_literal(&mut rest, 4)?;
                    let (name, value) = self.text.split_at(name_bytes);
                    field(name, value);
                }
            }
            fields += 1;
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Broken> {
        let index = index.checked_sub(1).ok_or(Broken)?;
        if let Some((name, value)) = STATIC_TABLE.get(index) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.table.get(index - STATIC_TABLE.len()).ok_or(Broken)?;
        Ok(entry.text.split_at(entry.name_bytes))
    }

    /// Reads a literal whose name is an index of `bits` bits, or a string, into `text`; returns the length of the name.
    fn read_literal(&mut self, rest: &mut &[u8], bits: u8) -> Result<usize, Broken> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let name = read_integer(rest, bits)?;
        if name == 0 {
            read_string(rest, &mut text)?;
        } else {
            text.extend_from_slice(self.entry(name)?.0);
        }
        let name_bytes = text.len();
        read_string(rest, &mut text)?;
        self.text = text;
        Ok(name_bytes)
    }

    /// Puts the field in `text` into the table.
    fn remember(&mut self, name_bytes: usize) {
        let entry = Entry { text: self.text.as_slice().into(), name_bytes };
        self.evict(entry.size());
        // One that is larger than the table empties it and is not added (section 4.4).
        if entry.size() <= self.table_bytes_max {
            self.table_bytes += entry.size();
            self.table.push_front(entry);
        }
    }

    /// Makes room for `more` bytes.
    fn evict(&mut self, more: usize) {
        while self.table_bytes + more > self.table_bytes_max
            && let Some(oldest) = self.table.pop_back()
        {
            self.table_bytes -= oldest.size();
        }
    }
}

fn read_integer(rest: &mut &[u8], bits: u8) -> Result<usize, Broken> {
    let limit = (1 << bits) - 1;
    let (first, mut bytes) = rest.split_first().ok_or(Broken)?;
    let mut value = usize::from(first & limit);
    if value == usize::from(limit) {
        // Four bytes more make 28 bits, far beyond the length of any block that is taken.
        for shift in [0, 7, 14, 21, 28] {
            let (byte, more) = bytes.split_first().filter(|_| shift < 28).ok_or(Broken)?;
            bytes = more;
            value += usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = bytes;
    Ok(value)
}

fn read_string(rest: &mut &[u8], text: &mut Vec<u8>) -> Result<(), Broken> {
    let coded = rest.first().ok_or(Broken)? & 0x80 != 0;
    let length = read_integer(rest, 7)?;
    let (string, more) = rest.split_at_checked(length).ok_or(Broken)?;
    *rest = more;
    if coded {
        return huffman::decode(string, text).ok_or(Broken);
    }
    text.extend_from_slice(string);
    Ok(())
}

/// Appendix A.
#[rustfmt::skip]
const STATIC_TABLE: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).expect("hex")).expect("a digit");
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Broken> {
        let mut fields = Vec::new();
        decoder.decode(block, |name, value| {
            fields.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        })?;
        Ok(fields)
    }

    /// RFC 7541, C.6: answers with Huffman coding, and a table so small that entries leave it. That size is announced
    /// there by other means, here by an update.
    #[test]
    fn examples_of_the_rfc() {
        let mut decoder = Decoder::default();
        let first = hex(
            "3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
            1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        );
        let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
        let location = "location: https://www.example.com";
        let expected = [":status: 302", "cache-control: private", date, location];
        assert_eq!(fields(&mut decoder, &first).expect("a good block"), expected);
        assert_eq!(decoder.table_bytes, 222);

        let expected = [":status: 307", "cache-control: private", date, location];
        assert_eq!(fields(&mut decoder, &hex("4883 640e ffc1 c0bf")).expect("a good block"), expected);
        assert_eq!(decoder.table_bytes, 222);

        let third = hex(
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7
            b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        );
        let expected = [
            ":status: 200",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:22 GMT",
            location,
            "content-encoding: gzip",
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ];
        assert_eq!(fields(&mut decoder, &third).expect("a good block"), expected);
        assert_eq!((decoder.table_bytes, decoder.table.len()), (215, 3));
    }

    #[test]
    fn what_an_answer_is_written_with_can_be_read() {
        let mut block = vec![NO_TABLE];
        indexed(&mut block, index::STATUS_200);
        literal(&mut block, index::STATUS, b"404");
        let long = "x".repeat(300);
        literal(&mut block, index::CONTENT_TYPE, long.as_bytes());
        decimal(&mut block, index::CONTENT_LENGTH, 32_000);
        literal(&mut block, index::DATE, b"now");
        literal(&mut block, index::ALLOW, b"GET");
        let content_type = format!("content-type: {long}");
        let expected =
            [":status: 200", ":status: 404", &content_type, "content-length: 32000", "date: now", "allow: GET"];
        let mut decoder = Decoder::default();
        assert_eq!(fields(&mut decoder, &block).expect("a good block"), expected);
        assert_eq!(decoder.table.len(), 0, "nothing is to be remembered");
    }

    #[test]
    fn broken_blocks() {
        for (block, what) in [
            ("80", "index 0"),
            ("be", "an entry that is not there"),
            ("ff ff ff ff ff 7f", "an index without end"),
            ("40 05 61", "a string cut short"),
            ("88 20", "a change of size behind a field"),
            ("3f e2 1f", "a table larger than allowed"),
            ("00 81 00 00", "bad padding"),
            ("7f", "an integer cut short"),
        ] {
            assert_eq!(fields(&mut Decoder::default(), &hex(block)), Err(Broken), "{what}");
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_the_decoder_itself(blocks: Vec<Vec<u8>>) {
            let mut decoder = Decoder::default();
            for block in blocks {
                let _ = decoder.decode(&block, |_, _| {});
                let size: usize = decoder.table.iter().map(Entry::size).sum();
                prop_assert_eq!(decoder.table_bytes, size);
                prop_assert!(size <= TABLE_BYTES_MAX);
            }
        }
    }
}
