//! A gateway: what the tests ask with, and what they read of the answers.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use plimsoll_providers::config::Config;
use plimsoll_providers::profile::{Profile, Provider};
use plimsoll_providers::server::Mocks;
use plimsoll_workload_voice::marks::{CallerMark, REPLY_BLOCK_BYTES, ReplyMark, TranscriptMark};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Runs `test` beside mocks with these settings.
pub(crate) fn with_mocks<F: Future<Output = ()>>(
    config: Config,
    test: impl FnOnce(SocketAddr) -> F,
) {
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

/// They take no time, and replies come at once.
pub(crate) fn at_once() -> Config {
    Config {
        profile: Profile::Zero,
        paced: false,
        ..Config::default()
    }
}

/// They take no time, and replies come as fast as they are played.
pub(crate) fn paced() -> Config {
    Config {
        profile: Profile::Zero,
        ..Config::default()
    }
}

/// A connection that asks one thing after the other.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    input: Vec<u8>,
}

/// What was answered, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether it came to its end.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn marks(&self) -> Vec<ReplyMark> {
        let blocks = self.body.chunks_exact(REPLY_BLOCK_BYTES);
        blocks
            .map(|block| ReplyMark::read(block).expect("a mark"))
            .collect()
    }
}

impl Connection {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("it listens");
        stream.set_nodelay(true).expect("a live socket");
        Self {
            stream,
            input: Vec::new(),
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("written");
    }

    /// Only asks.
    pub(crate) async fn begin(&mut self, method: &str, path: &str, body: &str) {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: mock\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.write(request.as_bytes()).await;
    }

    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.begin(method, path, body).await;
        self.answer().await
    }

    /// The next answer, or what came of it before the connection ended.
    pub(crate) async fn answer(&mut self) -> Answer {
        let mut answer = Answer::default();
        let Some(head) = self.line_up_to(b"\r\n\r\n").await else {
            return answer;
        };
        answer.head = String::from_utf8(head)
            .expect("a head of text")
            .to_ascii_lowercase();
        answer.status = answer.head[9..12].parse().expect("a status");
        if let Some(length) = answer.header("content-length") {
            let length = length.parse().expect("a length");
            answer.whole = self.take(length, &mut answer.body).await;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(line) = self.line_up_to(b"\r\n").await {
                let size = std::str::from_utf8(&line).expect("a size").trim_end();
                let size = usize::from_str_radix(size, 16).expect("hexadecimal");
                let mut end = Vec::new();
                if !self.take(size, &mut answer.body).await || !self.take(2, &mut end).await {
                    break;
                }
                assert_eq!(end, b"\r\n", "behind a chunk");
                if size == 0 {
                    answer.whole = true;
                    break;
                }
            }
        } else {
            answer.whole = true;
        }
        answer
    }

    /// Takes so many bytes, or what comes of them.
    async fn take(&mut self, count: usize, into: &mut Vec<u8>) -> bool {
        while self.input.len() < count && self.read().await {}
        let taken = count.min(self.input.len());
        into.extend(self.input.drain(..taken));
        taken == count
    }

    async fn line_up_to(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            let found = self.input.windows(end.len()).position(|bytes| bytes == end);
            if let Some(at) = found {
                return Some(self.input.drain(..at + end.len()).collect());
            }
            if !self.read().await {
                return None;
            }
        }
    }

    async fn read(&mut self) -> bool {
        self.stream
            .read_buf(&mut self.input)
            .await
            .is_ok_and(|count| count > 0)
    }
}

/// One request on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Answer {
    Connection::to(address).await.ask(method, path, body).await
}

/// The path and the body that a provider of replies wants.
pub(crate) fn speech(provider: Provider, text: &str) -> (&'static str, String) {
    let (path, body) = match provider {
        Provider::DeepgramStt | Provider::DeepgramTts => (
            "/v1/speak?model=aura-2&encoding=linear16&sample_rate=24000",
            json!({"text": text}),
        ),
        Provider::CartesiaTts => (
            "/tts/bytes",
            json!({
                "model_id": "sonic", "transcript": text, "voice": {"mode": "id", "id": "default"},
                "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
            }),
        ),
        Provider::ElevenlabsTts => (
            "/v1/text-to-speech/default/stream?output_format=pcm_24000",
            json!({"text": text, "model_id": "aura-2"}),
        ),
        Provider::OpenaiTts => (
            "/v1/audio/speech",
            json!({"model": "aura-2", "input": text, "voice": "default", "response_format": "pcm"}),
        ),
    };
    (path, body.to_string())
}

