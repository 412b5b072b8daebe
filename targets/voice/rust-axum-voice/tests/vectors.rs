//! The golden vectors that all gateways share: one message of a client, and what comes back.

mod support;

use serde_json::{Value, json};
use support::caller::{Caller, config};
use support::client::{BINARY, FINAL, TEXT, header};
use support::providers::{Link, Providers};
use support::{gateway, vectors};

/// A caller to whom `when` applies, and its connection for speech-to-text, if it has one.
async fn caller(when: &Value, port: u16, providers: &mut Providers) -> (Caller, Option<Link>) {
    match when.as_str().expect("when") {
        "first" => (Caller::open(port).await, None),
        "ready" => {
            let (caller, link) = Caller::ready(port, providers).await;
            (caller, Some(link))
        }
        "without_audio" => {
            let mut caller = Caller::open(port).await;
            caller.say(&json!({"type": "config", "audio": false})).await;
            assert_eq!(caller.hear().await["type"], "ready");
            (caller, None)
        }
        other => panic!("{other}"),
    }
}

/// Sends the case's message, or of one that must be refused for its length only the head.
async fn send(caller: &mut Caller, case: &Value) {
    let size = |field: &str| case[field].as_u64();
    if let Some(text) = case["text"].as_str() {
        caller.client.send(TEXT, text.as_bytes()).await;
    } else if let Some(bytes) = size("speak_text_bytes") {
        let text = "x".repeat(usize::try_from(bytes).expect("fits"));
        caller.speak(&text).await;
    } else if case["close"].is_null() {
        let bytes = size("binary_bytes").expect("a message");
        caller.client.send(BINARY, &vec![0; usize::try_from(bytes).expect("fits")]).await;
    } else {
        let (opcode, bytes) = size("binary_bytes")
            .map(|bytes| (BINARY, bytes))
            .or(size("text_bytes").map(|bytes| (TEXT, bytes)))
            .expect("a message");
        let head = [header(FINAL | opcode, 0x80, bytes).as_slice(), &[1, 2, 3, 4]].concat();
        caller.client.write(&head).await;
    }
}

async fn follows(case: &Value, caller: &mut Caller, link: Option<&mut Link>, providers: &mut Providers) {
    if let Some(code) = case["close"].as_u64() {
        assert_eq!(u64::from(caller.client.receive_close().await), code, "{}", case["id"]);
        return;
    }
    match (case["kind"].as_str(), link) {
        (Some("ready"), _) => {
            let with_audio = case["id"] != "no-audio";
            let _link = if with_audio { Some(providers.link().await) } else { None };
            let ready = caller.hear().await;
            assert_eq!(ready["type"], "ready", "{}", case["id"]);
            assert!(ready["stream_id"].as_str().is_some_and(|id| !id.is_empty()), "{ready}");
        }
        (Some(kind), _) => assert_eq!(caller.hear_error().await, kind, "{}", case["id"]),
        (None, Some(link)) => {
            // Nothing came back: what comes next is what a provider says now.
            link.say("next", 0.0, true, true).await;
            assert_eq!(caller.hear().await["transcript"], "next", "{}", case["id"]);
        }
        (None, None) => panic!("{}: nothing to wait for", case["id"]),
    }
}

#[tokio::test]
async fn messages() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let cases = vectors("messages.json");
    assert!(cases.len() > 30);
    for case in cases {
        let (mut caller, mut link) = caller(&case["when"], port, &mut providers).await;
        send(&mut caller, &case).await;
        follows(&case, &mut caller, link.as_mut(), &mut providers).await;
        if case["close"].is_null() {
            goes_on(&case, caller, &mut providers).await;
        }
    }
}

/// After an error the session goes on: a message that is always wrong is still answered, and one without a `config` takes
/// a good one.
async fn goes_on(case: &Value, mut caller: Caller, providers: &mut Providers) {
    caller.say(&json!({"type": "greet"})).await;
    assert_eq!(caller.hear_error().await, "bad_message", "{}", case["id"]);
    if case["when"] == "first" && case["kind"] != "ready" {
        caller.configure(&config(), providers).await;
    }
}
