//! Lies about blocks of audio, on their way to the provider that hears or to a caller.

use bytes::{Bytes, BytesMut};

use super::{Lie, Lies};
use crate::marks;

/// What a block is, one way or the other.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    block_bytes: usize,
    mark_bytes: usize,
    drop: Lie,
    double: Lie,
    swap: Lie,
    change: Lie,
}

/// Of a caller.
pub const OF_CALLER: Format = Format {
    block_bytes: marks::CALLER_BLOCK_BYTES,
    mark_bytes: marks::CALLER_MARK_BYTES,
    drop: Lie::DropBlock,
    double: Lie::DoubleBlock,
    swap: Lie::SwapBlocks,
    change: Lie::ChangeBlock,
};

/// Of a reply.
pub const OF_REPLY: Format = Format {
    block_bytes: marks::REPLY_BLOCK_BYTES,
    mark_bytes: marks::REPLY_MARK_BYTES,
    drop: Lie::DropReplyBlock,
    double: Lie::DoubleReplyBlock,
    swap: Lie::SwapReplyBlocks,
    change: Lie::ChangeReplyBlock,
};

/// Cuts audio into whole blocks, however it comes.
#[derive(Debug)]
pub struct Cutter {
    block_bytes: usize,
    part: BytesMut,
}

impl Cutter {
    /// Nothing came yet.
    #[must_use]
    pub fn new(block_bytes: usize) -> Self {
        Self { block_bytes, part: BytesMut::new() }
    }

    /// The blocks that are whole with this audio.
    pub fn cut(&mut self, audio: &[u8]) -> Vec<Bytes> {
        self.part.extend_from_slice(audio);
        let whole = self.part.len() / self.block_bytes;
        (0..whole).map(|_| self.part.split_to(self.block_bytes).freeze()).collect()
    }

    /// What is left at the end.
    pub fn rest(&mut self) -> Bytes {
        self.part.split().freeze()
    }
}

/// The lie about the blocks of one stream.
#[derive(Debug)]
pub struct Blocks {
    format: Format,
    cutter: Cutter,
    /// The block that follows its successor.
    held: Option<Bytes>,
}

impl Blocks {
    /// A stream in this format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, cutter: Cutter::new(format.block_bytes), held: None }
    }

    /// Whether there is a lie about this stream.
    #[must_use]
    pub fn concerns(&self, lies: &Lies) -> bool {
        let Format { drop, double, swap, change, .. } = self.format;
        [drop, double, swap, change].contains(&lies.plan.lie)
    }

    /// What goes out when this comes in. Without a lie the same, uncut.
    pub fn pass(&mut self, lies: &Lies, audio: Bytes) -> Vec<Bytes> {
        if !self.concerns(lies) {
            return vec![audio];
        }
        let mut out = Vec::new();
        for block in self.cutter.cut(&audio) {
            self.block(lies, block, &mut out);
        }
        out
    }

    /// What goes out at the stream's end.
    pub fn end(&mut self) -> Vec<Bytes> {
        let rest = Some(self.cutter.rest()).filter(|rest| !rest.is_empty());
        [self.held.take(), rest].into_iter().flatten().collect()
    }

    fn block(&mut self, lies: &Lies, block: Bytes, out: &mut Vec<Bytes>) {
        let Format { mark_bytes, drop, double, swap, change, .. } = self.format;
        let struck = lies.strikes(lies.plan.lie);
        match lies.plan.lie {
            lie if !struck => {
                debug_assert!([drop, double, swap, change].contains(&lie));
                out.push(block);
            }
            lie if lie == drop => return,
            lie if lie == double => out.extend([block.clone(), block]),
            lie if lie == change => out.push(changed(&block, mark_bytes)),
            // Held until the next one has gone; two that are struck in a row change places.
            _ if self.held.is_none() => {
                self.held = Some(block);
                return;
            }
            _ => out.push(block),
        }
        out.extend(self.held.take());
    }
}

/// The block with other samples behind the same mark.
fn changed(block: &[u8], mark_bytes: usize) -> Bytes {
    let other = |(at, byte): (usize, &u8)| if at < mark_bytes { *byte } else { byte ^ 0x55 };
    block.iter().enumerate().map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::Plan;

    /// Numbers of the blocks that come out when blocks 1 to 7 go in, cut anywhere; every third is struck.
    fn out(lie: Lie, format: Format) -> Vec<u8> {
        let mut plan = Plan::of(lie);
        plan.numbers.every = plan.numbers.every.map(|_| 3);
        let lies = Lies::new(plan);
        let audio: Vec<u8> = (1..=7).flat_map(|number| vec![number; format.block_bytes]).collect();
        let mut blocks = Blocks::new(format);
        let mut out = Vec::new();
        for part in audio.chunks(1000) {
            out.extend(blocks.pass(&lies, Bytes::copy_from_slice(part)));
        }
        out.extend(blocks.end());
        let out = out.concat();
        assert_eq!(out.len() % format.block_bytes, 0);
        out.chunks(format.block_bytes).map(|block| block[0]).collect()
    }

    #[test]
    fn every_third_block_is_struck() {
        for format in [OF_CALLER, OF_REPLY] {
            assert_eq!(out(Lie::None, format), [1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(out(format.drop, format), [1, 2, 4, 5, 7]);
            assert_eq!(out(format.double, format), [1, 2, 3, 3, 4, 5, 6, 6, 7]);
            assert_eq!(out(format.swap, format), [1, 2, 4, 3, 5, 7, 6]);
            assert_eq!(out(format.change, format), [1, 2, 3, 4, 5, 6, 7]);
        }
        assert_eq!(out(Lie::DropBlock, OF_REPLY), [1, 2, 3, 4, 5, 6, 7], "a lie about the other way");
    }

    #[test]
    fn a_changed_block_keeps_its_mark_and_length() {
        let block = [7; 960];
        let changed = changed(&block, 40);
        assert_eq!(changed.len(), 960);
        assert_eq!(changed[..40], block[..40]);
        assert!(changed[40..].iter().all(|byte| *byte != 7));
    }

    #[test]
    fn what_is_held_at_the_end_goes_out() {
        let mut plan = Plan::of(Lie::SwapBlocks);
        plan.numbers.every = Some(1);
        let lies = Lies::new(plan);
        let mut blocks = Blocks::new(OF_CALLER);
        assert!(blocks.pass(&lies, Bytes::from(vec![1; 640])).is_empty());
        assert_eq!(blocks.end(), [Bytes::from(vec![1; 640])]);
    }
}