/// Asks for a reply on a connection of its own.
pub(crate) async fn speak(address: SocketAddr, provider: Provider, text: &str) -> Answer {
    let (path, body) = speech(provider, text);
    ask(address, "POST", path, &body).await
}

/// Asks for a reply of caller 1 to this turn. Its first block takes as long as expected, by its mark.
pub(crate) async fn expect_first_block(
    address: SocketAddr,
    provider: Provider,
    turn: u32,
    expected: Duration,
) {
    let first = speak(address, provider, &format!("#1.{turn} a"))
        .await
        .marks()[0];
    let took = Duration::from_nanos(first.handed_ns - first.read_ns);
    assert!(
        took >= expected && took < expected + Duration::from_millis(60),
        "{took:?} of {expected:?}"
    );
}

pub(crate) async fn put_faults(address: SocketAddr, faults: Value) {
    let answer = ask(address, "PUT", "/faults", &faults.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// What the mocks have counted of a provider.
pub(crate) async fn counts(address: SocketAddr, provider: Provider) -> Counts {
    let stats = ask(address, "GET", "/stats", "").await.json();
    Counts(stats["providers"][provider.name()].clone())
}

pub(crate) struct Counts(pub(crate) Value);

impl Counts {
    pub(crate) fn of(&self, name: &str) -> u64 {
        self.0[name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name} in {}", self.0))
    }

    /// The sum that holds at any time.
    pub(crate) fn check(&self) {
        let ends = [
            "completed",
            "failed",
            "timed_out",
            "dropped",
            "rate_limited",
            "stalled",
            "cancelled",
            "in_flight",
        ];
        let sum: u64 = ends.iter().map(|end| self.of(end)).sum();
        assert_eq!(self.of("requests"), sum, "{}", self.0);
    }
}

/// Waits until the counts of a provider are right.
pub(crate) async fn until(
    address: SocketAddr,
    provider: Provider,
    right: impl Fn(&Counts) -> bool,
) -> Counts {
    for _ in 0..200 {
        let counts = counts(address, provider).await;
        counts.check();
        if right(&counts) {
            return counts;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{}", counts(address, provider).await.0);
}

/// A session of speech recognition.
pub(crate) struct Session(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

pub(crate) const LISTEN: &str = "/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true&model=nova-3&language=en-US&punctuate=true";

impl Session {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Error> {
        let (session, _) = connect_async(format!("ws://{address}{LISTEN}")).await?;
        Ok(Self(session))
    }

    pub(crate) async fn send(&mut self, audio: Vec<u8>) {
        self.0.send(Message::binary(audio)).await.expect("sent");
    }

    pub(crate) async fn tell(&mut self, command: &str) {
        let command = json!({"type": command}).to_string();
        self.0.send(Message::text(command)).await.expect("sent");
    }

    pub(crate) async fn next(&mut self) -> Result<Message, Error> {
        self.0.next().await.expect("a message")
    }

    /// The next message, which is JSON.
    pub(crate) async fn json(&mut self) -> Value {
        let message = self.next().await.expect("no error");
        serde_json::from_str(message.to_text().expect("text")).expect("JSON")
    }

    /// The mark of the next result, and whether it is final.
    pub(crate) async fn result(&mut self) -> (TranscriptMark, bool) {
        let result = self.json().await;
        assert_eq!(result["is_final"], result["speech_final"], "{result}");
        let transcript = &result["channel"]["alternatives"][0]["transcript"];
        let mark = TranscriptMark::read(transcript.as_str().expect("a text")).expect("a mark");
        assert!(mark.read_ns <= mark.handed_ns);
        (mark, result["is_final"] == true)
    }

    /// The same, as the blocks that it covers.
    pub(crate) async fn covered(&mut self) -> (u32, u32, bool) {
        let (mark, last) = self.result().await;
        assert_eq!(mark.vu, 9);
        (mark.from, mark.to, last)
    }
}

/// Blocks with these numbers; those from `speech` on are spoken, and the last of all ends the utterance.
pub(crate) fn audio(blocks: impl IntoIterator<Item = u32>, speech: u32) -> Vec<u8> {
    let blocks: Vec<u32> = blocks.into_iter().collect();
    let to = blocks.last().copied();
    let bytes = blocks.into_iter().flat_map(|block| {
        let mark = CallerMark {
            vu: 9,
            block,
            speech: block >= speech,
            last: Some(block) == to && block >= speech,
        };
        let mut bytes = Vec::new();
        mark.append_block(&mut bytes);
        bytes
    });
    bytes.collect()
}
