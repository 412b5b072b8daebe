//! Audio that shows where a part of it belongs.

use crate::marks::{CALLER_BLOCK_BYTES, CallerMark};

/// 20 ms of a reply.
pub(super) const REPLY_BLOCK_BYTES: usize = crate::marks::REPLY_BLOCK_BYTES;

/// A reply that differs from place to place and from seed to seed.
pub(super) fn reply(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Blocks of a caller's audio, from this number, each with its mark.
pub(super) fn caller(vu: u32, from: u32, blocks: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blocks as usize * CALLER_BLOCK_BYTES);
    for block in from..from + blocks {
        let mark = CallerMark {
            vu,
            block,
            speech: true,
            last: block + 1 == from + blocks,
        };
        let begin = bytes.len();
        bytes.extend(mark.bytes());
        let rest = reply(u64::from(block), CALLER_BLOCK_BYTES - mark.bytes().len());
        bytes.extend(rest);
        debug_assert_eq!(bytes.len() - begin, CALLER_BLOCK_BYTES);
    }
    bytes
}

/// Passes when the same audio came; the error says where it differs, and by which blocks of a caller if it has marks.
pub(super) fn must_be_same(seen: &[u8], expected: &[u8]) -> Result<(), String> {
    if seen == expected {
        return Ok(());
    }
    let (came, due) = (seen.len(), expected.len());
    let differs = seen.iter().zip(expected).position(|(a, b)| a != b);
    let first = differs.unwrap_or(came.min(due));
    let blocks = blocks_of(seen).map_or_else(String::new, |blocks| format!("; {blocks}"));
    Err(format!(
        "{came} bytes of audio instead of {due}, the first difference at byte {first}{blocks}"
    ))
}

/// What happened to the blocks, where these are whole ones of a caller.
fn blocks_of(seen: &[u8]) -> Option<String> {
    let blocks = seen.chunks_exact(CALLER_BLOCK_BYTES);
    let marks: Option<Vec<u32>> = blocks
        .map(|block| CallerMark::read(block).map(|mark| mark.block))
        .collect();
    let marks = marks.filter(|marks| !marks.is_empty())?;
    let odd = marks.windows(2).find(|pair| pair[1] != pair[0] + 1)?;
    Some(format!("block {} came after block {}", odd[1], odd[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_by_its_blocks() {
        let sent = caller(1, 1, 5);
        assert_eq!(must_be_same(&sent, &sent), Ok(()));
        let mut doubled = sent.clone();
        doubled.splice(..0, sent[..CALLER_BLOCK_BYTES].iter().copied());
        let told = must_be_same(&doubled, &sent).expect_err("doubled");
        assert!(told.ends_with("block 1 came after block 1"), "{told}");
        let told = must_be_same(&reply(1, 100), &reply(2, 100)).expect_err("another");
        assert!(
            told.starts_with("100 bytes of audio instead of 100, the first"),
            "{told}"
        );
        assert!(must_be_same(&sent[..sent.len() - 1], &sent).is_err());
    }
}
