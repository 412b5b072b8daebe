//! A session over real sockets: speech in, results out, texts in, replies out.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::caller::{Caller, config};
use support::client::{CLOSE, PING, PONG};
use support::providers::Providers;
use support::{audio, gateway, metric};

#[tokio::test]
async fn speech_in_and_results_out() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("PROVIDER_KEY", "KEY")]).await;
    let mut caller = Caller::open(port).await;
    let mut config = config();
    config["stream_id"] = json!("call-7");
    caller.say(&config).await;
    let handshake = providers.handshake().await;
    assert_eq!(handshake.header("authorization"), Some("Token KEY"));
    let expected = "/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true&model=nova-3&language=en-US&punctuate=true";
    assert_eq!(handshake.target(), expected);
    caller.hear_nothing(Duration::from_millis(50)).await;
    let mut link = handshake.accept().await;
    assert_eq!(caller.hear().await, json!({"type": "ready", "stream_id": "call-7", "protocol_version": "1.0"}));

    let speech = audio(1, 200_000);
    let mut rest = speech.as_slice();
    for bytes in [2, 640, 3200, 100_000, 96_158] {
        caller.send_audio(&rest[..bytes]).await;
        rest = &rest[bytes..];
    }
    assert!(rest.is_empty());
    assert!(link.receive_audio(200_000).await == speech);
    tokio::time::sleep(Duration::from_millis(30)).await;
    link.say("#1 1-5 10 20 a \"word\"", 6.25, true, true).await;
    let result = caller.hear().await;
    let provider_ms = result["provider_ms"].as_f64().expect("a number");
    assert!((30.0..1000.0).contains(&provider_ms), "{result}");
    let expected = json!({
        "type": "stt_result", "transcript": "#1 1-5 10 20 a \"word\"", "is_final": true, "is_speech_final": true,
        "confidence": 0.98, "provider_ms": provider_ms,
    });
    assert_eq!(result, expected);

    caller.client.send(PING, b"are you there").await;
    assert_eq!(caller.client.receive().await, (PONG, b"are you there".to_vec()));
    caller.client.send(CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(caller.client.receive_close().await, 1000);
    assert_eq!(link.receive_json().await, json!({"type": "CloseStream"}));
    link.close().await;
    metric(port, "voice_requests_total{provider=\"deepgram_stt\",outcome=\"complete\"} 1").await;
    metric(port, "voice_audio_bytes_total{direction=\"in\"} 200000").await;
    metric(port, "voice_results_total{final=\"true\"} 1").await;
}

/// What takes five seconds each, side by side.
#[tokio::test]
async fn signs_of_life_and_the_end_of_an_utterance() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, mut link) = Caller::ready(port, &mut providers).await;
    link.answers_pings = false;
    let start = Instant::now();
    link.say("final", 0.0, true, false).await;
    assert_eq!(caller.hear().await["is_speech_final"], false);
    let mut seen = [link.receive().await, link.receive().await];
    seen.sort();
    assert_eq!(seen[0], (support::client::TEXT, br#"{"type":"KeepAlive"}"#.to_vec()));
    assert_eq!(seen[1].0, PING);
    let forced = caller.hear().await;
    let after = start.elapsed().as_secs_f64();
    assert!((4.9..5.5).contains(&after), "{after}");
    let expected = json!({
        "type": "stt_result", "transcript": "", "is_final": true, "is_speech_final": true, "confidence": 0.0,
        "provider_ms": 0.0,
    });
    assert_eq!(forced, expected);
}

#[tokio::test]
async fn a_ping_that_is_not_answered_is_a_lost_connection() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("STT_PONG_MS", "100")]).await;
    let (mut caller, _deaf) = Caller::ready(port, &mut providers).await;
    assert_eq!(caller.hear_error().await, "stt_lost");
    let _link = providers.link().await;
}

#[tokio::test]
async fn a_reply_is_whole_and_in_order() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    for speak in 1..=3 {
        let reply = audio(speak, 144_000);
        caller.speak("hello").await;
        let mut speech = providers.speech().await;
        assert_eq!(speech.json(), json!({"text": "hello"}));
        speech.begin("x-mock-provider-ms: 12.5\r\n").await;
        for block in reply.chunks(960) {
            speech.send(block).await;
        }
        speech.end().await;
        let (heard, complete) = caller.hear_reply().await;
        assert!(heard == reply);
        let timestamp = &complete["timestamp"];
        let expected = json!({
            "type": "tts_playback_complete", "timestamp": timestamp, "speak": speak, "provider_ms": 12.5,
            "dropped_bytes": 0,
        });
        assert_eq!(complete, expected);
    }
    metric(port, "voice_speaks_total{outcome=\"complete\"} 3").await;
    metric(port, "voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"} 3").await;
    metric(port, "voice_audio_bytes_total{direction=\"out\"} 432000").await;
}

