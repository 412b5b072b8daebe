//! Commands as a client writes them: arrays of texts ("Redis serialization protocol specification", Sending commands).

use crate::decimal;

/// Appends a command of these words.
pub fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    begin(out, words.len() as u64);
    for word in words {
        bulk(out, word);
    }
}

/// Appends the beginning of a command of so many words, which follow.
pub(super) fn begin(out: &mut Vec<u8>, words: u64) {
    out.push(b'*');
    decimal::write(out, words);
    out.extend_from_slice(b"\r\n");
}

/// Appends a word.
pub(super) fn bulk(out: &mut Vec<u8>, word: &[u8]) {
    bulk_size(out, word.len() as u64);
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Appends the size of a word, which follows with CR LF behind it.
pub(super) fn bulk_size(out: &mut Vec<u8>, bytes: u64) {
    out.push(b'$');
    decimal::write(out, bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number as a word.
pub(super) fn bulk_number(out: &mut Vec<u8>, number: u64) {
    bulk_size(out, decimal::digits(number));
    decimal::write(out, number);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_texts() {
        let mut out = Vec::new();
        command(&mut out, &[b"LLEN", b"mylist"]);
        assert_eq!(out, b"*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n");
        out.clear();
        bulk_number(&mut out, 512);
        assert_eq!(out, b"$3\r\n512\r\n");
    }
}
