//! The numbers in paths, and the bytes of `/bytes/N`.

/// The most bytes that `/bytes/N` answers with.
pub const BYTES_MAX: usize = 1024 * 1024;

/// The largest K of `/json/K`: the last whole number that every JSON library reads exactly.
pub const ITEM_MAX: u64 = (1 << 53) - 1;

/// What `/bytes/N` answers with, for the largest N: `0123456789abcdef` repeated.
pub fn pattern() -> Vec<u8> {
    b"0123456789abcdef".repeat(BYTES_MAX / 16)
}

/// The N of `/bytes/N`.
pub fn byte_count(digits: &[u8]) -> Option<usize> {
    number(digits, BYTES_MAX as u64).and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0)
}

/// The K of `/json/K`.
pub fn item(digits: &[u8]) -> Option<u64> {
    number(digits, ITEM_MAX)
}

/// A whole number of digits alone, without leading zeros.
fn number(digits: &[u8], most: u64) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let value = digits
        .iter()
        .try_fold(0_u64, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0')))?;
    (value <= most).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        for (digits, count) in
            [("1", Some(1)), ("65536", Some(65_536)), ("1048576", Some(BYTES_MAX)), ("1048577", None)]
        {
            assert_eq!(byte_count(digits.as_bytes()), count, "{digits}");
        }
        for digits in ["", "0", "01", "+1", "-1", "1 ", "1.0", "0x1", "99999999999999999999"] {
            assert_eq!(byte_count(digits.as_bytes()), None, "{digits}");
        }
        assert_eq!(item(b"0"), Some(0));
        assert_eq!(item(b"9007199254740991"), Some(ITEM_MAX));
        assert_eq!(item(b"9007199254740992"), None);
        assert_eq!(item(b"00"), None);
    }

    #[test]
    fn the_pattern_repeats() {
        let pattern = pattern();
        assert_eq!(pattern.len(), BYTES_MAX);
        assert!(pattern.starts_with(b"0123456789abcdef01") && pattern.ends_with(b"ef"));
    }
}
