//! Who may open a session, and the lies about it.

use std::sync::Arc;

use serde_json::json;

use super::caller::Caller;
use super::mocks::{Manner, Mocks};
use super::program::Gateway;

/// Statuses of so many upgrades at once, and the connections.
fn burst(gateway: &Arc<Gateway>, upgrades: usize) -> (Vec<String>, Vec<std::net::TcpStream>) {
    let threads: Vec<_> = (0..upgrades)
        .map(|_| {
            let gateway = Arc::clone(gateway);
            std::thread::spawn(move || gateway.upgrade(""))
        })
        .collect();
    let answers = threads.into_iter().map(|thread| thread.join().expect("an answer"));
    let (streams, heads): (Vec<_>, Vec<String>) = answers.unzip();
    (heads, streams)
}

fn count(heads: &[String], status: &str) -> usize {
    heads.iter().filter(|head| head.starts_with(&format!("HTTP/1.1 {status} "))).count()
}

#[test]
fn limits_are_exact_in_a_burst() {
    for (variable, status, cause) in [
        ("MAX_SESSIONS", "503", "capacity"),
        ("MAX_SESSIONS_PER_ADDRESS", "429", "per_address"),
        ("RATE_LIMIT_RPS", "429", "rate"),
    ] {
        let gateway = Arc::new(Gateway::start("http://127.0.0.1:1", &[(variable, "10")]));
        let (heads, streams) = burst(&gateway, 20);
        // Twenty upgrades that take longer than a second would be let in at a rate of ten.
        assert_eq!((count(&heads, "101"), count(&heads, status)), (10, 10), "{variable}");
        let is_refused = |head: &&String| head.starts_with(&format!("HTTP/1.1 {status}"));
        assert!(heads.iter().filter(is_refused).all(|head| head.to_lowercase().contains("retry-after: ")));
        assert_eq!(gateway.metric(&format!("voice_refused_total{{cause=\"{cause}\"}}")), 10);
        assert_eq!(gateway.metric("voice_sessions"), 10);
        drop(streams);
        gateway.await_metric("voice_sessions", 0);
        if variable != "RATE_LIMIT_RPS" {
            assert!(gateway.upgrade("").1.starts_with("HTTP/1.1 101 "), "the places came back");
        }
    }
}

#[test]
fn a_token_is_asked_for() {
    let mocks = Mocks::start(Manner::default());
    let gateway = Gateway::start(&mocks.url, &[("AUTH_TOKEN", "open")]);
    for (header, status) in
        [("", "401"), ("Authorization: Bearer shut\r\n", "401"), ("Authorization: Bearer open\r\n", "101")]
    {
        let (_, head) = gateway.upgrade(header);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    assert_eq!(
        (gateway.post_speak("{}").status, gateway.get("/").status, gateway.get("/metrics").status),
        (401, 200, 200)
    );
    assert_eq!(gateway.metric("voice_refused_total{cause=\"auth\"}"), 3);
}

#[test]
fn refuse_has_no_reason() {
    for (status, cause) in [("429", "rate"), ("503", "capacity")] {
        let gateway =
            Gateway::start("http://127.0.0.1:1", &[("LIE", "refuse"), ("LIE_STATUS", status), ("LIE_SHARE", "0.5")]);
        let heads: Vec<String> = (0..10).map(|_| gateway.upgrade("").1).collect();
        assert_eq!((count(&heads, "101"), count(&heads, status)), (5, 5));
        assert_eq!(gateway.metric(&format!("voice_refused_total{{cause=\"{cause}\"}}")), 5);
        assert_eq!(gateway.get("/").status, 200);
    }
    let gateway = Gateway::start("http://127.0.0.1:1", &[("LIE", "refuse")]);
    let answer = gateway.post_speak("{}");
    assert_eq!((answer.status, &answer.json()["cause"]), (503, &json!("capacity")));
}

#[test]
fn only_upgrade_says_nothing() {
    let mocks = Mocks::start(Manner::default());
    let gateway = Gateway::start(&mocks.url, &[("LIE", "only_upgrade")]);
    let mut caller = Caller::connect(&gateway, 1);
    caller.send(&super::caller::config("deepgram"));
    caller.say(5);
    caller.speak(1);
    assert!(caller.next_within(std::time::Duration::from_millis(300)).is_none());
    assert_eq!(mocks.asked(), (0, 0));
}
