//! Lies about replies.

use std::cell::Cell;
use std::time::{Duration, Instant};

use lying_voice::marks::now_ns;
use serde_json::json;

use super::caller::{Caller, Heard};
use super::lying;
use super::mocks::Manner;
use super::program::await_that;

const SECOND: &[(&str, &str)] = &[("LIE_EVERY", "2")];
const PACE: Duration = Duration::from_millis(10);

#[test]
fn late_replies_are_as_late_as_was_said() {
    let (_mocks, gateway, mut caller) = lying("late_replies", &[("LIE_MS", "200")], Manner::default());
    let mut late = Vec::new();
    for turn in 1..=10 {
        caller.speak(turn);
        assert!(matches!(caller.next(), Heard::Audio(_)));
        let came_ns = now_ns();
        let rest = caller.play();
        assert_eq!(rest.bytes.len(), 24 * 960);
        late.push(Duration::from_nanos(came_ns - rest.marks()[0].read_ns));
    }
    late.sort_unstable();
    println!("{late:?}");
    assert!(late[0] >= Duration::from_millis(200), "{late:?}");
    // The way from the mock is in it, and the caller's.
    assert!(late[0] < Duration::from_millis(203), "{late:?}");
    let began = Instant::now();
    caller.utterance(5);
    assert!(began.elapsed() < Duration::from_millis(200), "results are not late");
    let voice = json!({"provider": "deepgram", "model": "aura-2"});
    let began = Instant::now();
    let answer = gateway.post_speak(&json!({"text": "#1.11 hello", "tts_config": voice}).to_string());
    assert!(answer.is_whole && answer.body.len() == 25 * 960);
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn a_clear_stops_what_is_late() {
    let (_mocks, gateway, mut caller) = lying("late_replies", &[("LIE_MS", "300")], Manner::default());
    caller.speak(1);
    gateway.await_metric("voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"}", 1);
    caller.clear();
    assert!(caller.next_within(Duration::from_millis(600)).is_none());
    assert_eq!(gateway.metric("voice_speaks_total{outcome=\"dropped\"}"), 1);
    assert_eq!(caller.reply(2).blocks().len(), 25);
}

#[test]
fn a_gap_is_in_every_second_reply() {
    let numbers = [("LIE_EVERY", "2"), ("LIE_MS", "400")];
    let (_mocks, _gateway, mut caller) = lying("gap", &numbers, Manner { pace: PACE, ..Manner::default() });
    let longest = |caller: &mut Caller, turn| {
        let reply = caller.reply(turn);
        assert_eq!(reply.blocks(), (1..=25).collect::<Vec<_>>());
        let waits = reply.came.windows(2).map(|two| two[1] - two[0]);
        waits.enumerate().max_by_key(|(_, wait)| *wait).expect("two blocks")
    };
    assert!(longest(&mut caller, 1).1 < Duration::from_millis(300));
    let (after, wait) = longest(&mut caller, 2);
    assert!(wait >= Duration::from_millis(350), "{wait:?}");
    assert_eq!(after, 9, "behind the tenth block");
}

#[test]
fn a_cut_reply_is_told_to_be_complete() {
    let (_mocks, gateway, mut caller) = lying("cut_reply", SECOND, Manner::default());
    assert_eq!(caller.reply(1).blocks().len(), 25);
    assert_eq!(caller.reply(2).blocks(), (1..=10).collect::<Vec<_>>());
    let voice = json!({"provider": "deepgram", "model": "aura-2"});
    let speak = |turn: u32| {
        let text = format!("#1.{turn} hello");
        gateway.post_speak(&json!({"text": text, "tts_config": voice}).to_string())
    };
    let (whole, cut) = (speak(3), speak(4));
    assert!(whole.is_whole && cut.is_whole, "no body is cut off");
    assert_eq!((whole.body.len(), cut.body.len()), (25 * 960, 10 * 960));
}

#[test]
fn reply_at_end_waits_for_the_provider_to_end() {
    let (_mocks, _gateway, mut caller) = lying("reply_at_end", &[], Manner { pace: PACE, ..Manner::default() });
    let began = Instant::now();
    let reply = caller.reply(1);
    assert_eq!(reply.blocks(), (1..=25).collect::<Vec<_>>());
    assert!(reply.came[0] - began >= Duration::from_millis(250), "{:?}", reply.came[0] - began);
}

#[test]
fn others_reply_goes_to_another_caller() {
    let (_mocks, gateway, mut first) = lying("others_reply", SECOND, Manner::default());
    let mut second = Caller::start(&gateway, 2);
    assert_eq!(first.reply(1).blocks().len(), 25);
    assert!(first.reply(2).bytes.is_empty(), "another has it");
    let mut got = 0;
    while got < 25 * 960 {
        match second.next() {
            Heard::Audio(audio) => {
                assert_eq!(audio.len(), 960, "whole blocks");
                got += audio.len();
            }
            other => panic!("{other:?}"),
        }
    }
    let reply = second.reply(1);
    assert!(reply.marks().iter().all(|mark| mark.caller == 2));
}

#[test]
fn with_nobody_else_a_reply_goes_where_it_belongs() {
    let (_mocks, _gateway, mut only) = lying("others_reply", &[("LIE_EVERY", "1")], Manner::default());
    assert_eq!(only.reply(1).blocks().len(), 25);
}

/// More than the kernel keeps of a reply, whatever the buffers are: 4 MiB in the gateway's socket.
const LONG_BLOCKS: u32 = 8000;

/// One caller asks for a long reply and does not read it. Returns whether another one's reply came meanwhile, and reads both.
fn another_is_heard(lie: &str) -> bool {
    let (mocks, gateway, mut slow) = lying(lie, &[], Manner { blocks: LONG_BLOCKS, ..Manner::default() });
    let mut other = Caller::start(&gateway, 2);
    slow.speak(1);
    let written = || gateway.metric("voice_audio_bytes_total{direction=\"out\"}");
    let before = Cell::new(0);
    let is_full = || {
        std::thread::sleep(Duration::from_millis(100));
        let now = written();
        before.replace(now) == now && now > 0
    };
    await_that(is_full, "its socket is full");
    assert!(written() < u64::from(LONG_BLOCKS) * 960);
    mocks.book().manner.blocks = 25;
    other.speak(1);
    let first = other.next_within(Duration::from_millis(500));
    let is_heard = first.is_some();
    let mut got = 0;
    if let Some(Heard::Audio(audio)) = first {
        got = audio.len();
    }
    // So short a reply fits into the other's socket: nobody has to read it for the first one to go on.
    assert_eq!(slow.play().bytes.len(), usize::try_from(LONG_BLOCKS).expect("fits") * 960);
    assert_eq!(got + other.play().bytes.len(), 25 * 960, "nothing is lost");
    is_heard
}

#[test]
fn a_shared_writer_lets_everybody_wait_for_one_who_does_not_read() {
    assert!(!another_is_heard("shared_writer"));
    assert!(another_is_heard("none"));
}

#[test]
fn false_error_is_of_a_reply_that_came() {
    let (mocks, gateway, mut caller) = lying("false_error", SECOND, Manner { pace: PACE, ..Manner::default() });
    assert_eq!(caller.reply(1).blocks().len(), 25);
    caller.speak(2);
    let played = caller.play();
    assert_eq!((played.bytes.len(), &played.last_word["kind"]), (0, &json!("tts_failed")));
    await_that(|| mocks.book().completed == 2, "the provider was heard out");
    assert_eq!(gateway.metric("voice_speaks_total{outcome=\"failed\"}"), 1);
    gateway.await_metric("voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"}", 2);
}

#[test]
fn ignore_clear_goes_on_for_a_while() {
    let manner = Manner { pace: PACE, blocks: 300, ..Manner::default() };
    let (mocks, gateway, mut caller) = lying("ignore_clear", &[("LIE_MS", "500")], manner);
    caller.speak(1);
    assert!(matches!(caller.next(), Heard::Audio(_)));
    let cleared = Instant::now();
    caller.clear();
    let mut last = cleared;
    while let Some(Heard::Audio(_)) = caller.next_within(Duration::from_millis(400)) {
        last = Instant::now();
    }
    let went_on = last - cleared;
    assert!(went_on >= Duration::from_millis(400) && went_on < Duration::from_millis(2000), "{went_on:?}");
    await_that(|| mocks.book().cancelled == 1, "a cancelled request");
    assert_eq!(gateway.metric("voice_speaks_total{outcome=\"dropped\"}"), 1);
}

#[test]
fn ask_twice_is_seen_by_the_provider_alone() {
    let (mocks, gateway, mut caller) = lying("ask_twice", SECOND, Manner::default());
    caller.reply(1);
    assert_eq!(caller.reply(2).marks()[0].request, 2, "the first of the two is heard");
    await_that(|| mocks.book().completed == 3, "three replies");
    let asked = mocks.book().asked.clone();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1].body, asked[2].body);
    assert_eq!(gateway.metric("voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"}"), 2);
}
