//! Without a lie.

use std::time::Duration;

use serde_json::json;

use super::caller::{Caller, Heard, config};
use super::mocks::{Manner, Mocks};
use super::program::{Gateway, await_that, command};

#[test]
fn a_conversation_is_carried_whole() {
    let mocks = Mocks::start(Manner::default());
    let gateway = Gateway::start(&mocks.url, &[("PROVIDER_KEY", "secret")]);
    let mut caller = Caller::start(&gateway, 7);
    let transcript = caller.utterance(30);
    assert!(transcript.starts_with("#7 1-30 ") && transcript.ends_with(" hello"), "{transcript}");
    let reply = caller.reply(1);
    assert_eq!(reply.blocks(), (1..=25).collect::<Vec<_>>());
    assert_eq!(reply.changed(), [0; 0]);
    assert!(reply.marks().iter().all(|mark| (mark.caller, mark.turn, mark.request) == (7, 1, 1)));
    assert_eq!((&reply.last_word["speak"], &reply.last_word["provider_ms"]), (&json!(1), &json!(12.5)));
    assert!(reply.last_word["timestamp"].as_u64().expect("a time") > 1_700_000_000_000);
    assert_eq!(caller.reply(2).last_word["speak"], 2);

    assert_eq!(mocks.heard(), (1..=30).collect::<Vec<_>>());
    assert!(mocks.book().heard.iter().all(|(_, is_right)| *is_right));
    assert_eq!(mocks.book().connections, 1, "one connection for both replies");
    let listened = mocks.book().listened.concat();
    let query = "encoding=linear16&sample_rate=16000&channels=1&interim_results=true&model=nova-3&language=en-US&punctuate=true";
    assert!(listened.starts_with(&format!("GET /v1/listen?{query} ")), "{listened}");
    assert!(listened.to_lowercase().contains("authorization: token secret\r\n"), "{listened}");

    drop(caller);
    gateway.await_metric("voice_sessions", 0);
    await_that(|| mocks.book().texts == [r#"{"type":"CloseStream"}"#], "CloseStream");
    for (series, value) in [
        ("voice_sessions_total", 1),
        ("voice_audio_bytes_total{direction=\"in\"}", 30 * 640),
        ("voice_audio_bytes_total{direction=\"out\"}", 2 * 25 * 960),
        ("voice_results_total{final=\"true\"}", 1),
        ("voice_speaks_total{outcome=\"complete\"}", 2),
        ("voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"}", 2),
        ("voice_requests_total{provider=\"deepgram_stt\",outcome=\"complete\"}", 1),
    ] {
        assert_eq!(gateway.metric(series), value, "{series}");
    }
}

#[test]
fn each_provider_is_asked_as_it_wants() {
    let mocks = Mocks::start(Manner { blocks: 2, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[("PROVIDER_KEY", "secret")]);
    let text = "#1.1 hello";
    let cartesia = json!({
        "model_id": "aura-2", "transcript": text, "voice": {"mode": "id", "id": "default"},
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
    });
    let openai = json!({"model": "aura-2", "input": text, "voice": "default", "response_format": "pcm"});
    let wanted = [
        (
            "deepgram",
            "/v1/speak?model=aura-2&encoding=linear16&sample_rate=24000",
            json!({"text": text}),
            "authorization: token secret",
        ),
        (
            "elevenlabs",
            "/v1/text-to-speech/default/stream?output_format=pcm_24000",
            json!({"text": text, "model_id": "aura-2"}),
            "xi-api-key: secret",
        ),
        ("openai", "/v1/audio/speech", openai, "authorization: bearer secret"),
        ("cartesia", "/tts/bytes", cartesia, "authorization: bearer secret"),
    ];
    for (provider, path, body, header) in wanted {
        let mut caller = Caller::connect(&gateway, 1);
        caller.send(&config(provider));
        assert_eq!(caller.text()["type"], "ready");
        assert_eq!(caller.reply(1).blocks(), [1, 2]);
        let asked = mocks.book().asked.pop().expect("a request");
        assert_eq!((asked.path.as_str(), asked.body), (path, body));
        assert!(asked.head.to_lowercase().contains(&format!("{header}\r\n")), "{}", asked.head);
        let series = format!("voice_requests_total{{provider=\"{provider}_tts\",outcome=\"complete\"}}");
        gateway.await_metric(&series, 1);
    }
}

#[test]
fn the_http_surface_is_the_contracts() {
    let mocks = Mocks::start(Manner::default());
    let gateway = Gateway::start(&mocks.url, &[]);
    assert_eq!((gateway.get("/").status, gateway.get("/").json()), (200, json!({"status": "OK"})));
    let voice = json!({"id": "v", "name": "V", "language": "en", "gender": "female", "accent": "none", "sample": ""});
    assert_eq!(gateway.get("/voices").json(), json!({"elevenlabs": [voice]}));
    for (request, status, cause) in [
        ("GET /ws HTTP/1.1\r\nHost: x\r\n\r\n", 426, "upgrade"),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, "method"),
        ("GET /speak HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method"),
        ("GET /other HTTP/1.1\r\nHost: x\r\n\r\n", 404, "path"),
    ] {
        let answer = gateway.ask(request);
        assert_eq!((answer.status, &answer.json()["cause"]), (status, &json!(cause)));
    }
    let voice = r#""tts_config":{"provider":"deepgram","model":"aura-2"}"#;
    let long = "x".repeat(102_401);
    for (body, status, cause) in [
        ("{".to_owned(), 400, "bad_json"),
        (r#"{"text":"x"}"#.to_owned(), 400, "bad_field"),
        (format!(r#"{{"text":7,{voice}}}"#), 400, "bad_field"),
        (format!(r#"{{"text":"",{voice}}}"#), 400, "empty_text"),
        (format!(r#"{{"text":"{long}",{voice}}}"#), 413, "too_large"),
    ] {
        let answer = gateway.post_speak(&body);
        assert_eq!((answer.status, &answer.json()["cause"]), (status, &json!(cause)));
    }
    let answer = gateway.post_speak(&format!(r##"{{"text":"#7.2 hello",{voice}}}"##));
    assert_eq!((answer.status, answer.is_whole, answer.body.len()), (200, true, 25 * 960));
    let header = |name| answer.header(name).unwrap_or_default();
    assert_eq!(
        ["content-type", "x-audio-format", "x-sample-rate", "x-provider-ms"].map(header),
        ["audio/pcm", "linear16", "24000", "12.500"]
    );
}

#[test]
fn what_waits_is_queued_or_flushed() {
    let pace = Duration::from_millis(20);
    let mocks = Mocks::start(Manner { blocks: 20, pace, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[]);
    let mut caller = Caller::start(&gateway, 1);
    let speak = |turn: u32, flush: bool| json!({"type": "speak", "text": format!("#1.{turn} x"), "flush": flush});
    caller.send(&speak(1, false));
    caller.send(&speak(2, false));
    assert_eq!([caller.play(), caller.play()].map(|played| played.last_word["speak"].clone()), [1, 2]);
    caller.send(&speak(3, false));
    assert!(matches!(caller.next(), Heard::Audio(_)));
    caller.send(&speak(4, true));
    let played = caller.play();
    assert_eq!((&played.last_word["type"], &played.last_word["speak"]), (&json!("tts_playback_complete"), &json!(4)));
    assert!(played.bytes.len() < 35 * 960, "the third was cut off");
    gateway.await_metric("voice_speaks_total{outcome=\"dropped\"}", 1);
    gateway.await_metric("voice_speaks_total{outcome=\"complete\"}", 3);
}

#[test]
fn a_clear_stops_the_reply_and_its_request() {
    let pace = Duration::from_millis(20);
    let mocks = Mocks::start(Manner { blocks: 200, pace, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[]);
    let mut caller = Caller::start(&gateway, 1);
    caller.speak(1);
    assert!(matches!(caller.next(), Heard::Audio(_)));
    caller.clear();
    // What was on its way may still come, and then nothing.
    while caller.next_within(Duration::from_millis(300)).is_some() {}
    gateway.await_metric("voice_requests_total{provider=\"deepgram_tts\",outcome=\"cancelled\"}", 1);
    gateway.await_metric("voice_speaks_total{outcome=\"dropped\"}", 1);
    await_that(|| mocks.book().cancelled == 1, "a cancelled request");
    mocks.book().manner.blocks = 3;
    assert_eq!(caller.reply(2).blocks(), [1, 2, 3]);
    assert!(caller.utterance(5).starts_with("#1 1-5 "), "it hears on");
}

#[test]
fn what_may_not_be_interrupted_is_not() {
    let pace = Duration::from_millis(10);
    let mocks = Mocks::start(Manner { blocks: 20, pace, ..Manner::default() });
    let gateway = Gateway::start(&mocks.url, &[]);
    let mut caller = Caller::start(&gateway, 1);
    caller.send(&json!({"type": "speak", "text": "#1.1 x", "allow_interruption": false}));
    assert!(matches!(caller.next(), Heard::Audio(_)));
    caller.clear();
    caller.speak(2);
    assert_eq!([caller.play(), caller.play()].map(|played| played.last_word["speak"].clone()), [1, 2]);
}

#[test]
fn it_drains() {
    let pace = Duration::from_millis(10);
    let mocks = Mocks::start(Manner { blocks: 60, pace, ..Manner::default() });
    let mut gateway = Gateway::start(&mocks.url, &[]);
    let mut quiet = Caller::start(&gateway, 1);
    let mut playing = Caller::start(&gateway, 2);
    playing.speak(1);
    assert!(matches!(playing.next(), Heard::Audio(_)));
    gateway.terminate();
    assert_eq!(quiet.end(), Some(1001));
    assert_eq!((gateway.get("/").status, gateway.get("/").json()), (503, json!({"status": "DRAINING"})));
    let (_, refused) = gateway.upgrade("");
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.to_lowercase().contains("retry-after"), "{refused}");
    assert_eq!(playing.play().last_word["type"], "tts_playback_complete");
    assert_eq!(playing.end(), Some(1001));
    drop((quiet, playing));
    assert_eq!(gateway.exit_code(), Some(0));
}

#[test]
fn a_drain_has_an_end() {
    let mocks = Mocks::start(Manner { first: Duration::from_secs(5), ..Manner::default() });
    let mut gateway = Gateway::start(&mocks.url, &[("DRAIN_TIMEOUT_MS", "200")]);
    let mut caller = Caller::start(&gateway, 1);
    caller.speak(1);
    gateway.terminate();
    assert_eq!(caller.end(), Some(1001));
    assert_eq!(gateway.exit_code(), Some(0));
}

#[test]
fn it_says_what_it_is_and_takes_no_bad_values() {
    let gateway = Gateway::start("http://127.0.0.1:1", &[("LIE", "gap"), ("LIE_MS", "7")]);
    let start = &gateway.start_line;
    assert_eq!((&start["target"], &start["lie"]), (&json!("lying-voice"), &json!("gap")));
    assert_eq!(start["lie_parameters"], json!({"ms": 7, "every": 10}));
    for library in ["rustc", "hyper", "tokio", "tungstenite"] {
        assert!(start["versions"][library].is_string(), "{library}");
    }
    let port = gateway.port.to_string();
    for (name, value) in [("LIE", "fib"), ("PORT", port.as_str()), ("LIE_EVERY", "3")] {
        let output = command(&[(name, value)]).output().expect("it runs");
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{told}");
        assert!(told.starts_with(&format!("lying-voice: {name}")), "{told}");
    }
    let listed = command(&[]).arg("--lies").output().expect("it runs");
    let names = String::from_utf8(listed.stdout).expect("text");
    assert!(names.lines().any(|name| name == "swap_reply_blocks"), "{names}");
    assert_eq!(command(&[]).arg("--lie").output().expect("it runs").status.code(), Some(2));
}
