//! The log through kills, power cuts and damage.

use proptest::prelude::*;

use super::*;
use crate::memory_disk::MemoryDisk;
use crate::record::{HEAD_BYTES, MESSAGE_FIELDS_BYTES, put_message};
use crate::segment::Window;

const SIZES: Sizes = Sizes { segment_bytes: 400, tail_bytes: 0, message_bytes_max: 300 };

/// Appends messages of these lengths, rolling as the broker does.
fn append(log: &mut Log<MemoryDisk>, first: u64, lengths: &[usize]) {
    for (offset, length) in (first..).zip(lengths) {
        if log.is_full() {
            log.write().expect("room");
            log.roll().expect("room");
        }
        let payload = vec![u8::try_from(offset % 251).expect("small"); *length];
        log.append(1000, |out, position| put_message(out, position, (7, offset), 1, 2, &payload));
    }
    log.write().expect("room");
}

/// Opens a disk; the log, what was found, and the offsets of the messages with their positions' ends.
fn opened(disk: &MemoryDisk) -> (Log<MemoryDisk>, Recovery, Vec<(u64, usize, u64)>) {
    let mut seen = Vec::new();
    let (log, recovery) = open(disk.clone(), SIZES, |record, end| {
        let Record::Message { channel: 7, offset, payload, .. } = record else { panic!("{record:?}") };
        assert!(payload.iter().all(|byte| u64::from(*byte) == offset % 251));
        seen.push((offset, payload.len(), end));
    })
    .expect("readable");
    (log, recovery, seen)
}

#[test]
fn a_kill_loses_nothing_that_was_written() {
    let disk = MemoryDisk::default();
    let (mut log, ..) = opened(&disk);
    let lengths: Vec<usize> = (0..40).map(|number| number * 7).collect();
    append(&mut log, 0, &lengths);
    assert!(disk.lengths().len() > 3, "several segments");
    let (mut log, recovery, seen) = opened(&disk.after_kill());
    assert_eq!((recovery.records, recovery.cut_bytes, recovery.segments_set_aside), (40, 0, 0));
    assert_eq!(seen.iter().map(|(_, length, _)| *length).collect::<Vec<_>>(), lengths);
    // It goes on where it was.
    append(&mut log, 40, &[5, 6]);
    let mut window = Window::default();
    for (offset, length, end) in seen {
        let payload = log.read(end - length as u64, length, &mut window).expect("kept");
        assert!(payload.iter().all(|byte| u64::from(*byte) == offset % 251));
    }
}

#[test]
fn a_power_cut_keeps_what_was_flushed() {
    let disk = MemoryDisk::default();
    let (mut log, ..) = opened(&disk);
    append(&mut log, 0, &[100; 9]);
    let until = log.flush(true).expect("something").run().expect("a disk");
    log.flushed_until(until);
    assert_eq!((log.flushed(), log.flush(true).is_none()), (log.written(), true));
    append(&mut log, 9, &[100; 2]);
    for kept in [0, 1, 50, 1000] {
        let (_, recovery, seen) = opened(&disk.after_power_cut(kept));
        assert!(seen.len() >= 9, "{kept}: {recovery:?}");
        assert!(seen.iter().map(|(offset, ..)| *offset).eq(0..seen.len() as u64));
    }
}

#[test]
fn what_follows_damage_is_set_aside() {
    let disk = MemoryDisk::default();
    let (mut log, ..) = opened(&disk);
    append(&mut log, 0, &[100; 12]);
    let bases: Vec<u64> = disk.lengths().into_iter().map(|(base, _)| base).collect();
    assert!(bases.len() >= 3, "{bases:?}");
    disk.change(bases[1], |bytes| bytes[30] ^= 1);
    let (log, recovery, seen) = opened(&disk);
    assert_eq!(recovery.segments_set_aside, bases.len() as u64 - 2);
    assert!(recovery.cut_bytes > 0 && !seen.is_empty());
    assert_eq!(log.end(), bases[1], "its first record was hit");
    let (_, again, _) = opened(&disk);
    assert_eq!((again.cut_bytes, again.segments_set_aside), (0, 0), "it is mended");
}

#[test]
fn a_segment_goes_when_nobody_needs_it() {
    let disk = MemoryDisk::default();
    let (mut log, ..) = opened(&disk);
    append(&mut log, 0, &[100; 12]);
    let before = disk.lengths().len();
    log.release(log.end());
    assert_eq!(disk.lengths().len(), before, "not before the flush");
    let flush = log.flush(false).expect("files to remove");
    assert!(flush.is_commit(), "what is left must be on disk first");
    flush.run().expect("a disk");
    assert_eq!(disk.lengths().len(), 1);
    assert_eq!(log.start(), disk.lengths()[0].0);
}

#[test]
fn a_full_disk_is_an_error() {
    let disk = MemoryDisk::with_room(300);
    let (mut log, _) = open(disk, SIZES, |_, _| {}).expect("room");
    log.append(1000, |out, position| put_message(out, position, (7, 0), 1, 2, &[0; 299]));
    assert_eq!(log.write().expect_err("full").kind(), io::ErrorKind::StorageFull);
}

proptest! {
    /// Whatever the file is cut to, and whatever follows, the messages that are whole come back, and no others.
    #[test]
    fn a_torn_tail_is_cut_off(lengths in prop::collection::vec(0..60_usize, 1..5), cut in 0..400_usize, junk in prop::collection::vec(any::<u8>(), 0..40)) {
        let disk = MemoryDisk::default();
        let (mut log, ..) = opened(&disk);
        append(&mut log, 0, &lengths);
        let cut = 16 + cut;
        let mut whole = 0;
        let mut end = 16;
        for length in &lengths {
            end += HEAD_BYTES + MESSAGE_FIELDS_BYTES + length;
            whole += usize::from(end <= cut);
        }
        disk.change(0, |bytes| {
            bytes.truncate(cut);
            if bytes.len() == cut {
                bytes.extend_from_slice(&junk);
            }
        });
        let (mut log, _, seen) = opened(&disk);
        prop_assert_eq!(seen.len(), whole);
        append(&mut log, whole as u64, &[3]);
        let (_, recovery, seen) = opened(&disk);
        prop_assert_eq!((seen.len(), recovery.cut_bytes), (whole + 1, 0));
    }
}
