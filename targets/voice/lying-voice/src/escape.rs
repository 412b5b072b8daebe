//! Words in a URL.

use std::fmt::Write as _;

/// The word with everything escaped that means something in a URL.
pub(crate) fn escaped(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_means_something_is_escaped() {
        assert_eq!(super::escaped("nova-3"), "nova-3");
        assert_eq!(super::escaped("a b/é&"), "a%20b%2F%C3%A9%26");
    }
}
