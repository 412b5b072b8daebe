//! The Huffman code of HPACK (RFC 7541, appendix B), for reading only: what the server sends is literal.
//!
//! The code is canonical: codes are given out by length, and among equal lengths by symbol. So the lengths say it all.

/// Bits of each symbol's code; the last is the end of the string, which must not occur in one.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const END: u16 = 256;
const BITS_MIN: usize = 5;
const BITS_MAX: usize = 30;

/// The canonical code, by length.
struct Code {
    /// The first code of a length.
    first: [u32; BITS_MAX + 1],
    /// How many codes have that length.
    count: [u32; BITS_MAX + 1],
    /// Where the symbols of that length begin in `symbols`.
    offset: [usize; BITS_MAX + 1],
    /// All symbols in the order of their codes.
    symbols: [u16; LENGTHS.len()],
}

static CODE: Code = build();

const fn build() -> Code {
    let mut code =
        Code { first: [0; BITS_MAX + 1], count: [0; BITS_MAX + 1], offset: [0; BITS_MAX + 1], symbols: [0; 257] };
    let (mut next, mut placed, mut bits) = (0, 0, BITS_MIN);
    while bits <= BITS_MAX {
        next <<= 1;
        code.first[bits] = next;
        code.offset[bits] = placed;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == bits {
                code.symbols[placed] = symbol as u16;
                placed += 1;
                next += 1;
            }
            symbol += 1;
        }
        code.count[bits] = (placed - code.offset[bits]) as u32;
        bits += 1;
    }
    code
}

/// Appends the text that `coded` stands for. `None` if it is not the code of one.
#[must_use]
pub fn decode(coded: &[u8], text: &mut Vec<u8>) -> Option<()> {
    // The bits not decoded yet, from the top, and how many they are.
    let (mut window, mut held) = (0_u64, 0_usize);
    let mut bytes = coded.iter();
    loop {
        while held <= 56
            && let Some(byte) = bytes.next()
        {
            window |= u64::from(*byte) << (56 - held);
            held += 8;
        }
        match symbol(window) {
            Some((END, _)) | None => return None,
            Some((symbol, bits)) if bits <= held => {
                text.push(symbol.to_le_bytes()[0]);
                window <<= bits;
                held -= bits;
            }
            // What is left is no symbol: it must be the beginning of the end's code, shorter than a byte. `window` is
            // zero behind it, so a whole symbol may have been "found" that reads beyond.
            Some(_) => {
                let all_ones = held == 0 || window >> (64 - held) == (1 << held) - 1;
                return (held < 8 && all_ones).then_some(());
            }
        }
        if held == 0 && bytes.len() == 0 {
            return Some(());
        }
    }
}

/// The symbol at the top of `window`, and the length of its code.
fn symbol(window: u64) -> Option<(u16, usize)> {
    for bits in BITS_MIN..=BITS_MAX {
        let code = u32::try_from(window >> (64 - bits)).ok()?;
        let index = code.wrapping_sub(CODE.first[bits]);
        if index < CODE.count[bits] {
            return Some((CODE.symbols[CODE.offset[bits] + index as usize], bits));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a sender does; only the tests send.
    fn encode(text: &[u8]) -> Vec<u8> {
        let mut bits = Vec::new();
        for byte in text {
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let symbols = &CODE.symbols[CODE.offset[length]..][..CODE.count[length] as usize];
            let index = symbols.iter().position(|symbol| *symbol == u16::from(*byte)).expect("every byte has a code");
            let code = CODE.first[length] + u32::try_from(index).expect("small");
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        while bits.len() % 8 != 0 {
            bits.push(true);
        }
        bits.chunks(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit))).collect()
    }

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(coded, &mut text).map(|()| text)
    }

    #[test]
    fn the_code_is_complete() {
        // Kraft's equality: no bit pattern is left without a symbol, and none has two.
        let space: u64 = LENGTHS.iter().map(|bits| 1 << (30 - bits)).sum();
        assert_eq!(space, 1 << 30);
    }

    #[test]
    fn examples_of_the_rfc() {
        // RFC 7541, C.4.1 and C.6.1.
        let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&host).as_deref(), Some(&b"www.example.com"[..]));
        assert_eq!(decoded(&[0x64, 0x02]).as_deref(), Some(&b"302"[..]));
        let date = [
            0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81, 0x66, 0xe0, 0x82,
            0xa6, 0x2d, 0x1b, 0xff,
        ];
        assert_eq!(decoded(&date).as_deref(), Some(&b"Mon, 21 Oct 2013 20:13:21 GMT"[..]));
        assert_eq!(decoded(&[]).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn bad_padding_is_refused() {
        assert_eq!(decoded(&[0b0001_1000]), None, "zeros behind 'a'");
        assert_eq!(decoded(&[0b0001_1111]).as_deref(), Some(&b"a"[..]));
        assert_eq!(decoded(&[0b0001_1111, 0xff]), None, "a whole byte of padding");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), None, "the end within the string");
    }

    proptest! {
        #[test]
        fn what_was_coded_is_decoded(text: Vec<u8>) {
            prop_assert_eq!(decoded(&encode(&text)), Some(text));
        }

        #[test]
        fn no_input_is_too_strange(coded: Vec<u8>) {
            // Whatever decodes is the code of its text: nothing has two codes.
            if let Some(text) = decoded(&coded) {
                prop_assert_eq!(encode(&text), coded);
            }
        }
    }
}
