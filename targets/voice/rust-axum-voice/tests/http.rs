//! The HTTP surface: routes, voices, speech, admission.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::caller::Caller;
use support::client::{CLOSE, UPGRADE, connect, http, patiently, request, upgrade};
use support::providers::Providers;
use support::{audio, gateway, metric};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The head and the body of an answer.
fn split(answer: &str) -> (&str, &str) {
    answer.split_once("\r\n\r\n").expect("a head")
}

fn cause(answer: &str) -> String {
    let body: Value = serde_json::from_str(split(answer).1).unwrap_or_else(|error| panic!("{error}: {answer}"));
    assert!(body["error"].is_string(), "{answer}");
    body["cause"].as_str().expect("a cause").to_owned()
}

/// A `POST /speak` on a connection of its own.
async fn post(port: u16, headers: &str, body: &str) -> Vec<u8> {
    let mut socket = connect(port).await;
    let length = body.len();
    let head = format!(
        "POST /speak HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    socket.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.expect("written");
    let mut answer = Vec::new();
    patiently(socket.read_to_end(&mut answer)).await.expect("an answer");
    answer
}

async fn post_text(port: u16, body: &Value) -> String {
    String::from_utf8(post(port, "", &body.to_string()).await).expect("text")
}

fn hello() -> Value {
    json!({"text": "hello", "tts_config": {"provider": "deepgram", "model": "aura-2"}})
}

#[tokio::test]
async fn routes() {
    let (port, gateway) = gateway(1, &[]).await;
    for (request, status) in [
        ("GET /", 200),
        ("GET /metrics", 200),
        ("GET /ws", 426),
        ("POST /ws", 405),
        ("POST /", 405),
        ("GET /speak", 405),
        ("DELETE /voices", 405),
        ("GET /ws/", 404),
        ("GET /else", 404),
    ] {
        let answer = http(port, request, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        if status >= 400 {
            cause(&answer);
        }
    }
    assert_eq!(split(&http(port, "GET /", "").await).1, r#"{"status":"OK"}"#);
    let (answer, _) = request(connect(port).await, &UPGRADE.replace("Version: 13", "Version: 12"), b"").await;
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    gateway.drain.begin(std::time::Instant::now() + Duration::from_secs(1));
    let answer = http(port, "GET /", "").await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with(r#"{"status":"DRAINING"}"#), "{answer}");
    let (answer, _) = upgrade(port, "").await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1\r\n"), "{answer}");
    let answer = post_text(port, &hello()).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1\r\n"), "{answer}");
    assert_eq!(cause(&answer), "draining");
    metric(port, "voice_refused_total{cause=\"draining\"} 2").await;
}

#[tokio::test]
async fn voices_are_asked_for_once() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let asked = tokio::spawn(async move { http(port, "GET /voices", "").await });
    let exchange = providers.speech().await;
    assert_eq!(exchange.target(), "/v1/voices");
    exchange.play(br#"{"voices":[{"voice_id":"v1","name":"Vera","labels":{"language":"en"}}]}"#).await;
    let first = asked.await.expect("an answer");
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    let list: Value = serde_json::from_str(split(&first).1).expect("JSON");
    let vera = json!({"id": "v1", "name": "Vera", "language": "en", "gender": "", "accent": "", "sample": ""});
    assert!(list["elevenlabs"].as_array().expect("a list").contains(&vera), "{list}");
    assert_eq!(split(&http(port, "GET /voices", "").await).1, split(&first).1);
    providers.no_speech(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn speech_over_http_comes_as_it_comes() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let body = hello().to_string();
    let mut socket = connect(port).await;
    let head = format!("POST /speak HTTP/1.1\r\nHost: gateway\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(head.as_bytes()).await.expect("written");
    let mut speech = providers.speech().await;
    assert_eq!(speech.json(), json!({"text": "hello"}));
    speech.begin("x-mock-provider-ms: 7.5\r\n").await;
    speech.send(&audio(1, 960)).await;
    let mut answer = vec![0; 4096];
    let mut read = 0;
    while !answer[..read].ends_with(&[audio(1, 960).as_slice(), b"\r\n"].concat()) {
        read += patiently(socket.read(&mut answer[read..])).await.expect("the first block");
    }
    let head = String::from_utf8_lossy(&answer[..read]).into_owned();
    for field in ["content-type: audio/pcm", "x-audio-format: linear16", "x-sample-rate: 24000", "x-provider-ms: 7.5"] {
        assert!(head.contains(field), "{field} is not in {head}");
    }
    speech.send(&audio(2, 960)).await;
    speech.end().await;
    let mut rest = vec![0; 960 + 5 + 2 + 5];
    patiently(socket.read_exact(&mut rest)).await.expect("the rest");
    assert!(rest.to_ascii_lowercase().starts_with(b"3c0\r\n"));
    assert!(rest[5..] == [audio(2, 960).as_slice(), b"\r\n0\r\n\r\n"].concat());
    metric(port, "voice_speaks_total{outcome=\"complete\"} 1").await;
    metric(port, "voice_audio_bytes_total{direction=\"out\"} 1920").await;
}

#[tokio::test]
async fn speech_over_http_that_breaks_off_is_cut() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("TTS_GAP_MS", "100")]).await;
    for stalls in [false, true] {
        let asked = tokio::spawn(async move { post(port, "", &hello().to_string()).await });
        let mut speech = providers.speech().await;
        speech.begin("").await;
        speech.send(&audio(1, 960)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        if stalls {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        drop(speech);
        let answer = asked.await.expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
        assert!(!answer.ends_with(b"0\r\n\r\n"), "the body has an end");
    }
    metric(port, "voice_speaks_total{outcome=\"failed\"} 2").await;
}

#[tokio::test]
async fn errors_of_speech_over_http() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("TTS_FIRST_MS", "200")]).await;
    let config = json!({"provider": "deepgram", "model": "aura-2"});
    for (body, status, expected) in [
        (json!("hello"), 400, "bad_field"),
        (json!({"tts_config": config}), 400, "bad_field"),
        (json!({"text": 7, "tts_config": config}), 400, "bad_field"),
        (json!({"text": "hello"}), 400, "bad_field"),
        (json!({"text": "hello", "tts_config": {"provider": "oracle", "model": "m"}}), 400, "bad_field"),
        (json!({"text": "", "tts_config": config}), 400, "empty_text"),
        (json!({"text": "x".repeat(102_401), "tts_config": config}), 413, "too_large"),
    ] {
        let answer = post_text(port, &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert_eq!(cause(&answer), expected);
    }
    let answer = String::from_utf8(post(port, "", "{").await).expect("text");
    assert_eq!(cause(&answer), "bad_json");

    let asked = tokio::spawn(async move { post_text(port, &hello()).await });
    providers.speech().await.answer(500, "").await;
    providers.speech().await.answer(500, "").await;
    let answer = asked.await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(cause(&answer), "provider_failed");
    let asked = tokio::spawn(async move { post_text(port, &hello()).await });
    let silent = providers.speech().await;
    let answer = asked.await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert_eq!(cause(&answer), "provider_timeout");
    silent.expect_cancelled().await;
}

#[tokio::test]
async fn a_burst_gets_exactly_what_there_is() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("MAX_SESSIONS", "10")]).await;
    let asked: Vec<_> = (0..20).map(|_| tokio::spawn(upgrade(port, ""))).collect();
    let mut sockets = Vec::new();
    let mut refused = 0;
    for asked in asked {
        let (head, mut socket) = asked.await.expect("an answer");
        if head.starts_with("HTTP/1.1 101 ") {
            sockets.push(socket);
            continue;
        }
        assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: 1\r\n"), "{head}");
        let mut body = [0; 200];
        let read = socket.read(&mut body).await.expect("a body");
        assert_eq!(serde_json::from_slice::<Value>(&body[..read]).expect("JSON")["cause"], "capacity");
        refused += 1;
    }
    assert_eq!((sockets.len(), refused), (10, 10));
    metric(port, "voice_refused_total{cause=\"capacity\"} 10").await;
    metric(port, "voice_sessions 10").await;
    // A place comes back however a session ends.
    for socket in sockets {
        socket.set_zero_linger().expect("set");
    }
    metric(port, "voice_sessions 0").await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    caller.client.send(CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(caller.client.receive_close().await, 1000);
}

#[tokio::test]
async fn each_cause_of_a_refusal() {
    let variables = [("MAX_SESSIONS_PER_ADDRESS", "1"), ("RATE_LIMIT_RPS", "3"), ("AUTH_TOKEN", "secret")];
    let (port, _) = gateway(1, &variables).await;
    let token = "Authorization: Bearer secret\r\n";
    for headers in ["", "Authorization: Bearer secre\r\n"] {
        let (refused, _) = upgrade(port, headers).await;
        assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
        let answer = String::from_utf8(post(port, headers, &hello().to_string()).await).expect("text");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert_eq!(cause(&answer), "auth");
    }
    let (welcome, _socket) = upgrade(port, token).await;
    assert!(welcome.starts_with("HTTP/1.1 101 "), "{welcome}");
    for _ in 0..4 {
        let (refused, _) = upgrade(port, token).await;
        assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: 1\r\n"), "{refused}");
    }
    for line in ["{cause=\"auth\"} 4", "{cause=\"per_address\"} 2", "{cause=\"rate\"} 2"] {
        metric(port, &format!("voice_refused_total{line}")).await;
    }
    assert!(http(port, "GET /", "").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn sessions_take_the_providers_in_turn() {
    let mut providers = [Providers::start().await, Providers::start().await];
    let urls = providers.each_ref().map(|providers| format!("http://127.0.0.1:{}", providers.port)).join(",");
    let (port, _) = gateway(1, &[("PROVIDER_URLS", urls.as_str())]).await;
    for turn in [0, 1, 0, 1] {
        let (mut caller, _link) = Caller::ready(port, &mut providers[turn]).await;
        caller.speak("hello").await;
        providers[turn].speech().await.play(&audio(1, 960)).await;
        assert_eq!(caller.hear_reply().await.0, audio(1, 960));
    }
}
