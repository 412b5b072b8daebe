//! Providers that fail, and what a caller is told.

mod support;

use std::time::{Duration, Instant};

use support::caller::{Caller, config};
use support::client::CLOSE;
use support::providers::{Link, Providers};
use support::{audio, gateway, metric};

#[tokio::test]
async fn a_request_is_tried_once_more() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    caller.speak("one").await;
    providers.speech().await.answer(500, "").await;
    providers.speech().await.play(&audio(1, 1920)).await;
    assert_eq!(caller.hear_reply().await.0, audio(1, 1920));
    caller.speak("two").await;
    providers.speech().await.reset();
    let mut second = providers.speech().await;
    second.begin("").await;
    second.send(&audio(2, 960)).await;
    caller.hear_audio(960).await;
    second.reset();
    assert_eq!(caller.hear_error().await, "tts_failed");
    providers.no_speech(Duration::from_millis(50)).await;
    caller.speak("three").await;
    providers.speech().await.answer(503, "").await;
    providers.speech().await.reset();
    assert_eq!(caller.hear_error().await, "tts_failed");
    // A refused connection counts as a reset.
    providers.refuse().await;
    caller.speak("four").await;
    assert_eq!(caller.hear_error().await, "tts_failed");
    metric(port, "voice_requests_total{provider=\"deepgram_tts\",outcome=\"failed\"} 7").await;
    metric(port, "voice_speaks_total{outcome=\"failed\"} 3").await;
    metric(port, "voice_errors_total{kind=\"tts_failed\"} 3").await;
}

#[tokio::test]
async fn what_is_refused_is_not_tried_again() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    for (status, kind) in [(429, "tts_rate_limited"), (404, "tts_failed"), (200, "tts_failed")] {
        caller.speak("hello").await;
        providers.speech().await.answer(status, "retry-after: 60\r\n").await;
        assert_eq!(caller.hear_error().await, kind);
    }
    providers.no_speech(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn a_reply_that_does_not_come_or_not_go_on_is_given_up() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("TTS_FIRST_MS", "200"), ("TTS_GAP_MS", "100")]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    for begins in [false, true] {
        let start = Instant::now();
        caller.speak("silent").await;
        let mut silent = providers.speech().await;
        if begins {
            silent.begin("").await;
        }
        assert_eq!(caller.hear_error().await, "tts_timeout");
        assert!((200..400).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
        silent.expect_cancelled().await;
    }
    caller.speak("stalls").await;
    let mut stalls = providers.speech().await;
    stalls.begin("").await;
    stalls.send(&audio(1, 960)).await;
    caller.hear_audio(960).await;
    let start = Instant::now();
    assert_eq!(caller.hear_error().await, "tts_timeout");
    assert!((90..300).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    caller.speak("again").await;
    providers.speech().await.play(&audio(2, 960)).await;
    assert_eq!(caller.hear_reply().await.0, audio(2, 960));
}

#[tokio::test]
async fn a_connection_that_the_provider_closed_is_not_used() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    for _ in 0..3 {
        caller.speak("hello").await;
        let mut speech = providers.speech().await;
        speech.begin("").await;
        speech.send(&audio(1, 960)).await;
        tokio::io::AsyncWriteExt::write_all(&mut speech.socket, b"0\r\n\r\n").await.expect("written");
        assert_eq!(caller.hear_reply().await.0, audio(1, 960));
        drop(speech);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    metric(port, "voice_requests_total{provider=\"deepgram_tts\",outcome=\"failed\"} 0").await;
}

#[tokio::test]
async fn speech_to_text_that_cannot_be_had_and_then_can() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("READY_MS", "300")]).await;
    let mut caller = Caller::open(port).await;
    caller.say(&config()).await;
    providers.handshake().await.answer(500, "").await;
    let error = caller.hear().await;
    assert_eq!((&error["kind"], &error["retryable"]), (&"stt_failed".into(), &true.into()));
    caller.say(&config()).await;
    let silent = providers.handshake().await;
    assert_eq!(caller.hear_error().await, "stt_failed");
    drop(silent);
    let _link = caller.configure(&config(), &mut providers).await;
    metric(port, "voice_requests_total{provider=\"deepgram_stt\",outcome=\"failed\"} 2").await;
}

#[tokio::test]
async fn audio_follows_when_speech_to_text_is_back() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, mut link) = Caller::ready(port, &mut providers).await;
    caller.send_audio(&audio(0, 3200)).await;
    link.receive_audio(3200).await;
    link.close().await;
    let lost = Instant::now();
    let error = caller.hear().await;
    assert_eq!((&error["kind"], &error["retryable"]), (&"stt_lost".into(), &true.into()));
    let speech = audio(1, 32_000);
    for message in speech.chunks(3200) {
        caller.send_audio(message).await;
    }
    providers.handshake().await.answer(503, "").await;
    let first = lost.elapsed().as_millis();
    let mut link = providers.link().await;
    let second = lost.elapsed().as_millis();
    assert!((90..180).contains(&first) && (290..450).contains(&second), "{first} {second}");
    assert!(link.receive_audio(32_000).await == speech);
    link.say("back", 1.0, true, true).await;
    assert_eq!(caller.hear().await["transcript"], "back");
}

