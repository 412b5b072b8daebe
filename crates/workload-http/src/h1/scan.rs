//! Classes of bytes, and numbers.

/// Which bytes may stand in a token, such as a field's name (RFC 9110, section 5.6.2).
const TOKEN: [bool; 256] = token_table();

const fn token_table() -> [bool; 256] {
    let marks = b"!#$%&'*+-.^_`|~";
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128u8 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut i = 0;
    while i < marks.len() {
        table[marks[i] as usize] = true;
        i += 1;
    }
    table
}

pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is_token_byte(*byte))
}

/// Whether the byte may stand in a field's value: everything but control characters, and the tab.
pub(crate) fn is_text_byte(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7F || byte == b'\t'
}

/// The end of the token at the beginning of `bytes`.
pub(super) fn token_end(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| !is_token_byte(*byte))
        .unwrap_or(bytes.len())
}

/// The end of the text that begins at `from`: the first control character that is no tab.
///
/// Eight bytes at a time, because values are most of a head. A subtraction can borrow only from bytes above one that
/// matches, so the lowest mark is exact.
pub(super) fn text_end(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let flipped = word ^ (ONES * 0x7F);
        let delete = flipped.wrapping_sub(ONES) & !flipped;
        let marks = (below_space | delete) & (ONES * 0x80);
        if marks == 0 {
            at += 8;
            continue;
        }
        at += (marks.trailing_zeros() / 8) as usize;
        if bytes[at] != b'\t' {
            return at;
        }
        at += 1;
    }
    while at < bytes.len() && is_text_byte(bytes[at]) {
        at += 1;
    }
    at
}

/// Without the spaces and tabs at both ends.
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = bytes
        .iter()
        .position(|byte| !is_space(byte))
        .unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(|byte| !is_space(byte))
        .map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// A decimal number below 10^18 without sign, spaces or anything else.
#[must_use]
pub fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u64::from(digit - b'0'))
    })
}

/// Writes the decimal digits of `number` at the end of `buffer`, and returns them.
pub fn decimal_digits(mut number: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_end_of_text_is_where_a_plain_loop_finds_it(
            bytes in prop::collection::vec(prop_oneof![8 => 0x20u8..0x7F, 1 => any::<u8>(), 1 => Just(b'\t')], 0..60),
            from in 0usize..60,
        ) {
            let from = from.min(bytes.len());
            let plain = bytes[from..].iter().position(|b| !is_text_byte(*b)).map_or(bytes.len(), |i| from + i);
            prop_assert_eq!(text_end(&bytes, from), plain);
        }

        #[test]
        fn numbers_come_back(number in 0u64..1_000_000_000_000_000_000) {
            let mut buffer = [0; 20];
            prop_assert_eq!(decimal(decimal_digits(number, &mut buffer)), Some(number));
        }
    }

    #[test]
    fn what_is_no_plain_number_is_refused() {
        for text in [
            "",
            "+5",
            "-1",
            " 5",
            "5 ",
            "0x5",
            "5,5",
            "1000000000000000000",
        ] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decimal(b"007"), Some(7));
        let mut buffer = [0; 20];
        assert_eq!(
            decimal_digits(u64::MAX, &mut buffer),
            u64::MAX.to_string().as_bytes()
        );
    }

    #[test]
    fn spaces_at_both_ends_go() {
        assert_eq!(trim(b" \ta b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
    }
}
