//! The golden vectors of messages, against the honest gateway.

use std::io::Write;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::caller::{Caller, Heard, config};
use super::mocks::{Manner, Mocks};
use super::program::Gateway;

/// A text of over 1 MiB is read whole here, up to 10 MiB: the README says so.
const LEFT_OUT: [&str; 1] = ["too-much-text"];

fn cases() -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/messages.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(file).expect(file)).expect("JSON");
    vectors["cases"].as_array().expect("cases").clone()
}

fn session(gateway: &Gateway, when: &Value) -> Caller {
    let mut caller = Caller::connect(gateway, 1);
    match when.as_str().expect("when") {
        "first" => {}
        "ready" => caller.send(&config("deepgram")),
        "without_audio" => caller.send(&json!({"type": "config", "audio": false})),
        other => panic!("a time that this test does not know: {other}"),
    }
    if when != "first" {
        assert_eq!(caller.text()["type"], "ready");
    }
    caller
}

fn bytes(case: &Value, name: &str) -> Option<usize> {
    case[name].as_u64().map(|bytes| usize::try_from(bytes).expect("small"))
}

#[test]
fn each_message_is_answered_as_the_vectors_say() {
    let mocks = Mocks::start(Manner { blocks: 1, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[]);
    let cases = cases();
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in cases.iter().filter(|case| !LEFT_OUT.contains(&case["id"].as_str().expect("id"))) {
        let mut caller = session(&gateway, &case["when"]);
        if let Some(close) = case["close"].as_u64() {
            // Its length alone must end it.
            let length = bytes(case, "binary_bytes").expect("a length") as u64;
            let head = [&[0x82, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat();
            caller.socket.get_mut().write_all(&head).expect("written");
            assert_eq!(caller.end().map(u64::from), Some(close), "{case}");
            continue;
        }
        let message = if let Some(bytes) = bytes(case, "binary_bytes") {
            Message::binary(vec![0; bytes])
        } else if let Some(bytes) = bytes(case, "speak_text_bytes") {
            Message::text(json!({"type": "speak", "text": "x".repeat(bytes)}).to_string())
        } else {
            Message::text(case["text"].as_str().expect("a text"))
        };
        caller.socket.send(message).expect("sent");
        // Something that is always answered, behind it.
        caller.socket.send(Message::text(r#"{"type":"behind"}"#)).expect("sent");
        let kinds = kinds_until_behind(&mut caller);
        let expected: Vec<&str> = case["kind"].as_str().into_iter().collect();
        assert_eq!(kinds, expected, "{case}");
    }
}

/// Kinds of what comes back, but for replies, until the answer to the message behind it.
fn kinds_until_behind(caller: &mut Caller) -> Vec<String> {
    let mut kinds = Vec::new();
    loop {
        match caller.next() {
            Heard::Audio(_) => {}
            Heard::Text(text) if text["type"] == "tts_playback_complete" => {}
            Heard::Text(text) if text["message"].as_str().is_some_and(|told| told.contains("behind")) => return kinds,
            Heard::Text(text) => {
                let kind = if text["type"] == "error" { &text["kind"] } else { &text["type"] };
                kinds.push(kind.as_str().expect("a kind").to_owned());
            }
            Heard::End(code) => panic!("the session ended: {code:?}"),
        }
    }
}
