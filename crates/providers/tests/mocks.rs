//! The mock providers over real sockets, asked as a gateway asks them.

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use plimsoll_providers::config::Config;
use plimsoll_providers::profile::Profile;
use plimsoll_providers::server::Mocks;
use plimsoll_workload_voice::marks::{
    CALLER_BLOCK_BYTES, CallerMark, REPLY_BLOCK_BYTES, ReplyMark, SpeakMark, TranscriptMark,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

type Session = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Runs `test` beside mocks that take no time, or with these settings.
fn with_mocks<F: Future<Output = ()>>(config: Config, test: impl FnOnce(SocketAddr) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mocks = Mocks::bind(Config { port: 0, ..config }).expect("a free port");
        let address = mocks.address();
        tokio::select! {
            () = mocks.run() => unreachable!("it serves for ever"),
            () = test(address) => {}
        }
    });
}

fn at_once() -> Config {
    Config {
        profile: Profile::Zero,
        paced: false,
        ..Config::default()
    }
}

/// What was answered, with the head; or nothing, if the connection was reset.
async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: mock\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    Some(answer)
}

/// The body of an answer, put together from its chunks.
fn body_of(answer: &[u8]) -> Vec<u8> {
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let mut rest = &answer[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return rest.to_vec();
    }
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("hexadecimal");
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
    body
}

async fn stats(address: SocketAddr) -> Value {
    let answer = ask(address, "GET", "/stats", "").await.expect("an answer");
    serde_json::from_slice(&body_of(&answer)).expect("JSON")
}

