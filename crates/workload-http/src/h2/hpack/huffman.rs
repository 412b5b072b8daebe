//! The Huffman code of strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: within a length, codes rise with their symbols, and a longer code follows the last shorter
//! one. So the lengths alone give all codes.

use super::HpackFlaw;

/// The end of a string, which is never written.
const EOS: usize = 256;
const LONGEST: usize = 30;

/// The length of each symbol's code in bits.
#[rustfmt::skip]
const LENGTHS: [u8; EOS + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11,
    10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8,
    15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5,
    6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
    23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21,
    23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25,
    26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26,
    28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// All that the lengths imply.
struct Tables {
    codes: [u32; EOS + 1],
    /// The symbols, by length and value.
    sorted: [u16; EOS + 1],
    /// For each length: its first code, how many there are, and where they begin in `sorted`.
    lengths: [(u32, u32, u16); LONGEST + 1],
    /// By the next eight bits: the symbol and its length, if that is at most 8; else 0 for the length.
    short: [(u8, u8); 256],
}

const TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; EOS + 1],
        sorted: [0; EOS + 1],
        lengths: [(0, 0, 0); LONGEST + 1],
        short: [(0, 0); 256],
    };
    let (mut code, mut count, mut length) = (0u32, 0usize, 1usize);
    while length <= LONGEST {
        code <<= 1;
        let (first, start) = (code, count);
        let mut symbol = 0;
        while symbol <= EOS {
            if LENGTHS[symbol] as usize == length {
                tables.codes[symbol] = code;
                tables.sorted[count] = symbol as u16;
                fill_short(&mut tables.short, code, length, symbol);
                code += 1;
                count += 1;
            }
            symbol += 1;
        }
        tables.lengths[length] = (first, code - first, start as u16);
        length += 1;
    }
    tables
}

/// Every eight bits that begin with this code mean its symbol.
const fn fill_short(short: &mut [(u8, u8); 256], code: u32, length: usize, symbol: usize) {
    if length > 8 {
        return;
    }
    let mut rest = 0;
    while rest < 1 << (8 - length) {
        short[(code << (8 - length)) as usize + rest] = (symbol as u8, length as u8);
        rest += 1;
    }
}

/// The length of the code of `bytes`.
pub(super) fn encoded_len(bytes: impl Iterator<Item = u8>) -> usize {
    let bits: usize = bytes
        .map(|byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the code of `bytes`.
pub(super) fn encode(bytes: impl Iterator<Item = u8>, out: &mut Vec<u8>) {
    // The low `count` bits wait: fewer than 8 before each symbol, so at most 37.
    let (mut bits, mut count) = (0u64, 0u32);
    for byte in bytes {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(TABLES.codes[usize::from(byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // The end is filled with ones, as the end of a string begins.
        out.push((bits << (8 - count)) as u8 | (0xFF >> count));
    }
}

/// Appends what `code` means.
pub(super) fn decode(code: &[u8], out: &mut Vec<u8>) -> Result<(), HpackFlaw> {
    let mut code = code.iter();
    // The high `count` bits wait.
    let (mut bits, mut count) = (0u64, 0u32);
    loop {
        while count <= 56 {
            let Some(byte) = code.next() else { break };
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        let (symbol, length) = TABLES.short[(bits >> 56) as usize];
        let (symbol, length) = match u32::from(length) {
            0 => match long_code(bits, count) {
                Some((EOS, _)) => return Err(HpackFlaw::Huffman),
                Some((symbol, length)) => (symbol as u8, length),
                None => break,
            },
            length if length > count => break,
            length => (symbol, length),
        };
        out.push(symbol);
        bits <<= length;
        count -= length;
    }
    // Fewer than 8 ones fill the last byte.
    let is_padding = count < 8 && bits == !(u64::MAX >> count);
    if is_padding {
        Ok(())
    } else {
        Err(HpackFlaw::Huffman)
    }
}

/// The symbol and length of a code of more than 8 bits; `None` if fewer than its bits are there.
fn long_code(bits: u64, count: u32) -> Option<(usize, u32)> {
    (9..=count.min(LONGEST as u32)).find_map(|length| {
        let (first, codes, start) = TABLES.lengths[length as usize];
        let nth = ((bits >> (64 - length)) as u32).wrapping_sub(first);
        (nth < codes).then(|| {
            let symbol = TABLES.sorted[usize::from(start) + nth as usize];
            (usize::from(symbol), length)
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text.iter().copied(), &mut out);
        assert_eq!(out.len(), encoded_len(text.iter().copied()));
        out
    }

    fn decoded(code: &[u8]) -> Result<Vec<u8>, HpackFlaw> {
        let mut out = Vec::new();
        decode(code, &mut out).map(|()| out)
    }

    #[test]
    fn some_codes_of_appendix_b() {
        for (symbol, code) in [
            (usize::from(b'0'), 0x0),
            (usize::from(b'a'), 0x3),
            (usize::from(b' '), 0x14),
            (usize::from(b':'), 0x5c),
            (usize::from(b'X'), 0xfc),
            (usize::from(b'!'), 0x3f8),
            (0, 0x1ff8),
            (255, 0x03ff_ffee),
            (10, 0x3fff_fffc),
            (EOS, 0x3fff_ffff),
        ] {
            assert_eq!(TABLES.codes[symbol], code, "symbol {symbol}");
        }
    }

    #[test]
    fn vectors_of_appendix_c() {
        let expected = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(encoded(b"www.example.com"), expected);
        assert_eq!(encoded(b"no-cache"), [0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]);
        assert_eq!(decoded(&expected).unwrap(), b"www.example.com");
    }

    #[test]
    fn wrong_ends_are_refused() {
        // Padding with a zero, padding of a whole byte, the end of a string.
        assert_eq!(decoded(&[0x00]), Err(HpackFlaw::Huffman));
        assert_eq!(decoded(&[0xFF]), Err(HpackFlaw::Huffman));
        assert_eq!(decoded(&[0x07, 0xFF]), Err(HpackFlaw::Huffman));
        assert_eq!(decoded(&[0xFF, 0xFF, 0xFF, 0xFF]), Err(HpackFlaw::Huffman));
        assert_eq!(decoded(&[0x07]).unwrap(), b"0");
        assert_eq!(decoded(&[]).unwrap(), b"");
    }

    proptest! {
        #[test]
        fn strings_come_back(text in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decoded(&encoded(&text)).unwrap(), text);
        }

        #[test]
        fn what_is_decoded_is_encoded_the_same(code in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(text) = decoded(&code) {
                prop_assert_eq!(encoded(&text), code);
            }
        }
    }
}
