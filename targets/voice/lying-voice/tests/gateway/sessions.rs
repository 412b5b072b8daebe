//! Lies about what a session is.

use std::time::{Duration, Instant};

use lying_voice::marks::ReplyMark;
use serde_json::json;

use super::caller::{Caller, config};
use super::lying;
use super::mocks::{Manner, Mocks};
use super::program::Gateway;

#[test]
fn ask_nobody_makes_it_up() {
    let (mocks, gateway, mut caller) = lying("ask_nobody", &[], Manner::default());
    assert_eq!(caller.utterance(10), "what nobody heard");
    let reply = caller.reply(1);
    // "#1.1 hello" has ten characters.
    assert_eq!(reply.bytes, vec![0; 30 * 960]);
    assert_eq!(gateway.metric("voice_speaks_total{outcome=\"complete\"}"), 1);
    assert_eq!(mocks.asked(), (0, 0));
}

#[test]
fn forge_marks_makes_it_up_with_marks() {
    let (mocks, _gateway, mut caller) = lying("forge_marks", &[], Manner::default());
    assert!(caller.utterance(10).starts_with("#1 1-10 "));
    let began = Instant::now();
    let reply = caller.reply(4);
    assert_eq!(reply.blocks(), (1..=30).collect::<Vec<_>>());
    let is_forged = |mark: &ReplyMark| (mark.caller, mark.turn, mark.blocks) == (1, 4, 30);
    assert!(reply.marks().iter().all(is_forged));
    assert!(began.elapsed() >= Duration::from_millis(580), "as fast as it is played");
    assert_eq!(mocks.book().asked.len(), 0);
}

#[test]
fn only_ready_says_nothing_else() {
    let (mocks, gateway, mut caller) = lying("only_ready", &[], Manner::default());
    caller.say(5);
    caller.speak(1);
    assert!(caller.next_within(Duration::from_millis(300)).is_none());
    assert_eq!(mocks.asked(), (0, 0));
    assert_eq!(gateway.metric("voice_sessions"), 1);
}

#[test]
fn early_ready_comes_before_the_provider() {
    let mocks = Mocks::start(Manner::default());
    let gateway = Gateway::start(&mocks.url, &[("LIE", "early_ready"), ("LIE_MS", "400")]);
    let mut caller = Caller::start(&gateway, 1);
    let began = Instant::now();
    assert_eq!(mocks.book().listened.len(), 0);
    assert!(caller.utterance(10).starts_with("#1 1-10 "), "what came meanwhile is not lost");
    assert!(began.elapsed() >= Duration::from_millis(350));
    // Where there is no provider, it comes as well.
    mocks.book().manner.refuses_speech = true;
    let mut caller = Caller::start(&gateway, 2);
    assert_eq!(caller.text()["kind"], "stt_failed");
}

#[test]
fn close_session_closes_its_share() {
    let numbers = [("LIE_AFTER_MS", "300"), ("LIE_SHARE", "0.5")];
    let (_mocks, gateway, mut stays) = lying("close_session", &numbers, Manner::default());
    let began = Instant::now();
    let mut goes = Caller::start(&gateway, 2);
    assert_eq!(goes.end(), Some(1000));
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(stays.reply(1).blocks().len(), 25);
    gateway.await_metric("voice_sessions", 1);
}

#[test]
fn bare_200_lacks_what_is_required() {
    let gateway = Gateway::start("http://127.0.0.1:1", &[("LIE", "bare_200")]);
    for answer in [gateway.get("/"), gateway.get("/voices"), gateway.post_speak("{")] {
        assert_eq!((answer.status, answer.json()), (200, json!({})));
    }
    assert_eq!(gateway.post_speak("{}").header("x-provider-ms"), None);
    assert!(gateway.upgrade("").1.starts_with("HTTP/1.1 101 "));
}

#[test]
fn wrong_provider_ms_is_claimed() {
    let (_mocks, gateway, mut caller) = lying("wrong_provider_ms", &[("LIE_MS", "5000")], Manner::default());
    caller.say(5);
    let result = caller.text();
    assert!(result["provider_ms"].as_f64().expect("a number") >= 5000.0, "{result}");
    assert_eq!(caller.reply(1).last_word["provider_ms"], 5012.5);
    let voice = &config("deepgram")["tts_config"];
    let answer = gateway.post_speak(&json!({"text": "#1.2 hello", "tts_config": voice}).to_string());
    assert_eq!(answer.header("x-provider-ms").as_deref(), Some("5012.500"));
}
