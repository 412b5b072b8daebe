//! Lies about blocks of audio, both ways.

use super::lying;
use super::mocks::Manner;

const FIFTH: &[(&str, &str)] = &[("LIE_EVERY", "5")];

/// Numbers of the blocks that the provider heard of twelve, and of those that it heard with other samples.
fn heard(lie: &str, expected: usize) -> (Vec<u32>, Vec<u32>) {
    let (mocks, _gateway, mut caller) = lying(lie, FIFTH, Manner::default());
    caller.say(12);
    mocks.await_heard(expected);
    // Another one would come behind it.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let book = mocks.book();
    let changed = book.heard.iter().filter(|(_, is_right)| !is_right).map(|(mark, _)| mark.block).collect();
    (book.heard.iter().map(|(mark, _)| mark.block).collect(), changed)
}

#[test]
fn blocks_of_callers_are_dropped_doubled_swapped_and_changed() {
    assert_eq!(heard("drop_block", 10), (vec![1, 2, 3, 4, 6, 7, 8, 9, 11, 12], vec![]));
    assert_eq!(heard("double_block", 14), (vec![1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10, 11, 12], vec![]));
    assert_eq!(heard("swap_blocks", 12), (vec![1, 2, 3, 4, 6, 5, 7, 8, 9, 11, 10, 12], vec![]));
    assert_eq!(heard("change_block", 12), ((1..=12).collect(), vec![5, 10]));
    assert_eq!(heard("drop_reply_block", 12), ((1..=12).collect(), vec![]));
}

/// Numbers of the blocks that a caller got of a reply of twelve, and of those with other samples.
fn said(lie: &str) -> (Vec<u32>, Vec<u32>) {
    let (_mocks, _gateway, mut caller) = lying(lie, FIFTH, Manner { blocks: 12, ..Manner::default() });
    let reply = caller.reply(1);
    (reply.blocks(), reply.changed())
}

#[test]
fn blocks_of_replies_are_dropped_doubled_swapped_and_changed() {
    assert_eq!(said("drop_reply_block"), (vec![1, 2, 3, 4, 6, 7, 8, 9, 11, 12], vec![]));
    assert_eq!(said("double_reply_block"), (vec![1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10, 11, 12], vec![]));
    assert_eq!(said("swap_reply_blocks"), (vec![1, 2, 3, 4, 6, 5, 7, 8, 9, 11, 10, 12], vec![]));
    assert_eq!(said("change_reply_block"), ((1..=12).collect(), vec![5, 10]));
    assert_eq!(said("drop_block"), ((1..=12).collect(), vec![]));
}
