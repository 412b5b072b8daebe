//! Lies about results.

use std::time::{Duration, Instant};

use lying_voice::marks::now_ns;
use serde_json::json;

use super::lying;
use super::mocks::Manner;

const SECOND: &[(&str, &str)] = &[("LIE_EVERY", "2")];

#[test]
fn late_results_are_as_late_as_was_said() {
    let (_mocks, _gateway, mut caller) = lying("late_results", &[("LIE_MS", "200")], Manner::default());
    let mut late = Vec::new();
    for _ in 0..10 {
        let transcript = caller.utterance(5);
        let came_ns = now_ns();
        let handed_ns: u64 = transcript.split(' ').nth(3).and_then(|word| word.parse().ok()).expect("a mark");
        late.push(Duration::from_nanos(came_ns - handed_ns));
    }
    late.sort_unstable();
    println!("{late:?}");
    assert!(late[0] >= Duration::from_millis(200), "{late:?}");
    // The way from the mock is in it, and the caller's.
    assert!(late[0] < Duration::from_millis(203), "{late:?}");
    let began = Instant::now();
    caller.reply(1);
    assert!(began.elapsed() < Duration::from_millis(200), "replies are not late");
}

#[test]
fn slow_down_is_of_the_open_sessions() {
    let (_mocks, gateway, mut caller) = lying("slow_down", &[("LIE_US", "100000")], Manner::default());
    let time = |caller: &mut super::Caller| {
        let began = Instant::now();
        caller.utterance(5);
        caller.reply(1);
        began.elapsed()
    };
    let alone = time(&mut caller);
    let _others: Vec<_> = (2..=4).map(|number| super::Caller::start(&gateway, number)).collect();
    let with_three = time(&mut caller);
    // A result and a reply, 100 ms late each for each session.
    assert!(alone >= Duration::from_millis(200) && alone < Duration::from_millis(700), "{alone:?}");
    assert!(with_three >= Duration::from_millis(800), "{with_three:?}");
}

#[test]
fn skip_result_skips_every_second() {
    let (_mocks, gateway, mut caller) = lying("skip_result", SECOND, Manner::default());
    caller.say(5);
    caller.say(5);
    let transcripts = [caller.utterance(5), caller.text()["transcript"].as_str().expect("text").to_owned()];
    assert!(transcripts[0].starts_with("#1 1-5 ") && transcripts[1].starts_with("#1 11-15 "), "{transcripts:?}");
    assert!(caller.next_within(Duration::from_millis(200)).is_none());
    assert_eq!(gateway.metric("voice_results_total{final=\"true\"}"), 2);
}

#[test]
fn double_result_comes_twice() {
    let (_mocks, _gateway, mut caller) = lying("double_result", SECOND, Manner::default());
    let mut transcripts = vec![caller.utterance(5), caller.utterance(5)];
    transcripts.push(caller.text()["transcript"].as_str().expect("text").to_owned());
    assert_ne!(transcripts[0], transcripts[1]);
    assert_eq!(transcripts[1], transcripts[2]);
    assert!(caller.next_within(Duration::from_millis(200)).is_none());
}

#[test]
fn bare_result_lacks_its_transcript() {
    let (_mocks, _gateway, mut caller) = lying("bare_result", SECOND, Manner::default());
    caller.utterance(5);
    caller.say(5);
    assert_eq!(caller.text(), json!({"type": "stt_result", "is_final": true, "is_speech_final": true}));
}

#[test]
fn lie_in_metrics_counts_too_many() {
    let (_mocks, gateway, mut caller) = lying("lie_in_metrics", SECOND, Manner::default());
    for _ in 0..4 {
        caller.utterance(5);
    }
    assert_eq!(gateway.metric("voice_results_total{final=\"true\"}"), 6);
    assert_eq!(gateway.metric("voice_audio_bytes_total{direction=\"in\"}"), 20 * 640, "all else is true");
}