#[tokio::test]
async fn a_reply_begins_before_it_ends() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    caller.speak("hello").await;
    let mut speech = providers.speech().await;
    speech.begin("").await;
    for seed in 0..5 {
        let block = audio(seed, 960);
        speech.send(&block).await;
        assert!(caller.hear_audio(960).await == block);
    }
    speech.end().await;
    let complete = caller.hear().await;
    assert!(complete["provider_ms"].as_f64().is_some_and(|ms| ms > 0.0 && ms < 1000.0), "{complete}");
}

#[tokio::test]
async fn each_provider_is_asked() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("PROVIDER_KEY", "KEY")]).await;
    for (provider, target, key) in [
        ("deepgram", "/v1/speak?model=m&encoding=linear16&sample_rate=24000", ("authorization", "Token KEY")),
        ("elevenlabs", "/v1/text-to-speech/v/stream?output_format=pcm_24000", ("xi-api-key", "KEY")),
        ("openai", "/v1/audio/speech", ("authorization", "Bearer KEY")),
        ("cartesia", "/tts/bytes", ("authorization", "Bearer KEY")),
    ] {
        let mut caller = Caller::open(port).await;
        let mut config = config();
        config["tts_config"] = json!({"provider": provider, "model": "m", "voice_id": "v"});
        let _link = caller.configure(&config, &mut providers).await;
        caller.speak("hello").await;
        let speech = providers.speech().await;
        assert_eq!((speech.target(), speech.header(key.0)), (target, Some(key.1)));
        assert_eq!(speech.header("host"), Some(format!("127.0.0.1:{}", providers.port).as_str()));
        speech.play(&audio(1, 960)).await;
        assert_eq!(caller.hear_reply().await.0, audio(1, 960));
        metric(port, &format!("voice_requests_total{{provider=\"{provider}_tts\",outcome=\"complete\"}} 1")).await;
    }
}

#[tokio::test]
async fn texts_wait_for_each_other_or_take_the_place_of_others() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    caller.speak("one").await;
    caller.queue("two").await;
    let first = providers.speech().await;
    providers.no_speech(Duration::from_millis(50)).await;
    first.play(&audio(1, 9600)).await;
    assert_eq!(caller.hear_reply().await.0, audio(1, 9600));
    let mut second = providers.speech().await;
    assert_eq!(second.json()["text"], "two");
    second.begin("").await;
    second.send(&audio(2, 960)).await;
    caller.hear_audio(960).await;
    caller.queue("three").await;
    caller.speak("four").await;
    let fourth = providers.speech().await;
    assert_eq!(fourth.json()["text"], "four");
    second.expect_cancelled().await;
    fourth.play(&audio(4, 960)).await;
    let (heard, complete) = caller.hear_reply().await;
    assert_eq!((heard, &complete["speak"]), (audio(4, 960), &json!(4)));
    metric(port, "voice_speaks_total{outcome=\"dropped\"} 2").await;
}

#[tokio::test]
async fn an_interruption_stops_the_reply_and_cancels_its_request() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, mut link) = Caller::ready(port, &mut providers).await;
    caller.speak("one").await;
    caller.queue("two").await;
    let mut speech = providers.speech().await;
    speech.begin("").await;
    speech.send(&audio(1, 960)).await;
    caller.hear_audio(960).await;
    caller.clear().await;
    speech.expect_cancelled().await;
    caller.hear_nothing(Duration::from_millis(100)).await;
    providers.no_speech(Duration::from_millis(10)).await;
    link.say("still here", 0.0, true, true).await;
    assert_eq!(caller.hear().await["transcript"], "still here");
    caller.speak("three").await;
    providers.speech().await.play(&audio(3, 9600)).await;
    let (heard, complete) = caller.hear_reply().await;
    assert_eq!((heard, &complete["speak"]), (audio(3, 9600), &json!(3)));
    caller.clear().await;
    caller.hear_nothing(Duration::from_millis(50)).await;
    metric(port, "voice_requests_total{provider=\"deepgram_tts\",outcome=\"cancelled\"} 1").await;
}

#[tokio::test]
async fn what_may_not_be_interrupted_goes_on() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    caller.say(&json!({"type": "speak", "text": "one", "allow_interruption": false})).await;
    caller.queue("two").await;
    let mut speech = providers.speech().await;
    speech.begin("").await;
    speech.send(&audio(1, 960)).await;
    caller.hear_audio(960).await;
    caller.clear().await;
    caller.speak("three").await;
    speech.send(&audio(2, 960)).await;
    speech.end().await;
    let (heard, complete) = caller.hear_reply().await;
    assert_eq!((heard, &complete["speak"]), (audio(2, 960), &json!(1)));
    let third = providers.speech().await;
    assert_eq!(third.json()["text"], "three");
    third.play(&audio(3, 960)).await;
    assert_eq!(caller.hear_reply().await.1["speak"], 3);
}
