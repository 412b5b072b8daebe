//! The heads of frames in the bytes of a client, followed as the bytes come in: a message is too large once its length is
//! declared, and how large is too large depends on what it is.

/// A head is at most so long: two bytes, eight of length, four of mask.
const HEAD_BYTES_MAX: usize = 14;

const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const OPCODE: u8 = 0x0F;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const FIRST_CONTROL: u8 = 0x8;

/// Where a client is within its frames. What breaks the protocol is left to tungstenite to find.
#[derive(Debug)]
pub(super) struct Heads {
    text_bytes_max: u64,
    binary_bytes_max: u64,
    head: [u8; HEAD_BYTES_MAX],
    /// Bytes of `head` that are there.
    head_bytes: usize,
    /// Bytes of the frame's payload that are still to come.
    payload_bytes: u64,
    /// What the message may declare, its frames together, and has not yet.
    left_bytes: u64,
    too_large: bool,
}

impl Heads {
    pub(super) fn new(text_bytes_max: usize, binary_bytes_max: usize) -> Self {
        Self {
            text_bytes_max: text_bytes_max as u64,
            binary_bytes_max: binary_bytes_max as u64,
            head: [0; HEAD_BYTES_MAX],
            head_bytes: 0,
            payload_bytes: 0,
            left_bytes: 0,
            too_large: false,
        }
    }

    /// Whether a message has declared that it is too large.
    pub(super) fn too_large(&self) -> bool {
        self.too_large
    }

    /// Takes the next bytes of the client into account.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !self.too_large {
            let skipped = self.payload_bytes.min(bytes.len() as u64);
            self.payload_bytes -= skipped;
            bytes = &bytes[usize::try_from(skipped).expect("as many as there are")..];
            let Some((first, rest)) = bytes.split_first() else { return };
            bytes = rest;
            self.head[self.head_bytes] = *first;
            self.head_bytes += 1;
            if self.head_bytes == self.whole_head_bytes() {
                self.frame_begins();
            }
        }
    }

    /// How long the head is, as far as can be seen.
    fn whole_head_bytes(&self) -> usize {
        let second = if self.head_bytes < 2 { 0 } else { self.head[1] };
        let length = match second & !MASKED {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + length + if second & MASKED == 0 { 0 } else { 4 }
    }

    fn frame_begins(&mut self) {
        self.head_bytes = 0;
        let declared = match self.head[1] & !MASKED {
            126 => u64::from(u16::from_be_bytes([self.head[2], self.head[3]])),
            127 => u64::from_be_bytes(self.head[2..10].try_into().expect("eight bytes")),
            short => u64::from(short),
        };
        self.payload_bytes = declared;
        match self.head[0] & OPCODE {
            FIRST_CONTROL.. => return,
            CONTINUATION => {}
            TEXT => self.left_bytes = self.text_bytes_max,
            _ => self.left_bytes = self.binary_bytes_max,
        }
        self.too_large = declared > self.left_bytes;
        self.left_bytes = if self.head[0] & FINAL == 0 { self.left_bytes.saturating_sub(declared) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a masked frame.
    fn head(first: u8, declared: u64) -> Vec<u8> {
        let mut head = vec![first];
        match declared {
            0..126 => head.push(MASKED | u8::try_from(declared).expect("short")),
            126..65_536 => {
                head.push(MASKED | 126);
                head.extend(u16::try_from(declared).expect("medium").to_be_bytes());
            }
            _ => {
                head.push(MASKED | 127);
                head.extend(declared.to_be_bytes());
            }
        }
        head.extend([1, 2, 3, 4]);
        head
    }

    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frame = head(first, length as u64);
        frame.resize(frame.len() + length, 0x7F);
        frame
    }

    /// However the bytes are cut.
    fn too_large(bytes: &[u8]) -> bool {
        let found: Vec<bool> = [1, 2, 3, 7, bytes.len()]
            .into_iter()
            .map(|piece| {
                let mut heads = Heads::new(300, 1000);
                bytes.chunks(piece).for_each(|bytes| heads.follow(bytes));
                heads.too_large()
            })
            .collect();
        assert!(found.iter().all(|it| *it == found[0]), "{found:?}");
        found[0]
    }

    #[test]
    fn each_kind_has_its_limit() {
        assert!(!too_large(&[frame(0x81, 300), frame(0x82, 1000), frame(0x81, 0), frame(0x82, 125)].concat()));
        for whole in [head(0x81, 301), head(0x82, 1001), head(0x82, 70_000), head(0x82, u64::MAX)] {
            assert!(too_large(&whole));
            assert!(too_large(&[frame(0x82, 1000), whole.clone()].concat()));
            assert!(!too_large(&whole[..whole.len() - 1]));
        }
    }

    #[test]
    fn fragments_count_together() {
        let begun = [frame(0x01, 200), frame(0x89, 100), frame(0x00, 50)].concat();
        assert!(!too_large(&[begun.clone(), frame(0x80, 50), frame(0x81, 300)].concat()));
        assert!(too_large(&[begun, head(0x80, 51)].concat()));
    }
}
