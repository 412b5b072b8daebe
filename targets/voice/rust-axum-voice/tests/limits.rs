//! What a caller may not do, and what a slow one costs.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::caller::{Caller, config};
use support::client::{BINARY, Client, FINAL, TEXT};
use support::providers::Providers;
use support::{audio, gateway, metric};

#[tokio::test]
async fn violations_have_their_codes() {
    let (port, _) = gateway(1, &[]).await;
    for (first_byte, payload, code) in [
        (FINAL | 0x3, b"unknown opcode".as_slice(), 1002),
        (0x40 | FINAL | TEXT, b"reserved bit", 1002),
        (FINAL, b"a continuation of nothing", 1002),
        (FINAL | TEXT, b"\xFF\xFE", 1007),
    ] {
        let mut client = Client::open(port).await;
        client.send_frame(first_byte, payload).await;
        assert_eq!(client.receive_close().await, code, "{first_byte:#x}");
    }
}

#[tokio::test]
async fn a_text_in_pieces_is_refused_when_their_sum_is_declared() {
    let (port, _) = gateway(1, &[]).await;
    let mut client = Client::open(port).await;
    client.send_frame(TEXT, &vec![b'x'; 1 << 20]).await;
    let head = support::client::header(FINAL, 0x80, 1);
    client.write(&[head.as_slice(), &[1, 2, 3, 4]].concat()).await;
    assert_eq!(client.receive_close().await, 1009);
}

#[tokio::test]
async fn a_message_in_pieces_is_one() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let mut caller = Caller::open(port).await;
    let text = config().to_string();
    caller.client.send_frame(TEXT, &text.as_bytes()[..10]).await;
    caller.client.send_frame(0, &text.as_bytes()[10..20]).await;
    caller.client.send_frame(FINAL, &text.as_bytes()[20..]).await;
    let mut link = providers.link().await;
    assert_eq!(caller.hear().await["type"], "ready");
    caller.client.send_frame(BINARY, &audio(1, 3)).await;
    caller.client.send_frame(FINAL, &audio(1, 4)[3..]).await;
    assert_eq!(link.receive_audio(4).await, audio(1, 4));
}

#[tokio::test]
async fn a_hundred_bad_messages_are_too_many() {
    let (port, _) = gateway(1, &[]).await;
    let mut caller = Caller::open(port).await;
    for _ in 0..100 {
        caller.client.send(TEXT, b"?").await;
    }
    for _ in 0..100 {
        assert_eq!(caller.hear_error().await, "bad_message");
    }
    assert_eq!(caller.client.receive_close().await, 1008);
}

#[tokio::test]
async fn whoever_says_nothing_is_closed() {
    let (port, _) = gateway(1, &[("IDLE_MS", "400")]).await;
    let mut caller = Caller::open(port).await;
    caller.say(&json!({"type": "config", "audio": false})).await;
    assert_eq!(caller.hear().await["type"], "ready");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(600) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        caller.client.send(support::client::PING, b"").await;
        assert_eq!(caller.client.receive().await.0, support::client::PONG);
    }
    let start = Instant::now();
    assert_eq!(caller.client.receive_close().await, 1001);
    assert!((360..600).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
}

/// Ten seconds each, side by side.
#[tokio::test]
async fn whoever_sends_no_config_or_takes_nothing_is_closed() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let start = Instant::now();
    let mut silent = Caller::open(port).await;
    let mut deaf = Caller { client: Client::deaf(port).await };
    let _link = deaf.configure(&config(), &mut providers).await;
    deaf.speak("long").await;
    let speech = providers.speech().await;
    speech.play(&audio(1, 4 << 20)).await;
    assert_eq!(tokio::time::timeout(Duration::from_secs(12), closed(&mut silent)).await, Ok(1008));
    assert!((9_900..11_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    metric(port, "voice_sessions 0").await;
    assert!(start.elapsed() < Duration::from_secs(13), "{:?}", start.elapsed());
}

async fn closed(caller: &mut Caller) -> u16 {
    let mut frame = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut caller.client.socket, &mut frame).await.expect("a close");
    assert_eq!(frame[..2], [0x88, 2]);
    u16::from_be_bytes([frame[2], frame[3]])
}

#[tokio::test]
async fn a_slow_reader_loses_audio_and_nobody_else_does() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[("OUT_BUFFER_BYTES", "100000")]).await;
    let mut slow = Caller { client: Client::deaf(port).await };
    let _slow_link = slow.configure(&config(), &mut providers).await;
    let (mut other, mut other_link) = Caller::ready(port, &mut providers).await;
    slow.speak("long").await;
    let total = 2_400_000;
    providers.speech().await.play(&audio(1, total)).await;
    metric(port, "voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"} 1").await;

    let start = Instant::now();
    other_link.say("quick", 0.0, true, true).await;
    assert_eq!(other.hear().await["transcript"], "quick");
    other.speak("hello").await;
    providers.speech().await.play(&audio(2, 48_000)).await;
    let (heard, complete) = other.hear_reply().await;
    assert!(heard == audio(2, 48_000));
    assert_eq!(complete["dropped_bytes"], 0);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());

    let (heard, complete) = slow.hear_reply().await;
    let dropped = usize::try_from(complete["dropped_bytes"].as_u64().expect("a number")).expect("fits");
    assert!(dropped > 1_000_000, "{complete}");
    assert_eq!(heard.len() + dropped, total);
    assert!(heard[..96_000] == audio(1, 96_000));
    // What was dropped, was in whole blocks: each that came is one that was sent, and later than the one before.
    let sent = audio(1, total);
    let mut blocks = sent.chunks(960);
    assert!(heard.chunks(960).all(|heard| blocks.any(|sent| sent == heard)), "a block is not whole");
}

#[tokio::test]
async fn an_interruption_also_drops_what_waits_for_a_slow_reader() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let mut slow = Caller { client: Client::deaf(port).await };
    let _link = slow.configure(&config(), &mut providers).await;
    slow.speak("long").await;
    providers.speech().await.play(&audio(1, 960_000)).await;
    metric(port, "voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"} 1").await;
    slow.clear().await;
    metric(port, "voice_speaks_total{outcome=\"dropped\"} 1").await;
    slow.speak("next").await;
    providers.speech().await.play(&audio(2, 9600)).await;
    let (heard, complete) = slow.hear_reply().await;
    assert_eq!((&complete["speak"], &complete["dropped_bytes"]), (&json!(2), &json!(0)));
    // What the kernel had taken before, and then the next reply and nothing else.
    assert!(heard.len() < 400_000, "{}", heard.len());
    assert!(heard.ends_with(&audio(2, 9600)));
}

#[tokio::test]
async fn the_longest_audio_is_not_dropped() {
    let mut providers = Providers::start().await;
    let (port, _) = gateway(providers.port, &[]).await;
    let (mut caller, mut link) = Caller::ready(port, &mut providers).await;
    let speech = audio(1, 5 << 20);
    caller.send_audio(&speech).await;
    // The provider takes its time.
    caller.hear_nothing(Duration::from_millis(200)).await;
    assert!(link.receive_audio(5 << 20).await == speech);
    caller.hear_nothing(Duration::from_millis(50)).await;
}
