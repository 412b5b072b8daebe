//! Providers that fail, without a lie.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;

use super::caller::{Caller, config};
use super::mocks::{Manner, Mocks};
use super::program::{Gateway, await_that};

const VOICE: &str = r##"{"text":"#1.1 hello","tts_config":{"provider":"deepgram","model":"aura-2"}}"##;

fn requests(gateway: &Gateway, outcome: &str) -> u64 {
    gateway.metric(&format!("voice_requests_total{{provider=\"deepgram_tts\",outcome=\"{outcome}\"}}"))
}

#[test]
fn a_5xx_is_tried_once_more() {
    let statuses = VecDeque::from([500, 200, 500, 503]);
    let mocks = Mocks::start(Manner { statuses, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[]);
    let mut caller = Caller::start(&gateway, 1);
    assert_eq!(caller.reply(1).blocks().len(), 25);
    caller.speak(2);
    assert_eq!(caller.text()["kind"], "tts_failed");
    assert_eq!(mocks.book().asked.len(), 4);
    assert_eq!((requests(&gateway, "complete"), requests(&gateway, "failed")), (1, 3));
    assert_eq!(gateway.metric("voice_speaks_total{outcome=\"failed\"}"), 1);
    assert_eq!(gateway.metric("voice_errors_total{kind=\"tts_failed\"}"), 1);
}

#[test]
fn other_failures_have_their_own_kinds() {
    let statuses = VecDeque::from([429, 400]);
    let mocks = Mocks::start(Manner { statuses, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[("TTS_FIRST_MS", "300"), ("TTS_GAP_MS", "300")]);
    let mut caller = Caller::start(&gateway, 1);
    for (turn, kind) in [(1, "tts_rate_limited"), (2, "tts_failed")] {
        caller.speak(turn);
        assert_eq!(caller.text()["kind"], kind);
    }
    assert_eq!(mocks.book().asked.len(), 2, "neither is tried again");
    mocks.book().manner.first = Duration::from_secs(2);
    caller.speak(3);
    assert_eq!(caller.text()["kind"], "tts_timeout");
    assert_eq!(gateway.post_speak(VOICE).json()["cause"], "provider_timeout");
    mocks.book().manner = Manner { pace: Duration::from_secs(2), blocks: 2, ..Manner::default() };
    caller.speak(4);
    let played = caller.play();
    assert_eq!((played.blocks(), &played.last_word["kind"]), (vec![1], &json!("tts_timeout")));
}

#[test]
fn what_breaks_off_is_told_and_its_body_cut() {
    let mocks = Mocks::start(Manner { breaks_after: Some(3), ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[]);
    let mut caller = Caller::start(&gateway, 1);
    caller.speak(1);
    let played = caller.play();
    assert_eq!((played.blocks(), &played.last_word["kind"]), (vec![1, 2, 3], &json!("tts_failed")));
    let answer = gateway.post_speak(VOICE);
    assert_eq!((answer.status, answer.is_whole), (200, false));
    assert_eq!(answer.body.len(), 3 * 960);
    assert_eq!(mocks.book().asked.len(), 2, "not tried again");
    mocks.book().manner = Manner { breaks_after: Some(0), ..Manner::default() };
    let answer = gateway.post_speak(VOICE);
    assert_eq!((answer.status, &answer.json()["cause"]), (502, &json!("provider_failed")));
    assert_eq!(mocks.book().asked.len(), 4, "tried again before the first byte");
}

#[test]
fn without_a_provider_to_hear_there_is_no_ready() {
    let mocks = Mocks::start(Manner { refuses_speech: true, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[]);
    let mut caller = Caller::connect(&gateway, 1);
    caller.send(&config("deepgram"));
    assert_eq!(caller.text()["kind"], "stt_failed");
    mocks.book().manner.refuses_speech = false;
    caller.send(&config("deepgram"));
    assert_eq!(caller.text()["type"], "ready", "another config may come");
    await_that(|| mocks.book().listened.len() == 2, "two tries");
}
