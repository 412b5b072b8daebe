//! Unmasking: each byte that a client sends is xor-ed with one of four.

/// Unmasked at a time: four vector registers of the smallest kind, one of the largest.
const BLOCK_BYTES: usize = 64;

/// Unmasks `length` bytes at `from` and puts them at `to`, which lies at or before `from`. The two may overlap.
///
/// So an echo is framed within the buffer that it was read into: the server's header is four bytes shorter than the
/// client's, and the payload moves down over the mask in the same pass that takes the mask off.
///
/// # Panics
/// When `to` lies behind `from`, or the payload is not within `bytes`.
pub fn unmask(bytes: &mut [u8], from: usize, to: usize, length: usize, mask: [u8; 4]) {
    let shift = from - to;
    let bytes = &mut bytes[to..from + length];
    // Widened in a register: as an array it would be stored in small parts and loaded in large ones, which stalls.
    let narrow = u32::from_ne_bytes(mask);
    let wide = u64::from(narrow) << 32 | u64::from(narrow);
    let mut at = 0;
    // A block is loaded as a whole before it is stored, and what is loaded next lies behind all that was stored. So an
    // overlap does no harm, and within a block the compiler makes vector instructions.
    while length - at >= BLOCK_BYTES {
        let mut block: [u8; BLOCK_BYTES] = load(bytes, at + shift);
        for word in block.as_chunks_mut::<8>().0 {
            *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
        }
        bytes[at..at + BLOCK_BYTES].copy_from_slice(&block);
        at += BLOCK_BYTES;
    }
    while length - at >= 8 {
        let word = u64::from_ne_bytes(load(bytes, at + shift)) ^ wide;
        bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        at += 8;
    }
    if length - at >= 4 {
        let word = u32::from_ne_bytes(load(bytes, at + shift)) ^ narrow;
        bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        at += 4;
    }
    for index in at..length {
        bytes[index] = bytes[index + shift] ^ mask[index % 4];
    }
}

#[inline]
fn load<const LENGTH: usize>(bytes: &[u8], at: usize) -> [u8; LENGTH] {
    *bytes[at..].first_chunk().expect("the caller has looked at the length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_length_and_any_shift(
            mask: [u8; 4],
            plain in prop::collection::vec(any::<u8>(), 0..400),
            before in 0..20_usize,
            shift in 0..100_usize,
            behind in 0..9_usize,
        ) {
            let masked: Vec<u8> = plain.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            let from = before + shift;
            let mut bytes = [vec![0xAA; from], masked, vec![0xBB; behind]].concat();
            unmask(&mut bytes, from, before, plain.len(), mask);
            prop_assert_eq!(&bytes[..before], vec![0xAA; before]);
            prop_assert_eq!(&bytes[before..before + plain.len()], plain.as_slice());
            prop_assert_eq!(&bytes[from + plain.len()..], vec![0xBB; behind]);
        }
    }
}
