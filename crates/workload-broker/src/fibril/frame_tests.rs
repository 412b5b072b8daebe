//! Frames in any pieces, and bytes that are none.

use proptest::prelude::*;

use super::super::wire::put_frame;
use super::*;

/// Gives these pieces to a reader; op, request and payload of the frames that come out.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<(u16, u64, Vec<u8>)>, Flaw> {
    let mut reader = FrameReader::new();
    let mut frames = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while let Some((used, frame)) = reader.next(rest)? {
            frames.push((frame.op, frame.request, frame.payload.to_vec()));
            rest = &rest[used..];
        }
    }
    Ok(frames)
}

#[test]
fn a_header_is_refused_as_soon_as_it_is_wrong() {
    let announced = u32::try_from(PAYLOAD_MAX_BYTES + 1).expect("small");
    let length = announced.to_be_bytes();
    assert_eq!(read([&length[..]]), Err(Flaw::TooLong(announced)));
    assert_eq!(read([&[0, 0, 0, 1, 0, 2][..]]), Err(Flaw::Version(2)));
    assert_eq!(read([&[0, 0][..], &[0, 1, 0], &[2]]), Err(Flaw::Version(2)));
    assert_eq!(read([&[0, 0, 0, 1, 0][..]]), Ok(Vec::new()));
}

#[test]
fn memory_of_a_long_frame_is_given_back() {
    let mut out = Vec::new();
    put_frame(&mut out, 40, 1, |out| {
        out.resize(out.len() + 1024 * 1024, 7)
    });
    let mut reader = FrameReader::new();
    let (first, second) = out.split_at(1000);
    assert_eq!(reader.next(first), Ok(None));
    assert!(reader.next(second).expect("good").is_some());
    assert_eq!(reader.next(&[]), Ok(None));
    assert!(reader.held_bytes() <= Fibril::KEPT_BYTES);
}

proptest! {
    #[test]
    fn frames_come_out_whole_wherever_they_are_cut(
        sent in prop::collection::vec(
            (any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..60)), 0..6),
        cuts in prop::collection::vec(0..400_usize, 0..8),
    ) {
        let mut bytes = Vec::new();
        for (op, request, payload) in &sent {
            put_frame(&mut bytes, *op, *request, |out| out.extend_from_slice(payload));
        }
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        prop_assert_eq!(read(pieces), Ok(sent.clone()));
        let single = bytes.chunks(1);
        prop_assert_eq!(read(single), Ok(sent));
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0..100_usize) {
        let (first, second) = bytes.split_at(at.min(bytes.len()));
        let _ = read([first, second]);
    }
}
