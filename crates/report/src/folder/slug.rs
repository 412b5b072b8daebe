//! Turns names from outside into parts of file names.

/// The most characters kept of a name: far below what file systems allow.
const KEPT_MAX: usize = 48;

/// A name as part of a file name. A plain name stays as it is. In any other name, `-` replaces each character that is
/// not plain, and a number distinguishes it from every other name that would look the same.
pub(crate) fn of(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if !name.is_empty() && name.len() <= KEPT_MAX && name.chars().all(plain) {
        return name.to_owned();
    }
    let kept: String = name
        .chars()
        .take(KEPT_MAX)
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    format!("{kept}-{:016x}", fnv_1a(name.as_bytes()))
}

/// FNV-1a, 64 bit. It is the same on every machine and in every version, which the standard library's hasher does not
/// promise.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay_and_no_two_others_meet() {
        assert_eq!(of("strict"), "strict");
        assert_eq!(of("p95-200_ms"), "p95-200_ms");
        // The published value of FNV-1a for "a".
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        let odd = ["a b", "a/b", "A-B", "../a-b", "", "a\0b"];
        let slugs: std::collections::BTreeSet<_> = odd.iter().map(|name| of(name)).collect();
        assert_eq!(slugs.len(), odd.len(), "{slugs:?}");
    }

    proptest! {
        #[test]
        fn any_name_is_a_file_name(name: String) {
            let slug = of(&name);
            prop_assert!(!slug.is_empty() && slug.len() <= 128);
            prop_assert!(slug.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{}", slug);
        }
    }
}