#[tokio::test]
async fn audio_beyond_the_buffer_is_dropped_and_told_once() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("AUDIO_BUFFER_MS", "300")]).await;
    let (mut caller, link) = Caller::ready(port, &mut providers).await;
    drop(link);
    assert_eq!(caller.hear_error().await, "stt_lost");
    let handshake = providers.handshake().await;
    let speech = audio(1, 32_000);
    for message in speech.chunks(3200) {
        caller.send_audio(message).await;
    }
    // The answer to a ping comes after all that was read before it.
    caller.client.send(support::client::PING, b"").await;
    assert_eq!(caller.client.receive().await.0, support::client::PONG);
    let mut link = handshake.accept().await;
    assert!(link.receive_audio(9600).await == speech[22_400..]);
    caller.hear_dropped(700).await;
    caller.send_audio(&audio(2, 3200)).await;
    assert!(link.receive_audio(3200).await == audio(2, 3200));
    caller.hear_nothing(Duration::from_millis(50)).await;
}

/// A caller whose speech-to-text is lost and then away for longer than the five quick tries. Returns when that is told.
async fn failed(caller: &mut Caller, link: Link, providers: &mut Providers) {
    providers.refuse().await;
    drop(link);
    let lost = Instant::now();
    assert_eq!(caller.hear_error().await, "stt_lost");
    for message in audio(1, 32_000).chunks(3200) {
        caller.send_audio(message).await;
    }
    let error = caller.hear().await;
    assert_eq!((&error["kind"], &error["retryable"]), (&"stt_failed".into(), &false.into()));
    let after = lost.elapsed().as_millis();
    assert!((3_100..3_600).contains(&after), "{after}");
}

#[tokio::test]
async fn speech_to_text_that_stays_away_is_tried_without_a_word_until_it_is_back() {
    let mut providers = Providers::start().await;
    // Fifteen blocks and a half.
    let (port, _) = gateway(providers.port, &[("AUDIO_BUFFER_MS", "310")]).await;
    let (mut caller, link) = Caller::ready(port, &mut providers).await;
    failed(&mut caller, link, &mut providers).await;
    let failed = Instant::now();
    caller.hear_dropped(700).await;
    let more = audio(2, 3200);
    for message in more.chunks(1000) {
        caller.send_audio(message).await;
    }
    // One of the slow tries fails.
    caller.hear_nothing(Duration::from_millis(2_500)).await;
    let mut providers = Providers::start_at(providers.port).await;
    let mut link = providers.link().await;
    let after = failed.elapsed().as_millis();
    assert!((3_900..4_500).contains(&after), "{after}");
    assert!(link.receive_audio(9600).await == [&audio(1, 32_000)[25_600..], &more].concat());
    caller.hear_dropped(100).await;
    metric(port, "voice_errors_total{kind=\"stt_failed\"} 1").await;
    metric(port, "voice_requests_total{provider=\"deepgram_stt\",outcome=\"failed\"} 7").await;

    caller.send_audio(&audio(3, 3200)).await;
    assert!(link.receive_audio(3200).await == audio(3, 3200));
    link.say("back", 0.4, true, true).await;
    assert_eq!(caller.hear().await["transcript"], "back");

    // The next loss begins anew.
    link.close().await;
    let lost = Instant::now();
    assert_eq!(caller.hear_error().await, "stt_lost");
    providers.handshake().await.answer(503, "").await;
    let first = lost.elapsed().as_millis();
    let mut link = providers.link().await;
    let second = lost.elapsed().as_millis();
    assert!((90..180).contains(&first) && (290..450).contains(&second), "{first} {second}");
    link.say("again", 0.0, true, true).await;
    assert_eq!(caller.hear().await["transcript"], "again");
}

#[tokio::test]
async fn the_end_of_a_session_ends_the_tries() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, link) = Caller::ready(port, &mut providers).await;
    failed(&mut caller, link, &mut providers).await;
    let mut providers = Providers::start_at(providers.port).await;
    // Until then the session goes on without speech-to-text.
    caller.speak("hello").await;
    providers.speech().await.play(&audio(1, 960)).await;
    assert_eq!(caller.hear_reply().await.0, audio(1, 960));
    caller.client.send(CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(caller.client.receive_close().await, 1000);
    providers.no_handshake(Duration::from_millis(2_500)).await;
}

#[tokio::test]
async fn a_new_connection_begins_with_a_whole_block() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, mut link) = Caller::ready(port, &mut providers).await;
    let speech = audio(1, 6400);
    caller.send_audio(&speech[..1000]).await;
    link.receive_audio(1000).await;
    link.close().await;
    assert_eq!(caller.hear_error().await, "stt_lost");
    caller.send_audio(&speech[1000..2000]).await;
    let mut link = providers.link().await;
    caller.send_audio(&speech[2000..]).await;
    assert!(link.receive_audio(6400 - 1280).await == speech[1280..]);
    // 280 bytes.
    caller.hear_dropped(9).await;
}

#[tokio::test]
async fn what_a_provider_says_with_its_first_breath_is_heard() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    for gap_us in [None, Some(0), Some(50), Some(200), Some(1000)].repeat(10) {
        let (mut caller, link) = Caller::ready(port, &mut providers).await;
        drop(link);
        assert_eq!(caller.hear_error().await, "stt_lost");
        let handshake = providers.handshake().await;
        let mut link = match gap_us {
            None => handshake.accept_and_say("first").await,
            Some(us) => {
                let mut link = handshake.accept().await;
                std::thread::sleep(Duration::from_micros(us));
                link.say("first", 0.0, true, true).await;
                link
            }
        };
        assert_eq!(caller.hear().await["transcript"], "first", "{gap_us:?}");
        link.say("second", 0.0, true, true).await;
        assert_eq!(caller.hear().await["transcript"], "second", "{gap_us:?}");
    }
}