async fn put_faults(address: SocketAddr, faults: &Value) {
    let answer = ask(address, "PUT", "/faults", &faults.to_string())
        .await
        .expect("an answer");
    assert!(
        answer.starts_with(b"HTTP/1.1 200 "),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

fn status(answer: &[u8]) -> &str {
    std::str::from_utf8(&answer[9..12]).expect("a status")
}

fn blocks_of(audio: &[u8]) -> Vec<ReplyMark> {
    let blocks = audio.chunks(REPLY_BLOCK_BYTES);
    blocks
        .map(|block| ReplyMark::read(block).expect("a mark"))
        .collect()
}

#[test]
fn each_provider_speaks_the_whole_text_once() {
    with_mocks(at_once(), |address| async move {
        let text = format!("{}hello there", SpeakMark { vu: 3, turn: 4 });
        for (path, field) in [
            (
                "/v1/speak?model=aura-2&encoding=linear16&sample_rate=24000",
                "text",
            ),
            (
                "/v1/text-to-speech/mock/stream?output_format=pcm_24000",
                "text",
            ),
            ("/v1/audio/speech", "input"),
        ] {
            let body = json!({field: text}).to_string();
            let answer = ask(address, "POST", path, &body).await.expect("an answer");
            assert_eq!(status(&answer), "200", "{path}");
            let marks = blocks_of(&body_of(&answer));
            let blocks = u32::try_from(text.chars().count() * 3).expect("few");
            let numbers: Vec<u32> = marks.iter().map(|mark| mark.block).collect();
            assert_eq!(numbers, (1..=blocks).collect::<Vec<u32>>());
            let right = |mark: &ReplyMark| {
                (mark.vu, mark.turn, mark.request, mark.blocks) == (3, 4, 1, blocks)
                    && mark.read_ns <= mark.handed_ns
            };
            assert!(marks.iter().all(right), "{marks:?}");
        }
        let stats = stats(address).await;
        for provider in ["deepgram_tts", "elevenlabs_tts", "openai_tts"] {
            let counts = &stats["providers"][provider];
            assert_eq!(
                (&counts["requests"], &counts["completed"]),
                (&json!(1), &json!(1))
            );
            assert_eq!(counts["bytes_out"], json!(16 * 3 * REPLY_BLOCK_BYTES));
        }
        assert_eq!(stats["requests"], 3);
    });
}

/// A reply comes as fast as it is played, and its first block after the drawn time.
#[test]
fn a_reply_has_its_latency_and_its_pace() {
    let config = Config {
        seed: 7,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        let began = Instant::now();
        let body = json!({"text": "#1.1 abcde"}).to_string();
        let answer = ask(address, "POST", "/v1/speak", &body)
            .await
            .expect("an answer");
        let marks = blocks_of(&body_of(&answer));
        let took_ms = (marks[0].handed_ns - marks[0].read_ns) / 1_000_000;
        assert!((50..=250).contains(&took_ms), "{took_ms} ms");
        let lasted = Duration::from_nanos(marks[29].handed_ns - marks[0].handed_ns);
        assert!(lasted >= Duration::from_millis(575), "{lasted:?}");
        assert!(began.elapsed() >= Duration::from_millis(625));
    });
}

#[test]
fn a_gateway_that_leaves_cancels_its_request() {
    with_mocks(Config::default(), |address| async move {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let body = json!({"text": "#1.1 a long text that takes some seconds"}).to_string();
        let length = body.len();
        let request = format!(
            "POST /v1/speak HTTP/1.1\r\nHost: mock\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut some = [0; 2_000];
        stream.read_exact(&mut some).await.expect("a beginning");
        drop(stream);
        for _ in 0..50 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if stats(address).await["providers"]["deepgram_tts"]["cancelled"] == 1 {
                return;
            }
        }
        panic!("{}", stats(address).await);
    });
}

async fn listen(address: SocketAddr) -> Session {
    let url = format!(
        "ws://{address}/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true"
    );
    let (session, _) = connect_async(url).await.expect("upgraded");
    session
}

/// Blocks `from..=to`; those from `speech` on are spoken, and the last of all ends the utterance.
fn audio(from: u32, to: u32, speech: u32) -> Vec<u8> {
    (from..=to)
        .flat_map(|block| {
            let mark = CallerMark {
                vu: 9,
                block,
                speech: block >= speech,
                last: block == to,
            };
            let mut bytes = mark.bytes().to_vec();
            bytes.resize(CALLER_BLOCK_BYTES, 1);
            bytes
        })
        .collect()
}

async fn result(session: &mut Session) -> Value {
    let message = session.next().await.expect("a message").expect("no error");
    serde_json::from_str(message.to_text().expect("text")).expect("JSON")
}

fn mark_of(result: &Value) -> (u32, u32, bool) {
    let transcript = result["channel"]["alternatives"][0]["transcript"]
        .as_str()
        .expect("a text");
    let mark = TranscriptMark::read(transcript).expect("a mark");
    assert_eq!(mark.vu, 9);
    assert!(mark.read_ns <= mark.handed_ns);
    (mark.from, mark.to, result["speech_final"] == true)
}

#[test]
fn an_utterance_has_its_results_in_order() {
    let config = Config {
        seed: 5,
        ..Config::default()
    };
    with_mocks(config, |address| async move {
        let mut session = listen(address).await;
        session
            .send(Message::binary(audio(1, 30, 6)))
            .await
            .expect("sent");
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(mark_of(&result(&mut session).await));
        }
        assert_eq!(all, [(6, 15, false), (6, 25, false), (6, 30, true)]);
        session
            .send(Message::text(r#"{"type":"CloseStream"}"#))
            .await
            .expect("sent");
        assert_eq!(result(&mut session).await["type"], "Metadata");
        let close = session.next().await.expect("a message").expect("no error");
        assert!(close.is_close(), "{close:?}");
        let counts = stats(address).await["providers"]["deepgram_stt"].clone();
        assert_eq!(
            (&counts["blocks_read"], &counts["blocks_lost"]),
            (&json!(30), &json!(0))
        );
        assert_eq!(
            (&counts["results"], &counts["finals"]),
            (&json!(3), &json!(1))
        );
        assert_eq!(
            (&counts["requests"], &counts["completed"]),
            (&json!(1), &json!(1))
        );
    });
}

#[test]
fn what_is_finalized_early_is_a_final_result() {
    with_mocks(at_once(), |address| async move {
        let mut session = listen(address).await;
        let whole = audio(1, 30, 6);
        let begun = whole[..20 * CALLER_BLOCK_BYTES].to_vec();
        session.send(Message::binary(begun)).await.expect("sent");
        assert_eq!(mark_of(&result(&mut session).await), (6, 15, false));
        session
            .send(Message::text(r#"{"type":"Finalize"}"#))
            .await
            .expect("sent");
        assert_eq!(mark_of(&result(&mut session).await), (6, 20, true));
    });
}

#[test]
fn faults_are_what_they_are_called() {
    with_mocks(at_once(), |address| async move {
        let speak = |turn: u32| {
            let body = json!({"text": format!("#1.{turn} hello")}).to_string();
            async move { ask(address, "POST", "/v1/speak", &body).await }
        };
        put_faults(address, &json!({"shares": {"fail": 1}})).await;
        assert_eq!(status(&speak(1).await.expect("an answer")), "500");
        put_faults(address, &json!({"shares": {"rate_limit": 1}})).await;
        let limited = speak(2).await.expect("an answer");
        assert_eq!(status(&limited), "429");
        assert!(
            String::from_utf8_lossy(&limited)
                .to_ascii_lowercase()
                .contains("retry-after: 60")
        );
        put_faults(address, &json!({"shares": {"drop": 1}})).await;
        // At once or in the middle: a reset either way, and never the whole.
        for turn in 3..13 {
            assert_eq!(speak(turn).await, None, "turn {turn}");
        }
        let outage = json!({"timeline": [{"provider": "deepgram_tts", "outage": "refuse", "from_s": 0, "to_s": 60}]});
        put_faults(address, &outage).await;
        assert_eq!(status(&speak(20).await.expect("an answer")), "503");
        put_faults(address, &json!({})).await;
        assert_eq!(status(&speak(21).await.expect("an answer")), "200");
        let counts = stats(address).await["providers"]["deepgram_tts"].clone();
        let of = |name: &str| counts[name].as_u64().expect("a count");
        assert_eq!(
            (
                of("failed"),
                of("rate_limited"),
                of("dropped"),
                of("completed")
            ),
            (2, 1, 10, 1)
        );
        assert_eq!(of("requests"), 14);
        assert_eq!(of("in_flight"), 0);
    });
}

#[test]
fn a_reset_session_of_speech_recognition_is_a_reset() {
    with_mocks(at_once(), |address| async move {
        put_faults(address, &json!({"shares": {"drop": 1}})).await;
        let mut session = listen(address).await;
        session
            .send(Message::binary(audio(1, 5, 1)))
            .await
            .expect("sent");
        let next = session.next().await.expect("an end");
        assert!(next.is_err(), "{next:?}");
    });
}

#[test]
fn bad_requests_are_refused() {
    with_mocks(at_once(), |address| async move {
        for body in ["", "{}", r#"{"text": ""}"#, r#"{"text": 1}"#] {
            let answer = ask(address, "POST", "/v1/speak", body)
                .await
                .expect("an answer");
            assert_eq!(status(&answer), "400", "{body}");
        }
        let answer = ask(address, "PUT", "/faults", r#"{"shares": {"fail": 2}}"#).await;
        assert_eq!(status(&answer.expect("an answer")), "400");
        let answer = ask(address, "GET", "/v1/listen", "").await;
        assert_eq!(status(&answer.expect("an answer")), "426");
        let answer = ask(address, "GET", "/nothing", "").await;
        assert_eq!(status(&answer.expect("an answer")), "404");
    });
}
