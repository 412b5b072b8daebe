//! Tables of named fields (specification, section 4.2.5.5), with the types that RabbitMQ uses in place of the
//! specification's (its errata page, section 3).

use super::wire::{Fields, append_long_text, append_short_text, length};

/// Appends a table whose entries `entries` appends.
pub(super) fn append_table(out: &mut Vec<u8>, entries: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    entries(out);
    let len = length(out.len() - start - 4);
    out[start..start + 4].copy_from_slice(&len);
}

/// Appends an entry: a text.
pub(super) fn append_text(out: &mut Vec<u8>, name: &str, value: &str) {
    append_short_text(out, name);
    out.push(b'S');
    append_long_text(out, value.as_bytes());
}

/// Appends an entry: a signed number of 64 bits.
pub(super) fn append_number(out: &mut Vec<u8>, name: &str, value: i64) {
    append_short_text(out, name);
    out.push(b'l');
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends an entry: true.
pub(super) fn append_true(out: &mut Vec<u8>, name: &str) {
    append_short_text(out, name);
    out.extend_from_slice(b"t\x01");
}

/// Appends an entry: a table.
pub(super) fn append_inner(out: &mut Vec<u8>, name: &str, entries: impl FnOnce(&mut Vec<u8>)) {
    append_short_text(out, name);
    out.push(b'F');
    append_table(out, entries);
}

/// The text of entry `name`, if there is one. Inner tables are skipped by their length, not entered.
///
/// `None`: the table is malformed.
pub(super) fn find_text<'a>(entries: &'a [u8], name: &[u8]) -> Option<Option<&'a [u8]>> {
    let mut fields = Fields::new(entries);
    let mut found = None;
    while !fields.is_empty() {
        let is_it = fields.short_text()? == name;
        let kind = fields.u8()?;
        let value = skip_value(&mut fields, kind)?;
        if is_it && kind == b'S' {
            found = Some(value);
        }
    }
    Some(found)
}

/// The bytes of a value, without their length if they have one.
fn skip_value<'a>(fields: &mut Fields<'a>, kind: u8) -> Option<&'a [u8]> {
    let len = match kind {
        b'V' => 0,
        b't' | b'b' | b'B' => 1,
        b's' | b'u' | b'U' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'l' | b'L' | b'd' | b'T' => 8,
        b'S' | b'x' | b'A' | b'F' => return fields.long_text(),
        _ => return None,
    };
    fields.bytes(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries as RabbitMQ's own generator wrote them; amqplib keeps them as the cases of its `test/codec.js`.
    const KNOWN: [&[u8]; 17] = [
        &[4, 98, 121, 116, 101, 98, 112],
        &[5, 115, 104, 111, 114, 116, 115, 255, 127],
        &[3, 105, 110, 116, 73, 0, 0, 128, 0],
        &[4, 108, 111, 110, 103, 108, 0, 0, 0, 0, 128, 0, 0, 0],
        &[
            6, 100, 111, 117, 98, 108, 101, 100, 63, 224, 0, 0, 0, 0, 0, 0,
        ],
        &[
            6, 115, 116, 114, 105, 110, 103, 83, 0, 0, 0, 4, 98, 111, 111, 112,
        ],
        &[5, 98, 121, 116, 101, 115, 120, 0, 0, 0, 4, 1, 2, 3, 4],
        &[4, 98, 111, 111, 108, 116, 1],
        &[4, 118, 111, 105, 100, 86],
        &[
            5, 97, 114, 114, 97, 121, 65, 0, 0, 0, 12, 98, 6, 116, 1, 83, 0, 0, 0, 3, 102, 111, 111,
        ],
        &[
            6, 111, 98, 106, 101, 99, 116, 70, 0, 0, 0, 18, 3, 102, 111, 111, 83, 0, 0, 0, 3, 98,
            97, 114, 3, 98, 97, 122, 98, 12,
        ],
        &[
            9, 116, 105, 109, 101, 115, 116, 97, 109, 112, 84, 0, 0, 1, 60, 0, 39, 219, 23,
        ],
        &[7, 100, 101, 99, 105, 109, 97, 108, 68, 2, 0, 0, 9, 41],
        &[5, 102, 108, 111, 97, 116, 102, 61, 204, 204, 205],
        &[
            12, 117, 110, 115, 105, 103, 110, 101, 100, 98, 121, 116, 101, 66, 255,
        ],
        &[
            13, 117, 110, 115, 105, 103, 110, 101, 100, 115, 104, 111, 114, 116, 117, 255, 255,
        ],
        &[
            11, 117, 110, 115, 105, 103, 110, 101, 100, 105, 110, 116, 105, 255, 255, 255, 255,
        ],
    ];

    #[test]
    fn entries_of_every_type_are_walked_over() {
        let all = KNOWN.concat();
        assert_eq!(find_text(&all, b"string"), Some(Some(&b"boop"[..])));
        assert_eq!(find_text(&all, b"foo"), Some(None), "only in an inner one");
        assert_eq!(find_text(&all, b"bool"), Some(None), "no text");
        assert_eq!(find_text(&all, b"unsignedint"), Some(None));
        for entry in KNOWN {
            assert!(find_text(entry, b"").is_some());
            for cut in 1..entry.len() {
                assert_eq!(find_text(&entry[..cut], b""), None, "{entry:?} to {cut}");
            }
        }
    }

    #[test]
    fn what_we_write_is_what_rabbitmq_writes() {
        let mut out = Vec::new();
        append_text(&mut out, "string", "boop");
        assert_eq!(out, KNOWN[5]);
        out.clear();
        append_number(&mut out, "long", 0x8000_0000);
        assert_eq!(out, KNOWN[3]);
        out.clear();
        append_true(&mut out, "bool");
        assert_eq!(out, KNOWN[7]);
        out.clear();
        append_inner(&mut out, "object", |out| append_text(out, "foo", "bar"));
        assert_eq!(
            out, b"\x06objectF\0\0\0\x0C\x03fooS\0\0\0\x03bar",
            "the length covers the entries only"
        );
    }

    #[test]
    fn an_unknown_type_is_malformed() {
        assert_eq!(find_text(b"\x01xZ\0", b"x"), None);
    }
}
