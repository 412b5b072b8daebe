//! Numbers with a prefix (RFC 7541, section 5.1).

use super::HpackFlaw;

/// Appends `number`; `flags` are the bits above the prefix of `prefix_bits`.
pub(super) fn append(out: &mut Vec<u8>, flags: u8, prefix_bits: u32, number: usize) {
    let prefix_max = (1usize << prefix_bits) - 1;
    if number < prefix_max {
        out.push(flags | number as u8);
        return;
    }
    out.push(flags | prefix_max as u8);
    let mut rest = number - prefix_max;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7F) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads a number and moves `block` behind it.
pub(super) fn read(block: &mut &[u8], prefix_bits: u32) -> Result<u32, HpackFlaw> {
    let prefix_max = (1u32 << prefix_bits) - 1;
    let (first, mut rest) = block.split_first().ok_or(HpackFlaw::Torn)?;
    let mut number = u32::from(*first) & prefix_max;
    if number == prefix_max {
        for shift in [0, 7, 14, 21, 28] {
            let (byte, behind) = rest.split_first().ok_or(HpackFlaw::Torn)?;
            rest = behind;
            if shift == 28 {
                // Nothing that we accept is this long: all limits are below 2^17.
                return Err(HpackFlaw::Number);
            }
            number += u32::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vectors_of_appendix_c_1() {
        for (prefix_bits, number, bytes) in [
            (5, 10, &[0x0A][..]),
            (5, 1337, &[0x1F, 0x9A, 0x0A]),
            (8, 42, &[0x2A]),
        ] {
            let mut out = Vec::new();
            append(&mut out, 0, prefix_bits, number);
            assert_eq!(out, bytes);
            let mut rest = &out[..];
            assert_eq!(read(&mut rest, prefix_bits), Ok(number as u32));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn numbers_have_a_limit_and_an_end() {
        assert_eq!(read(&mut &[0x1F, 0x80][..], 5), Err(HpackFlaw::Torn));
        assert_eq!(read(&mut &[][..], 5), Err(HpackFlaw::Torn));
        let long = [0x1F, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(read(&mut &long[..], 5), Err(HpackFlaw::Number));
        assert_eq!(read(&mut &[0xFF; 20][..], 7), Err(HpackFlaw::Number));
    }

    proptest! {
        #[test]
        fn numbers_come_back(number in 0usize..1 << 28, prefix_bits in 4u32..=7) {
            let mut out = Vec::new();
            append(&mut out, 0x80, prefix_bits, number);
            let mut rest = &out[..];
            prop_assert_eq!(read(&mut rest, prefix_bits), Ok(number as u32));
            prop_assert!(rest.is_empty());
        }
    }
}
