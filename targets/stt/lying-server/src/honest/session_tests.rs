//! The honest session on a simulated clock.

use proptest::prelude::*;

use super::*;

const MS: u64 = 1000;

fn rules() -> Rules {
    Rules {
        flush_interval_us: 1000 * MS,
        start_timeout_us: 10_000 * MS,
        model_delay_us: 75 * MS,
        cpu_passes: 4,
        max_buffer_frames: 500,
    }
}

fn started(jitter_us: u64) -> Session {
    let mut session = Session::new(rules(), jitter_us, 0);
    session.text(0, r#"{"type":"start"}"#).unwrap();
    session
}

/// The synthetic frame of the contract.
fn frame(session: u64, seq: u64) -> Vec<u8> {
    (0..320)
        .map(|i| i16::try_from((seq * 320 + session + i) * 17 % 20_000).unwrap() - 10_000)
        .flat_map(i16::to_le_bytes)
        .collect()
}

fn answer(event: Option<Event>) -> Box<Partial> {
    match event {
        Some(Event::Answer(partial)) => partial,
        other => panic!("expected an answer, not {other:?}"),
    }
}

#[test]
fn one_frame_is_answered_with_the_golden_vector() {
    let mut session = started(250 * MS);
    session.binary(&frame(0, 1)).unwrap();
    assert_eq!(session.due_us(), Some(1250 * MS));
    assert_eq!(session.advance(1250 * MS - 1), None);
    assert_eq!(session.advance(1250 * MS), None);
    assert!(session.in_flight());
    assert_eq!(session.due_us(), Some(1325 * MS));
    let partial = answer(session.advance(1325 * MS));
    assert!(!session.in_flight());
    assert_eq!(
        (
            partial.oldest_frame_seq,
            partial.newest_frame_seq,
            partial.frames
        ),
        (1, 1, 1)
    );
    let json: serde_json::Value = serde_json::from_str(&partial.to_json()).unwrap();
    let expect = serde_json::json!({
        "type": "partial", "oldest_frame_seq": 1, "newest_frame_seq": 1, "frames": 1,
        "rms": partial.rms, "zero_crossings": 7, "checksum": 1_745_339_397, "samples": 1280,
        "transcript": "now", "audio_bytes": 640, "cpu_passes": 4,
        "flush_lateness_ms": 0.0,
    });
    assert_eq!(json, expect);
    assert!((partial.rms - 2_425.502_319_108_353_3).abs() < 1e-9);
}

#[test]
fn a_late_tick_never_moves_the_later_ones() {
    let mut session = started(0);
    session.binary(&frame(0, 1)).unwrap();
    assert_eq!(session.advance(1400 * MS), None);
    let partial = answer(session.advance(1500 * MS));
    assert!((partial.flush_lateness_ms - 400.0).abs() < 1e-9);
    assert_eq!(session.due_us(), Some(2000 * MS));
}

#[test]
fn a_tick_with_a_request_in_flight_leaves_the_audio_for_the_next() {
    let mut session = Session::new(
        Rules {
            model_delay_us: 1500 * MS,
            ..rules()
        },
        0,
        0,
    );
    session.text(0, r#"{"type":"start"}"#).unwrap();
    session.binary(&frame(0, 1)).unwrap();
    assert_eq!(session.advance(1000 * MS), None);
    session.binary(&frame(0, 2)).unwrap();
    assert_eq!(session.advance(2000 * MS), Some(Event::TickDeferred));
    session.binary(&frame(0, 3)).unwrap();
    assert_eq!(answer(session.advance(2500 * MS)).newest_frame_seq, 1);
    assert_eq!(session.advance(3000 * MS), None);
    let second = answer(session.advance(4500 * MS));
    assert_eq!(
        (
            second.oldest_frame_seq,
            second.newest_frame_seq,
            second.frames
        ),
        (2, 3, 2)
    );
}

#[test]
fn an_empty_buffer_does_nothing_at_a_tick() {
    let mut session = started(0);
    assert_eq!(session.advance(5500 * MS), None);
    assert_eq!(session.due_us(), Some(6000 * MS));
}

#[test]
fn violations_have_their_codes() {
    let mut session = Session::new(rules(), 0, 0);
    assert_eq!(session.binary(&[0; 640]), Err(close::PROTOCOL));
    assert_eq!(session.text(0, "{}"), Err(close::PROTOCOL));
    session.text(0, r#"{"type":"start"}"#).unwrap();
    assert_eq!(session.text(0, r#"{"type":"start"}"#), Err(close::PROTOCOL));
    for bytes in [0, 639, 641, 1280] {
        assert_eq!(
            session.binary(&vec![0; bytes]),
            Err(close::UNSUPPORTED_DATA)
        );
    }
    for _ in 0..500 {
        session.binary(&[0; 640]).unwrap();
    }
    assert_eq!(session.binary(&[0; 640]), Err(close::TRY_AGAIN_LATER));
}

#[test]
fn a_start_message_that_does_not_come_closes() {
    let mut session = Session::new(rules(), 0, 7);
    assert_eq!(session.advance(10_000 * MS + 6), None);
    assert_eq!(
        session.advance(10_000 * MS + 7),
        Some(Event::Close(close::PROTOCOL))
    );
}

#[test]
fn draining_answers_what_is_in_flight_and_no_more() {
    let mut session = started(0);
    session.binary(&frame(0, 1)).unwrap();
    assert_eq!(session.advance(1000 * MS), None);
    session.binary(&frame(0, 2)).unwrap();
    session.drain();
    assert_eq!(answer(session.advance(1075 * MS)).newest_frame_seq, 1);
    assert_eq!(session.due_us(), None);
}

proptest! {
    /// Whatever the frames' times and however late the caller is, frames are named once, in order, without a gap.
    #[test]
    fn every_frame_is_named_once_in_order(
        gaps_ms in prop::collection::vec(0_u64..200, 1..120),
        lateness_ms in 0_u64..3000,
        model_delay_ms in 0_u64..2500,
        jitter_ms in 0_u64..1000,
    ) {
        let rules = Rules { model_delay_us: model_delay_ms * MS, cpu_passes: 1, ..rules() };
        let mut session = Session::new(rules, jitter_ms * MS, 0);
        session.text(0, r#"{"type":"start"}"#).unwrap();
        let mut next = 1;
        let mut named = |session: &mut Session, now_us| {
            while let Some(event) = session.advance(now_us) {
                if let Event::Answer(partial) = event {
                    assert_eq!(partial.oldest_frame_seq, next);
                    assert_eq!(partial.newest_frame_seq, next + partial.frames - 1);
                    assert_eq!(partial.audio_bytes, partial.frames * 640);
                    next = partial.newest_frame_seq + 1;
                }
            }
            next
        };
        let (mut now_us, mut looked_us) = (0, 0);
        for gap_ms in &gaps_ms {
            now_us += gap_ms * MS;
            session.binary(&[0; FRAME_BYTES]).unwrap();
            if now_us - looked_us >= lateness_ms * MS {
                looked_us = now_us;
                named(&mut session, now_us);
            }
        }
        let sent = gaps_ms.len() as u64;
        // Two more answers at the most: what is in flight, then the rest.
        for _ in 0..4 {
            now_us += 4000 * MS;
            named(&mut session, now_us);
        }
        prop_assert_eq!(named(&mut session, now_us), sent + 1);
    }
}
