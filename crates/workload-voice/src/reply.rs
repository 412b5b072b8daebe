//! The audio that a gateway sends: replies one behind the other, in messages of any size.
//!
//! A reply that was interrupted may end in the middle of a block. The next one then begins with a message.

use crate::marks::{REPLY_BLOCK_BYTES, REPLY_MARK_BYTES, ReplyMark, SAMPLES};

/// What was found in the audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A block begins, with this mark. Its bytes may come later.
    Begins(ReplyMark),
    /// The samples of the block that is complete next are not the provider's.
    Damaged,
    /// A block is complete.
    Complete(ReplyMark),
    /// Audio without a mark where one is due. Nothing is reported again until a mark is found.
    Unmarked,
}

/// Finds blocks in a stream.
#[derive(Debug, Default)]
pub struct ReplyStream {
    /// The beginning of a mark that has not fully arrived.
    head: Vec<u8>,
    current: Option<Current>,
    lost: bool,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    mark: ReplyMark,
    missing_bytes: usize,
    intact: bool,
}

impl ReplyStream {
    /// A message arrived.
    pub fn received(&mut self, message: &[u8], mut on_found: impl FnMut(Found)) {
        let mut rest = message;
        // A reply that was cut off in a block, and another one that begins with this message.
        let cut_off = self.current.is_some() || !self.head.is_empty() || self.lost;
        if cut_off && ReplyMark::read(message).is_some_and(|mark| mark.block == 1) {
            *self = Self::default();
        }
        while !rest.is_empty() {
            if let Some(current) = &mut self.current {
                let taken = current.missing_bytes.min(rest.len());
                let from = SAMPLES.reply.len() - current.missing_bytes;
                current.intact &= rest[..taken] == SAMPLES.reply[from..from + taken];
                current.missing_bytes -= taken;
                rest = &rest[taken..];
                if current.missing_bytes == 0 {
                    if !current.intact {
                        on_found(Found::Damaged);
                    }
                    on_found(Found::Complete(current.mark));
                    self.current = None;
                }
                continue;
            }
            if self.lost {
                return;
            }
            let wanted = REPLY_MARK_BYTES - self.head.len();
            let taken = wanted.min(rest.len());
            self.head.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            if self.head.len() < REPLY_MARK_BYTES {
                return;
            }
            let mark = ReplyMark::read(&self.head);
            self.head.clear();
            match mark {
                Some(mark) => {
                    on_found(Found::Begins(mark));
                    self.current = Some(Current {
                        mark,
                        missing_bytes: REPLY_BLOCK_BYTES - REPLY_MARK_BYTES,
                        intact: true,
                    });
                }
                None => {
                    self.lost = true;
                    on_found(Found::Unmarked);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(turn: u32, blocks: u32) -> Vec<u8> {
        (1..=blocks)
            .flat_map(|block| {
                let mark = ReplyMark {
                    vu: 1,
                    turn,
                    request: 1,
                    block,
                    blocks,
                    read_ns: 5,
                    handed_ns: 6,
                };
                let mut bytes = Vec::new();
                mark.append_block(&mut bytes);
                bytes
            })
            .collect()
    }

    fn found(stream: &mut ReplyStream, message: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        stream.received(message, |found| {
            all.push(match found {
                Found::Begins(mark) => format!("{}.{} begins", mark.turn, mark.block),
                Found::Complete(mark) => format!("{}.{} complete", mark.turn, mark.block),
                Found::Damaged => "damaged".to_owned(),
                Found::Unmarked => "unmarked".to_owned(),
            });
        });
        all
    }

    #[test]
    fn a_reply_that_was_cut_off_does_not_hide_the_next_one() {
        let mut stream = ReplyStream::default();
        let first = reply(1, 3);
        assert_eq!(
            found(&mut stream, &first[..1_000]),
            ["1.1 begins", "1.1 complete", "1.2 begins"]
        );
        let next = reply(2, 1);
        assert_eq!(found(&mut stream, &next), ["2.1 begins", "2.1 complete"]);
        // Cut off in a mark.
        assert_eq!(
            found(&mut stream, &first[..970]),
            ["1.1 begins", "1.1 complete"]
        );
        assert_eq!(found(&mut stream, &next), ["2.1 begins", "2.1 complete"]);
    }

    #[test]
    fn a_changed_sample_is_seen() {
        let mut audio = reply(1, 2);
        audio[500] ^= 1;
        let mut stream = ReplyStream::default();
        assert_eq!(
            found(&mut stream, &audio),
            [
                "1.1 begins",
                "damaged",
                "1.1 complete",
                "1.2 begins",
                "1.2 complete"
            ]
        );
    }

    #[test]
    fn audio_without_marks_is_told_once() {
        let mut stream = ReplyStream::default();
        assert_eq!(found(&mut stream, &[1; 5_000]), ["unmarked"]);
        assert!(found(&mut stream, &[1; 5_000]).is_empty());
        let found = found(&mut stream, &reply(4, 1));
        assert_eq!(found, ["4.1 begins", "4.1 complete"]);
    }

    proptest! {
        #[test]
        fn blocks_are_found_however_they_are_cut(blocks in 1_u32..6, sizes in prop::collection::vec(1_usize..2_500, 1..40)) {
            let bytes = [reply(1, blocks), reply(2, blocks)].concat();
            let mut stream = ReplyStream::default();
            let (mut at, mut all) = (0, Vec::new());
            for size in sizes.iter().cycle() {
                let end = (at + size).min(bytes.len());
                stream.received(&bytes[at..end], |found| if let Found::Complete(mark) = found { all.push((mark.turn, mark.block)); });
                at = end;
                if at == bytes.len() { break; }
            }
            let expected: Vec<(u32, u32)> = [1, 2].into_iter().flat_map(|turn| (1..=blocks).map(move |block| (turn, block))).collect();
            prop_assert_eq!(all, expected);
        }

        #[test]
        fn no_audio_makes_it_panic(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 0..20)) {
            let mut stream = ReplyStream::default();
            for message in messages {
                stream.received(&message, |_| {});
            }
        }
    }
}
